"""The About window: versions and licences of what is installed, and their texts."""

from __future__ import annotations

from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QPushButton, QTextBrowser, QWidget

from attention_explorer import licences
from attention_explorer.version import __version__
from attention_explorer.window.help import show_about


def page_of(dialog: QDialog) -> str:
    page = dialog.findChild(QTextBrowser)
    assert isinstance(page, QTextBrowser)
    return page.toPlainText()


def test_about_names_versions_licences_and_that_qt_may_be_replaced(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    show_about(parent)
    (about,) = parent.findChildren(QDialog)
    text = page_of(about)
    assert f"Attention Explorer {__version__}" in text
    assert f"torch {version('torch')}: {licences.licence_of(distribution('torch'))}" in text
    assert f"safetensors {version('safetensors')}: Apache" in text
    assert "GNU Lesser General Public License, version 3" in text
    assert "may be replaced" in text


@pytest.mark.full
def test_licence_texts_open_from_about(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    show_about(parent)
    (about,) = parent.findChildren(QDialog)
    button = next(one for one in about.findChildren(QPushButton) if "Licence" in one.text())
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    (texts,) = about.findChildren(QDialog)
    shown = page_of(texts)
    files = distribution("safetensors").files or ()
    own = next(file for file in files if "licen" in file.name.lower())
    assert Path(str(own.locate())).read_text(encoding="utf-8").strip()[:300] in shown


def test_what_is_required_by_a_requirement_is_listed_too():
    assert {"torch", "sympy", "mpmath"} <= set(licences.installed(["torch"]))
    assert licences.installed(["no-such-package"]) == []
    assert "torch" not in licences.installed(["transformers>=5"])
    assert "torch" in licences.installed(["transformers[torch]>=5"])
    assert licences.installed(["torch; sys_platform == 'no-such-platform'"]) == []


def test_every_dependency_is_named():
    import tomllib

    from packaging.requirements import Requirement

    root = Path(__file__).resolve().parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {Requirement(line).name for line in project["dependencies"]} == set(licences.STANDS_ON)
