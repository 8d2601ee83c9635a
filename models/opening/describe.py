"""Puts together what is said of a checkpoint before it is opened."""

from __future__ import annotations

import traceback

from models.files.devices import is_out_of_memory
from models.files.memory import DTYPES, text_bytes, weight_bytes
from models.forward.context import Context
from models.forward.vision import open_processor
from models.opening.capabilities import capabilities
from models.opening.examination import Examination
from models.opening.examined import check_opens, room
from models.opening.open import open_textbook
from models.opening.tokenizer import no_tokenizer
from models.protocol.describing import Described, DescribeRequest
from models.protocol.errors import CheckpointError
from models.protocol.values import CheckpointInfo

UNBOUNDED = 512
"""Tokens that a text is taken to have where a model takes any number."""


def answer(request: DescribeRequest, context: Context) -> Described:
    """Who opens it right after has it examined."""
    examination = Examination(request.reference, request.listing)
    described = description_of(request, examination)
    if not described.refusal:
        context.kept.put(examination)
    return described


def description_of(request: DescribeRequest, examination: Examination | None = None) -> Described:
    """What `request.reference` is. A checkpoint that cannot be opened is described as far as it can be understood."""
    examination = examination or Examination(request.reference, request.listing)
    info: CheckpointInfo | None = None
    try:
        textbook = open_textbook(request.reference) if request.listing is None else None
        if textbook is not None:
            info = textbook.info
        else:
            examined = examination.examined
            info = examined.info
            check_opens(examined, request.placement)
            if info.family == "vision":
                if request.listing is None:
                    open_processor(examined.folder)
            elif request.listing is None and not info.gguf:  # of a GGUF file it takes seconds, and is in the same file
                _, info = examination.tokenizer
            elif request.listing is not None and not (info.gguf or request.listing.has_tokenizer):
                raise no_tokenizer(examined.title)
    except CheckpointError as error:
        if is_out_of_memory(error):
            raise  # it says nothing of the checkpoint
        cause = "".join(traceback.format_exception(error)) if error.__cause__ is not None else ""
        return _described(request, info, str(error), cause)
    return _described(request, info)


def _described(request: DescribeRequest, info: CheckpointInfo | None, refusal: str = "", cause: str = "") -> Described:
    if info is None:
        return Described(request=request, refusal=refusal, cause=cause)
    tokens = info.context or UNBOUNDED
    try:
        where, free = room(request.placement)
    except CheckpointError:  # a device that is gone: the refusal says so
        where, free = "", None
    return Described(
        request=request,
        refusal=refusal,
        info=info,
        capabilities=capabilities(info),
        weights=tuple((dtype, weight_bytes(info, dtype)) for dtype in DTYPES),
        text_tokens=tokens,
        text_bytes=0 if info.textbook or info.family == "vision" else text_bytes(info, tokens),
        where=where,
        free=free,
        cause=cause,
    )
