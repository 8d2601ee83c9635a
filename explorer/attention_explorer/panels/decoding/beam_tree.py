"""A beam search as a tree that grows downwards: a line of boxes a step, joined to what they go on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import smaller, wide
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.themed import ThemedWidget

_GAP = 8.0
_LINK = 18.0  # height between two steps
_NARROWEST = 8.0  # letters in a box
_MARGIN = 26.0  # for the number of the step


@dataclass(frozen=True)
class BeamNode:
    """`log_probability` is of all that was written up to here."""

    id: int
    parent: int  # id; -1 for the prompt
    label: str
    log_probability: float
    fate: Literal["kept", "finished", "pruned"]
    best: bool = False  # on the way to what the search now holds for the best
    tooltip: str = ""


class BeamTree(ThemedWidget):
    """Boxes of kept beams are solid, finished ones have a double frame, pruned ones are grey and dashed.

    A step shows as many boxes as fit, the kept and finished ones first; how many are left out stands at its end.
    A click selects a box. Left and Right go on in its line, Up to what it goes on from, Down to what goes on from it.
    """

    node_selected = Signal(int)  # an id

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Beam search", parent)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._steps: tuple[tuple[BeamNode, ...], ...] = ()
        self._rects: dict[int, QRectF] = {}
        self._left_out: list[int] = []
        self._selected = -1
        self._way: frozenset[int] = frozenset()  # to the selected one

    def set_steps(self, steps: Sequence[Sequence[BeamNode]], selected: int = -1) -> None:
        """One sequence of nodes a step, the best first; `selected` is the id of one of them, or -1."""
        self._steps = tuple(tuple(step) for step in steps)
        self.setToolTip("")  # of a box that was there
        self._selected = selected
        self._way = frozenset(node.id for node in self._way_to(selected))
        best = [node.label for step in self._steps for node in step if node.best]
        chosen = "".join(node.label for node in self._way_to(selected))
        said = f" Selected: {chosen}." if chosen else ""
        self.setAccessibleDescription(f"{len(self._steps)} steps. Best: {''.join(best)}.{said}")
        self._look_changed()

    def node_rect(self, id_: int) -> QRectF:
        """Where a node's box lies; empty for one that is left out."""
        return self._rects.get(id_, QRectF())

    def _way_to(self, id_: int) -> list[BeamNode]:
        """The nodes from the first step to this one."""
        nodes = {node.id: node for step in self._steps for node in step}
        way: list[BeamNode] = []
        while id_ in nodes:
            way.insert(0, nodes[id_])
            id_ = nodes[id_].parent
        return way

    # geometry

    def _box_height(self) -> float:
        line = QFontMetricsF(self.font()).height()
        return max(1.9 * line, line + QFontMetricsF(self._small()).height()) + 6

    def _link(self) -> float:
        """The height between two steps, where a small line may stand."""
        return max(_LINK, QFontMetricsF(self._small()).height())

    def _margin(self) -> float:
        """The width at the left, where the number of a step stands."""
        return max(_MARGIN, QFontMetricsF(self.font()).horizontalAdvance("00") + 8)

    def sizeHint(self) -> QSize:
        count = max(1, len(self._steps))
        return QSize(400, round(count * (self._box_height() + self._link()) + 4))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _place(self) -> None:
        self._rects, self._left_out = {}, []
        narrowest = _NARROWEST * QFontMetricsF(self.font()).averageCharWidth() + _GAP
        room = max(narrowest, self.width() - self._margin())
        columns = max(1, int(room / narrowest))
        width = min(room / max(1, min(columns, max((len(step) for step in self._steps), default=1))), 3 * narrowest)
        for index, step in enumerate(self._steps):
            alive = [node for node in step if node.fate != "pruned"]
            shown = (alive + [node for node in step if node.fate == "pruned"])[:columns]
            self._left_out.append(len(step) - len(shown))
            shown.sort(key=lambda node: self._rects[node.parent].left() if node.parent in self._rects else 0.0)
            top = self._link() + index * (self._box_height() + self._link())
            for place, node in enumerate(shown):
                self._rects[node.id] = QRectF(self._margin() + place * width, top, width - _GAP, self._box_height())

    def _look_changed(self) -> None:
        self._place()
        super()._look_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._steps:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        nodes = [node for step in self._steps for node in step if node.id in self._rects]
        # the best way, and that to the selected one, are drawn over the others
        for node in sorted(nodes, key=lambda node: (node.id in self._way, node.best)):
            self._draw_link(painter, node)
        for node in nodes:
            self._draw_box(painter, node)
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        for index, left_out in enumerate(self._left_out):
            top = self._link() + index * (self._box_height() + self._link())
            margin = QRectF(0, top, self._margin() - 6, self._box_height())
            painter.drawText(margin, Qt.AlignmentFlag.AlignCenter, str(index + 1))
            if left_out:
                note = QRectF(0, top - self._link(), self.width() - 4, self._link())
                painter.setFont(self._small())
                painter.drawText(note, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"+{left_out}")
                painter.setFont(self.font())
        self._draw_focus_ring(painter)

    def _draw_link(self, painter: QPainter, node: BeamNode) -> None:
        theme, rect, parent = self._theme, self._rects[node.id], self._rects.get(node.parent)
        if parent is None:
            return
        start, end = QPointF(parent.center().x(), parent.bottom()), QPointF(rect.center().x(), rect.top())
        path = QPainterPath(start)
        middle = (start.y() + end.y()) / 2
        path.cubicTo(QPointF(start.x(), middle), QPointF(end.x(), middle), end)
        colour = theme.query if node.best else theme.border if node.fate == "pruned" else theme.border_strong
        selected = node.id in self._way
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(
            QPen(QColor(theme.key if selected else colour), wide(2.5 if selected else 2 if node.best else 1.2))
        )
        painter.drawPath(path)

    def _draw_box(self, painter: QPainter, node: BeamNode) -> None:
        theme, rect, pruned = self._theme, self._rects[node.id], node.fate == "pruned"
        pen = QPen(QColor(theme.query if node.best else theme.border_strong), wide(2 if node.best else 1))
        if pruned:
            pen = QPen(QColor(theme.border_strong), wide(1), Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(QColor(theme.surface if pruned else theme.surface_alt))
        if node.id == self._selected:
            painter.setBrush(QColor(theme.surface_hover))
            painter.setPen(QPen(QColor(theme.key), wide(2.5)))
        painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 5, 5)
        if node.fate == "finished":
            painter.setPen(QPen(QColor(theme.ok), wide(1.5)))
            painter.drawRoundedRect(rect.adjusted(4, 4, -4, -4), 3, 3)
        painter.setFont(self.bold_font() if node.best else self.font())
        painter.setPen(QColor(theme.text_dim if pruned else theme.text))
        inner = rect.adjusted(5, 2, -5, -3)
        label = QFontMetricsF(painter.font()).elidedText(node.label, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, label)
        painter.setFont(self._small())
        painter.setPen(QColor(theme.text_dim))
        number = f"{node.log_probability:.2f}".replace("-", MINUS)
        painter.drawText(inner, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, number)

    def _small(self) -> QFont:
        return smaller(self.font(), 0.85)

    # pointer and keyboard

    def _at(self, position: QPointF) -> int:
        return next((id_ for id_, rect in self._rects.items() if rect.contains(position)), -1)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        tips = {node.id: node.tooltip for step in self._steps for node in step}
        self.setToolTip(tips.get(self._at(event.position()), ""))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position())
        if at < 0 or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self.node_selected.emit(at)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        target = self._target(Qt.Key(event.key()))
        if target is None:
            event.ignore()
        elif target >= 0:
            self._keep_visible(self._rects[target])
            self.node_selected.emit(target)

    def _target(self, key: Qt.Key) -> int | None:
        """Where a key goes from the selected node: -1 where there is nothing, None for a key that goes nowhere."""
        if key not in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down):
            return None
        shown = [[node for node in step if node.id in self._rects] for step in self._steps]
        line = next((i for i, step in enumerate(shown) if any(node.id == self._selected for node in step)), None)
        if line is None:
            return shown[-1][0].id if shown and shown[-1] else -1
        if key == Qt.Key.Key_Up:
            return next((node.parent for node in shown[line] if node.id == self._selected and line > 0), -1)
        if key == Qt.Key.Key_Down:
            after = [node for node in shown[line + 1] if node.parent == self._selected] if line + 1 < len(shown) else []
            return min(after, key=lambda node: node.fate == "pruned").id if after else -1
        row = sorted((node.id for node in shown[line]), key=lambda id_: self._rects[id_].left())
        place = row.index(self._selected) + (1 if key == Qt.Key.Key_Right else -1)
        return row[place] if 0 <= place < len(row) else -1
