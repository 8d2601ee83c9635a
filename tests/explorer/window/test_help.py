"""Help: every page, its links and what is found in it; About: versions and licences of what is installed."""

from __future__ import annotations

from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QPushButton, QTextBrowser, QWidget

from attention_explorer import licences
from attention_explorer.paths import documents
from attention_explorer.version import __version__
from attention_explorer.window.help import FIRST, HelpWindow, anchor, markdown_of, pages, sections, show_about


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


@pytest.fixture
def help_window(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    window = HelpWindow(parent)
    window.show()
    yield window
    assert parent is not None  # kept until here: without its parent the window would be deleted


def titles(window: HelpWindow) -> list[str]:
    return [window.list.item(row).text() for row in range(window.list.count())]


def test_help_opens_every_page_of_docs(help_window):
    there = {path.relative_to(documents()).as_posix() for path in documents().rglob("*.md")}
    assert set(pages()) == {FIRST, *there}
    for page in pages():
        help_window.page.open_page(page)
        heading = markdown_of(page).splitlines()[0].removeprefix("# ").replace("`", "")
        assert help_window.page.document().begin().text() == heading
    assert titles(help_window)[:3] == ["How to read this", "Attention Explorer", "Installation"]
    assert not any(title.startswith("Garbage") for title in titles(help_window)), "decisions are found, not listed"


def test_every_link_leads_to_a_heading(help_window):
    followed = 0
    for page in pages():
        help_window.page.open_page(page)
        block = help_window.page.document().begin()
        links = set()
        while block.isValid():
            links |= {href for part in block.textFormats() if (href := part.format.anchorHref())}
            block = block.next()
        for link in sorted(links - {link for link in links if "://" in link}):
            help_window.page.open_page(page)
            help_window.page.follow(QUrl(link))
            assert "There is no page" not in help_window.page.toPlainText(), (page, link)
            if "#" in link:
                assert anchor(help_window.page.textCursor().block().text()) == link.partition("#")[2], (page, link)
            followed += 1
    assert followed > 90


def test_what_is_typed_finds_the_section_and_goes_to_it(help_window):
    QTest.keyClicks(help_window.field, "adapter gguf")
    assert help_window.list.count() >= 1
    for row, title in enumerate(titles(help_window)):
        help_window.list.setCurrentRow(row)
        text = help_window.page.toPlainText().lower()
        assert "adapter" in text, title
        assert "gguf" in text, title
    help_window.field.setText("no page has these seven words at all")
    assert titles(help_window) == ["No page has these words."]
    help_window.field.setText("")
    assert titles(help_window)[0] == "How to read this"


def test_a_heading_within_code_is_none():
    assert not [section for section in sections() if section.heading.startswith(("pip ", "!", "python "))]
    with_code = [section for section in sections() if section.page == "cli.md"]
    assert with_code
    assert all(f"# {section.heading}" in markdown_of("cli.md").replace("`", "") for section in with_code)


@pytest.mark.parametrize("name", ["../pyproject.toml", "/etc/passwd", "../README.md", "panels.txt", "none.md"])
def test_nothing_but_a_page_is_read(help_window, name):
    kind = QTextDocument.ResourceType
    assert "There is no page" in help_window.page.loadResource(kind.MarkdownResource.value, QUrl(name))
    assert help_window.page.loadResource(kind.ImageResource.value, QUrl("../resources/x.png")) is None
    assert help_window.page.loadResource(kind.ImageResource.value, QUrl("http://127.0.0.1/x.png")) is None


def test_a_picture_is_no_wider_than_the_page(help_window):
    help_window.page.open_page("panels.md")
    picture = help_window.page.loadResource(
        QTextDocument.ResourceType.ImageResource.value, QUrl("screenshots/flow.png")
    )
    assert 100 < picture.width() <= help_window.page.viewport().width()
