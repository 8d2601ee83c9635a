"""Opens and runs B, which is compared with the open run: a workspace of its own beside the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.engine import running
from attention_models.engine.stepping import stepped
from attention_models.files import devices
from attention_models.forward.context import Context, Workspace
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.opening import load
from attention_models.opening.load import placement_of
from attention_models.protocol.errors import CheckpointError, ExplorerError, InputError, NoRoomError
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.running import RerunRequest
from attention_models.protocol.two_runs import OtherRun
from attention_models.protocol.values import Placement


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
        _run(other, beside, context)
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


def _run(other: OtherRun, beside: Workspace, context: Context) -> None:
    beside.run = None
    info = None if beside.model is None else beside.model.info
    if info is not None and info.family == "vision" and not other.inputs.picture:
        raise InputError(f"{info.name} looks at pictures, and B is given a text. Choose a checkpoint of text for B.")
    try:
        running.answer(RerunRequest(inputs=other.inputs), Context(beside, context.should_stop, context.report))
    except ExplorerError as error:  # nothing in it is about the text that is on screen
        assert beside.model is not None
        raise InputError(f"B cannot be run by {beside.model.info.name}: {error}") from error.__cause__
