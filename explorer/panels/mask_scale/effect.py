"""What the interventions did: numbers of the selected row, the text's loss, the next token and the map of changes."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer.panels.mask_scale.knobs import heading, said
from explorer.session.hover import Pointed
from explorer.session.state import State
from explorer.theme import diverging
from explorer.widgets.colour_bar import ColourBar
from explorer.widgets.heat_map import HeatMap
from explorer.widgets.number_text import value_text
from explorer.widgets.paired_bars import PairedBars, PairedRow
from models.results import CompareView, Ran

Words = tuple[list[str], list[str]]
"""What the queries and the keys of a site are called."""

_MAP_HEIGHT = 320
_LOSS_STEP = 5e-4  # nats: what the three decimals on screen can tell apart
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
        self.map_title = heading("Change of the weights")
        self.map = HeatMap()
        self.map.setAccessibleName("Map of changes")
        self.map.value_name = "changed by"
        self.map.wheel_zooms = False
        self.map.setMinimumWidth(160)  # a panel beside large text is narrow, and never scrolls sideways
        self.map.set_colour_map(diverging())
        self.bar = ColourBar("change")
        self.bar.set_colour_map(diverging())
        self.map.map_span_changed.connect(self.bar.set_span)
        self.map_row = QWidget()
        self.map_row.setFixedHeight(_MAP_HEIGHT)
        row = QHBoxLayout(self.map_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.map, 1)
        row.addWidget(self.bar)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        parts = (self.title, self.numbers, self.sentence, self.dead)
        for part in (*parts, self.next_title, self.bars, self.map_title, self.map_row):
            column.addWidget(part)
        self._view: CompareView | None = None

    def show_state(self, state: State, words: Words) -> None:
        """Show the comparison in `state`; `words` are those of the selected site."""
        view, ran = state.results.comparison, state.ran
        is_long = state.site is not None and state.site.is_long
        self.setVisible(view is not None and ran is not None and not is_long)
        if view is None or ran is None or is_long:
            self._view = None
            return
        if view.run != ran.run or view.site != state.selection.site or view.head != state.selection.head:
            return  # the last numbers stay until the new ones are here
        query = min(state.selection.query, len(view.before) - 1)
        self.map.set_selection(state.selection.query, state.selection.key)
        edited = bool(ran.interventions)
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
        self.map_row.setVisible(edited)
        if edited:
            self._show_map(view, words)

    def show_hover(self, pointed: Pointed) -> None:
        self.map.set_hover(pointed.query, pointed.key)
        view, q, k = self._view, pointed.query, pointed.key
        inside = view is not None and 0 <= q < view.difference.shape[0] and 0 <= k < view.difference.shape[1]
        self.bar.set_marker(float(view.difference[q, k]) if inside and view is not None else None)

    def _show_numbers(self, view: CompareView, words: Words, query: int, edited: bool) -> None:
        self.numbers.set_compares(edited)
        name = f"row “{words[0][query]}”"
        top = [
            f"{value_text(float(weights[query, keys[query]]))} {words[1][int(keys[query])]}"
            for weights, keys in ((view.before, view.top_key_before), (view.after, view.top_key_after))
        ]
        bits = [f"{value_text(float(rows[query]))} bits" for rows in (view.entropy_before, view.entropy_after)]
        self.numbers.set_row(0, f"Entropy of {name}", *bits)
        if query in view.dead_rows:
            top[1] = "none"
        self.numbers.set_row(1, f"Largest weight of {name}", *top)
        if view.loss_before is None or view.loss_after is None:
            self.numbers.hide_row(2)
        else:
            self.numbers.set_row(2, "Loss on this text", f"{view.loss_before:.3f} nats", f"{view.loss_after:.3f} nats")

    def _show_next(self, view: CompareView, ran: Ran, edited: bool) -> None:
        prediction = view.prediction_after
        position = prediction.position if prediction is not None else 0
        self.next_title.setText(_spoken_of(ran, position))
        self.next_title.setVisible(prediction is not None)
        rows = [
            PairedRow(change.label, change.before, change.after, _percent(change.before), _percent(change.after))
            for change in view.token_changes
        ]
        self.bars.set_rows(rows, compares=edited)

    def _show_map(self, view: CompareView, words: Words) -> None:
        high = view.largest_difference or 1.0
        self.map.set_values(view.difference, None, *words, -high, high)
        self.bar.set_range(-high, high)


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


def loss_sentence(view: CompareView) -> str:
    """What the change of the loss means, said honestly; nothing for a model without one."""
    if view.loss_before is None or view.loss_after is None:
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


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %"
