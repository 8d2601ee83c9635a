"""What the parts of a model give on average over all positions of texts (`attention_models.forward.mean_texts`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.block_hooks import Edit, Edits, hooked, tensor_of
from attention_models.forward.capture import PassingRecorder, recording
from attention_models.forward.mean_texts import mean_inputs
from attention_models.forward.model import Model
from attention_models.forward.sublayers import Blocks, Call
from attention_models.protocol.values import Site, SiteRef


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Float32 means over positions.

    Attributes:
        heads: (heads, value_dim) of what each head of a site gives, before W_O.
        summands: (width,) of what a call adds to the stream.
        neurons: (neurons,) of the activations that the last matrix of a feed-forward network reads.
    """

    heads: Mapping[SiteRef, Tensor]
    summands: Mapping[tuple[SiteRef, Call], Tensor]
    neurons: Mapping[SiteRef, Tensor]


@dataclass(slots=True, eq=False)
class _Sums:
    total: dict[Any, Tensor] = field(default_factory=dict)
    count: dict[Any, int] = field(default_factory=dict)

    def add(self, key: Any, rows: Tensor) -> None:
        """Of (positions, ...)."""
        total = rows.cpu().double().sum(dim=0)  # some devices have no float64
        self.total[key] = self.total[key] + total if key in self.total else total
        self.count[key] = self.count.get(key, 0) + len(rows)

    def means(self, kind: str) -> dict[Any, Tensor]:
        return {k[1]: (t / self.count[k]).float() for k, t in self.total.items() if k[0] == kind}


@torch.no_grad()
def means_of(model: Model, blocks: Blocks, should_stop: Callable[[], bool]) -> Means:
    """Those of `model` as it is now, an adapter that is off included.

    Found once a model, and once more without its adapter.
    """
    is_off = model.adapter is not None and model.adapter.is_off
    if is_off not in model.means:
        model.means[is_off] = _measured(model, blocks, should_stop)
    found: Means = model.means[is_off]
    return found


def _measured(model: Model, blocks: Blocks, should_stop: Callable[[], bool]) -> Means:
    sums = _Sums()

    def of_heads(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
        sums.add(("head", site.ref), out.transpose(1, 2).flatten(0, 1))  # (positions, heads, value_dim)
        return out

    for encoded in mean_inputs(model):
        recorder = PassingRecorder(model.module_names, model.seq2seq, should_stop, mix_edits=[of_heads])
        edits: Edits = {
            ref: {call: _counting(sums, ref, call, call == found.neurons) for call in _calls(found)}
            for ref, found in blocks.items()
        }
        with recording(recorder), hooked(model, edits):
            model.forward(encoded.inputs)
    return Means(sums.means("head"), sums.means("summand"), sums.means("neuron"))


def _calls(found: Any) -> list[Call]:
    """What adds to the stream, and the matrix that reads the neurons."""
    calls = [call for part in ("attention", "cross", "mlp") for call in found.calls.get(part, ())]
    return calls if found.neurons is None or found.neurons in calls else [*calls, found.neurons]


def _counting(sums: _Sums, ref: SiteRef, call: Call, reads_neurons: bool) -> Edit:
    def edit(given: Any, out: Any) -> None:
        wrote = tensor_of(out)
        sums.add(("summand", (ref, call)), wrote.reshape(-1, wrote.shape[-1]))
        if reads_neurons:
            read = given[0][0]
            sums.add(("neuron", ref), read.reshape(-1, read.shape[-1]))

    return edit
