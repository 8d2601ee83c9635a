"""The logit lens: the stream after each block, read by the model's own last normalisation and output head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.attention.incremental import BlockSize
from attention_models.attention.numbers import copied
from attention_models.dataflow.readout import readout_of
from attention_models.effects.metric import resolve
from attention_models.forward.batches import encode
from attention_models.forward.context import Context
from attention_models.forward.logits import head_alone
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.forward.run import run_alone
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import LensRequest, LensView, Metric
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Cancelled, Report, ShouldStop, never, silent
from attention_models.protocol.values import read_only
from attention_models.views.candidates import label_of
from attention_models.views.residual import stream_after

_BLOCK = BlockSize(1 << 21)
"""Logits that are held at once: as many as stay in the cache."""

_TOLERANCE = 1e-4
"""Of the largest logit: by how much the last row may be off from the run's own."""

_COARSE = 2e-2
"""The same in half precision."""

NO_LOGITS = "This model has no output head: no layer says a word."
NO_STREAM = "This model has no residual stream that could be read after each layer."
ELSEWHERE = (
    "What this model's output head makes of the stream is not what it says (the head reads something else, or more "
    "layers stand between), so reading an earlier layer by it would show figures that are not the model's own."
)

Head = Callable[[Tensor], Tensor]
"""From (rows, width) of the stream to (rows, vocabulary)."""


def answer(request: LensRequest, context: Context) -> LensView:
    current = context.run(request.run)
    inputs = encode(current.model, current.text, current.written).inputs
    return lens_view(request, current.model, current.trace, inputs, context.should_stop, context.report)


def logit_lens(
    model: Model,
    text: object,
    *,
    target: int | str | None = None,
    position: int | None = None,
    written: object = None,
    interventions: tuple[Intervention, ...] = (),
) -> LensView:
    """What the model would say at every position if it ended after each layer.

    lens = logit_lens(model, "Tom and Anna went to the park. Anna gave the ball to")
    lens.best[:, lens.position]            # the likeliest token after the embedding and each block
    lens.target_rank[:, lens.position]     # where the model's own answer ranks there

    Args:
        position: what `lens.position` is; None as in `ax.head_effects`.
        written: what the decoder of an encoder-decoder model has written.
    """
    trace = run_alone(model, text, target=written, interventions=interventions)
    inputs = encode(model, text, written).inputs  # type: ignore[arg-type]
    if position is not None and not 0 <= position < len(trace.tokens):
        raise InputError(f"There is no position {position}: the text has tokens 0 to {len(trace.tokens) - 1:,}.")
    view = lens_view(LensRequest(run=0, target=target), model, trace, inputs)
    return view if position is None else replace(view, position=position)


@torch.no_grad()
def lens_view(
    request: LensRequest,
    model: Model,
    trace: Trace,
    inputs: dict[str, Tensor],
    should_stop: ShouldStop = never,
    report: Report = silent,
) -> LensView:
    """Of a run. Probabilities are softmax over the whole vocabulary, ranks count from 1.

    Raises:
        InputError: the target is no token.
        Cancelled: `should_stop()` was true between two blocks of positions.
    """
    stack, here = model.info.predicting_stack, answering_position(model, trace)
    stream = trace.residual.get(stack, ())
    if len(stream) > 1:
        stream = (*stream[:-1], stream_after(model, trace, stack, len(stream) - 2))
    norms = _lengths(stream, len(trace.tokens))
    written = _lengths([b.float() - a.float().to(b.device) for a, b in pairwise(stream)], len(trace.tokens))
    if not stream:
        return LensView(request=request, norms=norms, written=written, position=here, why=NO_STREAM)
    if not trace.has_logits:
        return LensView(request=request, norms=norms, written=written, position=here, why=NO_LOGITS)
    head, deviation = _head(model, trace, stream[-1], inputs)
    if head is None:
        return LensView(request=request, norms=norms, written=written, position=here, why=ELSEWHERE)
    target = resolve(model, trace, Metric(target=request.target)).target if request.target is not None else None
    return _read(request, model, trace, stream, head, target, norms, written, deviation, should_stop, report)


def _lengths(rows: Sequence[Tensor], tokens: int) -> np.ndarray:
    """(rows, tokens) float32 of each (tokens, width)."""
    lengths = [copied(torch.linalg.vector_norm(t.float(), dim=-1)) for t in rows]
    return read_only(np.stack(lengths) if lengths else np.zeros((0, tokens), np.float32))


def _read(
    request: LensRequest,
    model: Model,
    trace: Trace,
    stream: tuple[Tensor, ...],
    head: Head,
    target: int | None,
    norms: np.ndarray,
    written: np.ndarray,
    deviation: float,
    should_stop: ShouldStop,
    report: Report,
) -> LensView:
    tokens, layers = stream[-1].shape[0], len(stream)
    vocabulary = trace.logits_at([0]).shape[1]
    step = max(1, _BLOCK.on(stream[-1].device) // vocabulary)
    best = np.zeros((layers, tokens), np.int64)
    rank = np.zeros((layers, tokens), np.int64)
    share, entropy, of_target = (np.zeros((layers, tokens), np.float32) for _ in range(3))
    targets = torch.zeros(tokens, dtype=torch.int64)
    for row in range(layers - 1, -1, -1):  # from the end: what is said there is followed
        for start in range(0, tokens, step):
            if should_stop():
                raise Cancelled
            places = slice(start, min(start + step, tokens))
            logits = head(stream[row][places]).float()  # (positions, vocabulary)
            top = logits.max(dim=-1)
            if row == layers - 1:
                targets[places] = top.indices.cpu() if target is None else target
            logits = logits - top.values[:, None]
            followed = logits.gather(1, targets[places].to(logits.device)[:, None])  # (positions, 1)
            rank[row, places] = 1 + torch.count_nonzero(logits > followed, dim=-1).cpu().numpy()
            e = logits.exp()
            total = e.sum(dim=-1)
            best[row, places] = top.indices.cpu().numpy()
            share[row, places] = total.reciprocal().cpu().numpy()
            of_target[row, places] = (followed[:, 0].exp() / total).cpu().numpy()
            bits = (total.log() - torch.linalg.vecdot(e, logits) / total) / math.log(2)
            entropy[row, places] = bits.clamp(min=0).cpu().numpy()
        report("Reading every layer by the output head", (layers - row) / layers)
    ids = {*np.unique(best).tolist(), *targets.unique().tolist()}
    return LensView(
        request=request,
        norms=norms,
        written=written,
        best=read_only(best),
        best_share=read_only(share),
        entropy=read_only(entropy),
        targets=read_only(targets.numpy()),
        target_share=read_only(of_target),
        target_rank=read_only(rank),
        labels={id_: label_of(model, trace, id_) for id_ in ids},
        position=answering_position(model, trace),
        deviation=deviation,
    )


def _head(model: Model, trace: Trace, last: Tensor, inputs: dict[str, Tensor]) -> tuple[Head | None, float]:
    """What makes the run's own logits of the stream that leaves the last block; None where nothing found does."""
    readout = None if model.info.textbook else readout_of(model, trace)
    norm = None if readout is None else readout.norm_module
    places = sorted({0, last.shape[0] // 2, last.shape[0] - 1})
    if model.info.family == "vision":
        places = [0]  # where the classes are read
    elif model.info.class_head is not None and model.info.class_head.of == "text":
        return None, 0.0
    own = trace.logits_at(places).float().cpu()
    allowed = (_TOLERANCE if own.dtype == last.dtype else _COARSE) * float(own.abs().max())
    for head in _candidates(model, norm, None if readout is None else readout.head, inputs):
        try:
            off = float((head(last[places]).float().cpu() - own).abs().max())
        except (RuntimeError, TypeError, AttributeError, ValueError, IndexError):
            continue  # it needs more than the stream
        if off <= allowed:
            return head, off
    return None, 0.0


def _candidates(
    model: Model, norm: nn.Module | None, head: nn.Module | None, inputs: dict[str, Tensor]
) -> Iterator[Head]:
    """The model's own forward past its body, which may end with the last norm or before it; the head's matrix alone."""

    def normed(rows: Tensor) -> Tensor:
        return rows if norm is None else norm(rows)

    if norm is not None:
        yield lambda rows: head_alone(model, inputs, normed(rows))
    yield lambda rows: head_alone(model, inputs, rows)
    if head is not None:
        for factor in (1.0, model.info.width**-0.5):  # T5 scales what enters
            yield lambda rows, factor=factor: head(normed(rows) * factor)  # type: ignore[misc]
