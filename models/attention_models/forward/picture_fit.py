"""What an image processor makes of a picture's size, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attention_models.files.bounds import MOST_SIDE
from attention_models.protocol.errors import InputError

Size = tuple[int, int]  # width, height


def fitted(processor: Any, size: Size, seen: Size) -> str:
    """How a picture of `size` became one of `seen`: "512 × 300 squeezed to 224 × 224"; "" where it is as it was."""
    scaled = _scaled(processor, size)
    if getattr(processor, "do_center_crop", False):
        kept = _sides(processor.crop_size)
        if kept != seen or scaled is None:
            return _made(size, seen)
        parts = [_resized(size, scaled)] if scaled != size else [_words(size)]
        if scaled[0] > kept[0] or scaled[1] > kept[1]:
            parts.append(f"cut to its middle {_words(kept)}")
        if scaled[0] < kept[0] or scaled[1] < kept[1]:
            parts.append(f"black around it to fill {_words(kept)}")
        return ", ".join(parts) if len(parts) > 1 or scaled != size else ""
    if scaled != seen:
        return _made(size, seen)
    return "" if scaled == size else _resized(size, scaled)


def check_scaled(processor: Any, name: str, size: Size) -> None:
    """Refuse a picture of which `processor` would make one without end: a line of a pixel, scaled by its shorter side.

    Raises:
        InputError: it would have more pixels than a square of `MOST_SIDE`.
    """
    width, height = _scaled(processor, size) or size
    if width * height > MOST_SIDE**2:
        raise InputError(
            f"{name} is {_words(size)} pixels, and the model wants it scaled to {_words((width, height))}: more than "
            f"{_words((MOST_SIDE, MOST_SIDE))}. Cut a part out of it first."
        )


def _scaled(processor: Any, size: Size) -> Size | None:
    """The size after scaling; None where the processor does it by a rule of its own."""
    if not getattr(processor, "do_resize", False):
        return size
    width, height = _sides(processor.size)
    if width and height:
        return width, height
    short = _part(processor.size, "shortest_edge")
    if not short or _part(processor.size, "longest_edge"):
        return None
    along = int(short * max(size) / min(size))
    return (short, along) if size[0] <= size[1] else (along, short)


def _resized(size: Size, scaled: Size) -> str:
    same = math.isclose(size[0] / size[1], scaled[0] / scaled[1], rel_tol=1 / min(scaled))
    return f"{_words(size)} {'scaled' if same else 'squeezed'} to {_words(scaled)}"


def _made(size: Size, seen: Size) -> str:
    return f"{_words(size)} made into {_words(seen)}" if size != seen else ""


def _words(size: Size) -> str:
    return f"{size[0]} × {size[1]}"


def _sides(size: Any) -> Size:
    return _part(size, "width") or 0, _part(size, "height") or 0


def _part(size: Any, name: str) -> int | None:
    return size.get(name) if isinstance(size, Mapping) else getattr(size, name, None)
