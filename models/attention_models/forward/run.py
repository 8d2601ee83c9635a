"""One forward pass of a model, recorded: what every attention weight depends on, as a `Trace`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.forward.batches import Targets, encode_batch, real_keys, targets_of
from attention_models.forward.capture import Recorder
from attention_models.forward.intervened import intervened
from attention_models.forward.logits import later_logits
from attention_models.forward.model import Encoded, Model, Target
from attention_models.forward.origin import origin_of
from attention_models.forward.output_weights import check_edits, keep_output_weights
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch, PaddingSide, check_one_text, is_batch
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import NotFiniteError
from attention_models.protocol.interventions import Intervention, Scale, check
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import never

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


@overload
def run(
    model: Model,
    text: list[str] | list[tuple[str, str]] | list[Pair] | list[Chat] | list[list[dict[str, str]]],
    *,
    target: Targets = None,
    padding: PaddingSide = "right",
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> tuple[Trace, ...]: ...


@overload
def run(
    model: Model,
    text: Prompt | tuple[str, str] | list[int] | list[dict[str, str]] | Path | np.ndarray | Tensor,
    *,
    target: Targets = None,
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> Trace: ...


def run(
    model: Model,
    text: Any,
    *,
    target: Targets = None,
    padding: PaddingSide = "right",
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> Trace | tuple[Trace, ...]:
    """Run `model` on `text` and keep what every attention weight depends on.

    Args:
        model: from `open_checkpoint`.
        text: the input, or token ids as they are (nothing is added to them; a list, or an array or tensor of one row),
            or a conversation: a `Chat` or `[{"role": "user", "content": "Good morning."}]`. Two texts, ("first",
            "second"), are read as a pair by the tokenizer's own template, with its segment ids where the model has
            embeddings of them. Several texts, pairs or conversations in a list, ["a text", "another"], are run at once.
            For a vision model a picture: its path, "sample:NAME", or an array (height, width, 3).
        target: what the decoder of an encoder-decoder model has written so far, after its start token; of several
            texts one for all, or a list with one for each.
        padding: where several texts are filled up to the length of the longest, "right" or "left".
        interventions: what to change (`attention_models.protocol.interventions`); without any the model runs as it is.
        should_stop: polled between blocks.

    Returns:
        The `Trace`: tokens, sites in the order in which they ran, weights on demand, logits. Of several texts one for
        each, of its row of the batch; padding is among its tokens, and marked (`Token.padding`).

    Raises:
        ValueError: an intervention names a layer or head that the model does not have.
        InputError: an empty text, one that is longer than the model's context, ids that it does not know, more texts
            than are run at once, or a part to be switched off that is not there.
        NotFiniteError: the run gave NaN or infinity, which is said of the first layer where.
        Cancelled: `should_stop()` was true.
    """
    if is_batch(text):
        batch = Batch.of(text, padding)
        return run_batch(model, batch, target=target, interventions=interventions, should_stop=should_stop)
    if isinstance(text, Batch):
        return run_batch(model, text, target=target, interventions=interventions, should_stop=should_stop)[text.shown]
    check_edits(model, interventions)
    if isinstance(text, tuple):
        text = Pair.of(text)
    encoded = model.encode(text, target)  # type: ignore[arg-type]
    return _run(model, [encoded], [text], [target], interventions, should_stop)[0]  # type: ignore[list-item]


def run_alone(
    model: Model,
    text: Any,
    *,
    target: Any = None,
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> Trace:
    """As `run`, of one text.

    Raises:
        InputError: `text` is a list of texts, or as in `run`.
    """
    check_one_text(text)
    return run(model, text, target=target, interventions=interventions, should_stop=should_stop)  # type: ignore[no-any-return]


def run_batch(
    model: Model,
    batch: Batch,
    *,
    target: Targets = None,
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> tuple[Trace, ...]:
    """As `run`, for several texts at once; one `Trace` for each, views of the same tensors.

    A `target` that is given goes before those of `batch`.
    """
    check_edits(model, interventions)
    targets = targets_of(batch, target)
    encoded = encode_batch(model, batch, targets)
    return _run(model, encoded, batch.texts, targets, interventions, should_stop, batch)


def run_each(
    model: Model,
    text: Prompt | list[int],
    target: Targets,
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> tuple[Trace, ...]:
    """As `run`; of a batch every trace."""
    if isinstance(text, Batch):
        return run_batch(model, text, target=target, interventions=interventions, should_stop=should_stop)
    return (run(model, text, target=target, interventions=interventions, should_stop=should_stop),)


def _run(
    model: Model,
    encoded: Sequence[Encoded],
    given: Sequence[Any],
    targets: Sequence[Target],
    interventions: Sequence[Intervention],
    should_stop: Callable[[], bool],
    batch: Batch | None = None,
) -> tuple[Trace, ...]:
    """Texts of one batch, which share their inputs."""
    shared, tokens = encoded[0].inputs, len(encoded[0].tokens)
    real = real_keys(model, shared) if len(encoded) > 1 else {}
    recorder = Recorder(model.module_names, model.seq2seq, should_stop, tuple(interventions), real=real)
    with (
        torch.no_grad(),
        intervened(model, shared, recorder) as inputs,
        later_logits(model, inputs, len(encoded) * tokens) as later,
    ):
        out = model.forward(inputs if later is None else later.asking)
        if model.info.weights_only:
            keep_output_weights(model, recorder, out, tokens)
    check(interventions, recorder.sites)
    check_finite(model.info.name, recorder, out)
    return tuple(
        Trace.of(one, recorder, out, later, origin_of(model, text, target, one, batch and batch.showing(one.row)))
        for one, text, target in zip(encoded, given, targets, strict=True)
    )
