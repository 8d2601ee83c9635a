"""What an encoder-decoder model writes of texts that come without a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attention_models.forward.model import Model
from attention_models.protocol.work import ShouldStop
from attention_models.quality.batching import source_ids, translate

_AT_ONCE = 16
_MOST_TOKENS = 64


def written_of(model: Model, texts: Sequence[str], should_stop: ShouldStop) -> Iterator[list[str | None]]:
    """Of a few of `texts` after the others what the model writes; None of one of which it writes nothing.

    Raises:
        Cancelled: `should_stop()` was true between two steps.
    """
    limit = model.info.context or 1 << 30
    for start in range(0, len(texts), _AT_ONCE):
        ids = [row[:limit] for row in source_ids(model, texts[start : start + _AT_ONCE])]
        yield [text or None for text in translate(model, ids, min(_MOST_TOKENS, limit - 1), should_stop)]
