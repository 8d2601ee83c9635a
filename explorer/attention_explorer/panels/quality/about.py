"""What the (i) of quality against length says. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.quality.quality_sentences import conclusion, noun_of
from attention_explorer.session.state import State
from attention_models.protocol.information import Unit
from attention_models.protocol.quality import QualityView

_WHAT = (
    "How well sentences are translated, short ones to long ones, by a decoder with attention and by one that "
    "is given a single vector."
)
_WHY = (
    "That vector, the bottleneck, is as long for forty words as for four: what does not fit is lost. Attention "
    "goes back to every source token instead."
)
_TRY = (
    "Try: press Run, and when points have come, click one at the right and read what each model made of a long "
    "sentence."
)


def about(state: State, view: QualityView | None, measure: int) -> About:
    unit: Unit = state.document.view.unit
    if view is None or not view.bins:
        return About((_WHAT, _WHY, "Nothing is measured yet: it takes a minute or two, and can be stopped."), _TRY)
    longest = view.bins[-1]
    done = (
        f"{view.done:,} of {view.total:,} translations are done; the longest {noun_of(view)} measured have "
        f"{longest.name} {view.unit}, {longest.sentences:,} of them."
    )
    return About.of((_WHAT, _WHY, done, conclusion(view, measure, unit)), _TRY)
