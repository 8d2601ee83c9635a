"""What a tokenizer makes of a text or of two: ids, the characters that each covers, which of them it added."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from transformers import PreTrainedTokenizerBase

from attention_models.files.weight_files import summary
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import InputError
from attention_models.text.pairs import FIRST, SECOND, call_with_pair
from attention_models.text.tokenizer_checks import panics_raised
from attention_models.text.tokens import whole_characters, without_invented_space

Use = Literal["input", "target", "bare"]
"""What a text is read for. An input has the tokens around it that the tokenizer adds; a target, which a decoder is made
to say, begins as the tokenizer's own call with `text_target` does, and has no end; a bare one has nothing added."""

SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of a pair, which stand for no character: a tokenizer is given U+FFFD in their place."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a tokenizer made of a text."""

    ids: list[int]
    spans: list[tuple[int, int]]  # the characters that each covers; start == end where it stands for none
    added: list[bool]  # which the tokenizer put there of its own, a start token say
    all_placed: bool  # whether it is known of every word which tokens stand for it
    segments: Sequence[int] = ()  # of a pair: as `Token.segment`
    segment_ids: Sequence[int] = ()  # as token_type_ids; empty where the tokenizer gives none
    words: Sequence[int | None] = ()  # the number of the word that each is part of, where the tokenizer says so


def _word_ids(encoding: Any) -> list[int | None]:
    """The number of the word that each token of an encoding is part of; None where it says none."""
    if getattr(encoding, "is_fast", False):
        return list(encoding.word_ids())
    found: list[int | None] = encoding.get("word_ids", [None] * len(encoding["input_ids"]))
    return found


class TextReader:
    """Calls a tokenizer, with offsets into the text as it was typed."""

    def __init__(self, tokenizer: Any, name: str, prefix: str, piece: Callable[[int], str]) -> None:
        """`name` is the model's, for sentences; `prefix` stands before every text; `piece` spells an id."""
        self._tokenizer, self._name, self._prefix, self._piece = tokenizer, name, prefix, piece

    def read(self, text: str, use: Use) -> Reading:
        """The tokens of one text.

        Raises:
            InputError: the tokenizer fails.
        """
        # half of a surrogate pair (a broken paste) can't be encoded; its stand-in keeps every offset where it was
        safe = SURROGATES.sub("\ufffd", text)
        try:
            with panics_raised():
                encoding = self._called(safe, use, return_offsets_mapping=True, return_special_tokens_mask=True)
                before = self._before(encoding["input_ids"], use)
        except InputError:
            raise  # in its own words
        except Exception as cause:  # whatever a tokenizer runs into: no [UNK] where it needs one, say
            raise self._failure(cause) from cause
        ids, spans = encoding["input_ids"], encoding["offset_mapping"]
        spans = whole_characters(text, without_invented_space(safe, ids, spans, self._piece))
        added = [
            bool(mask) and start == end
            for mask, (start, end) in zip(encoding["special_tokens_mask"], spans, strict=True)
        ]
        return Reading(
            ids=[*before, *ids],
            spans=[(0, 0)] * len(before) + spans,
            added=[use == "target"] * len(before) + added,
            all_placed=encoding.get("all_placed", True),
            segment_ids=[*([0] * len(before)), *encoding.get("token_type_ids", ())],
            words=[*[None] * len(before), *(_word_ids(encoding) if self._divides_words else [None] * len(ids))],
        )

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many targets at once, as `read` gives them. Raises whatever the tokenizer does."""
        called = self._called(list(texts), "target")["input_ids"]
        return [[*self._before(ids, "target"), *ids] for ids in called]

    def _called(self, text: str | list[str], use: Use, **options: bool) -> Any:
        given = {"text_target" if use == "target" and self._knows_targets else "text": text}
        return self._tokenizer(**given, add_special_tokens=use == "input", verbose=False, **options)

    def _before(self, ids: list[int], use: Use) -> list[int]:
        """What stands before a text of such `ids` and is not the tokenizer's own answer for it."""
        if use == "target":
            start = self.start_of_targets
            return [] if ids[: len(start)] == start else start  # else it was typed
        if use == "input" and self._prefix:
            return list(self._tokenizer(self._prefix, add_special_tokens=False)["input_ids"])
        return []

    @property
    def _knows_targets(self) -> bool:
        return isinstance(self._tokenizer, PreTrainedTokenizerBase)

    @cached_property
    def start_of_targets(self) -> list[int]:
        """What the tokenizer itself puts before a target: BART's <s>, the language of mBART-50."""
        if not self._knows_targets:
            return []
        said = self._tokenizer(text_target="a", return_special_tokens_mask=True, verbose=False)
        count = next((i for i, is_added in enumerate(said["special_tokens_mask"]) if not is_added), 0)
        return list(said["input_ids"][:count])

    def read_pair(self, pair: Pair) -> Reading:
        """Two texts as the tokenizer joins them; the characters that a token covers are of its own text.

        Raises:
            InputError: the tokenizer fails.
        """
        safe = Pair(SURROGATES.sub("\ufffd", pair.first), SURROGATES.sub("\ufffd", pair.second))
        try:
            called = call_with_pair(self._tokenizer, safe)
        except Exception as cause:  # as in `read`
            raise self._failure(cause) from cause
        spans = [(0, 0)] * len(called.ids)  # each of its own text
        for segment in (FIRST, SECOND):
            own = [i for i, of in enumerate(called.texts) if of == segment]
            ids, given = [called.ids[i] for i in own], [called.spans[i] for i in own]
            found = without_invented_space(safe.text(segment), ids, given, self._piece)
            for i, span in zip(own, whole_characters(pair.text(segment), found), strict=True):
                spans[i] = span
        added = [text is None for text in called.texts]
        words = called.words if self._divides_words else ()
        return Reading(called.ids, spans, added, True, called.segments, called.segment_ids, words)

    def _failure(self, cause: Exception) -> InputError:
        return InputError(
            f"{self._name}'s tokenizer fails on this text ({summary(cause)}). Change the text, or open another "
            "checkpoint."
        )

    @cached_property
    def _divides_words(self) -> bool:
        """Whether the tokenizer divides a text into words first: for some of SentencePiece's kind all of it is one."""
        try:
            return len(set(_word_ids(self._tokenizer("one two", add_special_tokens=False))) - {None}) > 1
        except Exception:  # a person's own code, or one that does not know these letters
            return False

    def fitting(self, text: str, spans: list[tuple[int, int]], limit: int, use: Use) -> int:
        """How many characters of `text` make at most `limit` tokens."""
        read = [span for span in spans if span[0] < span[1]]
        for count in range(limit - (len(spans) - len(read)), 0, -1):
            # not through the middle of a character that several tokens share
            cut = min(read[count - 1][1], read[count][0])
            # a cut can split a word differently; then a token less is kept
            if cut and len(self.read(text[:cut], use).ids) <= limit:
                return cut
        return 0
