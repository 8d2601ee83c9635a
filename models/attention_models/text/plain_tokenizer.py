"""Tokenizers that a person has as Python objects, given the few methods that a `Model` asks for.

What is run is what the person's own call gives, `encode(text)`, with the special tokens that it adds, and no others.
"""

from __future__ import annotations

import inspect
import json
import unicodedata
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from attention_models.files.weight_files import summary
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.text.common_start import common_start

# Where the tokens of a tokenizer that tells no offsets stand in a text, found from what it decodes to.
# What a token decodes to may depend on its neighbours (a space before a word, the bytes of one character), so each
# token is what the text decoded so far grows by. Where tokens decode to more than the text (a start token's name) or to
# other characters (lower case, no accents), the two are aligned, and what has no counterpart stands for no text.


Span = tuple[int, int]
Decode = Callable[[Sequence[int]], str]

_WINDOW, _KEPT = 64, 16  # tokens decoded at once, and how many of them before those that are new
_APART = 48  # characters that may be skipped on either side before the two agree again
_AGREE = 3  # characters that make an agreement
_MOST_GAPS = 100  # beyond, what is decoded is another text


@dataclass(frozen=True, slots=True)
class Placed:
    """`spans` are (start, end) of each token; of one that stands for no text both are the place where it stands."""

    spans: tuple[Span, ...]
    no_text: tuple[bool, ...]
    whole: bool  # every character that is no white space is covered by some token


def place(ids: Sequence[int], decode: Decode, text: str, special: Container[int] = ()) -> Placed:
    """Which characters of `text` each token covers; a character of several tokens is covered by each.

    `special` are ids that are known to stand for no text, unless their name stands in it.
    """
    ranges, decoded = _growth(ids, decode)
    where = _aligned(decoded, text)
    found: list[Span | None] = []
    for start, end in ranges:
        written = [i for i in range(start, end) if not decoded[i].isspace()]
        places = [where[i] for i in range(start, end) if where[i] >= 0]
        # the space before an unknown word is not the word
        seen = any(where[i] >= 0 for i in written) or not written
        found.append((places[0], places[-1] + 1) if places and seen else None)
    return _with_gaps(found, [id_ in special for id_ in ids], text)


def place_bytes(pieces: Sequence[bytes], text: str) -> Placed | None:
    """As `place`, of tokens that are known to the byte; None where together they are not the text."""
    if b"".join(pieces) != text.encode():
        return None
    character = [i for i, c in enumerate(text) for _ in c.encode()]  # of each byte
    spans, at = list[Span](), 0
    for piece in pieces:
        covered = character[at : at + len(piece)]
        here = covered[0] if covered else (character[at] if at < len(character) else len(text))
        spans.append((here, covered[-1] + 1 if covered else here))
        at += len(piece)
    return Placed(tuple(spans), tuple(not piece for piece in pieces), True)


def _growth(ids: Sequence[int], decode: Decode) -> tuple[list[Span], str]:
    """The range of the decoded text that each token makes, and that text."""
    ranges, decoded = list[Span](), ""
    first, offset, before = 0, 0, ""  # the window's first token, where its text begins, and that text so far
    for n in range(len(ids)):
        if n - first >= _WINDOW:
            first = n - _KEPT
            before = _decoded(ids[first:n], decode, "")
            offset = len(decoded) - len(before)
        now = _decoded(ids[first : n + 1], decode, before)
        same = len(before) if now.startswith(before) else common_start(before, now)
        if same < len(before):  # a character whose last byte came, or a space that is taken back
            begun = offset + same
            end = offset + max(len(now), same)
            ranges = [(min(a, begun), min(max(b, begun + 1), end)) if b > begun else (a, b) for a, b in ranges]
        decoded = decoded[: offset + same] + now[same:]
        ranges.append((offset + same, offset + len(now)))
        before = now
    return ranges, decoded


def _decoded(ids: Sequence[int], decode: Decode, before: str) -> str:
    try:
        return decode(ids)
    except Exception:  # half of a character, for a strict one; the whole was decoded by the caller
        return before + "\ufffd"


def _aligned(decoded: str, text: str) -> list[int]:
    """Where each character of `decoded` stands in `text`, -1 for one that does not."""
    if decoded == text:
        return list(range(len(text)))
    where = [-1] * len(decoded)
    left, right = [_plain(c) for c in decoded], [_plain(c) for c in text]
    i = j = gaps = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            where[i] = j
            i, j = i + 1, j + 1
            continue
        gaps += 1
        skipped = _skip(left, right, i, j) if gaps <= _MOST_GAPS else None
        if skipped is None:
            break
        i, j = i + skipped[0], j + skipped[1]
    return where


def _skip(left: list[str], right: list[str], i: int, j: int) -> tuple[int, int] | None:
    """How much to leave out on both sides, as little as may be, until they agree; None where they do not."""
    for both in range(1, 2 * _APART):
        for of_left in range(max(0, both - _APART), min(both, _APART) + 1):
            a, b = i + of_left, j + both - of_left
            count = min(_AGREE, len(left) - a)
            if count > 0 and left[a : a + count] == right[b : b + count]:
                return of_left, both - of_left
    return None


def _plain(char: str) -> str:
    """A character without case and accent, which some tokenizers take away."""
    return (unicodedata.normalize("NFKD", char)[:1] or char).lower()[:1] or char


def _with_gaps(found: list[Span | None], special: list[bool], text: str) -> Placed:
    """A lone token between two that are placed stands for the word between them, as an unknown one does."""
    spans, no_text = list[Span](), list[bool]()
    end = 0
    for n, span in enumerate(found):
        if span is None:
            following = next((later[0] for later in found[n + 1 :] if later is not None), len(text))
            alone = (n == 0 or found[n - 1] is not None) and (n + 1 == len(found) or found[n + 1] is not None)
            gap = text[end:following] if following > end else ""
            if gap.strip() and alone and not special[n]:
                start = end + len(gap) - len(gap.lstrip())
                span = start, start + len(gap.strip())
        no_text.append(span is None)
        spans.append((end, end) if span is None else span)
        end = max(end, spans[-1][1])
    covered = {i for a, b in spans for i in range(a, b)}
    whole = all(i in covered or c.isspace() or unicodedata.combining(c) for i, c in enumerate(text))
    return Placed(tuple(spans), tuple(no_text), whole)


_PROBES = ("a", "the")  # what stands for nothing in these is a special token
_BOUNDS = ("bos", "eos", "pad", "cls", "sep")


@runtime_checkable
class EncodesAndDecodes(Protocol):
    """What is asked of a tokenizer of one's own (tiktoken and sentencepiece have it)."""

    def encode(self, text: str) -> Sequence[int]:
        """Ids of `text`."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`."""


def as_tokenizer(tokenizer: Any) -> Any:
    """`tokenizer` as a `Model` needs it.

    Args:
        tokenizer: one of transformers, one of the tokenizers library, an object with `encode` and `decode`, or a pair
            of such functions.

    Raises:
        CheckpointError: it is none of these.
    """
    if isinstance(tokenizer, PreTrainedTokenizerBase):
        return tokenizer if tokenizer.is_fast else _slow(tokenizer)
    if isinstance(tokenizer, Tokenizer):
        return LibraryTokenizer(tokenizer)
    if isinstance(tokenizer, tuple) and len(tokenizer) == 2 and all(callable(part) for part in tokenizer):
        return PlainTokenizer(*tokenizer)
    if isinstance(tokenizer, EncodesAndDecodes):
        return PlainTokenizer(tokenizer.encode, tokenizer.decode, tokenizer)
    raise CheckpointError(
        f"A {type(tokenizer).__name__} is no tokenizer. Give one of transformers, an object with encode and decode, "
        "or a pair of functions: text to ids, ids to text."
    )


class GivenTokenizer:
    """What a `Model` asks of a tokenizer, with the answers of one that says nothing of itself."""

    is_fast = True
    all_special_ids: Sequence[int] = ()
    unk_token_id: int | None = None
    mask_token_id: int | None = None
    bos_token: str | None = None
    eos_token: str | None = None
    unk_token: str | None = None
    mask_token: str | None = None
    model_max_length = 1 << 62  # none
    whose = "your own encode"
    """What to call the person's own call in a sentence."""

    def own_ids(self, text: str) -> list[int]:
        """What the person's own call gives for `text`.

        Raises:
            InputError: it fails.
        """
        raise NotImplementedError

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        raise NotImplementedError


class PlainTokenizer(GivenTokenizer):
    """Two functions, text to ids and ids to text, in the manners of a tokenizer of transformers."""

    def __init__(self, encode: Callable[..., Any], decode: Callable[..., Any], owner: Any = None) -> None:
        """`owner` is the object that they are methods of, which may say more: its special tokens, its pieces."""
        self._encode, self._decode, self._owner = encode, decode, owner
        self.unk_token_id, self.mask_token_id = (_named(owner, name) for name in ("unk", "mask"))
        bounds = {name: _named(owner, name) for name in _BOUNDS}
        self.bos_token, self.eos_token, self.unk_token, self.mask_token = (
            None if id_ is None else self.convert_ids_to_tokens(id_) or None
            for id_ in (bounds["bos"], bounds["eos"], self.unk_token_id, self.mask_token_id)
        )
        named = {id_ for id_ in bounds.values() if id_ is not None} | _listed(owner)
        self.all_special_ids = tuple(sorted((named | self._found()) - {self.unk_token_id, self.mask_token_id}))

    def _found(self) -> set[int]:
        """Ids that `encode` puts around a text: those that stand for nothing of short ones."""
        found, learnt = set[int](), False
        nothing = self._probed("")[0]
        for text in _PROBES:
            ids, around = self._probed(text)
            if ids and ids == nothing:
                return set()  # whatever the text is
            found, learnt = found | around, learnt or bool(ids)
        return found if learnt else set(nothing)

    def _probed(self, text: str) -> tuple[list[int], set[int]]:
        """The ids of `text`, and those that stand for nothing of it."""
        try:
            ids = self.own_ids(text)
            placed = self._placed(text, ids)
        except Exception:  # it does not take such a text: nothing is learnt
            return [], set()
        if all(placed.no_text):  # then it is not known what stands where
            return ids, set()
        return ids, {id_ for id_, nothing in zip(ids, placed.no_text, strict=True) if nothing}

    def own_ids(self, text: str) -> list[int]:
        try:
            return _as_ids(self._encode(text))
        except Exception as cause:  # a table of characters that lacks one, say: whatever a person's own code raises
            raise InputError(
                f"The tokenizer's encode failed on this text: {summary(cause)}. Leave out what it does not know."
            ) from cause

    def __call__(
        self, text: str, return_offsets_mapping: bool = False, add_special_tokens: bool = True, **_: Any
    ) -> dict[str, Any]:
        ids = self.own_ids(text)
        if not add_special_tokens:
            ids = self._inner(text, ids)
        encoding: dict[str, Any] = {"input_ids": ids}
        if return_offsets_mapping:
            placed = self._placed(text, ids)
            known = not all(placed.no_text)
            encoding["offset_mapping"] = list(placed.spans)
            encoding["special_tokens_mask"] = [
                int(nothing and (known or id_ in self.all_special_ids))
                for id_, nothing in zip(ids, placed.no_text, strict=True)
            ]
            encoding["all_placed"] = placed.whole
        return encoding

    def _inner(self, text: str, ids: list[int]) -> list[int]:
        """`ids` without the special tokens around them, as a text that goes on from another is read."""
        if _takes(self._encode, "add_special_tokens"):
            return _as_ids(self._encode(text, add_special_tokens=False))
        placed = self._placed(text, ids)
        around = [nothing and id_ in self.all_special_ids for id_, nothing in zip(ids, placed.no_text, strict=True)]
        inner = [i for i, special in enumerate(around) if not special]
        return ids[inner[0] : inner[-1] + 1] if inner else []

    def _placed(self, text: str, ids: list[int]) -> Placed:
        by_bytes = getattr(self._owner, "decode_single_token_bytes", None)  # tiktoken's
        if callable(by_bytes):
            placed = place_bytes([by_bytes(id_) for id_ in ids], text)
            if placed is not None:
                return placed
        self.decode(ids)  # in its own words where it fails
        return place(ids, self.decode, text, self.all_special_ids)

    def spans(self, text: str, ids: list[int]) -> list[Span]:
        """The characters of `text` that each token covers; a character of several tokens is covered by each."""
        return list(self._placed(text, ids).spans)

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        try:
            return str(self._decode([int(id_) for id_ in ids]))
        except Exception as cause:  # as above
            shown = ", ".join(str(int(id_)) for id_ in ids[:3])
            raise InputError(
                f"The tokenizer's decode failed on the ids {shown}{', …' if len(ids) > 3 else ''}: {summary(cause)}. "
                "Give one whose decode takes every id that its encode gives."
            ) from cause

    def convert_ids_to_tokens(self, id_: int) -> str:
        """How a token is spelled: as its vocabulary has it, else what it decodes to, alone."""
        try:
            spelled = next(
                (getattr(self._owner, n) for n in _SPELLINGS if callable(getattr(self._owner, n, None))), None
            )
            return str(spelled(id_)) if spelled is not None else self.decode([id_])
        except Exception:  # an id that is in the model's table and not in the tokenizer's: whatever it raises
            return ""


_SPELLINGS = ("convert_ids_to_tokens", "id_to_piece", "id_to_token")


class LibraryTokenizer(GivenTokenizer):
    """A `Tokenizer` of the tokenizers library, run as it was set up."""

    whose = "your tokenizer's own encode"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.backend_tokenizer = tokenizer
        self.added_tokens_decoder = tokenizer.get_added_tokens_decoder()
        names = {token.content: id_ for id_, token in self.added_tokens_decoder.items() if token.special}
        unknown = json.loads(tokenizer.model.__getstate__()).get("unk_token")
        self.unk_token = unknown if isinstance(unknown, str) else None
        self.unk_token_id = None if self.unk_token is None else tokenizer.token_to_id(self.unk_token)
        self.mask_token = next((name for name in ("[MASK]", "<mask>") if tokenizer.token_to_id(name) is not None), None)
        self.mask_token_id = None if self.mask_token is None else tokenizer.token_to_id(self.mask_token)
        around = tokenizer.encode("a")
        put = {id_ for id_, special in zip(around.ids, around.special_tokens_mask, strict=True) if special}
        self.all_special_ids = tuple(sorted((set(names.values()) | put) - {self.unk_token_id, self.mask_token_id}))

    def own_ids(self, text: str) -> list[int]:
        ids: list[int] = self.backend_tokenizer.encode(text).ids
        return ids

    def __call__(
        self, text: str, return_offsets_mapping: bool = False, add_special_tokens: bool = True, **_: Any
    ) -> dict[str, Any]:
        encoding = self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
        if 0 in encoding.attention_mask:
            raise InputError("This tokenizer fills up its texts with padding. Call its no_padding() first.")
        found: dict[str, Any] = {"input_ids": encoding.ids}
        if return_offsets_mapping:
            found["offset_mapping"] = [tuple(span) for span in encoding.offsets]
            found["special_tokens_mask"] = encoding.special_tokens_mask
        found["word_ids"] = encoding.word_ids
        return found

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False, **_: Any) -> str:
        text: str = self.backend_tokenizer.decode([int(i) for i in ids], skip_special_tokens=skip_special_tokens)
        return text

    def convert_ids_to_tokens(self, id_: int) -> str:
        return self.backend_tokenizer.id_to_token(int(id_)) or ""

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size())


def _slow(tokenizer: PreTrainedTokenizerBase) -> PlainTokenizer:
    """One of transformers that tells no offsets."""

    def encode(text: str, add_special_tokens: bool = True) -> Any:
        return tokenizer(text, add_special_tokens=add_special_tokens, verbose=False)["input_ids"]

    def decode(ids: Sequence[int]) -> Any:
        return tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)

    return PlainTokenizer(encode, decode, tokenizer)


def _as_ids(given: Any) -> list[int]:
    """What an `encode` gave, as numbers: a list, an array, one row of a batch, an encoding of a library."""
    given = getattr(given, "ids", given)
    given = given["input_ids"] if isinstance(given, Mapping) or hasattr(given, "input_ids") else given
    given = given.tolist() if hasattr(given, "tolist") else list(given)
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    return [int(id_) for id_ in given]


def _named(owner: Any, name: str) -> int | None:
    """The id that an object calls by `name`: bos_token_id of transformers, bos_id() of sentencepiece."""
    for spelling in (f"{name}_token_id", f"{name}_id"):
        try:
            found = getattr(owner, spelling, None)
            found = found() if callable(found) else found
        except Exception:  # a person's own code
            continue
        if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
            return found
    return None


def _listed(owner: Any) -> set[int]:
    """The special tokens that an object lists: all_special_ids of transformers, special_tokens_set of tiktoken."""
    try:
        if getattr(owner, "special_tokens_set", None):
            return {int(owner.encode_single_token(name)) for name in owner.special_tokens_set}
        return {int(id_) for id_ in getattr(owner, "all_special_ids", ())}
    except Exception:  # a person's own code
        return set()


def _takes(function: Callable[..., Any], argument: str) -> bool:
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):  # built in
        return False
