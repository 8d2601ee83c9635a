"""One examination of a checkpoint for both who describe it and who open it: what it is, and its tokenizer."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from functools import cached_property
from typing import Any

from transformers import AutoTokenizer
from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from attention_models.files.families import grows
from attention_models.files.gguf_reading import reading_once
from attention_models.files.memory import most_tokens
from attention_models.files.weight_files import summary
from attention_models.opening.inspect_checkpoint import find, inspect_checkpoint
from attention_models.opening.inspection import Inspection
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import TOKENIZERS, HubListing
from attention_models.protocol.values import CheckpointInfo
from attention_models.text.pairs import reads_pairs
from attention_models.text.templates import has_template
from attention_models.text.tokenizer_checks import misfit_of, panics_raised

# The tokenizer that comes with a checkpoint.


def open_tokenizer(examined: Inspection) -> tuple[Any, CheckpointInfo]:
    """The tokenizer, and the info with what it adds.

    Raises:
        CheckpointError: none, a broken one, or one that belongs to another model.
    """
    folder, title, info = examined.folder, examined.title, examined.info
    if not info.gguf and not any((folder / name).is_file() for name in TOKENIZERS):
        raise no_tokenizer(title)
    try:
        with panics_raised():
            tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True, **examined.source)
    except Exception as cause:
        if "trust_remote_code" in str(cause):
            raise CheckpointError(
                f"{title} has a tokenizer that is program code, which is never run here. "
                "Save it again as tokenizer.json."
            ) from cause
        raise CheckpointError(f"{title}: its tokenizer cannot be read: {summary(cause)}. Fetch it again.") from cause
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{title} has a tokenizer that does not tell which characters a token covers. "
            "Save it again as tokenizer.json."
        )
    wrong = misfit_of(tokenizer, info.vocabulary)
    if wrong:
        raise CheckpointError(f"{title}: {wrong}")
    bound = tokenizer.model_max_length
    if not isinstance(bound, (int, float)):  # transformers takes what stands there, and compares lengths with it
        tokenizer.model_max_length = VERY_LARGE_INTEGER
    context = info.context
    if isinstance(bound, int) and 0 < bound < 1 << 30 and not grows(examined.config):
        context = bound if context is None else min(bound, context)
    if info.weights_only:
        context = min(most_tokens(info.stacks), context or sys.maxsize)
    mask = tokenizer.mask_token if info.family == "masked" else None
    chat = info.family == "causal" and has_template(tokenizer)
    pairs = reads_pairs(tokenizer, info.family)
    return tokenizer, replace(info, context=context, mask_token=mask, chat=chat, pairs=pairs)


def no_tokenizer(title: str) -> CheckpointError:
    return CheckpointError(f"{title} has no tokenizer (tokenizer.json), so no text can be read. Add the file.")


_Files = tuple[tuple[str, int, int], ...]  # of each file its path, its last change in ns, its size in bytes


class CheckpointInspector:
    """What the files of `reference` say, read when it is first asked for, and only once.

    Raises, from its properties:
        CheckpointError: it cannot be opened; the sentence says what is wrong, where and what to do.
    """

    def __init__(self, reference: str, listing: HubListing | None = None) -> None:
        """A `listing` stands for the files of a hub that are not here yet."""
        self.reference = reference
        self._listing = listing
        self._files = _files_of(reference)  # before they are read: a change while they are is a change

    @cached_property
    def examined(self) -> Inspection:
        return inspect_checkpoint(self.reference, self._listing)

    @cached_property
    def tokenizer(self) -> tuple[Any, CheckpointInfo]:
        """The tokenizer, and the info with what it adds."""
        with reading_once():
            return open_tokenizer(self.examined)

    def holds_for(self, reference: str) -> bool:
        """Whether it is of this checkpoint, and no file of it was changed, added or taken away since."""
        is_here = self._listing is None and self._files is not None
        return is_here and self.reference == reference and self._files == _files_of(reference)


class Tried:
    """The examination of what was tried last and found sound, for who opens it. Thread-safe."""

    def __init__(self) -> None:
        self._turns = threading.Lock()
        self._examination: CheckpointInspector | None = None

    def put(self, examination: CheckpointInspector) -> None:
        with self._turns:
            self._examination = examination

    def take(self) -> CheckpointInspector | None:
        """It is kept no longer: of one examination one model is made, for its tokenizer is the model's own."""
        with self._turns:
            examination, self._examination = self._examination, None
            return examination


TRIED = Tried()


def _files_of(reference: str) -> _Files | None:
    """The files of a checkpoint and of the folders in it; None where they cannot be told."""
    try:
        path = find(reference).resolve()
        if path.is_dir() and not (path / "config.json").is_file():
            return None  # no checkpoint, and maybe a very large folder
        found = [path] if path.is_file() else [*path.iterdir(), *path.glob("*/*")]
        stats = ((str(file), file.stat()) for file in sorted(found))
        return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
    except (CheckpointError, OSError):
        return None
