"""Does order matter? The same words in another order, with positions and without, and what the model makes of it."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QWidget

from attention_explorer.panels.positions.order_map import Measured, OrderMap, distance_text
from attention_explorer.panels.positions.sections import Page, flow, heading, sentence
from attention_explorer.widgets.number_field import WholeBox
from attention_models.protocol.order import ShuffleView

EXAMPLE = "dog bites man"
_FARTHEST = 10_000  # of a shift in models whose positions have no end
ROUNDING = 1e-3  # logits of ten or more, in float32, agree to about 1e-5; what order does is a thousand times that

_INTRO = (
    "The words change places, and each token's output is compared with what the same token gave before. "
    "A model that sees a set of words, not a sequence, would give the very same."
)


class OrderView(Page):
    """Emits what the person wants; `show_view` and `show_edits` tell it what is."""

    shuffle_asked = Signal()
    swap_asked = Signal()
    example_asked = Signal()
    off_toggled = Signal(bool)
    shift_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Does order matter?", parent)
        self.shuffle = QPushButton("Shuffle again")
        self.shuffle.setToolTip("Another order of the words")
        self.shuffle.clicked.connect(self.shuffle_asked)
        self.swap = QPushButton("Swap ends")
        self.swap.setToolTip("The first word and the last change places")
        self.swap.clicked.connect(self.swap_asked)
        self.example = QPushButton("Dog bites man")
        self.example.setToolTip(f"Put “{EXAMPLE}” into the input, and read it as “man bites dog”")
        self.example.clicked.connect(self.example_asked)
        self.verdict = sentence(role="title")
        self.because = sentence()
        self.map = OrderMap()
        self.map.set_empty_text("The words and how far their outputs move appear here when the model has run.")
        self.unit = sentence()

        self.off = QCheckBox("Positions off")
        self.off.setToolTip("Run the model without positions, in every panel")
        self.off.toggled.connect(self.off_toggled)
        self.shift = WholeBox()
        self.shift.setAccessibleName("Count positions from")
        self.shift.setToolTip("Give the first token this position instead of 0, in every panel")
        self.shift.setKeyboardTracking(False)  # while typing 120 nobody wants to see 1 and 12
        self.shift.valueChanged.connect(self.shift_chosen)
        self.shift_label = QLabel("Count from")
        self.shift_label.setBuddy(self.shift)
        self.edit_note = sentence()

        self.add(heading("Does order matter?"), sentence(_INTRO), flow(self.shuffle, self.swap, self.example))
        self.add(self.verdict, self.because, self.map, self.unit)
        self.add(heading("Change this model's run"), flow(self.off, self.shift_label, self.shift), self.edit_note)
        self.end()
        self.show_view(None)

    def show_view(self, view: ShuffleView | None) -> None:
        """Show what came out; None before anything has run."""
        for widget in (self.verdict, self.because, self.unit):
            widget.setVisible(view is not None)
        for button in (self.shuffle, self.swap):
            button.setEnabled(view is not None and not view.note)
        if view is None:
            self.map.set_order((), (), (), ())
            return
        columns = [Measured("on", view.on.distances)]
        if view.off is not None:
            columns.append(Measured("off", view.off.distances))
        if view.off_open is not None:
            columns.append(Measured("off, open", view.off_open.distances))
        self.map.set_order(view.words, view.order, view.fixed, () if view.note else columns)
        verdict, because = told(view)
        self.verdict.setText(verdict)
        self.because.setText(because)
        self.because.setVisible(bool(because))
        self.unit.setText("" if view.note else _legend(view))

    def show_edits(self, off: bool, shift: int, tokens: int, off_note: str, shift_note: str, size: int | None) -> None:
        """What is in force now, and what the model can do. `size` is how many positions its table has."""
        with QSignalBlocker(self.off), QSignalBlocker(self.shift):
            self.off.setChecked(off)
            self.off.setEnabled(off or not off_note)  # what is on can always be taken back
            most = _FARTHEST if size is None else max(0, size - tokens)
            self.shift.setRange(0, max(most, shift))
            self.shift.setValue(shift)
        for widget in (self.shift, self.shift_label):
            widget.setEnabled((shift > 0 or not shift_note) and not off)
        notes = [note for note in dict.fromkeys((off_note, shift_note)) if note]
        if not notes and size is not None:
            notes = [f"With {tokens} tokens the first can be given any position from 0 to {max(0, size - tokens):,}."]
        elif not notes:
            notes = ["Rotations know distances only: a shift should change nothing but rounding."]
        self.edit_note.setText(" ".join(notes))


def _legend(view: ShuffleView) -> str:
    opened = ", and with its causal mask open as well" if view.off_open is not None else ""
    off = f", with positions off{opened}" if view.off is not None else ""
    return f"Bars: largest absolute difference of a token's {view.measured}, with positions on{off}."


def told(view: ShuffleView) -> tuple[str, str]:
    """The finding in a sentence, and why."""
    if view.note:
        return view.note, ""
    on = distance_text(view.on.largest)
    if view.off is None:
        return f"Outputs move by up to {on}.", view.scheme.off_note
    off = view.off.largest
    if off < ROUNDING:
        return (
            f"Without positions the outputs permute with the words: largest difference {distance_text(off)}.",
            f"With positions they differ by up to {on}. Attention by itself sees a set of words: the positions are all "
            "that tells this model their order.",
        )
    if view.off_open is not None:
        opened = distance_text(view.off_open.largest)
        return (
            f"Even without positions order shows: outputs move by up to {distance_text(off)}.",
            f"With positions it is {on}. A causal mask lets the first token see one, the second two: order leaks in "
            f"by how much each may see. With the mask opened too, the largest difference is {opened}"
            + (": the outputs permute with the words." if view.off_open.largest < ROUNDING else "."),
        )
    return f"Without positions outputs still move by up to {distance_text(off)}.", f"With positions by up to {on}."
