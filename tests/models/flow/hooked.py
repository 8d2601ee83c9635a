"""What hooks on transformers' own eager model saw: every module's inputs and outputs, call by call."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from attention_models.forward.model import Model
from tests.models import tiny
from tests.models.eager import target_for

Seen = dict[str, list[tuple[Tensor | None, Tensor]]]
"""By module: input and output of each call, batch 1."""


@torch.no_grad()
def seen_in(model: Model, text: Any) -> Seen:
    """Load the checkpoint by transformers alone and run it, with a hook on every module."""
    theirs = tiny.eager(model)
    seen: Seen = defaultdict(list)

    def hook(name: str) -> Any:
        def keep(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            given = args[0] if args else kwargs.get("hidden_states")
            gave = out[0] if isinstance(out, tuple) else out
            if isinstance(gave, Tensor):
                seen[name].append((given.clone() if isinstance(given, Tensor) else None, gave.clone()))

        return keep

    for name, module in theirs.named_modules():
        module.register_forward_hook(hook(name), with_kwargs=True)
    encoded = model.encode(text, target_for(model)) if model.seq2seq else model.encode(text)
    theirs(**encoded.inputs)
    return seen


def hooked(model: Model) -> Seen:
    """What hooks saw on `tiny.SENTENCE`."""
    return seen_in(model, tiny.SENTENCE)


def of(seen: Seen, name: str, layer: int) -> tuple[Tensor | None, Tensor]:
    """Input and output of the module in block `layer`; a module that all blocks share was called once for each."""
    calls = seen[name]
    return calls[layer if len(calls) > 1 else 0]
