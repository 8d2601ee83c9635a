"""Translating many sentences side by side, and how likely a model finds given translations.

The same as one sentence at a time: greedy decoding writes the same tokens (tested), padding changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import StoppingCriteria, StoppingCriteriaList

from attention_models.decoding.cached_run import cache_name, empty_cache
from attention_models.decoding.choosing import end_ids
from attention_models.decoding.decode import written_text
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.protocol.request import Cancelled, never

Rows = Sequence[Sequence[int]]


def source_ids(model: Model, texts: Sequence[str]) -> list[list[int]]:
    """Each text's ids as the encoder takes them, special tokens included."""
    ids: list[list[int]] = model.tokenizer(list(texts), verbose=False)["input_ids"]
    return ids


def target_ids(model: Model, texts: Sequence[str]) -> list[list[int]]:
    """Each text's ids as the decoder should write them, its end token included."""
    end = end_ids(model)[0]
    return [[*ids, end] for ids in model.target_ids(texts)]


@torch.no_grad()
def translate(model: Model, sources: Rows, most: int, should_stop: Callable[[], bool] = never) -> list[str]:
    """What the model writes for each of `sources` by greedy decoding, at most `most` tokens each.

    Raises:
        Cancelled: `should_stop()` was true between two steps.
    """
    write = _write_recurrent if isinstance(model, RecurrentModel) else _write_transformer
    ends = set(end_ids(model))
    texts = []
    for row in write(model, sources, most, should_stop).tolist():
        end = next((i for i, id_ in enumerate(row) if id_ in ends), len(row))
        texts.append(written_text(model, row[:end]))
    return texts


def _write_recurrent(model: Model, sources: Rows, most: int, should_stop: Callable[[], bool]) -> Tensor:
    assert isinstance(model, RecurrentModel)
    module, end = model.module, model.module.config.end
    writing = module.begin(_padded(sources, module.config.pad, model.device)[0])
    words = torch.full((len(sources),), model.start_id, device=model.device)
    ended = torch.zeros(len(sources), dtype=torch.bool, device=model.device)
    steps: list[Tensor] = []
    while len(steps) < most and not bool(ended.all()):
        if should_stop():
            raise Cancelled
        logits, writing = module.step(writing, words)
        words = logits.argmax(dim=-1)
        ended |= words == end
        steps.append(words)
    return torch.stack(steps, dim=1)  # (sentences, steps)


def _write_transformer(model: Model, sources: Rows, most: int, should_stop: Callable[[], bool]) -> Tensor:
    ids, there = _padded(sources, _pad(model), model.device)
    stop = _Stop(should_stop)
    module: Any = model.module
    out: Tensor = module.generate(
        input_ids=ids,
        attention_mask=there.long(),
        max_new_tokens=most,
        min_length=0,
        do_sample=False,
        num_beams=1,
        stopping_criteria=StoppingCriteriaList([stop]),
        **{cache_name(model): empty_cache(model)},
    )
    if stop.called:
        raise Cancelled
    return out[:, 1:]  # without the start token


class _Stop(StoppingCriteria):
    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self.called = False

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        self.called = self.called or self._should_stop()
        return torch.full((len(input_ids),), self.called, device=input_ids.device)


@torch.no_grad()
def log_probabilities(model: Model, sources: Rows, targets: Rows) -> Tensor:
    """The sum over each target's tokens of their log-probability, the true ones before each given: (pairs,) float64.

    `targets` are as `target_ids` gives them.
    """
    pad = _pad(model)
    source, there = _padded(sources, pad, model.device)
    wanted, counted = _padded(targets, pad, model.device)  # (pairs, steps)
    given = torch.cat([torch.full_like(wanted[:, :1], model.start_id), wanted[:, :-1]], dim=1)
    inputs = {"input_ids": source, "decoder_input_ids": given}
    if model.accepts("attention_mask"):
        inputs["attention_mask"] = there.long()
    log_p = model.forward(inputs).logits.cpu().double().log_softmax(dim=-1)  # (pairs, steps, vocabulary)
    of_tokens = log_p.gather(-1, wanted.cpu()[..., None])[..., 0]
    summed: Tensor = (of_tokens * counted.cpu()).sum(dim=1)
    return summed


def _pad(model: Model) -> int:
    pad = model.tokenizer.pad_token_id
    return pad if isinstance(pad, int) else 0


def _padded(rows: Rows, pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of ids, and which are no padding: both (rows, longest)."""
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return ids, torch.arange(longest, device=device)[None] < lengths[:, None]
