"""A lesson that is being made is kept as it is, however incomplete; its file is not trusted."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from attention_explorer.session import attn, kept_drafts, lesson_files
from attention_explorer.session.kept import Kept, KeptState, Screen, SessionFile, named
from attention_explorer.session.kept_drafts import KeptDraft
from attention_explorer.session.lesson_drafts import Draft, DraftAsk, DraftStep
from attention_explorer.session.lesson_files import shipped_lessons
from attention_explorer.session.state import Document

SCREEN = KeptState(Document(text="Tom ran."), screen=Screen(open=("map",), front=("map",)))
INCOMPLETE = Draft(
    title="",
    steps=(
        DraftStep(title="", say="Row {row", ask=DraftAsk(question="", options=(("", "a ="), ("B", "")))),
        DraftStep(title="Two", state=SCREEN, text_size=1.25, point="cell", notes="Wait."),
    ),
)


def test_what_is_incomplete_comes_back_equal() -> None:
    kept = KeptDraft(INCOMPLETE, 1, "/home/somebody/class.lesson")
    assert kept_drafts.decode(kept_drafts.encode(kept)) == kept


@pytest.mark.parametrize("path", shipped_lessons(), ids=lambda path: path.stem[:2])
def test_every_shipped_lesson_comes_back_equal_while_it_is_changed(path) -> None:
    kept = KeptDraft(Draft.of(lesson_files.load(path)), 0)
    assert kept_drafts.decode(kept_drafts.encode(kept)) == kept


def member(**changes: object) -> bytes:
    return msgspec.json.encode({"title": "T", "about": "", "minutes": 5, "steps": [], **changes})


def packed(content: bytes, *states: KeptState, name: str = "draft.json") -> bytes:
    return attn.encode(SessionFile(SCREEN, Kept(tuple(named(s, "s") for s in states), members=((name, content),))))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK not a zip", "damaged"),
        (packed(member(), name="other.json"), "holds no draft.json"),
        (packed(b"[" * 100_000), "draft|malformed|expected|nested|recursion"),
        (packed(member(steps=[{"title": "A", "state": 2}]), SCREEN), "step 1 shows state 2, and there are 1"),
        (packed(member(steps=[{"title": "A", "text_size": 99.0}])), "text size"),
        (packed(member(steps=[{"title": "A"}] * 61)), "length"),
        (packed(member(code="print()")), "unknown field"),
        (packed(member(minutes=10**9)), "<="),
        (packed(member(title="x" * 3_000_000)), "bytes|length"),
        (packed(member(), replace(SCREEN, document=Document(checkpoint="/etc"))), "checkpoint"),
    ],
)
def test_what_is_no_draft_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=f"(?i){said}"):
        kept_drafts.decode(content)
