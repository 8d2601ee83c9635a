"""Files of lessons: TOML, or a `.lesson` made in the window, which is a session file with a lesson beside its states.

They are untrusted: read up to a size, every value is checked before any is used, and what is wrong is said with the
line that it stands in.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from attention_explorer import json_files
from attention_explorer.paths import resource
from attention_explorer.session import attn
from attention_explorer.session.figures import Figure
from attention_explorer.session.kept import Kept, KeptState, SessionFile
from attention_explorer.session.lessons import Lesson, OpenLesson, Step
from attention_explorer.session.scenes import check_state
from attention_explorer.session.state import Document
from attention_explorer.session.view_options import ViewOptions
from attention_models.files.safe_files import not_written, open_regular, write_whole
from attention_models.files.toml_files import decode_toml as decode_table

# The lessons that come along, as a menu lists them: without reading, and checking, what is in them.


ENDING = ".lesson"
"""Of lessons made in the window."""
TOML = ".toml"

OPENED = f"Lessons (*{ENDING} *{TOML})"
"""What a dialog lists."""

_TITLE = re.compile(r'^title = "([^"]+)"', re.MULTILINE)
_MINUTES = re.compile(r"^minutes = (\d+)", re.MULTILINE)


def is_lesson(path: str) -> bool:
    """Whether a path names a lesson by its ending."""
    return path.lower().endswith((ENDING, TOML))


@cache
def shipped_lessons() -> tuple[Path, ...]:
    """Those that come along, in their order."""
    return tuple(sorted(resource("lessons").glob(f"*{TOML}")))


def heading_of(path: Path) -> str:
    """Title and length of one that comes along, as its first lines have them."""
    text = path.read_text("utf-8")
    title, minutes = _TITLE.search(text), _MINUTES.search(text)
    assert title is not None
    assert minutes is not None
    return f"{title[1]} ({minutes[1]} minutes)"


_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_KEYS = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


def line_in_json(content: bytes, path: str) -> int:
    """The line of `$.step[2].show.layer`, or of what it is in, from 1. `content` is JSON."""
    text = content.decode(errors="replace")
    wanted = tuple(key or int(number) for key, number in _KEYS.findall(path))
    at: list[str | int] = []  # the place that is being read
    deepest, line, name = 0, 1, ""
    for piece in _PIECE.finditer(text):
        mark = piece[0]
        if mark in ("{", "["):
            at.append("" if mark == "{" else 0)
        elif mark in ("}", "]"):
            at.pop()
        elif mark == "," and at and isinstance(at[-1], int):
            at[-1] += 1
        elif mark == ":" and at:
            at[-1] = name
        elif mark[0] == '"':
            name = mark[1:-1]
        depth = _alike(at[:-1] if mark in ("{", "[") else at, wanted)  # what is in it has yet to begin
        if depth > deepest and mark not in (",", "}", "]"):
            deepest, line = depth, text.count("\n", 0, piece.start()) + 1
    return line


def _alike(at: Sequence[str | int], wanted: Sequence[str | int]) -> int:
    """How many steps of the two paths are the same, from the first on."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(at, wanted, strict=False))
    return sum(1 for _ in same)


LARGEST = 512 * 1024
"""Bytes of a lesson's own text."""
_DEEPEST = 12
_MEMBER = "lesson.json"
_ZIP = b"PK"


class LessonError(ValueError):
    """What is wrong with a lesson: in which line of its file, and which step, from 1; 0 where that is not known."""

    def __init__(self, sentence: str, line: int = 0, step: int = 0) -> None:
        super().__init__(f"line {line}: {sentence}" if line else sentence)
        self.line, self.step = line, step


def decode_toml(content: bytes, panels: Sequence[str] = ()) -> Lesson:
    """The lesson that a TOML file spells. With `panels` those that it names must be among them.

    Raises:
        LessonError: it spells none; what is wrong, and in which line.
    """
    try:
        json_files.check_size(content, LARGEST)
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as cause:
        raise LessonError("it is no text in UTF-8", content[: cause.start].count(b"\n") + 1) from cause
    except ValueError as error:
        raise LessonError(str(error)) from error
    try:
        tree = decode_table(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise LessonError(re.sub(r" \(at .*\)$", "", str(error)), line) from error
    _check_depth(tree)
    return _converted(tree, partial(line_of, text), panels)


def decode_file(content: bytes, panels: Sequence[str] = ()) -> OpenLesson:
    """The lesson in the content of a `.lesson` file.

    Raises:
        ValueError: it has none; what is wrong.
    """
    session = attn.decode(content)
    member = next((data for name, data in session.kept.members if name == _MEMBER), None)
    if member is None:
        raise LessonError(f"it holds no {_MEMBER}")
    json_files.check_size(member, LARGEST)
    lesson = _member(member, panels)
    states = session.kept.states
    for number, state in enumerate(states, start=1):
        try:
            check_state(state)
        except ValueError as error:
            raise LessonError(f"state {number}: {error}") from error
    for number, step in enumerate(lesson.step, start=1):
        if step.state is not None and step.state > len(states):
            line = line_in_json(member, f"$.step[{number - 1}].state")
            clause = f"step {number} shows state {step.state}, and there are {len(states)}"
            raise LessonError(f"{_MEMBER}, line {line}: {clause}", step=number)
    return OpenLesson(lesson, states)


def encode_file(opened: OpenLesson) -> bytes:
    """The content of a `.lesson` file. ValueError, with a sentence, where it would be too large, or names a place."""
    for state in opened.states:
        check_state(state)
    content = json_files.encode(opened.lesson)
    if len(content) > LARGEST:
        raise ValueError(f"This lesson's text takes {len(content):,} bytes, and {LARGEST:,} are read at most.")
    return attn.encode(SessionFile(_present(opened), Kept(opened.states, members=((_MEMBER, content),))))


def _member(content: bytes, panels: Sequence[str]) -> Lesson:
    """The lesson beside the states. LessonError names the line of it."""
    try:
        tree = json_files.decode(content, dict[str, Any])
    except ValueError as error:
        found = re.search(r" \(byte (\d+)\)", str(error))
        line = content[: int(found[1])].count(b"\n") + 1 if found else 1
        raise LessonError(f"{_MEMBER}, line {line}: {error}") from error
    _check_depth(tree)
    try:
        return _converted(tree, partial(line_in_json, content), panels)
    except LessonError as error:
        raise LessonError(f"{_MEMBER}, {error}", step=error.step) from error


def load(path: Path, panels: Sequence[str] = ()) -> OpenLesson:
    """Read a lesson. ValueError with a sentence for the person, which names the file and the line."""
    try:
        if path.suffix.lower() == TOML:
            return OpenLesson(decode_toml(json_files.read(path, LARGEST), panels))
        content = json_files.read(path, attn.LARGEST)
        if content[:2] != _ZIP:  # written with a text editor
            return OpenLesson(decode_toml(content, panels))
        return decode_file(content, panels)
    except OSError as cause:
        raise ValueError(f"The lesson {path} could not be read ({cause.strerror}).") from cause
    except ValueError as error:
        raise ValueError(f"{path.name} is no lesson that can be opened: {str(error).rstrip('.')}.") from error


def is_packed(path: Path) -> bool:
    """Whether a file is one that `save` writes, and no text that a person wrote."""
    try:
        if path.suffix.lower() == TOML:
            return False
        with open_regular(path) as stream:
            return stream.read(len(_ZIP)) == _ZIP
    except (OSError, ValueError):
        return False


def save(opened: OpenLesson, path: Path) -> None:
    """Write a `.lesson` file whole or not at all. ValueError with a sentence for the person."""
    content = encode_file(opened)
    try:
        write_whole(path, content)
    except OSError as cause:
        raise ValueError(not_written("The lesson", path, cause)) from cause


# --------------------------------------------------------------------------- what is wrong, and where


def _converted(tree: dict[str, Any], line: Callable[[str], int], panels: Sequence[str]) -> Lesson:
    """`line` says in which one something stands, as `$.step[2].show.layer` names it."""
    try:
        lesson = msgspec.convert(tree, type=Lesson)
    except (msgspec.ValidationError, RecursionError) as error:
        clause, path = _taken_apart(str(error))
        path = _with_figure(tree, path)
        found = re.match(r"\$\.step\[(\d+)\]", path)
        raise LessonError(_named(clause, path), line(path), int(found[1]) + 1 if found else 0) from error
    if panels:
        for number, step in enumerate(lesson.step, start=1):
            for name in _panels_of(step):
                if name not in panels:
                    clause = f"step {number}: there is no panel “{name}”: there are {', '.join(panels)}"
                    raise LessonError(clause, line(f"$.step[{number - 1}].show.panel"), number)
    return lesson


def _panels_of(step: Step) -> tuple[str, ...]:
    scene = step.show
    return () if scene is None else (scene.panel, *filter(None, (scene.beside,)), *scene.choices)


def _check_depth(tree: object, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise LessonError("it is nested too deep")
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _check_depth(child, depth + 1)


def _taken_apart(message: str) -> tuple[str, str]:
    clause, _, path = message.partition(" - at `")
    return clause[:1].lower() + clause[1:], path.rstrip("`")


def _with_figure(tree: dict[str, Any], path: str) -> str:
    """The path with the name of the figure that is wrong, which the error leaves out."""
    found = re.match(r"(\$\.step\[(\d+)\]\.figures)\[\.\.\.\](.*)", path)
    if found is None:
        return path
    for name, figure in tree["step"][int(found[2])]["figures"].items():
        try:
            msgspec.convert(figure, type=Figure)
        except msgspec.ValidationError:
            return f"{found[1]}.{name}{found[3]}"
    return path


def _named(clause: str, path: str) -> str:
    """With the step that it is of, as a person counts them."""
    found = re.match(r"\$\.step\[(\d+)\]\.?(.*)", path)
    if found is None:
        return clause if path in ("", "$") else f"{path.removeprefix('$.')}: {clause}"
    inner = f", {found[2]}" if found[2] else ""
    return f"step {int(found[1]) + 1}{inner}: {clause}"


def line_of(text: str, path: str) -> int:
    """The line of a TOML file where `$.step[2].show.layer` stands, or what it is in."""
    lines = text.split("\n")
    first, last = 0, len(lines)
    found = re.match(r"\$\.step\[(\d+)\]", path)
    if found is not None:
        heads = [i for i, line in enumerate(lines) if re.match(r"\s*\[\[\s*step\s*\]\]", line)]
        number = int(found[1])
        if number >= len(heads):
            return 1
        first, last = heads[number], heads[number + 1] if number + 1 < len(heads) else len(lines)
    keys = [key for key in re.findall(r"[A-Za-z_]\w*", path.split("]", 1)[-1] if found else path) if key]
    line = first
    for key in keys:
        for i in range(line, last):
            begins = re.match(rf"\s*(\[+[\w. ]*\b{key}\s*\]+|{key}\s*[=.])", lines[i])
            if begins or re.search(rf"[{{,]\s*{key}\s*=", lines[i]):
                line = i
                break
    return line + 1


def _present(opened: OpenLesson) -> KeptState:
    """What the file shows to a program that takes it for a session."""
    if opened.states:
        return opened.states[0]
    scene = next((step.show for step in opened.lesson.step if step.show is not None), None)
    return KeptState(Document() if scene is None else scene.document(ViewOptions()))
