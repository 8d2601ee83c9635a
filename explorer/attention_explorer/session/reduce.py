"""`reduce(state, intent)`: the only place where one state becomes the next. Pure: nothing is posted, drawn or changed.

Where an intent changes nothing, the very same state comes back. Each kind of intent has a rule; most of them stand in
the modules that end in `_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args, get_origin, get_type_hints

from attention_explorer.session import (  # noqa: F401 - for their rules
    example_rules,
    stepping_rules,
    text_rules,
    training_rules,
    writing_rules,
)
from attention_explorer.session.comparing import loses_its_continuation, opened_from
from attention_explorer.session.corpus import corpus_view
from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.intents import (
    AddTexts,
    Arrived,
    AskCorpus,
    AskEffects,
    AskHeads,
    BlockCell,
    Busy,
    ChooseCorpus,
    ChooseProbe,
    ClearInterventions,
    ColourByRole,
    CompareWith,
    ExperimentTold,
    Intent,
    KeepShownText,
    Measure,
    OpenCheckpoint,
    OpenDocument,
    OpenRun,
    PaintCells,
    PutIntervention,
    ReadCorpus,
    RemoveIntervention,
    RemoveText,
    RestoreDocument,
    RunExperiment,
    SelectCell,
    SelectHead,
    SelectHeadOfB,
    SelectKey,
    SelectQuery,
    SetAboveEven,
    SetBadges,
    SetPadding,
    SetText,
    SetView,
    Show,
    ShowPlace,
    ShowText,
    StopExperiment,
    SwapStates,
    SwitchIntervention,
    TellTraining,
    TrainingTold,
)
from attention_explorer.session.result_rules import arrive
from attention_explorer.session.rules import (
    another_text,
    broken_off,
    chooses,
    rule,
    with_prompt_of,
    without_notice,
    without_sentence,
)
from attention_explorer.session.state import (
    BatchText,
    Compared,
    InterventionItem,
    Notice,
    Selection,
    State,
    clamped,
    site_of,
)
from attention_explorer.session.text_limits import MOST_CHARACTERS, check_document
from attention_explorer.session.texts import alone, showing, texts_of, with_more_texts, with_texts, without_text
from attention_explorer.session.training import FELL, Curves
from attention_explorer.session.view_options import ViewOptions
from attention_models.protocol.batch import MOST_TEXTS
from attention_models.protocol.corpus import CorpusRequest, CorpusView
from attention_models.protocol.experiment_messages import RunsBegan, RunsEnded, RunsLearned, RunsMeasured
from attention_models.protocol.interventions import Intervention, Mask, is_neutral, same_slot
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.quality import QualityRequest, QualityView
from attention_models.protocol.roles import ROLE_NAMES, RolesRequest, RolesView
from attention_models.protocol.running import ForwardRequest
from attention_models.protocol.training_messages import Failed, Fell, Pause, Said
from attention_models.protocol.values import SiteRef

# What is selected, and how it is drawn: how an intent changes it. Pure.


_VIEW_TYPES = get_type_hints(ViewOptions)


@rule.register
def _(intent: SelectHead, state: State) -> State:
    site = site_of(state.ran, intent.site)
    if site is None:
        raise ValueError(_no_such_site(state, intent.site))
    if not 0 <= intent.head < site.heads:
        raise ValueError(
            f"There is no head {intent.head} in {site.stack} layer {site.layer}: its heads are 0 to {site.heads - 1}."
        )
    return _select(state, site=intent.site, head=intent.head)


@rule.register
def _(intent: SelectQuery, state: State) -> State:
    return _select(state, query=intent.query)


@rule.register
def _(intent: SelectKey, state: State) -> State:
    return _select(state, key=intent.key)


@rule.register
def _(intent: SelectCell, state: State) -> State:
    return _select(state, query=intent.query, key=intent.key)


def _select(state: State, **changes: object) -> State:
    selection = replace(state.of_the_run, chosen=True, **changes)  # type: ignore[arg-type]
    return state.with_document(selection=clamped(selection, state.ran))


def _no_such_site(state: State, ref: SiteRef) -> str:
    if state.ran is None:
        return f"There is no {ref.stack} layer {ref.layer} to select: no text has run yet."
    layers = [site.layer for site in state.ran.sites if site.stack == ref.stack]
    if not layers:
        return f"There is no {ref.stack} layer {ref.layer}: this model has no {ref.stack} attention to look at."
    return f"There is no {ref.stack} layer {ref.layer}: the {ref.stack} layers are {min(layers)} to {max(layers)}."


@rule.register
def _(intent: AskEffects, state: State) -> State:
    return state.with_document(effects=intent.effects)


@rule.register
def _(intent: AskHeads, state: State) -> State:
    return _with_heads(state, question=intent.question, role="")


@rule.register
def _(intent: ColourByRole, state: State) -> State:
    if intent.role not in ROLE_NAMES:
        raise ValueError(f"There is no role “{intent.role}”.")
    return _with_heads(state, question=None, role=intent.role)


@rule.register
def _(intent: SetBadges, state: State) -> State:
    return _with_heads(state, badges=intent.on)


@rule.register
def _(intent: SetAboveEven, state: State) -> State:
    return _with_heads(state, above_even=intent.on)


def _with_heads(state: State, **changes: object) -> State:
    return state.with_document(heads=replace(state.document.heads, **changes))  # type: ignore[arg-type]


@rule.register
def _(intent: SetView, state: State) -> State:
    if intent.option not in _VIEW_TYPES:
        raise ValueError(f"There is no view option {intent.option!r}: there are {', '.join(_VIEW_TYPES)}.")
    _check_view_value(intent.option, intent.value)
    return state.with_document(view=replace(state.document.view, **{intent.option: intent.value}))  # type: ignore[arg-type]


def _check_view_value(option: str, value: object) -> None:
    kind = _VIEW_TYPES[option]
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            choices = ", ".join(map(repr, get_args(kind)))
            raise ValueError(f"The view option {option} cannot be {value!r}: it is one of {choices}.")
    elif type(value) is not kind:  # not isinstance: True is an int
        raise ValueError(f"The view option {option} cannot be {value!r}: it is a {kind.__name__}.")
    elif option == "top" and value < 1:  # type: ignore[operator]
        raise ValueError(f"The view option top cannot be {value!r}: at least one candidate is listed.")


# What is changed while the model runs: how an intent changes the list of it. Pure.


@rule.register
def _(intent: PutIntervention, state: State) -> State:
    return _put(state, intent.value)


@rule.register
def _(intent: PaintCells, state: State) -> State:
    return _painted(state, *state.edit_scope, dict.fromkeys(intent.cells, intent.allow)) if intent.cells else state


@rule.register
def _(intent: BlockCell, state: State) -> State:
    site, chosen = state.site, state.selection
    if site is None:
        raise ValueError("There is no cell to block: no head is selected.")
    cell = chosen.query, chosen.key
    return _painted(state, site.ref, chosen.head, {cell: False if intent.blocked else None})


def _painted(
    state: State, site: SiteRef | None, head: int | None, changes: Mapping[tuple[int, int], bool | None]
) -> State:
    """With cells (query, key) allowed, blocked, or (None) as the model has them, beside those painted there before."""
    stroke = Mask("painted", cells=tuple((*cell, bool(allow)) for cell, allow in changes.items()), site=site, head=head)
    listed = state.document.interventions
    before = [item.value for item in listed if same_slot(item.value, stroke)]
    cells = {(q, k): allow for mask in before if isinstance(mask, Mask) for q, k, allow in mask.cells or ()}
    left = tuple((*cell, allow) for cell, allow in sorted({**cells, **changes}.items()) if allow is not None)
    if not left:
        return _with_interventions(state, tuple(item for item in listed if not same_slot(item.value, stroke)))
    return _put(state, replace(stroke, cells=left))


def _put(state: State, value: Intervention) -> State:
    """`value` in the place of the first intervention with its slot, and of any others with it; else at the end."""
    listed = state.document.interventions
    place = next((i for i, other in enumerate(listed) if same_slot(other.value, value)), len(listed))
    others = tuple(other for other in listed[place:] if not same_slot(other.value, value))
    new = () if is_neutral(value) else (InterventionItem(value),)
    return _with_interventions(state, (*listed[:place], *new, *others))


@rule.register
def _(intent: SwitchIntervention, state: State) -> State:
    listed = _checked(state, intent.index)
    changed = replace(listed[intent.index], on=intent.on)
    return _with_interventions(state, (*listed[: intent.index], changed, *listed[intent.index + 1 :]))


@rule.register
def _(intent: RemoveIntervention, state: State) -> State:
    listed = _checked(state, intent.index)
    return _with_interventions(state, (*listed[: intent.index], *listed[intent.index + 1 :]))


@rule.register
def _(intent: ClearInterventions, state: State) -> State:
    return _with_interventions(state, ())


def _with_interventions(state: State, listed: tuple[InterventionItem, ...]) -> State:
    if listed == state.document.interventions:
        return state
    return replace(another_text(state.with_document(interventions=listed)), restored=False)


def _checked(state: State, index: int) -> tuple[InterventionItem, ...]:
    listed = state.document.interventions
    if not 0 <= index < len(listed):
        raise ValueError(f"There is no intervention {index}: the list has {len(listed)}.")
    return listed


# How an experiment changes what is on screen: what a person does to it, and what its process tells. Pure.


@rule.register
def _(intent: RunExperiment, state: State) -> State:
    number = 1 if state.live.experiment is None else state.live.experiment.number + 1
    curves = tuple(Curves() for _ in intent.prepared.runs)
    begun = ExperimentState(number, intent.file, intent.prepared, intent.seed, curves)
    if _learns(state):  # it would take the time that the runs need, and change what the clock says of them
        state, begun = rule(TellTraining(Pause()), state), replace(begun, has_paused=True)
    if state.live.experiment is not None:  # what went wrong with the one before
        state = without_sentence(state, state.live.experiment.sentence)
    return state.with_live(experiment=begun)


@rule.register
def _(intent: StopExperiment, state: State) -> State:
    experiment = state.live.experiment
    if experiment is None or not experiment.is_under_way:
        return state
    if experiment.phase == "starting":  # nothing has been learned that could be told of
        return state.with_live(experiment=replace(experiment, phase="ended", is_stopping=True))
    return state.with_live(experiment=replace(experiment, is_stopping=True))


@rule.register
def _(intent: OpenRun, state: State) -> State:
    state = rule(OpenCheckpoint(intent.model.folder), state)
    return rule(SetText(intent.model.example), state)  # what was read before is seldom of the letters that it knows


@rule.register
def _(intent: ExperimentTold, state: State) -> State:
    experiment = state.live.experiment
    if experiment is None or experiment.number != intent.number or not experiment.is_under_way:
        return state  # of one that was replaced, or is over
    match intent.message:
        case RunsBegan(parameters=parameters):
            experiment = replace(experiment, phase="running", parameters=parameters)
        case RunsLearned() as learned:
            experiment = replace(experiment.learned(learned), has_company=experiment.has_company or _learns(state))
        case RunsMeasured() as measured:
            experiment = experiment.measured(measured)
        case RunsEnded() as ended:
            experiment = replace(experiment, phase="ended", step=ended.step, seconds=ended.seconds, ended=ended)
        case Said(sentence=sentence):
            return _said(state, experiment, sentence)
        case Failed(sentence=sentence):
            return _said(state, replace(experiment, phase="failed"), sentence)
        case Fell():
            return _said(state, replace(experiment, phase="failed"), f"{FELL} Press Run again.")
    return state.with_live(experiment=experiment)


def _learns(state: State) -> bool:
    return state.live.learning is not None and state.live.learning.phase in ("starting", "running")


def _said(state: State, experiment: ExperimentState, sentence: str) -> State:
    return replace(state.with_live(experiment=replace(experiment, sentence=sentence)), notice=Notice("error", sentence))


# A file of texts that is read through the model, and one that roles are found on: how an intent changes it. Pure.


_MOST_RECENT = 8


@rule.register
def _(intent: ChooseCorpus, state: State) -> State:
    corpus = replace(state.document.corpus, path=intent.path)
    return _used(_from_the_beginning(state.with_document(corpus=corpus)), intent.path)


@rule.register
def _(intent: AskCorpus, state: State) -> State:
    if intent.question == state.document.corpus.question:
        return state
    asked = state.with_document(corpus=replace(state.document.corpus, question=intent.question))
    return without_notice(replace(asked, reading=bool(asked.document.corpus.path)), {CorpusRequest.lane})


@rule.register
def _(intent: ReadCorpus, state: State) -> State:
    if intent.on == state.reading or (intent.on and not state.document.corpus.path):
        return state
    if not intent.on:
        return replace(state, reading=False)
    view = corpus_view(state)
    if view is None or view.ended:
        return _from_the_beginning(state)
    return without_notice(replace(state, reading=True), {CorpusRequest.lane})


@rule.register
def _(intent: ShowPlace, state: State) -> State:
    loaded = state.results.loaded
    if loaded is None:
        return state
    translates = loaded.info.family == "seq2seq"
    second = intent.second if loaded.info.pairs and not translates else None
    text = BatchText(intent.text, second, intent.second if translates else None)
    selection = Selection(intent.site, intent.head, intent.query, intent.key, chosen=True)
    document = replace(with_texts(state.document, (text,), 0), chat=False, selection=selection)
    return rule(RestoreDocument(document), state)


@rule.register
def _(intent: ChooseProbe, state: State) -> State:
    if intent.path == state.document.probe:  # its texts may be others by now
        state = replace(state, results=state.results.without(RolesView))
    chosen = without_notice(state.with_document(probe=intent.path), {RolesRequest.lane})
    return _used(chosen, intent.path) if intent.path else chosen


def _from_the_beginning(state: State) -> State:
    state = replace(state, reading=True, results=state.results.without(CorpusView))
    return without_notice(state, {CorpusRequest.lane})


def _used(state: State, path: str) -> State:
    recent = (path, *(other for other in state.recent_texts if other != path))[:_MOST_RECENT]
    return replace(state, recent_texts=recent)


# Several texts that are run together: how an intent changes them. Pure.


@rule.register
def _(intent: AddTexts, state: State) -> State:
    longest = max((len(text) for text in intent.texts), default=0)
    if longest > MOST_CHARACTERS:
        raise ValueError(f"One of these texts has {longest:,} characters, and the window takes {MOST_CHARACTERS:,}.")
    document = with_more_texts(state.document, intent.texts, chooses(state))
    count = len(texts_of(document))
    if count > MOST_TEXTS:
        raise ValueError(f"These would be {count:,} texts; {MOST_TEXTS} are run at once at most.")
    return with_prompt_of(state, document)


@rule.register
def _(intent: ShowText, state: State) -> State:
    _check(intent.index, state)
    return with_prompt_of(state, showing(state.document, intent.index))


@rule.register
def _(intent: RemoveText, state: State) -> State:
    if _check(intent.index, state) == 1:
        raise ValueError("It is the only text: there is none beside it.")
    return with_prompt_of(state, without_text(state.document, intent.index))


@rule.register
def _(intent: KeepShownText, state: State) -> State:
    return with_prompt_of(state, alone(state.document))


@rule.register
def _(intent: SetPadding, state: State) -> State:
    return with_prompt_of(state, replace(state.document, padding=intent.side))


def _check(index: int, state: State) -> int:
    """How many texts there are. Raises ValueError where none is at `index`."""
    count = len(texts_of(state.document))
    if not 0 <= index < count:
        raise ValueError(f"There is no text {index + 1}: there are {count}.")
    return count


# State B of a comparison: how an intent sets it, swaps it with what is open, and chooses its head. Pure.


_IN_NO_TREE = (
    "What was written after B's text stands in no tree of branches: A is its text alone. In Decode it can be written "
    "again."
)
_NO_B = "There is no B yet. Make one of what is open with Ctrl+B, or type a text for it in Compare."


@rule.register
def _(intent: CompareWith, state: State) -> State:
    b = intent.compared
    if b is not None and b.document.compared is not None:
        raise ValueError("B is compared with nothing in turn.")
    if b is not None:
        check_document(b.document)
    return state.with_document(compared=b)


@rule.register
def _(_intent: SwapStates, state: State) -> State:
    b = _b_of(state)
    opened = rule(OpenDocument(opened_from(b, state), state.placement), state)
    return replace(opened, notice=Notice("info", _IN_NO_TREE)) if loses_its_continuation(b) else opened


@rule.register
def _(intent: SelectHeadOfB, state: State) -> State:
    b = _b_of(state)
    if intent.site is None:
        return state.with_document(compared=replace(b, own_head=False))
    selection = replace(b.document.selection, site=intent.site, head=max(0, intent.head))
    return state.with_document(compared=replace(b, document=replace(b.document, selection=selection), own_head=True))


def _b_of(state: State) -> Compared:
    if state.document.compared is None:
        raise ValueError(_NO_B)
    return state.document.compared


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
