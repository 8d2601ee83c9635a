"""Words explain themselves where they stand: a tooltip of whatever text holds a term has its entry too.

Whatever a tooltip quotes keeps its own direction.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QMenu,
    QTabBar,
    QToolTip,
    QWidget,
)

from attention_explorer.glossary import Entry, glossary
from attention_explorer.widgets.token_text import isolated

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
