"""What the (i) of the player says, of the step in view. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.widgets.number_text import counted, percent_text
from attention_explorer.widgets.token_text import shortened
from attention_models.protocol.decoding import DecodeStepView

_WHAT = (
    "The model writes one token a step: it gives every token a probability, the settings cut and reshape "
    "these, and one is taken."
)
_BEFORE = (
    "Nothing is written yet. Greedy takes the likeliest each time, Sample draws by the probabilities, Beam "
    "follows several texts at once."
)
_FILLS = (
    "The model fills one mask a step, the one that it is most certain of: it gives every token a probability there, "
    "the settings cut and reshape these, and one is taken."
)
_BEFORE_FILLING = (
    "Nothing is filled yet. Greedy takes the likeliest each time, Sample draws by the probabilities; Beam is for "
    "models that write from left to right."
)
_TRY = "Try: press Step a few times, then click another candidate than the one that was taken: the text branches there."


def about(step: DecodeStepView | None, silence: str, written: int, said: str, fills: bool = False) -> About:
    """`silence` says why the model writes nothing.

    `written` counts the steps of the text in view, and `said` is the line about the last of them. A masked model
    `fills` masks.
    """
    what = _FILLS if fills else _WHAT
    if silence:
        return About((silence, what), "Try: open a model that writes, as story-gpt or en-es, and press Step.")
    if step is None:
        return About((what, _BEFORE_FILLING if fills else _BEFORE), _TRY)
    return About.of(
        (
            what,
            f"{counted(written, 'step')} of this text {'is' if written == 1 else 'are'} in view. {said}",
            _candidates(step),
            _cut(step),
        ),
        _TRY,
    )


def _candidates(step: DecodeStepView) -> str:
    if not step.candidates:
        count = sum(beam.kept for beam in step.beams)
        return (
            f"Of {counted(len(step.beams), 'continuation')} that this step considered the search goes on from {count}."
            if step.beams
            else ""
        )
    first = max(step.candidates, key=lambda candidate: candidate.probability)
    listed = percent_text(min(1.0, sum(candidate.probability for candidate in step.candidates)))
    return (
        f"The likeliest by the model was “{shortened(first.label)}” with {percent_text(first.probability)}; the "
        f"{len(step.candidates)} candidates that are listed have {listed} together."
    )


def _cut(step: DecodeStepView) -> str:
    cut = sum(stage.tokens for stage in step.stages)
    if not cut:
        return ""
    return (
        f"The filters cut {counted(cut, 'token')}, which the model gave "
        f"{percent_text(sum(stage.probability for stage in step.stages))}."
    )
