"""What a step chose from: the distribution with what the settings cut, or the tree of a beam search."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.beam_tree import BeamNode, BeamTree
from attention_explorer.panels.decoding.filter_bars import FilterBars
from attention_explorer.panels.decoding.layout import column, log_text, say
from attention_explorer.panels.decoding.stages import (
    StageButtons,
    cuts_text,
    overview,
    stage_rows,
    stage_text,
    threshold,
    unapplied_text,
)
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.token_text import byte_note
from attention_models.protocol.decoding import Beam, DecodeStepView
from attention_models.protocol.information import Unit, from_nats

_IN_SIGHT, _LEAST_IN_SIGHT = 5, 3


class CandidatesPage(QWidget):
    """The distribution of one step, or the tree of a beam search."""

    candidate_chosen = Signal(int)  # a token id
    beam_picked = Signal(int)  # a node

    def __init__(self) -> None:
        super().__init__()
        self.bars = FilterBars()
        self.tree = BeamTree()
        self._is_low = False
        self.heading = wrapped(role="dim")
        self.note = wrapped(role="dim")
        self.stages = StageButtons()
        self.stages.stage_chosen.connect(self._show_stage)
        column(self, self.heading, self.stages, self.bars, self.tree, self.note)
        self.set_silent(False)
        self._ids: tuple[int, ...] = ()
        self._view: DecodeStepView | None = None
        self.tree.node_selected.connect(self.beam_picked.emit)
        self.bars.row_activated.connect(lambda row: self.candidate_chosen.emit(self._ids[row]))

    def set_low(self, is_low: bool) -> None:
        """Leave out the line above the candidates, where there is room for few."""
        if is_low != self._is_low:
            self._is_low = is_low
            self._say_heading(self.heading.text())

    def _say_heading(self, text: str) -> None:
        self.heading.setText(text)
        self.heading.setVisible(bool(text) and not self._is_low)

    def set_silent(self, silent: bool) -> None:
        """Whether the open model writes nothing, so that no step is to be waited for."""
        self.bars.set_empty_text("" if silent else "Press Step: the candidates for the next token appear here.")
        self.tree.set_empty_text("" if silent else "Press Step: the beams appear here, the likeliest on the left.")

    def show_step(self, view: DecodeStepView | None) -> None:
        self.tree.hide()
        self.bars.show()
        self._view = view
        self._ids = tuple(candidate.id for candidate in view.candidates) if view is not None else ()
        self.stages.show_stages([stage.filter for stage in view.stages] if view is not None else [])
        number = 0 if view is None else view.request.number
        self._say_heading(f"Step {number}: click another candidate to go that way." if number else "")
        self._show_stage()

    def _show_stage(self) -> None:
        """One filter, or all of them at once."""
        view, stage = self._view, self.stages.current
        if view is None:
            self.bars.set_rows(())
            say(self.note, "")
        elif stage is None:
            self.bars.set_rows(overview(view))
            say(self.note, cuts_text(view))
        else:
            settings, after = view.request.settings, view.stages[stage]
            self.bars.set_rows(
                stage_rows(view, stage), ("before", "after"), threshold(after, settings), always_two=True
            )
            say(self.note, stage_text(after, settings, stage + 1, len(view.stages)))

    @property
    def head(self) -> int:
        """The height of what should be in sight: down to the fifth candidate, or all of a tree."""
        if self.bars.isHidden() or not self.bars.rows:
            return self.height()
        return self._down_to(_IN_SIGHT)

    @property
    def least(self) -> int:
        """As `head`, where there is little room: down to the third candidate."""
        return self.height() if self.bars.isHidden() or not self.bars.rows else self._down_to(_LEAST_IN_SIGHT)

    @property
    def first(self) -> QWidget:
        """What has to be in sight before all else."""
        return self.tree if self.bars.isHidden() else self.bars

    def _down_to(self, count: int) -> int:
        return self.bars.y() + round(self.bars.row_rect(min(count, len(self.bars.rows)) - 1).bottom())

    def show_beams(self, views: Sequence[DecodeStepView], shown: Beam | None, unit: Unit) -> None:
        width = views[-1].request.settings.beams if views else 0
        self.bars.hide()
        self.stages.show_stages([])
        self.tree.show()
        self.tree.set_steps(beam_nodes(views, unit), -1 if shown is None else shown.node)
        self._say_heading(
            f"A line is a step: {width} beams go on, dashed ones are pruned, green ones finished. Numbers are "
            f"log-probabilities of the whole text, in {unit}. Any beam can be picked."
            if views
            else "",
        )
        last = views[-1] if views else None
        say(self.note, "" if last is None else " ".join((*last.own, unapplied_text(last))).strip())


def beam_nodes(views: Sequence[DecodeStepView], unit: Unit) -> list[list[BeamNode]]:
    """The tree of a search, a list a step, log-probabilities in `unit`.

    The way to the best text of the last step is marked.
    """
    best = views[-1].ids if views else ()
    return [[_beam_node(beam, best, unit) for beam in view.beams] for view in views]


def _beam_node(beam: Beam, best: tuple[int, ...], unit: Unit) -> BeamNode:
    fate = "finished" if beam.finished else "kept" if beam.kept else "pruned"
    text = f"{log_text(beam.log_probability, unit)} {unit}, {fate}"
    return BeamNode(
        id=beam.node,
        parent=beam.parent,
        label=beam.label,
        log_probability=from_nats(beam.log_probability, unit),
        fate=fate,  # type: ignore[arg-type]
        best=fate != "pruned" and beam.ids == best[: len(beam.ids)],
        tooltip=f"“{beam.label}”: log-probability {text}{byte_note(beam.label)}",
    )
