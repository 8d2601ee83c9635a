"""Adapters of random numbers, as peft saves them, for the tiny checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from attention_models import open_checkpoint
from tests.models import tiny

TARGETS = {
    "gpt2": ["c_attn", "c_proj"],
    "llama": ["q_proj", "v_proj", "o_proj"],
    "bert": ["query", "value"],
    "t5": ["q", "v"],
}
# settings by which the weights come about in another way than W + alpha / r * B A, as peft writes them
WAYS: dict[str, dict[str, Any]] = {
    "rank_pattern": {"rank_pattern": {"0.self_attn.q_proj": 2, "v_proj": 7}},
    "alpha_pattern": {"alpha_pattern": {"1.self_attn.q_proj": 24, "o_proj": 2}},
    "patterns of root of rank": {
        "rank_pattern": {"v_proj": 9},
        "alpha_pattern": {"v_proj": 3, "^model.layers.0.self_attn.q_proj": 20},
        "use_rslora": True,
    },
    "dora": {"use_dora": True},
    "dora with patterns": {"use_dora": True, "rank_pattern": {"q_proj": 3}, "alpha_pattern": {"o_proj": 1}},
    "modules to save": {"modules_to_save": ["lm_head"]},
    "embeddings to save": {"modules_to_save": ["embed_tokens", "1.mlp.down_proj"]},
    "all": {"modules_to_save": ["lm_head"], "use_dora": True, "use_rslora": True, "alpha_pattern": {"q_proj": 3}},
}


def save(kind: str, base: Path, folder: Path, **settings: Any) -> Path:
    """Write an adapter for the checkpoint of this kind in `base` to `folder`."""
    options = {"r": 4, "lora_alpha": 6, "target_modules": TARGETS.get(kind), "fan_in_fan_out": kind == "gpt2"}
    tuned = get_peft_model(tiny.eager(open_checkpoint(base)), LoraConfig(**{**options, **settings}))
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in tuned.named_parameters():
            if "lora_magnitude" in name:
                parameter.mul_(1 + torch.rand_like(parameter))
            elif "lora_" in name or "modules_to_save" in name:
                parameter.copy_(torch.randn_like(parameter) * 0.1)
    tuned.peft_config["default"].base_model_name_or_path = str(base)
    tuned.save_pretrained(str(folder))
    return folder
