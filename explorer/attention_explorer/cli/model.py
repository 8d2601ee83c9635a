"""A model opened for a command without a window, and what went wrong as a sentence."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.session.state import State
from attention_models.protocol.errors import NO_MEMORY, ExplorerError

if TYPE_CHECKING:
    from attention_models.forward.model import Model
    from attention_models.protocol.values import CheckpointInfo


def opened(state: State) -> Model:
    """The checkpoint of `state`, where it is to run.

    Raises:
        ExplorerError: it cannot be opened.
    """
    from attention_models.opening.open import open_checkpoint
    from attention_models.opening.trial import TrialRequest
    from attention_models.opening.trial_process import verdict_on

    reference, where = state.document.checkpoint, state.placement
    verdict_on(TrialRequest(reference=reference)).check(where)
    return open_checkpoint(reference, device=where.device, dtype=where.dtype)


def sentence_of(error: Exception, no_memory: str = NO_MEMORY) -> str:
    """What to tell the person of `error`, which is raised again where it is a fault of the program."""
    from attention_models.files.devices import is_out_of_memory

    if is_out_of_memory(error):
        return no_memory
    if not isinstance(error, ExplorerError):
        raise error
    return str(error)


def no_folder(path: Path) -> str:
    """A sentence where there is no folder for `path` to be written into, else ""."""
    return "" if path.parent.is_dir() else f"There is no folder {path.parent} to write {path.name} into."


def unsuited(args: argparse.Namespace, info: CheckpointInfo) -> str:
    """Which option gives the model something that it does not take; "" where all suit."""
    if info.family == "vision":
        if args.text is not None or args.pair is not None or args.target is not None or args.chat:
            return f"{info.name} looks at pictures and reads no text. Give it a --picture instead."
    elif args.more and info.textbook:
        return f"{info.name} takes one text at a time. Give one --text."
    elif args.picture:
        return f"{info.name} reads text. Leave --picture out, or open a vision model, as with --checkpoint vit-cifar10."
    elif args.target is not None and info.family != "seq2seq":
        return f"{info.name} has no decoder beside its encoder that --target could speak for. Leave --target out."
    elif args.choice and (info.class_head is None or info.class_head.of != "choice"):
        return f"{info.name} does not choose between texts. Leave --choice out, or give --pair in its place."
    elif args.pair is not None and not info.pairs:
        return f"{info.name} reads no pairs of texts. Leave --pair out."
    return ""


def show_progress(label: str, fraction: float | None) -> None:
    """How far it is, on one line of a terminal; nothing where standard error is a file."""
    if sys.stderr is not None and sys.stderr.isatty():
        share = "" if fraction is None else f" {fraction:.0%}"
        print(f"\r\x1b[K{label}{share}", end="", file=sys.stderr, flush=True)
