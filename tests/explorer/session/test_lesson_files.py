"""Files of lessons: what they may say, where they are wrong, and that a .lesson reads back equal."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from attention_explorer.panels.registry import TITLES
from attention_explorer.session.figures import Figure
from attention_explorer.session.kept import KeptState, Screen
from attention_explorer.session.lesson_files import (
    LARGEST,
    LessonError,
    decode_file,
    decode_toml,
    encode_file,
    is_packed,
    load,
    save,
    shipped_lessons,
)
from attention_explorer.session.lessons import Ask, Lesson, OpenLesson, Option, Step
from attention_explorer.session.state import CorpusChoice, Document
from attention_explorer.window.lesson.question import CELLS, is_visible
from attention_models.protocol.facts import KINDS

PANELS = tuple(TITLES)
STEP = """[[step]]
title = "Who?"
say = \"\"\"
It says {says}.
\"\"\"
[step.show]
checkpoint = "story-gpt"
text = "Tom and Anna"
panel = "map"
[step.figures]
says = { kind = "next" }
"""
CHECKED = STEP.replace("[step.show]", "check = [\"says = 'Tom'\"]\n[step.show]")
GOOD = f'title = "L"\nabout = "About."\nminutes = 5\n\n{STEP}\n{CHECKED}'


def wrong(content: str | bytes) -> LessonError:
    with pytest.raises(LessonError) as caught:
        decode_toml(content.encode() if isinstance(content, str) else content, PANELS)
    return caught.value


def test_a_key_of_very_many_parts_is_refused_with_its_line() -> None:
    found = wrong(GOOD + ".".join(["a"] * 100_000) + "=1")
    assert found.line == GOOD.count("\n") + 1
    assert "more than 16 parts" in str(found)


def test_a_file_is_read() -> None:
    lesson = decode_toml(GOOD.encode(), PANELS)
    assert [step.title for step in lesson.step] == ["Who?", "Who?"]
    step = lesson.step[0]
    assert step.said(step.say, {}) == "It says ….\n"
    assert step.said(step.say, {"says": "*Tom*"}) == "It says \\*Tom\\*.\n"


def line(piece: str, place: int = 1) -> int:
    """Of the `place`-th line of GOOD with this piece."""
    found = [number for number, text in enumerate(GOOD.split("\n"), start=1) if piece in text]
    return found[place - 1]


def changed(old: str, new: str, place: int = 1) -> str:
    parts = GOOD.split(old)
    return old.join(parts[:place]) + new + old.join(parts[place:])


@pytest.mark.parametrize(
    ("content", "at", "said"),
    [
        (changed("minutes = 5", "minutes = 'x'"), line("minutes"), "expected `int`"),
        (changed("minutes = 5", "minutes = 5000"), line("minutes"), "<= 120"),
        (changed('panel = "map"', 'panel = "moon"', 2), line("panel", 2), "no panel “moon”"),
        (changed('panel = "map"', "panel = 3", 2), line("panel", 2), "step 2, show.panel: expected `str`"),
        (changed('"story-gpt"', '"../../etc"'), line("[step.show]"), "no checkpoint that a lesson may name"),
        (changed('"story-gpt"', '"/etc/passwd"', 2), line("[step.show]", 2), "no checkpoint that a lesson may name"),
        (changed('panel = "map"', 'picture = "/etc/x.png"'), line("[step.show]"), "no file"),
        (changed('"next" }', '"mood" }', 2), line("says = {", 2), "invalid enum value"),
        (changed("{says}", "{mood}"), line("[[step]]"), "no figure “mood”"),
        (changed('title = "Who?"', 'title = "Who?"\nrun = "x"'), line("[[step]]"), "unknown field `run`"),
        (changed('text = "Tom', 'text = "Tom\n'), line('text = "Tom'), "Illegal character"),
        (changed("= 'Tom'", "= __import__", 1), line("[[step]]", 2), "no figure's name"),
        (changed('panel = "map"', 'interventions = [{ kind = "mask", mask = "moon" }]'), line("[step.show]"), "mask"),
        (changed('panel = "map"', "text_size = 40.0"), line("[step.show]"), "text size"),
        (changed('panel = "map"', "text_size = nan"), line("[step.show]"), "text size"),
        (f'{GOOD}[step.ask]\nquestion = "?"\ncells = "says"\nhide = "mask"\n', line("[[step]]", 2), "of no cells"),
        (f'{GOOD}[step.ask]\nquestion = "?"\ncells = "says"\n', GOOD.count("\n") + 1, 'needs hide = "mask"'),
        (f'{GOOD}[step.ask]\nquestion = "?"\ncells = "a"\nword = "b"\n', GOOD.count("\n") + 1, "one of options"),
        (changed('"next" }', '"role score", word = "x" }', 2), line("says = {", 2), "no role “x”"),
        (changed('"next" }', '"agreement", word = "x" }'), line("says = {"), "no account of the tokens “x”"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content: str, at: int, said: str) -> None:
    error = wrong(content)
    assert said in str(error)
    assert error.line == at


def test_the_document_names_every_kind_of_figure() -> None:
    document = (Path(__file__).parents[3] / "docs" / "lessons.md").read_text(encoding="utf-8")
    table = " ".join(line.split("|")[1] for line in document.splitlines() if line.startswith("| `"))
    assert set(re.findall("`([^`]+)`", table)) == set(KINDS)


def test_hostile_files_are_refused() -> None:
    assert "more than" in str(wrong(b"#" * (LARGEST + 1)))
    assert "nested" in str(wrong(b"x = " + b"[" * 5000))
    assert "nested" in str(wrong("x = " + "{a=" * 40 + "1" + "}" * 40))
    assert wrong(b'title = "\xff"').line == 1
    steps = "".join(f'[[step]]\ntitle = "{i}"\nsay = ""\n' for i in range(100))
    assert "length <= 60" in str(wrong(f'title = "L"\nabout = "A"\nminutes = 5\n{steps}'))
    assert "two options" in str(
        wrong(GOOD + '[step.ask]\nquestion = "?"\noptions = [{ say = "a", when = "says = 1" }]\n')
    )


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    for name in ("a.toml", "a.lesson"):
        with open(tmp_path / name, "wb") as stream:
            stream.truncate(100 << 20)
        with pytest.raises(ValueError, match="more than"):
            load(tmp_path / name)


STATE = KeptState(Document(text="Tom and Anna"), name="One", screen=Screen(("map",), ("map",), {"map": {"part": ""}}))
OPENED = OpenLesson(
    Lesson(title="Mine", about="Of mine.", minutes=3, step=(Step(title="A", say="*b*", state=1, notes="n"),)), (STATE,)
)


def test_a_lesson_made_in_the_window_reads_back_equal(tmp_path: Path) -> None:
    save(OPENED, tmp_path / "a.lesson")
    assert load(tmp_path / "a.lesson", PANELS) == OPENED
    shipped = decode_toml(shipped_lessons()[0].read_bytes())
    assert decode_file(encode_file(OpenLesson(shipped))).lesson == shipped


def repacked(**members: object) -> bytes:
    """OPENED with some members of its zip replaced."""
    with zipfile.ZipFile(io.BytesIO(encode_file(OPENED))) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in {**found, **members}.items():
            if content is not None:
                archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return out.getvalue()


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"lesson.json": None}, "holds no lesson.json"),
        ({"lesson.json": {"title": 3}}, "title"),
        ({"lesson.json": b"x" * (LARGEST + 1)}, "more than"),
        ({"lesson.json": {"title": "a", "about": "b", "minutes": 1, "step": [{"title": "x", "say": "", "state": 2}]}},
         "step 1 shows state 2, and there are 1"),
        ({"../outside": b""}, "outside"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_lesson_of_states(members: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decode_file(repacked(**members))


def test_the_line_of_a_lesson_beside_states_is_said(tmp_path: Path) -> None:
    """A zip can be opened in a text editor, and what is in it be written by hand."""
    lesson = json.loads(zipfile.ZipFile(io.BytesIO(encode_file(OPENED))).read("lesson.json"))
    lesson["step"].append({"title": 3, "say": ""})
    text = json.dumps(lesson, indent=1)
    line = next(number for number, row in enumerate(text.split("\n"), start=1) if '"title": 3' in row)
    with pytest.raises(LessonError, match=f"lesson.json, line {line}: step 2, title") as caught:
        decode_file(repacked(**{"lesson.json": text.encode()}))
    assert caught.value.step == 2
    broken = text.replace('"say": ""', '"say": ')
    at = next(number for number, row in enumerate(broken.split("\n"), start=1) if row.strip() == '"say":')
    (tmp_path / "a.lesson").write_bytes(repacked(**{"lesson.json": broken.encode()}))
    with pytest.raises(ValueError, match=rf"a.lesson .* lesson.json, line ({at}|{at + 1}): JSON is malformed"):
        load(tmp_path / "a.lesson")


def test_a_lesson_may_be_text_whatever_its_ending(tmp_path: Path) -> None:
    (tmp_path / "a.lesson").write_text(GOOD)
    assert load(tmp_path / "a.lesson", PANELS) == OpenLesson(decode_toml(GOOD.encode()))
    assert not is_packed(tmp_path / "a.lesson")
    (tmp_path / "a.lesson").write_text(changed("minutes = 5", "minutes = 'x'"))
    with pytest.raises(ValueError, match=f"a.lesson .* line {line('minutes')}: "):
        load(tmp_path / "a.lesson")
    save(OPENED, tmp_path / "b.lesson")
    assert is_packed(tmp_path / "b.lesson")


@pytest.mark.parametrize(
    "document",
    [
        Document(checkpoint="/home/somebody/model"),
        Document(picture="/home/somebody/a.png"),
        Document(corpus=CorpusChoice("/home/somebody/a.txt")),
        Document(probe="/home/somebody/a.txt"),
    ],
)
def test_a_lesson_of_states_names_no_place(document: Document) -> None:
    with pytest.raises(ValueError, match="a lesson"):
        encode_file(replace(OPENED, states=(KeptState(document),)))


@pytest.mark.parametrize(("word", "drawn"), [("causal", "causal"), ("none", "none"), ("painted", ""), ("Tom", "")])
def test_a_mask_is_drawn_beside_an_answer_that_names_one(word: str, drawn: str) -> None:
    options = (Option(say="This", when=f"it = '{word}'"), Option(say="Not this", when=f"it != '{word}'"))
    step = Step(title="A", say="", figures={"it": Figure(kind="mask")}, ask=Ask(question="Which?", options=options))
    assert [step.mask_of(option) for option in options] == [drawn, ""]
    if drawn:
        assert any(is_visible(drawn, 3, key) for key in range(CELLS))


@pytest.mark.parametrize("digits", ["1" * 5_000, "1_" * 5_000 + "1", "-" + "7" * 5_000])
def test_a_number_without_end_is_said_in_the_persons_words(digits: str) -> None:
    with pytest.raises(LessonError, match=r"line 2: A number has thousands of digits$"):
        decode_toml(f'title = "A"\nminutes = {digits}\n'.encode())
