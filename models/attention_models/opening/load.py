"""Opens the checkpoint that is asked for, and says where checkpoints can be opened."""

from __future__ import annotations

import time
from pathlib import Path

from attention_models.files import devices
from attention_models.files.catalogue import HANDED_OVER
from attention_models.files.names import title_of
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.opening.checkpoint_inspector import TRIED, CheckpointInspector
from attention_models.opening.open import open_examined
from attention_models.opening.trial import TrialRequest
from attention_models.opening.trial_process import verdict_on
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import DevicesRequest, DevicesView, Loaded, LoadRequest
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import AUTO, Placement


def answer(request: LoadRequest, context: Context) -> Loaded:
    """Open another model. Where that fails, or is called off, the open one stays."""
    started = time.perf_counter()
    if context.workspace.beside is not None:  # the new one may need the room of a second model
        context.workspace.part()
        devices.free()
    path = Path(request.reference)
    context.report(f"Opening {title_of(path) if path.is_absolute() else request.reference}", None)
    model = _opened(request, context)
    if context.should_stop():
        raise Cancelled
    had_another = context.workspace.model is not None
    context.workspace.open(model)
    if had_another:
        devices.free()  # other programs may want what it took
    return Loaded(
        request=request,
        info=model.info,
        device=devices.placed(model.module),
        dtype=model.dtype_name,
        eval_mode=not any(module.training for module in model.module.modules()),
        seconds=time.perf_counter() - started,
        placement=placement_of(model, request.placement),
    )


def answer_devices(request: DevicesRequest, _context: Context) -> DevicesView:
    return DevicesView(request=request, devices=devices.devices())


def placement_of(model: Model, asked: Placement | None = None) -> Placement:
    """Where `model` runs. `asked`, of one just opened, says whether it is spread, unless others have put it there."""
    spread = asked is not None and asked.device == AUTO and not model.info.textbook
    if model.info.borrowed:
        spread = devices.is_spread(model.module)
    return Placement(AUTO if spread else str(model.device), model.dtype_name)


def _opened(request: LoadRequest, context: Context) -> Model:
    reference, placement = request.reference, request.placement
    if reference in context.workspace.adopted:
        return context.workspace.adopted[reference]
    if reference.startswith(HANDED_OVER):
        raise CheckpointError(
            f"{reference.removeprefix(HANDED_OVER)} was an object of a Python program, and is not here. "
            "Call ax.open there again, or open a checkpoint."
        )
    examination = TRIED.take()
    if examination is None or not examination.holds_for(reference):
        examination = CheckpointInspector(reference)
        verdict_on(TrialRequest(reference=reference), context.should_stop).check(placement)
    return open_examined(examination, placement, context.should_stop)
