"""Where one is, as a line of steps from the whole to one number; each of them can be gone to."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import ItemsWidget

_GAP = 9.0  # between a step and the mark after it
_MARK = "›"
_CUT = "…"


class PathBar(ItemsWidget):
    """A click on a step goes there; Left and Right choose a step, Enter goes. What does not fit is cut."""

    axis = Qt.Orientation.Horizontal
    keys_choose = False

    chosen = Signal(int)  # by a person

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Where this is", parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._steps: tuple[tuple[str, str], ...] = ()
        self._here = -1
        self._rects: list[QRectF] | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """What the steps say."""
        return tuple(label for label, _ in self._steps)

    @property
    def here(self) -> int:
        """The step that one is at."""
        return self._here

    def set_steps(self, steps: Sequence[tuple[str, str]], here: int) -> None:
        """Steps with their tooltips; the one that one is `here` at is bold, those after it are ahead."""
        if (tuple(steps), here) == (self._steps, self._here):
            return
        self._steps, self._here = tuple(steps), here
        self._keep_items()
        self._rects = None
        self.setAccessibleDescription(" › ".join(self.steps))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, round(QFontMetricsF(self.font()).height()) + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.sizeHint().height())

    def item_count(self) -> int:
        return len(self._steps)

    def item_rect(self, item: int) -> QRectF:
        return self._placed()[item]

    def tooltip_of(self, item: int) -> str:
        return self._steps[item][1]

    def _choose(self, item: int) -> None:
        self.chosen.emit(item)

    def _placed(self) -> list[QRectF]:
        """Steps from the left; where they are too wide those about where one is, and empty rectangles for the rest."""
        if self._rects is None or (self._rects and self._rects[0].height() != self.height()):
            plain, bold = QFontMetricsF(self.font()), QFontMetricsF(self.bold_font())
            metrics = plain
            mark = metrics.horizontalAdvance(_MARK) + 2 * _GAP
            widths = [(bold if i == self._here else plain).horizontalAdvance(s) for i, s in enumerate(self.steps)]
            first, last = 0, len(widths)
            cut = metrics.horizontalAdvance(_CUT) + _GAP
            while last - first > 1:
                cuts = cut * ((first > 0) + (last < len(widths)))
                if self._reach(widths[first:last], mark) + cuts <= self.width():
                    break
                ahead = last - 1 - max(self._here, 0)
                first, last = (first, last - 1) if ahead > max(self._here, 0) - first else (first + 1, last)
            x, self._rects = (cut if first else 2.0), []
            for item, width in enumerate(widths):
                shown = first <= item < last
                self._rects.append(QRectF(x, 0, width, self.height()) if shown else QRectF(0, 0, 0, self.height()))
                x += width + mark if shown else 0.0
        return self._rects

    @staticmethod
    def _reach(widths: Sequence[float], mark: float) -> float:
        return sum(widths) + mark * (len(widths) - 1) + 2

    def _look_changed(self) -> None:
        self._rects = None
        super()._look_changed()

    def resizeEvent(self, event: object) -> None:
        self._rects = None
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self._theme
        rects = self._placed()
        if rects and rects[0].isEmpty():
            painter.setPen(QColor(theme.text_dim))
            painter.drawText(self.rect(), _FLAGS, _CUT)
        for item, (label, rect) in enumerate(zip(self.steps, rects, strict=True)):
            if rect.isEmpty():
                continue
            here = item == self._here
            painter.setFont(self.bold_font() if here else self.font())
            lit = here or item == self._hover
            painter.setPen(QColor(theme.text if lit else theme.text_dim))
            room = self.width() - rect.left()  # the last step that is left may be wider than all of it
            shown = QFontMetricsF(painter.font()).elidedText(label, Qt.TextElideMode.ElideRight, room)
            painter.drawText(rect, _FLAGS, shown)
            if item == self._hover and not here:
                metrics = QFontMetricsF(self.font())
                y = rect.center().y() + metrics.ascent() / 2 + 2
                painter.setPen(QPen(QColor(theme.text_dim), 1))
                painter.drawLine(QPointF(rect.left(), y), QPointF(rect.left() + metrics.horizontalAdvance(label), y))
            if item + 1 < len(rects):
                painter.setFont(self.font())
                painter.setPen(QColor(theme.text_dim))
                is_cut = rects[item + 1].isEmpty()
                width = 2 * _GAP if is_cut else rects[item + 1].left() - rect.right()
                mark = QRectF(rect.right(), 0, width, rect.height())
                painter.drawText(mark, Qt.AlignmentFlag.AlignCenter, _CUT if is_cut else _MARK)
        if self._shows_ring and self.hasFocus():
            chosen = rects[self._current] if 0 <= self._current < len(rects) else QRectF(self.rect())
            painter.setPen(QPen(QColor(theme.focus), 2))
            painter.drawRoundedRect(chosen.adjusted(-3, 1, 3, -1), 4, 4)


_FLAGS = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
