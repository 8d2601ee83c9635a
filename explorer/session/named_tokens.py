"""Words and counts of tokens, as files of examples, tours and lessons may have them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
