"""What the (i) of the experiment with random vectors says. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import entropy_text, value_text
from attention_models.protocol.variance import VarianceView

_WHAT = (
    "Why scores are divided by √d: a sum of d random products spreads like √d, and softmax of large scores picks one "
    "key and learns no more."
)
_TRY = (
    "Try: drag the slider of d to both ends, and compare the two rows of bars: scores as they are, and divided by √d."
)


def about(state: State, view: VarianceView | None, at: int, real: str) -> About:
    """`at` is the dimension that the slider shows, `real` what the panel says of the selected head."""
    if view is None:
        coming = "The plots appear when a checkpoint is open: what they draw is measured as you watch."
        return About((_WHAT, coming), _TRY)
    e = view.experiment
    d, unit = int(e.dimensions[at]), state.document.view.unit
    variance, law = value_text(float(e.variance[at])), value_text(float(e.law[at]))
    largest, entropies = ([float(values[i, at]) for i in (0, 1)] for values in (e.largest, e.entropy))
    softmax = (
        f"The largest weight of a row is {value_text(largest[0])} there, and {value_text(largest[1])} after dividing "
        f"by √{d:,}; its entropy {entropy_text(entropies[0], unit)}, and {entropy_text(entropies[1], unit)}."
    )
    measured = f"At d = {d:,} the variance of q · k was measured as {variance}; the law says {law}."
    return About.of((_WHAT, measured, softmax, real), _TRY)
