"""What the program says about packages that are not there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from models.files import extras

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("extra", "names"), [("gguf", extras.GGUF), ("spread", extras.SPREAD)])
def test_what_is_asked_for_is_what_the_extra_installs(extra: str, names: tuple[str, ...]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"][extra]
    assert sorted(re.match(r"[\w-]+", line)[0] for line in declared) == sorted(names)  # type: ignore[index]


def test_only_what_is_missing_is_named() -> None:
    assert extras.lacking(("numpy", "no_such_package", "torch")) == ["no_such_package"]
    assert extras.install_command(("gguf", "accelerate")) == "python -m pip install gguf accelerate"


def test_no_advice_installs_this_program_by_name_from_an_index() -> None:
    """Nothing of that name is published, and whoever took the name would be installed."""
    files = [ROOT / "README.md", *(ROOT / "explorer").rglob("*.py"), *(ROOT / "models").rglob("*.py")]
    advice = re.compile(r"pip3? install (-\S+ )*[\"']?attention[-_]explorer")
    assert [path.name for path in files if advice.search(path.read_text("utf-8"))] == []
