"""What travels: the wheel and the sdist hold code, data, weights, cards and licences, and the commands are there."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_explorer.version import __version__

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "models" / "weights"


def data_files() -> list[str]:
    """Everything below models/weights, models/samples and resources, as paths from the project's root."""
    files = [
        p
        for folder in (WEIGHTS, ROOT / "models" / "samples", ROOT / "resources")
        for p in folder.rglob("*")
        if p.is_file()
    ]
    return [p.relative_to(ROOT).as_posix() for p in files]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this tree and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_wheel_holds_data(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    expected = {f"explorer/{f}" if f.startswith("resources/") else f for f in data_files()}
    assert len(expected) > 20
    assert expected <= names
    assert {"explorer/__init__.py", "models/__init__.py", "explorer/py.typed", "models/py.typed"} <= names
    assert {name.split("/")[0] for name in names} == {
        "explorer",
        "models",
        f"attention_explorer-{__version__}.dist-info",
    }


def test_wheel_holds_weights_unchanged(wheel: zipfile.ZipFile) -> None:
    for path in WEIGHTS.rglob("*.safetensors"):
        assert wheel.read(path.relative_to(ROOT).as_posix()) == path.read_bytes()


def test_wheel_holds_licence_and_commands(wheel: zipfile.ZipFile) -> None:
    info = f"attention_explorer-{__version__}.dist-info"
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    commands = configparser.ConfigParser()
    commands.read_string(wheel.read(f"{info}/entry_points.txt").decode())
    assert dict(commands["console_scripts"]) == {"attention-explorer": "attention_explorer.app:main"}
    assert dict(commands["gui_scripts"]) == {"attention-explorer-gui": "attention_explorer.app:main"}


def test_sdist_holds_what_ci_needs(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert set(data_files()) <= names
    assert {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "pyproject.toml",
        ".ci/run",
        ".ci/full",
        "tests/conftest.py",
    } <= names
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in names)
