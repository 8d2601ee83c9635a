"""The brush of a map: what was painted, the stroke that is being painted, and how both are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from attention_explorer.theme import Theme
from attention_explorer.widgets.heat_map.painter import MapPainter

BrushMode = Literal["off", "block", "allow", "ask"]

_SMALLEST_SIGN = 9.0  # pixels a cell needs before a sign in it can be told from noise
_SIGN = 9.0  # the largest sign
_HINTS: dict[BrushMode, str] = {
    "block": "drag blocks cells, Esc ends it",
    "allow": "drag allows cells, Esc ends it",
    "ask": "drag paints where a head may look, Esc ends it",
}


class Brush:
    """While it is on, a drag paints cells: a stroke is unfinished until the button is released."""

    def __init__(self) -> None:
        self.mode: BrushMode = "off"
        self.painted: tuple[tuple[int, int, bool], ...] = ()
        """Cells that are marked, (query, key, allowed)."""
        self._stroke: dict[tuple[int, int], None] = {}  # in the order in which they were painted
        self._last: tuple[int, int] | None = None

    @property
    def is_on(self) -> bool:
        return self.mode != "off"

    @property
    def stroke(self) -> tuple[tuple[int, int], ...]:
        """The cells of the unfinished stroke."""
        return tuple(self._stroke)

    @property
    def hint(self) -> str:
        """What a drag does; "" while the brush is off."""
        return _HINTS.get(self.mode, "")

    def set_mode(self, mode: BrushMode) -> None:
        """What a drag does from now on. An unfinished stroke is dropped."""
        self.mode = mode
        self.drop()

    def extend(self, cell: tuple[int, int]) -> None:
        """Paint a cell. A pointer that moves fast skips cells: those on the way are painted too."""
        self._stroke.update(dict.fromkeys(cells_between(self._last or cell, cell)))
        self._last = cell

    def drop(self) -> None:
        """Forget the unfinished stroke."""
        self._stroke.clear()
        self._last = None

    def draw(self, painter: QPainter, artist: MapPainter) -> None:
        """Mark what is painted: blocked cells hatched with a cross, allowed ones with a plus."""
        marks = {(query, key): allowed for query, key, allowed in self.painted}
        marks |= dict.fromkeys(self._stroke, self.mode == "allow")
        if not marks:
            return
        rows, columns = artist.view.rows.visible(), artist.view.columns.visible()
        painter.save()
        painter.setClipRect(artist.map_rect)
        for (query, key), allowed in marks.items():
            if query in rows and key in columns:
                draw_mark(painter, artist.cell(query, key), allowed, artist.theme)
        painter.restore()


def cells_between(start: tuple[int, int], end: tuple[int, int]) -> Sequence[tuple[int, int]]:
    """The cells on the straight way from `start` to `end`, both included, each touching the next."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    if steps == 0:
        return [end]
    return [
        (round(start[0] + (end[0] - start[0]) * i / steps), round(start[1] + (end[1] - start[1]) * i / steps))
        for i in range(steps + 1)
    ]


def draw_mark(painter: QPainter, rect: QRectF, allowed: bool, theme: Theme) -> None:
    """A blocked cell loses its colour and gets a cross; an allowed one keeps it, in a frame with a plus."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    if not allowed:
        painter.fillRect(rect, QColor(theme.surface))
        painter.fillRect(rect, QColor(theme.hatch))
    shown = min(rect.width(), rect.height())
    if shown < _SMALLEST_SIGN:
        return
    middle, reach = rect.center(), min(_SIGN, shown * 0.5) / 2
    arms = (
        (QLineF(-reach, 0, reach, 0), QLineF(0, -reach, 0, reach))
        if allowed
        else (QLineF(-reach, -reach, reach, reach), QLineF(-reach, reach, reach, -reach))
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    # on any colour of the map a pale sign needs a dark halo; on the blocked cell's own ground it does not
    pens = ((QColor(0, 0, 0, 150), 4.0), (QColor(255, 255, 255), 2.0)) if allowed else ((QColor(theme.text), 1.6),)
    for colour, width in pens:
        painter.setPen(QPen(colour, width, c=Qt.PenCapStyle.RoundCap))
        for arm in arms:
            painter.drawLine(arm.translated(middle))
