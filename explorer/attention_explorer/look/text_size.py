"""How small text may be drawn, and how wide lines are: one answer for all that paints, which the presenter raises."""

from __future__ import annotations

from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import SMALLEST_FONT

_LEAST = "attention_explorer_least_points"


def set_least_points(points: float) -> None:
    """From now on no text is smaller than `points`, since it is read from afar; 0 while a desk is where it is read."""
    app = QApplication.instance()
    if app is not None:
        app.setProperty(_LEAST, points)


def least_points() -> float:
    """The size, in points, below which no text is drawn now; 0 where there is no such size."""
    app = QApplication.instance()
    points = None if app is None else app.property(_LEAST)
    return points if isinstance(points, float) else 0.0


def is_read_from_afar() -> bool:
    """Whether what is drawn is on a projector: a panel is presented."""
    return least_points() > 0


def smaller(font: QFont, factor: float, least: float = 0.0) -> QFont:
    """A copy of `font`, `factor` (below 1) times as large, as far as `least` points and what can be read here allow."""
    copy, points = QFont(font), font.pointSizeF()
    copy.setPointSizeF(min(points, max(factor * points, least, least_points())))
    return copy


def line_scale() -> float:
    """How many times as wide as at a desk lines are drawn: as much as the text is larger."""
    return max(1.0, least_points() / SMALLEST_FONT)


def wide(width: float) -> float:
    """The pixels of a line, a curve or a frame that is `width` wide at a desk."""
    return width * line_scale()


def solid(alpha: float) -> float:
    """The opacity of a line whose strength says something, beside its width: from afar the width says it alone."""
    return 1.0 if is_read_from_afar() else alpha
