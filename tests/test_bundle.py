"""The frozen program, without Python beside it: builds, tries itself, and gives the numbers of the source."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from explorer.missing_libraries import PACKAGES
from explorer.version import __version__
from models.files.catalogue import SHIPPED
from tests.models import tiny, tiny_vision

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.bundle

# Sums are in another order with another number of threads, and differ in their last bits.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in the folder that ATTENTION_EXPLORER_BUNDLE names, else in one that is built here."""
    built = os.environ.get("ATTENTION_EXPLORER_BUNDLE")
    if built is None:
        pytest.importorskip("PyInstaller", reason="a build needs .[package]")
        out = tmp_path_factory.mktemp("bundle")
        command = [sys.executable, str(ROOT / "packaging" / "build.py"), "--only", "folder", "--out", str(out)]
        subprocess.run([*command, "--work", str(out / "work")], check=True, cwd=ROOT)
        built = str(out / "attention-explorer")
    return Path(built, "attention-explorer.exe" if sys.platform == "win32" else "attention-explorer")


def run(program: Path, home: Path, *arguments: str, refuses: bool = False) -> str:
    """What it prints. It has to end with 0, unless it `refuses` something."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMPDIR") if name in os.environ}
    environment = {
        **kept,
        **ONE_THREAD,
        "QT_QPA_PLATFORM": "offscreen",
        "HOME": str(home),
        "ATTENTION_EXPLORER_HOME": str(home),
    }
    command = [str(program), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, cwd=home, timeout=1800)
    assert done.returncode == 0 or (refuses and done.returncode == 1), done.stdout + done.stderr
    return done.stdout


def test_version(program: Path, tmp_path: Path) -> None:
    assert __version__ in run(program, tmp_path, "--version")


@pytest.fixture(scope="module")
def tried(program: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    """What the self-tests of the frozen program and of the source say of each step.

    Beside what is shipped they open a checkpoint of random weights of every family of the suite, also of those that
    are refused.
    """
    home, families = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("families")
    for maker, kinds in ((tiny.save, tiny.KINDS), (tiny_vision.save, tiny_vision.KINDS)):
        for kind in kinds:
            maker(kind, families / kind)
    frozen = run(program, home, "--self-test", str(families), refuses=True)
    command = [sys.executable, "-m", "explorer", "--self-test", str(families)]
    source = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, env={**os.environ, **ONE_THREAD})
    return told(frozen), told(source.stdout)


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


def test_weights_equal_those_of_the_source(program: Path, tmp_path: Path) -> None:
    frozen, source = tmp_path / "frozen.npz", tmp_path / "source.npz"
    text = ["--checkpoint", "story-gpt", "--text", "Once upon a time"]
    run(program, tmp_path, *text, "--weights", str(frozen))
    command = [sys.executable, "-m", "explorer", *text, "--weights", str(source)]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **ONE_THREAD})
    with numpy.load(frozen) as one, numpy.load(source) as other:
        assert set(one) == set(other)
        arrays = [name for name in one if one[name].dtype.kind == "f"]
        assert arrays
        for name in arrays:
            numpy.testing.assert_array_equal(one[name], other[name])


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("readelf") is None, reason="of Linux, by readelf")
def test_every_library_that_is_left_to_the_system_is_named_with_its_package(program: Path) -> None:
    """By the sentence about one that is missing, and by what the .deb depends on."""
    libraries = [path for path in program.parent.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    held = {path.name for path in program.parent.rglob("*.so*")}
    said = subprocess.run(["readelf", "-d", *libraries], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said)) - held
    of_c = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"}
    needed = {name for name in needed - of_c if not name.startswith("ld-linux")}
    assert "libxcb.so.1" in needed
    assert needed <= set(PACKAGES)
    layout = runpy.run_path(str(ROOT / "packaging" / "linux" / "layout.py"))
    asked = f"{layout['DEPENDS']}, {layout['RECOMMENDS']}"
    assert {PACKAGES[name] for name in needed} <= set(re.findall(r"[\w.-]+", asked))
