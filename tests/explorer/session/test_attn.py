"""Session files (.attn): what is saved comes back, what a newer version wrote stays, and what is hostile is refused."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_explorer.session import attn, files
from attention_explorer.session.branches import Branches
from attention_explorer.session.kept import MOST_STATES, Kept, KeptState, Screen, SessionFile, WhatWasRead
from attention_explorer.session.state import BatchText, Compared, Document, State
from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_models.protocol.values import UNIT_ROUNDOFFS, Placement
from tests.explorer.session.test_files import DOCUMENT, DOCUMENTS, TREES, WRITTEN

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Z")), min_size=1, max_size=20)
VALUES = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | NAMES
SCREENS = st.builds(
    Screen,
    open=st.lists(NAMES, max_size=4).map(tuple),
    front=st.lists(NAMES, max_size=4).map(tuple),
    panels=st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3),
)
EXTRA = st.dictionaries(NAMES.map(lambda name: f"later {name}"), st.integers() | NAMES, max_size=3).map(
    lambda found: tuple((name, json.dumps(value, ensure_ascii=False).encode()) for name, value in found.items())
)
HASHES = st.dictionaries(NAMES, st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=3)
IN_TREES = st.builds(lambda document, tree: document.with_branches(tree), DOCUMENTS, TREES)
COMPARED = st.builds(
    Compared, IN_TREES, st.lists(st.integers(0, 2**40 - 1), max_size=3).map(tuple), st.just("") | NAMES, st.booleans()
)
READ = st.builds(WhatWasRead, HASHES, st.just("") | st.binary(min_size=32, max_size=32).map(bytes.hex))


def with_b(state: KeptState, compared: Compared | None, read: WhatWasRead) -> KeptState:
    if compared is None:
        return state
    return replace(state, document=replace(state.document, compared=compared), b=read)


PLAIN_STATES = st.builds(
    KeptState,
    document=IN_TREES,
    name=NAMES,
    screen=SCREENS,
    placement=st.builds(
        Placement, st.sampled_from(["best", "cpu", "cuda:0", "auto"]), st.sampled_from([*UNIT_ROUNDOFFS])
    ),
    files=HASHES,
    picture_hash=st.just("") | st.binary(min_size=32, max_size=32).map(bytes.hex),
    extra=EXTRA,
)
STATES = st.builds(with_b, PLAIN_STATES, st.none() | COMPARED, READ)
SESSIONS = st.builds(
    SessionFile,
    present=STATES,
    kept=st.builds(
        Kept,
        states=st.lists(STATES, max_size=3).map(tuple),
        notes=st.text(st.characters(codec="utf-8"), max_size=200),
        extra=EXTRA,
        members=st.dictionaries(
            st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?\.bin", fullmatch=True), st.binary(max_size=50), max_size=2
        ).map(lambda found: tuple(sorted(found.items()))),
    ),
)
WITH_B = replace(
    DOCUMENT.with_branches(WRITTEN),
    compared=Compared(replace(DOCUMENT, checkpoint="en-es", text="B").with_branches(WRITTEN), (5, 6), "theirs", True),
)
SESSION = SessionFile(
    KeptState(WITH_B, b=WhatWasRead({"model": "0" * 64}), screen=Screen(("map",), ("map",), {"lookup": {"page": 2}})),
    Kept((KeptState(DOCUMENT, "one"),), "Notes."),
)


@given(SESSIONS)
@settings(deadline=None)
def test_what_is_saved_comes_back_the_same(session):
    assert attn.decode(attn.encode(session)) == session


def test_trees_of_other_texts_come_back():
    elsewhere = replace(DOCUMENT.with_branches(WRITTEN), text="Another text")
    both = elsewhere.with_branches(Branches().grow(3, "x", -1.0))
    session = SessionFile(KeptState(both))
    assert attn.decode(attn.encode(session)) == session
    assert len(both.writings) == 2
    beside = replace(elsewhere, after=(BatchText("Beside it", "A second."),), padding="left").with_branches(WRITTEN)
    alone = SessionFile(KeptState(replace(beside, after=(), padding="right", text="Alone").with_branches(WRITTEN)))
    assert len(alone.present.document.writings) == 3
    assert attn.decode(attn.encode(alone)) == alone


def test_a_file_can_be_read_by_people():
    with zipfile.ZipFile(io.BytesIO(attn.encode(SESSION))) as archive:
        content = json.loads(archive.read("session.json"))
    assert archive.namelist() == ["session.json"]
    assert (content["program"], content["format"], content["notes"]) == ("attention-explorer", 1, "Notes.")
    assert content["present"]["document"] == json.loads(files.encode(SESSION.present.document))
    assert content["present"]["screen"]["panels"] == {"lookup": {"page": 2}}


def test_a_json_session_opens(tmp_path):
    path = tmp_path / "older.json"
    path.write_bytes(files.encode(DOCUMENT))
    assert attn.load(path) == SessionFile(KeptState(DOCUMENT))


def packed(content: bytes | dict[str, Any], **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("session.json", content if isinstance(content, bytes) else json.dumps(content))
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def plain(session: SessionFile = SESSION) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(attn.encode(session))) as archive:
        content: dict[str, Any] = json.loads(archive.read("session.json"))
    return content


def changed(*where: str | int, to: Any) -> bytes:
    """The session with another value at a place."""
    content = plain()
    at: Any = content
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = to
    return packed(content)


def test_what_a_newer_version_wrote_is_passed_over_and_written_again():
    content = plain()
    content["telepathy"] = {"on": True}
    content["present"]["mood"] = [1, 2]
    content["present"]["document"]["sparkles"] = "many"
    content["present"]["compared"]["scent"] = "rose"
    content["present"]["compared"]["document"]["sparkles"] = "few"
    content["states"][0]["mood"] = None
    newer = packed(content, **{"pictures/a.png": b"\x89PNG"})
    opened = attn.decode(newer)
    assert opened.present.document == SESSION.present.document
    again = attn.encode(replace(opened, present=replace(opened.present, document=replace(WITH_B, text="Another"))))
    with zipfile.ZipFile(io.BytesIO(again)) as archive:
        kept = json.loads(archive.read("session.json"))
        assert archive.read("pictures/a.png") == b"\x89PNG"
    assert kept["telepathy"] == {"on": True}
    assert (kept["present"]["mood"], kept["states"][0]["mood"]) == ([1, 2], None)
    assert kept["present"]["document"]["sparkles"] == "many"
    assert kept["present"]["document"]["text"] == "Another"
    assert (kept["present"]["compared"]["scent"], kept["present"]["compared"]["name"]) == ("rose", "theirs")
    assert kept["present"]["compared"]["document"]["sparkles"] == "few"


def test_b_that_was_let_go_takes_what_a_newer_version_wrote_of_it_along():
    content = plain()
    content["present"]["compared"]["scent"] = "rose"
    opened = attn.decode(packed(content))
    let_go = replace(opened.present, document=replace(opened.present.document, compared=None))
    assert "compared" not in plain(replace(opened, present=let_go))["present"]


def test_a_file_without_b_opens():
    content = plain()
    del content["present"]["compared"]
    opened = attn.decode(packed(content))
    assert opened.present.document == replace(WITH_B, compared=None)


def bomb(size: int, name: str = "session.json") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if name != "session.json":
            archive.writestr("session.json", json.dumps(plain()))
        archive.writestr(name, bytes(size))
    return buffer.getvalue()


def encrypted() -> bytes:
    content = bytearray(packed(plain()))
    for signature, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.index(signature) + place] |= 1
    return bytes(content)


def with_twice() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("session.json", json.dumps(plain()))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("session.json", b"{}")
    return buffer.getvalue()


def packed_by(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("session.json", json.dumps(plain()))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"PK", "it is damaged"),
        (packed(plain())[:-30], "it is damaged"),
        (packed(plain())[30:], "malformed|damaged"),
        (encrypted(), "locked with a password"),
        (packed_by(zipfile.ZIP_BZIP2), "packed in a way that is not read"),
        (packed_by(zipfile.ZIP_LZMA), "packed in a way that is not read"),
        (packed({}, **{"../outside": b""}), "a file that lies outside of it"),
        (packed({}, **{"/etc/passwd": b""}), "a file that lies outside of it"),
        (packed({}, **{"a/../../b": b""}), "a file that lies outside of it"),
        (packed({}, **{"C:x": b""}), "a file that lies outside of it"),
        (packed({}, **{"a\\b": b""}), "a file that lies outside of it"),
        (packed({}, **{f"{i}": b"" for i in range(300)}), "it holds 301 files"),
        (partial(bomb, 40 << 20), "session.json has more than 33,554,432 bytes"),
        pytest.param(partial(bomb, 1 << 30), "session.json has more than 33,554,432 bytes", marks=pytest.mark.full),
        (partial(bomb, 64 << 20, "other"), "other has more than 8,388,608 bytes"),
        (bytes((16 << 20) + 1), "it has more than 16,777,216 bytes"),
        (packed(b"[" * 1_000_000), "truncated|recursion|expected `object`"),
        (
            packed(b'{"format": 1, "requires": [], "program": "attention-explorer", "x": ' + b"[" * 1_000_000),
            "trunc|rec",
        ),
        (packed(b"\xff\xfe"), "malformed|utf"),
        (packed([]), "expected `object`"),  # type: ignore[arg-type]
        (changed("program", to="other"), "invalid enum value 'other'"),
        (changed("format", to=2), "it is of format 2, and this program reads format 1"),
        (
            changed("requires", to=["telepathy"]),
            "its figures need “telepathy”, which this version of the program",
        ),
        (changed("notes", to=3), r"expected `str`, got `int` - at `\$\.notes`"),
        (changed("notes", to="x" * (MOST_CHARACTERS + 1)), "its notes has 200,001 characters"),
        (changed("states", to=[{}]), "state 1: .*missing required field `document`"),
        (changed("states", to=[plain()["present"]] * (MOST_STATES + 1)), "length <= 100"),
        (changed("states", 0, "document", "version", to=99), "state 1: it is of version 99"),
        (changed("present", to=None), "what was on screen: expected `object`"),
        (changed("present", "document", to=None), "what was on screen: expected `object`"),
        (changed("present", "dtype", to="float8"), "invalid enum value 'float8'"),
        (changed("present", "files", to={"a": "no hash"}), "matching regex"),
        (changed("present", "screen", "panels", to={"lookup": {"page": [1]}}), "expected `bool"),
        (changed("present", "screen", "open", to="map"), "expected `array`"),
        (changed("present", "document", "text", to="x" * 400_000), "its text has 400,000 characters, and the window"),
        (changed("present", "document", "second", to="x" * 400_000), "its second text has 400,000 characters"),
        (changed("present", "document", "target", to="x" * 400_000), "its target has 400,000 characters"),
        (
            changed("present", "document", "turns", to=[{"role": "user", "text": "x" * 400_000}]),
            "turn 1 has 400,000 characters",
        ),
        (changed("present", "document", "interventions", to=[{"kind": "rm"}]), "invalid value 'rm'"),
        (changed("present", "compared", to=None), "what was on screen, its B: expected `object`"),
        (changed("present", "compared", "document", to=None), "its B: expected `object`"),
        (changed("present", "compared", "document", "version", to=99), "its B: it is of version 99"),
        (changed("present", "compared", "document", "text", to="x" * 400_000), "its B: its text has 400,000"),
        (changed("present", "compared", "continuation", to=[-1]), "its B: expected `int` >= 0"),
        (changed("present", "compared", "continuation", to=[0] * 5_001), "its B: expected `array` of length <= 5000"),
        (changed("present", "compared", "name", to="x" * 201), "its B: expected `str` of length <= 200"),
        (changed("present", "compared", "own_head", to="yes"), "its B: expected `bool`"),
        (changed("present", "compared", "files", to={"a": "no hash"}), "its B: .*matching regex"),
    ],
)
def test_a_hostile_file_says_what_is_wrong(content, sentence):
    with pytest.raises(ValueError, match=f"(?is){sentence}"):
        attn.decode(content() if callable(content) else content)


def test_members_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"it holds session\.json twice"):
        attn.decode(with_twice())


def test_a_long_json_session_is_refused_too(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(files.encode(Document(text="a" * 400_000)))
    with pytest.raises(ValueError, match=r"a\.json is no session that can be opened: its text has 400,000 characters"):
        attn.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.attn")
    for path, kind in ((tmp_path / "pipe.attn", "pipe"), (Path("/dev/zero"), "device")):
        with pytest.raises(ValueError, match=rf"could not be read \(it is a {kind}, not a file\)\."):
            attn.load(path)
        with pytest.raises(ValueError, match=rf"it is a {kind}, not a file\. Choose another name\."):
            attn.save(SESSION, path)


def test_saved_and_loaded_from_a_folder(tmp_path):
    path = tmp_path / "a session.attn"
    attn.save(SESSION, path)
    assert attn.load(path) == SESSION
    assert [other.name for other in tmp_path.iterdir() if other.is_file()] == ["a session.attn"]


def test_a_session_that_is_too_large_is_not_written(tmp_path):
    noise = os.urandom(9 << 20)
    large = replace(SESSION, kept=replace(SESSION.kept, members=(("a", noise), ("b", noise))))
    with pytest.raises(ValueError, match="a session file holds 32 at most"):
        attn.save(large, tmp_path / "a.attn")
    assert not (tmp_path / "a.attn").exists()


def test_half_a_character_is_a_sentence():
    with pytest.raises(ValueError, match="The notes hold half a character"):
        attn.encode(SessionFile(KeptState(DOCUMENT), Kept(notes="\ud800")))


def test_the_screen_of_a_state_is_no_part_of_what_is_run():
    assert State(SESSION.present.document).document.inputs == DOCUMENT.inputs


@pytest.mark.parametrize(
    ("session", "why"),
    [
        (SessionFile(KeptState(Document(text="a" * 200_001))), "its text has 200,001 characters, and the window takes"),
        (SessionFile(KeptState(Document()), Kept(notes="a" * 200_001)), "its notes has 200,001 characters"),
        (SessionFile(KeptState(Document(target="a" * 200_001), name="one")), "its target has 200,001 characters"),
        (SessionFile(KeptState(Document(checkpoint=""))), "$.checkpoint"),
        (SessionFile(KeptState(Document(), name="a" * 300)), "$.name"),
    ],
)
def test_what_could_not_be_opened_again_is_not_saved(tmp_path: Path, session: SessionFile, why: str) -> None:
    path = tmp_path / "a.attn"
    with pytest.raises(ValueError, match="This session could not be opened again: ") as caught:
        attn.save(session, path)
    assert why in str(caught.value)
    assert not path.exists()


def test_the_longest_text_that_the_window_takes_is_saved_and_opened(tmp_path: Path) -> None:
    session = SessionFile(KeptState(Document(text="a" * 200_000)), Kept(notes="b" * 200_000))
    attn.save(session, tmp_path / "a.attn")
    assert attn.load(tmp_path / "a.attn").present.document.text == "a" * 200_000
