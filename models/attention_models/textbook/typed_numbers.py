"""Numbers as a person types them for a switch: `--set width=64`."""

from __future__ import annotations

import math


def typed_number(name: str, text: str, kind: type[int] | type[float]) -> int | float:
    """What `text` says of the switch `name`. Raises ValueError where it is no finite number of the kind."""
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if isinstance(number, float) and not math.isfinite(number):
        shown = text if len(text) <= 40 else f"{text[:39]}…"
        raise ValueError(f"{name} is “{shown}”, and has to be a {'whole ' if kind is int else ''}number")
    return number
