"""A few tokens through a model that was just opened: whether what its config promises is there to be seen.

Some families hand only a part of their attention on (LongT5's encoder keeps its own), some give bands of weights in
the place of squares, some call themselves causal and look ahead. All that shows in one run, and in no config.
"""

from __future__ import annotations

from typing import Any

import torch

from attention_models.files import devices
from attention_models.files.weight_files import summary
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.class_logits import logits_of
from attention_models.forward.model import Model
from attention_models.forward.output_weights import keep_output_weights
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.request import Cancelled

_PROBES = (5, 6)  # tokens: a band of weights is as wide as the text at one length, and not at the next
_OFF = 0.05  # by which a row of weights may miss 1: half precision rounds them


def check_first_run(model: Model) -> None:
    """Raises CheckpointError where a run of `model` fails, or shows nothing of a stack that its config names."""
    name = model.info.model_type
    for count in _PROBES if model.info.weights_only else _PROBES[:1]:
        recorder = _run(model, count)
        hidden = _hidden_stack(model, recorder)
        if hidden and not model.info.weights_only:
            raise CheckpointError(
                f"{model.info.name}: transformers' own code for {name} keeps the attention of its {hidden} to "
                "itself, so a part of the model could not be shown. Open a checkpoint of another family."
            )
        if len(recorder.sites) > sum(stack.layers for stack in model.info.stacks):
            raise CheckpointError(
                f"{model.info.name}: {name} computes several attentions in one layer and mixes them, which this "
                "program cannot draw. Open a checkpoint of another family."
            )
        lacking = what_is_lacking(model, recorder) if model.info.weights_only else ""
        if lacking:
            raise CheckpointError(_nothing_to_show(model, lacking))


def check_numbers(name: str, out: Any) -> None:
    """Raises CheckpointError where `out`, what a first run gave, holds NaN: float16 ends at 65,504."""
    last = logits_of(out)
    last = getattr(out, "last_hidden_state", None) if last is None else last
    if last is None or not bool(last.isnan().any()):
        return
    narrow = last.dtype == torch.float16
    advice = "Choose bfloat16 or float32" if narrow else "Fetch it again, or open another checkpoint"
    raise CheckpointError(
        f"{name} was loaded, but its first run gave values that are no numbers (NaN){' in float16' if narrow else ''}. "
        f"{advice}: every figure would be meaningless."
    )


def _hidden_stack(model: Model, recorder: Recorder) -> str:
    """A stack of which nothing was seen; "" where there is none. Layers of another kind (Jamba's) are no attention."""
    seen = {site.stack for site in recorder.sites}
    if not model.seq2seq:
        return "" if seen else model.info.stacks[0].stack
    return next((stack.stack for stack in model.info.stacks if stack.stack not in seen), "")


def _run(model: Model, count: int) -> Recorder:
    recorder = Recorder(model.module_names, model.seq2seq)
    try:
        encoded = model.encode([0] * count, [0] * count if model.seq2seq else None)
        with torch.no_grad(), recording(recorder):
            out = model.forward(encoded.inputs)
    except Cancelled:
        raise
    except Exception as cause:
        if devices.is_out_of_memory(cause):
            raise
        # XLNet's own code mixes formats, and some of its parameters are never cast
        halves = [str(p.dtype).removeprefix("torch.") for p in model.module.parameters() if p.dtype.itemsize == 2]
        in_half = f" in {halves[0]}" if halves else ""
        advice = "Choose float32, or open another checkpoint" if in_half else "Open another checkpoint"
        raise CheckpointError(
            f"{model.info.name} was loaded, but cannot be run{in_half}: {summary(cause)}. {advice}."
        ) from cause
    check_numbers(model.info.name, out)
    if model.info.weights_only:
        try:
            keep_output_weights(model, recorder, out, len(encoded.tokens))
        except Exception as cause:  # an output of another make
            raise CheckpointError(_nothing_to_show(model, "it gives no weight for every query and key")) from cause
    return recorder


def what_is_lacking(model: Model, recorder: Recorder) -> str:
    """What of its weights a model's output did not hold as they should be; "" where nothing is lacking."""
    layers = sum(stack.layers for stack in model.info.stacks)
    if len(recorder.inputs) != layers:
        return f"it gives the weights of {len(recorder.inputs)} of its {layers} layers"
    for site, x in zip(recorder.sites, recorder.inputs, strict=True):
        assert x.precomputed is not None
        off = float((x.precomputed.float().sum(-1) - 1).abs().max())
        if not off < _OFF:
            return f"what it gives as weights misses a sum of 1 by {off:.2g}"
        if site.causal and bool(x.precomputed.triu(1).any()):
            return "it is made to read from left to right, and its weights attend to later tokens"
    return ""


def _nothing_to_show(model: Model, lacking: str) -> str:
    return (
        f"{model.info.name}: transformers' own code for {model.info.model_type} keeps queries and keys to itself, and "
        f"{lacking}. So there would be nothing to show that is sure to be its attention. Open a checkpoint of another "
        "family."
    )
