"""A token strip in a scroll area of a bounded height."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.input.chip_pictures import Chip
from attention_explorer.panels.input.token_strip import Room, TokenStrip
from attention_explorer.theme import Theme
from attention_explorer.widgets.bounded_area import BoundedArea
from attention_explorer.widgets.in_sight import scroll_to

_MANY = 40  # lines
_LINES_OF_MANY = 2


class TokenStripArea(BoundedArea):
    """Holds a `strip`, as high as its tokens need up to `most_lines` lines; beyond them it scrolls."""

    def __init__(self, most_lines: int = 3, parent: QWidget | None = None) -> None:
        self.strip = TokenStrip()
        super().__init__(self.strip, parent)
        self._most_lines = most_lines
        self._high_as = 0
        self.strip.look_changed.connect(self.fit_height)  # its font may come after that of the area
        self._in_view = -1  # the token that was asked for last, until somebody scrolls
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._lay_in_view)  # a strip takes its height when it is laid out, which comes later
        bar.actionTriggered.connect(self._let_go)

    def set_theme(self, theme: Theme) -> None:
        self.strip.set_theme(theme)

    def set_tokens(self, tokens: Sequence[Chip], high_as: int = 0) -> None:
        """Show these tokens and take the height they need. Use this rather than the strip's own.

        Where `high_as` is given only that many of the first count: those that come behind them move nothing below.
        """
        self._high_as = high_as
        self._let_go()
        self.strip.set_tokens(tokens)
        self.fit_height()

    def set_room(self, room: Room) -> None:
        """As the strip's own, with the height that it then needs."""
        if self.strip.set_room(room):
            self.fit_height()

    def set_from_afar(self, from_afar: bool) -> None:
        """As the strip's own, with the height that it then needs."""
        self.strip.set_from_afar(from_afar)
        self.fit_height()

    def set_most_lines(self, lines: int) -> None:
        """How many lines are seen at once."""
        if lines != self._most_lines:
            self._most_lines = lines
            self.fit_height()

    def show_token(self, token: int) -> None:
        """Scroll, if need be, until a token's chip can be seen; it stays so when lines move, until somebody scrolls."""
        self._in_view = token
        self._lay_in_view()

    def _let_go(self) -> None:
        self._in_view = -1

    def _lay_in_view(self) -> None:
        rect = self.strip.chip_rect(self._in_view)
        if not rect.isEmpty():
            scroll_to(self, rect.center().toPoint(), 0, round(rect.height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_in_view()

    def sizeHint(self) -> QSize:
        return QSize(480, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 60)

    def wanted_height(self) -> int:
        width = self.width()
        few = self._high_as and not self.strip.is_from_afar  # nobody scrolls from there
        lines = self.strip.lines_of(self._high_as, width) if few else self.strip.lines_for(width)
        if lines > self._most_lines:  # a page of tokens is read by scrolling anyway: the room is for the map
            lines = min(self._most_lines, _LINES_OF_MANY) if lines > _MANY else self._most_lines
        return round(self.strip.height_of(lines))
