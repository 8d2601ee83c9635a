"""A pass that is recorded, and changed as the recorder's interventions say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from attention_models.forward.ablation import ablated
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.model import Model
from attention_models.forward.position_schemes import scheme_of
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Positions
from attention_models.protocol.values import SiteRef


@contextmanager
def edited_positions(
    model: Model, inputs: dict[str, Tensor], interventions: Sequence[Intervention], past: int = 0
) -> Iterator[dict[str, Tensor]]:
    """The inputs to run with, while positions are as `interventions` say. `past` tokens ran before these.

    Raises:
        InputError: the model has no positions to turn off, cannot count from elsewhere, or its table ends before the
            last token.
    """
    mode = next((item for item in interventions if isinstance(item, Positions)), None)
    if mode is None:
        yield inputs
        return
    scheme = scheme_of(model)
    refusal = scheme.why_not_off(model) if mode.mode == "off" else scheme.why_not_shifted(model)
    if refusal:
        raise InputError(refusal)
    if mode.mode == "shift":
        yield scheme.shifted(model, inputs, mode.by, past)
        return
    with scheme.off(inputs) as changed:
        yield changed


@contextmanager
def intervened(
    model: Model, inputs: dict[str, Tensor], recorder: Recorder, first: SiteRef | None = None
) -> Iterator[dict[str, Tensor]]:
    """The inputs to run with. While it lasts, this thread's passes write to `recorder`, under its interventions.

    `inputs` are those of a whole run, `first` the block that a pass over part of the model begins with.

    Raises:
        InputError: an intervention does not fit this model or these inputs.
    """
    with (
        recording(recorder),  # first, for heads that are skipped are edits of it
        model.adapter_as(recorder.interventions),
        ablated(model, inputs, recorder.interventions, first),
        edited_positions(model, inputs, recorder.interventions) as changed,
    ):
        yield changed
