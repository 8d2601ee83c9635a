"""What each answer of the engine does to the state. Pure.

The mailbox already drops answers that a newer request replaced; here an answer is also ignored when it speaks of a
run, a text or a checkpoint that the state has left behind.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from pathlib import PurePath

from attention_explorer.session.corpus import probe_of
from attention_explorer.session.defaults import END, default_selection, followed_query, goes_on, last_token, off_padding
from attention_explorer.session.example_rules import changed_everywhere, unfit_words, untouched_examples, with_its_place
from attention_explorer.session.examples import Example
from attention_explorer.session.intents import Intent, Place, SetPair, SetTarget, SetText, UseWritten
from attention_explorer.session.prompt_modes import as_text
from attention_explorer.session.results import Results
from attention_explorer.session.state import Document, InterventionItem, Notice, Selection, State, clamped, site_of
from attention_explorer.session.texts import alone, each_text, texts_of
from attention_explorer.session.writing import PendingStep
from attention_explorer.session.writing_rules import written
from attention_explorer.widgets.number_text import percent_text
from attention_models.files.memory import in_bytes
from attention_models.files.sample_pictures import default_picture
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.chat import Pair
from attention_models.protocol.corpus import CorpusRequest, CorpusView
from attention_models.protocol.decoding import DecodeSamplesView, DecodeStepRequest, DecodeStepView
from attention_models.protocol.export import Exported, ExportRequest
from attention_models.protocol.head import HeadView
from attention_models.protocol.interventions import Adapter, Mask, Positions, Scale, acts_outside_of_attention
from attention_models.protocol.loading import Described, DescribeRequest, Loaded, LoadRequest, Stepped, StepRequest
from attention_models.protocol.prompt import Prompt, plain_text, shown_of
from attention_models.protocol.quality import QualityRequest, QualityView
from attention_models.protocol.request import Failure, Lane, Progress, Result, RunRequest
from attention_models.protocol.roles import HeadQuestion, RolesRequest, RolesView
from attention_models.protocol.running import ForwardRequest, InputsRequest, Ran
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.two_runs import TwoRunsRequest
from attention_models.protocol.values import CheckpointInfo, Placement, Site, site_tokens
from attention_models.protocol.variance import VarianceView

# What the opening of a model does to the state: what fits it of text, picture, selection and changes stays. Pure.


def with_model(state: State, result: Loaded) -> State:
    """The state with the model that was opened, which is the one that is wanted."""
    if state.opening is not None and state.opening.checkpoint == result.request.reference:
        document, place = state.opening, state.opening_place
        state = replace(state, document=document, opening=None, restored=True, example=place, opening_place=None)
    document, before = state.document, state.results.loaded
    said = state.notice
    if said is not None and said.lane != ExportRequest.lane and (before is not None or said.lane is not None):
        state = replace(state, notice=None)  # it was said of another model; a file stays written, or not, all the same
    if document.chat and not result.info.chat:
        document = as_text(document)
        sentence = f"{result.info.name} has no chat template: it reads what the turns say as plain text."
        state = replace(state, notice=Notice("info", sentence))
    left = None if state.restored else before  # whose text, picture and heads are in the document
    untouched = () if left is None else untouched_examples(document)
    if any(document.interventions == changed_everywhere(example) for example in untouched):
        document = replace(document, interventions=())
    if result.info.example and _is_for_an_example(document, left):
        second = (document.second if not document.text else None) or result.info.second or None
        document = replace(document, text=result.info.example, second=second)
    others = len(document.before) + len(document.after)
    if others and result.info.textbook and result.info.family != "vision":  # beside a picture texts wait
        them = "the other was" if others == 1 else f"the {others:,} others were"
        state = replace(state, notice=Notice("info", f"{result.info.name} takes one text at a time: {them} taken out."))
        document = alone(document)
    if not result.info.pairs:
        if any(isinstance(text.prompt, Pair) for text in texts_of(document)):
            sentence = f"{result.info.name} reads no pairs of texts: the second text was taken out."
            state = replace(state, notice=Notice("info", sentence))
        document = each_text(document, second=None)
    unfit = "" if state.restored or document.chat else unfit_words(document.text, result.info)
    if unfit and state.notice is None:
        example = example_text(result.info)
        state = replace(state, notice=Notice("info", unfit, action_label="Use the example", action=example))
    if result.info.adapter is not None and result.info.adapter.why and state.notice is None:
        sentence = f"An adapter lies beside the weights. {result.info.adapter.words}. The model runs without it."
        state = replace(state, notice=Notice("info", sentence))
    selection = document.selection
    if left is not None:
        document = each_text(document, target=None)
        selection = Selection()  # another model's heads mean something else: the first run chooses
        kept = tuple(i for i in document.interventions if _is_global(i) and _takes(result.info, i))
        document = replace(document, interventions=kept)
        normalisation = "none" if document.view.normalisation == "difference" else document.view.normalisation
        document = replace(document, view=replace(document.view, painting="off", normalisation=normalisation))
        if left.info.reference != result.info.reference:
            document = replace(document, effects=document.effects.without_answers())
    document = replace(document, interventions=tuple(_named(i, result.info) for i in document.interventions))
    picture = document.picture
    if result.info.family == "vision" and (not picture or (not state.restored and _came_along(picture, untouched))):
        picture = default_picture(result.info.channels)
    document = replace(document, checkpoint=result.info.reference, picture=picture, selection=selection)
    results = state.results.of_no_model().keeping(result)
    return replace(
        state,
        document=document,
        results=results,
        loading=None,
        refused=None,
        reading=False,
        stepping=None,
        snapshots=(),
        following=(state.following and _of_one_training(before, result)) or _begins_to_learn(state, before, result),
    )


def _of_one_training(before: Loaded | None, now: Loaded) -> bool:
    one, other = None if before is None else before.info.training, now.info.training
    return one is not None and other is not None and one.reference == other.reference


def _begins_to_learn(state: State, before: Loaded | None, now: Loaded) -> bool:
    """Whether it is the model that learns in this window, opened for the first time: what is shown follows it."""
    if state.live.learning is None or now.info.training is None or _of_one_training(before, now):
        return False
    return state.live.learning.folder == now.info.training.reference


def _is_for_an_example(document: Document, before: Loaded | None) -> bool:
    """Whether nothing was typed: there is no text, or an example of the model that was open `before`."""
    if document.before or document.after:
        return False
    if before is None or not document.text:
        return not document.text
    return shows_example(document, before.info) or any(one.text for one in untouched_examples(document))


def shows_example(document: Document, info: CheckpointInfo) -> bool:
    """Whether the text is the example that the model came with."""
    return (document.text, document.second or "") == (info.example, info.second)


def _came_along(picture: str, untouched: tuple[Example, ...]) -> bool:
    """Whether nobody chose it: it is an example's, or the first sample of some kind of model."""
    return picture in (default_picture(1), default_picture(3), *(example.picture for example in untouched))


def _takes(info: CheckpointInfo, listed: InterventionItem) -> bool:
    """Whether the model can be run with this change: a textbook model takes none, some take no other scores."""
    if isinstance(listed.value, Adapter):
        return info.put_on is not None
    if info.additive and isinstance(listed.value, Scale):
        return False
    return not info.textbook and (not info.weights_only or acts_outside_of_attention(listed.value))


def _named(listed: InterventionItem, info: CheckpointInfo) -> InterventionItem:
    """With the stack that a command left out."""
    value = listed.value
    return replace(listed, value=value.of_stack(info.predicting_stack)) if isinstance(value, Ablation) else listed


def _is_global(listed: InterventionItem) -> bool:
    """Whether it means the same in any model: it names no layer and no head, and paints no cell."""
    value = listed.value
    return isinstance(value, (Positions, Adapter)) or (
        not isinstance(value, Ablation)
        and value.site is None
        and value.head is None
        and not (isinstance(value, Mask) and value.paints)
    )


def example_text(info: CheckpointInfo) -> Intent:
    """What puts a model's own example into the input."""
    return SetPair(Pair(info.example, info.second)) if info.second else SetText(info.example)


_ANOTHER_RUN = "Another text has run meanwhile. Ask again."


def arrive(state: State, result: Result) -> State:
    """The state once `result` is in.

    Raises:
        TypeError: no rule for this kind of result.
    """
    return _arrive(result, state)


@singledispatch
def _arrive(result: object, state: State) -> State:
    raise TypeError(f"No rule says what {type(result).__name__} does to the state.")


@_arrive.register
def _(result: Result, state: State) -> State:
    """An answer that has no rule of its own takes the place of the one before, if it is of the run on screen."""
    state = _without_progress(state, result)
    if isinstance(result.request, RunRequest) and not _is_of_this_run(state, result):
        return state
    return replace(_without_notice(state, result), results=state.results.keeping(result))


@_arrive.register
def _(result: Progress, state: State) -> State:
    others = tuple(p for p in state.live.progress if p.request.lane != result.request.lane)
    return state.with_live(progress=(*others, result))


@_arrive.register
def _(result: Loaded, state: State) -> State:
    state = _without_progress(state, result)
    return with_model(state, result) if _is_wanted_load(state, result) else state


@_arrive.register
def _(result: Stepped, state: State) -> State:
    """The model and its run come at once; what is drawn of the step before stays until it is asked for anew."""
    state = _without_notice(_without_progress(state, result), result)
    if state.stepping is None:
        return state
    results = state.results.of_other_weights().keeping(result.loaded)
    known = result.loaded.info.training
    newer = () if known is None or known.steps == state.snapshots else state.snapshots
    is_last = result.request == state.stepping
    state = replace(state, results=results, snapshots=newer, stepping=None if is_last else state.stepping)
    return _arrive(result.ran, state)


@_arrive.register
def _(result: Ran, state: State) -> State:
    state = _without_notice(_without_progress(state, result), result)
    results = state.results.without(TrustReport).keeping(result)
    asked = replace(state.inputs, interventions=result.inputs.interventions)
    if state.restored and result.inputs != asked:
        return replace(state, results=results)  # the restored text runs next, and the selection is for that
    heads = replace(state.document.heads, question=_question_after(state, result))
    document = replace(state.document, selection=_selection_after(state, result), heads=heads)
    written_on = state.written_on and result.inputs != state.inputs  # that text runs next
    read_otherwise = _read_otherwise(state.expected, result)
    notice = Notice("warning", read_otherwise) if read_otherwise else state.notice
    state = replace(state, document=document, results=results, notice=notice)
    return with_its_place(replace(state, restored=False, shown=None, expected=(), written_on=written_on))


def _question_after(state: State, ran: Ran) -> HeadQuestion | None:
    """What every head is asked goes on, but for cells of another text than they were asked about."""
    question, before = state.question, state.ran
    if question is None or question.is_pattern:
        return question
    same = before is not None and (before.tokens, before.source) == (ran.tokens, ran.source)
    site = site_of(ran, question.site)
    return question if (same or state.restored) and site is not None and _is_within(question, site) else None


def _is_within(question: HeadQuestion, site: Site) -> bool:
    """Whether a question about cells, of a file perhaps, is about some of this site."""
    cells = question.cells or ((question.query, question.key),)
    return question.head < site.heads and all(query < site.queries and key < site.keys for query, key in cells)


def _read_otherwise(expected: tuple[int, ...], ran: Ran) -> str:
    """A sentence where the tokens that ran are not those that the model wrote; "" where they are."""
    read = tuple(token.id for token in ran.tokens if not token.padding)
    if not expected or read == expected:
        return ""
    place = next((i for i, (a, b) in enumerate(zip(read, expected, strict=False)) if a != b), len(read) - 1)
    return (
        f"The tokenizer reads this text as other tokens than the model wrote, from “{ran.tokens[place].word}” on "
        f"(position {place}): {len(read)} instead of {len(expected)}. What is shown is of the tokens that it reads."
    )


def _selection_after(state: State, ran: Ran) -> Selection:
    selection, before = state.document.selection, state.ran
    if before is not None and not (selection.chosen or state.restored or _is_of_the_same_text(state, before, ran)):
        return _first_selection(state, ran)
    exists = site_of(ran, selection.site) is not None
    if selection.site is None or (before is None and not exists):
        return _first_selection(state, ran)
    if not exists:
        default = _first_selection(state, ran)
        selection = replace(selection, site=default.site, head=default.head)
    site = site_of(ran, selection.site)
    if selection.query == END:
        selection = replace(selection, query=last_token(ran))
    in_source = site is not None and site_tokens(ran, site)[0] is not ran.tokens  # its queries are the encoder's
    if before is not None and not state.restored and not in_source:
        selection = replace(selection, query=followed_query(selection.query, before, ran))
        if ran.continued and ran.inputs.continuation != before.inputs.continuation:
            selection = replace(selection, query=ran.continued[-1])  # what was written last
    if before is None or (before.tokens, before.source) != (ran.tokens, ran.source):
        selection = off_padding(clamped(selection, ran), ran)
    return clamped(selection, ran)


def _is_of_the_same_text(state: State, before: Ran, ran: Ran) -> bool:
    """Whether the same ran before, but for what the model wrote along with it, or what is changed in the model.

    What a person types is another text at each key: where one looks first is said by the text alone, and not by which
    of its beginnings happened to run.
    """
    inputs, others = (replace(one.inputs, continuation=(), interventions=()) for one in (before, ran))
    return inputs == others or (state.written_on and goes_on(before, ran))


def _first_selection(state: State, ran: Ran) -> Selection:
    document, loaded = state.document, state.results.loaded
    is_example = loaded is not None and ran.seen is None and shows_example(document, loaded.info)
    return default_selection(ran, document.checkpoint, is_example)


@_arrive.register
def _(result: HeadView, state: State) -> State:
    state = _without_progress(state, result)
    selection, request = state.selection, result.request  # what panels show, and so what they asked for
    if not _is_of_this_run(state, result) or (request.site, request.head) != (selection.site, selection.head):
        return state
    return replace(_without_notice(state, result), results=state.results.keeping(result))


@_arrive.register
def _(result: VarianceView, state: State) -> State:
    state = _without_notice(_without_progress(state, result), result)
    ran = state.ran.run if state.ran is not None else None
    if result.request.run is not None and result.request.run != ran:
        result = replace(result, head=None)  # the random draws are of no run
    return replace(state, results=state.results.keeping(result))


@_arrive.register(DecodeStepView)
@_arrive.register(DecodeSamplesView)
def _(result: DecodeStepView | DecodeSamplesView, state: State) -> State:
    state = _without_notice(_without_progress(state, result), result)
    pending = (
        state.pending_step if state.pending_step is not None and result.request == state.pending_step.request else None
    )
    if isinstance(result, DecodeStepView) and result.request.into_input:
        return state if pending is None else _into_input(replace(state, pending_step=None), pending, result)
    results = state.results.without(DecodeStepView, DecodeSamplesView).keeping(result)
    state = replace(state, results=results)
    if pending is None:
        return state  # a step that was selected again, or that was broken off
    return replace(state, pending_step=None, document=written(state.document, pending, result))


def _into_input(state: State, pending: PendingStep, view: DecodeStepView) -> State:
    chosen = view.chosen
    assert chosen is not None  # a beam search writes nothing into the input
    if view.misread:
        whose = "The model" if view.request.forced is None else "You"
        sentence = (
            f"{whose} chose “{chosen.label}” ({percent_text(chosen.probability)}). With it written there the text "
            f"{view.misread}, so it was left as it is."
        )
        anyway = UseWritten(view.whole)
        return replace(state, notice=Notice("warning", sentence, "Write it anyway", anyway, view.request.lane))
    if view.ending != "model":
        return replace(state, document=written(state.document, pending, view), restored=False, written_on=True)
    if view.request.forced is not None:
        sentence = f"{chosen.label} ends the text: there is nothing to write."
        return replace(state, notice=Notice("info", sentence, lane=view.request.lane))
    chance = percent_text(chosen.probability)
    sentence = f"The model ends the text here: its likeliest next token is {chosen.label} ({chance})."
    return replace(state, notice=Notice("info", sentence, lane=view.request.lane))


@_arrive.register
def _(result: QualityView, state: State) -> State:
    state = _without_notice(_without_progress(state, result), result)
    following = None
    if state.measuring is not None and not result.ended:
        following = replace(state.measuring, done=result.done)
    return replace(state, results=state.results.keeping(result), measuring=following)


@_arrive.register
def _(result: CorpusView, state: State) -> State:
    state = _without_notice(_without_progress(state, result), result)
    if result.broken:
        state = replace(state, notice=Notice("warning", result.broken, lane=result.request.lane))
    return replace(state, results=state.results.keeping(result), reading=state.reading and not result.ended)


@_arrive.register
def _(result: Exported, state: State) -> State:
    first, *others = result.paths or (result.request.path,)
    where = first if not others else f"{first} to {PurePath(others[-1]).name}, a file a text"
    sentence = f"The weights are written: {where} ({in_bytes(result.size)})."
    return replace(_without_progress(state, result), notice=Notice("info", sentence, lane=result.request.lane))


# --------------------------------------------------------------------------- failures


@_arrive.register
def _(result: Failure, state: State) -> State:
    state = _without_progress(state, result)
    is_past = result.stale or _speaks_of_the_past(state, result)
    request = result.request
    if isinstance(request, DescribeRequest):  # said where it was asked
        described = Described(request=request, refusal=result.sentence)
        return replace(state, results=state.results.keeping(described))
    if isinstance(request, ScriptRequest):  # likewise
        refused = ScriptView(request=request, refusal=_ANOTHER_RUN if result.stale else result.sentence)
        return replace(state, results=state.results.keeping(refused))
    if state.pending_step is not None and request == state.pending_step.request:
        state = replace(state, pending_step=None, passage=0)
    elif isinstance(request, DecodeStepRequest) and request.into_input:
        return state  # of another input by now
    if isinstance(request, QualityRequest):
        state = replace(state, measuring=None)
    if isinstance(request, CorpusRequest):
        if replace(request, have=0) != state.document.corpus_request:
            return state  # another file, or other interventions, are read by now
        if result.stale and request.have:  # the engine let go of what it had read
            return replace(state, results=state.results.without(CorpusView))
        state = replace(state, reading=False)
    if isinstance(request, RolesRequest) and not result.stale:
        state = _without_probe(state, request)
    if is_past:
        return state
    notice = _notice(result, state)
    if isinstance(request, LoadRequest):
        loaded = state.results.loaded
        if loaded is not None:
            state = replace(state.with_document(checkpoint=loaded.info.reference), placement=_asked(loaded))
        state = replace(state, loading=None, opening=None)
    if isinstance(request, StepRequest) and state.results.loaded is not None:
        state = state.with_document(checkpoint=state.results.loaded.info.reference)
        state = replace(state, stepping=None, following=False)
    if isinstance(request, ForwardRequest):
        state = replace(_with_picture_that_ran(state, request), refused=request.inputs)
        if result.no_figures:
            state = replace(state, results=_of_no_run(state.results))
    if isinstance(request, RunRequest):
        state = replace(state, results=_without_answers(state.results, request.lane))
    return replace(state, notice=notice)


def _without_probe(state: State, refused: RolesRequest) -> State:
    """Roles that cannot be found on a file are those found before; where there are none, no roles are asked for."""
    if refused.probe != probe_of(state):
        return state
    found = state.results.of(RolesView)
    if refused.probe:
        return state.with_document(probe=found.request.probe if found is not None and found.done == 1 else "")
    return state.with_document(heads=replace(state.document.heads, role="", badges=False))


def _with_picture_that_ran(state: State, refused: ForwardRequest) -> State:
    """A picture that could not be read leaves the one before it open, by its name too."""
    ran = state.ran
    if ran is None or ran.seen is None or ran.inputs.picture == refused.inputs.picture:
        return state
    return state.with_document(picture=ran.inputs.picture)


def _of_no_run(results: Results) -> Results:
    """What is left where the run on screen is not of what was asked for."""
    left = results.of_no_model()
    return left if results.loaded is None else left.keeping(results.loaded)


def _without_answers(results: Results, lane: Lane) -> Results:
    """A view that could not be had leaves none of an earlier run, head or token in its place."""
    newest = results.newest.items()
    gone = [kind for kind, view in newest if isinstance(view.request, RunRequest) and view.request.lane == lane]
    return results.without(*gone) if gone else results


def _speaks_of_the_past(state: State, failure: Failure) -> bool:
    request = failure.request
    if isinstance(request, LoadRequest):
        return not _is_wanted_load(state, failure)
    if isinstance(request, StepRequest):
        return request != state.stepping
    if isinstance(request, ForwardRequest):
        return request.inputs != state.inputs
    if isinstance(request, InputsRequest):  # of what is written after them: a picture is none of it
        written_after, now = request.inputs, state.document.inputs
        return replace(written_after, continuation=(), picture="") != replace(now, picture="")
    if isinstance(request, RolesRequest):
        return request.probe != probe_of(state)
    if isinstance(request, TwoRunsRequest) and request.other is not None:
        b = state.document.compared
        if b is None or (request.other.inputs, request.other.reference) != (b.inputs, b.document.checkpoint):
            return True
    return isinstance(request, RunRequest) and (state.ran is None or request.run != state.ran.run)


def _notice(failure: Failure, state: State) -> Notice:
    request, loaded = failure.request, state.results.loaded
    if isinstance(request, InputsRequest) and _says_nothing(request.inputs.prompt):  # there is nothing to run yet
        if loaded is None or not loaded.info.example:
            return Notice("info", failure.sentence, lane=request.lane)
        example = example_text(loaded.info)
        return Notice("info", failure.sentence, action_label="Use the example", action=example, lane=request.lane)
    smaller = _smaller(failure.no_room)
    if smaller is not None:
        label, placement = smaller
        action = Place(placement, request.reference if isinstance(request, LoadRequest) else None)
        return Notice("error", failure.sentence, action_label=label, action=action, lane=request.lane)
    if failure.cut_to is None:
        return Notice("error", failure.sentence, lane=request.lane)
    if not isinstance(request, ForwardRequest):
        return Notice("warning", failure.sentence, lane=request.lane)
    fitting = (request.inputs.target or "" if failure.of_target else plain_text(request.inputs.prompt))[
        : failure.cut_to
    ]
    keep = SetTarget(fitting) if failure.of_target else SetText(fitting)
    return Notice("warning", failure.sentence, action_label="Keep what fits", action=keep, lane=request.lane)


def _says_nothing(prompt: Prompt) -> bool:
    """Whether there is no text, or only the second of two."""
    prompt = shown_of(prompt)
    return not (prompt.first.strip() if isinstance(prompt, Pair) else prompt)


def _smaller(placement: Placement | None) -> tuple[str, Placement] | None:
    """Where a model that did not fit may fit, with a button's label; None where nothing is left to try."""
    if placement is None:
        return None
    if placement.dtype == "float32":
        return "Use bfloat16", replace(placement, dtype="bfloat16")
    return ("Use the CPU", replace(placement, device="cpu")) if placement.device != "cpu" else None


# --------------------------------------------------------------------------- shared


def _asked(loaded: Loaded) -> Placement:
    return loaded.request.placement


def _is_wanted_load(state: State, result: Result) -> bool:
    request = result.request
    wanted = (state.document.checkpoint, state.placement)
    return isinstance(request, LoadRequest) and (request.reference, request.placement) == wanted


def _is_of_this_run(state: State, result: Result) -> bool:
    request = result.request
    return state.ran is not None and isinstance(request, RunRequest) and request.run == state.ran.run


def _without_progress(state: State, result: Result) -> State:
    """An answer ends its lane's progress."""
    progress = tuple(p for p in state.live.progress if p.request.lane != result.request.lane)
    return state if len(progress) == len(state.live.progress) else state.with_live(progress=progress)


def _without_notice(state: State, result: Result) -> State:
    """An answer that is no failure ends what was said about its lane."""
    notice = state.notice
    return replace(state, notice=None) if notice is not None and notice.lane == result.request.lane else state
