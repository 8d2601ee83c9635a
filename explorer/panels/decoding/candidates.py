"""What a step chose from: the distribution with what the settings cut, or the tree of a beam search."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.panels.base import byte_note
from explorer.panels.decoding.layout import column, count, log_text, say
from explorer.widgets.beam_tree import BeamNode, BeamTree
from explorer.widgets.filter_bars import FilterBars, FilterRow, percent
from explorer.widgets.page import wrapped
from models.decode_requests import Beam, DecodeStepView


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
        column(self, self.heading, self.bars, self.tree, self.note)
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
                    f"settings {offer.kept:.6g}. Click to go this way.{byte_note(offer.label)}",
                )
                for offer in offers
            ]
        )
        say(self.heading, "" if view is None else f"Step {view.number}: click another candidate to go that way.")
        say(self.note, "" if view is None else cuts_text(view))

    def show_beams(self, views: Sequence[DecodeStepView], width: int) -> None:
        self.bars.hide()
        self.tree.show()
        self.tree.set_steps(beam_nodes(views))
        say(
            self.heading,
            f"Each line is a step: {width} beams go on (solid), pruned ones are dashed, finished ones have a green "
            "frame. Numbers are log-probabilities of the whole text."
            if views
            else "",
        )
        say(self.note, "")


def cuts_text(view: DecodeStepView) -> str:
    """What each filter did in this step."""
    parts = []
    for cut in view.stages:
        if cut.tokens:
            parts.append(f"{cut.filter} cut {count(cut.tokens, 'token')} ({percent(cut.probability)})")
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
        tooltip=f"“{beam.label}”: log-probability {text}{byte_note(beam.label)}",
    )
