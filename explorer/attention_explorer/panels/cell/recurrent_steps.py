"""A `CellView` of a recurrent model in words: the score of Bahdanau or Luong, and what its context is for."""

from __future__ import annotations

from attention_explorer.panels.cell.step_list import (
    Explained,
    Step,
    mask_step,
    mixed_step,
    score_step,
    softmax_step,
    sum_step,
    weight_step,
)
from attention_explorer.panels.cell.vector_bars import VectorRow, in_brackets, product_sentence
from attention_explorer.widgets.number_text import MINUS, added, value_text
from attention_models.protocol.cell import CellView, RecurrentScore

HEADINGS = ("score e", "into softmax", "weight")

_FORMULAS = {
    "bahdanau": "v · tanh(W s + U h)",
    "concat": "v · tanh(W [s; h])",
    "general": "s · W h",
    "dot": "s · h",
}
_MEANINGS = {
    "bahdanau": "How well the decoder's state s, before this token goes in, fits the encoder's state h: the sum of the "
    "last bars. Bahdanau et al. 2015, A.1.2.",
    "concat": "W [s; h] is W s + U h with one matrix, s being the decoder's state with this token in. Luong et al. "
    "2015, eq. 8.",
    "general": "The decoder's state s, with this token in, times the encoder's state h seen through W. Luong et al. "
    "2015, eq. 8.",
    "dot": "The decoder's state s, with this token in, times the encoder's state h at the decoder's width. Luong et "
    "al. 2015, eq. 8.",
}


def vector_rows(score: RecurrentScore, query: str, key: str) -> tuple[VectorRow, ...]:
    """The bars from the two states to the products whose sum is the score."""
    if score.tanh is None:
        looked_at = "W h" if score.kind == "general" else "h"
        return (
            VectorRow(f"s  {query}", score.state, "query"),
            VectorRow(f"{looked_at}  {key}", score.key, "key"),
            VectorRow("product", score.products),
        )
    return (
        VectorRow(f"W s  {query}", score.state, "query"),
        VectorRow(f"U h  {key}", score.key, "key"),
        VectorRow("tanh", score.tanh),
        VectorRow("v × tanh", score.products),
    )


def dimension_sentence(score: RecurrentScore, dimension: int, numbers: list[float]) -> str:
    """One dimension written out: "tanh(0.31 − 0.20) = 0.110, × 0.520 = 0.057"."""
    if score.v is None:
        return product_sentence(dimension, numbers)
    state, key, tanh, product = numbers
    v = in_brackets(value_text(float(score.v[dimension])))
    return f"tanh({value_text(state)} {added(key)}) = {value_text(tanh)}; × {v} = {value_text(product)}"


def recurrent_steps(view: CellView, score: RecurrentScore) -> list[Explained]:
    """The steps from the two states to the context, in order."""
    steps = [_score(view, score), _nearness(view, score), _window(view, score), softmax_step(view), weight_step(view)]
    steps += [_mixed(view), _context(view), _after(score)]
    return [step for step in steps if step is not None]


def _score(view: CellView, score: RecurrentScore) -> Explained:
    return score_step(view, _FORMULAS[score.kind], _MEANINGS[score.kind])


def _nearness(view: CellView, score: RecurrentScore) -> Explained | None:
    if score.place is None or score.gaussian is None:
        return None
    formula = f"{value_text(view.raw)} {added(score.gaussian)} = {value_text(view.score)}"
    distance = abs(view.request.key - score.place)
    return Explained(
        Step("nearness", formula, f"{value_text(distance)} from p = {value_text(score.place)}"),
        f"{MINUS}(j {MINUS} p)² / 2σ² for the distance from the place p that was predicted. Luong et al. 2015, eq. 10.",
    )


def _window(view: CellView, score: RecurrentScore) -> Explained:
    if score.place is None:
        meaning = "Global attention looks over the whole source at every step."
        return mask_step(view, "mask", "every source token is open", meaning)
    side = "outside of" if view.masked else "within"
    why = f"{side} the window around {value_text(score.place)}"
    meaning = "Local attention looks at a few tokens to each side of one place. Luong et al. 2015, 3.2."
    return mask_step(view, "window", why, meaning)


def _mixed(view: CellView) -> Explained:
    meaning = "The encoder's state times its weight: here what is looked at and what is read are the same vector."
    return mixed_step(view, "h", meaning)


def _context(view: CellView) -> Explained:
    meaning = "c, the expected state of the source at this step. Bahdanau et al. 2015, eq. 5."
    return sum_step(view, "context", "h", "all source tokens", meaning)


def _after(score: RecurrentScore) -> Explained:
    if score.kind == "bahdanau":
        return Explained(
            Step("→ state", "s′ = f(s, y, c)", "goes into the decoder", "result"),
            "The context c and the token y turn the decoder's state into the next. Bahdanau et al. 2015, eq. 4.",
        )
    return Explained(
        Step("→ output", "tanh(W_c [c; s])", "is mixed in afterwards", "result"),
        "The context joins the state on its way to the next token. Luong et al. 2015, eq. 5.",
    )
