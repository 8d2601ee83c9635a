"""Tokenizers that are two functions: which characters each token covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from models import open_checkpoint
from models.protocol.errors import CheckpointError
from models.text.plain_tokenizer import PlainTokenizer, as_tokenizer


def utf8() -> PlainTokenizer:
    """A token a byte: a character of several bytes is cut apart."""
    return PlainTokenizer(lambda text: list(text.encode()), lambda ids: bytes(ids).decode(errors="replace"))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20))
def test_every_byte_covers_its_character(text):
    tokenizer = utf8()
    encoding = tokenizer(text, return_offsets_mapping=True)
    spans = encoding["offset_mapping"]
    wanted = [(i, i + 1) for i, char in enumerate(text) for _ in char.encode()]
    assert len(spans) == len(encoding["input_ids"])
    if "\ufffd" not in text:  # the stand-in for broken bytes looks like itself
        assert spans == wanted


def test_words_with_their_spaces():
    words = ["Tom", " and", " Anna"]
    tokenizer = PlainTokenizer(lambda _text: [0, 1, 2], lambda ids: "".join(words[i] for i in ids))
    assert tokenizer("Tom and Anna", return_offsets_mapping=True)["offset_mapping"] == [(0, 3), (3, 7), (7, 12)]
    assert tokenizer("", return_offsets_mapping=True)["offset_mapping"][:0] == []


def test_a_tokenizer_that_changes_the_text_covers_as_far_as_it_agrees():
    tokenizer = PlainTokenizer(lambda text: [ord(c) for c in text.lower()], lambda ids: "".join(map(chr, ids)))
    spans = tokenizer("tOm", return_offsets_mapping=True)["offset_mapping"]
    assert len(spans) == 3
    assert all(0 <= start <= end <= 3 for start, end in spans)


def test_tokenizers_of_the_libraries_are_taken_as_they_are():
    fast = open_checkpoint("story-gpt").tokenizer
    assert as_tokenizer(fast) is fast
    assert isinstance(as_tokenizer(fast.backend_tokenizer), PreTrainedTokenizerFast)


def test_an_object_with_encode_and_decode():
    class Tiktoken:
        def encode(self, text):
            return [ord(c) for c in text]

        def decode(self, ids):
            return "".join(map(chr, ids))

    assert as_tokenizer(Tiktoken())("ab")["input_ids"] == [97, 98]


@pytest.mark.parametrize("tokenizer", [None, "gpt2", (len,), (len, 3), object()])
def test_what_is_no_tokenizer_is_refused(tokenizer):
    with pytest.raises(CheckpointError, match="is no tokenizer"):
        as_tokenizer(tokenizer)
