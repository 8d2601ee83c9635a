"""How the turns of a conversation look: a colour and a kind of line each, so that they differ without colour too."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.theme import Theme
from explorer.widgets.themed import ThemedWidget
from models.protocol.chat import ROLES

_LINES = {"system": Qt.PenStyle.DotLine, "user": Qt.PenStyle.SolidLine, "assistant": Qt.PenStyle.DashLine}
_TINT = 0.16  # of a ground: the text upon it stays legible
_SAMPLE = 26.0
_GAP = 6.0
_BETWEEN = 16.0
TEMPLATE = "template"


def turn_colour(theme: Theme, role: str) -> QColor:
    """The colour of a role's turns."""
    return QColor({"system": theme.system, "user": theme.user, "assistant": theme.assistant}[role])


def turn_ground(theme: Theme, role: str) -> QColor:
    """The same as a ground for text, to be laid over a surface."""
    colour = turn_colour(theme, role)
    colour.setAlphaF(_TINT)
    return colour


def draw_turn_line(painter: QPainter, theme: Theme, role: str, left: float, right: float, y: float) -> None:
    """The line of a role from `left` to `right`: dotted, drawn through or dashed."""
    pen = QPen(turn_colour(theme, role), 2.5, _LINES[role])
    if role == "assistant":
        pen.setDashPattern([2.4, 1.4])
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.drawLine(QPointF(left, y), QPointF(right, y))


class TurnLegend(ThemedWidget):
    """Which colour and line is whose."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Whose tokens", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleDescription("Tokens are coloured and underlined by who said them; those of the template not.")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setToolTip("Tokens by who said them. What no turn says was written by the model's chat template.")

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        words = sum(_SAMPLE + _GAP + metrics.horizontalAdvance(name) for name in (*ROLES, TEMPLATE))
        return QSize(round(words + _BETWEEN * len(ROLES)) + 2, round(metrics.height()) + 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics, x = QFontMetricsF(self.font()), 1.0
        for role in (*ROLES, TEMPLATE):
            sample = QRectF(x, 2, _SAMPLE, self.height() - 4)
            painter.setPen(QPen(QColor(self._theme.border), 1.0))
            painter.setBrush(QColor(self._theme.surface_alt))
            painter.drawRoundedRect(sample, 5, 5)
            if role != TEMPLATE:
                painter.setBrush(turn_ground(self._theme, role))
                painter.drawRoundedRect(sample, 5, 5)
                draw_turn_line(painter, self._theme, role, sample.left() + 4, sample.right() - 4, sample.bottom() - 4)
            x = sample.right() + _GAP
            painter.setPen(QColor(self._theme.text_dim))
            width = metrics.horizontalAdvance(role)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, role)
            x += width + _BETWEEN
