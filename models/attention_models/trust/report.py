"""A run held against the model's own eager attention, or a textbook model's against its papers' formulas."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from attention_models.forward.batches import encode
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.forward.vision import VisionModel
from attention_models.opening.snapshots import fitted, holding, read_weights
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.trust import EAGER, AloneReport, InputReport, TrustReport, TrustRequest
from attention_models.text.plain_tokenizer import GivenTokenizer, PlainTokenizer
from attention_models.textbook.config import RecurrentConfig
from attention_models.trust.check import Comparison, compare_with_alone, compare_with_eager

# Where the ids of a run come from, and whether the tokenizer's own call gives the same of the same text.
# What is compared is a table of inputs by name (input_ids, and token_type_ids where the model reads them), as a
# tokenizer of transformers gives it.


_COMPARED = ("input_ids", "token_type_ids")
_SURROGATES = re.compile("[\ud800-\udfff]")


def report_on_input(model: Model, given: Any, trace: Trace) -> InputReport | None:
    """What can be said of the ids of `trace`, a run of `model` on `given`, as in `ax.run`; None of a picture."""
    if isinstance(given, Batch):
        given = given.prompt
    if model.tokenizer is None or not isinstance(given, (str, Chat, Pair, list)):
        return None
    if isinstance(given, list) and given and isinstance(given[0], Mapping):
        given = Chat.of(given)
    if isinstance(given, list):
        return InputReport("The ids were given as they are: there is no text of which a tokenizer would make them.")
    read = trace.source or trace.tokens  # what was run, and not what would be run now
    ours = {"input_ids": [token.id for token in read if not token.padding]}
    if trace.origin is not None and trace.origin.segment_ids:
        segments = zip(trace.origin.segment_ids, read, strict=False)
        ours["token_type_ids"] = [segment for segment, token in segments if not token.padding]
    wanted, call = _own_call(model, given)
    found = first_difference(model, ours, wanted) or _difference_of_target(model, trace)
    if found:
        return InputReport(f"{found} {call} was asked again.", equal=False)
    twice = _starts_twice(model, wanted["input_ids"])
    if isinstance(model.tokenizer, PlainTokenizer):
        story = (
            f"The ids are those of {call}. Whether the model was trained with them cannot be known: a function comes "
            f"without a tokenizer to compare it with. {twice}"
        )
        return InputReport(story.strip(), starts_twice=bool(twice))
    return InputReport(f"Asked again, {call} gives the same ids. {twice}".strip(), equal=True, starts_twice=bool(twice))


def first_difference(model: Model, ours: Mapping[str, Sequence[int]], wanted: Mapping[str, Sequence[int]]) -> str:
    """Where two tables of inputs part, as a sentence; "" where they do not. What is not given counts as zeros."""
    for name in _COMPARED:
        if name not in wanted or not (name == "input_ids" or model.takes_segments(wanted[name])):
            continue
        theirs = list(wanted[name])
        mine = list(ours.get(name, [0] * len(theirs)))
        if mine == theirs:
            continue
        if mine[:1] == theirs[:1] and mine[1:] == theirs:
            return f"The first token, {model.piece(mine[0])}, comes twice."
        place = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        if place is None:
            return f"{len(mine):,} tokens were run, and its tokenizer makes {len(theirs):,} of this text."
        if name == "token_type_ids":
            return f"Token {place} was run as of segment {mine[place]}; its tokenizer puts it in {theirs[place]}."
        return (
            f"Token {place} was run as {mine[place]} ({model.piece(mine[place])}); its tokenizer makes it "
            f"{theirs[place]} ({model.piece(theirs[place])})."
        )
    return ""


def _difference_of_target(model: Model, trace: Trace) -> str:
    """Where the ids of a typed target part from the tokenizer's own, as a sentence; "" where they do not.

    It is made to be said up to its end, so that the end, which the tokenizer puts there, is left out.
    """
    target = None if trace.origin is None else trace.origin.target
    if not target or not isinstance(model.tokenizer, PreTrainedTokenizerBase):
        return ""
    ours = [token.id for token in trace.tokens if not token.padding][1:]
    safe = _SURROGATES.sub("\ufffd", target)
    called = model.tokenizer(text_target=safe, return_special_tokens_mask=True)
    ids, added = called["input_ids"], called["special_tokens_mask"]
    if ids[: len(ours)] == ours and all(added[len(ours) :]):
        return ""
    start = next((i for i, is_added in enumerate(added) if not is_added), 0)
    typed = model.tokenizer(text_target=safe, add_special_tokens=False)["input_ids"]
    if start and typed == ours and ours[:start] == ids[:start]:
        return ""  # its start was typed, and stands there once
    place = next((i for i, (a, b) in enumerate(zip(ours, ids, strict=False)) if a != b), None)
    if place is None:
        return f"Of the target {len(ours):,} tokens were run, and its tokenizer makes {len(ids):,} of it, with its end."
    return (
        f"Token {place + 1} of the target was run as {ours[place]} ({model.piece(ours[place])}); its tokenizer makes "
        f"it {ids[place]} ({model.piece(ids[place])})."
    )


def _own_call(model: Model, given: str | Chat | Pair) -> tuple[dict[str, list[int]], str]:
    """What the tokenizer itself makes of it, and what to call that."""
    if isinstance(given, Pair):
        return _own_call_with_pair(model, given)
    tokenizer, text = model.tokenizer, _SURROGATES.sub("\ufffd", model.text_read(given))
    if isinstance(tokenizer, GivenTokenizer):
        return {"input_ids": tokenizer.own_ids(text)}, f"{tokenizer.whose}(text)"
    whose = "the tokenizer that was handed over" if model.info.borrowed else f"{model.info.name}'s own tokenizer"
    if isinstance(given, Chat):
        return dict(tokenizer(text, add_special_tokens=False)), f"{whose}, given what its chat template writes,"
    found = {name: list(part) for name, part in tokenizer(text).items()}
    if model.info.prefix:
        # training put it there, and the tokenizer does not: Model.info says so of shipped ones
        before = tokenizer(model.info.prefix, add_special_tokens=False)["input_ids"]
        found = {"input_ids": [*before, *found["input_ids"]]}
        return found, f"{whose}, with {model.info.prefix} in front as in training,"
    return found, whose


def _own_call_with_pair(model: Model, pair: Pair) -> tuple[dict[str, list[int]], str]:
    whose = "the tokenizer that was handed over" if model.info.borrowed else f"{model.info.name}'s own tokenizer"
    first, second = (_SURROGATES.sub("\ufffd", text) for text in (pair.first, pair.second))
    found = model.tokenizer(first, second, return_token_type_ids=True)  # some leave them out unless they are asked for
    return {name: list(part) for name, part in found.items()}, f"{whose}, given both texts,"


def _starts_twice(model: Model, ids: Sequence[int]) -> str:
    """A remark where the tokenizer itself begins twice: its start was typed into the text, or added by a template."""
    if len(ids) > 1 and ids[0] == ids[1] and model.stands_for_no_text(ids[0]):
        return f"They begin with {model.piece(ids[0])} twice, which no model is trained on: leave one out."
    return ""


# The papers' formulas once more, in float64 NumPy and apart from the modules: what a run is held against.
# It begins at the run's hidden states, so it vouches for scores, windows, weights, contexts and logits:
#     e_ij  Bahdanau et al. 2015, appendix A.1.2; Luong et al. 2015, equations 7 to 10
#     a_ij = exp(e_ij) / sum_k exp(e_ik),  c_i = sum_j a_ij h_j,  logits = W_o tanh(W_c [..] + b_c) + b_o


Array = NDArray[np.float64]
Weights = dict[str, Array]


def compare_with_formulas(model: RecurrentModel, trace: Trace) -> Comparison:
    """How far the weights and logits of `trace` are from the formulas."""
    run, config = model.read_again(trace), model.module.config
    named = {name: t.cpu().double().numpy() for name, t in model.module.state_dict().items()}
    encoded, looking, states = (
        t[0].cpu().double().numpy() for t in (run.encoded, run.looking, run.states)
    )  # (source, encoded), (steps, hidden), (steps, hidden)
    source, target = ([token.id for token in side] for side in (trace.source, trace.tokens))
    weight_difference = 0.0
    if config.score == "none":
        first = run.first[0].cpu().double().numpy()
        contexts = np.tile(np.pad(first, (0, config.encoded - config.hidden)), (len(target), 1))
    else:
        weights = alignment(config, named, looking, encoded, np.array(source) == config.pad)
        contexts = weights @ encoded
        weight_difference = float(np.abs(weights - trace.weights(trace.sites[0], 0)).max())
    words = named["target_embedding.weight"][target]
    joined = [contexts, states] if config.is_luong else [states, contexts, words]
    mixed = np.tanh(np.concatenate(joined, axis=1) @ named["combine.weight"].T + named["combine.bias"])
    logits = mixed @ named["output.weight"].T + named["output.bias"]  # (steps, target vocabulary)
    assert trace.output_logits is not None
    difference = np.abs(logits - trace.output_logits.cpu().double().numpy()).max()
    return Comparison(
        logit_difference=float(difference / max(1.0, np.abs(logits).max())),
        weight_difference=weight_difference,
    )


def alignment(
    config: RecurrentConfig, named: Weights, looking: Array, encoded: Array, padding: NDArray[np.bool_]
) -> Array:
    """The weights a_ij, (steps, source), of decoder states (steps, hidden) over encoder states (source, encoded)."""
    e = scores(config.score, named, looking, encoded)
    masked = np.broadcast_to(padding, e.shape)
    if config.scope != "global":
        length = int((~padding).sum())
        distance = np.arange(len(encoded)) - places(config, named, looking, length)[:, None]  # (steps, source)
        masked = masked | (np.abs(distance) > config.window)
        if config.scope == "predictive":
            e = e - distance**2 / (2 * (config.window / 2) ** 2)
    e = np.where(masked, -np.inf, e)
    numerators = np.exp(e - e.max(axis=1, keepdims=True))
    weights: Array = numerators / numerators.sum(axis=1, keepdims=True)
    return weights


def scores(kind: str, named: Weights, looking: Array, encoded: Array) -> Array:
    """e_ij before any window, (steps, source)."""
    if kind in ("dot", "general"):
        narrow = named.get("score.narrow.weight")
        e: Array = looking @ (encoded if narrow is None else encoded @ narrow.T).T
        return e
    ws, uh = looking @ named["score.w.weight"].T, encoded @ named["score.u.weight"].T
    additive: Array = np.tanh(ws[:, None] + uh[None]) @ named["score.v.weight"][0]
    return additive


def places(config: RecurrentConfig, named: Weights, looking: Array, length: int) -> Array:
    """The source place that local attention looks around at each step, (steps,)."""
    if config.scope == "monotonic":
        return np.minimum(np.arange(len(looking)), length - 1).astype(np.float64)
    x = np.tanh(looking @ named["place.w.weight"].T) @ named["place.v.weight"][0]
    p: Array = (length - 1) / (1 + np.exp(-x))
    return p


def picture_difference(model: VisionModel, source: str | np.ndarray, pixels: Tensor) -> float | None:
    """Largest |ours - transformers' own| over all numbers of the input; None where it has none to compare with.

    Args:
        source: the file's path or the sample's name that `pixels`, (1, channels, height, width), were made of.
    """
    theirs = None if isinstance(source, np.ndarray) else model.own_input(source)
    if theirs is None:
        return None
    if theirs.shape != pixels.shape:
        return float("inf")
    return float((theirs.float() - pixels.float()).abs().max())


def _as_its_files_say(model: Model) -> AbstractContextManager[None]:
    """While it lasts, its weights are read anew from its files, whatever was run; where none was changed they stay."""
    if model.adapter is not None:
        return model.adapter.computed_again(model.module)
    if model.info.training is None:
        return nullcontext()
    return holding(fitted(model.module, read_weights(model.info), model.info.name))


def answer(request: TrustRequest, context: Context) -> TrustReport:
    started = time.perf_counter()
    run = context.run(request.run)
    model = run.model
    apart: float | None = None
    alone: AloneReport | None = None
    encoded = encode(model, run.text, run.written)
    if isinstance(model, RecurrentModel):
        context.report("Comparing with the papers' formulas", None)
        with _as_its_files_say(model):
            found = compare_with_formulas(model, run.trace)
    else:
        context.report(f"Comparing with {EAGER}", None)
        trace = run.untouched(context.should_stop)  # edits are meant to make a difference
        with _as_its_files_say(model):
            found = compare_with_eager(model, encoded, trace, context.should_stop)
        if isinstance(run.text, Batch) and len(run.text.texts) > 1:
            alone = compare_with_alone(model, run.text, run.written, trace, context.should_stop)
        if isinstance(model, VisionModel) and isinstance(run.text, str):
            apart = picture_difference(model, run.text, encoded.inputs["pixel_values"])
    return TrustReport(
        request=request,
        logit_difference=found.logit_difference,
        weight_difference=found.weight_difference,
        tolerance=found.tolerance,
        logit_tolerance=found.logit_tolerance,
        rounding=found.rounding,
        end_to_end=found.end_to_end,
        rows=found.rows,
        against=found.against,
        input=report_on_input(model, run.text, run.trace) if apart is None else None,
        input_difference=apart,
        alone=alone,
        seconds=time.perf_counter() - started,
    )
