"""What a classifier says, as bars: a line a class, a line a token, or the likeliest ends of an answer. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from attention_explorer.widgets.bar_list import BarGroup, BarRow
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_models.protocol.batch import Batch
from attention_models.protocol.classes import ClassesView
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Candidate, ClassHead

_TITLES = {
    ("text", "softmax"): "Classes",
    ("text", "sigmoid"): "Classes, each for itself",
    ("text", "number"): "Score",
    ("token", "softmax"): "Label of each token",
    ("token", "sigmoid"): "Each token: replaced or not",
    ("choice", "softmax"): "Choices",
    ("span", "softmax"): "Answer",
}
_OF_SHARES = {
    "softmax": "softmax over the classes",
    "sigmoid": "sigmoid of each: several may hold",
    "number": "the plain number, no share of anything",
}


def class_title(head: ClassHead) -> str:
    """What the card is called, after the head."""
    return _TITLES[head.of, head.scale]


def class_subtitle(head: ClassHead, view: ClassesView, ran: Ran) -> str:
    if head.of == "span":
        return f"softmax over the tokens · {_span(view, ran)}"
    if head.of == "choice":
        if len(view.classes) == 1:
            return "one choice has a share of 1, whatever its logit: add others with “+ Choice”"
        return f"softmax over the {len(view.classes)} texts, each read by itself"
    if head.otherwise:
        return "sigmoid of each token's logit"
    whole = "the text as a whole" if head.of == "text" else f"{len(ran.tokens)} tokens"
    return f"{whole} · {_OF_SHARES[head.scale]}"


def class_groups(head: ClassHead, view: ClassesView, ran: Ran) -> list[BarGroup]:
    """The bars, in groups under headings; the first group of a model of tokens is of the one that is selected."""
    if head.of == "span":
        return [
            BarGroup("Starts at", tuple(_end_row(end) for end in view.starts)),
            BarGroup("Ends at", tuple(_end_row(end) for end in view.ends)),
        ]
    size = max((abs(c.logit) for c in view.classes), default=0.0) or 1.0
    is_choice = head.of == "choice" and len(view.classes) > 1
    classes = tuple(_class_row(candidate, size, is_choice) for candidate in view.classes)
    if head.of == "choice":
        shown = ran.inputs.prompt.shown if isinstance(ran.inputs.prompt, Batch) else 0
        marked = zip(view.classes, classes, strict=True)
        return [BarGroup("", tuple(replace(row, emphasis=candidate.id == shown) for candidate, row in marked))]
    if head.of == "text":
        return [BarGroup("", classes)]
    position = view.request.position
    labels = (
        _token_row(ran.tokens[place].label, candidate, place, place == position)
        for place, candidate in enumerate(view.tokens)
    )
    chosen = f"“{ran.tokens[position].word}”, position {position}"
    return [BarGroup(chosen, classes), BarGroup("Every token", tuple(labels))]


def position_of_row(head: ClassHead, view: ClassesView, row: int) -> int | None:
    """The token that a row stands for, rows counted through all groups; None where it stands for a class."""
    if head.of == "span":
        ends = (*view.starts, *view.ends)
        return ends[row].id if row < len(ends) else None
    place = row - len(view.classes)
    return place if head.of == "token" and 0 <= place < len(view.tokens) else None


def _span(view: ClassesView, ran: Ran) -> str:
    first, last = view.starts[0].id, view.ends[0].id
    if last < first:
        return "the likeliest end stands before the likeliest start"
    words: Sequence[str] = [token.word for token in ran.tokens[first : last + 1]]
    return f"likeliest from “{words[0]}” to “{words[-1]}”"


def class_row(candidate: Candidate) -> BarRow:
    """The bar of one class, of shares."""
    return _class_row(candidate, 1.0)


def _class_row(candidate: Candidate, size: float, is_choice: bool = False) -> BarRow:
    logit = value_text(candidate.logit)
    if math.isnan(candidate.probability):
        return BarRow(candidate.label, abs(candidate.logit) / size, logit, tooltip=_tooltip(candidate), acts=False)
    was = "" if candidate.before is None else f", was {percent_text(candidate.before)}"
    return BarRow(
        candidate.label,
        candidate.probability,
        percent_text(candidate.probability) + was,
        before=candidate.before,
        detail=f"logit {logit}",
        tooltip=_tooltip(candidate) + (". Click shows this text" if is_choice else ""),
        acts=is_choice,
    )


def _token_row(label: str, candidate: Candidate, place: int, is_selected: bool) -> BarRow:
    return BarRow(
        label,
        candidate.probability,
        f"{candidate.label}  {percent_text(candidate.probability)}",
        detail=f"logit {value_text(candidate.logit)}",
        emphasis=is_selected,
        tooltip=f"position {place}: {_tooltip(candidate)}. Click selects the token",
    )


def _end_row(candidate: Candidate) -> BarRow:
    return BarRow(
        candidate.label,
        candidate.probability,
        percent_text(candidate.probability),
        detail=f"position {candidate.id} · logit {value_text(candidate.logit)}",
        tooltip=f"{_tooltip(candidate)}. Click selects the token",
    )


def _tooltip(candidate: Candidate) -> str:
    share = "" if math.isnan(candidate.probability) else f"share {candidate.probability:.6g}, "
    return f"“{candidate.label}”: {share}logit {value_text(candidate.logit)}"
