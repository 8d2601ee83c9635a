"""One promise of the program, and whether it holds: "✓ rows sum to 1"."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.themed import ThemedWidget

StatusKind = Literal["ok", "pending", "none", "warning", "error"]
"""A promise holds, is being measured, is not measured or cannot be, is to be taken with care, or does not hold."""
_SIGNS = {"ok": "✓", "pending": "…", "none": "–", "warning": "!", "error": "✕"}
_ROLES = {"ok": "ok", "pending": "text_dim", "none": "text_dim", "warning": "warning", "error": "error"}
_SPOKEN = {
    "ok": "holds",
    "pending": "being measured",
    "none": "not measured",
    "warning": "warning",
    "error": "does not hold",
}


class StatusChip(ThemedWidget):
    """A short text after a sign that tells its state without colour."""

    clicked = Signal()  # only when set_clickable(True)
    said = Signal()  # it has something else to say, and may need more room

    def __init__(self, text: str = "", kind: StatusKind = "pending", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._kind: StatusKind = kind
        self._text, self._tip = text, ""
        self._is_short = False
        self.set_clickable(False)
        self._say()

    def set_status(self, kind: StatusKind, text: str, tooltip: str = "") -> None:
        """Show a state, with the whole story in the tooltip."""
        if (kind, text, tooltip) == (self._kind, self._text, self._tip):
            return  # it is told at each change of anything, and the bar around it is laid out anew when it says so
        self._kind, self._text, self._tip = kind, text, tooltip
        self._say()
        self.said.emit()

    def _say(self) -> None:
        self._set_tip()
        self.setAccessibleName(f"{self._text}: {_SPOKEN[self._kind]}")
        self.setAccessibleDescription(self._tip)
        self.updateGeometry()
        self.update()

    def set_clickable(self, clickable: bool) -> None:
        """Whether a click, Enter or Space emits `clicked`, and the keyboard reaches the chip."""
        self._clickable = clickable
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if clickable else Qt.FocusPolicy.NoFocus)
        if clickable:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.unsetCursor()

    def set_short(self, short: bool) -> None:
        """Draw the sign alone: the words are in the tooltip, and spoken."""
        if short != self._is_short:
            self._is_short = short
            self._set_tip()
            self.updateGeometry()
            self.update()

    def _set_tip(self) -> None:
        self.setToolTip(f"{self._text}. {self._tip}" if self._is_short else self._tip)

    @property
    def text(self) -> str:
        """The sign and the text."""
        return f"{_SIGNS[self._kind]} {self._text}"

    @property
    def drawn(self) -> str:
        """What of it is drawn."""
        return _SIGNS[self._kind] if self._is_short else self.text

    @property
    def kind(self) -> StatusKind:
        return self._kind

    def sizeHint(self) -> QSize:
        return QSize(self.width_of(self.drawn), round(QFontMetricsF(self.font()).height()) + 8)

    def width_of(self, drawn: str) -> int:
        """How wide it is with so much drawn."""
        return round(QFontMetricsF(self.font()).horizontalAdvance(drawn)) + 18

    @property
    def saved(self) -> int:
        """How much narrower its sign alone is."""
        return self.width_of(self.text) - self.width_of(_SIGNS[self._kind])

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        if self._clickable and self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.surface_hover))
            painter.drawRoundedRect(area, 6, 6)
        painter.setPen(QColor(getattr(self._theme, _ROLES[self._kind])))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, self._fitting(painter.fontMetrics()))
        self._draw_focus_ring(painter)

    def _fitting(self, metrics: QFontMetrics) -> str:
        """What there is room for, also before the window has given it what it needs: half a word only of bad news."""
        room = self.width() - 4
        if self._kind in ("ok", "pending", "none") and metrics.horizontalAdvance(self.drawn) > room:
            return _SIGNS[self._kind]
        return metrics.elidedText(self.drawn, Qt.TextElideMode.ElideRight, room)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        inside = self.rect().contains(event.position().toPoint())
        if self._clickable and inside and event.button() == Qt.MouseButton.LeftButton:
            self.clicked.emit()
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.setAccepted(self._clickable)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._clickable and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit()
        else:
            event.ignore()
