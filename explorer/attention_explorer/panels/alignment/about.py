"""What the (i) of an alignment says. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import counted
from attention_models.protocol.alignment import AlignmentView

_WHAT = (
    "Which words of the source the decoder looked at as it wrote each word of the target: its cross-attention "
    "as ribbons."
)
_TRY_ONE = "Try: click a word of the target above the table, and see where its ribbons go."
_TRY = f"{_TRY_ONE[:-1]}; then All heads, for the mean over all of them."


def about(state: State, sentence: str, view: AlignmentView | None) -> About:
    """`sentence` is what the panel says of the selected word, `view` what it shows."""
    loaded, ran = state.results.loaded, state.ran
    if loaded is not None and all(stack.stack != "cross" for stack in loaded.info.stacks):
        told = "The open model has no attention from a target to a source, so there is nothing to align."
        return About((told, _WHAT), "Try: press the button, which opens a model that translates.")
    heads = 0 if ran is None else sum(site.heads for site in ran.sites if site.stack == "cross")
    try_ = _TRY_ONE if heads == 1 else _TRY
    if ran is None or view is None or view.request.run != ran.run:
        return About((_WHAT, "The ribbons appear when the model has run."), try_)
    what, rows = "word" if view.request.words else "token", len(view.weights)
    counts = (
        f"{counted(rows, what)} of the target over {counted(view.weights.shape[1], what)} of the source, and "
        f"each row sums to 1. Shown is the {view.description}."
    )
    return About.of((_WHAT, counts, sentence), try_)
