"""A slider and what it moves, seen together while a panel is presented: nobody in the last row can scroll."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QScrollArea, QWidget

from attention_explorer.look.text_size import is_read_from_afar
from attention_explorer.widgets.page import bring
from attention_explorer.widgets.scroll_areas import area_around


class Together(QObject):
    """Scrolls the area around two widgets so that both show when `moved` is called, until a person scrolls.

    first: the upper one, which shows where there is no room for both.
    last: the lower one; `part`, where it is given, says how many of its upper pixels are enough.
    """

    def __init__(self, first: QWidget, last: QWidget, part: Callable[[], int] | None = None) -> None:
        super().__init__(first)
        self._first, self._last, self._part = first, last, part
        self._area: QScrollArea | None = None
        self._is_kept = False
        self._soon = QTimer(self)  # once what the slider has changed is laid out
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._bring)

    def moved(self, *_value: object) -> None:
        """The slider is moved."""
        if is_read_from_afar() and self._first.isVisible():
            self._follow()
            self._is_kept = True
            self._soon.start()

    def _follow(self) -> None:
        """Watch the area that both are in: what comes later may push the lower one out of sight."""
        if self._area is not None:
            return
        self._area = area_around(self._first)
        if self._area is not None:
            bar = self._area.verticalScrollBar()
            bar.rangeChanged.connect(lambda _low, _high: self._soon.start() if self._is_kept else None)
            bar.actionTriggered.connect(lambda _action: self._let_go())

    def _let_go(self) -> None:
        self._is_kept = False

    def _bring(self) -> None:
        page = None if self._area is None else self._area.widget()
        if self._area is not None and page is not None and self._is_kept and is_read_from_afar():
            bring(self._area, page, self._first, self._last, None if self._part is None else self._part())
