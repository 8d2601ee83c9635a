"""Logits of a long text, computed where they are looked at.

At 4,096 tokens GPT-2's logits take 0.8 GB, more than everything else that a run keeps. So beyond `KEPT_BYTES` the run
keeps what enters the output head, and the model's own forward makes the logits of the rows asked for, caps and scales
included: its body is passed over, and `logits_to_keep` names the rows. A family without that argument does not promise
that its head takes each position for itself, so its logits are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from attention_models.forward.model import Model

KEPT_BYTES = 1 << 26

_lock = threading.Lock()  # a body that is passed over is so for every thread


@dataclass(slots=True, eq=False)
class LaterLogits:
    """What the output head was given, and the model that it belongs to."""

    model: Model
    inputs: Mapping[str, Tensor]
    body: nn.Module
    body_output: Any = field(default=None)  # the body's output, with nothing but the last hidden state in it

    @property
    def hidden(self) -> Tensor:
        """(tokens, width), as it enters the output head."""
        hidden: Tensor = self.body_output.last_hidden_state
        return hidden[0]

    @property
    def asking(self) -> dict[str, Any]:
        """The inputs, asking for the last position's logits alone."""
        return {**self.inputs, "logits_to_keep": 1}

    def of_text(self, text: int) -> LaterLogits:
        """Those of one text of a batch."""
        row = slice(text, text + 1)
        inputs = {name: given[row] if given.shape[0] > 1 else given for name, given in self.inputs.items()}
        body_output = type(self.body_output)(last_hidden_state=self.body_output.last_hidden_state[row])
        return LaterLogits(self.model, inputs, self.body, body_output)

    @torch.no_grad()
    def at(self, rows: list[int]) -> Tensor:
        """Logits at some positions, (rows, vocabulary), in the model's dtype.

        They differ from those of a product over all positions by rounding: at most 1e-5 of the largest in float32.
        """
        with _passed_over(self.body, self.body_output):
            # a list and not a tensor: the head may lie on another device than the inputs
            asking: dict[str, Any] = {**self.inputs, "logits_to_keep": rows}
            out = self.model.forward(asking)
        logits: Tensor = out.logits[0]
        return logits


@contextmanager
def _passed_over(module: Any, output: Any) -> Iterator[None]:
    """While it lasts, the body of a model gives `output` and computes nothing."""
    with _lock:
        wrapped = vars(module).get("forward")  # accelerate puts one around each part of a model that it spreads
        module.forward = lambda *_args, **_kwargs: output
        try:
            yield
        finally:
            del module.forward
            if wrapped is not None:
                module.forward = wrapped


class _BodyOutput:
    """The last hidden state, and nothing else that a body gives."""

    def __init__(self, states: Tensor) -> None:
        self.last_hidden_state = states

    def __getitem__(self, place: Any) -> Any:
        return () if isinstance(place, slice) else self.last_hidden_state if place == 0 else None

    def __getattr__(self, _name: str) -> None:
        return None


@torch.no_grad()
def head_alone(model: Model, inputs: Mapping[str, Tensor], states: Tensor) -> Tensor:
    """What the model's own forward makes of `states`, (rows, width), as if its body had given them: (rows, vocabulary).

    Raises:
        ValueError: the model is all body, so that nothing comes after it.
    """
    body = getattr(model.module, "base_model", None)
    if body is None or body is model.module:
        raise ValueError("This model has no body of its own beside its output head.")
    one = {name: t[:1] for name, t in inputs.items()}
    with _passed_over(body, _BodyOutput(states[None])):
        out = model.forward(one)
    logits: Tensor = out.logits[0]
    return logits


def last_only(model: Model, tokens: int) -> dict[str, int]:
    """What to ask a forward pass for, where the logits of its `tokens` are too many and the last one's are enough."""
    return {"logits_to_keep": 1} if _are_many(model, tokens) and model.accepts("logits_to_keep") else {}


def _are_many(model: Model, tokens: int) -> bool:
    return tokens * model.info.vocabulary * model.dtype.itemsize > KEPT_BYTES


@contextmanager
def later_logits(model: Model, inputs: Mapping[str, Tensor], tokens: int) -> Iterator[LaterLogits | None]:
    """Around a forward pass whose logits are too many to keep: `body_output` is set after it.

    None where they are kept.
    """
    body = getattr(model.module, "base_model", None)
    is_as_opened = model.adapter is None or not model.adapter.is_off  # so will the head be that makes them later
    can_wait = body is not model.module and model.accepts("logits_to_keep") and is_as_opened
    if not _are_many(model, tokens) or body is None or not can_wait:
        yield None
        return
    later = LaterLogits(model, inputs, body)

    def keep(_module: nn.Module, _args: Any, out: Any) -> None:
        later.body_output = type(out)(last_hidden_state=out.last_hidden_state)

    handle = body.register_forward_hook(keep)
    try:
        yield later
    finally:
        handle.remove()
