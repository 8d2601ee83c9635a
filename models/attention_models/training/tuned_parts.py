"""Which parts of a checkpoint are fine-tuned: all weights, what gives the logits, or a LoRA adapter by peft."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.files.extras import ADAPTERS, install_command, lacking
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError


def learnable(module: Any) -> list[nn.Parameter]:
    """All but what its class keeps as it is: Marian's sinusoids are parameters, and are not in its files."""
    with torch.device("meta"):
        fixed = {name for name, p in type(module)(module.config).named_parameters() if not p.requires_grad}
    return [p for name, p in module.named_parameters() if name not in fixed]


def own_head(model: Model) -> list[nn.Parameter]:
    """What gives the logits: a matrix, parted from the embedding where the two are one; all of a classifier's head."""
    module: Any = model.module
    if model.info.class_head is not None:
        return _class_head(model)
    head = _head(model)
    if sum(p is head.weight for _, p in module.named_parameters(remove_duplicate=False)) > 1:
        head.weight = nn.Parameter(head.weight.detach().clone())
        module.config.tie_word_embeddings = False
    return [head.weight]


def head_size(model: Model) -> int:
    """How many numbers `own_head` has; `model` is left as it is."""
    if model.info.class_head is not None:
        return sum(p.numel() for p in _class_head(model))
    return int(_head(model).weight.numel())


def _head(model: Model) -> Any:
    module: Any = model.module
    head = module.get_output_embeddings()
    if head is None:
        raise ExplorerError(f"{model.info.name} has no head of its own. Tune all of its weights.")
    return head


def _class_head(model: Model) -> list[nn.Parameter]:
    """The parameters that lie around the body: BERT's pooler is part of the body, as transformers has it."""
    body = {id(p) for p in _body(model).parameters()}
    found = [p for p in model.module.parameters() if id(p) not in body]
    if not found:
        raise ExplorerError(f"{model.info.name} has no head of its own. Tune all of its weights.")
    return found


def _body(model: Model) -> nn.Module:
    module: Any = model.module
    body: nn.Module = module.base_model
    return body


def linear(model: Model) -> list[str]:
    """The names of the modules that an adapter is put on: all linear ones but those of the head."""
    from transformers.pytorch_utils import Conv1D

    module: Any = model.module
    if model.info.class_head is not None:
        body = {id(child) for child in _body(model).modules()}
        heads = [child for child in module.modules() if id(child) not in body]
    else:
        heads = [module.get_output_embeddings()]
    left_out = {id(head) for head in heads}
    named = module.named_modules()
    return [n for n, child in named if isinstance(child, (nn.Linear, Conv1D)) and id(child) not in left_out]


def adapter_size(model: Model, rank: int) -> int:
    """How many numbers an adapter of that rank has; `model` is left as it is."""
    named: dict[str, Any] = dict(model.module.named_modules())
    return sum(rank * sum(named[name].weight.shape) for name in linear(model))


def check_adapters() -> None:
    """Raises ExplorerError, which says how to get it, where the package is not installed that makes adapters."""
    missing = lacking(ADAPTERS)
    if missing:
        raise ExplorerError(f"A LoRA adapter needs {missing[0]}: {install_command(missing)}")


@contextmanager
def peft_unheard() -> Iterator[None]:
    """While it lasts, peft does not warn of what it calls by an older name, or does not find on a hub."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def with_adapter(model: Model, rank: int, seed: int) -> Any:
    """Put a LoRA adapter on `model`, whose own weights stay; returns peft's model around it."""
    check_adapters()
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D

    named, names = dict(model.module.named_modules()), linear(model)
    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules=names,
        fan_in_fan_out=any(isinstance(named[name], Conv1D) for name in names),
    )
    with torch.random.fork_rng(devices=[]), peft_unheard():
        torch.manual_seed(seed)
        return get_peft_model(model.module, config)


def deltas(module: nn.Module) -> dict[str, Tensor]:
    """What an adapter adds to each matrix, by the name of that in the checkpoint."""
    found = {}
    for name, layer in module.named_modules():
        if hasattr(layer, "get_delta_weight"):
            (adapter,) = layer.active_adapters
            found[f"{name}.weight"] = layer.get_delta_weight(adapter)
    return found
