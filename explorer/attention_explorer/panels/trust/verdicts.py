"""What the strip says of each thing that it vouches for: a status, a few words, and the whole story. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

from attention_explorer.panels.trust.status_chip import StatusKind
from attention_models.protocol.atlas import AtlasView, EmptyRow
from attention_models.protocol.loading import Loaded
from attention_models.protocol.running import Ran
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import UNIT_ROUNDOFFS

ROW_TOLERANCE = 1e-5

SMALL = 256
"""Tokens of the longest text of which all is measured without being asked for."""

_AGAIN = "Click to measure again on what is on screen."
_TEXTBOOK = "A textbook model: its attention is this program's own function, held against its papers' formulas."
_TO_SUM = (
    "Whether every row of every head sums to 1 is not known yet. Of a short text that comes by itself, of a long one "
    "when All heads is opened."
)
_GIVEN = "These weights stand in the model's own output (output_attentions): nothing here computed them."


class Verdict(NamedTuple):
    status: StatusKind
    text: str
    story: str


def on_mode(loaded: Loaded | None) -> Verdict:
    """Whether dropout is off."""
    if loaded is None:
        return Verdict("pending", "no model yet", "A checkpoint is being opened.")
    if loaded.eval_mode:
        return Verdict("ok", "eval mode", "Dropout is off: nothing is thrown away at random.")
    return Verdict("error", "train mode", "Dropout is on: weights change from run to run.")


def _to_come(ran: Ran | None) -> StatusKind:
    """What is not measured yet comes by itself for a short text; for a long one somebody has to ask."""
    return "pending" if ran is None or len(ran.tokens) <= SMALL else "none"


def on_rows(loaded: Loaded | None, ran: Ran | None, atlas: AtlasView | None) -> Verdict:
    """Whether every row of every head sums to 1."""
    if ran is not None and not ran.sites:
        return Verdict("none", "no rows to sum", "This model attends to nothing: it has no weights.")
    if atlas is None or ran is None or atlas.request.run != ran.run or atlas.done < 1:
        is_begun = atlas is not None and ran is not None and atlas.request.run == ran.run
        return Verdict("pending" if is_begun else _to_come(ran), "rows to sum", _TO_SUM)
    counted = "sum" if atlas.sink_shares is None else "sum, with its sink's share,"
    story = f"Largest deviation of a row's {counted} from 1, over every row of every head: {atlas.row_error:.1e}."
    if atlas.sink_shares is not None:
        story += f" {_of_sinks(*atlas.sink_shares)}"
    if atlas.padding_rows:
        story += f" {_of_padding(atlas.padding_rows)}"
    if not atlas.row_error <= ROW_TOLERANCE:
        return Verdict("error", f"rows miss 1 by {atlas.row_error:.0e}", story)
    if atlas.first_empty is not None:
        rows = "1 row sums" if atlas.empty_rows == 1 else f"{atlas.empty_rows:,} rows sum"
        return Verdict("warning", f"{rows} to 0", f"{_of_empty_rows(atlas.empty_rows, atlas.first_empty, ran)} {story}")
    if atlas.sink_shares is not None:
        return Verdict("ok", "rows and sinks sum to 1", story)
    return Verdict("ok", "rows sum to 1", story)


def _of_sinks(least: float, most: float) -> str:
    return (
        "Every head here has a sink, a score beside those of the keys that takes a share of each row and gives no "
        f"value: {least:.1%} to {most:.1%} of a row. The weights that are drawn sum to the rest; the Cell panel says "
        "of each row how much."
    )


def _of_padding(count: int) -> str:
    rows, they = ("1 row", "It is") if count == 1 else (f"{count:,} rows", "They are")
    return (
        f"{rows} of padding may attend to nothing, and no token of the text attends to padding. {they} 0 here; "
        "transformers' eager attention spreads such a row evenly over all keys, since its softmax has to sum to 1."
    )


def _of_empty_rows(count: int, first: EmptyRow, ran: Ran) -> str:
    stack, layer = first.site.stack, first.site.layer
    tokens = ran.source if ran.source and stack == "encoder" else ran.tokens
    word = tokens[first.query].word if first.query < len(tokens) else str(first.query)
    these = "1 row attends" if count == 1 else f"{count:,} rows attend"
    which = "it is" if count == 1 else "the first is"
    return (
        f"{these} to nothing, since every key is masked: weights and outputs are 0 there; {which} “{word}” (position "
        f"{first.query}) in {stack} layer {layer}, head {first.head}."
    )


def on_input(report: TrustReport | None) -> Verdict | None:
    """Whether the ids are those of the tokenizer's own call; None before that is known, and of a picture."""
    found = report.input if report is not None else None
    if found is None:
        return None
    if found.equal is False:
        return Verdict("error", "wrong ids", found.story)
    if found.starts_twice:
        return Verdict("warning", "starts twice", found.story)
    if found.equal is None:
        return Verdict("none", "ids as given", found.story)
    return Verdict("ok", "ids", found.story)


def on_batch(report: TrustReport | None) -> Verdict | None:
    """Whether a text among others is read as if alone; None before that is known, and of a text that runs alone."""
    found = report.alone if report is not None else None
    if found is None:
        return None
    worst = max(found.weight_difference, found.logit_difference)
    story = (
        f"The shown text run alone, without the others of its batch: weights differ by at most "
        f"{found.weight_difference:.1e}, logits by {found.logit_difference:.1e} of the largest"
    )
    if found.tolerance is None:
        return Verdict("pending", "beside the text alone", f"{story}. Open the model in float32: rounding hides more.")
    story += f"; {found.tolerance:.0e} is allowed. {_AGAIN}"
    if found.holds:
        return Verdict("ok", "as if alone", story)
    return Verdict("error", f"differs from the text alone ({worst:.1g})", story)


def on_equality(loaded: Loaded | None, ran: Ran | None, report: TrustReport | None, is_measuring: bool) -> Verdict:
    """Whether the run equals the model's own eager attention, or what stands in its place."""
    if loaded is not None and loaded.info.textbook:
        return _on_formulas(ran, report, is_measuring)
    if loaded is not None and loaded.info.weights_only:
        return _on_own_weights(ran, report, is_measuring)
    if is_measuring:
        return Verdict("pending", "comparing with the model", "Running the model's own eager attention.")
    if report is None:
        story = "Click to run the model's own eager attention on this text."
        return Verdict(_to_come(ran), "compare with the model", story)
    dtype, share = loaded.dtype if loaded is not None else "float32", report.rounding
    story = f"{_end_to_end(report) if share is None else _beside(report, share, dtype)}{_of_input(report)} {_AGAIN}"
    edits = len(ran.inputs.interventions) if ran is not None else 0
    if edits:
        on = f"{edits} intervention{'s are' if edits > 1 else ' is'} on."
        return Verdict("warning", "edited run", f"{on} Untouched: {story}")
    if not report.has_own_picture:
        return Verdict("error", "not the picture as the model reads it", story)
    if report.computes_the_same:
        to = f"({_difference(report)})" if share is None else f"to {dtype} rounding"
        return Verdict("ok", f"equals the model {to}", story)
    return Verdict("error", f"differs from the model ({_difference(report)})", story)


def _on_own_weights(ran: Ran | None, report: TrustReport | None, is_measuring: bool) -> Verdict:
    """Of a model that gives its weights itself."""
    if is_measuring:
        return Verdict("pending", "asking the model again", "Running it without asking for its weights.")
    if report is None:
        return Verdict(_to_come(ran), "the model's own weights", f"{_GIVEN} Click to ask again on this text.")
    story = (
        f"{_GIVEN} Asked for none, it gave logits that differ by at most {report.logit_difference:.1e} of the "
        f"largest; asked once more, weights that differ by {report.weight_difference:.1e}; "
        f"{_allowed(report)}. {_AGAIN}"
    )
    if report.computes_the_same:
        return Verdict("ok", "the model's own weights", story)
    return Verdict("error", "the model's answers differ", story)


def _on_formulas(ran: Ran | None, report: TrustReport | None, is_measuring: bool) -> Verdict:
    """Of a textbook model."""
    if is_measuring:
        return Verdict("pending", "comparing with the formulas", "Computing its papers' formulas in float64.")
    if report is None:
        return Verdict(_to_come(ran), "textbook model", f"{_TEXTBOOK} Click to compare with them on this text.")
    worst = max(report.logit_difference, report.weight_difference)
    story = (
        f"{_TEXTBOOK} Computed again in float64 from the hidden states of this run, weights differ by at most "
        f"{report.weight_difference:.1e}, logits by {report.logit_difference:.1e} of the largest; "
        f"{report.tolerance:.0e} is allowed. {_AGAIN}"
    )
    if report.computes_the_same:
        return Verdict("ok", f"equals the formulas ({worst:.0e})", story)
    return Verdict("error", f"differs from the formulas ({worst:.0e})", story)


def _end_to_end(report: TrustReport) -> str:
    return (
        f"Against {report.against}{_extent(report)}: "
        f"weights differ by at most {report.weight_difference:.1e}, logits by {report.logit_difference:.1e} "
        f"of the largest; {_allowed(report)}."
    )


def _beside(report: TrustReport, rounding: float, dtype: str) -> str:
    """Where each layer was compared by itself: in half precision, and where rounding in float32 added up."""
    added_up = (
        f" From end to end rounding adds up to {report.end_to_end:.1e}, since large scores are rounded most."
        if report.end_to_end is not None
        else ""
    )
    return (
        f"Layer by layer against {report.against}, given the queries and keys of this run{_extent(report)}. In float32 "
        f"its weights differ by at most {report.weight_difference:.1e}; {report.tolerance:.2g} is allowed. In {dtype} "
        f"its weights, and what this run went on with, are off by {rounding:.0%} of what rounding each step by up to "
        f"{UNIT_ROUNDOFFS[dtype]:.0e} of its size explains; 100% is allowed. Logits come out again to "
        f"{report.logit_difference:.1e} of the largest; {report.logit_tolerance:.0e} is allowed.{added_up}"
    )


def _of_input(report: TrustReport) -> str:
    """Of a picture; nothing where there is nothing to compare with."""
    if report.input_difference is None:
        return ""
    return (
        " Its image processor, given the same file, makes pixels that differ from those of this run by at most "
        f"{report.input_difference:.1e}."
    )


def _difference(report: TrustReport) -> str:
    """How far it is from the model, in short."""
    if report.rounding is not None and 1 < report.rounding < math.inf:
        return f"{report.rounding:.3g} × rounding"
    worst = max(report.logit_difference, report.weight_difference)
    return "exactly" if worst == 0 else f"{worst:.0e}"


def _allowed(report: TrustReport) -> str:
    if report.tolerance == report.logit_tolerance:
        return f"{report.tolerance:.0e} is allowed"
    return f"{report.tolerance:.0e} of weights and {report.logit_tolerance:.0e} of logits is allowed"


def _extent(report: TrustReport) -> str:
    return f", on {report.rows} rows of every head spread over this long text" if report.rows else ""
