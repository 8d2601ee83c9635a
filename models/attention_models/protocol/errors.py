"""Errors that carry a sentence for the person: what was wrong, where, and what to do."""

from __future__ import annotations

import traceback

NO_MEMORY = "There is not enough memory for this. Shorten the text, or choose a smaller number format or checkpoint."

NO_MEMORY_TO_TRAIN = "There is not enough memory to train this. Take a smaller width, fewer layers or a smaller batch."


def as_sentence(clause: str) -> str:
    """ "there is no task “x”" with a capital letter and a full stop."""
    return f"{clause[:1].upper()}{clause[1:].rstrip('.')}."


class ExplorerError(Exception):
    """`str(error)` is the sentence shown; the technical cause, if any, is chained (`raise ... from cause`)."""


class CheckpointError(ExplorerError):
    """A checkpoint that cannot be opened, or must not be."""


class NoRoomError(CheckpointError):
    """A checkpoint that the free memory does not hold; another device or number format may."""


class InputError(ExplorerError):
    """A text that the model cannot take: the source, or the target (`of_target`) of an encoder-decoder model.

    `cut_to` is how many of its characters would fit, where that helps.
    """

    def __init__(self, sentence: str, cut_to: int | None = None, of_target: bool = False) -> None:
        super().__init__(sentence)
        self.cut_to = cut_to
        self.of_target = of_target


class DisplayError(ExplorerError):
    """A window cannot be shown from here: no display, a library of the system is missing, or not the main thread."""


class StaleRunError(Exception):
    """Asked about a run that is no longer held."""


class NotFiniteError(InputError):
    """A run gave NaN or infinity: there is no figure to show. The sentence names the first layer where, and of what."""


def cause_of(error: ExplorerError) -> str:
    """For the log: what lies behind the error. What a person did wrong has nothing behind it."""
    return "".join(traceback.format_exception(error)) if error.__cause__ is not None else ""
