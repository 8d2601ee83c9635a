"""How the open model tells positions apart: its own table, rotations or biases, in words and pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.panels.positions.sections import Page, Section, SideBySide, heading, sentence
from attention_explorer.panels.positions.table_image import TableImage
from attention_explorer.panels.positions.waveforms import ClockHands, Clocks
from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.plot.figure import Axis, Figure, Note, Series
from attention_explorer.widgets.plot.plot import Plot
from attention_models.protocol.positions import PositionScheme, PositionsView, RotationView

# Two vectors and their sum as three rows of bars, one bar a dimension, on one scale.


_PAD = 8.0
_LEFT, _MIDDLE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, eq=False)
class Addend:
    """A vector (width,), its name, and the theme role of its colour."""

    name: str
    values: NDArray[np.floating]
    role: str


class SumBars(ItemsWidget):
    """Three aligned rows, the third the sum of the others. The pointer and the arrow keys read out one dimension."""

    axis = Qt.Orientation.Horizontal

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Token embedding, position and their sum", parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[Addend, ...] = ()
        self._lengths: tuple[float, ...] = ()
        self._largest = 1.0

    def set_rows(self, rows: tuple[Addend, Addend, Addend] | tuple[()]) -> None:
        """Show two vectors and their sum; () shows the empty text."""
        self._rows = rows
        self._lengths = tuple(float(np.linalg.norm(row.values.astype(np.float64))) for row in rows)
        self._largest = max((float(np.abs(row.values).max()) for row in rows), default=1.0) or 1.0
        self._keep_items()
        said = (f"{row.name} length {value_text(n)}" for row, n in zip(rows, self._lengths, strict=True))
        self.setAccessibleDescription(", ".join(said))
        self.updateGeometry()
        self.update()

    @property
    def lengths(self) -> tuple[float, ...]:
        """The Euclidean length of each row, as written beside it."""
        return self._lengths

    def readout(self) -> str:
        read = self._read()
        if read < 0:
            return f"{self._width()} dimensions: point at one" if self._rows else ""
        first, second, total = (value_text(float(row.values[read])) for row in self._rows)
        return f"dimension {read}:  {first} + {second} = {total}"

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(380, round(self._line() * 1.3 + 3 * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _row_height(self) -> float:
        return 2 * self._line() + 12

    def _width(self) -> int:
        return len(self._rows[0].values) if self._rows else 0

    def _room(self) -> QRectF:
        metrics = QFontMetricsF(self.bold_font())
        names = [*(row.name for row in self._rows), "length 00.00"]
        left = max(metrics.horizontalAdvance(name) for name in names) + _PAD
        return QRectF(left, self._line() * 1.3, max(20.0, self.width() - left - 2), 3 * self._row_height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._rows:
            self._draw_empty_text(painter)
            return
        room, line = self._room(), self._line()
        painter.setPen(QColor(self._theme.text))
        painter.drawText(QRectF(0, 0, self.width(), line), _LEFT | _MIDDLE, self.readout())
        for index, row in enumerate(self._rows):
            middle = room.top() + (index + 0.5) * self._row_height()
            name = QRectF(0, middle - line, room.left(), line)
            painter.setFont(self.bold_font())
            painter.setPen(QColor(getattr(self._theme, row.role)))
            painter.drawText(name, _LEFT | _MIDDLE, row.name)
            painter.setFont(self.font())
            painter.setPen(QColor(self._theme.text_dim))
            painter.drawText(name.translated(0, line), _LEFT | _MIDDLE, f"length {value_text(self._lengths[index])}")
            self._draw_bars(painter, row, room, middle)
        read = self._read()
        if read >= 0:
            x = self.item_rect(read).center().x()
            painter.setPen(QPen(QColor(self._theme.text), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
        self._draw_focus_ring(painter)

    def _draw_bars(self, painter: QPainter, row: Addend, room: QRectF, middle: float) -> None:
        painter.setPen(QPen(QColor(self._theme.border), 1))
        painter.drawLine(QPointF(room.left(), round(middle) + 0.5), QPointF(room.right(), round(middle) + 0.5))
        half = self._row_height() / 2 - 3
        columns = min(self._width(), round(room.width()))  # where dimensions are narrower than a pixel: the extremes
        starts = np.arange(columns) * self._width() // columns
        highs = np.maximum(np.maximum.reduceat(row.values, starts), 0) / self._largest * half
        lows = np.minimum(np.minimum.reduceat(row.values, starts), 0) / self._largest * half
        size = room.width() / columns
        gap = 0.25 * size if size > 3 else 0.0
        colour = QColor(getattr(self._theme, row.role))
        for column, (high, low) in enumerate(zip(highs.tolist(), lows.tolist(), strict=True)):
            bar = QRectF(room.left() + column * size + gap / 2, middle - high, size - gap, high - low)
            painter.fillRect(bar, colour)

    # pointer and keyboard

    def _read(self) -> int:
        """The dimension under the pointer, else the chosen one."""
        return self._hover if self._hover >= 0 else self._current

    def item_count(self) -> int:
        return self._width()

    def item_rect(self, item: int) -> QRectF:
        room = self._room()
        width = room.width() / max(1, self._width())
        return QRectF(room.left() + item * width, room.top(), width, room.height())

    def _item_at(self, position: QPointF) -> int:
        room, count = self._room(), self._width()
        inside = self._rows and room.contains(position)
        return min(int((position.x() - room.left()) / room.width() * count), count - 1) if inside else -1

    def _choose(self, item: int) -> None:
        self._hover = -1
        self._move(item)


_EMPTY = "The model's own positions appear here when it has run."
_COMPONENTS = ("bar", "ok", "warning")


class SchemeView(Page):
    """Shows a `PositionsView`: of its sections those that the scheme has something for."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("This model's positions", parent)
        self._step = 1
        self.title = heading(_EMPTY)
        self.words = sentence()
        self.add(self.title, self.words)
        self.sum_title, self.bars, self.sum_note = heading(), SumBars(), sentence()
        self._sum = self._section(self.sum_title, self.bars, self.sum_note)
        self.hands_title, self.hands, self.hands_note = heading(), ClockHands(), sentence()
        self.product = Plot("q·k by distance")
        self.product_title = heading()
        self._rotation = self._section(self.hands_title, self.hands_note, self.hands, self.product_title, self.product)
        self.bias_title, self.bias = heading(), Plot("Bias by distance", 260)
        self._bias = self._section(self.bias_title, self.bias)
        self.table = TableImage("The table of positions")
        self.table.set_titles("position", "dimension")
        self.alike = TableImage("Cosine between every two positions", square=True)
        self.alike.set_titles("position", "position")
        self.components = Plot("Principal components of the table", 230)
        self.components_note = sentence()
        self._table = self._section(
            heading("How alike are two positions? Cosine, and principal components"),
            SideBySide(self.alike, self.components),
            self.components_note,
            heading("The whole table: one row a position"),
            self.table,
        )
        self.table.chosen.connect(lambda row, _: self._at(row))
        self.alike.chosen.connect(lambda row, _: self._at(row * self._step))
        self.components.cursor_moved.connect(lambda position: self._at(round(position)))
        self.end()
        self._shown_table: np.ndarray | None = None
        for section in (self._sum, self._rotation, self._bias, self._table):
            section.hide()

    def show_view(self, view: PositionsView | None) -> None:
        """Show another cell or model; None before anything has run."""
        scheme = None if view is None else view.scheme
        self.title.setText(_EMPTY if scheme is None else scheme.title)
        self.words.setText("" if scheme is None else scheme.words)
        self._sum.setVisible(view is not None and view.total is not None)
        self._rotation.setVisible(scheme is not None and scheme.frequencies is not None)
        self._bias.setVisible(scheme is not None and scheme.bias is not None)
        self._table.setVisible(scheme is not None and scheme.table is not None)
        if view is None or scheme is None:
            return
        self._show_sum(view)
        if scheme.frequencies is not None:
            self._show_rotation(view, view.rotation)
        if scheme.bias is not None:
            self._show_bias(view)
        if scheme.table is not None:
            self._show_table(scheme, view.request.query)

    def _section(self, *widgets: QWidget) -> QWidget:
        section = Section(*widgets)
        self.add(section)
        return section

    def _show_sum(self, view: PositionsView) -> None:
        if view.embedding is None or view.position is None or view.total is None:
            self.bars.set_rows(())
            return
        self.sum_title.setText(f"What goes in for “{view.query_word}” at position {view.request.query}")
        self.bars.set_rows(
            (
                Addend("embedding", view.embedding, "bar"),
                Addend("+ position", view.position, "ok"),
                Addend("= sum", view.total, "text"),
            )
        )
        self.sum_note.setText(view.sum_note)
        self.sum_note.setVisible(bool(view.sum_note))

    def _show_rotation(self, view: PositionsView, rotation: RotationView | None) -> None:
        drawn = rotation is not None
        for widget in (self.hands, self.product_title, self.product):
            widget.setVisible(drawn)
        self.hands_title.setText(f"Query “{view.query_word}” and key “{view.key_word}”, pair by pair")
        if rotation is None or view.scheme.frequencies is None:
            self.hands_note.setText(view.rotation_note)
            return
        self.hands_note.setText(
            "Each clock is a pair of dimensions: the query's hand and the key's as they meet, dotted before they were "
            "turned. Below it, what the pair adds to q·k."
        )
        self.hands.set_clocks(
            Clocks(
                rotation.query_hands,
                rotation.key_hands,
                rotation.query_angles,
                rotation.key_angles,
                view.scheme.frequencies,
                rotation.parts,
                view.query_word,
                view.key_word,
            )
        )
        self.product_title.setText("q·k of these two vectors, were they further apart or nearer")
        notes: tuple[Note, ...] = ()
        if rotation.distance in rotation.distances:
            here = float(rotation.products[np.searchsorted(rotation.distances, rotation.distance)])
            said = f"as they stand: {value_text(rotation.product)}"
            notes = (Note(rotation.distance, here, said),)
        self.product.set_figure(
            Figure(
                Axis("tokens from key to query", whole=True),
                Axis("product before scaling"),
                (Series("q·k", rotation.distances, rotation.products),),
                notes=notes,
            )
        )

    def _show_bias(self, view: PositionsView) -> None:
        scheme = view.scheme
        if scheme.bias is None or scheme.distances is None:
            return
        request, own = view.request, min(view.request.head, len(scheme.bias) - 1)
        series = [
            Series(f"head {head}", scheme.distances, bias, "border_strong", width=1.2, context=True)
            for head, bias in enumerate(scheme.bias)
            if head != own
        ]
        series.append(Series(f"head {own}", scheme.distances, scheme.bias[own], width=2.5))
        among = f"head {request.head} among {len(scheme.bias)} heads"
        self.bias_title.setText(f"What is added to the scores, by distance: {among}")
        x = Axis("key's place less query's place", whole=True)
        self.bias.set_figure(Figure(x, Axis("bias"), tuple(series)))
        self.bias.set_cursor(request.key - request.query)

    def _show_table(self, scheme: PositionScheme, position: int) -> None:
        if scheme.table is None or scheme.alike is None or scheme.components is None or scheme.shares is None:
            return
        if scheme.table is not self._shown_table:
            self._shown_table, self._step = scheme.table, scheme.step
            reach = float(np.percentile(np.abs(scheme.table), 99)) or 1.0
            self.table.set_values(scheme.table, -reach, reach)
            self.table.set_sentence(lambda row, column, value: f"position {row}, dimension {column}: {value}")
            self.alike.set_values(scheme.alike, min(-1.0, float(scheme.alike.min())), 1.0, step=scheme.step)
            self.alike.set_sentence(lambda row, column, value: f"positions {row} and {column}: cosine {value}")
            positions, named = np.arange(len(scheme.table)), zip(scheme.components, _COMPONENTS, strict=True)
            series = [Series(f"PC{i + 1}", positions, values, role) for i, (values, role) in enumerate(named)]
            x = Axis("position", whole=True)
            self.components.set_figure(Figure(x, Axis("coordinate"), tuple(series)))
            shares = ", ".join(f"{100 * share:.0f} %" for share in scheme.shares)
            every = f" Every {scheme.step} positions." if scheme.step > 1 else ""
            self.components_note.setText(
                f"The principal components PC1, PC2 and PC3 hold {shares} of what tells positions apart.{every} "
                "Colours of the table reach to the 99th percentile."
            )
        self._at(position)

    def _at(self, position: int) -> None:
        """Let every picture of the table point at one position."""
        if self._shown_table is None or not 0 <= position < len(self._shown_table):
            return
        self.table.set_cross(position, -1)
        self.alike.set_cross(position // self._step, position // self._step)
        self.components.set_cursor(position)
