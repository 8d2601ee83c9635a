"""How much memory a checkpoint will take."""

from __future__ import annotations

import math
from collections.abc import Iterable

from attention_models.protocol.errors import NoRoomError
from attention_models.protocol.values import CheckpointInfo, StackInfo

DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number."""


KEPT_BYTES = 1_000_000_000
"""What the kept weights of one run may take, in float32."""


def most_tokens(stacks: Iterable[StackInfo]) -> int:
    """The longest text whose weights, of every head in every layer, fit into `KEPT_BYTES`."""
    heads = sum(stack.layers * stack.heads for stack in stacks)
    return math.isqrt(KEPT_BYTES // (4 * max(heads, 1)))


def weight_bytes(info: CheckpointInfo, dtype: str = "float32") -> int:
    return info.parameters * DTYPES[dtype]


def text_bytes(info: CheckpointInfo, tokens: int, dtype: str = "float32") -> int:
    """Bytes of q, k and v of every layer, and of the residual stream before and after each, for a text of `tokens`.

    Of a model that shows its weights alone, every weight instead of q, k and v. An encoder-decoder model is taken to
    write as many tokens as it reads.
    """
    numbers = 0
    for stack in info.stacks:
        seen = (stack.heads + 2 * stack.key_heads) * info.head_dim
        numbers += stack.layers * (stack.heads * tokens if info.weights_only else seen)
        if stack.stack != "cross":
            numbers += (stack.layers + 1) * info.width
    return numbers * tokens * DTYPES[dtype]


def check_fits(info: CheckpointInfo, dtype: str, where: str, free: int | None) -> None:
    """Refuse what cannot be opened in the `free` bytes of the device called `where`; None where that is unknown.

    Raises:
        NoRoomError: too large.
    """
    # a GGUF file is unpacked whole before its numbers are handed to the model
    needed = weight_bytes(info, dtype) * (2 if info.gguf else 1)
    if free is not None and needed > free:
        raise NoRoomError(
            f"{info.name} takes {in_bytes(needed)} of memory to open in {dtype}, and {in_bytes(free)} are free on "
            f"{where}. Close other programs, choose a smaller number format, or open a smaller checkpoint."
        )


def in_bytes(count: int) -> str:
    """ "12.3 MB", in powers of ten as disks and downloads are measured."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"
