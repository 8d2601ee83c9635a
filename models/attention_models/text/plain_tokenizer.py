"""Tokenizers that a person has as Python objects, given the few methods that a `Model` asks for.

What is run is what the person's own call gives, `encode(text)`, with the special tokens that it adds, and no others.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from attention_models.files.weight_files import summary
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.text.placing import Placed, Span, place, place_bytes

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
