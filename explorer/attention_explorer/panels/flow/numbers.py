"""The numbers of one box as a table: what goes in, what comes out, and what is in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QLabel, QTableView, QToolButton, QVBoxLayout, QWidget

from attention_explorer.panels.flow.box_text import bracketed, is_off, neuron_name, norm_terms, title
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.flow import (
    STREAM,
    BlockView,
    Box,
    FeedForwardBox,
    FirstTerms,
    HeadsBox,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)

# The formula of a box, and the same with the numbers of one row of its table. Pure.


_LARGEST = 3  # weights of a row that are written out


def formula(box: Box) -> str:
    """In letters; "" for a module of which no more is known than what went in and what came out."""
    match box:
        case NormBox():
            return _of_norm(box)
        case ProjectionBox(makes=makes, bias=bias):
            name = makes if len(makes) == 1 else ", ".join(makes)
            return f"{name} = x W{'_' + makes.upper() if len(makes) == 1 else ''}{' + b' if bias else ''}"
        case HeadsBox():
            return "head = Σⱼ wⱼ vⱼ: its weights of the row, times the values"
        case OutputBox(bias=bias):
            return f"y = concat(heads) W_O{' + b' if bias else ''}"
        case FeedForwardBox():
            return _of_network(box)
        case SumBox(reads=reads):
            return "y = " + " + ".join(("x₁", "x₂", "x₃", "x₄")[: len(reads)])
    return ""


def worked(view: BlockView, number: int, row: int, keys: Sequence[str]) -> str:
    """One row of the table of box `number`, as it is computed; "" where there are no numbers to write."""
    box = view.boxes[number]
    if is_off(box) and not isinstance(box, NormBox):
        return "Switched off: nothing of it is added to the stream."
    match box:
        case HeadsBox():
            return _head(box, row, keys)
        case FeedForwardBox(neurons=neurons) if row < len(neurons):
            neuron = neurons[row]
            return (
                f"neuron {neuron_name(neuron)}: {value_text(neuron.activation)} × its row of W₂, "
                f"a vector of norm {value_text(neuron.write_norm)}"
            )
    if row >= len(box.after):
        return ""
    y = value_text(float(box.after[row]))
    match box:
        case NormBox(before=before) if before is not None:
            return f"dimension {row}: {norm_terms(box, row)} = {y}"
        case ProjectionBox(before=before, first=first) | OutputBox(before=before, first=first) if before is not None:
            if first is None:
                bias = f" + b[{row}]" if box.bias else ""
                return f"dimension {row}: Σᵢ xᵢ W[i, {row}]{bias} = {y}, over {len(before):,} dimensions of x"
            return f"dimension {row}: {' + '.join(_products(before, first, row))} = {y}"
        case SumBox():
            terms = _terms(view, box, row)
            return f"dimension {row}: {' + '.join(terms)} = {y}" if terms else ""
    return ""


def _of_norm(box: NormBox) -> str:
    inner = "x ÷ √(mean of x² + ε)" if box.rms else "(x − mean) ÷ √(variance + ε)"
    learned = "" if box.gain is None or box.off else " × gain"
    return f"y = {inner}{learned}{'' if box.bias is None or box.off else ' + bias'}"


def _of_network(box: FeedForwardBox) -> str:
    if box.experts or box.expert_count:
        return "y = Σ share × expert(x), over the experts that the router chose"
    width, function = len(box.after), box.activation or "f"
    if box.gated:
        return f"y = ({function}(x W_g) × x W₁) W₂"
    matrices = 2 * width * box.hidden
    first, last = (" + b₁", " + b₂") if box.parameters == matrices + width + box.hidden else ("", "")
    return f"y = {function}(x W₁{first}) W₂{last}"


def _head(box: HeadsBox, head: int, keys: Sequence[str]) -> str:
    if head in box.off:
        return f"head {head}: switched off, nothing of it is written"
    weights = box.weights[head]
    largest = np.argsort(-weights, kind="stable")[:_LARGEST]
    terms = [f"{value_text(float(weights[k]))} v(“{keys[k] if k < len(keys) else k}”)" for k in map(int, largest)]
    more = " + …" if len(weights) > len(terms) else ""
    return f"head {head}: {' + '.join(terms)}{more}, a vector of norm {value_text(float(box.norms[head]))}"


def _products(before: np.ndarray, first: FirstTerms, row: int) -> list[str]:
    """What is added up in one dimension of a matrix' output: the first products, how many more, the bias."""
    weights = first.weights[:, row]
    pairs = ((float(x), float(w)) for x, w in zip(before[: len(weights)], weights, strict=True))
    terms = [f"{value_text(x) if n == 0 else bracketed(x)} × {bracketed(w)}" for n, (x, w) in enumerate(pairs)]
    more = len(before) - len(weights)
    if more > 0:
        terms.append(f"… ({more:,} more)")
    if first.bias is not None:
        terms.append(bracketed(float(first.bias[row])))
    return terms


def _terms(view: BlockView, box: SumBox, dimension: int) -> list[str]:
    """What is added up in one dimension; nothing where an addend is no vector of this position."""
    factors = box.factors or (1.0,) * len(box.reads)
    terms: list[str] = []
    for read, factor in zip(box.reads, factors, strict=True):
        vector = view.before if read == STREAM else view.boxes[read].after
        if len(vector) != len(box.after):
            return []
        value = float(vector[dimension])
        times = "" if factor == 1 else f"{value_text(factor)} × "
        terms.append(times + (bracketed(value) if terms or times else value_text(value)))
    return terms


Index = QModelIndex | QPersistentModelIndex

_LINES = 7


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    heading: str
    values: Sequence[float | int | str | None] | np.ndarray


def columns_of(box: Box, keys: Sequence[str]) -> tuple[Column, ...]:
    """Columns of one length."""
    match box:
        case HeadsBox(weights=weights, norms=norms, heads=heads):
            best = weights.argmax(axis=1)
            names = [keys[int(k)] if int(k) < len(keys) else str(int(k)) for k in best]
            return (
                Column("head", [f"{head}, off" if head in box.off else head for head in range(heads)]),
                Column("attends most to", names),
                Column("weight", weights.max(axis=1)),
                Column("norm of its output", norms),
            )
        case FeedForwardBox(neurons=neurons) if neurons:
            return (
                Column("neuron", [neuron_name(n) if n.expert is not None else n.number for n in neurons]),
                Column("activation", [n.activation for n in neurons]),
                Column("norm written", [n.write_norm for n in neurons]),
                Column("to the logit", [n.effect for n in neurons]),
            )
    columns = [Column("dimension", range(len(box.after)))]
    if box.before is not None and len(box.before) == len(box.after):
        columns.append(Column("in", box.before))
    if isinstance(box, NormBox):
        columns += [Column(name, v) for name, v in (("gain", box.gain), ("bias", box.bias)) if v is not None]
    return (*columns, Column("out", box.after))


class _Numbers(QAbstractTableModel):
    def __init__(self) -> None:
        super().__init__()
        self._columns: tuple[Column, ...] = ()

    def show(self, columns: tuple[Column, ...]) -> None:
        self.beginResetModel()
        self._columns = columns
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self._columns[0].values) if self._columns and not parent.isValid() else 0

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        value = self._columns[index.column()].values[index.row()]
        if value is None or isinstance(value, str):
            return value or ""
        return f"{value:,}" if isinstance(value, int) else value_text(float(value))

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        across = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return self._columns[section].heading if across and section < len(self._columns) else None


class NumbersTable(QWidget):
    """Hidden until a box is shown in it; a button and Esc (of its panel) close it. While open it follows its box."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heading = QLabel()
        self.heading.setProperty("role", "title")
        self.heading.setTextFormat(Qt.TextFormat.PlainText)
        self.close_button = QToolButton()
        self.close_button.setText("Close")
        self.close_button.setToolTip("Close the numbers (Esc)")
        self.close_button.clicked.connect(self.hide)
        self._numbers = _Numbers()
        self._number = -1
        self._shown: tuple[BlockView, Mapping[str, Sequence[str]]] | None = None
        self.table = QTableView()
        self.table.setModel(self._numbers)
        self.table.setAccessibleName("Numbers of the box")
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.table.selectionModel().currentRowChanged.connect(lambda now, _before: self._work_out(max(0, now.row())))
        self.formula, self.worked = QLabel(), QLabel()
        for words in (self.formula, self.worked):
            words.setTextFormat(Qt.TextFormat.PlainText)
            words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            words.setWordWrap(True)
        self.worked.setToolTip("The formula with the numbers of one row: choose a row of the table")
        self.table.setShowGrid(False)
        line = QHBoxLayout()
        line.addWidget(self.heading, 1)
        line.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(line)
        column.addWidget(self.formula)
        column.addWidget(self.worked)
        column.addWidget(self.table)
        self.hide()

    def show_box(self, view: BlockView, number: int, keys: Mapping[str, Sequence[str]]) -> None:
        """Open with one box of a block. `keys` are called what heads attend to, by part."""
        same = self._shown is not None and number == self._number and not self.isHidden()
        self._number, self._shown = number, (view, keys)
        box = view.boxes[number]
        self.heading.setText(f"{title(box)}  {box.module}".rstrip())
        self.formula.setText(formula(box))
        self.formula.setVisible(bool(self.formula.text()))
        at = max(0, self.table.currentIndex().row())
        self._numbers.show(columns_of(box, keys.get(box.part, ())))
        at = at if same and at < self._numbers.rowCount() else 0
        self.table.setCurrentIndex(self._numbers.index(at, 0))
        self._work_out(at)
        row = self.fontMetrics().height() + 6
        self.table.verticalHeader().setDefaultSectionSize(row)
        self.table.setFixedHeight(min(_LINES, self._numbers.rowCount() + 1) * row + row)
        self.show()

    def _work_out(self, row: int) -> None:
        """The formula with the numbers of one row."""
        if self._shown is None:
            return
        view, keys = self._shown
        self.worked.setText(worked(view, self._number, row, keys.get(view.boxes[self._number].part, ())))
        self.worked.setVisible(bool(self.worked.text()))

    def follow(self, view: BlockView | None, keys: Mapping[str, Sequence[str]]) -> None:
        """Show the same box of another block, token, run or model; close where `view` has no such box."""
        if self.isHidden() or self._shown is None or self._shown == (view, keys):
            return
        wanted = _names(self._shown[0])[self._number]
        names = [] if view is None else _names(view)
        if view is not None and wanted in names:
            self.show_box(view, names.index(wanted), keys)
        else:
            self.hide()


def _names(view: BlockView) -> list[tuple[type[Box], str, str, int]]:
    """Of each box its kind, its part, and how many of both come before it: what is the same from block to block."""
    names: list[tuple[type[Box], str, str, int]] = []
    for box in view.boxes:
        kind = type(box), box.part, box.makes if isinstance(box, ProjectionBox) else ""
        names.append((*kind, sum(name[:3] == kind for name in names)))
    return names
