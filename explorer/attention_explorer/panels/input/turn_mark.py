"""How turns of a conversation, and two texts, look: each a colour and a kind of line, to differ without colour too."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.look.theme import Theme
from attention_explorer.widgets.themed import ThemedWidget
from attention_models.protocol.chat import ROLES

FIRST, SECOND = "first", "second"
"""The first and the second of two texts."""

_LINES = {
    "system": Qt.PenStyle.DotLine,
    "user": Qt.PenStyle.SolidLine,
    "assistant": Qt.PenStyle.DashLine,
    FIRST: Qt.PenStyle.SolidLine,
    SECOND: Qt.PenStyle.DashLine,
}
_TINT = 0.16  # of a ground: the text upon it stays legible
_SAMPLE = 26.0
_GAP = 6.0
_BETWEEN = 16.0


def turn_colour(theme: Theme, role: str) -> QColor:
    """The colour of a role's turns, or of one of two texts."""
    return QColor(getattr(theme, role))


def turn_ground(theme: Theme, role: str) -> QColor:
    """The same as a ground for text, to be laid over a surface."""
    colour = turn_colour(theme, role)
    colour.setAlphaF(_TINT)
    return colour


def draw_turn_line(painter: QPainter, theme: Theme, role: str, left: float, right: float, y: float) -> None:
    """The line of a role from `left` to `right`: dotted, drawn through or dashed."""
    pen = QPen(turn_colour(theme, role), wide(2.5), _LINES[role])
    if pen.style() == Qt.PenStyle.DashLine:
        pen.setDashPattern([2.4, 1.4])
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.drawLine(QPointF(left, y), QPointF(right, y))


class Legend(ThemedWidget):
    """Which colour and line is whose."""

    def __init__(self, title: str, names: Mapping[str, str], meaning: str, parent: QWidget | None = None) -> None:
        """`names` are shown by role; that of "" has no colour."""
        super().__init__(title, parent)
        self._names = dict(names)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleDescription(meaning)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setToolTip(meaning)

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        words = sum(_SAMPLE + _GAP + metrics.horizontalAdvance(name) for name in self._names.values())
        return QSize(round(words + _BETWEEN * (len(self._names) - 1)) + 2, round(metrics.height()) + 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics, x = QFontMetricsF(self.font()), 1.0
        for role, name in self._names.items():
            sample = QRectF(x, 2, _SAMPLE, self.height() - 4)
            painter.setPen(QPen(QColor(self._theme.border), 1.0))
            painter.setBrush(QColor(self._theme.surface_alt))
            painter.drawRoundedRect(sample, 5, 5)
            if role:
                painter.setBrush(turn_ground(self._theme, role))
                painter.drawRoundedRect(sample, 5, 5)
                draw_turn_line(painter, self._theme, role, sample.left() + 4, sample.right() - 4, sample.bottom() - 4)
            x = sample.right() + _GAP
            painter.setPen(QColor(self._theme.text_dim))
            width = metrics.horizontalAdvance(name)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, name)
            x += width + _BETWEEN


def turn_legend() -> Legend:
    """Of a conversation: the roles, and what its template wrote."""
    meaning = "Tokens by who said them. What no turn says was written by the model's chat template."
    return Legend("Whose tokens", {**{role: role for role in ROLES}, "": "template"}, meaning)
