"""A strip across the window that says what happened and what can be done."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.widgets.token_text import isolated

NoticeKind = Literal["info", "warning", "error"]
_SPOKEN = {"info": "Note", "warning": "Warning", "error": "Error"}
_ROLES = {"info": "key", "warning": "warning", "error": "error"}


class NoticeBar(QFrame):
    """Hidden until there is something to say. The shape of its glyph tells the kind, not the colour alone."""

    action_triggered = Signal()
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None, dismissable: bool = True) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._kind: NoticeKind = "info"
        self._glyph = _Glyph()
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._action = QPushButton()
        self._action.clicked.connect(self.action_triggered)
        self._close = QToolButton()
        self._close.setText("✕")
        self._close.setProperty("role", "flat")
        self._close.setToolTip("Dismiss this message")
        self._close.setAccessibleName("Dismiss")
        self._close.clicked.connect(self._dismiss)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 10, 8)
        row.setSpacing(10)
        row.addWidget(self._glyph)
        row.addWidget(self._text, 1)
        row.addWidget(self._action)
        row.addWidget(self._close)
        self._close.setVisible(dismissable)
        self.setVisible(False)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._glyph.set_look(self._kind, QColor(getattr(theme, _ROLES[self._kind])))
        self.update()

    def show_notice(self, kind: NoticeKind, text: str, action_label: str = "") -> None:
        """Say something, with a button for what can be done about it where there is an `action_label`."""
        self._kind = kind
        self._text.setText(isolated(text))
        self._action.setText(action_label)
        self._action.setVisible(bool(action_label))
        self._glyph.set_look(kind, QColor(getattr(self._theme, _ROLES[kind])))
        self.setAccessibleName(f"{_SPOKEN[kind]}: {text}")
        self.setVisible(True)
        self.update()

    @property
    def text(self) -> str:
        return self._text.text()

    def _dismiss(self) -> None:
        self.setVisible(False)
        self.dismissed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        accent = QColor(getattr(self._theme, _ROLES[self._kind]))
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(accent, 1))
        painter.setBrush(QColor(self._theme.surface))
        painter.drawRoundedRect(area, 6, 6)
        outline = QPainterPath()
        outline.addRoundedRect(area, 6, 6)
        painter.setClipPath(outline)
        painter.fillRect(QRectF(area.left(), area.top(), 5, area.height()), accent)


class _Glyph(QWidget):
    """A disc with an i, a triangle with an exclamation mark, an octagon with a cross."""

    def __init__(self) -> None:
        super().__init__()
        self._kind: NoticeKind = "info"
        self._colour = QColor(LIGHT.key)
        self.setFixedSize(QSize(20, 20))

    def set_look(self, kind: NoticeKind, colour: QColor) -> None:
        self._kind, self._colour = kind, colour
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(self._colour, 1.8, c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        if self._kind == "info":
            painter.drawEllipse(QRectF(2, 2, 16, 16))
            painter.drawLine(QPointF(10, 9.5), QPointF(10, 14))
            painter.drawPoint(QPointF(10, 6))
        elif self._kind == "warning":
            painter.drawPolygon(QPolygonF([QPointF(10, 2), QPointF(18.5, 17.5), QPointF(1.5, 17.5)]))
            painter.drawLine(QPointF(10, 8), QPointF(10, 12))
            painter.drawPoint(QPointF(10, 15))
        else:
            near, far = 6.7, 13.3
            corners = [(near, 2), (far, 2), (18, near), (18, far), (far, 18), (near, 18), (2, far), (2, near)]
            painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))
            painter.drawLine(QPointF(7.2, 7.2), QPointF(12.8, 12.8))
            painter.drawLine(QPointF(12.8, 7.2), QPointF(7.2, 12.8))
