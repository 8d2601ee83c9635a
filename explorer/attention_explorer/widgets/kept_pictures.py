"""When a picture that a widget keeps from one paint to the next can stand for what it would paint."""

from __future__ import annotations

from PySide6.QtGui import QPainter


def is_of_other_scale(painter: QPainter, ratio: float) -> bool:
    """Whether a picture of `ratio` device pixels a logical one would blur: a projector or a lens has another scale."""
    return abs(painter.deviceTransform().m11() - ratio) > 1e-3 * ratio
