"""A state as a short text: what is sent comes back, and what is damaged or hostile is refused with a sentence."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_explorer.session.kept import SHORT_TEXT as PREFIX
from attention_explorer.session.kept import KeptState, Screen, is_short_text
from attention_explorer.session.short_texts import MOST_CHARACTERS, decode, encode, for_this_window
from attention_explorer.session.state import BatchText, Document, InterventionItem, Selection
from attention_explorer.session.view_options import ViewOptions
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.chat import Turn
from attention_models.protocol.interventions import Mask, Positions, Scale
from attention_models.protocol.values import Placement, SiteRef

SITE = SiteRef("decoder", 5)
LESSON = Document(
    checkpoint="story-gpt",
    text="Tom and Anna went to the park. Anna gave the ball to",
    selection=Selection(SITE, head=5, query=13, key=1, chosen=True),
    interventions=(
        InterventionItem(Scale(0.5, SITE, 5)),
        InterventionItem(Mask("causal"), on=False),
        InterventionItem(Positions("shift", 3)),
        InterventionItem(Ablation("head", SITE, 2, "mean")),
    ),
)
OTHERS = [
    LESSON,
    Document(checkpoint="hf://gpt2", text="Zürich, 東京 und 🙂", view=ViewOptions(words=True, normalisation="row")),
    Document(checkpoint="en-es", text="The dog eats.", target="El perro", after=(BatchText("Two.", None, "Dos."),)),
    Document(checkpoint="story-bert", text="One.", second="Two."),
    Document(checkpoint="vit-cifar10", picture="sample:chelsea"),
    Document(checkpoint="hf://owner/chat-model", chat=True, turns=(Turn("user", "Hello"),)),
    Document(checkpoint="story-gpt", text=""),
]


def packed(value: object, prefix: str = PREFIX) -> str:
    """A short text that anybody could write, with the right checksum."""
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packer.compress(content) + packer.flush()
    return wrapped(body, prefix)


def wrapped(body: bytes, prefix: str = PREFIX) -> str:
    checksum = hashlib.sha256(prefix.encode() + body).digest()[:4]
    return prefix + base64.urlsafe_b64encode(checksum + body).decode().rstrip("=")


def plain(**changes: object) -> dict[str, object]:
    document = {"program": "attention-explorer", "version": 4, "checkpoint": "story-gpt", "text": "Hi"}
    return {"document": document | changes, "screen": {"front": ["map"]}}


@pytest.mark.parametrize("document", OTHERS, ids=lambda document: document.checkpoint)
def test_what_is_sent_comes_back(document: Document) -> None:
    sent = KeptState(document, screen=Screen(front=("heads", "map")))
    got = decode(encode(sent))
    assert got.document == document
    assert got.screen.front == ("heads", "map")


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_any_text_comes_back(text: str) -> None:
    assert decode(encode(KeptState(replace(LESSON, text=text)))).document.text == text


def test_a_lesson_s_state_fits_into_a_code_that_is_read_from_afar() -> None:
    import segno

    text = encode(KeptState(LESSON, screen=Screen(front=("heads", "map"))))
    assert segno.make_qr(text, error="l").symbol_size(border=0)[0] <= 61, "a camera at the back reads them"


def test_the_same_state_is_the_same_text() -> None:
    again = Document(**{name: getattr(LESSON, name) for name in reversed(list(LESSON.__dataclass_fields__))})
    assert encode(KeptState(LESSON)) == encode(KeptState(again))


def test_a_mail_may_break_its_lines() -> None:
    text = encode(KeptState(LESSON))
    assert decode("  " + "\r\n".join(text[at : at + 40] for at in range(0, len(text), 40)) + "\n").document == LESSON


def test_colours_and_units_stay_those_of_who_opens_it() -> None:
    sent = replace(LESSON, view=ViewOptions(colour_map="magma", unit="nats", words=True))
    own = ViewOptions(colour_map="cividis", dim_special=False)
    view = for_this_window(decode(encode(KeptState(sent))), own).document.view
    assert (view.colour_map, view.dim_special, view.unit, view.words) == ("cividis", False, "bits", True)


def test_it_carries_no_place_of_this_computer() -> None:
    state = KeptState(LESSON, placement=Placement("cuda:3", "bfloat16"), files={"model.safetensors": "0" * 64})
    assert decode(encode(state)) == decode(encode(KeptState(LESSON)))


@pytest.mark.parametrize(
    ("document", "named"),
    [
        (replace(LESSON, checkpoint="/home/somebody/model"), "checkpoint /home/somebody/model"),
        (replace(LESSON, checkpoint="vit-cifar10", picture="/home/somebody/cat.png"), "picture /home/somebody/cat.png"),
    ],
)
def test_what_others_do_not_have_is_not_sent(document: Document, named: str) -> None:
    with pytest.raises(ValueError, match=f"Another computer does not have the {named}"):
        encode(KeptState(document))


def test_what_is_too_long_is_not_sent() -> None:
    text = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(64))  # which nothing makes shorter
    with pytest.raises(ValueError, match="a short text has 2,000 at most"):
        encode(KeptState(replace(LESSON, text=text)))


GOOD = encode(KeptState(LESSON))
BOMB = zlib.compressobj(9, zlib.DEFLATED, -15)
HOSTILE = {
    "nothing": ("", "does not begin with"),
    "something else": ("https://example.org", "does not begin with"),
    "a newer version": (packed(plain(), "attn2."), "another version of the program"),
    "only the beginning": (GOOD[:-9], "missing or another"),
    "no content": (PREFIX, "missing or another"),
    "half a byte": (PREFIX + "A", "missing or another"),
    "one letter is another": (GOOD[:40] + ("A" if GOOD[40] != "A" else "B") + GOOD[41:], "missing or another"),
    "other letters": (PREFIX + "+/=é", "letters that a short text has not"),
    "a long text": (PREFIX + "A" * 100_000, "characters"),
    "a bomb": (wrapped(BOMB.compress(bytes(1 << 20)) + BOMB.flush()), "holds more than 65,536 bytes"),
    "more behind it": (wrapped(base64.urlsafe_b64decode(packed(plain())[6:] + "==")[4:] + b"more"), "or is damaged"),
    "not packed": (wrapped(b"\xff\xff{}"), "damaged"),
    "no JSON": (packed(b"{"), "truncated"),
    "no document": (packed({}), "document"),
    "a wrong type": (packed(plain(text=7)), "expected `str`, got `int`"),
    "a place below 0": (packed(plain(selection={"head": -1})), "selection"),
    "no such mask": (packed(plain(interventions=[{"kind": "mask", "mask": "upside down"}])), "upside down"),
    "an unknown member": (packed(plain(interventions=[{"kind": "run", "command": "ls"}])), "Invalid value"),
    "a file": (packed(plain(checkpoint="/etc/passwd")), "a place on a disk"),
    "a file above": (packed(plain(checkpoint="hf://../../etc")), "a place on a disk"),
    "a handed-over object": (packed(plain(checkpoint="python:os")), "a place on a disk"),
    "a picture's file": (packed(plain(picture="/etc/passwd")), "a place on a disk"),
    "a file of texts": (packed(plain(corpus={"path": "/etc/passwd"})), "a place on a disk"),
    "deep": (packed(b"[" * 60_000), "its state"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_with_a_sentence(name: str) -> None:
    text, why = HOSTILE[name]
    with pytest.raises(ValueError, match="This is no short text that can be opened: ") as caught:
        decode(text)
    assert why.lower() in str(caught.value).lower()
    assert len(str(caught.value)) < 400


def test_at_most_that_much_is_ever_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    unpack = zlib.decompressobj

    class Watched:
        def __init__(self, *args: object, **named: object) -> None:
            self._real = unpack(*args, **named)  # type: ignore[arg-type]

        def decompress(self, data: bytes, most: int = 0) -> bytes:
            content = self._real.decompress(data, most)
            sizes.append(len(content))
            return content

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    with pytest.raises(ValueError, match="bytes"):
        decode(HOSTILE["a bomb"][0])
    assert sizes == [64 << 10]


@given(st.text(max_size=300) | st.binary(max_size=300).map(wrapped) | st.binary(max_size=300).map(packed))
def test_whatever_comes_is_a_state_or_a_sentence(text: str) -> None:
    with suppress(ValueError):
        assert decode(text).document.checkpoint


def test_how_it_is_told_from_a_file() -> None:
    assert is_short_text(GOOD)
    assert is_short_text(f" {GOOD}")
    assert not is_short_text("lesson.attn")
    assert not is_short_text("attn1")
    assert len(GOOD) < MOST_CHARACTERS
