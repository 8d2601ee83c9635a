"""Who may import whom: what the window and the requests load at run time, and the contracts in pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Container
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "transformers", "tokenizers", "safetensors")


def loaded_by(statement: str) -> set[str]:
    """Names in `sys.modules` after `statement` ran in an interpreter of its own."""
    program = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module", ["attention_explorer.window.window", "attention_models.protocol.request", "attention_models"]
)
def test_import_loads_no_torch(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert module in loaded
    assert not loaded.intersection(HEAVY)


def test_what_is_painted_first_waits_for_nothing_that_fills_the_window() -> None:
    loaded = loaded_by("import attention_explorer.window.window")
    later = {
        "attention_explorer.recovery.training_folders",
        "attention_explorer.session.training",
        "attention_explorer.session.state",
        "attention_explorer.panels.base",
    }
    assert not loaded.intersection(later | {"tomllib", "attention_models.files.toml_files"})


def test_models_loads_no_qt() -> None:
    loaded = loaded_by(
        "import attention_models.engine.engine, attention_models.forward.capture, attention_models.opening.open"
    )
    assert "torch" in loaded
    assert not any(name.split(".")[0] in ("PySide6", "shiboken6", "pyqtgraph", "attention_explorer") for name in loaded)


def test_the_face_loads_neither_torch_nor_qt() -> None:
    """Nor typing, which takes longer to import than all of it."""
    loaded = loaded_by("import attention_explorer as ax; assert {'run', 'open'} < set(dir(ax)), dir(ax)")
    assert "attention_explorer" in loaded
    assert loaded.isdisjoint({*HEAVY, "numpy", "PySide6", "shiboken6", "typing"})


@pytest.mark.full  # .ci/run runs lint-imports
def test_contracts_hold() -> None:
    program = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def modules() -> dict[str, Path]:
    """Every module of the program and its file, by dotted name."""
    files = {}
    for folder in (ROOT / "explorer", ROOT / "models"):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def imported_by(source: str, known: Container[str]) -> set[str]:
    """Which of the `known` modules `source` imports anywhere: at its top, inside a function, or for types alone."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names.add(whole if whole in known else node.module)
    return {name for name in names if name in known}


def test_no_circle_between_modules() -> None:
    files = modules()
    graph = {name: imported_by(path.read_text(encoding="utf-8"), files) for name, path in files.items()}
    assert graph["attention_models.engine.engine"]
    assert graph["attention_explorer.window.window"]
    TopologicalSorter(graph).prepare()  # CycleError names a circle


@pytest.mark.parametrize(
    "line", ["import a.b", "from a import b", "from a.b import thing", "def f():\n    from a.b import thing"]
)
def test_a_circle_is_found_however_it_is_imported(line: str) -> None:
    known = {"a", "a.b", "a.c"}
    graph = {"a.b": imported_by("if TYPE_CHECKING:\n    from a.c import thing", known), "a.c": imported_by(line, known)}
    with pytest.raises(CycleError, match="cycle"):
        TopologicalSorter(graph).prepare()
