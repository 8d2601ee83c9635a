"""The veil over rows and columns of a small picture of a map whose tokens fill up a text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath

from explorer.theme import Theme

VEIL = 0.62
"""How much of the ground lies over what is faded."""

Share = tuple[float, float]
"""Where a run of rows (or columns) begins and ends, 0 to 1 of the picture's height (or width)."""


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Rising numbers as runs of neighbours, first and last of each."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def shares(numbers: Sequence[int], count: float) -> tuple[Share, ...]:
    """The runs of rows (or columns), of `count` that the picture is of."""
    return tuple((first / count, (last + 1) / count) for first, last in runs(numbers)) if count else ()


def draw_veil(
    painter: QPainter, theme: Theme, picture: QRectF, rows: Sequence[Share], columns: Sequence[Share]
) -> None:
    """Lay the ground's colour over some rows and columns of a picture."""
    if not (rows or columns):
        return
    covered = QPainterPath()
    covered.setFillRule(Qt.FillRule.WindingFill)  # where a row and a column cross they are no paler
    for first, last in rows:
        top, bottom = (picture.top() + share * picture.height() for share in (first, last))
        covered.addRect(QRectF(picture.left(), top, picture.width(), bottom - top))
    for first, last in columns:
        left, right = (picture.left() + share * picture.width() for share in (first, last))
        covered.addRect(QRectF(left, picture.top(), right - left, picture.height()))
    veil = QColor(theme.surface)
    veil.setAlphaF(VEIL)
    painter.save()
    painter.setClipRect(picture)
    painter.fillPath(covered, veil)
    painter.restore()
