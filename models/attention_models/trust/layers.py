"""A model run once more with its own eager attention beside each layer's: what it is held against, layer by layer.

Two ways, both through an attention implementation of transformers' interface. `Sampler` lets a long text run through
transformers' fused kernel and computes some rows by the model's own eager function; their outputs go on to the next
layer. `LayerwiseCheck` hands every layer the queries and keys that the run had there, and goes on with the run's
own output, so that nothing adds up from layer to layer: with few digits rounding alone would.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask

from attention_models.attention import attention
from attention_models.attention import output as mixing
from attention_models.attention.inputs import Part
from attention_models.attention.masks import RowMask, mask_where_looked_at
from attention_models.attention.rounding import bounds, share_of_inputs
from attention_models.forward.capture import IMPLEMENTATION
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import TOLERANCE

# Rows of every head that are compared in a long text.
ROWS = 64

# Cells of a mask that are held at once.
_CELLS = 1 << 22

_WHOLE = f"{IMPLEMENTATION}_beside"  # with masks made as for eager attention
_SAMPLED = f"{IMPLEMENTATION}_sampling"  # with none that holds every query and key
_active = threading.local()


class Layers(Protocol):
    """Computes the attention of each layer while a pass runs, and measures."""

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]: ...


@contextmanager
def answering(model: Model, layers: Layers, *, sampled: bool) -> Iterator[None]:
    """While it lasts, `layers` computes the attention of `model` in this thread."""
    module: Any = model.module
    _active.layers = layers
    try:
        module.set_attn_implementation(_SAMPLED if sampled else _WHOLE)
        yield
    finally:
        module.set_attn_implementation(IMPLEMENTATION)
        _active.layers = None


def sampled_rows(queries: int) -> list[int]:
    """Rows spread over a text, its first and last among them."""
    return sorted({round(i * (queries - 1) / (ROWS - 1)) for i in range(ROWS)})


class Sites:
    """The sites of a trace by the module that they ran in, in the order in which it ran."""

    def __init__(self, model: Model, trace: Trace) -> None:
        self._names = model.module_names
        self._left: dict[str, list[int]] = {}
        for i, site in enumerate(trace.sites):
            self._left.setdefault(site.module, []).append(i)

    def next(self, module: nn.Module) -> int:
        return self._left[self._names[module]].pop(0)


@dataclass(slots=True, eq=False)
class Sampler:
    """Compares some rows of each layer."""

    trace: Trace
    sites: Sites
    text: int  # which of a batch the trace is of
    should_stop: Callable[[], bool]
    worst: dict[int, float] = field(default_factory=dict)  # largest difference of a weight at each site

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        if self.should_stop():
            raise Cancelled
        # what the fused kernel cannot do is done by the eager function too, some rows at a time
        fuses = all(options.get(name) is None for name in ("softcap", "s_aux", "position_bias"))
        fuses = fuses and query.device.type not in attention.UNTRUSTED
        queries = query.shape[2]
        rows = sampled_rows(queries)
        if not fuses:
            blocks = [list(range(i, min(i + ROWS, queries))) for i in range(0, queries, ROWS)]
            output = torch.cat([_some(module, query, key, value, mask, b, options)[0] for b in blocks], dim=1)
        elif isinstance(mask, RowMask):
            output = _fused_by_rows(module, query, key, value, mask, options)
        else:
            output = sdpa_attention_forward(module, query, key, value, mask, **options)[0]  # (1, queries, heads, dim)
        part, weights = _some(module, query, key, value, mask, rows, options)
        site = self.sites.next(module)
        x, padding = self.trace.inputs[site], padding_rows(self.trace, site, rows)
        self.worst[site] = max(
            largest_of_rows(weights[self.text, head].float() - attention.weights(x, Part([head], rows))[0, 0], padding)
            for head in range(x.heads)
        )
        if fuses:
            output[:, rows] = part.to(output.dtype)
        return output, None


@dataclass(slots=True, eq=False)
class LayerwiseCheck:
    """Compares each layer on the queries, keys and values that the run had there.

    The model's own eager function computes it twice from them: in float32, which our weights must equal, and in the
    model's format, which rounding must explain; and so it must our output, that the run went on with.
    """

    trace: Trace
    sites: Sites
    text: int  # which of a batch the trace is of
    should_stop: Callable[[], bool]
    sampled: bool  # on some rows, where no mask is made that holds every query and key
    worst: dict[int, float] = field(default_factory=dict)  # largest difference of a weight at each site, in float32
    rounding: float = 0.0  # largest share of what rounding explains
    tolerance: float = TOLERANCE  # of `worst`: of scores beyond 80 float32 itself rounds more away

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        site = self.sites.next(module)
        x, batch = self.trace.inputs[site], query.shape[0]
        text = slice(self.text, self.text + 1)
        query, key, value = query[text], key[text], value[text]
        if batch > 1:
            mask = _of_text(mask, self.text)
            bias = options.get("position_bias")
            options = options if bias is None else {**options, "position_bias": _of_text(bias, self.text)}
        pairs = ((query, x.query), (key, x.key), (value, x.value))
        shares = [share_of_inputs(theirs, ours) for theirs, ours in pairs]
        output = mixing.output(x)  # (1, heads, queries, value_dim)
        rows = sampled_rows(x.queries) if self.sampled else None
        padding = padding_rows(self.trace, site, rows)
        _, rounded = _some(module, x.query, x.key, x.value, mask, rows, options)
        single = {name: _float(option) for name, option in options.items()}
        query, key, value, mask = (_float(part) for part in (x.query, x.key, x.value, mask))
        exact, weights = _some(module, query, key, value, mask, rows, single)
        worst = 0.0
        for head in range(x.heads):
            if self.should_stop():
                raise Cancelled
            theirs = _without(weights[0, head], padding)
            worst = max(worst, largest(theirs - _without(attention.weights(x, Part([head], rows))[0, 0], padding)))
            room = bounds(x, head, rows, theirs)
            self.tolerance = max(self.tolerance, room.in_single)
            ours = output[0, head] if rows is None else output[0, head, rows]
            shares.append(room.share_of_weights(_without(rounded[0, head], padding)))
            value = x.value[0, head // x.group]
            shares.append(room.share_of_outputs(_without(ours, padding), _without(exact[0, :, head], padding), value))
        self.worst[site] = worst
        self.rounding = max(self.rounding, *shares)
        output = output.transpose(1, 2).contiguous()  # (1, queries, heads, value_dim)
        if batch == 1:
            return output, None
        among = output.new_zeros(batch, *output.shape[1:])  # no text of a batch depends on another
        among[text] = output
        return among, None


def largest(difference: Tensor) -> float:
    """Largest absolute value; a NaN on either side counts as infinitely far."""
    value = float(difference.abs().max())
    return math.inf if math.isnan(value) else value


def largest_of_rows(difference: Tensor, without: Tensor | None) -> float:
    """As `largest`, of (rows, keys), but for the rows `without`, (rows, 1) bool."""
    return largest(_without(difference, without))


def _without(t: Tensor, rows: Tensor | None) -> Tensor:
    """(rows, any) with 0 in some rows."""
    return t if rows is None else t.masked_fill(rows, 0.0)


def padding_rows(trace: Trace, site: int, rows: list[int] | None = None) -> Tensor | None:
    """Which rows are of padding, (rows, 1) bool; None where no token is.

    They are not compared. Where nothing is visible to one, the fused kernel gives 0 and eager attention gives each key
    the same weight, masked or not; later layers' rows of padding follow. Nothing that is no padding depends on either.
    """
    x = trace.inputs[site]
    tokens = trace.source if trace.source and trace.sites[site].stack == "encoder" else trace.tokens
    if not any(token.padding for token in tokens):
        return None
    wanted = range(x.queries) if rows is None else rows
    return torch.tensor([tokens[row].padding for row in wanted], device=x.query.device)[:, None]


def _of_text(t: Tensor | None, text: int) -> Tensor | None:
    """Of a tensor that broadcasts over a batch, what is one text's."""
    if t is None or t.shape[0] == 1:
        return t
    return t.of_text(text) if isinstance(t, RowMask) else t[text : text + 1]


def _fused_by_rows(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: RowMask, options: dict[str, Any]
) -> Tensor:
    """transformers' own fused kernel with every key and a few rows of the mask: (1, queries, heads, value_dim)."""
    queries = query.shape[2]
    step = max(1, _CELLS // key.shape[2])
    return torch.cat(
        [
            sdpa_attention_forward(module, query[:, :, rows], key, value, mask.block(rows=rows), **options)[0]
            for rows in (slice(start, min(start + step, queries)) for start in range(0, queries, step))
        ],
        dim=1,
    )


def _some(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    rows: list[int] | None,
    options: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """Output (1, rows, heads, value_dim) and weights (1, heads, rows, keys) of some queries, by a model's own code.

    Where `rows` is None they are all wanted, and `mask` is what eager attention is given.
    """
    eager: Any = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        raise ExplorerError("This model has no eager attention of its own to compare with.")
    if rows is None:
        output, weights = eager(module, query, key, value, mask, **options)
        return output, weights
    if mask is None:
        later = torch.arange(key.shape[2], device=query.device) > torch.tensor(rows, device=query.device)[:, None]
        is_causal = options.get("is_causal")
        is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        allowed = ~later[None, None] if is_causal else torch.ones_like(later)[None, None]
    elif isinstance(mask, RowMask):
        allowed = mask.block(rows=rows)
    else:
        allowed = mask if mask.shape[2] == 1 else mask[:, :, rows]
    if allowed.dtype == torch.bool:
        lowest = torch.finfo(query.dtype).min
        allowed = torch.zeros(allowed.shape, dtype=query.dtype, device=query.device).masked_fill(~allowed, lowest)
    bias = options.get("position_bias")
    if bias is not None and bias.shape[2] != 1:
        options = {**options, "position_bias": bias[:, :, rows]}
    output, weights = eager(module, query[:, :, rows], key, value, allowed, **options)
    return output, weights


def _float(part: Any) -> Any:
    return part.float() if isinstance(part, Tensor) and part.is_floating_point() else part


def _forward(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    layers: Layers = _active.layers
    return layers.attend(module, query, key, value, attention_mask, **options)


AttentionInterface.register(_WHOLE, _forward)
AttentionMaskInterface.register(_WHOLE, eager_mask)
AttentionInterface.register(_SAMPLED, _forward)
AttentionMaskInterface.register(_SAMPLED, mask_where_looked_at)
