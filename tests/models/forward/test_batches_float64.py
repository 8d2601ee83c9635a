"""What a batch's decoder weights differ from eager attention by in float32 is rounding: in float64 it is gone.

T5's scores are not scaled and reach hundreds, so that the last digits of a product of another shape, added up in
another order, show in the weights: by up to 5.8e-6 where 1e-6 is asked of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from attention_models.attention import attention
from attention_models.attention.inputs import Part
from attention_models.forward.model import Model
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.batch import PaddingSide
from tests.models import tiny
from tests.models.forward.test_batches import SIDES, own_batch, queries_of, ran, stacks_of, with_padding
from tests.models.tiny import TinyFolder


@pytest.fixture
def in_double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Once called, what is computed in single precision, here and in transformers, is computed in double."""

    def begin() -> None:
        monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
        monkeypatch.setattr(torch, "float32", torch.float64)
        torch.set_default_dtype(torch.float64)

    yield begin
    monkeypatch.undo()
    torch.set_default_dtype(torch.float32)


def largest_difference(model: Model, module: torch.nn.Module, side: PaddingSide) -> float:
    """Largest |ours - eager| of a weight, over every row of every head that is no padding."""
    with torch.no_grad():
        out = module(**own_batch(model, side), output_attentions=True)
    worst = 0.0
    for row, trace in enumerate(ran(model, side)):
        seen = dict.fromkeys((site.stack for site in trace.sites), 0)
        for site, x in zip(trace.sites, trace.inputs, strict=True):
            theirs = stacks_of(out, model)[site.stack][seen[site.stack]][row]
            seen[site.stack] += 1
            real = [i for i, token in enumerate(queries_of(trace, site.stack)) if not token.padding]
            for head in range(site.heads):
                ours = attention.weights(x, Part([head]))[0, 0]
                assert ours.dtype == theirs.dtype == x.query.dtype
                worst = max(worst, float((ours - theirs[head])[real].abs().max()))
    return worst


@pytest.mark.parametrize(
    ("kind", "side"),
    # BART itself counts the padding on the left as positions; here each text is read as if alone (test_batches)
    [(kind, side) for kind in ("t5", "mt5", "bart") for side in SIDES if (kind, side) != ("bart", "left")],
)
def test_in_float64_a_batch_equals_eager_to_its_last_digits(
    tiny_folder: TinyFolder, kind: str, side: PaddingSide, in_double: Callable[[], None]
) -> None:
    model = with_padding(open_checkpoint(tiny_folder(kind)))
    module = tiny.eager(model)
    assert largest_difference(model, module, side) < 1e-5
    for either in (module, model.module):
        either.double()
    in_double()
    assert largest_difference(model, module, side) < 1e-13
