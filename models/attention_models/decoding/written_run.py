"""One forward pass over a text and what a model wrote after it, for the weights of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from attention_models.decoding.choosing import end_ids
from attention_models.decoding.decode import DecodedStep
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.decoding import DecodeSettings
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt, plain_text, with_more
from attention_models.protocol.request import never


def run_written(
    model: Model,
    text: Prompt,
    last: DecodedStep,
    settings: DecodeSettings,
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> tuple[Trace, dict[str, Any]]:
    """Run `text` with what `decode` wrote up to its step `last`, the token that ended it left out.

    The tokens are those that were written, also where the words would be cut otherwise. Returns the trace and, as
    `save_weights` takes it, what was generated: `first` is the position of the first token written, None where masks
    were filled.
    """
    ids = list(last.ids)
    if ids and ids[-1] in end_ids(model):
        del ids[-1]
    first: int | None = None
    if model.info.family == "masked":
        filled = last.text if last.whole is None else last.whole
        trace = run(model, filled, interventions=interventions, should_stop=should_stop)
    elif model.seq2seq:
        first = 1  # after the start token
        trace = run(model, text, target=ids, interventions=interventions, should_stop=should_stop)
    else:
        before = [token.id for token in model.tokenize(text)]
        first, given = len(before), as_read(model, with_more(text, last.text), [*before, *ids])
        trace = run(model, given, interventions=interventions, should_stop=should_stop)
    return trace, {
        "prompt": plain_text(text),
        "text": last.text,
        "ids": ids,
        "first": first,
        "ended": last.ended,
        "settings": asdict(settings),
    }


def as_read(model: Model, whole: Prompt, ids: list[int]) -> Prompt | list[int]:
    """`whole` where the tokenizer makes `ids` of it, so that each token knows its characters; else `ids`."""
    try:
        return whole if [token.id for token in model.tokenize(whole)] == ids else ids
    except InputError:
        return ids
