"""How work is called off, and how it says how far it is. No torch."""

from __future__ import annotations

from collections.abc import Callable

ShouldStop = Callable[[], bool]
"""Asked between blocks of work; once true the work raises `Cancelled`."""


Report = Callable[[str, float | None], None]
"""Told what is being done, and the share that is done (None where that is unknown)."""


def never() -> bool:
    """The `ShouldStop` of work that nobody calls off."""
    return False


def silent(_words: str, _share: float | None) -> None:
    """The `Report` of work that nobody watches."""


class Cancelled(Exception):
    """The work was called off (`should_stop()` was true). Nobody waits for an answer."""
