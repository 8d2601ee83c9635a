"""The tab bars of docks. Qt makes them itself, when docks become tabs, and keeps those that have lost their tabs."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QTabBar, QToolButton


def say_what_for(bar: QTabBar, hints: Mapping[str, str]) -> None:
    """Give each tab the tooltip that `hints` has for its title."""
    if bar.elideMode() != Qt.TextElideMode.ElideNone:  # which lays out all tabs
        bar.setElideMode(Qt.TextElideMode.ElideNone)  # arrows beside them are better than half a word in each
        bar.setUsesScrollButtons(True)
    for i in range(bar.count()):
        bar.setTabToolTip(i, hints.get(bar.tabText(i), ""))


def bring_into_line(bar: QTabBar) -> None:
    """Whether a key reaches it, and the tab in front whole: one that comes or goes before it pushes it under arrows."""
    bar.setFocusPolicy(Qt.FocusPolicy.TabFocus if bar.count() else Qt.FocusPolicy.NoFocus)
    front = bar.tabRect(bar.currentIndex())
    arrows = [button.x() for button in bar.findChildren(QToolButton) if button.isVisibleTo(bar)]
    if front.isValid() and (front.left() < 0 or front.right() >= min([bar.width(), *arrows])):
        QCoreApplication.sendEvent(bar, QResizeEvent(bar.size(), bar.size()))  # at which it scrolls to that tab
