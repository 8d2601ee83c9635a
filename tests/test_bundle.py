"""The frozen program, installed and without Python beside it: it tries itself, and gives the numbers of the source."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import torch

from attention_explorer.missing_libraries import PACKAGES
from attention_explorer.version import __version__
from attention_models.files.catalogue import SHIPPED
from tests.foreign_root import dpkg
from tests.models import tiny, tiny_vision

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.bundle

# Sums are in another order with another number of threads, and differ in their last bits.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

on_linux = pytest.mark.skipif(sys.platform != "linux" or shutil.which("dpkg") is None, reason="of Linux, with dpkg")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is removed at once: pytest keeps those of three runs, and a bundle takes gigabytes."""
    folder = tmp_path_factory.mktemp("bundle")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def families(scratch: Path) -> Path:
    """A checkpoint of random weights of every family of the suite, also of those that are refused."""
    for maker, kinds in ((tiny.save, tiny.KINDS), (tiny_vision.save, tiny_vision.KINDS)):
        for kind in kinds:
            maker(kind, scratch / "families" / kind)
    return scratch / "families"


@pytest.fixture(scope="module")
def source_tried(scratch: Path, families: Path) -> Iterator[subprocess.Popen[str]]:
    """The self-test of the source, which runs while the bundle is built: that is done on one core."""
    command = [sys.executable, "-m", "attention_explorer", "--self-test", str(families)]
    environment = {**os.environ, **ONE_THREAD}
    with (
        (scratch / "source.err").open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", cwd=ROOT, env=environment
        ) as process,
    ):
        yield process
        process.kill()


@pytest.fixture(scope="module")
def folder(scratch: Path, source_tried: subprocess.Popen[str]) -> Path:
    """The folder that ATTENTION_EXPLORER_BUNDLE names, else one that is built here, with the packages beside it."""
    built = os.environ.get("ATTENTION_EXPLORER_BUNDLE")
    if built is not None:
        return Path(built).resolve()
    pytest.importorskip("PyInstaller", reason="a build needs .[package]")
    out = scratch / "dist"
    command = [sys.executable, str(ROOT / "packaging" / "build.py"), "--preset", "0", "--out", str(out)]
    subprocess.run([*command, "--work", str(scratch / "work")], check=True, cwd=ROOT)
    shutil.rmtree(scratch / "work")
    return out / "attention-explorer"


def packed(folder: Path, pattern: str) -> Path:
    """The file beside the built folder that it is packed into."""
    found = list(folder.parent.glob(pattern))
    if not found and "ATTENTION_EXPLORER_BUNDLE" in os.environ:
        pytest.skip(f"no {pattern} beside {folder}")
    (path,) = found
    return path


@pytest.fixture(scope="module")
def program(folder: Path, scratch: Path) -> Path:
    """The program where its installer puts it: on Linux what dpkg installs, elsewhere what was built."""
    if sys.platform == "win32":
        return folder / "attention-explorer.exe"
    if sys.platform != "linux" or shutil.which("dpkg") is None or not list(folder.parent.glob("*.deb")):
        return folder / "attention-explorer"
    dpkg(scratch, "--install", str(packed(folder, "*.deb")))
    return scratch / "system" / "usr" / "bin" / "attention-explorer"


def surroundings(home: Path) -> dict[str, str]:
    """The environment of somebody who has no Python."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMPDIR") if name in os.environ}
    places = {"HOME": str(home), "ATTENTION_EXPLORER_HOME": str(home)}
    return {**kept, **ONE_THREAD, **places, "QT_QPA_PLATFORM": "offscreen"}


def run(program: Path, home: Path, *arguments: str, refuses: bool = False) -> str:
    """What it prints. It has to end with 0, unless it `refuses` something."""
    command = [str(program), *arguments]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", env=surroundings(home), cwd=home, timeout=1800
    )
    assert done.returncode == 0 or (refuses and done.returncode == 1), done.stdout + done.stderr
    return done.stdout


def test_version(program: Path, tmp_path: Path) -> None:
    assert __version__ in run(program, tmp_path, "--version")


@pytest.fixture(scope="module")
def tried(
    program: Path, families: Path, source_tried: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, str], dict[str, str]]:
    """What the self-tests of the frozen program and of the source say of each step, with `families`."""
    frozen = run(program, tmp_path_factory.mktemp("home"), "--self-test", str(families), refuses=True)
    return told(frozen), told(source_tried.communicate()[0])


def told(output: str) -> dict[str, str]:
    """Step -> whether it worked, and what was said of it."""
    lines = (line.split("\t", 2) for line in output.splitlines() if line.count("\t") >= 2)
    return {name: f"{kind} {said}" for kind, name, said in lines}


def test_every_family_gives_the_numbers_of_the_source(tried: tuple[dict[str, str], dict[str, str]]) -> None:
    frozen, source = ({name: said for name, said in one.items() if name.startswith("checkpoint ")} for one in tried)
    assert len(source) == len(SHIPPED) + len(tiny.KINDS) + len(tiny_vision.KINDS)
    assert frozen == source
    refused = [said for said in source.values() if said.startswith("FAIL")]
    assert len(refused) < 12
    assert all(said.startswith("FAIL CheckpointError: ") for said in refused)


def test_everything_else_works(tried: tuple[dict[str, str], dict[str, str]]) -> None:
    frozen, source = tried
    steps = {name for name in source if not name.startswith(("checkpoint ", "self-test"))}
    assert {"decoding", "session", "chat template", "window", "training", "picture", "closing"} < steps
    assert {name for name in frozen if frozen[name].startswith("ok")} >= steps


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, numpy.ndarray]:
    """What the source writes for a sentence."""
    path = tmp_path_factory.mktemp("weights") / "source.npz"
    command = [sys.executable, "-m", "attention_explorer", *SENTENCE, "--weights", str(path)]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **ONE_THREAD})
    return arrays(path)


SENTENCE = ("--checkpoint", "story-gpt", "--text", "Once upon a time")


def arrays(path: Path) -> dict[str, numpy.ndarray]:
    with numpy.load(path) as file:
        return {name: file[name] for name in file if file[name].dtype.kind == "f"}


def assert_equal(one: dict[str, numpy.ndarray], other: dict[str, numpy.ndarray]) -> None:
    assert set(one) == set(other) != set()
    for name in one:
        numpy.testing.assert_array_equal(one[name], other[name])


def test_weights_equal_those_of_the_source(program: Path, weights: dict[str, numpy.ndarray], tmp_path: Path) -> None:
    run(program, tmp_path, *SENTENCE, "--weights", str(tmp_path / "frozen.npz"))
    assert_equal(arrays(tmp_path / "frozen.npz"), weights)


@on_linux
def test_a_classroom_runs_one_installation_at_once(
    program: Path, families: Path, weights: dict[str, numpy.ndarray], tmp_path: Path
) -> None:
    """Four people with homes of their own, presets of the administrator, a share, and no network where that can be had.

    None of them writes anything into the installation or the share.
    """
    share = tmp_path / "share"
    shutil.copytree(families / "llama", share / "llama")
    presets = tmp_path / "presets.toml"
    presets.write_text(f'theme = "dark"\noffline = true\ncheckpoints = "{share}"\n', encoding="utf-8")
    places = (program.resolve().parent, share)
    before = [state(place) for place in places]
    alone = ["unshare", "--map-root-user", "--net"]
    command = alone if subprocess.run([*alone, "true"], capture_output=True).returncode == 0 else []
    people = [tmp_path / f"person {number} ü" for number in range(4)]
    started: list[subprocess.Popen[str]] = []
    for home in people:
        home.mkdir()
        environment = {**surroundings(home), "ATTENTION_EXPLORER_PRESETS": str(presets)}
        # every second one runs what lies on the share
        sentence = SENTENCE if len(started) % 2 else ("--checkpoint", str(share / "llama"), *SENTENCE[2:])
        words = [*command, str(program), *sentence, "--weights", str(home / "weights.npz")]
        started.append(subprocess.Popen(words, env=environment, cwd=home, stderr=subprocess.PIPE, encoding="utf-8"))
    said = [process.communicate(timeout=600)[1] for process in started]
    assert [process.returncode for process in started] == [0] * len(people), said
    assert_equal(arrays(people[1] / "weights.npz"), weights)
    assert_equal(arrays(people[3] / "weights.npz"), weights)
    assert_equal(arrays(people[0] / "weights.npz"), arrays(people[2] / "weights.npz"))
    assert [state(place) for place in places] == before


def state(place: Path) -> dict[Path, tuple[int, int]]:
    """Each file with its size and when it was written, in nanoseconds."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in place.rglob("*")}


@on_linux
def test_the_package_leaves_nothing_behind(folder: Path, scratch: Path, tmp_path: Path) -> None:
    """What dpkg installs from the .deb, compressed as it is published, runs; after it is removed no file is left."""
    root = scratch / "removed"
    dpkg(root, "--install", str(packed(folder, "*.deb")))
    program = root / "system" / "usr" / "bin" / "attention-explorer"
    assert run(program, tmp_path, *SENTENCE, "--decode", "10").strip()
    dpkg(root, "--purge", "attention-explorer")
    assert list((root / "system").rglob("*")) == []


@on_linux
def test_what_is_published_is_whole(folder: Path) -> None:
    """The archive holds the built folder, and the checksums are those of the files."""
    lines = packed(folder, "SHA256SUMS").read_text("utf-8").splitlines()
    sums = {name: said for said, name in (line.split("  ") for line in lines)}
    assert {name.rpartition(".")[2] for name in sums} >= {"xz", "deb", "json"}
    for name, said in sums.items():
        with (folder.parent / name).open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == said
    with tarfile.open(packed(folder, "*.tar.xz")) as archive:
        held = {member.name: member.size for member in archive if member.isfile()}
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    assert held == {path.relative_to(folder.parent).as_posix(): path.stat().st_size for path in files}


@on_linux
@pytest.mark.skipif(torch.version.cuda is not None, reason="torch for an accelerator weighs gigabytes")
def test_it_weighs_no_more_than_it_did(folder: Path) -> None:
    """Bytes on disk, by the table of the build and counted here; what is published is at most 250 MB."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    total = sum(path.stat().st_size for path in files)
    assert total < 760e6
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "packaging")}
    code = f"import build, pathlib; print(build.size_table(pathlib.Path({str(folder)!r})))"
    table = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    sizes = {name: float(size) for size, name in re.findall(r"([\d.]+) MB  (.+)", table.stdout)}
    assert sizes.pop("together") == pytest.approx(total / 1e6, abs=0.06)
    assert sum(sizes.values()) == pytest.approx(total / 1e6, abs=0.05 * len(sizes) + 0.06)
    assert {"torch", "transformers", "PySide6", "attention_models"} < set(sizes)
    if "ATTENTION_EXPLORER_BUNDLE" in os.environ:  # those built here are compressed in haste
        for pattern in ("*.tar.xz", "*.deb"):
            assert packed(folder, pattern).stat().st_size <= 250e6


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("readelf") is None, reason="of Linux, by readelf")
def test_every_library_that_is_left_to_the_system_is_named_with_its_package(folder: Path) -> None:
    """By the sentence about one that is missing, and by what the .deb depends on."""
    libraries = [path for path in folder.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    held = {path.name for path in folder.rglob("*.so*")}
    said = subprocess.run(["readelf", "-d", *libraries], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said)) - held
    of_c = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"}
    needed = {name for name in needed - of_c if not name.startswith("ld-linux")}
    assert "libxcb.so.1" in needed
    assert needed <= set(PACKAGES)
    layout = runpy.run_path(str(ROOT / "packaging" / "linux" / "layout.py"))
    asked = f"{layout['DEPENDS']}, {layout['RECOMMENDS']}"
    assert {PACKAGES[name][0] for name in needed} <= set(re.findall(r"[\w.-]+", asked))
