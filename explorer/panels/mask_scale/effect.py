"""What the interventions did: numbers of the selected row, the text's loss, the next token and the map of changes."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from explorer.panels.mask_scale.change_map import ChangeMap
from explorer.panels.mask_scale.knobs import heading, said
from explorer.panels.mask_scale.paired_bars import PairedBars, PairedRow
from explorer.session.hover import Pointed
from explorer.session.state import State
from explorer.theme import sequential
from explorer.widgets.number_text import percent_text, value_text
from models.protocol.comparison import CompareView
from models.protocol.running import Ran

Words = tuple[list[str], list[str]]
"""What the queries and the keys of a site are called."""

_LOSS_STEP = 5e-4  # nats: what the three decimals on screen can tell apart
_COMING = "…"
_WORDLESS = "This model gives vectors, not words."


class EffectView(QWidget):
    """Before and after, for the selected head and token. Unchanged runs show one value each, and no map."""

    def __init__(self) -> None:
        super().__init__()
        self.title = heading("Effect")
        self.numbers = NumberTable()
        self.sentence = said()
        self.dead = said("mark")
        self.next_title = heading("")
        self.bars = PairedBars("Next token before and after")
        self.bars.set_empty_text(_WORDLESS)
        self.map_title = heading("Weights of the head")
        self.change = ChangeMap()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        parts = (self.title, self.numbers, self.sentence, self.dead)
        for part in (*parts, self.next_title, self.bars, self.map_title, self.change):
            column.addWidget(part)
        self._view: CompareView | None = None

    def show_state(self, state: State, words: Words) -> None:
        """Show the comparison in `state`; `words` are those of the selected site."""
        view, ran = state.results.comparison, state.ran
        self.setVisible(view is not None and ran is not None)
        if view is None or ran is None:
            self._view = None
            return
        asked, selection = view.request, state.selection
        if (asked.run, asked.site, asked.head) != (ran.run, selection.site, selection.head):
            return  # the last numbers stay until the new ones are here
        query = min(state.selection.query, len(view.top_key_after) - 1)
        edited = bool(ran.interventions)
        if edited:
            self.change.show_view(view, words, sequential(state.document.view.colour_map))
        self.change.map.set_selection(state.selection.query, state.selection.key)
        self._show_numbers(view, words, query, edited)
        if view is self._view:
            return
        self._view = view
        self.sentence.setText(loss_sentence(view) if edited else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.dead.setText(dead_sentence(view, words[0]))
        self.dead.setVisible(bool(view.dead_rows))
        self._show_next(view, ran, edited)
        self.map_title.setVisible(edited)
        self.change.setVisible(edited)

    def show_hover(self, pointed: Pointed) -> None:
        self.change.show_hover(pointed)

    def _show_numbers(self, view: CompareView, words: Words, query: int, edited: bool) -> None:
        self.numbers.set_compares(edited)
        name = f"row “{words[0][query]}”"
        tops = ((view.top_before, view.top_key_before), (view.top_after, view.top_key_after))
        top = [
            _COMING if _is_coming(view, weights[query]) else f"{_value(weights[query])} {words[1][int(keys[query])]}"
            for weights, keys in tops
        ]
        bits = [
            _COMING if _is_coming(view, rows[query]) else f"{_value(rows[query])} bits"
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
                _COMING if _is_coming(view, loss) else f"{loss:.3f} nats"
                for loss in (view.loss_before, view.loss_after)
            ]
            self.numbers.set_row(2, "Loss on this text", *losses)

    def _show_next(self, view: CompareView, ran: Ran, edited: bool) -> None:
        prediction = view.prediction_after
        position = prediction.position if prediction is not None else 0
        self.next_title.setText(_spoken_of(ran, position))
        self.next_title.setVisible(prediction is not None)
        rows = [
            PairedRow(
                change.label, change.before, change.after, percent_text(change.before), percent_text(change.after)
            )
            for change in view.token_changes
        ]
        self.bars.set_rows(rows, compares=edited)


class NumberTable(QWidget):
    """Lines of a name, a value before and a value after; the column before goes where nothing was changed."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(0, 1)
        self._headings = [said("dim", wraps=False) for _ in range(2)]
        for column, text in enumerate(("before", "after")):
            self._headings[column].setText(text)
            self._grid.addWidget(self._headings[column], 0, column + 1, Qt.AlignmentFlag.AlignRight)
        self.rows: list[tuple[QLabel, QLabel, QLabel]] = []
        for line in range(3):
            name, before, after = said(""), said("dim", wraps=False), said("title", wraps=False)
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


def _is_coming(view: CompareView, value: float) -> bool:
    """Whether a number of a long text is under way."""
    return view.done < 1 and math.isnan(value)


def _value(number: np.float32) -> str:
    return value_text(float(number))


def loss_sentence(view: CompareView) -> str:
    """What the change of the loss means, said honestly; nothing for a model without one."""
    if view.loss_before is None or view.loss_after is None or view.done < 1:
        return ""
    change = view.loss_after - view.loss_before
    if abs(change) < _LOSS_STEP:
        return "The loss is as it was: on this text the change makes no difference to it."
    if view.peeks and change < 0:
        return "The loss falls because tokens may now peek at the words they are asked to guess: a leak, not skill."
    if view.peeks:
        return "The future is open, and still the loss rises: layers never learned to read what lies ahead of a token."
    if change < 0:
        return "The loss falls on this text, without a look ahead; on other texts it may not."
    return "The loss rises: the model was not trained to work like this."


def dead_sentence(view: CompareView, queries: list[str]) -> str:
    """Which rows may look at nothing, and what the model then computes."""
    dead = view.dead_rows
    if not dead:
        return ""
    named = ", ".join(f"“{queries[row]}”" for row in dead[:4]) + (f" and {len(dead) - 4} more" if len(dead) > 4 else "")
    if len(dead) == 1:
        return f"Row {named} may look at nothing: its weights are all 0, and this head writes nothing there."
    return f"Rows {named} may look at nothing: their weights are all 0, and this head writes nothing there."


def _spoken_of(ran: Ran, position: int) -> str:
    """What the bars are of: a vision model says its classes of the whole picture."""
    if ran.seen is not None:
        return "What it sees in the picture"
    where = "Token at" if position in ran.masks else "Next token after"
    return f"{where} “{ran.tokens[position].word}”"
