"""Which module is a normalisation, and with which numbers: told by what it computes."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor, nn

from attention_models.dataflow.norms import norm_of

WIDTH = 16


def _learned(module: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn_like(p))
    return module


class Own(nn.Module):
    """A layer norm as a person writes it, whose eps has no name."""

    def __init__(self) -> None:
        super().__init__()
        self.g, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x, (WIDTH,), self.g, self.bias, 1e-6)


def llama() -> nn.Module:
    return transformers.models.llama.modeling_llama.LlamaRMSNorm(WIDTH)


def gemma() -> nn.Module:
    return transformers.models.gemma.modeling_gemma.GemmaRMSNorm(WIDTH)


def t5() -> nn.Module:
    return transformers.models.t5.modeling_t5.T5LayerNorm(WIDTH)


@pytest.mark.parametrize("offset", [0.0, 3.0])
@pytest.mark.parametrize(
    ("make", "rms", "added"),
    [
        (lambda: nn.LayerNorm(WIDTH), False, 0.0),
        (lambda: nn.LayerNorm(WIDTH, eps=1e-12, bias=False), False, 0.0),
        (lambda: nn.RMSNorm(WIDTH, eps=1e-6), True, 0.0),
        (llama, True, 0.0),
        (t5, True, 0.0),
        (gemma, True, 1.0),  # keeps what is added to 1
        (Own, False, 0.0),
    ],
)
@torch.no_grad()
def test_a_norm_is_found_with_its_gain(make, rms, added, offset):
    module = _learned(make())
    x = torch.randn(2, 5, WIDTH) + offset
    norm = norm_of(module, x, module(x))
    assert norm is not None
    assert norm.rms == rms
    weight = next(iter(module.parameters())).double() + added
    torch.testing.assert_close(norm.gain, weight)
    assert (norm.bias is None) == (len(list(module.parameters())) == 1)
    torch.testing.assert_close(norm(x.reshape(-1, WIDTH)).float(), module(x).reshape(-1, WIDTH), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_what_computes_something_else_is_none():
    x = torch.randn(2, 5, WIDTH)
    for module in (nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Identity()):
        assert norm_of(module, x, module(x)) is None
    norm = nn.LayerNorm(WIDTH)
    _learned(norm)
    assert norm_of(norm, x, norm(x) + 1e-2) is None
    assert norm_of(norm, x, nn.functional.layer_norm(x, (WIDTH,), norm.weight * 1.01, norm.bias)) is None
    plain = norm_of(norm, x, nn.functional.layer_norm(x, (WIDTH,)))
    assert plain is not None
    assert plain.gain is None
    assert plain.bias is None
