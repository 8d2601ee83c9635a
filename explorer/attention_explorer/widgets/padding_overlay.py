"""What pales a part of a picture: the rows and columns of tokens that fill up a text, or figures of another run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, QLineF, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import Theme


def draw_hatching(painter: QPainter, theme: Theme, area: QRectF, step: float) -> None:
    """Lines that rise to the right, `step` pixels apart along the upper edge, clipped to `area`."""
    painter.save()
    painter.setClipRect(area)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.hatch), 1.0))
    height = area.height()
    for i in range(1, int((area.width() + height) / step) + 1):
        x = area.left() + i * step
        painter.drawLine(QLineF(x, area.top(), x - height, area.bottom()))
    painter.restore()


_VEIL = 0.62
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


def draw_padding_overlay(
    painter: QPainter, theme: Theme, picture: QRectF, rows: Sequence[Share], columns: Sequence[Share]
) -> None:
    """Lay the ground's colour over some rows and columns of a picture."""
    if not (rows or columns):
        return
    width, height = picture.width(), picture.height()
    across = (QRectF(picture.left(), picture.top() + a * height, width, (b - a) * height) for a, b in rows)
    down = (QRectF(picture.left() + a * width, picture.top(), (b - a) * width, height) for a, b in columns)
    fade_parts(painter, theme, picture, (*across, *down))


def fade_parts(
    painter: QPainter, theme: Theme, picture: QRectF, parts: Iterable[QRectF], ground: str = "surface"
) -> None:
    """Lay the ground's colour, by its role, over parts of a picture; where they overlap they are no paler."""
    covered = QPainterPath()
    covered.setFillRule(Qt.FillRule.WindingFill)
    for part in parts:
        covered.addRect(part)
    veil = QColor(getattr(theme, ground))
    veil.setAlphaF(_VEIL)
    painter.save()
    painter.setClipRect(picture)
    painter.fillPath(covered, veil)
    painter.restore()


class PaddingOverlay(QWidget):
    """Pales all of a widget and lets the pointer through to it. It lies there while shown.

    `ground` is the role of the colour that the widget lies on.
    """

    def __init__(self, over: QWidget, theme: Theme, ground: str = "surface") -> None:
        super().__init__(over)
        self._theme, self._ground = theme, ground
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        over.installEventFilter(self)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def lay(self, on: bool) -> None:
        """Show it over all of the widget, or take it away."""
        over = self.parentWidget()
        if on and over is not None:
            self.setGeometry(over.rect())
            self.raise_()
        self.setVisible(on)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QResizeEvent) and self.isVisible():
            self.lay(True)
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        area = QRectF(self.rect())
        fade_parts(QPainter(self), self._theme, area, (area,), self._ground)
