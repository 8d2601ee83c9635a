"""Takes a model's positions away, or shifts them, for the length of one forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from attention_models.forward.model import Model
from attention_models.forward.position_schemes import scheme_of
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Positions


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
