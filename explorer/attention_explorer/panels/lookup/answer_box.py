"""One answer, large, under a small heading: what came back from a lookup."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.token_text import isolated

Kind = Literal["plain", "ok", "error"]
_PAD = 10.0


class AnswerBox(ThemedWidget):
    """A rounded box with a heading, one large line (made smaller where it is too long), and a dim note."""

    def __init__(self, heading: str, parent: QWidget | None = None) -> None:
        super().__init__(heading, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._heading = heading
        self._text, self._note = "", ""
        self._kind: Kind = "plain"
        self._colour = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def text(self) -> str:
        return self._text

    @property
    def kind(self) -> Kind:
        return self._kind

    def set_answer(self, text: str, note: str = "", kind: Kind = "plain", colour: str = "") -> None:
        """Show `text`, with a disc of `colour` ("#rrggbb") before it if there is one."""
        text, note = isolated(text), isolated(note)
        self._text, self._note, self._kind, self._colour = text, note, kind, colour
        self.setAccessibleDescription(f"{text}. {note}")
        self.setToolTip(text)
        self.update()

    def sizeHint(self) -> QSize:
        line = QFontMetricsF(self.font()).height()
        return QSize(180, round(2 * line + QFontMetricsF(self._large(1.6)).height() + 2 * _PAD))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def _large(self, factor: float) -> QFont:
        font = QFont(self.bold_font())
        font.setPointSizeF(self.font().pointSizeF() * factor)
        return font

    def _fitting(self, width: float) -> QFont:
        """The largest of a few sizes in which the answer fits."""
        fonts = [self._large(factor) for factor in (1.6, 1.35, 1.15, 1.0)]
        return next((f for f in fonts if QFontMetricsF(f).horizontalAdvance(self._text) <= width), fonts[-1])

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme
        edge, ink = {
            "plain": (theme.border, theme.text),
            "ok": (theme.ok, theme.ok),
            "error": (theme.error, theme.error),
        }[self._kind]
        painter.setPen(QPen(QColor(edge), 1))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        inner = QRectF(self.rect()).adjusted(_PAD, _PAD - 2, -_PAD, -_PAD + 2)
        line, middle = QFontMetricsF(self.font()).height(), Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(inner.left(), inner.top(), inner.width(), line), middle, self._heading)
        note = painter.fontMetrics().elidedText(self._note, Qt.TextElideMode.ElideRight, round(inner.width()))
        painter.drawText(QRectF(inner.left(), inner.bottom() - line, inner.width(), line), middle, note)
        body = inner.adjusted(0, line, 0, -line)
        if self._colour:
            size = QFontMetricsF(self.font()).height()
            painter.setPen(QPen(QColor(theme.border_strong), 1))
            painter.setBrush(QColor(self._colour))
            painter.drawEllipse(QRectF(body.left() + 1, body.center().y() - size / 2, size, size))
            body.setLeft(body.left() + size + 9)
        font = self._fitting(body.width())
        painter.setFont(font)
        painter.setPen(QColor(ink))
        shown = QFontMetricsF(font).elidedText(self._text, Qt.TextElideMode.ElideRight, body.width())
        painter.drawText(body, middle, shown)
