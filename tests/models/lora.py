"""Adapters of random numbers, as peft saves them, for the tiny checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from models import open_checkpoint
from tests.models import tiny

TARGETS = {
    "gpt2": ["c_attn", "c_proj"],
    "llama": ["q_proj", "v_proj", "o_proj"],
    "bert": ["query", "value"],
    "t5": ["q", "v"],
}


def save(kind: str, base: Path, folder: Path, **settings: Any) -> Path:
    """Write an adapter for the checkpoint of this kind in `base` to `folder`."""
    options = {"r": 4, "lora_alpha": 6, "target_modules": TARGETS[kind], "fan_in_fan_out": kind == "gpt2"}
    tuned = get_peft_model(tiny.eager(open_checkpoint(base)), LoraConfig(**{**options, **settings}))
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in tuned.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn_like(parameter) * 0.1)
    tuned.peft_config["default"].base_model_name_or_path = str(base)
    tuned.save_pretrained(str(folder))
    return folder
