"""What the engine answers about two runs, and the same for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from attention_models.compare.comparing import TwoRuns
from attention_models.engine import running
from attention_models.engine.stepping import stepped
from attention_models.files import devices
from attention_models.files.devices import is_out_of_memory
from attention_models.forward.context import Context, Workspace
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.opening import load
from attention_models.opening.load import placement_of
from attention_models.protocol.batch import check_one_text
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import CheckpointError, ExplorerError, InputError, NoRoomError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Report, ShouldStop, never, silent
from attention_models.protocol.running import RerunRequest, RunInputs
from attention_models.protocol.two_runs import (
    DropOtherRequest,
    Matching,
    OtherDropped,
    OtherRun,
    TwoRunsRequest,
    TwoRunsView,
)
from attention_models.protocol.values import Placement, SiteRef

# Opens and runs B, which is compared with the open run: a workspace of its own beside the engine's.


def reference_run(other: OtherRun, a: CurrentRun, context: Context) -> CurrentRun:
    """The run of B: `a` itself where B says the same; else run now, or as it was kept.

    The open checkpoint is not opened twice. Of another one the model is kept, one at most; a B that fails leaves none.

    Raises:
        CheckpointError: it cannot be opened, or does not fit beside the open one.
        InputError: it cannot be run.
        Cancelled: `context.should_stop()` was true.
    """
    workspace = context.workspace
    is_open_one = other.reference in ("", a.model.info.reference)
    if is_open_one and other.inputs == a.inputs:
        let_go(context)
        return a
    beside = workspace.beside
    if beside is None or not _is_of(beside, other, a):
        model = None if is_open_one else _another_step(beside, other, a, workspace.model)
        let_go(context)  # before the next one is opened
        beside = Workspace(workspace.adopted)
        if is_open_one:
            beside.open(a.model)
        elif model is not None:
            beside.open(model)
            beside.kept_of_model.put(_Asked(_placement(other, a)))
        else:
            _open(other, a, Context(beside, context.should_stop, context.report))
        workspace.beside = beside
    if beside.run is None or beside.run.inputs != other.inputs:
        _run_b(other, beside, context)
    assert beside.run is not None
    return beside.run


def let_go(context: Context) -> None:
    """Keep nothing of B any longer: give back the memory of its run, and of a model of its own."""
    workspace, beside = context.workspace, context.workspace.beside
    workspace.beside = None
    if beside is not None and beside.model is not workspace.model:
        beside.model = beside.run = None
        devices.free()


def _is_of(beside: Workspace, other: OtherRun, a: CurrentRun) -> bool:
    """Whether the model that B has is the one that is asked for."""
    if beside.model is None:
        return False
    if other.reference in ("", a.model.info.reference):
        return beside.model is a.model
    asked = _placement(other, a)
    return beside.model.info.reference == other.reference and beside.kept_of_model.get(_Asked) == _Asked(asked)


def _another_step(beside: Workspace | None, other: OtherRun, a: CurrentRun, opened: Model | None) -> Model | None:
    """The model that B has, with the weights of the step of its training that is asked for; None where it is none."""
    if beside is None or beside.model is None or beside.model is opened:
        return None
    if beside.kept_of_model.get(_Asked) != _Asked(_placement(other, a)):
        return None
    try:
        return stepped(beside.model, other.reference)
    except CheckpointError as error:
        raise CheckpointError(f"B cannot be opened: {error}") from error.__cause__


def _placement(other: OtherRun, a: CurrentRun) -> Placement:
    return other.placement or placement_of(a.model)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where B was to be opened."""

    placement: Placement


def _open(other: OtherRun, a: CurrentRun, context: Context) -> None:
    placement = _placement(other, a)
    try:
        load.answer(LoadRequest(reference=other.reference, placement=placement), context)
    except NoRoomError as error:  # as another error: the open model is not to be moved for it
        raise CheckpointError(f"B does not fit beside {a.model.info.name}: {error}") from error.__cause__
    except CheckpointError as error:
        raise CheckpointError(f"B cannot be opened: {error}") from error.__cause__
    context.kept_of_model.put(_Asked(placement))


def _run_b(other: OtherRun, beside: Workspace, context: Context) -> None:
    beside.run = None
    info = None if beside.model is None else beside.model.info
    if info is not None and info.family == "vision" and not other.inputs.picture:
        raise InputError(f"{info.name} looks at pictures, and B is given a text. Choose a checkpoint of text for B.")
    try:
        running.answer(RerunRequest(inputs=other.inputs), Context(beside, context.should_stop, context.report))
    except ExplorerError as error:  # nothing in it is about the text that is on screen
        assert beside.model is not None
        raise InputError(f"B cannot be run by {beside.model.info.name}: {error}") from error.__cause__


def answer(request: TwoRunsRequest, context: Context) -> TwoRunsView:
    """As far as it is computed once a moment more was spent."""
    a = context.run(request.run)
    try:
        compared = begun(request, a, context)
        context.report("Comparing all heads", compared.done)
        with a.kept.unless_it_fails(TwoRuns):
            compared.advance(a.work_per_answer, context.should_stop)
        return compared.view(request, context.should_stop)
    except BaseException as error:
        if is_out_of_memory(error):
            _forget(context)
        raise


def drop(request: DropOtherRequest, context: Context) -> OtherDropped:
    _forget(context)
    return OtherDropped(request=request)


def compare_runs(
    model: Model,
    text: Any,
    other_text: Any = None,
    *,
    other_model: Model | None = None,
    interventions: Sequence[Intervention] = (),
    other_interventions: Sequence[Intervention] = (),
    target: str | None = None,
    other_target: str | None = None,
    site: SiteRef | tuple[str, int] | None = None,
    head: int = 0,
    other_site: SiteRef | tuple[str, int] | None = None,
    other_head: int | None = None,
    matching: Matching = "index",
    position: int | None = None,
    top: int = 6,
    should_stop: ShouldStop = never,
    report: Report = silent,
) -> TwoRunsView:
    """Two runs side by side: A, of `model`, and B, of whatever is another.

        view = compare_runs(model, "Tom gave the ball to", "Anna gave the ball to")
        view.changed_most[0]                     # the head whose rows differ most: .site, .head, .change
        view.maps.difference                     # of the head shown, A less B over aligned tokens
        view.said                                # the likeliest next tokens of both

        compare_runs(base, text, other_model=tuned)
        compare_runs(model, text, other_interventions=[Scale(0.5)])

    Args:
        text: a text, a pair of texts or a conversation; a vision model's picture, by its path or "sample:NAME".
        other_text: what B reads, `text` if None.
        other_model: of B, `model` if None.
        interventions, other_interventions: what is changed in either run.
        target, other_target: what the decoder of an encoder-decoder model is made to say; it writes itself if None.
        site, head: the head of A that is shown; the first of the first layer if `site` is None.
        other_site, other_head: the head of B; None for the one that `matching` holds against A's.
        matching, position, top: as in `TwoRunsRequest`.

    Raises:
        InputError: a text that its model cannot take.
        ValueError: an intervention names a layer or head that the model does not have, or there is no such `matching`.
        IndexError: A has no such head.
    """
    if matching not in get_args(Matching):
        raise ValueError(f"Heads are matched by {' or by '.join(get_args(Matching))}, not by “{matching}”.")
    given = RunInputs(interventions=tuple(interventions), target=target)
    other = RunInputs(interventions=tuple(other_interventions), target=other_target)
    a_inputs, b_model = _with_text(model, given, text), other_model or model
    b_inputs = _with_text(b_model, other, text if other_text is None else other_text)
    a = _run(model, a_inputs, should_stop, report)
    b = a if b_model is model and b_inputs == a_inputs else _run(b_model, b_inputs, should_stop, report)
    both = TwoRuns(a, b, OtherRun(inputs=b_inputs), matching, should_stop)
    both.advance(should_stop=should_stop)
    shown = site if site is not None else a.trace.sites[0].ref if a.trace.sites else None
    request = TwoRunsRequest(
        run=a.ticket,
        site=_ref(shown),
        head=head,
        other=both.other,
        other_site=_ref(other_site),
        other_head=other_head,
        matching=matching,
        position=position,
        top=top,
    )
    return both.view(request, should_stop)


def _ref(site: SiteRef | tuple[str, int] | None) -> SiteRef | None:
    return SiteRef(*site) if isinstance(site, tuple) else site


def _with_text(model: Model, inputs: RunInputs, text: Any) -> RunInputs:
    if model.info.family == "vision":
        return replace(inputs, picture=str(text))
    if isinstance(text, tuple):
        text = Pair.of(text)
    check_one_text(text)
    if isinstance(text, list):
        text = Chat.of(text)
    if not isinstance(text, (str, Pair, Chat)):
        raise InputError(f"Two runs are of texts, pairs or conversations, not of a {type(text).__name__}.")
    return replace(inputs, prompt=text)


def _run(model: Model, inputs: RunInputs, should_stop: ShouldStop, report: Report) -> CurrentRun:
    workspace = Workspace()
    workspace.open(model)
    running.answer(RerunRequest(inputs=inputs, ticket=1), Context(workspace, should_stop, report))
    assert workspace.run is not None
    return workspace.run


def begun(request: TwoRunsRequest, a: CurrentRun, context: Context) -> TwoRuns:
    """A and B as far as they are compared, from the cache, else B is opened and run now. Raises as `reference_run`."""
    kept = a.kept.get(TwoRuns)
    if kept is not None and kept.other == request.other and kept.matching == request.matching:
        return kept
    del kept
    a.kept.drop(TwoRuns)  # it holds the model of B, which may have to go before another is opened
    if request.other is None:
        let_go(context)
        b = a
    else:
        b = reference_run(request.other, a, context)
    return a.kept.put(TwoRuns(a, b, request.other, request.matching, context.should_stop))


def _forget(context: Context) -> None:
    if context.workspace.run is not None:
        context.workspace.run.kept.drop(TwoRuns)
    let_go(context)
