"""Checkpoints of random weights in the shapes that are measured, and texts of a given length."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

from attention_models.files.catalogue import folder_of

PROSE = "Tom and Anna went to the park. Anna gave the ball to Tom, and they played until it was dark."


def gpt2_small(folder: Path, tokens: int) -> Path:
    """12 layers of 12 heads, a vocabulary of 50,257, and room for `tokens` positions."""
    return _saved(folder, transformers.GPT2LMHeadModel(transformers.GPT2Config(n_positions=tokens)), tokens)


def llama(folder: Path, tokens: int, heads: int, sees: int | None = None) -> Path:
    """SmolLM2-135M's shape with `heads` heads, 9 a layer in three groups, and room for `tokens` positions.

    `sees` is how many keys back each layer's sliding window reaches, as in Mistral's first model; None: all.
    """
    if heads < 9 or heads % 9:
        raise SystemExit(f"{heads} heads are no multiple of the 9 that a layer has. Say 270, for example.")
    make: Any = transformers.LlamaConfig if sees is None else partial(transformers.MistralConfig, sliding_window=sees)
    kind: Any = transformers.LlamaForCausalLM if sees is None else transformers.MistralForCausalLM
    config = make(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=heads // 9,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=tokens,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    return _saved(folder, kind(config), tokens)


def _saved(folder: Path, module: Any, tokens: int) -> Path:
    """With story-gpt's tokenizer, which knows the first 8,192 of the ids."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if any(part in name for part in ("c_attn.weight", "q_proj.weight", "k_proj.weight")):
                parameter.mul_(4)  # as they start, all weights of a row would be alike
    module.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder_of("story-gpt"))
    tokenizer.model_max_length = tokens
    tokenizer.save_pretrained(folder)
    return folder


def text_of(tokenizer: Any, tokens: int) -> str:
    """A text of `tokens` tokens, or one or two less."""
    prose = PROSE.split()
    words = [prose[(i * i) % len(prose)] for i in range(tokens + 8)]
    fewest, most = 1, len(words)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        length = len(tokenizer(" ".join(words[:middle]), verbose=False)["input_ids"])
        fewest, most = (middle, most) if length <= tokens - 1 else (fewest, middle - 1)
    return " ".join(words[:fewest])
