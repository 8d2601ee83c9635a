"""The tokenizer that comes with a checkpoint."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from transformers import AutoTokenizer
from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from attention_models.files.families import grows
from attention_models.files.memory import most_tokens
from attention_models.files.weight_files import summary
from attention_models.opening.inspection import Inspection
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import TOKENIZERS
from attention_models.protocol.values import CheckpointInfo
from attention_models.text.pairs import reads_pairs
from attention_models.text.templates import has_template
from attention_models.text.tokenizer_checks import misfit_of, panics_raised


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
