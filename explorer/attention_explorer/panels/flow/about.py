"""What the (i) of the picture of the model says. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attention_explorer.panels.about import About
from attention_explorer.panels.flow.flow_sentences import (
    block_sentence,
    input_sentence,
    output_sentence,
    recurrent_sentence,
)
from attention_explorer.panels.flow.model_scene import ModelScene, OutputGroup, Place
from attention_explorer.panels.flow.recurrent_scene import RecurrentScene
from attention_explorer.session.view_options import Distance
from attention_explorer.widgets.number_text import counted, value_text
from attention_models.protocol.matrices import MatricesView

_WHAT = (
    "The whole model in one picture: each lane is the residual stream of one token, as wide as its norm; each "
    "bar is what a part of a block wrote into it."
)
_BLOCK = "One block, box by box: every module that ran for the selected token, and what it made of its vector."
_MATRICES = "One head as matrices: queries times keys, scaled, masked, softmax, times values."
_TIME = "A recurrent model in time: the encoder reads token after token into a state, the decoder writes from it."
_BEFORE = "It appears when the model has run, from what the model reads, at the bottom, to what it says at the top."
_TRY = "Try: press Play, or click a block to select it, again to open it; there a box has its numbers. Esc goes out."
_TRY_BLOCK = "Try: click a box to read its numbers, and Switch off to see what the model says without it; Esc goes out."
_TRY_MATRICES = (
    "Try: click a cell of the weights: its query's row and its key's column light up in every matrix. Esc goes out."
)
_TRY_TIME = (
    "Try: press Play, and watch the state go from token to token; with attention, arcs go back to every source token."
)


def waiting() -> About:
    return About((_WHAT, _BEFORE), _TRY)


def of_time(scene: RecurrentScene, step: int) -> About:
    """Of a recurrent model, at a step of its decoder."""
    counts = (
        f"Here {counted(len(scene.source), 'token')} of the source are read, one after the other, and "
        f"{counted(len(scene.target), 'step')} of the target follow."
    )
    return About(
        (_TIME, counts, recurrent_sentence(scene, len(scene.source) + min(step, len(scene.target) - 1))), _TRY_TIME
    )


def of_model(scene: ModelScene, at: Place, outputs: Sequence[OutputGroup], distance: Distance) -> About:
    """Of the selected block and token."""
    stack = scene.stacks[at.stack]
    what, to_try = (_BLOCK, _TRY_BLOCK) if distance == "block" else (_WHAT, _TRY)
    blocks = sum(len(each.flow.blocks) for each in scene.stacks)
    begins = f"{counted(blocks, 'block')}. {input_sentence(stack, at.position)}" if distance == "model" else ""
    said = block_sentence(stack, at) if at.block >= 0 else ""
    output = next((output_sentence(group) for group in outputs if group.rows), "")
    return About.of((what, begins, said, output), to_try)


def of_matrices(view: MatricesView | None, query: str, key: str, at: tuple[int, int]) -> About:
    """Of the selected cell, whose tokens are called `query` and `key`."""
    if view is None:
        return About((_MATRICES, "The matrices appear when they are computed."), _TRY_MATRICES)
    row, column = at[0] - view.request.first_query, at[1] - view.request.first_key
    sizes = (
        f"Q is {view.queries} × {view.q.shape[1]}, K {view.keys} × {view.k.shape[1]} and V {view.keys} × "
        f"{view.v.shape[1]}: a row a token."
    )
    if not (0 <= row < len(view.weights) and 0 <= column < view.weights.shape[1]):
        return About((_MATRICES, sizes), _TRY_MATRICES)
    cell = (
        f"“{query}” and “{key}”: q · k is {value_text(float(view.raw[row, column]))}, the score "
        f"{value_text(float(view.scores[row, column]))}, the weight "
        f"{value_text(float(view.weights[row, column]))}."
    )
    return About((_MATRICES, sizes, cell), _TRY_MATRICES)
