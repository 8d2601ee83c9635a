"""Tokenizers that a person has as Python objects, given the few methods that a `Model` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from models.files.weight_files import summary
from models.protocol.errors import CheckpointError, InputError


@runtime_checkable
class EncodesAndDecodes(Protocol):
    """What is asked of a tokenizer of one's own (tiktoken has it)."""

    def encode(self, text: str) -> Sequence[int]:
        """Ids of `text`."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`."""


def as_tokenizer(tokenizer: Any) -> Any:
    """`tokenizer` as a `Model` needs it.

    Args:
        tokenizer: one of transformers (a fast one), one of the tokenizers library, an object with `encode` and
            `decode`, or a pair of such functions.

    Raises:
        CheckpointError: it is none of these.
    """
    if isinstance(tokenizer, PreTrainedTokenizerBase):
        if not tokenizer.is_fast:
            raise CheckpointError(
                "This tokenizer does not tell which characters a token covers. Give its fast version."
            )
        return tokenizer
    if isinstance(tokenizer, Tokenizer):
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    if isinstance(tokenizer, tuple) and len(tokenizer) == 2 and all(callable(part) for part in tokenizer):
        return PlainTokenizer(*tokenizer)
    if isinstance(tokenizer, EncodesAndDecodes):
        return PlainTokenizer(tokenizer.encode, tokenizer.decode)
    raise CheckpointError(
        f"A {type(tokenizer).__name__} is no tokenizer. Give one of transformers, an object with encode and decode, "
        "or a pair of functions: text to ids, ids to text."
    )


class PlainTokenizer:
    """Two functions, text to ids and ids to text, in the manners of a tokenizer of transformers."""

    is_fast = True
    all_special_ids: tuple[int, ...] = ()
    unk_token_id = mask_token_id = None
    bos_token = eos_token = unk_token = mask_token = None
    model_max_length = 1 << 62  # none

    def __init__(self, encode: Any, decode: Any) -> None:
        self._encode, self._decode = encode, decode

    def __call__(self, text: str, return_offsets_mapping: bool = False, **_: Any) -> dict[str, Any]:
        try:
            ids = [int(id_) for id_ in self._encode(text)]
        except Exception as cause:  # a table of characters that lacks one, say: whatever a person's own code raises
            raise InputError(
                f"The tokenizer's encode failed on this text: {summary(cause)}. Leave out what it does not know."
            ) from cause
        encoding: dict[str, Any] = {"input_ids": ids}
        if return_offsets_mapping:
            encoding["offset_mapping"] = self.spans(text, ids)
        return encoding

    def spans(self, text: str, ids: list[int]) -> list[tuple[int, int]]:
        """The characters of `text` that each token covers; a character of several tokens is covered by each.

        Read from what the first tokens, the first two, and so on decode to, as far as that agrees with the text.
        """
        pieces = [self.decode([id_]) for id_ in ids]
        if "".join(pieces) == text:  # the common case, in one pass
            ends = _running(len(piece) for piece in pieces)
            return list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
        spans, start = [], 0
        for count in range(1, len(ids) + 1):
            end = max(start, _agreement(self.decode(ids[:count]), text))
            # a token that ends within a character covers it as well
            spans.append((start, end) if end > start else (start, min(start + 1, len(text))))
            start = end
        return spans

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
        """How a token is spelled: what it decodes to, alone."""
        try:
            return self.decode([id_])
        except Exception:  # an id that is in the model's table and not in the tokenizer's: whatever it raises
            return ""


def _running(lengths: Any) -> list[int]:
    ends, at = [], 0
    for length in lengths:
        at += length
        ends.append(at)
    return ends


def _agreement(decoded: str, text: str) -> int:
    """How many characters `decoded` and `text` begin with in common."""
    return next(
        (i for i, (a, b) in enumerate(zip(decoded, text, strict=False)) if a != b), min(len(decoded), len(text))
    )
