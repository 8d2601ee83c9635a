"""A mask in a few cells: which keys, across, each query, downwards, may attend to."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from attention_models.protocol.mask_kinds import MASK_KINDS

CELLS = 6
_NUMBERS = {"padding": 2, "window": 3, "blocks": 3, "prefix": 3}
"""Of kinds that have one: what shows in so few cells."""


def is_visible(kind: str, query: int, key: int) -> bool:
    """Whether the picture of a kind has this cell filled. A window is one that looks back, as a decoder's."""
    seen = bool(MASK_KINDS[kind].allows(query, key, _NUMBERS.get(kind, 1), CELLS))
    return seen and (kind != "window" or key <= query)


def draw_mask(painter: QPainter, kind: str, area: QRectF, ink: QColor) -> None:
    """Visible cells filled, masked ones empty. `area` is a square."""
    side = area.width() / CELLS
    faint = QColor(ink)
    faint.setAlpha(110)
    painter.save()
    painter.setPen(QPen(faint, 1))
    for query in range(CELLS):
        for key in range(CELLS):
            cell = QRectF(area.left() + key * side, area.top() + query * side, side, side).adjusted(0.5, 0.5, -1, -1)
            if is_visible(kind, query, key):
                painter.fillRect(cell, ink)
            else:
                painter.drawRect(cell)
    painter.restore()
