"""Reads all that a checkpoint's files say, down to its tokenizer, with libraries that trust what they read.

`attention_models.opening.trial_process` has it done in a process that can be ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from attention_models.files.devices import is_out_of_memory
from attention_models.forward.vision import open_processor
from attention_models.opening.checkpoint_inspector import CheckpointInspector, no_tokenizer
from attention_models.opening.inspection import Inspection, check_opens
from attention_models.opening.open import open_textbook
from attention_models.protocol.errors import CheckpointError, cause_of
from attention_models.protocol.hub import HubListing
from attention_models.protocol.values import CheckpointInfo, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    reference: str
    listing: HubListing | None = None  # stands for the files of a hub that are not here yet
    cache: str = ""  # of the hub; huggingface_hub's own where it is left out
    tokenizer: bool = True  # of a GGUF file too, where it takes seconds and is in the same file


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found. `info` is None where nothing could be understood."""

    info: CheckpointInfo | None = None
    missing: tuple[str, ...] = ()
    misshapen: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    refusal: str = ""  # why it cannot be opened, wherever that would be
    cause: str = ""  # for the log

    def check(self, placement: Placement) -> None:
        """Refuse what cannot be opened.

        Raises:
            CheckpointError: for what its files say, or for want of memory there (`NoRoomError`).
        """
        if self.info is not None and not self.info.textbook:
            check_opens(Inspection(self.info, None, self.missing, self.misshapen), placement)
        if self.refusal:
            raise CheckpointError(self.refusal) from (Elsewhere(self.cause) if self.cause else None)


class Elsewhere(Exception):
    """Stands for an error in another process; its text is the traceback there."""


def judge(
    request: TrialRequest, examination: CheckpointInspector | None = None, note: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Read what `request.reference` is, and find what speaks against it but for the memory of this computer.

    `note` is told what is being read.
    """
    examination = examination or CheckpointInspector(request.reference, request.listing)
    listing = request.listing
    verdict = Verdict()
    try:
        note("what its config and its weights' headers say")
        textbook = open_textbook(request.reference) if listing is None else None
        if textbook is not None:
            return Verdict(info=textbook.info)
        examined = examination.examined
        info = examined.info
        verdict = Verdict(info=info, missing=examined.missing, misshapen=examined.misshapen)
        if verdict.missing or verdict.misshapen:
            return verdict
        # of an adapter that is still to come the model is here
        here = listing is None or (not info.gguf and examined.folder != Path(listing.folder))
        if info.family == "vision":
            if here:
                note("how pictures are prepared for it (preprocessor_config.json)")
                open_processor(examined.folder)
        elif here and (request.tokenizer or not info.gguf):
            note("its tokenizer")
            _, info = examination.tokenizer
            verdict = replace(verdict, info=info)
        elif listing is not None and not here and not (info.gguf or listing.has_tokenizer):
            raise no_tokenizer(examined.title)
    except CheckpointError as error:
        if is_out_of_memory(error):
            raise  # it says nothing of the checkpoint
        return replace(verdict, refusal=str(error), cause=cause_of(error))
    return verdict
