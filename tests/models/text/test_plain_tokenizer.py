"""Tokenizers that are handed over: the ids are those of the person's own call, and which characters each covers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers import models as kinds
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

from attention_models import adopt, open_checkpoint, run
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.text.plain_tokenizer import PlainTokenizer, as_tokenizer


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
    text = "Tom went to the park."
    assert as_tokenizer(fast.backend_tokenizer)(text)["input_ids"] == fast.backend_tokenizer.encode(text).ids


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


# --------------------------------------------------------------------------- the ids are those of the person's own call


LETTERS = " abcdefghijklmnopqrstuvwxyz"


class Letters:
    """A token a letter, after as many start tokens as are asked for; they decode to nothing."""

    def __init__(self, starts: int = 1):
        self.starts = starts

    def encode(self, text: str) -> list[int]:
        return [0] * self.starts + [1 + LETTERS.index(c) for c in text]

    def decode(self, ids: list[int]) -> str:
        return "".join("" if i == 0 else LETTERS[i - 1] for i in ids)


def read(tokenizer: Any, text: str, vocabulary: int = 300) -> Trace:
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    return run(adopt(LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **shape)).eval(), tokenizer), text)


def shown(trace: Trace) -> list[tuple[int, str, bool]]:
    return [(token.id, token.text, token.special) for token in trace.tokens]


@pytest.mark.parametrize("starts", [0, 1, 2])
@pytest.mark.parametrize("pair", [True, False])
def test_a_start_token_comes_as_often_as_encode_gives_it(starts, pair):
    tokenizer = Letters(starts)
    trace = read((tokenizer.encode, tokenizer.decode) if pair else tokenizer, "a cat")
    assert [token.id for token in trace.tokens] == tokenizer.encode("a cat")
    assert shown(trace) == [(0, "", True)] * starts + [
        (2, "a", False),
        (1, " ", False),
        (4, "c", False),
        (2, "a", False),
        (21, "t", False),
    ]


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "down", "##ing", "sit", "é", "▁"]


def words() -> Tokenizer:
    """Not even its special tokens are registered as such: they are in its template alone."""
    inner = Tokenizer(kinds.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return inner


def named_words() -> tuple[Any, Any]:
    """As a person decodes them: names of special tokens are written, and pieces of words are put together."""

    def decode(ids: list[int]) -> str:
        return " ".join(WORDS[i] for i in ids).replace(" ##", "")

    return lambda text: words().encode(text.lower()).ids, decode


SENTENCE = "The cat  siting zebra down"
AS_SHOWN = [
    (2, "", True),
    (4, "The", False),
    (5, "cat", False),
    (9, "sit", False),
    (8, "ing", False),
    (1, "zebra", False),
    (7, "down", False),
    (3, "", True),
]


@pytest.mark.parametrize("how", ["library", "functions"])
def test_bert_s_frame_comes_once_and_is_dimmed(how):
    tokenizer: Any = words() if how == "library" else named_words()
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    model = BertModel(BertConfig(vocab_size=20, **shape)).eval()
    text = SENTENCE.lower() if how == "library" else SENTENCE
    trace = run(adopt(model, tokenizer), text)
    wanted = words().encode(SENTENCE.lower()).ids
    assert [token.id for token in trace.tokens] == wanted == [id_ for id_, _, _ in AS_SHOWN]
    found = [(id_, covered.strip(), special) for id_, covered, special in shown(trace)]
    assert found == [(id_, covered if how == "functions" else covered.lower(), s) for id_, covered, s in AS_SHOWN]
    assert all(token.text == text[token.start : token.end] for token in trace.tokens)


def test_what_a_library_tokenizer_was_set_to_is_done():
    tokenizer = words()
    tokenizer.enable_truncation(4)
    assert [token.id for token in read(tokenizer, SENTENCE.lower()).tokens] == [2, 4, 5, 3]
    tokenizer.enable_padding(length=12)
    with pytest.raises(InputError, match=r"fills up its texts with padding. Call its no_padding\(\) first"):
        read(tokenizer, "the cat")


class Bytes:
    """tiktoken's methods, on a vocabulary of bytes and a few words."""

    special_tokens_set = frozenset({"<|end|>"})
    pieces = (*(bytes([i]) for i in range(256)), b" the", " caf\u00e9".encode(), "\u00e9\U0001f600".encode()[:3])

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), list[int]()
        while data:
            fitting = [i for i, piece in enumerate(self.pieces) if data.startswith(piece)]
            id_ = max(fitting, key=lambda i: len(self.pieces[i]))
            ids.append(id_)
            data = data[len(self.pieces[id_]) :]
        return [*ids, 259]

    def encode_single_token(self, text: str) -> int:
        assert text == "<|end|>"
        return 259

    def decode_single_token_bytes(self, id_: int) -> bytes:
        return b"<|end|>" if id_ == 259 else self.pieces[id_]

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.decode_single_token_bytes, ids)).decode(errors="replace")


def test_pieces_of_bytes_cover_their_characters():
    text = "of the café \U0001f600!"
    trace = read(Bytes(), text)
    assert [token.id for token in trace.tokens] == Bytes().encode(text)
    assert [(token.text, token.special) for token in trace.tokens] == [
        ("o", False),
        ("f", False),
        (" the", False),
        (" café", False),
        (" ", False),
        *[("\U0001f600", False)] * 4,
        ("!", False),
        ("", True),
    ]
    assert [token.part for token in trace.tokens[5:9]] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_piece_of_one_character_and_part_of_the_next():
    text = "é\U0001f600"
    assert [token.text for token in read(Bytes(), text).tokens] == [text, *[text[1]] * 3, ""]


def test_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    encoding = tiktoken.Encoding(
        "small",
        pat_str=r"\S+|\s+",
        mergeable_ranks={**{bytes([i]): i for i in range(256)}, b"th": 256, b"the": 257},
        special_tokens={"<|end|>": 258},
    )
    text = "the café \U0001f600"
    trace = read(encoding, text)
    assert [token.id for token in trace.tokens] == encoding.encode(text)
    assert [token.text for token in trace.tokens][:4] == ["the", " ", "c", "a"]
    assert trace.tokens[-1].text == "\U0001f600"
    assert not any(token.special for token in trace.tokens)
    with pytest.raises(InputError, match="encode failed on this text: Encountered text corresponding to disallowed"):
        read(encoding, "a <|end|>")


class Joined:
    """sentencepiece's methods: a space is written where a word begins, and taken away before the first."""

    pieces = ("<unk>", "<s>", "</s>", "▁the", "▁cat", "s", "▁", "▁sat")

    def encode(self, text: str) -> list[int]:
        ids, rest = [1], "▁" + text.replace(" ", "▁")
        while rest:
            fitting = [i for i, piece in enumerate(self.pieces) if rest.startswith(piece)]
            id_ = max(fitting, key=lambda i: len(self.pieces[i]), default=0)
            ids.append(id_)
            rest = rest[len(self.pieces[id_]) if id_ else 1 :]
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join("" if i in (1, 2) else self.pieces[i] for i in ids).replace("▁", " ").removeprefix(" ")

    def bos_id(self) -> int:
        return 1

    def eos_id(self) -> int:
        return 2

    def pad_id(self) -> int:
        return -1

    def unk_id(self) -> int:
        return 0

    def id_to_piece(self, id_: int) -> str:
        return self.pieces[id_]


def test_a_first_word_that_loses_its_space():
    trace = read(Joined(), "the cats sat")
    assert shown(trace) == [
        (1, "", True),
        (3, "the", False),
        (4, " cat", False),
        (5, "s", False),
        (7, " sat", False),
    ]
    assert [token.label for token in trace.tokens] == ["⟨start⟩", "the", "␣cat", "s", "␣sat"]


def test_what_decodes_to_another_text_is_run_and_not_placed():
    trace = read(CIPHER, "a cat")
    assert [(token.id, token.text) for token in trace.tokens] == [(id_, "") for id_ in CIPHER[0]("a cat")]
    assert not any(token.special for token in trace.tokens)
    assert not as_tokenizer(CIPHER)("a cat", return_offsets_mapping=True)["all_placed"]


CIPHER = (lambda text: [1 + LETTERS.index(c) for c in text], lambda ids: "".join("#@%&!"[i % 5] for i in ids))


def test_a_target_is_read_without_the_frame():
    assert as_tokenizer(Letters())("cat", add_special_tokens=False)["input_ids"] == [4, 2, 21]
    assert as_tokenizer(named_words())("the cat", add_special_tokens=False)["input_ids"] == [4, 5]
    assert as_tokenizer(words())("the cat", add_special_tokens=False)["input_ids"] == [4, 5]


def test_what_libraries_give_is_taken_as_numbers():
    def decode(ids: list[int]) -> str:
        return "".join(map(chr, ids))

    for encode in (
        lambda text: torch.tensor([[ord(c) for c in text]]),
        lambda text: {"input_ids": [ord(c) for c in text]},
        lambda text: [[ord(c) for c in text]],
    ):
        assert as_tokenizer((encode, decode))("ab")["input_ids"] == [97, 98]
