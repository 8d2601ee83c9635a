"""`reduce(state, intent)`: the only place where one state becomes the next. Pure: nothing is posted, drawn or changed.

Where an intent changes nothing, the very same state comes back. Each kind of intent has a rule; most of them stand in
the modules that end in `_rules`.
"""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session import (  # noqa: F401 - for their rules
    batch_rules,
    comparing_rules,
    corpus_rules,
    example_rules,
    experiment_rules,
    intervention_rules,
    stepping_rules,
    text_rules,
    training_rules,
    view_rules,
    writing_rules,
)
from attention_explorer.session.intents import (
    Arrived,
    AskCorpus,
    Busy,
    ChooseCorpus,
    ExperimentTold,
    Intent,
    Measure,
    Show,
    TrainingTold,
)
from attention_explorer.session.result_rules import arrive
from attention_explorer.session.rules import broken_off, rule, without_notice
from attention_explorer.session.state import State
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.quality import QualityRequest, QualityView
from attention_models.protocol.running import ForwardRequest

_LASTING_LANES = frozenset({LoadRequest.lane, ForwardRequest.lane})
"""Lanes whose notices stay until the checkpoint or the text is another one, whatever else is done."""

_OF_THE_PROGRAM = (Arrived, Busy, Show, TrainingTold, ExperimentTold)


def reduce(state: State, intent: Intent) -> State:
    """The state after `intent`.

    Raises:
        TypeError: no rule for this kind of intent.
        ValueError: the intent names a head, a view option or a value that does not exist; the sentence says which.
    """
    new = rule(intent, state)
    if new.document.origin != state.document.origin:
        new = replace(broken_off(new), beam=())  # what is being written is of another text
    if new.document.corpus != state.document.corpus and not isinstance(intent, (ChooseCorpus, AskCorpus)):
        new = replace(new, reading=False)  # undone, or of a session: nothing is read unasked
    went_on = not isinstance(intent, _OF_THE_PROGRAM) and new.document != state.document
    if went_on and new.example is state.example is not None:
        new = replace(new, example=None)  # the person was faster than its run
    if went_on and new.notice is not None and new.notice is state.notice and new.notice.lane not in _LASTING_LANES:
        return replace(new, notice=None)  # it was said of something that the person has left behind
    return new


# --------------------------------------------------------------------------- the engine and the window


@rule.register
def _(intent: Arrived, state: State) -> State:
    return arrive(state, intent.result)


@rule.register
def _(intent: Measure, state: State) -> State:
    if intent.request == state.measuring:
        return state
    results = state.results if intent.request is None else state.results.without(QualityView)
    return replace(without_notice(state, {QualityRequest.lane}), measuring=intent.request, results=results)


@rule.register
def _(intent: Busy, state: State) -> State:
    if intent.lanes == state.live.busy:
        return state
    # A request that was called off is never answered, so its progress ends here.
    progress = tuple(p for p in state.live.progress if p.request.lane in intent.lanes)
    return state.with_live(busy=intent.lanes, progress=progress)


@rule.register
def _(intent: Show, state: State) -> State:
    return state if intent.notice == state.notice else replace(state, notice=intent.notice)
