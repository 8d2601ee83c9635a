"""What the (i) of Effects says. Pure."""

from __future__ import annotations

from explorer.panels.about import About
from explorer.panels.effects.pages import head_sentence
from explorer.panels.effects.wording import in_unit
from explorer.session.state import State
from models.protocol.effects import EffectsView

_WHAT = (
    "What a head does is seen where it is taken away: its output is set to 0 before it is multiplied by W_O, and the "
    "model is run again. Blue: without it what is measured falls. Red: it rises.",
    "A click on a cell selects the head everywhere; the right button takes it out of the run, or holds it at its mean.",
    "Lens reads the stream after every layer by the model's own last norm and output head; Sum says what each part "
    "wrote towards the logit; Patch copies places of another text's run into this one; Tokens weighs the words.",
)
_TRY = (
    "Try: choose a second answer after “less”, the next likeliest say, and press Strongest: the head that decides "
    "between them."
)


def about(state: State) -> About:
    view, ran = state.results.of(EffectsView), state.ran
    if view is None or ran is None or view.request.run != ran.run:
        return About(_WHAT, _TRY)
    unit = state.document.view.unit
    return About.of((*_WHAT, head_sentence(in_unit(view, unit), None, unit)), _TRY)
