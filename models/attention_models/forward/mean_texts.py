"""The inputs that means are taken over: sentences of our own, or sample pictures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from attention_models.files.sample_pictures import SAMPLES, samples
from attention_models.forward.model import Encoded, Model
from attention_models.protocol.errors import InputError

TEXTS = SAMPLES / "texts" / "means.tsv"


@cache
def mean_sentences() -> tuple[tuple[str, str], ...]:
    """English sentences, each with its Spanish translation."""
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return tuple((english, spanish) for english, spanish in pairs)


def mean_inputs(model: Model) -> Iterator[Encoded]:
    """These as `model` takes them, one after another.

    The decoder of our own translator is given the translation, that of another encoder-decoder model the sentence
    itself. What a model's context does not hold is left out.

    Raises:
        InputError: nothing of it is left.
    """
    count = 0
    for encoded in _encoded(model):
        count += 1
        yield encoded
    if not count:
        raise InputError(
            f"{model.info.name} takes none of the texts that means are taken over: they are too long for it."
        )


def _encoded(model: Model) -> Iterator[Encoded]:
    if model.info.family == "vision":
        for picture in samples(model.info.channels):
            yield model.encode(picture.reference)
        return
    for english, spanish in mean_sentences():
        target = None if not model.seq2seq else spanish if model.info.shipped else english
        try:
            yield model.encode(english, target)
        except InputError:
            continue  # too long for it
