"""Small models that translate, with tokenizers that read a target in ways of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import processors
from transformers import MBart50Tokenizer, MBartTokenizer, PreTrainedTokenizerFast

from attention_models import open_checkpoint
from attention_models.forward.model import Model
from tests.models import tiny

SOURCE, TARGET = "Tom and Anna went to the park.", "El gato va al parque"
WORDS = f"{SOURCE} {TARGET}".replace(".", "").split()
PIECES: list[Any] = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0)]
PIECES += [(f"\u2581{word}", -3.0 - place / 100) for place, word in enumerate(dict.fromkeys(WORDS))]
PIECES += [(letter, -8.0) for letter in "abcdefghijklmnopqrstuvwxyzTAE."]


def mbart() -> MBartTokenizer:
    """The language comes last, of a source as of a target, and first in the decoder: its start."""
    return MBartTokenizer(vocab=PIECES, src_lang="en_XX", tgt_lang="ro_RO")


def mbart50() -> MBart50Tokenizer:
    """The language comes first."""
    return MBart50Tokenizer(vocab=PIECES, src_lang="en_XX", tgt_lang="es_XX")


def bart() -> PreTrainedTokenizerFast:
    """As BART's: a start before a text, which is before a target too."""
    tokenizer = tiny.sentence_piece()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<unk> $A </s>", special_tokens=[("<unk>", 2), ("</s>", 1)]
    )
    return tokenizer


def made(tmp_path: Path, kind: str, tokenizer: Callable[[], Any], **settings: Any) -> Model:
    known = tiny.KINDS[kind]
    chosen = replace(known, tokenizer=tokenizer, settings={**known.settings, **settings})
    return open_checkpoint(tiny.save(chosen, tmp_path / "model"))


def opened(tmp_path: Path, which: str) -> Model:
    ends: dict[str, Any] = {"pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0}
    if which == "mbart":
        start = mbart().convert_tokens_to_ids("ro_RO")
        return made(tmp_path, "mbart", mbart, decoder_start_token_id=start, **ends)
    if which == "mbart50":
        return made(tmp_path, "mbart", mbart50, decoder_start_token_id=2, **ends)
    if which == "bart":
        return made(tmp_path, "bart", bart)
    return open_checkpoint(tiny.save(which, tmp_path / "model"))
