"""Tokens cover the text they say they cover, and what is drawn for them can be seen."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.values import Token
from attention_models.text.reading import TextReader
from attention_models.text.tokens import bytes_label, piece_bytes, piece_label, special_label, visible
from tests.models import tiny

ODD = {
    "plain": "Tom and Anna went to the park.",
    "emoji": "I 🙂 you ❤️!",
    "family": "👩‍👩‍👧‍👦 family",
    "flags": "🇪🇸🇫🇷 and 🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "skin": "👍🏽👍",
    "Arabic": "مرحبا بالعالم",
    "Hebrew": "שָׁלוֹם עולם",
    "Devanagari": "नमस्ते दुनिया",
    "composed": unicodedata.normalize("NFC", "Ångström café über ño"),
    "decomposed": unicodedata.normalize("NFD", "Ångström café über ño"),
    "marks alone": "\u0301x \u0301\u0308",
    "stacked marks": "Z\u0351\u036b\u0343a\u0334\u0321l",
    "Hangul": unicodedata.normalize("NFC", "한국어 학교"),
    "Hangul apart": unicodedata.normalize("NFD", "한국어 학교"),
    "NUL": "a\0b\0",
    "control": "\x07bell \x1b[0m \x7f\x85",
    "zero width": "zero\u200bwidth\u200d\u2060\ufeff\u00ad",
    "direction": "left \u202eright\u202c \u2066x\u2069",
    "surrogates": "half\ud83d pair\udc00 \ude00\ud83d",
    "CRLF": "a\r\nb\rc\n\n",
    "tabs": "\ttab\there\t",
    "no-break": "nb\u00a0sp\u3000id\u2028line\u2029",
    "CJK": "日本語のテスト 中文字符",
    "fillers": "\u115f\u3164\uffa0\u2800x",
    "selectors": "a\ufe00\ufe0e b\U000e0100\u034f",
    "private": "\ue000 \U000f0000 \uffff x",
    "spelling": "Ġ ▁ ## ##ing Ċ",
    "special": "[MASK] </s> <|endoftext|> <s> [SEP] <unk> [UNK]",
    "spaces": "   a  b   c   ",
    "long word": "x" * 110,
}

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, and the blank Braille pattern
IGNORABLE = [
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
]


def draws_nothing(char: str) -> bool:
    return unicodedata.category(char)[0] in "CZ" or any(low <= ord(char) <= high for low, high in IGNORABLE)


def covered(tokens: tuple[Token, ...]) -> set[int]:
    return {i for token in tokens for i in range(token.start, token.end)}


def assert_sound(tokens: tuple[Token, ...], text: str) -> None:
    """What holds for the tokens of any text, whatever the tokenizer."""
    before = 0
    for token in tokens:
        assert token.text == text[token.start : token.end]
        assert token.label
        drawn = token.label.removeprefix("⟨unk ")
        assert not any(draws_nothing(char) for char in drawn), ascii(drawn)
        assert token.word
        for spelling in ("Ġ", "Ċ", "▁", "##"):
            assert spelling not in token.label or spelling in text
        part, parts = token.part
        assert 1 <= part <= parts
        if token.start < token.end:
            assert before <= token.start  # in the order of the text
            before = token.start
    for token, after in pairwise(tokens):
        if token.part[0] < token.part[1]:  # the pieces of one character stand together
            assert after.part == (token.part[0] + 1, token.part[1])
            assert after.start < token.end


@pytest.fixture(scope="session", params=["story_gpt", "story_bert", "en_es", "tiny t5"])
def any_model(request: pytest.FixtureRequest) -> Model:
    if request.param == "tiny t5":
        model: Model = request.getfixturevalue("tiny_model")("t5")
    else:
        model = request.getfixturevalue(request.param)
    return model


@pytest.mark.parametrize("name", ODD)
def test_odd_texts(any_model: Model, name: str) -> None:
    text = ODD[name][: (any_model.info.context or 0) - 4]
    assert_sound(any_model.tokenize(text), text)


@pytest.mark.parametrize("name", ODD)
def test_story_gpt_covers_every_character(story_gpt: Model, name: str) -> None:
    text = ODD[name]
    tokens = story_gpt.tokenize(text)
    assert covered(tokens) == set(range(len(text)))


UNICODE = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Mn", "Mc", "Me", "Cf", "Cs", "Co", "Zs", "Zl", "Zp", "Cc"]),
        st.sampled_from("aé\u0301\u0308 한\u1112\u1161\u11ab🙂\u200d\ufe0f▁Ġ#"),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(text=UNICODE)
def test_any_text(any_model: Model, text: str) -> None:
    assert_sound(any_model.tokenize("a" + text), "a" + text)  # by itself it may be dropped altogether


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(text=UNICODE)
def test_story_gpt_covers_any_text(story_gpt: Model, text: str) -> None:
    assert covered(story_gpt.tokenize(text)) == set(range(len(text)))


# --------------------------------------------------------------------------- one by one


def labels(model: Model, text: str) -> list[str]:
    return [token.label for token in model.tokenize(text)]


def test_bytes_of_one_character(story_gpt: Model) -> None:
    pieces = [t for t in story_gpt.tokenize("a 🙂") if t.part[1] > 1]
    assert [t.part for t in pieces] == [(i + 1, len(pieces)) for i in range(len(pieces))]
    assert {t.text for t in pieces} <= {"🙂", " 🙂"}
    data = b"".join(piece_bytes(t.piece) or b"" for t in pieces)
    assert data.decode().strip() == "🙂"
    assert re.sub("[‹·›␣]", "", "".join(t.label for t in pieces)) == "F09F9982"
    assert all(t.label.lstrip("␣").startswith("‹") and t.label.endswith("›") for t in pieces)


def test_white_space_is_drawn(story_gpt: Model) -> None:
    assert labels(story_gpt, "Tom and\there\r\n")[1:] == ["Tom", "␣and", "⇥", "here", "␍", "⏎"]


def test_prefix_is_a_token_of_no_text(story_gpt: Model) -> None:
    first = story_gpt.tokenize("Tom")[0]
    assert (first.id, first.label, first.start, first.end, first.special) == (0, "⟨start⟩", 0, 0, True)


def test_special_token_in_the_text_covers_it(story_gpt: Model, story_bert: Model) -> None:
    typed = story_gpt.tokenize("Tom<|endoftext|>")[-1]
    assert (typed.label, typed.text, typed.special) == ("⟨end⟩", "<|endoftext|>", True)
    mask = story_bert.tokenize("a [MASK]")[2]
    assert (mask.label, mask.text, mask.special) == ("[MASK]", "[MASK]", False)


def test_word_pieces(story_bert: Model) -> None:
    tokens = story_bert.tokenize("Tom, xylophones")
    assert [t.label for t in tokens[:3]] == ["[CLS]", "Tom", ","]
    assert tokens[-1].label == "[SEP]"
    continuing = [t for t in tokens if t.piece.startswith("##")]
    assert continuing
    assert all(t.label == "‿" + t.text for t in continuing)


def test_unknown_word_shows_its_text(story_bert: Model) -> None:
    (unknown,) = (t for t in story_bert.tokenize("a 🙂 b") if t.piece == "[UNK]")
    assert unknown.label == "⟨unk 🙂⟩"
    assert not unknown.special


def test_mark_stays_with_its_letter(story_gpt: Model, story_bert: Model) -> None:
    for model in (story_gpt, story_bert):
        tokens = model.tokenize("cafe\u0301 x")
        (last,) = {t.end for t in tokens if t.start < 5 <= t.end}
        assert last == 5


def test_space_that_sentence_piece_invented(en_es: Model) -> None:
    first, second = en_es.tokenize("🙂 a")[:2]
    assert (first.piece, first.text, first.label) == ("▁", "", "␣")
    assert (second.text, second.label, second.part) == ("🙂", "⟨unk 🙂⟩", (1, 1))


def test_space_that_was_typed(en_es: Model) -> None:
    assert [(t.text, t.label) for t in en_es.tokenize(" ▁")[:-1]] == [(" ", "␣"), ("▁", "▁")]


def test_byte_pieces_of_sentence_piece(tiny_model) -> None:
    tokens = tiny_model("t5").tokenize("a 🙂")
    pieces = [t for t in tokens if t.piece.startswith("<0x")]
    assert [(t.label, t.text, t.part) for t in pieces] == [
        (label, "🙂", (i, 4)) for i, label in enumerate(["‹F0›", "‹9F›", "‹99›", "‹82›"], start=1)
    ]


def test_nothing_left_of_the_text(story_bert: Model) -> None:
    with pytest.raises(InputError, match="story-bert's tokenizer leaves nothing of this text"):
        story_bert.tokenize("\0\u200b\x07")


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("cats", "cats"),
        (" a\nb", "␣a⏎b"),
        ("\x00\x1b\x7f", "␀␛␡"),
        ("\u200d\ufe0f", "⟨200D⟩⟨FE0F⟩"),
        ("\ud83d", "⟨D83D⟩"),
        ("\u0301e\u0301", "◌\u0301e\u0301"),
        ("", ""),
    ],
)
def test_visible(text: str, drawn: str) -> None:
    assert visible(text) == drawn


@pytest.mark.parametrize(
    ("data", "drawn"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\xf0\x9f", "‹F0·9F›"),
        (b" \xf0\x9f", "␣‹F0·9F›"),
        (b"\x99\x82a", "‹99·82›a"),
        (b"\x99a\x82", "‹99›a‹82›"),
        (b"\xd9", "‹D9›"),
        (b"", ""),
        ("🙂".encode(), "🙂"),
    ],
)
def test_bytes_label(data: bytes, drawn: str) -> None:
    assert bytes_label(data) == drawn


@pytest.mark.parametrize(
    ("piece", "byte_level", "drawn"),
    [
        ("Ġcats", True, "␣cats"),
        ("Ċ", True, "⏎"),
        ("ðŁ", True, "‹F0·9F›"),
        ("##ing", False, "‿ing"),
        ("##", False, "##"),
        ("##Ċ", True, "##⏎"),
        ("▁the", False, "␣the"),
        ("<0xF0>", False, "‹F0›"),
        ("Ġ", False, "Ġ"),
    ],
)
def test_piece_label(piece: str, byte_level: bool, drawn: str) -> None:
    assert piece_label(piece, byte_level) == drawn


@pytest.mark.parametrize(
    ("piece", "first", "drawn"),
    [
        ("<s>", True, "⟨start⟩"),
        ("</s>", False, "⟨end⟩"),
        ("<pad>", False, "⟨pad⟩"),
        ("<|user|>", False, "⟨user⟩"),
        ("[CLS]", True, "[CLS]"),
    ],
)
def test_special_label(piece: str, first: bool, drawn: str) -> None:
    assert special_label(piece, first, "<s>", "</s>") == drawn


def test_one_token_may_be_both_start_and_end() -> None:
    assert special_label("<e>", True, "<e>", "<e>") == "⟨start⟩"
    assert special_label("<e>", False, "<e>", "<e>") == "⟨end⟩"


def spans_of(tokenizer: PreTrainedTokenizerFast, text: str) -> list[tuple[int, int]]:
    return (
        TextReader(tokenizer, "tiny", "", lambda id_: str(tokenizer.convert_ids_to_tokens(id_)))
        .read(text, "input")
        .spans
    )


@pytest.mark.parametrize("trims", [True, False])
def test_a_piece_after_an_added_token_keeps_its_first_character(trims: bool) -> None:
    tokenizer = tiny.first_space(trims)
    text = "<mask>the park<mask>is"
    pieces, spans = tokenizer.tokenize(text, add_special_tokens=True), spans_of(tokenizer, text)
    covers = {piece: text[start:end] for piece, (start, end) in zip(pieces, spans, strict=True)}
    assert covers["Ġthe"] == "the"
    assert covers["Ġis"] == "is"


@pytest.mark.parametrize("word", ["x", "Tom", "éa", "🙂Tom", "ñ", "\nTom", "\n\nTom", " Tom", "  Tom", "Ġx", "'s"])
@pytest.mark.parametrize("before", ["", "a<mask>", "a<mask><mask>", "<mask> ", "a "])
def test_spans_are_those_of_a_tokenizer_that_trims_nothing(before: str, word: str) -> None:
    text = before + word
    whole, cut = (spans_of(tiny.first_space(trims), text) for trims in (False, True))
    for (start, end), trimmed in zip(whole, cut, strict=True):
        assert text[start:end].strip(" ") == text[slice(*trimmed)].strip(" ")
