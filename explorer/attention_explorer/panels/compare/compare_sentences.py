"""What Compare says of two runs in words. Pure."""

from __future__ import annotations

import math

from attention_explorer.panels.compare.places import words_of
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.widgets.number_text import counted, percent_text, signed, value_text
from attention_explorer.widgets.token_text import apart, shortened
from attention_models.protocol.information import Unit, from_bits, from_nats
from attention_models.protocol.two_runs import HeadChange, RunSide, TwoRunsView
from attention_models.protocol.values import Candidate, SiteRef

MEASURE = (
    "How much a head changed: the mean over aligned rows of half the sum of |A − B| over the keys (the total variation "
    "distance). 0 is the same weights, 1 that the two attend to nothing in common."
)
LEGEND = (
    "A − B is red where A attends more and blue where B does. Hatched: masked in both, or a token that only one has."
)
TYPING = "Press Enter to run B on this text. What is shown below is of the text before it."
SAME = (
    "A and B are the same state: every difference is 0. Type another text, open another checkpoint, switch a head off "
    "or choose another head of B, and see what moves."
)


def said(side: RunSide) -> str:
    """What one run says, in large type: its likeliest next token, its class, or what it wrote."""
    if side.family == "seq2seq" and side.written:
        return side.written.strip()
    output = side.output
    if output.kind == "none" or not output.candidates:
        return "—"
    return _named(output.candidates[0])


def share(side: RunSide) -> str:
    """How likely that is, beside it; "" of a translation, which is many tokens."""
    output = side.output
    if output.kind == "none" or not output.candidates or (side.family == "seq2seq" and side.written):
        return ""
    return _amount(output.candidates[0])


def more_said(side: RunSide, unit: Unit) -> str:
    """The dim line below: what comes after the likeliest, and the loss; why nothing is said where nothing is."""
    output = side.output
    if output.kind == "none":
        return output.why
    translated = side.family == "seq2seq" and bool(side.written)
    where = _where(side)
    listed = output.candidates[:3] if translated else output.candidates[1:3]
    others = ", ".join(f"{_named(candidate)} {_amount(candidate)}" for candidate in listed)
    parts = [where if not listed else f"{where}{': ' if translated else ', then '}{others}".removeprefix(", ")]
    if output.loss is not None:
        parts.append(f"loss {value_text(from_nats(output.loss, unit))} {unit} a token")
    elif not math.isnan(output.entropy):
        parts.append(f"entropy {value_text(from_bits(output.entropy, unit))} {unit}")
    return " · ".join(part for part in parts if part)


def _where(side: RunSide) -> str:
    """ "after “to”", or "at “[MASK]”" of a model that fills masks; "" of a text or picture as a whole."""
    output = side.output
    if output.kind != "words" or not 0 <= output.position < len(side.tokens):
        return ""
    word = shortened(side.tokens[output.position].word)
    return f"at “{word}”" if side.family == "masked" else f"after “{word}”"


def title_of(side: RunSide) -> str:
    """Which checkpoint, and what is changed in it."""
    parts = [apart(side.name)]
    if side.interventions:
        parts.append(side.interventions[0] if len(side.interventions) == 1 else f"{len(side.interventions)} changes")
    if side.adapter:
        parts.append(apart(side.adapter))
    return " · ".join(parts)


def head_words(side: RunSide) -> str:
    """ "layer 5, head 5"; "no head" where there is none."""
    if side.site is None or side.head is None:
        return "no head"
    return name_of_head(side.site, side.head, [site.ref for site in side.sites])


def largest(view: TwoRunsView) -> tuple[str, str]:
    """The difference that is furthest from 0, and where it is; "" where nothing is compared."""
    maps = view.maps
    if maps is None:
        return "—", ""
    if maps.largest_at is None:
        return "0", "no weight differs"
    row, column = maps.largest_at
    in_tile = maps.difference[row, column] if maps.cell == 1 and maps.difference.shape > (row, column) else math.nan
    number = value_text(maps.largest) if math.isnan(float(in_tile)) else signed(float(in_tile))
    queries, keys = words_of(view, "queries").both, words_of(view, "keys").both
    return number, f"largest: from “{shortened(queries[row])}” to “{shortened(keys[column])}”"


def change_name(change: HeadChange, view: TwoRunsView) -> str:
    """A head of the list, with the one of B where that is another."""
    name = name_of_head(change.site, change.head, [site.ref for site in view.a.sites])
    if (change.site, change.head) == (change.other_site, change.other_head):
        return name
    other = name_of_head(change.other_site, change.other_head, [site.ref for site in view.b.sites])
    return f"{name} ~ {other}"


def matched(view: TwoRunsView, site: SiteRef, head: int) -> str:
    """How the head of B that is shown was found; "" where it was chosen by hand."""
    change = view.counterpart(site, head)
    if change is None or math.isnan(change.similarity):
        return ""
    return f"most like A's: {change.similarity:.2f}, over {counted(view.matched_over, 'row')}"


def remarks(view: TwoRunsView) -> str:
    """Everything that is to be known of the comparison, in sentences; "" where nothing is."""
    found = [*view.why_not]
    same_head = (view.a.site, view.a.head) == (view.b.site, view.b.head)
    if view.same_run and same_head:
        found.append(SAME)
    elif view.same_run:
        found.append("Two heads of one run: what it says is the same.")
    if view.why_not_by_index:
        found.append(view.why_not_by_index)
    found += view.remarks
    if view.done >= 1 and view.a.site is not None and view.b.site is None and view.b.sites and not view.why_not:
        name = head_words(view.a)
        found.append(
            f"{name[0].upper()}{name[1:]} has no counterpart in B: choose a head of B below, or click one of the list."
        )
    return " ".join(found)


def aligned(view: TwoRunsView) -> str:
    """How tokens are aligned, and how many of them stand alone."""
    axis = view.keys
    if axis is None:
        return ""
    replaced = sum(place.is_shared and not place.same for place in axis.places)
    parts = [f"Aligned {axis.how}"]
    if replaced:
        parts.append(f"{counted(replaced, 'place')} with other words")
    for name, alone in (("A", axis.alone_a), ("B", axis.alone_b)):
        if alone:
            parts.append(f"{counted(len(alone), 'token')} only in {name}")
    return f"{'; '.join(parts)}."


def _named(candidate: Candidate) -> str:
    return candidate.label.lstrip("␣") or candidate.label


def _amount(candidate: Candidate) -> str:
    if math.isnan(candidate.probability):
        return value_text(candidate.logit)
    return percent_text(candidate.probability)
