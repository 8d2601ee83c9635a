"""The frozen program, without Python beside it: builds, tries itself, and gives the numbers of the source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from explorer.version import __version__

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


def run(program: Path, home: Path, *arguments: str) -> str:
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMPDIR") if name in os.environ}
    environment = {
        **kept,
        **ONE_THREAD,
        "QT_QPA_PLATFORM": "offscreen",
        "HOME": str(home),
        "ATTENTION_EXPLORER_HOME": str(home),
    }
    command = [str(program), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, cwd=home, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_version(program: Path, tmp_path: Path) -> None:
    assert __version__ in run(program, tmp_path, "--version")


def test_self_test(program: Path, tmp_path: Path) -> None:
    assert run(program, tmp_path, "--self-test").rstrip().splitlines()[-1].startswith("ok\tself-test")


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
