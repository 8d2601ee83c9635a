"""What the (i) of a recurrent model's states says. Pure."""

from __future__ import annotations

import math

import numpy as np

from attention_explorer.panels.about import About
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import of_possible, value_text
from attention_models.protocol.information import entropy
from attention_models.protocol.recurrent_states import RecurrentView

_WHAT = "How a recurrent model works through a text: one state after the other, each a column of numbers."
_NOT = "The open model is a transformer: it carries no state from token to token, so there is none to show."
_TRY = "Try: click another step of the decoder, and see which source tokens it looks at then."
_TRY_BOTTLENECK = "Try: write a longer sentence: the one vector stays as long as it is, and the translation gets worse."


def about(state: State, sentence: str, view: RecurrentView | None) -> About:
    """`sentence` is what the panel says of the selected step, `view` what it shows."""
    loaded, ran = state.results.loaded, state.ran
    if loaded is not None and not loaded.info.textbook:
        return About(
            (
                _NOT,
                _WHAT,
                "Attention was invented for such models, in 2014, to give the decoder more than the last state.",
            ),
            "Try: press the button, which opens one.",
        )
    if view is None or ran is None or view.request.run != ran.run:
        return About((_WHAT, "The states appear when the model has run."), _TRY)
    directions, width = len(view.encoder), view.encoder[0].shape[1]
    reads = (
        f"The encoder reads {len(view.encoder[0])} "
        f"tokens{', once in each direction' if directions == 2 else ''}: {width} numbers a state; the decoder "
        f"takes {len(view.states)} steps of {view.states.shape[1]}."
    )
    return About.of(
        (f"{_WHAT} {reads}", sentence, _spread(state, view)), _TRY if view.weights is not None else _TRY_BOTTLENECK
    )


def _spread(state: State, view: RecurrentView) -> str:
    if view.weights is None:
        return (
            "There is no attention here: all that the decoder knows of the source is one vector of norm "
            f"{value_text(float(np.linalg.norm(view.contexts[0])))}."
        )
    step = min(state.selection.query, len(view.weights) - 1)
    row = view.weights[step]
    count = len(row) if view.masked is None else int((~view.masked[step]).sum())
    if count < 2:
        return ""
    unit = state.document.view.unit
    bits = of_possible(float(entropy(row)), math.log2(count), unit)
    return f"The entropy of its row of weights is {bits}: 0 is all on one source token."
