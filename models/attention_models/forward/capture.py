"""Runs any model whose attention goes through transformers' attention interface, and keeps what its weights depend on.

One function is registered under the name `IMPLEMENTATION`; a model opened with it hands every layer's query, key,
value and mask to us. While a `Recorder` is active in the calling thread it keeps them (references, no copies) and the
residual stream after each block. Without one the function only computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import AttentionInterface, AttentionMaskInterface

from attention_models.attention import output as mixing
from attention_models.attention.edits import MaskFunctions, edited
from attention_models.attention.inputs import AttentionInputs
from attention_models.attention.masks import mask_where_looked_at
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.values import Site

IMPLEMENTATION = "attention_explorer"

MixEdit = Callable[[Site, AttentionInputs, Tensor], Tensor]
"""From what a site was given and what its heads give, (batch, heads, queries, value_dim), to what they are to give."""

_CROSS_NAMES = ("crossattention", "cross_attn", "encoder_attn", "encdecattention")


@dataclass(slots=True, eq=False)
class Recorder:
    """What one forward pass left behind."""

    names: Mapping[nn.Module, str]
    seq2seq: bool = False
    should_stop: Callable[[], bool] = never
    interventions: tuple[Intervention, ...] = ()
    past: int = 0  # tokens of the decoder that ran before: its first query is this one's place
    real: Mapping[str, Tensor] = field(default_factory=dict)  # stack: (batch, keys) bool, False of a batch's padding
    inputs: list[AttentionInputs] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    residual: dict[str, list[Tensor]] = field(default_factory=dict)  # stack: embedding, then after each block
    mix_edits: list[MixEdit] = field(default_factory=list)
    mask_functions: MaskFunctions = field(default_factory=dict)  # of masks that interventions made
    _layers: dict[str, set[int]] = field(default_factory=dict)  # stack: numbers of the layers that ran

    def keep(self, module: nn.Module, x: AttentionInputs, stack: str = "") -> AttentionInputs:
        """Keep what `module` was given, edited as the interventions say; the module goes on with what comes back.

        `stack` is told by the module and its name where it is not given.
        """
        name = self.names.get(module, "")
        looks_back = bool(getattr(module, "is_causal", False))
        stack = stack or stack_of(name, self.seq2seq, looks_back)
        taken = self._layers.setdefault(stack, set())
        layer = getattr(module, "layer_idx", None)
        # some families number no layers, some run one module many times (ALBERT): then the order of calls decides
        if not isinstance(layer, int) or layer in taken:
            layer = len(taken)
        taken.add(layer)
        _, heads, queries, head_dim = x.query.shape
        _, key_heads, keys, _ = x.key.shape
        site = Site(
            stack=stack,
            layer=layer,
            heads=heads,
            key_heads=key_heads,
            head_dim=head_dim,
            queries=queries,
            keys=keys,
            causal=x.causal or looks_back,
            module=name,
            added_keys=_added_keys(module),
        )
        if self.interventions:
            past = 0 if stack == "encoder" and self.seq2seq else self.past
            x = edited(x, site, self.interventions, past, self.mask_functions, self.real.get(stack))
        self.inputs.append(x)
        self.sites.append(site)
        return x

    def mix(self, x: AttentionInputs) -> Tensor:
        """What the module kept last goes on with: `attention_models.attention.output.output`, and edits of it."""
        out = mixing.output(x)
        for edit in self.mix_edits:
            out = edit(self.sites[-1], x, out)
        return out

    def keep_residual(self, stack: str, before: Tensor | None, after: Tensor) -> None:
        stream = self.residual.setdefault(stack, [])
        if before is not None and stream:
            stream[-1] = before  # what was added between two blocks is of the stream too
        elif before is not None:
            stream.append(before)
        stream.append(after)


class PassingRecorder(Recorder):
    """Edits as a `Recorder` does, and keeps nothing."""

    def keep(self, module: nn.Module, x: AttentionInputs, stack: str = "") -> AttentionInputs:
        kept = super().keep(module, x, stack)
        self.inputs.clear()
        return kept

    def keep_residual(self, stack: str, before: Tensor | None, after: Tensor) -> None:
        """Nothing is kept."""


_active = threading.local()


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Make `recorder` the one that this thread's forward passes write to."""
    earlier = getattr(_active, "recorder", None)
    _active.recorder = recorder
    try:
        yield recorder
    finally:
        _active.recorder = earlier


def active() -> Recorder | None:
    return getattr(_active, "recorder", None)


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface: (batch, heads, queries, head_dim) in, (batch, queries, heads, head_dim) out.

    `dropout` is not applied: weights that were thrown away at random are not what the model computes.
    """
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is not None and attention_mask.shape[-1] > key.shape[2]:
        attention_mask = attention_mask[..., : key.shape[2]]
    x = AttentionInputs(
        query=query,
        key=key,
        value=value,
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        causal=bool(causal) and attention_mask is None and query.shape[2] > 1,
        mask=attention_mask,
        bias=position_bias,
        softcap=softcap,
        sinks=s_aux,
    )
    recorder = active()
    if recorder is None:
        return mixing.output(x).transpose(1, 2).contiguous(), None
    stack = getattr(module, "stack", "")  # of the textbook transformer, which says it itself
    return recorder.mix(recorder.keep(module, x, stack if isinstance(stack, str) else "")).transpose(
        1, 2
    ).contiguous(), None


AttentionInterface.register(IMPLEMENTATION, attention_forward)
AttentionMaskInterface.register(IMPLEMENTATION, mask_where_looked_at)


def _added_keys(module: nn.Module) -> int:
    if not isinstance(module, nn.MultiheadAttention):
        return 0
    return int(module.bias_k is not None) + int(module.add_zero_attn)


@lru_cache(maxsize=4096)
def stack_of(name: str, seq2seq: bool, causal: bool) -> str:
    """Which stack the module called `name` belongs to."""
    low = name.lower()
    if any(cross in low for cross in _CROSS_NAMES):
        return "cross"
    if seq2seq:
        # the outermost of the two: a decoder that was made from BERT has an "encoder" inside
        return next((part for part in low.split(".") if part in ("encoder", "decoder")), "decoder")
    return "decoder" if causal else "encoder"


def blocks_of(module: nn.Module, seq2seq: bool, causal: bool) -> Iterator[tuple[str, nn.Module]]:
    """Every block (element of an outermost ModuleList), with the stack that it belongs to."""
    outer = ""
    has_two = seq2seq or any(isinstance(child, nn.Transformer) for child in module.modules())
    for name, child in module.named_modules():
        if isinstance(child, nn.ModuleList) and not (outer and name.startswith(outer + ".")):
            outer = name
            for block in child:
                yield stack_of(name, has_two, causal), block


def watch_blocks(module: nn.Module, blocks: Iterable[tuple[str, nn.Module]]) -> list[RemovableHandle]:
    """Hook every block of `module`, so that an active recorder keeps the residual stream.

    Between blocks it is also asked whether to go on. The handles take the hooks off again.
    """
    time_first = getattr(getattr(module, "config", None), "model_type", "") == "xlnet"  # (tokens, batch, width)
    return [block.register_forward_hook(_residual_hook(stack, time_first), with_kwargs=True) for stack, block in blocks]


def _residual_hook(stack: str, time_first: bool) -> Callable[..., None]:
    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        recorder = active()
        if recorder is None:
            return
        if recorder.should_stop():
            raise Cancelled
        before = args[0] if args else kwargs.get("hidden_states")
        after = out[0] if isinstance(out, tuple) else out
        states = [t.transpose(0, 1) if time_first and isinstance(t, Tensor) else t for t in (before, after)]
        before, after = states
        if isinstance(after, Tensor):
            recorder.keep_residual(stack, before if isinstance(before, Tensor) else None, after)

    return hook
