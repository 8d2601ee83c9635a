"""What the interventions did: numbers of the selected row, the text's loss, the next token and the map of changes."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from attention_explorer.look.colour_maps import ColourTable, diverging, sequential
from attention_explorer.panels.masks.part_chooser import heading, plain
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.number_text import entropy_text, percent_text, value_text
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.paired_bars import PairedBars, PairedRow
from attention_explorer.widgets.segments import Segments
from attention_models.protocol.comparison import CompareView, TokenChange
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.running import Ran
from attention_models.protocol.values import ClassHead, Tile, top_level

# What is said of the effect: of the loss, of rows that may attend to nothing, of the next token. Pure.


_LOSS_STEP = 5e-4  # what the three decimals on screen can tell apart


def loss_sentence(view: CompareView, unit: Unit) -> str:
    """What the change of the loss, told in `unit`, means, said honestly; nothing for a model without one."""
    if view.loss_before is None or view.loss_after is None or view.done < 1:
        return ""
    change = from_nats(view.loss_after - view.loss_before, unit)
    if abs(change) < _LOSS_STEP:
        return "The loss is as it was: on this text the change makes no difference to it."
    if view.peeks and change < 0:
        return "The loss falls while tokens may peek at the very words that they are asked to guess: a leak, not skill."
    if view.peeks:
        return "The future is open, and still the loss rises: layers never learned to read what lies ahead of a token."
    if change < 0:
        return "The loss falls on this text, without a look ahead; on other texts it may not."
    return "The loss rises: the model was not trained to work like this."


def dead_sentence(view: CompareView, queries: list[str]) -> str:
    """Which rows may attend to nothing, and what the model then computes."""
    dead = view.dead_rows
    if not dead:
        return ""
    named = ", ".join(f"“{queries[row]}”" for row in dead[:4]) + (f" and {len(dead) - 4} more" if len(dead) > 4 else "")
    if len(dead) == 1:
        return f"Row {named} may look at nothing: its weights are all 0, and this head writes nothing there."
    return f"Rows {named} may look at nothing: their weights are all 0, and this head writes nothing there."


_OF_CLASSES = {
    "text": "What it says of the text",
    "span": "Where the answer starts and ends",
    "choice": "Which text it chooses",
}


def prediction_title(ran: Ran, position: int, head: ClassHead | None = None, fills_in: bool = False) -> str:
    """What a prediction at `position` is of: a vision model's is of the whole picture, a classifier's of its head.

    A model that `fills_in` masks says what stands there, not what comes next.
    """
    if head is not None:
        return _OF_CLASSES.get(head.of) or f"Label of “{ran.tokens[position].word}”"
    if ran.seen is not None:
        return "What it sees in the picture"
    where = "Token at" if fills_in else "Next token after"
    return f"{where} “{ran.tokens[position].word}”"


def loss_text(nats: float, unit: Unit) -> str:
    """ "3.021 nats", "4.358 bits"."""
    return f"{from_nats(nats, unit):.3f} {unit}"


CHANGE, BEFORE, AFTER = range(3)

_HEIGHT = 320
_CHOICES = (
    ("Change", "What was added to each weight, or taken from it"),
    ("Before", "The weights of the model as it is"),
    ("After", "The weights with the interventions that are on"),
)
_SQUARE = {CHANGE: "the largest change", BEFORE: "the largest", AFTER: "the largest"}


class ChangeMap(QWidget):
    """Three maps in one place, of which a person chooses. That of a long text is a picture of squares of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.choice = Segments(_CHOICES, "What the map shows", wraps=True)
        self.choice.chosen.connect(lambda _: self._show())
        self.map = HeatMap()
        self.map.setAccessibleName("Map of changes")
        self.map.wheel_zooms = False
        self.map.is_brief = True  # the note says it
        self.map.setMinimumWidth(160)  # a panel beside large text is narrow, and never scrolls sideways
        self.bar = ColourBar("change")
        self.map.map_span_changed.connect(self.bar.set_span)
        self.note = plain()
        self.map_row = QWidget()
        self.map_row.setFixedHeight(_HEIGHT)
        row = QHBoxLayout(self.map_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.map, 1)
        row.addWidget(self.bar)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for part in (self.choice, self.map_row, self.note):
            column.addWidget(part)
        self._view: CompareView | None = None
        self._words: tuple[list[str], list[str]] = ([], [])
        self._weights = sequential()  # how weights are coloured elsewhere

    def show_view(self, view: CompareView, words: tuple[list[str], list[str]], weights: ColourTable) -> None:
        """Show a comparison. `words` name its queries and keys, `weights` is the colour map of weights."""
        if view is self._view and weights is self._weights:
            return
        self._view, self._words, self._weights = view, words, weights
        self._show()

    def show_hover(self, query: int, key: int) -> None:
        self.map.set_hover(query, key)
        self.bar.set_marker(self._value_at(query, key))

    def _show(self) -> None:
        view, which = self._view, self.choice.current
        if view is None:
            return
        values, masked = self._picture(view, which)
        table = diverging() if which == CHANGE else self._weights
        # the two maps of weights are coloured alike, so that they may be compared
        shown = (view.difference,) if which == CHANGE else (view.before, view.after)
        high = max(float(np.nanmax(np.abs(part), initial=0.0)) for part in shown) or 1.0
        low = -high if which == CHANGE else 0.0
        self.map.value_name = "changed by" if which == CHANGE else ""
        self.map.set_colour_map(table)
        if view.cell == 1:
            self.map.set_values(values, masked, *self._words, low, high)
        else:
            self._show_squares(view, values if masked is None else np.where(masked, np.float32(np.nan), values), high)
        self.bar.set_label("change" if which == CHANGE else "weight")
        self.bar.set_colour_map(table)
        self.bar.set_range(low, high)
        coming = f" {view.done:.0%} of it is computed." if np.isnan(values).any() else ""
        self.note.setText(f"A square is {_SQUARE[which]} of {view.cell} × {view.cell} weights.{coming}")
        self.note.setVisible(view.cell > 1)

    def _show_squares(self, view: CompareView, picture: np.ndarray, high: float) -> None:
        """A long text's map, which is one tile."""
        name = (view.request.run, view.request.site, view.request.head, self.choice.current)
        queries, keys = (len(words) for words in self._words)
        self.map.cache.keep_only(lambda kept: kept == name)  # whatever is shown is here whole
        self.map.set_map(name, *self._words, signed=self.choice.current == CHANGE, high=high)
        self.map.add_tile(name, Tile(top_level(queries, keys), 0, 0), picture)

    def _picture(self, view: CompareView, which: int) -> tuple[np.ndarray, np.ndarray | None]:
        if which == CHANGE:
            return view.difference, view.masked_throughout
        return (view.before, view.masked_before) if which == BEFORE else (view.after, view.masked_after)

    def _value_at(self, query: int, key: int) -> float | None:
        """What the map shows of a cell; None where it shows nothing."""
        view = self._view
        if view is None:
            return None
        values, masked = self._picture(view, self.choice.current)
        row, column = query // view.cell, key // view.cell
        if not (0 <= query < len(self._words[0]) and 0 <= key < len(self._words[1])):
            return None
        value = float(values[row, column])
        return None if np.isnan(value) or (masked is not None and masked[row, column]) else value


class NumberTable(QWidget):
    """Lines of a name, a value before and a value after; the column before goes where nothing was changed."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(0, 1)
        self._headings = [plain("dim", wraps=False) for _ in range(2)]
        for column, text in enumerate(("before", "after")):
            self._headings[column].setText(text)
            self._grid.addWidget(self._headings[column], 0, column + 1, Qt.AlignmentFlag.AlignRight)
        self.rows: list[tuple[QLabel, QLabel, QLabel]] = []
        for line in range(3):
            name, before, after = plain(""), plain("dim", wraps=False), plain("title", wraps=False)
            for column, label in enumerate((name, before, after)):
                side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag(0)
                self._grid.addWidget(label, line + 1, column, side | Qt.AlignmentFlag.AlignVCenter if column else side)
            self.rows.append((name, before, after))
        self._compares = True

    def set_compares(self, compares: bool) -> None:
        self._compares = compares
        for label in (*self._headings, *(before for _, before, _ in self.rows)):
            label.setVisible(compares)

    def set_row(self, index: int, name: str, before: str, after: str) -> None:
        for label, text in zip(self.rows[index], (name, before, after), strict=True):
            label.setText(text)
        for label in self.rows[index]:
            label.setVisible(self._compares or label is not self.rows[index][1])

    def hide_row(self, index: int) -> None:
        for label in self.rows[index]:
            label.hide()


Words = tuple[list[str], list[str]]
"""What the queries and the keys of a site are called."""

_COMING = "…"
_WORDLESS = "This model gives vectors: there is no word or class to compare."


class EffectView(QWidget):
    """Before and after, for the selected head and token. Unchanged runs show one value each, and no map."""

    def __init__(self) -> None:
        super().__init__()
        self.title = heading("Effect")
        self.numbers = NumberTable()
        self.sentence = plain()
        self.dead = plain("mark")
        self.next_title = heading("")
        self.bars = PairedBars("Next token before and after")
        self.wordless = wrapped(role="dim")
        self.wordless.setText(_WORDLESS)
        self.map_title = heading("Weights of the head")
        self.change = ChangeMap()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        parts = (self.title, self.numbers, self.sentence, self.dead)
        for part in (*parts, self.next_title, self.bars, self.wordless, self.map_title, self.change):
            column.addWidget(part)
        self._view: CompareView | None = None
        self._unit: Unit = "bits"

    def clear(self) -> None:
        """There is no comparison."""
        self._view = None
        self.hide()

    def show_comparison(
        self,
        view: CompareView,
        words: Words,
        query: int,
        key: int,
        colour_map: str,
        next_title: str,
        unit: Unit,
        edited: bool,
    ) -> None:
        """Show what interventions changed, or where nothing is `edited` the model's own numbers.

        `words` are those of the head's site, `query` and `key` the selected cell, `next_title` says of what the
        prediction is, weights are drawn in `colour_map`, and entropies and losses told in `unit`.
        """
        self.show()
        if edited:
            self.change.show_view(view, words, sequential(colour_map))
        self.change.map.set_selection(query, key)
        self._show_numbers(view, words, min(query, len(view.top_key_after) - 1), unit, edited)
        if (view, unit) == (self._view, self._unit):
            return
        self._view, self._unit = view, unit
        self.sentence.setText(loss_sentence(view, unit) if edited else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.dead.setText(dead_sentence(view, words[0]))
        self.dead.setVisible(bool(view.dead_rows))
        self._show_next(view, next_title, edited)
        self.map_title.setVisible(edited)
        self.change.setVisible(edited)

    def show_hover(self, query: int, key: int) -> None:
        """The pointer is over a cell, here or elsewhere; -1 where it is over none."""
        self.change.show_hover(query, key)

    def _show_numbers(self, view: CompareView, words: Words, query: int, unit: Unit, edited: bool) -> None:
        self.numbers.set_compares(edited)
        name = f"row “{words[0][query]}”"
        tops = ((view.top_before, view.top_key_before), (view.top_after, view.top_key_after))
        top = [
            _COMING if _is_coming(view, weights[query]) else f"{_value(weights[query])} {words[1][int(keys[query])]}"
            for weights, keys in tops
        ]
        bits = [
            _COMING if _is_coming(view, rows[query]) else entropy_text(float(rows[query]), unit)
            for rows in (view.entropy_before, view.entropy_after)
        ]
        self.numbers.set_row(0, f"Entropy of {name}", *bits)
        if query in view.dead_rows:
            top[1] = "none"
        self.numbers.set_row(1, f"Largest weight of {name}", *top)
        if view.loss_before is None or view.loss_after is None:
            self.numbers.hide_row(2)
        else:
            losses = [
                _COMING if _is_coming(view, loss) else loss_text(loss, unit)
                for loss in (view.loss_before, view.loss_after)
            ]
            self.numbers.set_row(2, "Loss on this text", *losses)

    def _show_next(self, view: CompareView, title: str, edited: bool) -> None:
        self.next_title.setText(title)
        for part in (self.next_title, self.bars):
            part.setVisible(bool(view.token_changes))
        self.wordless.setVisible(not view.token_changes)
        size = max((max(abs(c.before), abs(c.after)) for c in view.token_changes if not c.is_share), default=0.0) or 1.0
        self.bars.set_rows([_paired(change, size) for change in view.token_changes], compares=edited)


def _paired(change: TokenChange, size: float) -> PairedRow:
    """Shares as bars of their own length, plain numbers beside the largest of them, `size`."""
    both = change.before, change.after
    lengths = both if change.is_share else (abs(change.before) / size, abs(change.after) / size)
    texts = [percent_text(value) if change.is_share else value_text(value) for value in both]
    return PairedRow(change.label, *lengths, *texts)


def _is_coming(view: CompareView, value: float) -> bool:
    """Whether a number of a long text is under way."""
    return view.done < 1 and math.isnan(value)


def _value(number: np.float32) -> str:
    return value_text(float(number))
