"""Rows of a generated task, or windows of a text, as the batches that a textbook transformer of each shape learns from.

    encoder and decoder   reads `prompt </s>`, and writes `<s> answer` one place late: `answer </s>`
    decoder               reads `<s> prompt > answer`, and has to say `answer </s>` alone
    recurrent             reads and writes as encoder and decoder do
    encoder               reads `<s> prompt > <mask> ... </s>`, and has to say what stands under the masks

The batch of a step depends on seed and step alone, so that a training that is taken up again reads what it would have.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from attention_models.textbook.tasks import Row, Task, TextParts
from attention_models.textbook.tokenizer import END_ID, MASK_ID, PAD_ID, SPECIAL, START_ID
from attention_models.textbook.transformer import IGNORE

AROUND = 2  # special tokens that stand around a text, at most


class Batch(NamedTuple):
    """What a model is called with, and what it is to say: (rows, tokens) each."""

    inputs: dict[str, Tensor]
    labels: Tensor  # IGNORE where nothing is to be said

    @property
    def tokens(self) -> int:
        """Those that the model has to say."""
        return int((self.labels != IGNORE).sum())


class Rows(Protocol):
    """Where the rows of a training come from."""

    @property
    def alphabet(self) -> Sequence[str]:
        """Every token of the rows, characters or words, in the order of their code points."""

    @property
    def context(self) -> int:
        """Tokens that the longest row takes."""

    def batch(self, step: int, size: int) -> Batch:
        """What is learned from in step `step`, counted from 0."""

    def held_out(self, count: int) -> Batch:
        """Rows of which none is ever in a `batch`; the same at every call."""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Rows of a generated task."""

    task: Task
    difficulty: int
    shape: str
    seed: int

    @property
    def alphabet(self) -> Sequence[str]:
        return tuple(sorted({*self.task.alphabet, *self.task.separator}))

    @property
    def context(self) -> int:
        return self.task.most_tokens(self.difficulty) + AROUND

    def batch(self, step: int, size: int) -> Batch:
        return self.encoded(self.task.rows(size, random.Random(f"{self.seed} {step}"), self.difficulty))

    def held_out(self, count: int) -> Batch:
        return self.encoded(self.held_out_rows(count))

    def held_out_rows(self, count: int) -> list[Row]:
        """Different ones, or fewer where there are no more."""
        drawn = self.task.rows(2 * count, random.Random(f"{self.seed} held out"), self.difficulty, held_out=True)
        return list(dict.fromkeys(drawn))[:count]

    def encoded(self, rows: Sequence[Row]) -> Batch:
        """`rows` as the model's shape takes them."""
        ids = {token: i for i, token in enumerate(self.alphabet, len(SPECIAL))}
        prompts = [[ids[token] for token in self.task.tokens(row.prompt)] for row in rows]
        answers = [[ids[token] for token in self.task.tokens(row.answer)] for row in rows]
        between = [ids[c] for c in self.task.separator]
        if self.shape == "encoder-decoder":
            source, mask = _padded([[*prompt, END_ID] for prompt in prompts], PAD_ID)
            written, _ = _padded([[START_ID, *answer] for answer in answers], PAD_ID)
            labels, _ = _padded([[*answer, END_ID] for answer in answers], IGNORE)
            return Batch({"input_ids": source, **mask, "decoder_input_ids": written}, labels)
        before = [[START_ID, *prompt, *between] for prompt in prompts]
        both = list(zip(before, answers, strict=True))
        if self.shape == "decoder":
            read, mask = _padded([[*b, *a] for b, a in both], PAD_ID)
            labels, _ = _padded([[IGNORE] * (len(b) - 1) + [*a, END_ID] for b, a in both], IGNORE)
        else:
            read, mask = _padded([[*b, *[MASK_ID] * len(a), END_ID] for b, a in both], PAD_ID)
            labels, _ = _padded([[IGNORE] * len(b) + [*a, IGNORE] for b, a in both], IGNORE)
        return Batch({"input_ids": read, **mask}, labels)


@dataclass(frozen=True, slots=True)
class RecurrentRows:
    """Those of an encoder with a decoder, as a recurrent model is called with them."""

    rows: TaskRows

    @property
    def alphabet(self) -> Sequence[str]:
        return self.rows.alphabet

    @property
    def context(self) -> int:
        return self.rows.context

    def batch(self, step: int, size: int) -> Batch:
        return _renamed(self.rows.batch(step, size))

    def held_out(self, count: int) -> Batch:
        return _renamed(self.rows.held_out(count))


def _renamed(batch: Batch) -> Batch:
    """Padding needs no mask: a recurrent model knows it by its id."""
    return Batch({"source": batch.inputs["input_ids"], "target": batch.inputs["decoder_input_ids"]}, batch.labels)


@dataclass(frozen=True, slots=True)
class TextRows:
    """Windows of a text, of which a decoder learns to say each character after those before it."""

    parts: TextParts
    seed: int

    @property
    def alphabet(self) -> str:
        return self.parts.alphabet

    @property
    def context(self) -> int:
        return self.window + AROUND

    @property
    def window(self) -> int:
        """Characters that are read together in training."""
        return len(self.parts.training[0])

    def longer(self, length: int, count: int) -> Batch:
        """Held-out windows of `length` characters, a whole number of times as long as those that are learned from."""
        held = "".join(self.parts.held_out)
        return self._encoded([held[i : i + length] for i in range(0, len(held) - length + 1, length)][:count])

    def batch(self, step: int, size: int) -> Batch:
        return self._encoded(random.Random(f"{self.seed} {step}").choices(self.parts.training, k=size))

    def held_out(self, count: int) -> Batch:
        return self._encoded(self.parts.held_out[:count])

    def _encoded(self, windows: Sequence[str]) -> Batch:
        ids = {character: i for i, character in enumerate(self.alphabet, len(SPECIAL))}
        rows = torch.tensor([[START_ID, *(ids[c] for c in window)] for window in windows])
        return Batch({"input_ids": rows[:, :-1]}, rows[:, 1:])


def _padded(rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Rows filled up at their ends, and the attention mask that hides this; none where there is nothing to hide."""
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    if min(lengths) == longest:
        return torch.tensor(rows), {}
    padded = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
    return padded, {"attention_mask": torch.arange(longest) < torch.tensor(lengths)[:, None]}
