"""Help without a network: the pages of docs/ in a window, searched as one types; and what the program stands on."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QSignalBlocker, QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QKeyEvent, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from attention_explorer import licences
from attention_explorer.paths import documents, resource
from attention_explorer.version import __version__
from attention_explorer.widgets.screens import room_for

FIRST = "help.md"
"""The page that explains the window. It comes first, and is none of docs/."""

_HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: *#+)?$")
_LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^):#]+)(#[^)]*)?\)")
_MARKS = re.compile(r"\[([^]]+)\]\([^)]*\)|[`*]")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a page and the text below it."""

    page: str  # "panels.md", "decisions/no-torch-compile.md"
    page_title: str
    heading: str
    text: str  # in lower case, with the heading and the page's title

    def __str__(self) -> str:
        return self.page_title if self.heading == self.page_title else f"{self.page_title}: {self.heading}"


def markdown_of(page: str) -> str:
    """A page's text. Links to files that do not come along are plain text.

    Raises:
        FileNotFoundError: no page has this name.
    """
    if page == FIRST:
        return resource(FIRST).read_text(encoding="utf-8")
    name = posixpath.normpath(page)
    if not name.endswith(".md") or name.startswith(("..", "/")):
        raise FileNotFoundError(page)

    def within(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link[2]))
        return link[0] if target.endswith(".md") and not target.startswith("..") else link[1]

    return _LINK.sub(within, (documents() / name).read_text(encoding="utf-8"))


def pages() -> tuple[str, ...]:
    """The pages in the order of docs/index.md; those that it does not name follow, by name."""
    folder = documents()
    named = [link[2] for link in _LINK.finditer((folder / "index.md").read_text(encoding="utf-8"))]
    there = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    return tuple(dict.fromkeys([FIRST, "index.md", *(name for name in named if name in there), *there]))


def sections() -> tuple[Section, ...]:
    """What there is to be found, in the order of the pages."""
    found = []
    for page in pages():
        title = heading = ""
        lines: list[str] = []
        fenced = False
        for line in [*markdown_of(page).split("\n"), "# "]:
            fenced ^= line.startswith("```")
            is_heading = not fenced and (line == "# " or _HEADING.match(line) is not None)
            if not is_heading:
                lines.append(line)
                continue
            if heading:
                found.append(Section(page, title, heading, " ".join([title, heading, *lines]).lower()))
            match = _HEADING.match(line)
            heading = _MARKS.sub(r"\1", match[2]) if match is not None else ""
            title, lines = title or heading, []
    return tuple(found)


def anchor(heading: str) -> str:
    """How links spell a heading."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


class HelpPage(QTextBrowser):
    """One page, with links to others. Qt's own history goes back and forth (Alt+Left, Alt+Right)."""

    def __init__(self) -> None:
        super().__init__()
        self.setOpenLinks(False)
        self.setAccessibleName("Page")
        self.anchorClicked.connect(self.follow)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        url = QUrl(name)
        if kind == QTextDocument.ResourceType.MarkdownResource.value:
            try:
                return markdown_of(url.path())
            except OSError:
                return f"# Not found\n\nThere is no page {url.path()}."
        if kind == QTextDocument.ResourceType.ImageResource.value:
            return self._picture(url)
        return None  # nothing is read from elsewhere

    def _picture(self, url: QUrl) -> QImage | None:
        """A picture of docs/, no wider than the page is now."""
        name = posixpath.normpath(posixpath.join(posixpath.dirname(self.source().path()), url.path()))
        if url.scheme() or name.startswith(("..", "/")):
            return None
        picture = QImage(str(documents() / name))
        width = max(120, self.viewport().width() - 32)
        smooth = Qt.TransformationMode.SmoothTransformation
        return picture.scaledToWidth(width, smooth) if picture.width() > width else picture

    def follow(self, url: QUrl) -> None:
        """Open a page of ours here, and an address of the web in the browser."""
        if url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)
            return
        here = self.source().path()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), url.path())) if url.path() else here
        self.open_page(path, url.fragment())

    def open_page(self, page: str, at: str = "") -> None:
        """Open a page at a heading, which is named as in links."""
        if page != self.source().path():
            self.setSource(QUrl(page), QTextDocument.ResourceType.MarkdownResource)
        block = self.document().begin()
        while block.isValid() and not (block.blockFormat().headingLevel() and anchor(block.text()) == at):
            block = block.next()
        bar = self.verticalScrollBar()
        if at and block.isValid():
            self.setTextCursor(QTextCursor(block))
            bar.setValue(bar.value() + self.cursorRect().top() - 8)
        elif not at:
            bar.setValue(0)


class HelpWindow(QDialog):
    """Pages at the left, or the sections that have the words that are searched; what is chosen at the right."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Help")
        self._sections = sections()
        self._shown: tuple[Section, ...] = ()
        self.field = QLineEdit()
        self.field.setPlaceholderText("Search the help: decode, GGUF, keys, --train …")
        self.field.setAccessibleName("Search the help")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self.search)
        self.list = QListWidget()
        self.list.setAccessibleName("Pages")
        self.list.setWordWrap(True)
        self.list.setMinimumWidth(180)
        self.list.currentRowChanged.connect(self._open_chosen)
        self.page = HelpPage()
        both = QHBoxLayout()
        both.addWidget(self.list, 1)
        both.addWidget(self.page, 3)
        column = QVBoxLayout(self)
        column.addWidget(self.field)
        column.addLayout(both, 1)
        self.resize(QSize(940, 640).boundedTo(room_for(self)))
        self.search("")

    def search(self, typed: str) -> None:
        """List the sections that have all words; without words, the pages. The first is opened."""
        words = typed.lower().split()
        if words:
            found = [section for section in self._sections if all(word in section.text for word in words)]
            # What a heading names is what is looked for; Python's sort keeps the order of the pages otherwise.
            found.sort(key=lambda section: -sum(word in str(section).lower() for word in words))
        else:
            first = {section.page: section for section in reversed(self._sections)}
            found = [first[page] for page in pages() if not page.startswith("decisions/")]
        self._shown = tuple(found)
        with QSignalBlocker(self.list):
            self.list.clear()
            self.list.addItems([str(section) for section in found] or ["No page has these words."])
            self.list.setCurrentRow(0 if found else -1)
        self._open_chosen()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and Down go through the list from the field too."""
        if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self._shown:
            step = 1 if event.key() == Qt.Key.Key_Down else -1
            self.list.setCurrentRow(min(max(self.list.currentRow() + step, 0), len(self._shown) - 1))
        elif event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):  # which would close a dialog
            super().keyPressEvent(event)

    def _open_chosen(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._shown):
            section = self._shown[row]
            self.page.open_page(section.page, "" if section.heading == section.page_title else anchor(section.heading))


def show_help(parent: QWidget) -> HelpWindow:
    """Open the help at the page that explains the window. It is not modal: what it explains stays in reach."""
    window = HelpWindow(parent)
    window.show()
    return window


def show_about(parent: QWidget) -> None:
    """Open the page with the version, and the licences of what the program stands on."""
    there = licences.installed(licences.STANDS_ON)
    listed = [f"- {one.name} {one.version}: {one.licence}" for one in licences.distributions(there)]
    head = f"# Attention Explorer {__version__}\n\nSee where a transformer looks, and why. MIT licence."
    page = f"{head}\n\n## Stands on\n\n{licences.QT}\n\n" + "\n".join(listed)
    dialog = _show(parent, "About Attention Explorer", page)
    texts = QPushButton("&Licence texts")
    texts.setAutoDefault(False)
    texts.clicked.connect(lambda: _show(dialog, "Licence texts", licences.document(), is_markdown=False))
    buttons = dialog.findChild(QDialogButtonBox)
    assert isinstance(buttons, QDialogButtonBox)
    buttons.addButton(texts, QDialogButtonBox.ButtonRole.ActionRole)


def _show(parent: QWidget, title: str, text: str, *, is_markdown: bool = True) -> QDialog:
    dialog = QDialog(parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(title)
    page = QTextBrowser()
    if is_markdown:
        page.setMarkdown(text)
    else:
        page.setPlainText(text)
    page.setOpenExternalLinks(True)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.close)
    column = QVBoxLayout(dialog)
    column.addWidget(page)
    column.addWidget(buttons)
    dialog.resize(QSize(720, 620).boundedTo(room_for(dialog)))
    dialog.show()
    return dialog
