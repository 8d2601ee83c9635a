"""Tasks whose data is made here, from a seed: what to read, and what is to be written after it.

A row is held out or not by what stands in it (`Task.is_held_out`), so that however many are drawn, and in whatever
order, none is ever in both parts.
"""

from __future__ import annotations

import random
import string
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from attention_models.textbook.sentences import FELT_WORDS, TRANSLATION_WORDS, felt, translated

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FORMS = (
    "{d} {month} {y}",
    "{d} {mon} {y}",
    "{month} {d}, {y}",
    "{mon} {d} {y}",
    "{weekday}, {d} {month} {y}",
    "{weekday} {month} {th} {y}",
    "the {th} of {month}, {y}",
    "{d:02d}.{m:02d}.{y}",
    "{d}/{m}/{y}",
    "{d}-{mon}-{yy:02d}",
    "{mon} {th}, {y}",
)
_FIRST, _LAST = date(1950, 1, 1), date(2049, 12, 31)


def date_pair(rng: random.Random) -> tuple[str, str]:
    """("Thursday, 5 March 1998", "1998-03-05")."""
    day = _FIRST + timedelta(days=rng.randrange((_LAST - _FIRST).days + 1))
    month = _MONTHS[day.month - 1]
    text = rng.choice(_FORMS).format(
        d=day.day,
        m=day.month,
        y=day.year,
        yy=day.year % 100,
        month=month,
        mon=month[:3],
        weekday=_WEEKDAYS[day.weekday()],
        th=_ordinal(day.day),
    )
    return (text.lower() if rng.random() < 0.3 else text), day.isoformat()


def date_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """`count` different pairs; the same for the same seed."""
    rng = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        text, day = date_pair(rng)
        pairs.setdefault(text, day)
    return list(pairs.items())


def _ordinal(day: int) -> str:
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


# --------------------------------------------------------------------------- tasks


@dataclass(frozen=True, slots=True)
class Row:
    """One example: what is read, and what is to be written."""

    prompt: str
    answer: str


HELD_OUT_SHARE = 16
"""One row in so many is held out."""

SEPARATOR = ">"
"""What stands between prompt and answer where one model reads both as one text."""

_LETTERS = string.ascii_lowercase
_TRIES = 10_000


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of rows. `difficulty` is how long they are, or what `counts` says."""

    name: str
    title: str  # what a row asks for, as a sentence goes on: "write the letters backwards"
    make: Callable[[random.Random, int], Row]
    difficulty: int  # as it is where nothing else is asked for
    least: int = 1
    most: int = 200
    counts: str = "letters"  # what the difficulty is a number of
    alphabet: Sequence[str] = _LETTERS  # every token of a row: characters, or words
    separator: str = SEPARATOR  # "" where the prompt ends of itself
    longest: Callable[[int], int] = lambda n: n  # tokens of a prompt or an answer, at most
    of_words: bool = False  # whether its tokens are words, with spaces between them

    def check(self, difficulty: int) -> None:
        """Raises ValueError for a difficulty that there are no rows of."""
        if not self.least <= difficulty <= self.most:
            raise ValueError(
                f"{self.name} takes {self.least} to {self.most} {self.counts}, and {difficulty} is not among them"
            )

    def tokens(self, text: str) -> list[str]:
        """The tokens of a prompt or an answer."""
        return text.split() if self.of_words else list(text)

    def asked(self, row: Row) -> str:
        """The prompt with the separator, as one model reads it that goes on with the answer."""
        return f"{row.prompt} {self.separator}" if self.of_words and self.separator else row.prompt + self.separator

    def most_tokens(self, difficulty: int) -> int:
        """The most that prompt, separator and answer have together."""
        return 2 * self.longest(difficulty) + len(self.separator)

    @staticmethod
    def is_held_out(row: Row) -> bool:
        """Told by the row alone."""
        return zlib.crc32(f"{row.prompt}\n{row.answer}".encode()) % HELD_OUT_SHARE == 0

    def rows(self, count: int, rng: random.Random, difficulty: int, held_out: bool = False) -> list[Row]:
        """`count` rows of one part; the same for the same state of `rng`. A row may come more than once."""
        found: list[Row] = []
        for _ in range(_TRIES * max(count, 1)):
            if len(found) == count:
                return found
            row = self.make(rng, difficulty)
            if self.is_held_out(row) == held_out:
                found.append(row)
        raise ValueError(f"{self.name} with {difficulty} {self.counts} has too few rows to hold any out: ask for more")


def _letters(rng: random.Random, n: int) -> str:
    return "".join(rng.choices(_LETTERS, k=n))


def _copy(rng: random.Random, n: int) -> Row:
    text = _letters(rng, n)
    return Row(text, text)


def _reverse(rng: random.Random, n: int) -> Row:
    text = _letters(rng, n)
    return Row(text, text[::-1])


def _sort(rng: random.Random, n: int) -> Row:
    text = _letters(rng, n)
    return Row(text, "".join(sorted(text)))


SHIFTED = 12
"""Letters of a row of the task "shift"."""


def _shift(rng: random.Random, n: int) -> Row:
    """("abcdefghijkl", "defghijklabc") for n = 3."""
    text = _letters(rng, SHIFTED)
    return Row(text, text[n:] + text[:n])


NO_TOKEN = "_"


def _previous(rng: random.Random, n: int) -> Row:
    text = _letters(rng, n)
    return Row(text, NO_TOKEN + text[:-1])


def _induction(rng: random.Random, n: int) -> Row:
    """A sequence of different letters, and the first of it again: how does it go on? Olsson et al. 2022."""
    text = "".join(rng.sample(_LETTERS, n))
    return Row(text + text[0], text[1:])


def _recall(rng: random.Random, n: int) -> Row:
    """As `_induction`, of n letters or fewer: where the sequence began is not told by the place alone."""
    return _induction(rng, rng.randint(max(3, n // 2), n))


_PAIRS = ("()", "[]", "{}")


def _brackets(rng: random.Random, n: int) -> Row:
    """n pairs: balanced, or with one bracket turned into another; half of the rows each."""
    text, closing, opened = "", "", 0
    while len(text) < 2 * n:
        if opened < n and (not closing or rng.random() < 0.5):
            pair = rng.choice(_PAIRS)
            text, closing, opened = text + pair[0], pair[1] + closing, opened + 1
        else:
            text, closing = text + closing[0], closing[1:]
    if rng.random() < 0.5:
        return Row(text, "yes")
    place = rng.randrange(len(text))
    other = rng.choice([bracket for pair in _PAIRS for bracket in pair if bracket != text[place]])
    return Row(text[:place] + other + text[place + 1 :], "no")


def balanced(text: str) -> bool:
    """Whether each bracket of `text` is closed by its own kind, the last opened first."""
    closing = {pair[0]: pair[1] for pair in _PAIRS}
    waiting: list[str] = []
    for bracket in text:
        if bracket in closing:
            waiting.append(closing[bracket])
        elif not waiting or waiting.pop() != bracket:
            return False
    return not waiting


def _modular(rng: random.Random, p: int) -> Row:
    a, b = rng.randrange(p), rng.randrange(p)
    return Row(f"{a}+{b}=", str((a + b) % p))


def _addition(rng: random.Random, n: int) -> Row:
    a, b = rng.randrange(10**n), rng.randrange(10**n)
    return Row(f"{a}+{b}=", str(a + b))


def _reversed_addition(rng: random.Random, n: int) -> Row:
    """All numbers filled up with zeros, the sum from its last digit on, as one carries: Lee et al. 2023."""
    a, b = rng.randrange(10**n), rng.randrange(10**n)
    return Row(f"{a:0{n}}+{b:0{n}}=", f"{a + b:0{n + 1}}"[::-1])


def _spanish(rng: random.Random, n: int) -> Row:
    return Row(*translated(rng, n))


def _feeling(rng: random.Random, n: int) -> Row:
    return Row(*felt(rng, n))


def _dates(rng: random.Random, _: int) -> Row:
    return Row(*date_pair(rng))


_OF_SUMS = string.digits + "+="

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("copy", "write the letters again", _copy, 10, least=3),
        Task("reverse", "write the letters backwards", _reverse, 10, least=3),
        Task("sort", "write the letters in the order of the alphabet", _sort, 10, least=3),
        Task(
            *("shift", "begin so many letters later, and end with those left out", _shift, 3),
            most=SHIFTED - 1,
            counts="places",
            longest=lambda n: SHIFTED,
        ),
        Task(
            *("previous", "write under each letter the one before it", _previous, 10),
            least=3,
            alphabet=_LETTERS + NO_TOKEN,
        ),
        Task(
            *("induction", "go on as the sequence went on before", _induction, 10),
            least=3,
            most=26,
            separator="",
            longest=lambda n: n + 1,
        ),
        Task(
            *("recall", "go on as the sequence went on before, wherever that was", _recall, 10),
            least=4,
            most=26,
            separator="",
            longest=lambda n: n + 1,
        ),
        Task(
            *("brackets", "say whether every bracket is closed by its own kind", _brackets, 6),
            least=2,
            most=100,
            counts="pairs",
            alphabet="()[]{}yesno",
            longest=lambda n: max(2 * n, 3),
        ),
        Task(
            *("modular", "add, and take the remainder", _modular, 97),
            least=5,
            most=9999,
            counts="as the number to divide by",
            alphabet=_OF_SUMS,
            separator="",
            longest=lambda p: 2 * len(str(p - 1)) + 2,
        ),
        Task(
            *("addition", "add", _addition, 3),
            most=50,
            counts="digits",
            alphabet=_OF_SUMS,
            separator="",
            longest=lambda n: 2 * n + 2,
        ),
        Task(
            *("addition-reversed", "add, and write the sum from its last digit on", _reversed_addition, 3),
            most=50,
            counts="digits",
            alphabet=_OF_SUMS,
            separator="",
            longest=lambda n: 2 * n + 2,
        ),
        Task(
            *("spanish", "say it in Spanish", _spanish, 3),
            most=3,
            counts="kinds of words",
            alphabet=TRANSLATION_WORDS,
            longest=lambda n: 8,
            of_words=True,
        ),
        Task(
            *("feeling", "say whether the sentence is positive or negative", _feeling, 2),
            most=12,
            counts="clauses",
            alphabet=FELT_WORDS,
            longest=lambda n: 7 * n,
            of_words=True,
        ),
        Task(
            *("dates", "write the date as year-month-day", _dates, 1),
            most=1,
            counts="date",
            alphabet=string.ascii_letters + string.digits + " ,./-",
            longest=lambda _: 32,
        ),
    )
}
"""By name, in the order in which they are offered."""


# --------------------------------------------------------------------------- a text of one's own


@dataclass(frozen=True, slots=True)
class TextParts:
    """A pasted text, cut into windows of `window` characters: what is learned from, and what is held out.

    A window that stands in the held-out part too is left out of the other.
    """

    training: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def alphabet(self) -> str:
        return "".join(sorted({character for part in (*self.training, *self.held_out) for character in part}))


_LEAST_WINDOWS = 20


def text_parts(text: str, window: int) -> TextParts:
    """The last tenth of the text is held out; windows of the rest begin at every character.

    Raises:
        ValueError: too short to be learned from, or of one character over and over.
    """
    if len(set(text)) < 2:
        what = "is empty" if not text else f"holds nothing but “{text[0]}”"
        raise ValueError(f"the text {what}: there is nothing to learn from it. Give it a longer one")
    held, rest = text[-(len(text) // 10) :], text[: -(len(text) // 10) or None]
    held_windows = [held[i : i + window] for i in range(0, len(held) - window + 1, window)]
    kept = set(held_windows)
    training = [t for t in (rest[i : i + window] for i in range(len(rest) - window + 1)) if t not in kept]
    if len(training) < _LEAST_WINDOWS or not held_windows:
        raise ValueError(
            f"the text has {len(text):,} characters, too few for windows of {window}: give it a longer one, at least "
            f"{10 * window + _LEAST_WINDOWS:,} characters that do not repeat"
        )
    return TextParts(tuple(training), tuple(held_windows))
