"""Whether a text is clearly in another language than a checkpoint reads, by script, frequent words and letters.

It prefers silence to a false alarm: names, single words, numbers and loan words count for nothing.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from attention_explorer.paths import resource
from attention_models.protocol.values import CheckpointInfo

NAMES = {
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "de": "German",
    "pt": "Portuguese",
    "it": "Italian",
    "nl": "Dutch",
}
"""Languages that can be told apart, by their code in a checkpoint's card."""

MOST_CHARACTERS = 1000
"""Characters of a text that are read: enough to tell, in less than half a millisecond."""

_SCRIPTS: tuple[tuple[str, str, int], ...] = (
    # what it looks like, its letters, how many of them make a text
    ("looks like Japanese", "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d", 2),
    ("looks like Korean", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3", 2),
    ("looks like Chinese", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af", 2),
    ("is written in Cyrillic letters", "\u0400-\u052f", 3),
    ("is written in Greek letters", "\u0370-\u03ff\u1f00-\u1fff", 4),
    ("is written in Arabic letters", "\u0620-\u064a\u066e-\u06d3\u0750-\u077f", 3),
    ("is written in Hebrew letters", "\u05d0-\u05ea", 3),
    ("is written in Devanagari letters", "\u0904-\u0939\u0958-\u0961", 3),
    ("is written in Thai letters", "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46", 3),
    ("is written in Armenian letters", "\u0531-\u0587", 3),
    ("is written in Georgian letters", "\u10a0-\u10ff", 3),
)

_NO_LANGUAGE = re.compile(r"\S+@\S+|\S*://\S+|www\.\S+|\[[A-Z]+\]")  # addresses, [MASK]
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SENTENCE_ENDS = re.compile("[.!?:…\n¿¡–—]")
_PARTICLES = re.compile("de|del|della|la|las|los|el|da|do|dos|di|du|von|van|y|e|(?:von|van) de[nr]")  # within names
_MARKS = {
    "es": re.compile("ñ|ía|ó$|ciones$|ción$"),
    "pt": re.compile("ã|õ"),
    "de": re.compile("ß|ä|ö|ü|(?:keit|heit|schaft|ungen|lich)$"),
    "fr": re.compile("œ|ç|^(?:l|d|j|c|n|m|t|s|qu|jusqu|lorsqu|puisqu)'"),
}
"""Letters and endings of lower-case words that no other of these languages has, or that English only borrows."""

_LEAST = 2  # different words that speak for the other language
_TIMES = 2  # more than as many times the words that speak for one's own
_SHARE = 0.3  # of all words


def foreign_remark(text: str, info: CheckpointInfo) -> str:
    """A remark where `text` is clearly in a language that the checkpoint does not read; "" otherwise."""
    looks = looks_foreign(text, info.reads)
    return f"This {looks}; {info.name} reads {NAMES[info.reads]}, so expect nonsense." if looks else ""


def looks_foreign(text: str, reads: str) -> str:
    """What `text` clearly is if not in the language `reads` (a code of `NAMES`): "looks like Spanish".

    "" where it is not clear, or where `reads` is no known language.
    """
    return _looks_foreign(text[:MOST_CHARACTERS], reads) if reads in NAMES else ""


@lru_cache(maxsize=4)  # a panel asks at every change of state
def _looks_foreign(text: str, reads: str) -> str:
    text = _NO_LANGUAGE.sub(" ", text)
    letters = sum(char.isalpha() for char in text)
    for looks, pattern, least in _scripts():
        found = len(pattern.findall(text))
        if found >= least and 2 * found > letters:
            return looks
    words = _words(text)
    evidence = {code: _evidence(text, words, code, reads) for code in NAMES if code != reads}
    most = max(evidence.values())
    likeliest = [code for code, found in evidence.items() if found == most]
    own = len(words & _frequent(reads) - _frequent(likeliest[0]))
    if most < _LEAST or most <= _TIMES * own or most < _SHARE * len(words) or len(likeliest) > 2:
        return ""
    return f"looks like {' or '.join(NAMES[code] for code in likeliest)}"


@cache  # and not at import: the window need not wait for it
def _scripts() -> tuple[tuple[str, re.Pattern[str], int], ...]:
    return tuple((looks, re.compile(f"[{letters}]"), least) for looks, letters, least in _SCRIPTS)


def _evidence(text: str, words: set[str], code: str, reads: str) -> int:
    """How many different words speak for `code` and not for `reads`."""
    marks = _MARKS.get(code)
    marked = {word for word in words if marks is not None and marks.search(word)}
    upside_down = code == "es" and ("¿" in text or "¡" in text)  # no other language begins a sentence so
    return len(((words & _frequent(code)) | marked) - _frequent(reads)) + upside_down


def _words(text: str) -> set[str]:
    """The different words in lower case, names left out: what is capitalised within a sentence, and its particles."""
    found: list[tuple[str, bool]] = []  # word, whether it may be a name
    shouts = sum(map(str.isupper, text)) > sum(map(str.islower, text))
    end = 0
    for match in _WORD.finditer(text):
        word, between = match.group().replace("’", "'"), text[end : match.start()]
        begins = end == 0 or _SENTENCE_ENDS.search(between) is not None
        end = match.end()
        named = word[0].isupper() and not begins and not shouts and word.partition("'")[0] != "I"
        found.append((word.lower(), named))
    words, before_name = set[str](), False
    for i, (word, named) in reversed(list(enumerate(found))):
        after = f"{found[i - 1][0]} {word}" if i and word in ("der", "den") else word
        before_name = named or (before_name and _PARTICLES.fullmatch(after) is not None)
        if not before_name:
            words.add(word)
    return words


@cache
def _frequent(code: str) -> frozenset[str]:
    return frozenset(resource(f"languages/{code}.txt").read_text(encoding="utf-8").split())
