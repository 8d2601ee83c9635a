"""One row that switches off any part of any layer: what, of which layer, which one, and what it gives instead."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.selected_head import site_words
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.token_text import isolated
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.ablation import LAYER, SUBLAYERS, UNITS, Ablation, Block, Fill, PartsView, part_name
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef

# Labels and lines, as all parts of the panel have them.


def heading(text: str) -> QLabel:
    """The bold name of what follows."""
    label = SaidLabel(text)
    label.setProperty("role", "title")
    return label


def plain(role: str = "dim", wraps: bool = True) -> QLabel:
    """A label for a sentence or a number."""
    label = SaidLabel()
    label.setProperty("role", role)
    label.setWordWrap(wraps)
    return label


def flow(*widgets: QWidget) -> FlowLayout:
    """Side by side, and below each other where there is no room."""
    line = FlowLayout()
    for widget in widgets:
        line.addWidget(widget)
    return line


def column(parent: QWidget) -> QVBoxLayout:
    """Lines of `parent`, to be filled."""
    lines = QVBoxLayout(parent)
    lines.setContentsMargins(0, 0, 0, 0)
    lines.setSpacing(6)
    return lines


# Which parts of which layers of the open model can be switched off, and how many there are of each. Pure.


CROSS_HEAD = "cross-attention head"
"""A head of a block's cross-attention; one of its own attention is a "head"."""

NO_NEURONS = "Its neurons cannot be told apart: no single matrix reads them."
NO_HEADS = "Single heads cannot be switched off: this model shows its weights alone."
NO_BLOCKS = "No list of blocks was found in this model: of it only heads can be switched off."


@dataclass(frozen=True, slots=True)
class Part:
    """What can be chosen: a part by its name, of which module, and of heads and neurons how many there are."""

    name: str
    label: str
    ref: SiteRef
    count: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer with its parts and the words at its positions; `why` says what cannot be switched off in it."""

    ref: SiteRef
    label: str
    parts: tuple[Part, ...]
    words: tuple[str, ...]
    why: str = ""


@lru_cache(maxsize=2)  # asked for at each change of the state
def layers_of(view: PartsView, ran: Ran, has_heads: bool) -> tuple[Layer, ...]:
    """Every layer of the model that ran, in the order of its blocks; `has_heads`: whether heads can be reached into."""
    blocks = view.blocks
    if not blocks:
        refs = dict.fromkeys(site.ref.block for site in ran.sites) if has_heads else {}
        blocks = tuple(Block(ref, (), NO_BLOCKS) for ref in refs)
    several = len({block.ref.stack for block in blocks}) > 1
    return tuple(_layer(block, ran, has_heads, several) for block in blocks)


def _layer(block: Block, ran: Ran, has_heads: bool, several: bool) -> Layer:
    ref, parts = block.ref, []
    for name, where in (("head", ref), (CROSS_HEAD, SiteRef("cross", ref.layer))):
        site = ran.site(where)
        if has_heads and site is not None and where.block == ref:
            parts.append(Part(name, name, where, site.heads))
    if block.neurons:
        parts.append(Part("neuron", "neuron", ref, block.neurons))
    whole = [name for name in block.parts if name in SUBLAYERS]
    if not block.why:
        parts += [Part(name, part_name(name), ref) for name in whole]
        if whole:
            parts.append(Part(LAYER, part_name(LAYER), ref))
    parts += [Part(name, f"gain of {part_name(name)}", ref) for name in block.parts if name not in SUBLAYERS]
    site = ran.site(ref)
    words = tuple(site_words(ran, site)[0]) if site is not None else ()
    tokens = ran.source if ran.source and ref.stack == "encoder" else ran.tokens
    label = f"{ref.stack} layer {ref.layer}" if several else f"layer {ref.layer}"
    why = [block.why, "" if block.neurons or not whole or block.why else NO_NEURONS, "" if has_heads else NO_HEADS]
    return Layer(ref, label, tuple(parts), words or tuple(token.word for token in tokens), " ".join(filter(None, why)))


_FILLS: dict[Fill, tuple[str, str]] = {
    "zero": ("zero", "It gives 0"),
    "mean": ("its mean", "It gives what it gives on average over a few texts (or sample pictures) that come along"),
    "position": ("its value at position", "Everywhere it gives what it gives at this one position"),
}
_NORM_TIP = "Of a norm what it learned is left out: it multiplies by 1 and adds 0"


class PartChooser(QWidget):
    """Says which part is meant, and puts it off or back. Follows the selection: see `follow`."""

    chosen = Signal(object)  # Ablation

    def __init__(self) -> None:
        super().__init__()
        self._layers: tuple[Layer, ...] = ()
        self._on: frozenset[Ablation] = frozenset()
        self._followed: tuple[SiteRef | None, int] = (None, -1)
        self.what = WholeListBox()
        self.what.setAccessibleName("What to switch off")
        self.what.setToolTip("What to switch off")
        self.layer = WholeListBox()
        self.layer.setAccessibleName("Of which layer")
        self.layer.setToolTip("Of which layer")
        self.number = WholeBox()
        self.number.setGroupSeparatorShown(False)
        self.fill = WholeListBox()
        self.fill.setAccessibleName("What it gives instead")
        for fill, (label, tip) in _FILLS.items():
            self.fill.addItem(label, fill)
            self.fill.setItemData(self.fill.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.position = WholeBox()
        self.position.setAccessibleName("Position")
        self.position.setToolTip("Which position of this text, from 0")
        self.word = plain(wraps=False)
        self.button = QPushButton("Switch off")
        self.button.clicked.connect(self._press)
        self.why = plain()
        to = QLabel("→")
        to.setToolTip("What it gives instead")
        title = heading("Switch off")
        title.setBuddy(self.what)
        _fit(self.fill)
        # what belongs together stays in one line
        groups = (self.what, self.number), (QLabel("of"), self.layer), (to, self.fill, self.position, self.word)
        lines = column(self)
        lines.addLayout(flow(title, *(_together(group) for group in groups), self.button))
        lines.addWidget(self.why)
        self.what.activated.connect(lambda _: self._show())
        self.layer.activated.connect(lambda _: self._show_layer())
        self.fill.activated.connect(lambda _: self._show())
        for number in (self.number, self.position):
            number.setKeyboardTracking(False)  # 12 is not 1 on the way
            number.valueChanged.connect(lambda _: self._show())
        self.hide()

    # what there is

    def show_layers(self, layers: Sequence[Layer], on: Collection[Ablation]) -> None:
        """Offer the parts of `layers`; those in `on` are off now. Hidden where there is none."""
        self._on = frozenset(on)
        if tuple(layers) != self._layers:
            chosen = self._layer.ref if self._layers else None
            self._layers = tuple(layers)
            self.layer.clear()
            for layer in self._layers:
                self.layer.addItem(layer.label)
            _fit(self.layer)
            self._choose_layer(chosen)
            self._show_layer()
        self.setVisible(any(layer.parts for layer in self._layers))
        if self._layers:
            self._show()

    def follow(self, site: SiteRef | None, head: int) -> None:
        """Mean the selected head, or the same part of its layer, whenever another is selected."""
        if site is None or not self._layers or (site, head) == self._followed:
            return
        self._followed = site, head
        self._choose_layer(site.block)
        self._show_layer()
        part = self._part
        if part is not None and part.name in ("head", CROSS_HEAD):
            own = CROSS_HEAD if site.stack == "cross" else "head"
            self._choose_what(own)
            self._show()
            self.number.setValue(head)
        self._show()

    # what is chosen

    @property
    def _layer(self) -> Layer:
        return self._layers[max(0, self.layer.currentIndex())]

    @property
    def _part(self) -> Part | None:
        return next((part for part in self._layer.parts if part.name == self.what.currentData()), None)

    def skip(self) -> Ablation | None:
        """What is meant, switched off."""
        part = self._part if self._layers else None
        if part is None:
            return None
        name = "head" if part.name == CROSS_HEAD else part.name
        fill = self._fill(part)
        position = self.position.value() if fill == "position" else None
        return Ablation(name, part.ref, self.number.value() if name in UNITS else None, fill, position)

    def _fill(self, part: Part) -> Fill:
        return "zero" if part.name.startswith("norm") else self.fill.currentData()

    def _press(self) -> None:
        skip = self.skip()
        if skip is not None:
            self.chosen.emit(Ablation(skip.part, skip.site, skip.unit, skip.fill, skip.position, on=skip in self._on))

    # how it is shown

    def _choose_layer(self, ref: SiteRef | None) -> None:
        place = next((i for i, layer in enumerate(self._layers) if layer.ref == ref), max(0, self.layer.currentIndex()))
        self.layer.setCurrentIndex(min(place, len(self._layers) - 1))

    def _choose_what(self, name: str) -> None:
        place = self.what.findData(name)
        if place >= 0:
            self.what.setCurrentIndex(place)

    def _show_layer(self) -> None:
        """Offer what this layer has; what was chosen stays chosen where it has that too."""
        if not self._layers:
            return
        before = self.what.currentData()
        self.what.clear()
        for part in self._layer.parts:
            self.what.addItem(part.label, part.name)
        _fit(self.what)
        self.what.setCurrentIndex(max(0, self.what.findData(before)))
        self._show()

    def _show(self) -> None:
        part, layer = self._part, self._layer
        self.why.setText(layer.why)
        self.why.setVisible(bool(layer.why))
        counted = part is not None and part.count > 0
        self.number.setVisible(counted)
        if part is not None and counted:
            with QSignalBlocker(self.number):
                self.number.setRange(0, part.count - 1)
            self.number.setAccessibleName(f"Which {part.name}")
            self.number.setToolTip(f"Which {part.name}, 0 to {part.count - 1:,}")
        is_norm = part is not None and part.name.startswith("norm")
        self.fill.setEnabled(part is not None and not is_norm)
        if is_norm:
            self.fill.setCurrentIndex(0)
        self.fill.setToolTip(_NORM_TIP if is_norm else _FILLS[self.fill.currentData()][1])
        at = self.fill.currentData() == "position"
        self.position.setVisible(at)
        with QSignalBlocker(self.position):
            self.position.setRange(0, max(0, len(layer.words) - 1))
        word = layer.words[self.position.value()] if self.position.value() < len(layer.words) else ""
        self.word.setText(f"“{isolated(word)}”")
        self.word.setVisible(at and bool(word))
        skip = self.skip()
        is_on = skip is not None and skip in self._on
        self.button.setEnabled(skip is not None)
        self.button.setText("Put it back" if is_on else "Switch off")
        self.button.setToolTip(
            "It is off now: let it work again"
            if is_on
            else "Put this among the interventions below; Ctrl+Z takes it back"
        )


def _together(widgets: Sequence[QWidget]) -> QWidget:
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget)
    return row


def _fit(box: WholeListBox) -> None:
    """As wide as the longest entry."""
    metrics = box.fontMetrics()
    widest = max((metrics.horizontalAdvance(box.itemText(i)) for i in range(box.count())), default=0)
    box.setMinimumContentsLength(math.ceil(widest / metrics.horizontalAdvance("X")) + 1)  # Qt counts in this letter
