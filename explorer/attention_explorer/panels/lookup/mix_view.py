"""What a lookup answers: values mixed by their weights, as a colour, a number and a bar of shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.themed import ThemedWidget

_BAR = 16.0
_LARGEST = 104.0


@dataclass(frozen=True)
class Share:
    """One value's part of the mix. `weight` is between 0 and 1, all of them sum to 1."""

    name: str
    colour: str
    weight: float


class MixView(ThemedWidget):
    """Stands upright: heading, disc, number, the bar of shares and one line under it."""

    def __init__(self, heading: str, parent: QWidget | None = None) -> None:
        super().__init__(heading, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._heading = heading
        self._colour = ""
        self._text = ""
        self._note = ""
        self._shares: tuple[Share, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    @property
    def text(self) -> str:
        return self._text

    @property
    def colour(self) -> str:
        """Of the mix, "#rrggbb"."""
        return self._colour

    def set_mix(self, text: str, colour: str, shares: Sequence[Share], note: str = "") -> None:
        """Show the mixed number as `text` and the mixed `colour`."""
        self._text, self._colour, self._shares, self._note = text, colour, tuple(shares), note
        heard = ", ".join(f"{share.name} {100 * share.weight:.0f} %" for share in self._shares)
        self.setAccessibleDescription(f"{text}, mixed from {heard}")
        self.update()

    def _large(self) -> QFont:
        font = QFont(self.bold_font())
        font.setPointSizeF(self.font().pointSizeF() * 1.8)
        return font

    def sizeHint(self) -> QSize:
        return QSize(150, 260)

    def minimumSizeHint(self) -> QSize:
        line = QFontMetricsF(self.font()).height()
        return QSize(104, round(2 * line + QFontMetricsF(self._large()).height() + _BAR + 80))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, width = self._theme, float(self.width())
        line = QFontMetricsF(self.font()).height()
        large = QFontMetricsF(self._large()).height()
        disc = min(_LARGEST, width - 8, self.height() - 2 * line - large - _BAR - 36)
        top = max(0.0, (self.height() - (2 * line + large + disc + _BAR + 36)) / 2)
        centre = Qt.AlignmentFlag.AlignCenter
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(0, top, width, line), centre, self._heading)
        top += line + 8
        painter.setPen(QPen(QColor(theme.border_strong), 1))
        painter.setBrush(QColor(self._colour or theme.surface_alt))
        painter.drawEllipse(QRectF((width - disc) / 2, top, disc, disc))
        top += disc + 6
        painter.setFont(self._large())
        painter.setPen(QColor(theme.text))
        painter.drawText(QRectF(0, top, width, large), centre, self._text)
        top += large + 8
        self._draw_shares(painter, QRectF(4, top, width - 8, _BAR))
        top += _BAR + 4
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(0, top, width, line), centre, self._note)

    def _draw_shares(self, painter: QPainter, rect: QRectF) -> None:
        clip = QPainterPath()
        clip.addRoundedRect(rect, 4, 4)
        painter.save()
        painter.setClipPath(clip)
        left = rect.left()
        for share in self._shares:
            width = rect.width() * share.weight
            painter.fillRect(QRectF(left, rect.top(), width, rect.height()), QColor(share.colour))
            left += width
        painter.restore()
        painter.setPen(QPen(QColor(self._theme.border_strong), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(rect, 4, 4)
