"""What the interventions did: numbers of the selected row, the text's loss, the next token and the map of changes."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtWidgets import QVBoxLayout, QWidget

from attention_explorer.colour_maps import sequential
from attention_explorer.panels.mask_scale.change_map import ChangeMap
from attention_explorer.panels.mask_scale.effect_sentences import dead_sentence, loss_sentence
from attention_explorer.panels.mask_scale.labels import heading, plain
from attention_explorer.panels.mask_scale.number_table import NumberTable
from attention_explorer.panels.mask_scale.numbers import loss_text
from attention_explorer.widgets.number_text import entropy_text, percent_text, value_text
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.paired_bars import PairedBars, PairedRow
from attention_models.protocol.comparison import CompareView, TokenChange
from attention_models.protocol.information import Unit

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
