"""Two texts read as one input: [CLS] first [SEP] second [SEP], or as a tokenizer's own template has it.

BERT tells them apart by segment ids too (Devlin et al. 2019, section 3.1), RoBERTa by its separators alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attention_models.protocol.chat import Pair
from attention_models.text.tokenizer_checks import panics_raised

FIRST, SECOND = 0, 1


@dataclass(frozen=True, slots=True)
class PairCall:
    """What a tokenizer's call with two texts gives, one entry a token."""

    ids: list[int]
    spans: list[tuple[int, int]]  # of characters in the token's own text
    texts: list[int | None]  # FIRST or SECOND; None of a token that the template added
    segment_ids: list[int]
    words: list[int | None]  # the number of the word that each is part of, in its own text

    @property
    def segments(self) -> list[int]:
        """As `Token.segment`: an added token belongs where its segment id says, else to the text before it."""
        says = any(self.segment_ids)
        found, last = [], FIRST
        for text, segment_id in zip(self.texts, self.segment_ids, strict=True):
            last = last if text is None else text
            found.append(segment_id if says and text is None else last)
        return found


def call_with_pair(tokenizer: Any, pair: Pair) -> PairCall:
    """The call itself. Raises whatever a tokenizer runs into."""
    with panics_raised():
        encoding = tokenizer(
            pair.first,
            pair.second,
            return_offsets_mapping=True,
            return_token_type_ids=True,
            verbose=False,
        )
    return PairCall(
        ids=encoding["input_ids"],
        spans=encoding["offset_mapping"],
        texts=encoding.sequence_ids(0),
        segment_ids=encoding["token_type_ids"],
        words=encoding.word_ids(0),
    )


def reads_pairs(tokenizer: Any, family: str) -> bool:
    """Whether `tokenizer` puts a token of its own between two texts, for a model that does more than go on with one."""
    if family not in ("masked", "encoder", "seq2seq"):
        return False
    try:
        texts = call_with_pair(tokenizer, Pair("a", "a")).texts
    except Exception:  # one that takes a single text, or none of this kind: whatever it raises
        return False
    if FIRST not in texts or SECOND not in texts:
        return False
    return None in texts[texts.index(FIRST) : texts.index(SECOND)]
