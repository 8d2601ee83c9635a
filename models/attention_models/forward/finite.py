"""Whether what a run left behind are numbers: float32 ends at 3.4e38, float16 at 65,504, and beyond is infinity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.forward.capture import Recorder
from attention_models.protocol.errors import NotFiniteError
from attention_models.protocol.interventions import Intervention, Scale

_ROWS = 256  # whose scores are looked through at once


def check_finite(name: str, recorder: Recorder, out: Any) -> None:
    """Look for NaN and infinity in the residual stream after each block and in the logits of model `name`.

    What is no number in any attention weight is none in the residual stream after it, so that one number a layer is
    enough, and the device is waited for once.

    Raises:
        NotFiniteError: there is some; the sentence names the first layer where, and of what kind.
    """
    places = [
        (stack, layer, stream) for stack, streams in recorder.residual.items() for layer, stream in enumerate(streams)
    ]
    logits = getattr(out, "logits", None)
    tensors = [stream for _, _, stream in places]
    if isinstance(logits, Tensor):
        tensors.append(logits)
    wrong = _not_finite(tensors, isinstance(logits, Tensor))
    if wrong is None:
        return
    dtype = str(tensors[wrong].dtype).removeprefix("torch.")
    if wrong == len(places):
        what = f"the logits are {_kind(tensors[wrong])} in {dtype}"
    else:
        stack, index, _ = places[wrong]
        what = _what(recorder, stack, index, dtype)
    raise NotFiniteError(f"{name} gives no figures here: {what}. {_advice(recorder.interventions, dtype)}")


def _not_finite(tensors: Sequence[Tensor], with_logits: bool) -> int | None:
    """The first of `tensors` with NaN or infinity in it; of logits, the last one, -inf may be meant."""
    if not tensors:
        return None
    device = tensors[-1].device
    ends: list[Tensor] = []
    for place, tensor in enumerate(tensors):
        low, high = torch.aminmax(tensor.detach())  # NaN where any is NaN
        end = torch.stack([high if with_logits and place == len(tensors) - 1 else low, high]).float()
        ends.append(end if end.device == device else end.to(device))
    finite = torch.stack(ends).isfinite().all(dim=1).tolist()
    return next((place for place, fine in enumerate(finite) if not fine), None)


def _what(recorder: Recorder, stack: str, index: int, dtype: str) -> str:
    """Of the residual stream at `index`, where it is the first that is not finite."""
    stream = recorder.residual[stack][index]
    if index == 0:
        return f"the embeddings of the {stack} are {_kind(stream)} in {dtype}"
    layer = index - 1
    for site, x in zip(recorder.sites, recorder.inputs, strict=True):
        if site.layer != layer or site.stack not in (stack, "cross"):
            continue
        where = f"{site.stack} layer {layer}"
        if x.precomputed is not None:
            if not bool(x.precomputed.isfinite().all()):
                return f"attention weights of {where} are {_kind(x.precomputed)} in {dtype}"
            continue
        if not all(bool(part.isfinite().all()) for part in (x.query, x.key, x.value)):
            return f"queries, keys or values of {where} are {_kind(x.query, x.key, x.value)} in {dtype}"
        head = _overflowing_head(x)
        if head is not None:
            return f"attention scores of {where}, head {head}, are too large for {dtype}"
    return f"what {stack} layer {layer} adds to the residual stream is {_kind(stream)} in {dtype}"


def _kind(*tensors: Tensor) -> str:
    return "infinity" if any(bool(tensor.isinf().any()) for tensor in tensors) else "NaN (no numbers)"


def _overflowing_head(x: AttentionInputs) -> int | None:
    """The first head with a score that is NaN or infinite; -inf is what a mask adds."""
    for head in range(x.heads):
        for start in range(0, x.queries, _ROWS):
            scores = attention.scores(x, Part([head], slice(start, min(start + _ROWS, x.queries))))
            if not bool((scores < torch.inf).all()):
                return head
    return None


def _advice(interventions: Sequence[Intervention], dtype: str) -> str:
    if any(isinstance(item, Scale) and item.factor > 1 for item in interventions):
        return "Choose a smaller scale."
    if dtype == "float16":
        return "Choose bfloat16 or float32: float16 ends at 65,504."
    return "Change the text, or fetch the checkpoint again: its weights may be damaged."
