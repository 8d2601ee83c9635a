"""What was written after one text, and the sentences about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.panels.base import shortened
from explorer.panels.decoding.layout import log_text
from explorer.session.branches import Branches
from explorer.widgets.filter_bars import percent
from models.decode_requests import DecodeStepView
from models.decode_settings import DecodeSettings

READY = "Press Step to let the model write one token, or Play."
ENDINGS = {
    "model": "The model ended the text.",
    "context": "The context is full: the model takes no more tokens.",
    "masks": "All masks are filled.",
}
SILENT = {
    "encoder": "This model gives vectors, not words: it has nothing to write.",
    "vision": "This model looks at pictures: it writes nothing.",
}


@dataclass
class Work:
    """What was written after one text."""

    branches: Branches = field(default_factory=Branches)
    views: dict[int, DecodeStepView] = field(default_factory=dict)  # node: the step that chose it
    deleted: list[Branches] = field(default_factory=list)  # the trees before each deletion
    beams: list[DecodeStepView] = field(default_factory=list)
    searched: tuple[DecodeSettings, int] | None = None  # what the beams are of
    beam: int = 0  # the step of the search that is looked at, 0 for the prompt


def search_is_over(view: DecodeStepView, work: Work, steps: int) -> str:
    """Why the beam search goes no further after `view`; "" where it does."""
    if work.beam < len(work.beams) or not view.ending:
        return ""
    if view.ending == "steps":
        return f"The search is over: it had {steps} steps, and no beam that ended was better."
    return "The search is over: no beam that goes on can get better. " + ENDINGS.get(view.ending, "")


def text_is_over(view: DecodeStepView, steps: int) -> str:
    """Why no token follows what `view` chose; "" where one can."""
    if view.ending in ENDINGS:
        return ENDINGS[view.ending]
    if view.number >= steps:
        return f"All {steps} steps are used up, and the model has not ended the text. Raise Steps to go on."
    return ""


def percent_of(view: DecodeStepView) -> float:
    """The chosen token's probability by the model."""
    return view.chosen.probability if view.chosen is not None else 0.0


def step_words(view: DecodeStepView, branches: Branches) -> str:
    if view.chosen is None:
        return (
            f"Step {view.number}: best so far “{view.text.strip()}”, log-probability {log_text(view.log_probability)}."
        )
    how = "you chose" if view.request.forced is not None else "drew" if view.drawn is not None else "took"
    place = f" in position {view.place}" if view.place is not None else ""
    return (
        f"Step {view.number}: {how} “{shortened(view.chosen.label)}”{place} with {percent(view.chosen.probability)}. "
        f"Log-probability {log_text(view.log_probability)}, {log_text(branches.log_probability())} in all."
    )
