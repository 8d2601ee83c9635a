"""Writes what is on screen as PyTorch: each kind of request names the function that does (`Request.printed_by`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import torch

from attention_models.attention.numbers import to_numpy
from attention_models.dataflow.norms import Norm
from attention_models.dataflow.readout import readout_of
from attention_models.files.devices import weight_of
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position, predict
from attention_models.forward.trace import SiteLike, Trace
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.errors import InputError
from attention_models.protocol.prediction import PredictionRequest
from attention_models.protocol.request import Request
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.scripts.cell import cell_script
from attention_models.scripts.head import head_script
from attention_models.scripts.script_text import Script, quoted
from attention_models.views.residual import stream_after

# The next token as a script: final norm, unembedding, softmax.


_MOST_MATRIX = 12_000  # numbers of the unembedding that are written out
_EXACT = 1e-5  # of the largest logit: what rounding makes of the same formula


def write(request: PredictionRequest, context: Context) -> Script:
    run = context.run(request.run)
    return next_token_script(run.model, run.trace, request.positions[0], request.top)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """How the logits of some tokens come of the last residual stream."""

    norm: Norm | None
    stream: torch.Tensor  # (width,)
    matrix: torch.Tensor  # (tokens, width)
    added: torch.Tensor | None  # (tokens,)
    factor: float
    cap: float | None


@torch.no_grad()
def next_token_script(model: Model, trace: Trace, position: int, top: int = 10) -> Script:
    """Of what is said at `position`; raises as `predict`."""
    said = predict(model, trace, [position], top)[0]
    logits = trace.logits_at([position])[0].float().cpu()  # (vocabulary,)
    ids = [candidate.id for candidate in said.candidates]
    word = trace.tokens[position].word
    script = Script(f"{model.info.name}: what it says at {quoted(word)} ({position})")
    reading = _reading(model, trace, position, ids, logits)
    kept = ids if reading is None else ids[: len(reading.matrix)]
    others = torch.ones(len(logits), dtype=torch.bool)
    others[kept] = False
    script.section("the numbers on screen")
    script.line(f"words = {[c.label for c in said.candidates[: len(kept)]]!r}")
    n, width = len(kept), 0
    if reading is not None:
        width = len(reading.stream)
        script.tensor("h", reading.stream, f"({width},) the residual stream after the last block")
        if reading.norm is not None and reading.norm.gain is not None:
            script.tensor("gain", reading.norm.gain.float(), f"({width},) of the last norm, learned")
        if reading.norm is not None and reading.norm.bias is not None:
            script.tensor("shift", reading.norm.bias.float(), f"({width},) learned")
        script.tensor("W_U", reading.matrix, f"({n}, {width}) these words' rows of the unembedding")
        if reading.added is not None:
            script.tensor("b", reading.added, f"({n},) learned")
    else:
        script.tensor("logits", logits[kept], f"({n},) as the model gives them")
    rest = float(torch.logsumexp(logits[others].double(), 0))
    script.number("others", rest, f"log of the sum of exp(logit) of the other {int(others.sum()):,} tokens")
    script.section("the computation")
    if reading is not None:
        _unembed(script, reading, n, width)
    script.show("first logit", "logits[0]", said.candidates[0].logit)
    script.line("every = torch.cat([logits, torch.tensor([others])]).double()", f"({n + 1},) the last: all others")
    script.line("p = torch.softmax(every, dim=-1)[:-1]", f"({n},)")
    script.line("print(dict(zip(words, p.tolist())))")
    for place in range(min(3, n)):
        script.show(f"p[{place}]", f"p[{place}]", said.candidates[place].probability)
    return script


def _unembed(script: Script, reading: _Reading, n: int, width: int) -> None:
    norm = reading.norm
    if norm is not None:
        if norm.rms:
            script.line(f"x = h / (h.square().mean() + {norm.eps!r}).sqrt()", f"({width},) RMSNorm")
        else:
            script.line("x = h - h.mean()", f"({width},) LayerNorm")
            script.line(f"x = x / (x.square().mean() + {norm.eps!r}).sqrt()", f"({width},)")
        if norm.gain is not None:
            script.line("x = x * gain", f"({width},)")
        if norm.bias is not None:
            script.line("x = x + shift", f"({width},)")
    else:
        script.line("x = h", f"({width},) no norm before the unembedding")
    if reading.factor != 1:
        script.line(f"x = x * {reading.factor!r}", "this family scales it")
    script.line("logits = W_U @ x", f"({n},)")
    if reading.added is not None:
        script.line("logits = logits + b", f"({n},)")
    if reading.cap is not None:
        script.line(f"logits = {reading.cap!r} * torch.tanh(logits / {reading.cap!r})", f"({n},) the soft cap")


def _reading(model: Model, trace: Trace, position: int, ids: list[int], logits: torch.Tensor) -> _Reading | None:
    """None where no such formula gives the model's own logits."""
    readout, streams = readout_of(model, trace), trace.residual.get(model.info.predicting_stack)
    head = readout.head
    if not readout.known or not streams or not isinstance(head, torch.nn.Linear):
        return None
    stream = stream_after(model, trace, model.info.predicting_stack, len(streams) - 2)[position].float().cpu()
    weight = weight_of(head)
    if weight.shape[1] != len(stream):
        return None
    kept = ids[: max(1, _MOST_MATRIX // len(stream))]
    matrix = weight[kept].float().cpu()
    added = weight_of(head, "bias")[kept].float().cpu() if getattr(head, "bias", None) is not None else None
    x = to_numpy(stream).astype(np.float64)
    x = x if readout.norm is None else readout.norm.of_vector(x)
    read, wanted = to_numpy(matrix).astype(np.float64) @ x, to_numpy(logits[kept]).astype(np.float64)
    extra = 0.0 if added is None else to_numpy(added).astype(np.float64)
    for factor in (1.0, len(stream) ** -0.5):
        for cap in (None, getattr(model.config, "final_logit_softcapping", None)):
            made = factor * read + extra
            made = made if not cap else cap * np.tanh(made / cap)
            if np.abs(made - wanted).max() <= _EXACT * max(1.0, float(np.abs(wanted).max())):
                return _Reading(readout.norm, stream, matrix, added, factor, cap or None)
    return None


Writer = Callable[[Request, Context], Script]


def answer(request: ScriptRequest, context: Context) -> ScriptView:
    """Raises InputError where it cannot be written; the sentence says why."""
    if not request.of.printed_by:
        raise InputError("What is on screen has no lines of PyTorch of its own.")
    module, _, name = request.of.printed_by.partition(":")
    writer: Writer = getattr(import_module(module), name)
    script = writer(request.of, context)
    return ScriptView(request=request, title=script.title, code=script.code())


def as_pytorch(
    model: Model,
    trace: Trace,
    site: SiteLike | None = None,
    head: int = 0,
    query: int | None = None,
    key: int | None = None,
) -> str:
    """A script that computes a part of `trace`, a run of `model`, and prints it beside what the program shows.

    With `site`, `head`, `query` and `key` it is one cell, from q and k on; without a `key` all weights of the head;
    without a `site` what the model says at `query`, or at the last token.

    Args:
        site: a `Site` of the trace, its index, or (stack, layer).

    Raises:
        IndexError: no such site, head, query or key.
        InputError: the model shows its weights alone, or the script would be too long to be read.
    """
    if site is None:
        return next_token_script(model, trace, answering_position(model, trace) if query is None else query).code()
    ref = trace.sites[trace.index(site)].ref
    if query is None or key is None:
        return head_script(model, trace, ref, head).code()
    return cell_script(CellRequest(run=0, site=ref, head=head, query=query, key=key), model, trace).code()
