"""Several texts that a model runs at once, made equally long by padding, and which of them is shown. No torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from models.protocol.errors import InputError

PaddingSide = Literal["right", "left"]

MOST_TEXTS = 256


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of one run.

    Raises:
        InputError: no text, more than `MOST_TEXTS`, or padding on a side that there is not.
        IndexError: there is no text `shown`.
    """

    texts: tuple[str, ...]
    padding: PaddingSide = "right"
    shown: int = 0  # which of them is shown, from 0

    def __post_init__(self) -> None:
        if not self.texts:
            raise InputError("There are no texts to run. Give at least one.")
        if len(self.texts) > MOST_TEXTS:
            raise InputError(f"These are {len(self.texts):,} texts; {MOST_TEXTS} are run at once at most.")
        if self.padding not in get_args(PaddingSide):
            raise InputError(f"Padding goes to the right or to the left, not “{self.padding}”.")
        if not 0 <= self.shown < len(self.texts):
            raise IndexError(f"There is no text {self.shown}: these are {len(self.texts)}, counted from 0.")

    @property
    def text(self) -> str:
        """The one that is shown."""
        return self.texts[self.shown]

    @property
    def plain(self) -> str:
        """As of the other kinds of prompts: the text that is shown."""
        return self.text

    def showing(self, index: int) -> Batch:
        """The same texts, with another one shown."""
        return replace(self, shown=index)

    def with_text(self, text: str) -> Batch:
        """`text` in the place of the one that is shown."""
        return replace(self, texts=(*self.texts[: self.shown], text, *self.texts[self.shown + 1 :]))
