"""The page of the next batch: what it is to teach, what it costs, one gradient in numbers, and what would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QFrame, QHeaderView, QLabel, QScrollArea, QTableView, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.playground import batch_words as words
from attention_explorer.panels.playground.batch_words import BatchGrid
from attention_explorer.session.training import TrainingState
from attention_explorer.widgets.layouts import flowing
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.number_text import MINUS, percent_text, value_text
from attention_explorer.widgets.page import PageOrInvitation, page_of, wrapped
from attention_explorer.widgets.weight_table import WeightTable
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.gradient_breakdown import GradientBreakdown
from attention_models.protocol.training_messages import Dissect

# A table of numbers: as high as its rows, up to a bound.


Index = QModelIndex | QPersistentModelIndex

_MOST_LINES = 16
_GAP = 14  # pixels at the sides of a number
_ARROW = 16  # of the heading that is sorted by
_UNDER_ARROW = "\N{EM SPACE}"  # Qt paints the arrow over what is aligned to the right
_MEASURED = 4  # texts of a column, the longest: the widest is one of them, as digits are equally wide


@dataclass(frozen=True, slots=True)
class Entry:
    """What one cell says. A number is sorted by its `value`, not by how that is written."""

    text: str
    value: float | None = None
    tip: str = ""


class _Entries(QAbstractTableModel):
    def __init__(self, headings: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.headings = tuple(headings)
        self.rows: list[Sequence[Entry]] = []
        self._by: tuple[int, Qt.SortOrder] | None = None

    def show(self, rows: Sequence[Sequence[Entry]]) -> None:
        self.beginResetModel()
        self.rows = [*rows]
        self._put_in_order()
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.headings)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self.rows[index.row()][index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.text
            case Qt.ItemDataRole.ToolTipRole:
                return entry.tip or None
            case Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignLeft if entry.value is None else Qt.AlignmentFlag.AlignRight
                return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation == Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        is_sorted_by = self._by is not None and self._by[0] == section
        return self.headings[section] + (_UNDER_ARROW if is_sorted_by else "")

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._by = (column, order) if column >= 0 else None
        self.layoutAboutToBeChanged.emit()
        self._put_in_order()
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.headings) - 1)

    def _put_in_order(self) -> None:
        if self._by is None:
            return
        column, order = self._by
        self.rows.sort(
            key=lambda row: (0.0 if (value := row[column].value) is None else value, row[column].text),
            reverse=order == Qt.SortOrder.DescendingOrder,
        )


class NumbersTable(QTableView):
    """The first column holds names; it takes what room is left."""

    def __init__(
        self, name: str, headings: Sequence[str], parent: QWidget | None = None, *, sorts: bool = False
    ) -> None:
        super().__init__(parent)
        self._entries = _Entries(headings, self)
        self.setModel(self._entries)
        self.setAccessibleName(name)
        self.setSelectionMode(QTableView.SelectionMode.NoSelection)
        self.setShowGrid(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSortingEnabled(sorts)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setMinimumSectionSize(40)
        head.setVisible(any(headings))

    @property
    def texts(self) -> list[list[str]]:
        """What it says, in the order of its rows."""
        return [[entry.text for entry in row] for row in self._entries.rows]

    def show_rows(self, rows: Sequence[Sequence[Entry]]) -> None:
        """Show `rows`, in the order that a person chose by a click on a heading, else in theirs."""
        self._entries.show(rows)
        for column in range(1, self._entries.columnCount()):
            self.setColumnWidth(column, self._width_of(column))
        line = self.fontMetrics().height() + 8
        self.verticalHeader().setDefaultSectionSize(line)
        head = 0 if self.horizontalHeader().isHidden() else self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(head + min(_MOST_LINES, len(rows)) * line)

    def _width_of(self, column: int) -> int:
        metrics = self.fontMetrics()
        longest = sorted((row[column].text for row in self._entries.rows), key=len)[-_MEASURED:]
        width = max((metrics.horizontalAdvance(text) for text in longest), default=0)
        arrow = _ARROW if self.isSortingEnabled() else 0
        return _GAP + max(width, metrics.horizontalAdvance(self._entries.headings[column]) + arrow)


MOST_ROWS = 1024
_PAUSE = "Pause, and look at the next batch"
_LENGTHS = (
    "Gradient and move are lengths: the square root of the sum of squares. Share is the move in parts of the "
    "parameter's own length. A click on a heading sorts."
)
_UPDATE = 2  # the column of the moves


class OneBatchPage(PageOrInvitation):
    """Shows the dissection of a training's next step; `asked` is the wish to pause, `wanted` another weight."""

    wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        self.row = WholeBox()
        self.row.setRange(1, MOST_ROWS)
        self.row.setAccessibleName("Row of the batch")
        self.of_rows = QLabel()
        self.heading, self.mean = wrapped(role="title"), wrapped(role="dim")
        self.grid = BatchGrid()
        self.place, self.likeliest = wrapped(role="title"), WeightTable(("logit and probability",), "token")
        self.token, self.dimension = WholeListBox(), WholeBox()
        self.token.setAccessibleName("Token of the weight")
        self.token.setMinimumContentsLength(6)
        self.dimension.setAccessibleName("Dimension of the weight")
        self.rule, self.adam, self.deeper = wrapped(), wrapped(), wrapped()
        self.terms = NumbersTable("Terms of the gradient", ("Position", "p", "y", "h", f"(p {MINUS} y) · h / N"))
        self.sums = NumbersTable("Sum of the terms", ("", ""))
        headings = ("Parameter", "Gradient", "Moves by", "Share")
        self.moved = NumbersTable("What moves", headings, sorts=True)
        self.moved.sortByColumn(_UPDATE, Qt.SortOrder.DescendingOrder)
        super().__init__(self._page(), _PAUSE, parent)
        self._number = 0
        self._found: GradientBreakdown | None = None
        self._place = -1
        self._chosen: tuple[int, int] | None = None  # token and dimension, by a person
        self.row.valueChanged.connect(lambda _: self._show_row())
        self.grid.cell_selected.connect(lambda _, column: self._show_place(column))
        self.likeliest.row_selected.connect(self._choose_token)
        self.token.activated.connect(lambda _: self._choose())
        self.dimension.valueChanged.connect(lambda _: self._choose())

    def _page(self) -> QWidget:
        across = QScrollArea()
        across.setWidget(self.grid)
        across.setWidgetResizable(True)
        across.setFrameShape(QFrame.Shape.NoFrame)
        across.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        across.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._across = across
        of_weight = [_dim("Weight of"), self.token, _dim("dimension"), self.dimension]
        return page_of(
            self.heading,
            self.mean,
            flowing(_dim("Row"), self.row, self.of_rows),
            across,
            self.place,
            self.likeliest,
            _title("Gradient of one weight, by the chain rule"),
            flowing(*of_weight),
            self.rule,
            self.terms,
            self.sums,
            self.adam,
            self.deeper,
            _title("What this step moves, and how far"),
            wrapped(_LENGTHS, role="dim"),
            self.moved,
        )

    # what it lacks

    def lacks(self, training: TrainingState | None) -> Dissect | None:
        """What the process is to be told, for this page to show the training's next step; None where nothing is."""
        if training is None or training.phase not in ("paused", "ended") or training.undissected:
            return None
        if training.dissection is not None or training.is_dissecting:
            return None
        return self.asked_for(training.number)

    def asked_for(self, number: int) -> Dissect:
        """The weight that was chosen in this training, or the one that the process chooses."""
        return Dissect() if self._chosen is None or number != self._number else Dissect(*self._chosen)

    # what it shows

    def show_training(self, training: TrainingState | None) -> None:
        if training is None:
            self.invite("Press Train first: then its next batch can be looked at number by number.", can_open=False)
            return
        if training.number != self._number:
            self._number, self._chosen, self._found = training.number, None, None
        if training.dissection is not None:
            if training.dissection is not self._found:
                self._show(training.dissection)
            self.show_page()
        elif training.phase == "running":
            said = f"It is learning, and is at step {training.step:,}. To look at a batch, let it wait."
            self.invite(said)
        elif training.phase == "starting":
            self.invite("The training is starting …", can_open=False)
        elif training.phase == "failed":
            self.invite("The training has broken off. “Go on” takes it up.", can_open=False)
        elif training.undissected:
            self.invite(training.undissected, can_open=False)
        elif self._found is None or self.currentIndex() == 0:
            self.invite("The next batch is being worked out …", can_open=False)
        # else what was shown stays until the next answer comes

    def _show(self, found: GradientBreakdown) -> None:
        is_first = self._found is None
        self._found = found
        self.heading.setText(words.heading(found))
        self.mean.setText(words.mean(found))
        self.of_rows.setText(f"of {found.rows:,}")
        with QSignalBlocker(self.row), QSignalBlocker(self.dimension):
            self.row.setMaximum(found.rows)
            self.dimension.setRange(0, found.width - 1)
            self.dimension.setValue(found.output.dimension)
        labels = [words.word(found, id_) for id_ in range(len(found.words))]
        if is_first or labels != [self.token.itemText(i) for i in range(self.token.count())]:
            self.token.clear()
            self.token.addItems(labels)
        self.token.setCurrentIndex(found.output.token)
        self.rule.setText(words.rule(found))
        self.adam.setText(words.adam(found.adam, found.gradient_length, found.clip))
        self.deeper.setText(words.deeper(found.deeper))
        self._show_moved(found)
        self._show_row()

    def _show_row(self) -> None:
        found = self._found
        if found is None:
            return
        row = self.row.value() - 1
        tokens = words.of_row(found, row)
        self.grid.show_row(words.lines_of(found, row), {place: words.tip(found, t) for place, t in tokens.items()})
        bar = self._across.horizontalScrollBar().sizeHint().height()
        self._across.setFixedHeight(self.grid.sizeHint().height() + bar)
        self._show_terms(found, row)
        self._show_place(self._place if self._place in tokens else min(tokens, default=-1))

    def _show_place(self, place: int) -> None:
        found = self._found
        token = None if found is None else words.of_row(found, self.row.value() - 1).get(place)
        self.place.setVisible(token is not None)
        self.likeliest.setVisible(token is not None)
        if found is None or token is None:
            return
        self._place = place
        self.grid.set_selection(0, place)
        self.place.setText(f"At position {place} it is to say “{words.word(found, token.label)}”. It says:")
        self.likeliest.set_rows(words.likeliest(found, token))
        ids = words.ids_of(token)
        self.likeliest.set_row(ids.index(found.output.token) if found.output.token in ids else -1)

    def _show_terms(self, found: GradientBreakdown, row: int) -> None:
        rows = []
        for term in found.output.terms:
            if term.row == row:
                label = words.word(found, found.labels[row][term.place])
                numbers = [Entry(words.precise(v), v) for v in (term.p, term.y, term.h, term.term)]
                rows.append([Entry(f"{term.place}  “{label}”"), *numbers])
        self.terms.show_rows(rows)
        added = words.sums(found, row)
        self.sums.show_rows([(Entry(name), Entry(words.precise(value), value)) for name, value in added])

    def _show_moved(self, found: GradientBreakdown) -> None:
        self.moved.show_rows(
            [
                (
                    Entry(words.short(one.name), tip=f"{one.name}: {one.numbers:,} numbers, of the {one.part}"),
                    Entry(value_text(one.gradient), one.gradient),
                    Entry(value_text(one.update), one.update),
                    Entry(*_share(one.update, one.weights)),
                )
                for one in found.moved
            ]
        )

    def about(self) -> About:
        """What the (i) says while this page is in front."""
        is_shown = self.currentIndex() == 1
        return words.about(self._found if is_shown else None, self.row.value() - 1)

    # another weight

    def _choose_token(self, number: int) -> None:
        found = self._found
        if found is not None:
            token = words.of_row(found, self.row.value() - 1)[self._place]
            self.token.setCurrentIndex(words.ids_of(token)[number])
            self._choose()

    def _choose(self) -> None:
        if self._found is not None:
            self._chosen = self.token.currentIndex(), self.dimension.value()
            self.wanted.emit()


def _share(update: float, weights: float) -> tuple[str, float]:
    return (percent_text(update / weights), update / weights) if weights else ("from 0", float("inf"))


def _dim(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "dim")
    return label


def _title(text: str) -> QLabel:
    return wrapped(text, role="title")
