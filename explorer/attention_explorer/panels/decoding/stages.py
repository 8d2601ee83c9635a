"""The filters of a step one after the other: what each was given, what it cut, and what it left."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from attention_explorer.panels.decoding.filter_bars import FilterRow
from attention_explorer.panels.decoding.layout import count
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import byte_note
from attention_models.protocol.decoding import DecodeStepView, Stage
from attention_models.protocol.decoding_settings import DecodeSettings

# in the order in which they act
FILTERS = (
    "repetition penalty",
    "no repeated n-gram",
    "no n-gram of the source",  # this and those up to "suppressed at first" are a checkpoint's own
    "banned words",
    "least length",
    "least new tokens",
    "first token",
    "suppressed tokens",
    "suppressed at first",
    "temperature",
    "top-k",
    "top-p",
    "min-p",
)
_RESHAPE = ("repetition penalty", "temperature")


class StageButtons(QWidget):
    """All filters at once, or one of those that act. Hidden where none does."""

    stage_chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        every = ("All filters", "What the model says, and what all filters together leave of it")
        each = ((name[:1].upper() + name[1:], f"What {name} was given, and what it left") for name in FILTERS)
        self.buttons = Segments((every, *each), "Which filter", wraps=True)
        self.buttons.chosen.connect(lambda _: self.stage_chosen.emit())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.buttons)
        self._acting: tuple[str, ...] = ()

    @property
    def current(self) -> int | None:
        """The place among the filters that act; None for all at once."""
        chosen = self.buttons.current
        return None if chosen == 0 else self._acting.index(FILTERS[chosen - 1])

    def show_stages(self, acting: Sequence[str]) -> None:
        self._acting = tuple(acting)
        if self.buttons.current and FILTERS[self.buttons.current - 1] not in acting:
            self.buttons.choose(0)
        for place, name in enumerate(FILTERS, 1):
            self.buttons.button(place).setVisible(name in acting)
        self.setVisible(bool(acting))


def overview(view: DecodeStepView) -> list[FilterRow]:
    """What the model says of each candidate, and what all filters together make of it."""
    chosen = view.chosen.id if view.chosen is not None else None
    return [
        FilterRow(
            label=candidate.label,
            probability=candidate.probability,
            kept=candidate.kept,
            cut_by=candidate.cut_by,
            chosen=candidate.id == chosen,
            tooltip=f"id {candidate.id}: logit {candidate.logit:.4f}, probability {candidate.probability:.6g}, "
            f"after the settings {candidate.kept:.6g}. Click to go this way.{byte_note(candidate.label)}",
        )
        for candidate in view.candidates
    ]


def stage_rows(view: DecodeStepView, place: int) -> list[FilterRow]:
    """What one filter was given of each candidate, and what it left."""
    stage = view.stages[place]
    before = view.stages[place - 1].shares if place else tuple(candidate.probability for candidate in view.candidates)
    so_far = {other.filter for other in view.stages[: place + 1]}
    chosen = view.chosen.id if view.chosen is not None else None
    return [
        FilterRow(
            label=candidate.label,
            probability=given,
            kept=left,
            cut_by=candidate.cut_by if candidate.cut_by in so_far else "",
            chosen=candidate.id == chosen,
            tooltip=f"id {candidate.id}: {given:.6g} before {stage.filter}, {left:.6g} after it; likelier tokens held "
            f"{ahead:.6g} together. Click to go this way.{byte_note(candidate.label)}",
            start=ahead if stage.filter == "top-p" else 0.0,
        )
        for candidate, given, left, ahead in zip(view.candidates, before, stage.shares, stage.ahead, strict=True)
    ]


def threshold(stage: Stage, settings: DecodeSettings) -> float | None:
    """The share that a filter goes by, where it goes by one."""
    if stage.filter == "top-p":
        return settings.top_p
    return settings.min_p * stage.peak if stage.filter == "min-p" and settings.min_p is not None else None


def stage_text(stage: Stage, settings: DecodeSettings, number: int, of: int) -> str:
    """ "2 of 3. Top-k keeps the 40 likeliest tokens. It cut 8,152 tokens, which held 12.4 %; 40 are left." """
    if stage.filter in _RESHAPE:
        did = f"It moved {percent_text(stage.moved)} of the probability from some tokens to others, and cut none"
    elif stage.tokens:
        verb = "held" if stage.tokens != 1 else "had"
        did = f"It cut {count(stage.tokens, 'token')}, which {verb} {percent_text(stage.moved)} of what was there"
        did += "; the others share that among them"
    else:
        did = "It cut nothing here"
    left = f"{count(stage.left, 'token')} {'is' if stage.left == 1 else 'are'} left"
    return f"{number} of {of}. {stage.meaning or _meaning(stage.filter, settings)} {did}. {left}."


def _meaning(name: str, settings: DecodeSettings) -> str:
    """What a filter does, with its number."""
    match name:
        case "repetition penalty":
            number = f"{settings.repetition_penalty:g}"
            return f"Logits of tokens seen before are divided by {number}, negative ones multiplied by it."
        case "no repeated n-gram":
            return f"Tokens that would write the same {settings.no_repeat_ngram} in a row a second time are cut."
        case "temperature":
            return f"All logits are divided by {settings.temperature:g}."
        case "top-k":
            return f"The {settings.top_k:,} likeliest tokens stay."
        case "top-p":
            return (
                f"The likeliest tokens stay, as many as it takes to reach {settings.top_p:g} together: each bar begins "
                "where the likelier ones end, and the line is at the sum to reach."
            )
    return f"Tokens stay that are at least {settings.min_p:g} times as likely as the likeliest: those beyond the line."


def cuts_text(view: DecodeStepView) -> str:
    """What each filter did in this step."""
    parts = []
    for cut in view.stages:
        if cut.tokens:
            parts.append(f"{cut.filter} cut {count(cut.tokens, 'token')} ({percent_text(cut.probability)})")
        else:
            reshapes = cut.filter in _RESHAPE
            parts.append(f"{cut.filter} {'changed the shares' if reshapes else 'cut nothing'}")
    drawn = f"The draw was {view.drawn:.4f} of 1." if view.drawn is not None else ""
    words = "; ".join(parts)
    said = f"{words[:1].upper()}{words[1:]}." if words else ""
    return " ".join(part for part in (said, drawn, unapplied_text(view)) if part)


def unapplied_text(view: DecodeStepView) -> str:
    """Which of the checkpoint's own settings do not act; "" where all do."""
    if not view.unapplied:
        return ""
    return f"The checkpoint's own {', '.join(view.unapplied)} acts in transformers' generate, and not here."
