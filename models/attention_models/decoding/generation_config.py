"""What a checkpoint says of how it is to write, in its generation config: the rules that `generate` goes by on its own.

They act on greedy, sampled and beam decoding alike, in the order of `generate`, with its own processors. How to draw
(temperature, top-k, ...) and how wide to search is what a person chooses, and is not taken from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation.logits_process import (
    EncoderNoRepeatNGramLogitsProcessor,
    ForcedBOSTokenLogitsProcessor,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

from attention_models.forward.model import Encoded, Model

Filter = Callable[[Any, Any], Any]  # (ids so far, scores), each (sequences, ...)

REPETITION, NGRAM = "repetition penalty", "no repeated n-gram"
"""What a person can set as well, which then counts in the place of the checkpoint's."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One of them: `name` is that of a filter, `meaning` a sentence with its number."""

    name: str
    act: Filter
    meaning: str


@dataclass(frozen=True, slots=True)
class GenerationConfigProcessors:
    rules: tuple[Rule, ...] = ()  # in the order in which they act
    unapplied: tuple[str, ...] = ()  # settings of the checkpoint that act in `generate` and not here


NO_RULES = GenerationConfigProcessors()

_UNAPPLIED: dict[str, tuple[object, ...]] = {
    "forced_eos_token_id": (None,),
    "sequence_bias": (None, [], {}),
    "encoder_repetition_penalty": (None, 1),
    "exponential_decay_length_penalty": (None,),
    "guidance_scale": (None, 1),
}
"""What acts in `generate` and not here, with the values that change nothing there.

How many steps are taken is asked anew each time, so that a text need not end at the last one.
"""

_MOST = 1 << 20  # tokens that a number may count


def generation_config_processors(model: Model, encoded: Encoded) -> GenerationConfigProcessors:
    """Those of `model` for what it writes after a prompt. What makes no sense of them is told as unapplied."""
    config = getattr(model.module, "generation_config", None)
    if config is None:
        return NO_RULES
    reading = _Reading(model, config, encoded)
    made = (
        reading.repetition_penalty(),
        reading.no_repeat_ngram(),
        reading.source_ngram(),
        reading.bad_words(),
        reading.min_length(),
        reading.min_new_tokens(),
        reading.first_token(),
        reading.suppressed(),
        reading.suppressed_first(),
    )
    left = [name for name, neutral in _UNAPPLIED.items() if getattr(config, name, None) not in neutral]
    return GenerationConfigProcessors(tuple(rule for rule in made if rule is not None), (*reading.odd, *left))


class _Reading:
    """A generation config is a file's: every value is looked at before it is used."""

    def __init__(self, model: Model, config: Any, encoded: Encoded) -> None:
        self._model, self._config = model, config
        name = "decoder_input_ids" if model.seq2seq else "input_ids"
        self._prompt = int(encoded.inputs[name].shape[1])
        self._source: Any = encoded.inputs["input_ids"]  # where there is no encoder: the prompt
        self.odd: list[str] = []

    def repetition_penalty(self) -> Rule | None:
        value = self._number("repetition_penalty", 1.0)
        if value is None:
            return None
        said = f"The checkpoint's own: logits of tokens seen before are divided by {value:g}, negative ones multiplied."
        return Rule(REPETITION, RepetitionPenaltyLogitsProcessor(value), said)

    def no_repeat_ngram(self) -> Rule | None:
        size = self._count("no_repeat_ngram_size")
        if size is None:
            return None
        said = f"The checkpoint's own: tokens that would write the same {size} in a row a second time are cut."
        return Rule(NGRAM, NoRepeatNGramLogitsProcessor(size), said)

    def source_ngram(self) -> Rule | None:
        size = self._count("encoder_no_repeat_ngram_size")
        if size is None:
            return None
        said = f"The checkpoint's own: tokens that would write {size} in a row as they stand in what it read are cut."
        return Rule("no n-gram of the source", EncoderNoRepeatNGramLogitsProcessor(size, self._source.cpu()), said)

    def bad_words(self) -> Rule | None:
        words = getattr(self._config, "bad_words_ids", None)
        if not words:
            return None
        if not isinstance(words, list) or not all(isinstance(word, list) and self._are_ids(word) for word in words):
            self.odd.append("bad_words_ids")
            return None
        ends = torch.tensor(self._ends()) if self._ends() else None
        said = f"The checkpoint's own: {len(words):,} words that it never writes are cut."
        return Rule("banned words", NoBadWordsLogitsProcessor(words, ends), said)

    def min_length(self) -> Rule | None:
        return self._least("min_length", lambda least, ends: MinLengthLogitsProcessor(least, ends, device="cpu"))

    def min_new_tokens(self) -> Rule | None:
        return self._least(
            "min_new_tokens",
            lambda least, ends: MinNewTokensLengthLogitsProcessor(self._prompt, least, ends, device="cpu"),
        )

    def _least(self, name: str, make: Callable[[int, list[int]], Filter]) -> Rule | None:
        least, ends = self._count(name), self._ends()
        if least is None or not ends:
            return None
        what = "before the text has" if name == "min_length" else "before it has written"
        said = f"The checkpoint's own: the end is cut {what} {least:,} tokens."
        return Rule("least length" if name == "min_length" else "least new tokens", make(least, ends), said)

    def first_token(self) -> Rule | None:
        token = getattr(self._config, "forced_bos_token_id", None)
        if token is None:
            return None
        if not self._are_ids([token]):
            self.odd.append("forced_bos_token_id")
            return None
        said = f"The checkpoint's own: a text begins with {self._model.piece_label(token)}."
        return Rule("first token", ForcedBOSTokenLogitsProcessor(token), said)

    def suppressed(self) -> Rule | None:
        tokens = self._tokens("suppress_tokens")
        if tokens is None:
            return None
        said = f"The checkpoint's own: {len(tokens):,} tokens that it never writes are cut."
        return Rule("suppressed tokens", SuppressTokensLogitsProcessor(tokens, device="cpu"), said)

    def suppressed_first(self) -> Rule | None:
        tokens = self._tokens("begin_suppress_tokens")
        if tokens is None:
            return None
        begins = self._prompt + (self._prompt <= 1 and getattr(self._config, "forced_bos_token_id", None) is not None)
        said = f"The checkpoint's own: {len(tokens):,} tokens with which it never begins are cut."
        act = SuppressTokensAtBeginLogitsProcessor(tokens, begins, device="cpu")
        return Rule("suppressed at first", act, said)

    # values of the file

    def _ends(self) -> list[int]:
        ids = getattr(self._config, "eos_token_id", None)
        ids = [ids] if isinstance(ids, int) else ids
        return list(ids) if isinstance(ids, list) and self._are_ids(ids) else []

    def _tokens(self, name: str) -> list[int] | None:
        tokens = getattr(self._config, name, None)
        if not tokens:
            return None
        if isinstance(tokens, list) and self._are_ids(tokens):
            return tokens
        self.odd.append(name)
        return None

    def _are_ids(self, ids: Iterable[object]) -> bool:
        return all(type(id_) is int and 0 <= id_ < self._model.info.vocabulary for id_ in ids)

    def _count(self, name: str) -> int | None:
        value = getattr(self._config, name, None)
        if value is None or value == 0:
            return None
        if type(value) is int and 0 < value <= _MOST:
            return value
        self.odd.append(name)
        return None

    def _number(self, name: str, neutral: float) -> float | None:
        value = getattr(self._config, name, None)
        if value is None or value == neutral:
            return None
        if type(value) in (int, float) and 1e-6 <= value <= 1e6:
            return float(value)
        self.odd.append(name)
        return None
