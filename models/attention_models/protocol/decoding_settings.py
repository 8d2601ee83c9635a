"""How the model is to write: plain values, checked, torch-free."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

Strategy = Literal["greedy", "sample", "beam"]

MOST_SAMPLES = 8
"""Written side by side."""

MOST_SEED = 1 << 62
"""What a session file can hold."""

_MOST = 1_000_000_000  # of what counts tokens: more than any vocabulary or text has
_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6  # logits divided by less than that, or multiplied by more, are no numbers
_BETWEEN = "0.000001 to 1,000,000"
_STEEPEST = 10.0  # a length to a larger power is no number


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """Named and meant as in transformers' `generate`; None or the neutral value switches a filter off.

    Raises:
        ValueError: a value outside its range; the sentence says which and what it may be.
    """

    strategy: Strategy = "greedy"
    temperature: float = 1.0  # divides the logits before the softmax; 0 means greedy
    top_k: int | None = None  # keep the k likeliest (Fan et al. 2018)
    top_p: float | None = None  # keep the likeliest that together reach p (Holtzman et al. 2020)
    min_p: float | None = None  # keep those at least min_p times as likely as the likeliest (Nguyen et al. 2024)
    repetition_penalty: float = 1.0  # divides positive logits of tokens seen before (Keskar et al. 2019)
    no_repeat_ngram: int = 0  # never write the same n tokens in a row twice
    beams: int = 4  # width of the beam search
    length_penalty: float = 1.0  # a finished beam's log-probability is divided by its length to this power
    seed: int = 0
    sample: int = 0  # of those that one seed gives: step n draws from a generator seeded with (seed, n, sample)

    def __post_init__(self) -> None:
        _check(self.strategy in get_args(Strategy), f"There is no strategy “{self.strategy}”: greedy, sample or beam.")
        _check(
            math.isfinite(self.temperature) and self.temperature >= 0,
            f"A temperature of {self.temperature} makes no probabilities: it is 0 (greedy) or more.",
        )
        _check(
            self.temperature == 0 or _LEAST_FACTOR <= self.temperature <= _MOST_FACTOR,
            f"A temperature of {self.temperature} is not offered: 0 (greedy), or {_BETWEEN}.",
        )
        _check(self.top_k is None or self.top_k >= 1, f"top-k {self.top_k} keeps no token: it is 1 or more.")
        _check(self.top_k is None or self.top_k <= _MOST, f"A top-k of {self.top_k} is not offered: {_MOST:,} at most.")
        _check(self.top_p is None or 0 < self.top_p <= 1, f"top-p {self.top_p} is no share: it is above 0, at most 1.")
        _check(self.min_p is None or 0 <= self.min_p <= 1, f"min-p {self.min_p} is no share: it is between 0 and 1.")
        _check(
            math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0,
            f"A repetition penalty of {self.repetition_penalty} is none: it is above 0, and 1 changes nothing.",
        )
        _check(
            _LEAST_FACTOR <= self.repetition_penalty <= _MOST_FACTOR,
            f"A repetition penalty of {self.repetition_penalty} is not offered: {_BETWEEN}, and 1 changes nothing.",
        )
        _check(self.no_repeat_ngram >= 0, f"An n-gram has no {self.no_repeat_ngram} tokens: give 0 (off) or more.")
        _check(self.no_repeat_ngram <= _MOST, f"n-grams of {self.no_repeat_ngram} are not offered: {_MOST:,} at most.")
        _check(1 <= self.beams <= 32, f"A beam search of width {self.beams} is not offered: 1 to 32.")
        _check(0 <= self.seed <= MOST_SEED, f"A seed of {self.seed} is not offered: 0 to {MOST_SEED:,}.")
        _check(0 <= self.sample <= _MOST, f"There is no sample {self.sample}: they count from 0 to {_MOST:,}.")
        _check(
            abs(self.length_penalty) <= _STEEPEST,  # false for nan
            f"A length penalty of {self.length_penalty} is not offered: -{_STEEPEST:g} to {_STEEPEST:g}.",
        )

    def of_strategy(self, strategy: Strategy) -> DecodeSettings:
        """These settings for `strategy`, with what it leaves alone at its first value: equal where they act alike."""
        alone = {name: value for name, value in _FIRST.items() if strategy not in _USED_BY[name]}
        return replace(self, strategy=strategy, **alone)  # type: ignore[arg-type]

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn at random. At temperature 0 sampling is greedy."""
        return self.strategy == "sample" and self.temperature > 0


_USED_BY: dict[str, tuple[Strategy, ...]] = {
    **dict.fromkeys(("temperature", "top_k", "top_p", "min_p", "seed", "sample"), ("sample",)),
    **dict.fromkeys(("beams", "length_penalty"), ("beam",)),
}
"""What only some strategies use."""

_FIRST = {field.name: field.default for field in fields(DecodeSettings) if field.name in _USED_BY}


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)
