"""What the steps of both kinds of attention share: a step with its meaning, and the formulas that are the same."""

from __future__ import annotations

from dataclasses import dataclass

from attention_explorer.panels.cell.step_list import Step
from attention_explorer.widgets.number_text import MINUS, added, counted, value_text
from attention_models.protocol.cell import CellView

_SHARE = "Divided by the sum over the row: its weights then sum to 1. A cell of the map. Vaswani et al. 2017, eq. 1."
_SHARE_BESIDE_A_SINK = (
    "Divided by the sum over the row and a sink, a learned score that belongs to no key: the weights sum to 1 less its "
    "share, and no value is taken for that. A cell of the map. Xiao et al. 2023; OpenAI 2025 (gpt-oss)."
)


@dataclass(frozen=True, slots=True)
class Explained:
    """A step, and what it is: the equation and where it comes from. `meaning` holds no numbers."""

    step: Step
    meaning: str


def score_step(view: CellView, formula: str, meaning: str) -> Explained:
    """The sum of the products that the bars show."""
    step = Step("score", f"{formula} = {value_text(view.raw)}", f"sum of {counted(len(view.products), 'product')}")
    return Explained(step, meaning)


def mask_step(view: CellView, name: str, why: str, meaning: str, *, edited: bool = False) -> Explained:
    """Whether the cell takes part in the softmax, and why."""
    formula = f"masked: {MINUS}∞ in its place" if view.masked else "allowed"
    return Explained(Step(name, formula, why, "warning" if edited else "plain"), meaning)


def softmax_step(view: CellView) -> Explained:
    """The cell's own numerator."""
    if view.shift is None:
        step = Step(
            "softmax", "no key to share between", f"all {counted(len(view.row_masked), 'key')} masked", "warning"
        )
    elif view.masked:
        step = Step("softmax", f"e^({MINUS}∞) = 0", "masked")
    else:
        exponent = f"{value_text(view.score)} {added(-view.shift)}"
        step = Step("softmax", f"e^({exponent}) = {value_text(view.numerator)}", "less the row's largest")
    return Explained(
        step,
        "Taking the row's largest score off all leaves the quotient as it is, and no power overflows. "
        "Vaswani et al. 2017, eq. 1.",
    )


def sink_share(view: CellView) -> float:
    """What the sink takes of the row."""
    assert view.sink is not None
    return view.sink / view.denominator


def weight_step(view: CellView) -> Explained:
    """The numerator's share of the row."""
    if view.shift is None:
        step = Step("weight", "0", "the model then takes no value at all", "warning")
        return Explained(step, "0 / 0 is no number: where a row has no key left, its weights are set to 0.")
    quotient = f"{value_text(view.numerator)} / {value_text(view.denominator)}"
    note = f"share among {counted(int((~view.row_masked).sum()), 'key')}"
    if view.sink is not None:
        note += f"; the sink takes {sink_share(view):.1%}"
    step = Step("weight", f"{quotient} = {value_text(view.weight)}", note, "result")
    return Explained(step, _SHARE if view.sink is None else _SHARE_BESIDE_A_SINK)


def mixed_step(view: CellView, letter: str, meaning: str) -> Explained:
    """The weight times the vector that is read, in lengths. `letter` is what that vector is called."""
    numbers = f"{value_text(view.weight)} × {value_text(view.value_norm)} = {value_text(view.mixed_norm)}"
    return Explained(
        Step(f"× {letter}", f"w ‖{letter}‖ = {numbers}", f"length of {counted(len(view.value), 'number')}"), meaning
    )


def sum_step(view: CellView, name: str, letter: str, of: str, meaning: str) -> Explained:
    """The sum over the row of weight times vector, in length; `of` says over what."""
    return Explained(Step(name, f"‖Σ w {letter}‖ = {value_text(view.head_output_norm)}", f"{of} together"), meaning)
