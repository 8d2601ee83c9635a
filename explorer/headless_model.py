"""A model opened for a command without a window, and what went wrong as a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from explorer.session.state import State
from models.protocol.errors import NO_MEMORY, ExplorerError

if TYPE_CHECKING:
    from models.forward.model import Model


def opened(state: State) -> Model:
    """The checkpoint of `state`, where it is to run.

    Raises:
        ExplorerError: it cannot be opened.
    """
    from models.opening.open import open_checkpoint
    from models.opening.trial import TrialRequest
    from models.opening.trial_process import verdict_on

    reference, where = state.document.checkpoint, state.placement
    verdict_on(TrialRequest(reference=reference)).check(where)
    return open_checkpoint(reference, device=where.device, dtype=where.dtype)


def sentence_of(error: Exception) -> str:
    """What to tell the person of `error`, which is raised again where it is a fault of the program."""
    from models.files.devices import is_out_of_memory

    if is_out_of_memory(error):
        return NO_MEMORY
    if not isinstance(error, ExplorerError):
        raise error
    return str(error)


def no_folder(path: Path) -> str:
    """A sentence where there is no folder for `path` to be written into, else ""."""
    return "" if path.parent.is_dir() else f"There is no folder {path.parent} to write {path.name} into."
