"""What a step can be looked at for: its candidates, the branches, where the head looked, and the cache."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer.session.branches import Branches, Segment, outline
from explorer.widgets.beam_tree import BeamNode, BeamTree
from explorer.widgets.branch_list import BranchList, BranchRow
from explorer.widgets.cache_view import CacheBar, CacheView
from explorer.widgets.filter_bars import FilterBars, FilterRow, percent
from explorer.widgets.heat_map import HeatMap
from explorer.widgets.number_text import MINUS
from explorer.widgets.page import wrapped
from models.decode_requests import Beam, DecodeRowsView, DecodeStepView

_MAP_HEIGHT = 300


class CandidatesPage(QWidget):
    """The distribution of one step, or the tree of a beam search."""

    candidate_chosen = Signal(int)  # a token id

    def __init__(self) -> None:
        super().__init__()
        self.bars = FilterBars()
        self.bars.set_empty_text("Press Step: the candidates for the next token appear here.")
        self.tree = BeamTree()
        self.tree.set_empty_text("Press Step: the beams appear here, the likeliest on the left.")
        self.heading = wrapped(role="dim")
        self.note = wrapped(role="dim")
        _column(self, self.heading, self.bars, self.tree, self.note)
        self._ids: tuple[int, ...] = ()
        self.bars.row_activated.connect(lambda row: self.candidate_chosen.emit(self._ids[row]))

    def show_step(self, view: DecodeStepView | None) -> None:
        self.tree.hide()
        self.bars.show()
        offers = view.offers if view is not None else ()
        self._ids = tuple(offer.id for offer in offers)
        chosen = view.chosen.id if view is not None and view.chosen is not None else None
        self.bars.set_rows(
            [
                FilterRow(
                    label=offer.label,
                    probability=offer.probability,
                    kept=offer.kept,
                    cut_by=offer.cut_by,
                    chosen=offer.id == chosen,
                    tooltip=f"id {offer.id}: logit {offer.logit:.4f}, probability {offer.probability:.6g}, after the "
                    f"settings {offer.kept:.6g}. Click to go this way.",
                )
                for offer in offers
            ]
        )
        _say(self.heading, "" if view is None else f"Step {view.number}: click another candidate to go that way.")
        _say(self.note, "" if view is None else cuts_text(view))

    def show_beams(self, views: Sequence[DecodeStepView], width: int) -> None:
        self.bars.hide()
        self.tree.show()
        self.tree.set_steps(beam_nodes(views))
        _say(
            self.heading,
            f"Each line is a step: {width} beams go on (solid), pruned ones are dashed, finished ones have a green "
            "frame. Numbers are log-probabilities of the whole text."
            if views
            else "",
        )
        _say(self.note, "")


class BranchesPage(QWidget):
    """Every way that was gone, with its log-probability; any two can be compared."""

    node_chosen = Signal(int)
    renamed = Signal(int, str)
    deleted = Signal(int)
    undone = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.list = BranchList()
        self.list.set_empty_text("Every token you choose or the model writes is kept here as a branch.")
        self.name = QLineEdit()
        self.name.setPlaceholderText("Name of this branch")
        self.name.setAccessibleName("Name of this branch")
        self.name.setToolTip("Type a name for the branch that ends here, and press Enter")
        self.delete = QPushButton("Delete")
        self.delete.setToolTip("Take this branch away, up to where it parts from the others")
        self.undo = QPushButton("Bring back")
        self.undo.setToolTip("Bring back what was deleted last")
        self.other = QComboBox()
        self.other.setAccessibleName("Compare with")
        self.other.setToolTip("The branch to compare this one with")
        self.other.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.other.setMinimumContentsLength(14)
        self.comparison = wrapped()
        self._compare = _row(_dim("Compare with"), self.other)
        _column(self, self.list, _row(self.name, self.delete, self.undo), self._compare, self.comparison)
        self._segments: tuple[Segment, ...] = ()
        self._branches = Branches()
        self.list.row_selected.connect(lambda row: self.node_chosen.emit(self._segments[row].last))
        self.name.returnPressed.connect(lambda: self.renamed.emit(self._branches.current, self.name.text()))
        self.delete.clicked.connect(lambda: self.deleted.emit(self._branches.current))
        self.undo.clicked.connect(lambda: self.undone.emit())
        self.other.activated.connect(lambda _: self._show_comparison())

    def show_branches(self, branches: Branches, can_undo: bool) -> None:
        self._branches, self._segments = branches, outline(branches)
        path = branches.path()
        at = path[-1] if path else None
        self.list.set_rows(
            [
                BranchRow(
                    text=f"{segment.name}: {_plain(segment.text)}" if segment.name else _plain(segment.text),
                    depth=segment.depth,
                    value=log_text(segment.log_probability),
                    on_path=segment.on_path,
                    current=at is not None and segment.last == at.id,
                    tooltip=f"{_count(segment.tokens, 'token')}; all up to here has log-probability "
                    f"{segment.log_probability:.4f}".replace("-", MINUS)
                    + (". Ended" if segment.ended else ""),
                )
                for segment in self._segments
            ]
        )
        self.name.setEnabled(at is not None)
        if not self.name.hasFocus():
            self.name.setText(at.name if at is not None else "")
        self.delete.setEnabled(at is not None)
        self.undo.setEnabled(can_undo)
        others = [leaf for leaf in branches.leaves() if at is not None and leaf.id != at.id]
        kept = self.other.currentData()
        self.other.clear()
        for leaf in others:
            words = leaf.name or _plain("".join(node.label for node in branches.path(leaf.id)))
            self.other.addItem(words if len(words) <= 40 else f"…{words[-38:]}", leaf.id)
        if kept is not None and self.other.findData(kept) >= 0:
            self.other.setCurrentIndex(self.other.findData(kept))
        self._compare.setVisible(bool(others))
        self._show_comparison()

    def _show_comparison(self) -> None:
        other = self.other.currentData()
        self.comparison.setVisible(other is not None)
        if other is not None:
            self.comparison.setText(comparison_text(self._branches, self._branches.current, other))


class AttentionPage(QWidget):
    """One head's weights over prompt and written tokens: a row more with each step."""

    def __init__(self) -> None:
        super().__init__()
        self.map = HeatMap()
        self.map.wheel_zooms = False
        self.map.setMinimumHeight(_MAP_HEIGHT)
        self.heading = wrapped(role="title")
        self.note = wrapped(role="dim")
        _column(self, self.heading, self.map, self.note)

    def show_rows(self, view: DecodeRowsView | None, name: str, empty: str) -> None:
        self.map.set_empty_text(empty)
        self.heading.setText(name)
        if view is None:
            self.map.set_values(None, None, (), (), 0, 1)
            _say(self.note, "")
            return
        weights = view.weights
        self.map.set_values(weights, view.masked, view.queries, view.keys, 0, max(float(weights.max()), 1e-6))
        self.map.set_selection(len(view.queries) - 1, int(weights[-1].argmax()))
        written = len(view.queries) - view.prompt
        source = (
            f"{_count(view.prompt, 'row')} of the prompt and {written} of written tokens, one a step"
            if view.from_steps
            else "All rows from one pass over the text"
        )
        _say(self.note, f"The last row is where the head looked to choose this step's token. {source}.")


class CachePage(QWidget):
    """Keys and values that are kept, so that each step computes those of one token only."""

    def __init__(self) -> None:
        super().__init__()
        self.bars = CacheView()
        self.bars.set_empty_text("Press Step: what the model keeps for the next step appears here.")
        self.words = wrapped()
        self.sharing = wrapped(role="dim")
        _column(self, self.words, self.bars, self.sharing)

    def show_step(self, view: DecodeStepView | None, empty: str = "") -> None:
        if empty:
            self.bars.set_empty_text(empty)
        layers = view.cache if view is not None else ()
        several = len({layer.stack for layer in layers}) > 1
        self.bars.set_bars(
            [
                CacheBar(
                    label=f"{'Source, layer' if layer.stack == 'cross' else 'Layer'} {layer.layer}"
                    if several
                    else f"Layer {layer.layer}",
                    reused=layer.reused,
                    computed=layer.computed,
                    text=bytes_text(layer.bytes),
                    heads=layer.heads,
                    key_heads=layer.key_heads,
                )
                for layer in layers
            ]
        )
        _say(self.words, cache_text(view) if view is not None else "")
        _say(self.sharing, sharing_text(view) if view is not None else "")


# --------------------------------------------------------------------------- words


def cuts_text(view: DecodeStepView) -> str:
    """What each filter did in this step."""
    parts = []
    for cut in view.cuts:
        if cut.tokens:
            parts.append(f"{cut.filter} cut {_count(cut.tokens, 'token')} ({percent(cut.probability)})")
        else:
            reshapes = cut.filter in ("temperature", "repetition penalty")
            parts.append(f"{cut.filter} {'changed the shares' if reshapes else 'cut nothing'}")
    drawn = f"The draw was {view.drawn:.4f} of 1." if view.drawn is not None else ""
    words = "; ".join(parts)
    return " ".join(part for part in (f"{words[:1].upper()}{words[1:]}." if words else "", drawn) if part)


def beam_nodes(views: Sequence[DecodeStepView]) -> list[list[BeamNode]]:
    """The tree of a search, a list a step; the way to the best text of the last step is marked."""
    best = views[-1].ids if views else ()
    return [[_beam_node(beam, best) for beam in view.beams] for view in views]


def _beam_node(beam: Beam, best: tuple[int, ...]) -> BeamNode:
    fate = "finished" if beam.finished else "kept" if beam.kept else "pruned"
    text = f"{log_text(beam.log_probability)}, {fate}"
    return BeamNode(
        id=beam.node,
        parent=beam.parent,
        label=beam.label,
        log_probability=beam.log_probability,
        fate=fate,  # type: ignore[arg-type]
        best=fate != "pruned" and beam.ids == best[: len(beam.ids)],
        tooltip=f"“{beam.label}”: log-probability {text}",
    )


def comparison_text(branches: Branches, first: int, second: int) -> str:
    """Which of two branches is the likelier, and by how much."""
    a, b = branches.log_probability(first), branches.log_probability(second)
    lengths = len(branches.path(first)), len(branches.path(second))
    this, that = (f"{log_text(p)} ({_count(n, 'token')})" for p, n in zip((a, b), lengths, strict=True))
    words = f"This one {this}, the other {that}"
    apart = abs(a - b)
    if apart < 1e-9:
        return f"{words}: as likely."
    times = f"{math.exp(apart):,.1f}" if apart < 20 else f"10^{apart / math.log(10):.0f}"
    uneven = " A longer text is less likely only because it says more." if lengths[0] != lengths[1] else ""
    return f"{words}: {'this one' if a > b else 'the other'} is {times} times as likely.{uneven}"


def cache_text(view: DecodeStepView) -> str:
    if not view.cache:
        return f"{bytes_text(view.cache_bytes)} are kept for the next step." if view.cache_bytes else ""
    own = [layer for layer in view.cache if layer.stack != "cross"] or list(view.cache)
    first = own[0]
    return (
        f"{bytes_text(view.cache_bytes)} of keys and values are stored. This step reused those of "
        f"{_count(first.reused, 'token')} and computed those of {_count(first.computed, 'token')}, in each of "
        f"{_count(len(own), 'layer')}."
    )


def sharing_text(view: DecodeStepView) -> str:
    """How many query heads read one stored head."""
    if not view.cache:
        return ""
    layer = view.cache[0]
    if layer.heads == layer.key_heads:
        return (
            f"Blue: reused, orange: computed now. Each of the {layer.heads} query heads has keys and values of its own."
        )
    return (
        f"Blue: reused, orange: computed now. {layer.heads} query heads share {_count(layer.key_heads, 'stored head')} "
        f"(squares that touch): the cache is {layer.heads / layer.key_heads:g} times smaller."
    )


def bytes_text(count: int) -> str:
    """45.1 kB, in powers of a thousand."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def log_text(value: float) -> str:
    """Two decimals, more where these would all be 0."""
    return (f"{value:.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.1g}").replace("-", MINUS)


def _plain(text: str) -> str:
    return text.replace("␣", " ").strip() or "␣"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _say(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))


def _dim(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "dim")
    return label


def _row(*widgets: QWidget) -> QWidget:
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, (QLineEdit, QComboBox)) else 0)
    return row


def _column(parent: QWidget, *widgets: QWidget) -> None:
    column = QVBoxLayout(parent)
    column.setContentsMargins(0, 2, 8, 4)
    column.setSpacing(6)
    for widget in widgets:
        column.addWidget(widget, 1 if isinstance(widget, HeatMap) else 0)
    if not any(isinstance(widget, HeatMap) for widget in widgets):
        column.addStretch(1)
