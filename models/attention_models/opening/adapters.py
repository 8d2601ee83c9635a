"""Merges a LoRA adapter into the model that it was made for, by peft. Nothing but its safetensors file is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attention_models.files.adapter_files import PREFIX, TENSORS
from attention_models.files.weight_files import summary
from attention_models.forward.adapter import MergedAdapter
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.values import AdapterInfo

_NAME = "default"


def merge(module: nn.Module, info: AdapterInfo) -> MergedAdapter:
    """Put the adapter on `module`, whose modules stay the ones that they are.

    Raises:
        CheckpointError: it does not fit, or holds what is no number.
    """
    from peft import inject_adapter_in_model, set_peft_model_state_dict
    from peft.tuners.lora import LoraLayer

    named, parameters = dict(module.named_modules()), dict(module.named_parameters(remove_duplicate=False))
    lost = [name for name in info.modules if not hasattr(named.get(name), "weight")]
    if lost:
        raise _unfit(info, f"there is no {lost[0]}")
    heads = [name.rpartition(".")[0] for name in info.replaced if name not in parameters]
    if heads:
        raise _unfit(
            info,
            f"it brings a head of its own ({heads[0]}), where the model has none that it could be compared with",
        )
    tuned = [f"{name}.weight" for name in info.modules]
    base: dict[str, Tensor] = {name: parameters[name].detach() for name in info.replaced}
    base |= {name: parameters[name].detach().clone() for name in tuned}
    try:
        tensors = load_file(Path(info.folder) / TENSORS, device=str(next(module.parameters()).device))
        broken = next((name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())), None)
        if broken is not None:
            raise CheckpointError(
                f"The adapter {info.name} is broken: {broken} holds values that are no numbers. Fetch it again."
            )
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
        whole = {name: tensors.pop(name) for name in info.replaced}
        inject_adapter_in_model(_config(info, named), module, _NAME)
        loaded: Any = set_peft_model_state_dict(module, tensors, _NAME)
        if loaded.unexpected_keys:
            raise _unfit(info, f"there is no place for {loaded.unexpected_keys[0]}")
        _merge_layers(module, LoraLayer)
        for name, tensor in whole.items():
            _replace(module, info, name, tensor)
    except CheckpointError:
        raise
    except Exception as cause:  # whatever peft runs into
        raise _unfit(info, summary(cause)) from cause
    for left in ("peft_config", "_hf_peft_config_loaded"):
        vars(module).pop(left, None)
    module.eval().requires_grad_(False)
    return MergedAdapter(info, base)


def _config(info: AdapterInfo, named: Mapping[str, nn.Module]) -> Any:
    """peft's own, by which each module gets its rank and scale."""
    from peft import LoraConfig

    apart = [
        (f"^{re.escape(name)}", rank, scale)
        for name, rank, scale in zip(info.modules, info.ranks, info.scales, strict=True)
        if (rank, scale) != (info.rank, info.scale)
    ]
    return LoraConfig(
        r=info.rank,
        lora_alpha=info.scale * info.rank,  # type: ignore[arg-type]
        rank_pattern={name: rank for name, rank, _ in apart},
        alpha_pattern={name: scale * rank for name, rank, scale in apart},
        use_dora=info.dora,
        target_modules=list(info.modules),
        fan_in_fan_out=any(isinstance(named[name], Conv1D) for name in info.modules),
        inference_mode=True,
    )


def _replace(module: nn.Module, info: AdapterInfo, name: str, tensor: Tensor) -> None:
    """Give `module` a parameter of its own: what was tied to the one before keeps that."""
    parent, _, last = name.rpartition(".")
    before = module.get_parameter(name)
    if tensor.shape != before.shape:
        raise _unfit(info, f"its {name} is {tuple(tensor.shape)}, and the model's is {tuple(before.shape)}")
    own = nn.Parameter(tensor.to(before.device, before.dtype), requires_grad=False)
    setattr(module.get_submodule(parent), last, own)


def _merge_layers(module: nn.Module, kind: type) -> None:
    """Each layer of peft's, merged, makes room for the one that it stands around."""
    layers: list[tuple[str, Any]] = [(name, child) for name, child in module.named_modules() if isinstance(child, kind)]
    for name, layer in layers:
        layer.merge(safe_merge=True)
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent), last, layer.get_base_layer())


def _unfit(info: AdapterInfo, why: str) -> CheckpointError:
    return CheckpointError(
        f"The adapter {info.name} does not fit the model that it lies beside or names: {why}. Take its two files out "
        "of the folder to open the model alone."
    )
