"""What a run was of: enough to run it again, and to say so in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_models.forward.model import Encoded, Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair, Turn
from attention_models.protocol.values import CheckpointInfo


@dataclass(frozen=True, slots=True)
class Origin:
    info: CheckpointInfo
    device: str  # "cuda:0"
    dtype: str  # "float32"
    text: str | None  # that the tokens' offsets are of; None where ids or a picture were given
    second: str | None = None  # of a pair of texts: what the offsets of the second one's tokens are of
    turns: tuple[Turn, ...] = ()  # of the conversation that a template made `text` of
    target: str | None = None  # what the decoder of an encoder-decoder model was given as words
    picture: str | None = None  # its path, or "sample:NAME"; "array" for one that has no name
    batch: Batch | None = None  # the texts that ran with it, where `shown` is this one
    segment_ids: tuple[int, ...] = ()  # of each token of the text that is read; empty where the model knows none


def origin_of(
    model: Model, given: Any, target: str | list[int] | None, encoded: Encoded, batch: Batch | None = None
) -> Origin:
    """The origin of a run of `model` on `given`, as in `ax.run`, which became `encoded`; it may be of a `batch`."""
    turns: tuple[Turn, ...] = ()
    text = second = picture = None
    if model.info.family == "vision":
        picture = "array" if isinstance(given, np.ndarray) else str(given)
    elif isinstance(given, list) and given and isinstance(given[0], Mapping):
        given = Chat.of(given)
    if isinstance(given, Chat):
        turns = given.turns
    if isinstance(given, Pair):
        text, second = given.first, given.second
    elif isinstance(given, (str, Chat)) and picture is None:
        text = model.text_read(given)
    return Origin(
        info=model.info,
        device=str(model.device),
        dtype=model.dtype_name,
        text=text,
        second=second,
        turns=turns,
        target=target if isinstance(target, str) else None,
        picture=picture,
        batch=batch,
        segment_ids=_segment_ids(model, encoded),
    )


def _segment_ids(model: Model, encoded: Encoded) -> tuple[int, ...]:
    """Those that the model was given; a model that knows some and is given none reads them all as 0."""
    given = encoded.inputs.get("token_type_ids")
    if given is not None:
        return tuple(given[encoded.row].tolist())
    return (0,) * len(encoded.source or encoded.tokens) if getattr(model.config, "type_vocab_size", 0) else ()
