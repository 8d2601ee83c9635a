"""Goes to another step of the open model's training: its weights are put into the model that is open, and it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attention_models.engine import running
from attention_models.files import devices
from attention_models.forward.capture import watch_blocks
from attention_models.forward.context import Context, Workspace
from attention_models.forward.model import Model
from attention_models.opening import load
from attention_models.opening.snapshots import at_step, fitted, put, read_weights, title_at, training_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import Loaded, Stepped, StepRequest
from attention_models.protocol.values import CheckpointInfo


def answer(request: StepRequest, context: Context) -> Stepped:
    """Where it fails, or is called off, the step that is open stays, and its run.

    Where the open model is not of this training, or config or tokenizer have changed, all of it is opened.
    """
    started, workspace = time.perf_counter(), context.workspace
    info = _info_at(request, workspace.model)
    trial = Workspace(workspace.adopted, kept=workspace.kept)
    within = Context(trial, context.should_stop, context.report)
    if info is None or workspace.model is None:
        loaded = load.answer(request.load, within)
        ran = running.answer(request.forward, within)
        workspace.open(within.model)
        workspace.run, workspace.kept_of_model = trial.run, trial.kept_of_model
        return Stepped(request=request, loaded=loaded, ran=ran)
    with _at(workspace.model, info) as model:
        trial.model = model
        ran = running.answer(request.forward, within)
    beside = workspace.beside
    if beside is not None and beside.model is workspace.model:
        beside = None  # it was the same model, at the step before
    workspace.open(model)
    workspace.run, workspace.kept_of_model, workspace.beside = trial.run, trial.kept_of_model, beside
    loaded = Loaded(
        request=request.load,
        info=info,
        device=devices.placed(model.module),
        dtype=model.dtype_name,
        eval_mode=not any(module.training for module in model.module.modules()),
        seconds=time.perf_counter() - started,
        placement=load.placement_of(model, request.placement),
    )
    return Stepped(request=request, loaded=loaded, ran=ran)


def stepped(model: Model, reference: str) -> Model | None:
    """The open `model` as another checkpoint of its training; `model` itself is used no more. None where it is of none.

    Raises:
        CheckpointError: there is no such step, or its file is damaged; `model` is as it was.
    """
    info = _info_of(model, reference)
    if info is None:
        return None
    with _at(model, info) as other:
        return other


def _info_at(request: StepRequest, model: Model | None) -> CheckpointInfo | None:
    """What is said of the step, where the open `model` is of the same training and was opened in the same way."""
    if model is None or model.info.training is None:
        return None
    device, dtype = devices.parse(request.placement)
    if device != model.device or str(dtype).removeprefix("torch.") != model.dtype_name:
        return None
    return _info_of(model, request.reference)


def _info_of(model: Model, reference: str) -> CheckpointInfo | None:
    before = model.info.training
    if before is None or model.adapter is not None or any(p.is_meta for p in model.module.parameters()):
        return None
    folder = Path(model.info.folder)
    try:
        training = training_of(reference, folder)
        if training is None or (training.reference, training.settings) != (before.reference, before.settings):
            return None
        return at_step(model.info, training)
    except OSError:
        return None  # said better by those who open it anew


@contextmanager
def _at(model: Model, info: CheckpointInfo) -> Iterator[Model]:
    """Another model of the same module, whose weights are those of `info`; if its first run fails, `model` is back."""
    module = model.module
    try:
        weights = fitted(module, read_weights(info), title_at(Path(info.folder).name, info.training))
    except OSError as cause:
        raise CheckpointError(f"{info.name} cannot be read ({cause.strerror}). Choose another step.") from cause
    before = {parameter: parameter.data for parameter in weights}
    for handle in model.hooks:
        handle.remove()
    put(weights)
    other = type(model)(info, module, model.tokenizer)
    try:
        yield other
    except BaseException:
        for handle in other.hooks:
            handle.remove()
        put(before)
        model.hooks = watch_blocks(module, model.blocks)
        raise
