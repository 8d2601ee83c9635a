"""Words and counts of tokens, and layers and heads, as files of examples, tours and lessons may have them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Place = Annotated[int, msgspec.Meta(ge=0, le=1000)]
"""A layer or a head, from 0."""
