"""Rows of a person's own data as a model that writes, fills in or classifies learns from them; some are held out.

    a text          windows of its tokens; the last tenth is held out
    two columns     a decoder reads `input output` and has to say `output` and the end; an encoder-decoder reads
                    `input`, and its decoder has to say `output`. One input in ten is held out, with all its outputs
    a masked model  has to fill in some tokens of each window of a text: others at every step, of held-out windows
                    always the same
    a classifier    reads a text, or two, and has to say its class; one text in ten is held out, with all its labels

Labels stand where they are predicted: of position i the token that follows it; of a text one, its class.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, overload

import torch

from attention_models.decoding.choosing import end_ids
from attention_models.forward.classes import head_of
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.values import ClassHead
from attention_models.textbook.transformer import IGNORE
from attention_models.training.pairs_file import Pairs, Source, data_in, misshapen, quoted, rows_in
from attention_models.training.rows import Batch

# Texts with their classes, as a classifier is fine-tuned on: a table of a text and a label, or two texts and a label.
# Columns are parted by tabs, or by commas where the first line has no tab; the label stands last.


LEAST_TEXTS = 10
_HEADERS = ("label", "labels", "class", "category")
_MOST_NAMED = 8  # classes, in a sentence


class LabelledRow(NamedTuple):
    texts: tuple[str, ...]  # one, or the two of a pair
    label: int  # the number of its class
    line: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows of which all have as many texts."""

    rows: tuple[LabelledRow, ...]
    name: str  # of the file, as a sentence begins


def labelled_in(source: Source, model: Model) -> Labelled:
    """The rows of `source`, each of a class of `model`.

    Raises:
        ExplorerError: no such rows, a label that is no class, one class alone, or too few texts.
    """
    source.check_not_empty()
    head = head_of(model)
    by_commas = source.has_commas
    numbers, rows = _numbers(head), list(rows_in(source, by_commas))
    what = "a text and its class"
    if model.info.pairs:
        what += ", or two texts and the class"
    found: list[LabelledRow] = []
    for place, (line, columns) in enumerate(rows):
        if not 2 <= len(columns) <= (3 if model.info.pairs else 2):
            raise ExplorerError(misshapen(source, line, columns, what, by_commas))
        if len(columns) != len(rows[0][1]):
            first = f"line {rows[0][0]:,} has {len(rows[0][1])}"
            raise ExplorerError(f"{misshapen(source, line, columns, what, by_commas)} But {first}.")
        label = _number_of(columns[-1], numbers)
        if label is None and place == 0 and columns[-1].lower() in _HEADERS:
            continue
        if label is None:
            raise ExplorerError(f"{source.name}, line {line:,}: {_unknown(columns, numbers, head, model.info.name)}")
        found.append(LabelledRow(tuple(columns[:-1]), label, line))
    _check_enough(found, source.name, head)
    return Labelled(tuple(found), source.name)


def _numbers(head: ClassHead) -> Mapping[str, int]:
    """The number of each class by what a file may call it: its name as it is or in small letters, or its number.

    A name that two classes have is left out. Where names are numbers themselves they alone count: a model of one to
    five stars calls its class 0 “1”.
    """
    found: dict[str, int] = {}
    if not any(name.strip().lstrip("+-").isdecimal() for name in head.labels):
        found = {str(number): number for number in range(len(head.labels))}
    for spell in (str.casefold, str):
        spelt = [spell(name.strip()) for name in head.labels]
        found |= {name: number for number, name in enumerate(spelt) if spelt.count(name) == 1}
    return found


def _number_of(label: str, numbers: Mapping[str, int]) -> int | None:
    return numbers.get(label, numbers.get(label.casefold()))


def _unknown(columns: Sequence[str], numbers: Mapping[str, int], head: ClassHead, name: str) -> str:
    label = columns[-1]
    if _number_of(columns[0], numbers) is not None or columns[0].lower() in _HEADERS:
        return f"the class comes last in each row, and here “{quoted(columns[0])}” comes first. Swap the columns."
    classes = [f"“{quoted(label)}” ({number})" for number, label in enumerate(head.labels[:_MOST_NAMED])]
    more = len(head.labels) - len(classes)
    listed = f"{', '.join(classes[:-1])} and {classes[-1]}" if not more else f"{', '.join(classes)} and {more:,} more"
    return f"“{quoted(label)}” is no class of {name}. Its classes are {listed}."


def _check_enough(rows: Sequence[LabelledRow], name: str, head: ClassHead) -> None:
    texts = len({row.texts for row in rows})
    if texts < LEAST_TEXTS:
        raise ExplorerError(
            f"{name} has {texts} different text{'s' if texts != 1 else ''}, too few to learn from some and hold others "
            f"out: give it at least {LEAST_TEXTS}."
        )
    if len({row.label for row in rows}) < 2:
        only = quoted(head.labels[rows[0].label])
        raise ExplorerError(
            f"All rows of {name} are of the class “{only}”: nothing tells it apart. Add rows of others."
        )


# Which tokens a masked model has to fill in, as Devlin et al. 2019, section 3.1, choose them.


CHOSEN = 0.15  # of a row's tokens have to be said
MASKED, OTHER = 0.8, 0.1  # of the chosen ones become the mask, or a random token; the others stay as they are


@dataclass(frozen=True, slots=True)
class Masking:
    mask: int
    ordinary: Sequence[int]  # ids that are no special tokens

    def masked(self, ids: Sequence[int], places: Sequence[int], rng: random.Random) -> tuple[list[int], list[int]]:
        """What is read of a row, and what is to be said there: IGNORE at all but the chosen of `places`."""
        read, labels = list(ids), [IGNORE] * len(ids)
        for place in rng.sample(places, max(1, round(CHOSEN * len(places)))):
            labels[place] = ids[place]
            drawn = rng.random()
            if drawn < MASKED:
                read[place] = self.mask
            elif drawn < MASKED + OTHER:
                read[place] = rng.choice(self.ordinary)
        return read, labels


def masking_of(model: Model) -> Masking:
    """As the tokenizer of a masked model has it."""
    special = set(model.tokenizer.all_special_ids)
    ordinary = [i for i in range(min(model.info.vocabulary, len(model.tokenizer))) if i not in special]
    return Masking(int(model.tokenizer.mask_token_id), ordinary)


WINDOW = 128  # tokens of a text that are read together, at most
_LEAST_WINDOW = 8
_HELD = 10  # one row in so many is held out
_LEAST_TOKENS = 4 * _LEAST_WINDOW
_AT_ONCE = 256  # rows that a tokenizer is given together


@dataclass(frozen=True, slots=True)
class Example:
    """One row as ids. Of an encoder-decoder model `read` is the encoder's; of a decoder it is all but the last."""

    read: tuple[int, ...]
    labels: tuple[int, ...]  # IGNORE where nothing is to be said
    written: tuple[int, ...] = ()  # what an encoder-decoder model's decoder reads
    segments: tuple[int, ...] = ()  # of two texts, where the model tells them apart


@dataclass(frozen=True, slots=True)
class Windows(Sequence[Example]):
    """Rows of one text, each made when it is asked for: a window at nearly every token would take a hundred texts."""

    make: Callable[[tuple[int, ...]], Example]
    ids: tuple[int, ...]
    width: int
    starts: Sequence[int]

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Windows: ...
    def __getitem__(self, index: int | slice) -> Example | Windows:
        if isinstance(index, slice):
            return replace(self, starts=self.starts[index])
        start = self.starts[index]
        return self.make(self.ids[start : start + self.width])


@dataclass(frozen=True, slots=True)
class TuningRows:
    learned: Sequence[Example]
    held: Sequence[Example]
    pad: int
    seed: int
    masking: Masking | None = None  # of a masked model: its examples say which of their tokens may be chosen
    pads_left: bool = False

    def batch(self, step: int, size: int) -> Batch:
        """What is learned from in step `step`, counted from 0."""
        rng = random.Random(f"{self.seed} {step}")
        return self._padded([self._asked(row, rng) for row in rng.choices(self.learned, k=size)])

    def encoded(self, rows: Sequence[Example]) -> Batch:
        """Rows as they are always asked: the same tokens of a row are masked each time."""
        return self._padded([self._asked(row, random.Random(f"{self.seed} {row.read}")) for row in rows])

    def _asked(self, row: Example, rng: random.Random) -> Example:
        if self.masking is None:
            return row
        places = [i for i, label in enumerate(row.labels) if label != IGNORE]
        read, labels = self.masking.masked(row.read, places, rng)
        return Example(tuple(read), tuple(labels))

    def _padded(self, rows: Sequence[Example]) -> Batch:
        read, mask = _padded([row.read for row in rows], self.pad, self.pads_left)
        inputs = {"input_ids": read, "attention_mask": mask}
        labels, _ = _padded([row.labels for row in rows], IGNORE)
        if rows[0].written:
            inputs["decoder_input_ids"], _ = _padded([row.written for row in rows], self.pad)
        if rows[0].segments:
            inputs["token_type_ids"], _ = _padded([row.segments for row in rows], 0, self.pads_left)
        return Batch(inputs, labels)


def data_for(model: Model, source: Source) -> str | Pairs | Labelled:
    """What `model` makes of what was given: a classifier reads labels, others a text or pairs.

    Raises:
        ExplorerError: it is not of that form; the sentence has the line.
    """
    return data_in(source) if model.info.class_head is None else labelled_in(source, model)


def rows_of(
    model: Model,
    data: str | Pairs | Labelled,
    seed: int,
    window: int = WINDOW,
    should_stop: Callable[[], bool] = never,
) -> TuningRows:
    """The rows that `model` learns from.

    Raises:
        ExplorerError: too little of it, or a row that the model does not take.
        Cancelled: `should_stop()` was true.
    """
    pad = model.config.pad_token_id if isinstance(getattr(model.config, "pad_token_id", None), int) else 0
    if isinstance(data, Labelled):
        # XLNet tells the class at the last token, whatever that is: Yang et al. 2019
        pads_left = getattr(model.config, "summary_type", "") == "last"
        return TuningRows(*_of_labelled(model, data, should_stop), pad, seed, pads_left=pads_left)
    if isinstance(data, str):
        if model.seq2seq:
            raise ExplorerError(
                f"{model.info.name} reads one text and writes another: give it a file of two columns, an input and an "
                "output in each line, with a tab between them."
            )
        masking = masking_of(model) if model.info.family == "masked" else None
        return TuningRows(*_of_text(model, data, window), pad, seed, masking)
    if model.info.family == "masked":
        raise ExplorerError(f"{model.info.name} fills in masks of a text, and writes no output: give it a text.")
    return TuningRows(*_of_pairs(model, data, should_stop), pad, seed)


def _of_text(model: Model, text: str, window: int) -> tuple[Windows, Windows]:
    letters = set(text.strip())
    if len(letters) < 2:
        raise ExplorerError(
            f"The text holds nothing but “{quoted(next(iter(letters), ''))}”: there is nothing to learn from it."
        )
    (lead, trail), ids = _around(model), _ids(model, text)
    _check_known(model, ids, "The text")
    make = partial(_filled_in, lead, trail)
    if model.info.family != "masked":
        make, trail = partial(_next, lead), ()
    most = min(window, (model.info.context or window) - len(lead) - len(trail))
    width = min(most, max(_LEAST_WINDOW, len(ids) // (2 * _HELD)))
    tail = len(ids) // _HELD
    held = [*range(len(ids) - tail, len(ids) - width + 1, width)]
    kept = {tuple(ids[i : i + width]) for i in held}
    learned = [i for i in range(len(ids) - tail - width + 1) if tuple(ids[i : i + width]) not in kept]
    if len(ids) < _LEAST_TOKENS or not held or not learned:
        raise ExplorerError(
            f"The text has {len(ids):,} tokens, too few to learn from some and hold others out: give it at least "
            f"{_HELD * _LEAST_WINDOW} that do not repeat."
        )
    windows = Windows(make, tuple(ids), width, learned)
    return windows, replace(windows, starts=held)


def _next(lead: Sequence[int], row: Sequence[int]) -> Example:
    """Each token of `row` is said after those before it; what leads is given."""
    return _said_from(max(len(lead), 1), (*lead, *row))  # the first token of all stands after nothing


def _filled_in(lead: Sequence[int], trail: Sequence[int], row: Sequence[int]) -> Example:
    """Any token of `row` may have to be filled in; those around it are given."""
    ids = (*lead, *row, *trail)
    return Example(ids, tuple(id_ if len(lead) <= i < len(lead) + len(row) else IGNORE for i, id_ in enumerate(ids)))


def _said_from(first: int, ids: tuple[int, ...]) -> Example:
    """A decoder's row of which all is said from position `first` on."""
    return Example(ids[:-1], tuple(IGNORE if i < first else ids[i] for i in range(1, len(ids))))


def _of_labelled(model: Model, data: Labelled, should_stop: Callable[[], bool]) -> tuple[list[Example], list[Example]]:
    texts = dict.fromkeys(row.texts for row in data.rows)
    by_hash = sorted(texts, key=lambda row: hashlib.sha256("\t".join(row).encode("utf-8", "replace")).digest())
    apart = set(by_hash[: max(1, len(by_hash) // _HELD)])
    learned: list[Example] = []
    held: list[Example] = []
    for start in range(0, len(data.rows), _AT_ONCE):
        if should_stop():
            raise Cancelled
        rows = data.rows[start : start + _AT_ONCE]
        for row, example in zip(rows, _classified(model, rows, data.name), strict=True):
            (held if row.texts in apart else learned).append(example)
    return learned, held


def _classified(model: Model, rows: Sequence[LabelledRow], name: str) -> list[Example]:
    columns = [list(column) for column in zip(*(row.texts for row in rows), strict=True)]
    lead = _ids(model, model.info.prefix) if model.info.prefix and len(columns) == 1 else []
    called = model.tokenizer(*columns, return_token_type_ids=True, verbose=False)
    found = []
    for row, ids, segments in zip(rows, called["input_ids"], called["token_type_ids"], strict=True):
        ids, segments = [*lead, *ids], [*[0] * len(lead), *segments]
        _check_known(model, ids, f"{name}, line {row.line:,},")
        most = model.info.context
        if most is not None and len(ids) > most:
            raise ExplorerError(
                f"{name}, line {row.line:,}, has {len(ids):,} tokens; {model.info.name} takes {most:,}. Shorten it."
            )
        told_apart = len(columns) == 2 and model.takes_segments(segments)
        found.append(Example(tuple(ids), (row.label,), segments=tuple(segments) if told_apart else ()))
    return found


def _of_pairs(model: Model, pairs: Pairs, should_stop: Callable[[], bool]) -> tuple[list[Example], list[Example]]:
    different = sorted(dict.fromkeys(pairs), key=lambda row: hashlib.sha256("\t".join(row).encode()).digest())
    if len(different) < 2:
        raise ExplorerError(
            f"The file has {len(different)} different row{'s' if len(different) != 1 else ''}: at least 2 are needed, "
            "of which one is held out."
        )
    # an input that stands there twice with other outputs is held out with both
    inputs = list(dict.fromkeys(read for read, _ in different))
    apart = set(inputs[: max(1, len(inputs) // _HELD)])
    held = [row for row in different if row[0] in apart]
    learned = [row for row in pairs if row[0] not in apart]
    if not learned:
        raise ExplorerError(
            "All rows have one input: at least two different ones are needed, of which one is held out."
        )
    if model.seq2seq:
        make = partial(_translated, model)
    else:
        make = partial(_continued, model, _around(model)[0], _knows_blanks(model))

    def made(rows: Iterable[tuple[str, str]]) -> Iterator[Example]:
        for row in rows:
            if should_stop():
                raise Cancelled
            yield make(*row)

    return [*made(learned)], [*made(held)]


def _translated(model: Model, read: str, write: str) -> Example:
    source = tuple(token.id for token in model.tokenize(read))
    said = list(model.target_ids([write])[0])
    ends = end_ids(model)
    if not (said and said[-1] in ends) and ends:
        said.append(min(ends))
    _check_known(model, [*source, *said], f"“{quoted(read)}”")
    _check_length(model, max(len(source), len(said)), read)
    return Example(source, tuple(said), (model.start_id, *said[:-1]))


def _continued(model: Model, lead: Sequence[int], knows_blanks: bool, read: str, write: str) -> Example:
    before = _ids(model, read)
    after = _ids(model, f"{read} {write}")[len(before) :] if knows_blanks else _ids(model, write)
    ends = end_ids(model)
    said = [*after, min(ends)] if ends else after
    ids = (*lead, *before, *said)
    _check_known(model, ids, f"“{quoted(read)}”")
    _check_length(model, len(ids), read)
    return _said_from(len(lead) + len(before), ids)


def _ids(model: Model, text: str) -> list[int]:
    return [int(id_) for id_ in model.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]]


def _around(model: Model) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before and after each text: the card's prefix, or the tokenizer's own special tokens."""
    if model.info.prefix:
        return tuple(_ids(model, model.info.prefix)), ()
    found = model.tokenizer("a", return_special_tokens_mask=True)
    ids = [int(id_) for id_ in found["input_ids"]]
    own = [i for i, special in enumerate(found["special_tokens_mask"]) if not special]
    return (tuple(ids[: own[0]]), tuple(ids[own[-1] + 1 :])) if own else (tuple(ids), ())


def _knows_blanks(model: Model) -> bool:
    """Whether words are parted by blanks in its texts; a tokenizer of single letters may know none."""
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    return unknown is None or unknown not in _ids(model, "a a")


def _check_known(model: Model, ids: Sequence[int], what: str) -> None:
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    strange = sum(id_ == unknown for id_ in ids)
    if unknown is not None and ids and strange > len(ids) // 2 and unknown not in end_ids(model):
        raise ExplorerError(
            f"{what} is in signs that {model.info.name} does not know: {strange:,} of {len(ids):,} tokens are unknown "
            "to its tokenizer. Give a text like those that it was made for."
        )


def _check_length(model: Model, length: int, read: str) -> None:
    most = model.info.context
    if most is not None and length > most:
        raise ExplorerError(
            f"The row that begins “{quoted(read)}” has {length:,} tokens; {model.info.name} takes {most:,}. Shorten it."
        )


def _padded(rows: Sequence[Sequence[int]], fill: int, left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows filled up at their ends, or before them, and the mask that hides this."""
    longest = max(map(len, rows))
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(longest) < lengths[:, None]).long()
    fillers = ([fill] * (longest - len(row)) for row in rows)
    padded = [[*filler, *row] if left else [*row, *filler] for row, filler in zip(rows, fillers, strict=True)]
    return torch.tensor(padded), mask.flip(1) if left else mask
