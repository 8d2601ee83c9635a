"""Who may import whom: what the window and the requests load at run time, and the contracts in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.parametrize("module", ["explorer.window.window", "models.protocol.requests", "models"])
def test_import_loads_no_torch(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert module in loaded
    assert not loaded.intersection(HEAVY)


def test_models_loads_no_qt() -> None:
    loaded = loaded_by("import models.engine.engine, models.forward.capture, models.opening.open")
    assert "torch" in loaded
    assert not any(name.split(".")[0] in ("PySide6", "shiboken6", "pyqtgraph", "explorer") for name in loaded)


def test_contracts_hold() -> None:
    program = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout
