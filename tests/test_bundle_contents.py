"""What goes into the frozen program and what stays out, as far as that can be told without a build."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from attention_explorer import licences

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def contents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contents", ROOT / "packaging" / "contents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_else_is_installed_stays_out(contents: ModuleType) -> None:
    excluded = set(contents.excluded_modules())
    assert {"pytest", "mypy", "hypothesis", "tkinter"} <= excluded
    assert excluded.isdisjoint(
        {"attention_explorer", "attention_models", "torch", "transformers", "numpy", "PIL", "yaml", "PySide6"}
    )


def test_a_requirement_that_is_not_installed_is_refused(contents: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    found = licences.installed
    monkeypatch.setattr(licences, "installed", lambda lines: [name for name in found(lines) if name != "msgspec"])
    with pytest.raises(ValueError, match=r"not installed: msgspec\. Run: pip install"):
        contents.requirements()


_IMPORTS_ALL = """
import importlib, pkgutil, sys

excluded = set(sys.argv[1:])

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        is_there = excluded.isdisjoint(".".join(parts[:i]) for i in range(1, len(parts) + 1))
        return self.finder.find_spec(name, path, target) if is_there else None

sys.meta_path[:] = map(Without, sys.meta_path)
import attention_explorer, attention_models
for package in (attention_explorer, attention_models):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
attention_explorer.run(attention_explorer.open_checkpoint("story-gpt"), "Tom fell.")
print(*sys.modules)
"""


def test_the_program_does_without_what_stays_out(contents: ModuleType) -> None:
    """All of its modules are imported, and a checkpoint is opened and run."""
    command = [sys.executable, "-c", _IMPORTS_ALL, *contents.excluded_modules()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"torch", "attention_explorer.panels.head.panel", "pyqtgraph.graphicsItems.PlotCurveItem"} <= imported


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("torch/lib/libtorch_cpu.so", True),
        ("torch/include/ATen/ATen.h", False),
        ("PySide6/Qt/plugins/platforms/libqxcb.so", True),
        ("PySide6/Qt/plugins/sqldrivers/libqsqlite.so", False),
        ("PySide6\\plugins\\platforms\\qwindows.dll", True),
        ("PySide6/Qt/translations/qt_de.qm", False),
        ("libcudart.so", False),  # of the computer that builds
        ("nvidia/cuda_runtime/lib/libcudart.so.12", True),  # of a torch for such devices
        ("torch-2.13.0.dist-info/RECORD", False),
        ("torch-2.13.0.dist-info/METADATA", True),
        ("transformers/models/gpt2/modeling_gpt2.py", True),
        ("transformers/models/gemma2/modular_gemma2.py", False),
    ],
)
def test_files_that_are_kept(contents: ModuleType, name: str, is_kept: bool) -> None:
    assert contents.is_used(name) is is_kept


def test_the_note_lists_every_dependency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "packaging")  # where Python looks first when that file is run
    note = (ROOT / "docs" / "packaging.md").read_text("utf-8").partition("## What the program stands on")[2]
    listed = re.findall(r"^\| (\S+) \| [\d.]+ MB \| [\d.]+ s \| [^|]+ \|$", note, re.MULTILINE)
    assert listed == runpy.run_path(str(ROOT / "packaging" / "dependencies.py"))["requirements"]()


def test_a_mac_is_told_of_both_kinds_of_files(contents: ModuleType) -> None:
    told = contents.info_plist()
    types = {kind["UTTypeIdentifier"]: kind["UTTypeTagSpecification"] for kind in told["UTExportedTypeDeclarations"]}
    for kind in told["UTExportedTypeDeclarations"]:
        assert kind["UTTypeConformsTo"] == ["public.data"]  # either may be a zip, which no reader of text is to open
    for kind in told["CFBundleDocumentTypes"]:
        (identifier,) = kind["LSItemContentTypes"]
        assert types[identifier]["public.filename-extension"] == kind["CFBundleTypeExtensions"]
    script = (ROOT / "packaging" / "windows" / "attention-explorer.iss").read_text("utf-8")
    opened = {extension for kind in told["CFBundleDocumentTypes"] for extension in kind["CFBundleTypeExtensions"]}
    assert opened == set(re.findall(r"Classes\\\.(\w+)\\OpenWithProgids", script)) == {"attn", "lesson"}
