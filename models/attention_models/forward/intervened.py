"""A pass that is recorded, and changed as the recorder's interventions say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from attention_models.forward.ablation import ablated
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.model import Model
from attention_models.forward.position_edits import edited_positions
from attention_models.protocol.values import SiteRef


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
