"""What travels: the wheel and the sdist hold code, data, weights, cards and licences, and the commands are there.

The wheel's packages live beside folders and modules of a person's own that are called `models` or `explorer`.
"""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attention_explorer.version import __version__
from attention_models import load_weights

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models" / "attention_models"
WEIGHTS = MODELS / "weights"


def data_files() -> list[str]:
    """All weights, samples and resources, as paths from the project's root."""
    files = [
        p for folder in (WEIGHTS, MODELS / "samples", ROOT / "resources") for p in folder.rglob("*") if p.is_file()
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
    expected = {
        f"attention_explorer/{f}" if f.startswith("resources/") else f.removeprefix("models/") for f in data_files()
    }
    assert len(expected) > 20
    assert expected <= names
    packages = {"attention_explorer", "attention_models"}
    assert {f"{package}/{file}" for package in packages for file in ("__init__.py", "py.typed")} <= names
    assert {name.split("/")[0] for name in names} == {*packages, f"attention_explorer-{__version__}.dist-info"}


def test_wheel_holds_weights_unchanged(wheel: zipfile.ZipFile) -> None:
    for path in WEIGHTS.rglob("*.safetensors"):
        assert wheel.read(path.relative_to(ROOT / "models").as_posix()) == path.read_bytes()


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
        "mkdocs.yml",
        "pyproject.toml",
        ".ci/run",
        ".ci/full",
        "tests/conftest.py",
    } <= names
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in names)


# --------------------------------------------------------------------------- beside a project of a person's own

THEIRS = {
    "folders without __init__": {"models/resnet.py": "models.resnet", "explorer/walk.py": "explorer.walk"},
    "packages": {"models/__init__.py": "models", "explorer/__init__.py": "explorer"},
    "modules": {"models.py": "models", "explorer.py": "explorer"},
}


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what pip would put into site-packages."""
    folder = tmp_path_factory.mktemp("site-packages")
    wheel.extractall(folder)
    return folder


@pytest.fixture(params=list(THEIRS.values()), ids=list(THEIRS))
def project(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[str]]:
    """A person's own project, and the names of its modules, each of which says THEIRS."""
    for file in request.param:
        path = tmp_path / "project" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("THEIRS = True\n", encoding="utf-8")
    return tmp_path / "project", list(request.param.values())


def in_project(folder: Path, installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Python there, which looks in the project first and then in what is installed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((".", str(installed)))}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_the_wheel_leaves_names_of_others_alone(project: tuple[Path, list[str]], installed: Path, first: str) -> None:
    folder, names = project
    theirs = [f"import {name}; assert {name}.THEIRS" for name in names]
    ours = [
        "import attention_explorer as ax, attention_models",
        "model = ax.open_checkpoint('story-gpt')",
        "assert abs(ax.run(model, 'Tom and Anna').weights(('decoder', 5), 0)[-1].sum() - 1) < 1e-5",
        "import attention_explorer.panels.head.panel",  # of the window
        "print(ax.__file__, attention_models.__file__, sep='\\n')",
    ]
    done = in_project(folder, installed, "-c", "\n".join(theirs + ours if first == "theirs" else ours + theirs))
    assert done.returncode == 0, done.stderr
    found = [str(installed / package / "__init__.py") for package in ("attention_explorer", "attention_models")]
    assert done.stdout.splitlines() == found


@pytest.mark.parametrize(
    "start", [("-c", "from attention_explorer.app import main; main()"), ("-m", "attention_explorer")]
)
def test_the_command_runs_in_a_project_with_those_names(
    project: tuple[Path, list[str]], installed: Path, start: tuple[str, ...]
) -> None:
    folder, _ = project
    done = in_project(folder, installed, *start, "--text", "Hi", "--weights", "out.npz")
    assert (done.returncode, done.stderr) == (0, "")
    saved = load_weights(folder / "out.npz")
    assert saved.text == "Hi"
    np.testing.assert_allclose(saved.weights("decoder", 5).sum(-1), 1, atol=1e-5)
