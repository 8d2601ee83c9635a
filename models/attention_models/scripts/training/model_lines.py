"""The lines that make a textbook model of random weights."""

from __future__ import annotations

import textwrap
from dataclasses import fields

from attention_models.scripts.script_text import WIDTH, Script
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.transformer_config import SWITCHES, TransformerConfig
from attention_models.training.pipe import threads_beside_a_window

SAME_BITS = "Each number is the one on screen bit for bit where torch adds up alike: here, with so many threads."
_OF_TRANSFORMERS = ("vocabulary", *SWITCHES, "pad_token_id", "bos_token_id", "eos_token_id")


def same_threads(script: Script) -> None:
    """The line that lets torch round sums as the process that trains does."""
    script.line(f"torch.set_num_threads({threads_beside_a_window()})", "as in the process that trains")


def make_model(script: Script, config: TransformerConfig | RecurrentConfig) -> None:
    """Lines that end with `model`, and the config as `config`; torch's generator decides the weights."""
    config_of(script, config)
    if isinstance(config, RecurrentConfig):
        script.uses("from attention_models.textbook.recurrent import RecurrentSeq2Seq")
        script.line("model = RecurrentSeq2Seq(config)", "read attention_models/textbook/recurrent.py beside this")
        return
    script.uses(
        "from attention_models.forward.capture import IMPLEMENTATION",
        "from attention_models.textbook.pretrained import made",
    )
    script.line("model = made(config)", "read attention_models/textbook/transformer.py beside this")
    script.line("model.set_attn_implementation(IMPLEMENTATION)", '"eager" gives the same but for rounding')


def config_of(script: Script, config: TransformerConfig | RecurrentConfig) -> None:
    """`config = …`, every switch of it."""
    if isinstance(config, RecurrentConfig):
        kind, file = "RecurrentConfig", "config"
        names = tuple(field.name for field in fields(config) if field.name not in ("model_type", "most_words"))
    else:
        kind, file, names = "TransformerConfig", "transformer_config", _OF_TRANSFORMERS
    script.uses(f"from attention_models.textbook.{file} import {kind}")
    given = ", ".join(f"{name}={getattr(config, name)!r}" for name in names) + ","
    lines = textwrap.wrap(given, WIDTH - 4, break_long_words=False)
    script.line("\n".join([f"config = {kind}(", *(f"    {line}" for line in lines), ")"]))
