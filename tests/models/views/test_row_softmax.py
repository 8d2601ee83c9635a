"""A row's softmax taken apart, against eager attention of transformers' gpt-oss, whose heads have sinks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

from attention_models import run
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.interventions import Mask
from attention_models.protocol.matrices import MatricesRequest
from attention_models.protocol.values import SiteRef
from attention_models.views.cell import cell_view, taken_apart
from attention_models.views.matrices import matrices_view
from tests.models import tiny
from tests.models.flow.blocks import close

SITE, HEAD, HIDDEN = SiteRef("decoder", 1), 1, 3
MASK = Mask("painted", cells=tuple((HIDDEN, key, False) for key in range(HIDDEN + 1)), site=SITE, head=HEAD)


@torch.no_grad()
def test_where_nothing_is_visible_the_sink_takes_all_as_in_eager_attention(tiny_model):
    """Row 3 sees nothing, the others what comes before them: cell and matrices say what transformers' code computes."""
    model = tiny_model("gpt_oss")
    trace = run(model, tiny.SENTENCE, interventions=(MASK,))
    x = trace.inputs[trace.index(SITE)]
    mask = torch.zeros(1, x.heads, x.queries, x.keys)
    mask[:, HEAD, HIDDEN] = torch.finfo(torch.float32).min
    mask.masked_fill_(torch.ones(x.queries, x.keys, dtype=torch.bool).triu(1), torch.finfo(torch.float32).min)
    module: Any = SimpleNamespace(num_key_value_groups=x.group, sinks=x.sinks, training=False)
    _, theirs = eager_attention_forward(module, x.query, x.key, x.value, mask, x.scale)
    weights = theirs[0, HEAD].double().numpy()  # (queries, keys)
    assert not weights[HIDDEN].any()
    view = matrices_view(MatricesRequest(run=1, site=SITE, head=HEAD), model, trace)
    assert view.sink is not None
    close(view.weights, weights)
    close(view.sink / view.denominator, 1.0 - weights.sum(axis=1))
    assert x.sinks is not None
    assert (view.shift[HIDDEN], view.sink[HIDDEN], view.denominator[HIDDEN]) == (np.float32(x.sinks[HEAD]), 1.0, 1.0)
    for query in (HIDDEN, HIDDEN + 1):
        cell = cell_view(CellRequest(run=1, site=SITE, head=HEAD, query=query, key=2), model, trace)
        assert cell.sink is not None
        close(cell.weight, weights[query, 2])
        close(cell.numerator / cell.denominator, weights[query, 2])
        close(cell.sink / cell.denominator, 1.0 - weights[query].sum())
        assert cell.shift == pytest.approx(float(view.shift[query]))


def test_without_a_sink_a_row_in_which_nothing_is_visible_is_no_softmax():
    scores = np.array([[1.0, 2.0, -1.0], [3.0, 4.0, 5.0]], np.float32)
    masked = np.array([[False, False, True], [True, True, True]])
    found = taken_apart(scores, masked, None)
    powers = np.exp(np.array([1.0, 2.0]))
    assert found.sink is None
    assert found.shift[0] == 2.0
    assert np.isnan(found.shift[1])
    close(found.numerators[0] / found.denominator[0], np.append(powers / powers.sum(), 0.0))
    assert not found.numerators[1].any()
    assert found.denominator[1] == 0.0
