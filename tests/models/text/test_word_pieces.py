"""Which pieces make a word, for every kind of tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from attention_models import adopt, open_checkpoint
from attention_models.forward.model import Model
from attention_models.protocol.chat import Pair
from attention_models.protocol.values import Token
from attention_models.protocol.word_spans import Words, word_label, word_text
from attention_models.text.tokens import label_tokens

TEXT = "The unbelievably mischievous cat didn't sit, on 2026's mat."


def said(tokens: Sequence[Token]) -> list[str]:
    words = Words.of(tokens)
    return [word_text([tokens[i] for i in words.tokens(word)]) for word in range(len(words))]


def placed(text: str, pieces: Sequence[str]) -> tuple[Token, ...]:
    """Tokens of a tokenizer that tells offsets alone."""
    tokens, end = [], 0
    for piece in pieces:
        start = text.index(piece, end)
        end = start + len(piece)
        tokens.append(Token(0, piece, piece, start, end))
    return label_tokens(tokens, start=None, end=None, unknown=None, byte_level=False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("story-gpt", "⟨start⟩|The|unbelievably|mischievous|cat|didn|'t|sit|,|on|2026|'s|mat|."),
        ("story-bert", "[CLS]|The|unbelievably|mischievous|cat|didn|'|t|sit|,|on|2026|'|s|mat|.|[SEP]"),
        ("en-es", "The|unbelievably|mischievous|cat|didn|'|t|sit|,|on|2026|'|s|mat|.|⟨end⟩"),
    ],
)
def test_the_words_of_the_shipped_tokenizers(name, expected):
    model = open_checkpoint(name)
    tokens = model.tokenize(TEXT)
    assert said(tokens) == expected.split("|")
    assert len(Words.of(tokens)) < len(tokens)


def test_the_tokenizer_s_own_words_where_it_divides_a_text_into_some(story_gpt: Model):
    encoding = story_gpt.tokenizer(TEXT)
    own = encoding.word_ids()
    tokens = story_gpt.tokenize(TEXT)[-len(own) :]
    for i in range(1, len(own)):
        assert tokens[i].continues == (own[i] is not None and own[i] == own[i - 1])


def test_bytes_and_special_tokens_stay_alone(story_gpt: Model):
    tokens = story_gpt.tokenize("a 🦊fox")
    parts = [token.part[1] > 1 for token in tokens]
    assert sum(parts) > 1
    assert said(tokens).count("🦊") == 0  # a byte is not called by the character that it is one of
    for before, token in pairwise(tokens):
        if before.special or token.special or before.part[1] > 1 or token.part[1] > 1:
            assert not token.continues


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("unhappy cats", ["un", "happy", " cat", "s"], ["unhappy", "cats"]),
        ("unhappy cats", ["un", "happy", " ", "cat", "s"], ["unhappy", "␣", "cats"]),
        ("a-b, c.", ["a", "-", "b", ",", " c", "."], ["a", "-", "b", ",", "c", "."]),
        ("naïve", ["na", "ï", "ve"], ["naïve"]),
        ("20 26", ["2", "0", " 2", "6"], ["20", "26"]),
        ("猫在这", ["猫", "在", "这"], ["猫", "在", "这"]),  # touching says nothing in a script without spaces
        ("привет мир", ["при", "вет", " ми", "р"], ["привет", "мир"]),
        ("hi", ["h", "i"], ["hi"]),
    ],
)
def test_from_offsets_a_word_is_letters_that_touch(text, pieces, expected):
    assert said(placed(text, pieces)) == expected


@pytest.mark.parametrize(
    ("pieces", "byte_level", "expected"),
    [
        (["Ġun", "happy", "Ġcats", "."], True, ["␣unhappy", "␣cats", "."]),
        (["▁un", "happy", "▁cats", "."], False, ["␣unhappy", "␣cats", "."]),
        (["un", "##happy", "cats", "."], False, ["unhappy", "cats", "."]),
        (["un", "happy", "cats"], False, ["un", "happy", "cats"]),  # nothing marks a word: each alone
    ],
)
def test_of_ids_the_vocabulary_s_marks_say(pieces, byte_level, expected):
    tokens = [Token(0, piece, "", 0, 0) for piece in pieces]
    labelled = label_tokens(tokens, start=None, end=None, unknown=None, byte_level=byte_level)
    words = Words.of(labelled)
    assert [word_label([labelled[i] for i in words.tokens(word)]) for word in range(len(words))] == expected


def test_a_tokenizer_for_which_all_of_a_text_is_one_word_is_read_by_offsets():
    pieces = ["▁", *"abcdefghijklmnopqrstuvwxyz.", "▁c", "a", "at", "▁ca", "▁cat"]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(["<unk>", *pieces]))}
    backend = Tokenizer(BPE(vocabulary, [("▁", "c"), ("▁c", "a"), ("a", "t")], unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Metaspace()
    fast = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    assert set(fast("a cat sat.").word_ids()) == {0}  # as Llama's
    model = _with(fast)
    assert said(model.tokenize("a cat sat.")) == ["a", "cat", "sat", "."]
    backend.normalizer, backend.pre_tokenizer = None, pre_tokenizers.Metaspace()
    model = _with(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"))
    assert said(model.tokenize("a cat sat.")) == ["a", "cat", "sat."]  # its own: it keeps the stop with the word


def _with(tokenizer: PreTrainedTokenizerFast) -> Model:
    return adopt(GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=8, n_layer=1, n_head=2)), tokenizer)


def test_a_word_of_a_pair_stays_in_its_own_text(story_bert: Model):
    tokens = story_bert.encode(Pair("unbelievably", "unbelievably so")).tokens
    assert said(tokens) == ["[CLS]", "unbelievably", "[SEP]", "unbelievably", "so", "[SEP]"]
    joined = (replace(tokens[1], segment=0), replace(tokens[2], segment=1))
    assert not label_tokens(joined, start=None, end=None, unknown=None, byte_level=False, own_words=[0, 0])[1].continues
