"""The numbers by which a model writes: the name of each, how it is read, and what is worth saying of it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attention_explorer.session.decoding import Decoding
from attention_explorer.widgets.number_field import read_real, read_whole
from attention_models.protocol.decoding_settings import DecodeSettings, Strategy

STRATEGIES: tuple[Strategy, ...] = ("greedy", "sample", "beam")


@dataclass(frozen=True)
class Field:
    name: str  # in DecodeSettings; "steps" and "samples" are the panel's own
    label: str
    tooltip: str
    step: float  # of the arrow keys
    strategies: tuple[Strategy, ...] = STRATEGIES
    whole: bool = False
    may_be_off: bool = False


_SAMPLE: tuple[Strategy, ...] = ("sample",)
_BEAM: tuple[Strategy, ...] = ("beam",)
FIELDS = (
    Field("temperature", "Temperature", "Logits are divided by it: below 1 surer, above 1 bolder", 0.1, _SAMPLE),
    Field("top_k", "Top-k", "Keep the k likeliest tokens; empty: off", 1, _SAMPLE, True, True),
    Field(
        "top_p",
        "Top-p",
        "Keep the likeliest that together reach this share; empty: off",
        0.05,
        _SAMPLE,
        False,
        True,
    ),
    Field(
        "min_p",
        "Min-p",
        "Keep those at least this many times as likely as the likeliest; empty: off",
        0.05,
        _SAMPLE,
        False,
        True,
    ),
    Field("seed", "Seed", "The same seed draws the same tokens", 1, _SAMPLE, True),
    Field("samples", "Samples", "How many texts are drawn at once, each with its own draws", 1, _SAMPLE, True),
    Field("beams", "Beams", "How many texts are kept at once", 1, _BEAM, True),
    Field(
        "length_penalty",
        "Length penalty",
        "A beam's log-probability is divided by its length to this power",
        0.5,
        _BEAM,
    ),
    Field("repetition_penalty", "Repetition penalty", "Divides positive logits of tokens seen before; 1 is off", 0.1),
    Field(
        "no_repeat_ngram",
        "No repeated n-gram",
        "Never write the same n tokens in a row twice; 0 is off",
        1,
        STRATEGIES,
        True,
    ),
    Field("steps", "Steps", "The most tokens to write", 1, STRATEGIES, True),
)


def remark(settings: DecodeSettings) -> str:
    """What is worth saying of settings that are sound but may not do what one thinks."""
    if settings.strategy == "sample" and settings.temperature == 0:
        return "At temperature 0 nothing is drawn: the likeliest token is taken, as in greedy."
    if settings.strategy == "sample" and settings.top_k == 1:
        return "Top-k 1 leaves one token: this is greedy."
    if settings.strategy == "beam" and settings.beams == 1:
        return "One beam looks at one text only: this is greedy."
    return ""


def number(field: Field, text: str) -> float | int | None:
    """What a person typed into the field; None where it is empty and may be. Raises ValueError with a sentence."""
    text = text.strip()
    if not text and field.may_be_off:
        return None
    read: Callable[[str], float | int] = read_whole if field.whole else read_real
    try:
        return read(text)
    except ValueError:
        kind = "a whole number" if field.whole else "a number"
        given = f"“{text}” is none" if text else "it is empty"
        raise ValueError(f"{field.label} needs {kind}; {given}.") from None


def value_of(decoding: Decoding, name: str) -> float | int | None:
    value: float | int | None = getattr(decoding if name in ("steps", "samples") else decoding.settings, name)
    return value


def as_typed(value: float | int | None) -> str:
    """As a person would type it."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def says(field: Field, text: str, value: float | int | None) -> bool:
    try:
        return number(field, text) == value
    except ValueError:
        return False
