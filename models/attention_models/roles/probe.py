"""The texts that roles are measured on: sentences of ours with their dependency edges, or any file of a person's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from attention_models.files.sample_pictures import samples
from attention_models.files.text_stream import CONLLU, TextStream
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import RELATIONS

OURS = Path(__file__).parents[1] / "samples" / "texts" / "probe.conllu"

MOST_TEXTS = 5_000
_MOST_BYTES = 16 << 20
_SPELLED = {"nmod:poss": "poss", "nsubj:pass": "nsubj", "aux:pass": "aux"}
_FORM, _HEAD, _RELATION, _MISC, _COLUMNS = 1, 6, 7, 9, 10


@dataclass(frozen=True, slots=True)
class Edge:
    """One word depends on another: both by their places among the text's words."""

    relation: str  # one of `RELATIONS`
    dependent: int
    head: int


@dataclass(frozen=True, slots=True)
class ProbeText:
    prompt: str | Pair
    line: int = 0  # of the file, from 1
    words: tuple[tuple[int, int], ...] = ()  # first character and the one after the last of each
    edges: tuple[Edge, ...] = ()
    target: str | None = None  # what a decoder is made to say; it writes itself where None


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    texts: tuple[ProbeText, ...]
    ours: bool = False  # the texts that come along
    has_edges: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of all that is in it."""
        return hashlib.sha256(repr(self.texts).encode("utf-8", "replace")).hexdigest()


def our_probe() -> Probe:
    return replace(read_probe(OURS), name="our sentences", ours=True)


def picture_probe(channels: int) -> tuple[str, ...]:
    """The sample pictures for a vision model of so many channels."""
    return tuple(sample.reference for sample in samples(channels))


def read_probe(path: str | Path) -> Probe:
    """The texts of a file: CoNLL-U (.conllu) with its edges, else as `TextStream` has it.

    Raises:
        InputError: it cannot be read, or has too many texts; the sentence says on which line.
    """
    path = Path(path).expanduser()
    is_conllu = path.suffix.lower() in CONLLU
    texts: list[ProbeText] = []
    stream = TextStream(path)
    for text in _conllu(stream) if is_conllu else (ProbeText(one.prompt, one.number) for one in stream):
        texts.append(text)
        if len(texts) > MOST_TEXTS:
            raise InputError(
                f"{path.name} has more than {MOST_TEXTS:,} texts. Roles are told by fewer: keep a part, or open the "
                "whole file as a corpus."
            )
    if not texts:
        raise InputError(f"{path.name} has no sentence. Give a CoNLL-U file, or one text a line.")
    return Probe(path.name, tuple(texts), has_edges=any(text.edges for text in texts))


def _conllu(stream: TextStream) -> Iterator[ProbeText]:
    """Nivre et al. 2020. Words that stand for several (1-2) and empty ones (1.1) are passed over."""
    name = stream.name
    if stream.size > _MOST_BYTES:
        raise InputError(f"{name} is larger than {_MOST_BYTES >> 20} MB. Keep a part of its sentences.")
    waiting: ProbeText | None = None  # it may go on
    rows: list[tuple[str, int, str, bool]] = []  # form, head, relation, whether a space follows
    goes_on, begun = False, 0
    for number, line in chain(stream.lines(), [(0, "")]):  # an empty line ends the last sentence
        begun = begun or number
        if line.startswith("#"):
            goes_on = goes_on or line.replace(" ", "") == "#goes_on=yes"
        elif line.strip():
            row = _row(name, number, line)
            if row is not None:
                rows.append(row)
        else:
            if rows:
                here = _sentence(name, rows, begun)
                if goes_on and waiting is not None:
                    waiting = _joined(waiting, here)
                else:
                    if waiting is not None:
                        yield waiting
                    waiting = here
            rows, goes_on, begun = [], False, 0
    if waiting is not None:
        yield waiting


def _row(name: str, number: int, line: str) -> tuple[str, int, str, bool] | None:
    columns = line.split("\t")
    if len(columns) != _COLUMNS:
        raise InputError(f"{name}: line {number:,} has {len(columns)} columns, and CoNLL-U has {_COLUMNS}.")
    if not columns[0].isdecimal():
        return None
    if not columns[_HEAD].isdecimal():
        raise InputError(f"{name}: line {number:,} names no head. Give a file with its dependencies filled in.")
    return columns[_FORM], int(columns[_HEAD]), columns[_RELATION], "SpaceAfter=No" not in columns[_MISC]


def _sentence(name: str, rows: list[tuple[str, int, str, bool]], line: int) -> ProbeText:
    text, words = "", list[tuple[int, int]]()
    for form, _, _, spaced in rows:
        words.append((len(text), len(text) + len(form)))
        text += form + (" " if spaced else "")
    edges = []
    for place, (_, head, relation, _) in enumerate(rows):
        if head > len(rows):
            raise InputError(f"{name}: the sentence at line {line:,} has no word {head}, which one depends on.")
        plain = _SPELLED.get(relation, relation)
        if head and plain in RELATIONS:
            edges.append(Edge(plain, place, head - 1))
    return ProbeText(text.rstrip(), line, tuple(words), tuple(edges))


def _joined(before: ProbeText, after: ProbeText) -> ProbeText:
    """One text of two, a space between them."""
    assert isinstance(before.prompt, str)
    assert isinstance(after.prompt, str)
    shift, count = len(before.prompt) + 1, len(before.words)
    words = tuple((start + shift, end + shift) for start, end in after.words)
    edges = tuple(Edge(edge.relation, edge.dependent + count, edge.head + count) for edge in after.edges)
    return replace(
        before, prompt=f"{before.prompt} {after.prompt}", words=before.words + words, edges=before.edges + edges
    )
