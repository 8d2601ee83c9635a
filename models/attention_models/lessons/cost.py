"""What a run costs: cells, multiplications, and what is kept for the next token. Counted, not timed."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from attention_models.dataflow.matrices import is_matrix
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.run import run
from attention_models.lessons.reading import Reading


def cells(r: Reading) -> float:
    """Weights of all heads of all layers, masked ones too."""
    return float(sum(site.heads * site.queries * site.keys for site in r.trace.sites))


def attention_products(r: Reading) -> float:
    """Multiplications in Q Kᵀ and in the mix of values, of all heads of all layers, masked cells too."""
    inputs = r.trace.inputs
    return float(sum(x.heads * x.queries * x.keys * (x.query.shape[-1] + x.value.shape[-1]) for x in inputs))


def matrix_products(r: Reading) -> float:
    """Multiplications of tokens' vectors by learned matrices in one pass, the output matrix left out."""
    model = r.model
    if isinstance(model, RecurrentModel):
        raise ValueError("it is of transformers")
    module: nn.Module = model.module
    last = getattr(module, "get_output_embeddings", lambda: None)()
    counted = [0]

    def count(matrix: nn.Module, args: tuple[Tensor, ...], _out: Any) -> None:
        weight = matrix.weight
        assert isinstance(weight, Tensor)
        counted[0] += args[0].numel() // args[0].shape[-1] * weight.numel()

    hooks = [each.register_forward_hook(count) for each in module.modules() if is_matrix(each) and each is not last]
    try:
        run(model, r.prompt, target=r.target, should_stop=r.should_stop)
    finally:
        for hook in hooks:
            hook.remove()
    return float(counted[0])


def cached_bytes(r: Reading) -> float:
    """Of the keys and values of all layers: what a decoder keeps in order to write on."""
    return float(sum(t.numel() * t.element_size() for x in r.trace.inputs for t in (x.key, x.value)))
