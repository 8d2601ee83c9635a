"""What the words in the window mean: the entries of `resources/glossary.toml`, and which of them a text contains."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated

import msgspec

from attention_explorer import json_files
from attention_explorer.paths import resource
from attention_models.files.toml_files import decode_toml

_BYTES = 256 * 1024
"""The file is not larger."""

_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]

log = logging.getLogger(__name__)


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One term. `also` are words that show the same entry, `panel` is the one that `where` sends to, "" for none."""

    term: _Word
    also: tuple[_Word, ...] = ()
    what: _Text
    formula: Annotated[str, msgspec.Meta(max_length=120)] = ""
    where: _Text
    panel: str = ""
    source: Annotated[str, msgspec.Meta(max_length=120)] = ""

    @property
    def words(self) -> tuple[str, ...]:
        return self.term, *self.also


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entry: Annotated[tuple[Entry, ...], msgspec.Meta(min_length=1, max_length=1000)]


class Glossary:
    """Entries by the words that show them.

    Raises:
        ValueError: two entries have the same word.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(sorted(entries, key=lambda entry: entry.term.casefold()))
        self._by_word: dict[str, Entry] = {}
        for entry in self.entries:
            for word in entry.words:
                if _folded(word) in self._by_word:
                    raise ValueError(f"two entries of the glossary have the word “{word}”")
                self._by_word[_folded(word)] = entry
        longest_first = sorted(self._by_word, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_alone, longest_first)) or r"(?!)")

    def of(self, word: str) -> Entry | None:
        """The entry that a word or a phrase shows; None for none."""
        return self._by_word.get(_folded(word))

    def found_in(self, text: str) -> tuple[Entry, ...]:
        """The entries whose words stand in a text, in the order of their places, each once.

        Of words that lie over each other the longest counts: “residual stream” is not also “stream”.
        """
        found = (self._by_word[_folded(match[0])] for match in self._pattern.finditer(text))
        return tuple(dict.fromkeys(found))

    def without_terms(self, text: str) -> str:
        """What is left of a text where every word that has an entry is taken out."""
        return self._pattern.sub(" ", text)

    def search(self, typed: str) -> tuple[Entry, ...]:
        """The entries that what was typed leads to: those whose name begins with it first, then other words
        that do, then those that hold it.
        """
        wanted = typed.strip().casefold()
        if not wanted:
            return self.entries
        named = [e for e in self.entries if e.term.casefold().startswith(wanted)]
        begins = [e for e in self.entries if any(word.casefold().startswith(wanted) for word in e.words)]
        holds = [e for e in self.entries if any(wanted in text.casefold() for text in (*e.words, e.what))]
        return tuple(dict.fromkeys((*named, *begins, *holds)))


def decode(content: bytes) -> Glossary:
    """The glossary that a file spells in TOML.

    Raises:
        ValueError: it spells none; what is wrong and where.
    """
    return Glossary(msgspec.convert(decode_toml(content.decode()), type=_File).entry)


@cache
def glossary() -> Glossary:
    """The program's own; without entries where it cannot be read, which is logged."""
    try:
        return decode(json_files.read(resource("glossary.toml"), _BYTES))
    except (OSError, ValueError):
        log.exception("The glossary cannot be read.")
        return Glossary(())


def _folded(word: str) -> str:
    """Letters of either size are one word, but q and Q, d and D: single letters are symbols."""
    return word if len(word) <= 2 else word.casefold()


def _alone(word: str) -> str:
    """A pattern of a word that is no part of another."""
    begins = r"(?<![\w’'-])" if re.match(r"\w", word) else ""
    ends = r"(?=[’']s\b|(?![\w’']))" if re.search(r"\w\Z", word) else ""
    return begins + (re.escape(word) if len(word) <= 2 else f"(?i:{re.escape(word)})") + ends
