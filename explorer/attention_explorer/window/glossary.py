"""The glossary in a window beside: searched as one types, with a link that brings what a term is about to the front."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSignalBlocker, QSize, Qt, QUrl, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListWidget,
    QMenu,
    QTabBar,
    QTextBrowser,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.glossary import Entry, glossary
from attention_explorer.panels.registry import TITLES
from attention_explorer.widgets.screens import room_for
from attention_explorer.widgets.token_text import isolated

# Words explain themselves where they stand: a tooltip of whatever text holds a term has its entry too.
# Whatever a tooltip quotes keeps its own direction.


_MOST = 3
"""Entries in one tooltip: a sentence may hold more terms than one wants to read."""


class Explaining(QObject):
    """While it lives, the tooltips of the windows of an application say what the terms in a text mean.

    A widget that paints its own words says them by a method `said_at(position)`.
    """

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        app.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QHelpEvent) or not isinstance(watched, QWidget):
            return False  # first: every event of the program comes by
        if event.type() != QEvent.Type.ToolTip:
            return False
        if watched.window().windowType() == Qt.WindowType.ToolTip:
            return False  # a pointer at rest on a tip: Qt would make the tip its own parent, and never end
        said, own, place = said_at(watched, event.pos())
        entries, own_way = glossary().found_in(said)[:_MOST], isolated(own)
        if not entries and own_way == own:
            return False
        QToolTip.showText(event.globalPos(), tooltip(own_way, entries) if entries else own_way, watched, place)
        return True


def said_at(widget: QWidget, at: QPoint) -> tuple[str, str, QRect]:
    """The words of a widget at a place, its own tooltip there, and what part of it these are of."""
    own, whole = widget.toolTip(), widget.rect()
    match widget:
        case QTabBar():
            tab = widget.tabAt(at)
            return widget.tabText(tab), widget.tabToolTip(tab), widget.tabRect(tab)
        case QMenu():
            actions = [action for action in widget.actions() if widget.actionGeometry(action).contains(at)]
            if not actions:
                return "", "", whole
            return _plain(actions[0].text()), actions[0].toolTip(), widget.actionGeometry(actions[0])
        case QLabel() | QAbstractButton():
            return _plain(widget.text()), own, whole
        case QComboBox():
            return widget.currentText(), own, whole
    view = widget.parentWidget()
    if isinstance(view, QHeaderView):
        section = view.logicalIndexAt(at)
        text = view.model().headerData(section, view.orientation(), Qt.ItemDataRole.DisplayRole)
        return str(text or ""), own, whole
    if isinstance(view, QAbstractItemView) and widget is view.viewport():
        index = view.indexAt(at)
        return str(index.data() or ""), str(index.data(Qt.ItemDataRole.ToolTipRole) or ""), view.visualRect(index)
    say = getattr(widget, "said_at", None)
    return (say(at) if callable(say) else ""), own, whole


def _plain(text: str) -> str:
    return text.replace("&", "")


def tooltip(own: str, entries: Sequence[Entry]) -> str:
    """A tooltip as Qt draws it: what was said there anyway, then each term."""
    before = f"<p>{_escaped(own).replace(chr(10), '<br>')}</p>" if own else ""
    return before + "".join(map(_explained, entries))


def _explained(entry: Entry) -> str:
    formula = f"<br><i>{_escaped(entry.formula)}</i>" if entry.formula else ""
    return f"<p><b>{_escaped(entry.term)}</b>: {_escaped(entry.what)}{formula}</p>"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


_SCHEME = "panel"
_FIRST = QSize(640, 420)


class GlossaryWindow(QDialog):
    """Not modal: what it explains stays in reach."""

    panel_wanted = Signal(str)
    """A link was followed to the panel of this name."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Glossary")
        self.field = QLineEdit()
        self.field.setPlaceholderText("Search: logit, norm, CLS, ␣ …")
        self.field.setAccessibleName("Search the glossary")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self.search)
        self.list = QListWidget()
        self.list.setAccessibleName("Terms")
        self.list.currentRowChanged.connect(self._show_entry)
        self.page = QTextBrowser()
        self.page.setAccessibleName("What it means")
        self.page.setOpenLinks(False)
        self.page.anchorClicked.connect(self._follow)
        both = QHBoxLayout()
        both.addWidget(self.list, 1)
        both.addWidget(self.page, 2)
        column = QVBoxLayout(self)
        column.addWidget(self.field)
        column.addLayout(both, 1)
        self._shown: tuple[Entry, ...] = ()
        self.resize(_FIRST.boundedTo(room_for(self)))
        self.search("")

    @property
    def entry(self) -> Entry | None:
        """The one that is read."""
        row = self.list.currentRow()
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def search(self, typed: str) -> None:
        """List what the words lead to; the first of it is read."""
        self._shown = glossary().search(typed)
        with QSignalBlocker(self.list):  # an entry is laid out once, when the list is whole
            self.list.clear()
            self.list.addItems([entry.term for entry in self._shown])
            self.list.setCurrentRow(0 if self._shown else -1)
        self._show_entry()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down go through the list from the field too; Enter follows the link, and does not close."""
        key = event.key()
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self._shown:
            step = 1 if key == Qt.Key.Key_Down else -1
            self.list.setCurrentRow(min(max(self.list.currentRow() + step, 0), len(self._shown) - 1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.entry is not None and self.entry.panel:
                self.panel_wanted.emit(self.entry.panel)
        else:
            super().keyPressEvent(event)

    def _show_entry(self) -> None:
        entry = self.entry
        self.page.setHtml("<p>No term has these letters.</p>" if entry is None else page_of(entry))

    def _follow(self, url: QUrl) -> None:
        if url.scheme() == _SCHEME:
            self.panel_wanted.emit(url.path())


def page_of(entry: Entry) -> str:
    """An entry as Qt draws it."""
    say = html.escape
    parts = [f"<h3>{say(entry.term)}</h3>", f"<p>{say(entry.what)}</p>"]
    if entry.formula:
        parts.append(f"<p><i>{say(entry.formula)}</i></p>")
    link = ""
    if entry.panel in TITLES:
        link = f' <a href="{_SCHEME}:{entry.panel}">Bring {say(TITLES[entry.panel])} to the front</a>'
    parts.append(f"<p>See it: {say(entry.where)}{link}</p>")
    if entry.also:
        parts.append(f"<p>Also: {say(', '.join(entry.also))}</p>")
    if entry.source:
        parts.append(f"<p>{say(entry.source)}.</p>")
    return "".join(parts)
