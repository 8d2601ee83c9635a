"""What the pages of Effects draw and say: units, and cells that stay empty."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.panels.effects.pages import before_sentence, head_sentence, heads_grid, patch_grid, tokens_grid
from attention_explorer.panels.effects.questions import in_unit
from attention_explorer.widgets.number_text import signed, value_text
from attention_models.protocol.effects import (
    Account,
    EffectsRequest,
    EffectsView,
    ExplanationRequest,
    ExplanationView,
    MetricValue,
    PatchRequest,
    PatchView,
    SiteEffects,
)
from attention_models.protocol.information import Unit
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.effects.test_panel import AIM, NOW, effects
from tests.explorer.session import answers

LOSS = replace(AIM, measure="loss", target=None, target_label="", value=3.0)
SITE = SiteRef("decoder", 4)


def measured_on_loss() -> EffectsView:
    before = MetricValue(value=2.0, best_label="␣Anna", best_share=0.5, loss=2.0)
    return effects(EffectsRequest(run=1), aim=LOSS, now=replace(NOW, value=3.0), before=before)


@pytest.mark.parametrize(("unit", "factor"), [("nats", 1.0), ("bits", 1 / math.log(2))])
def test_a_loss_is_told_in_the_unit_that_was_chosen(unit: Unit, factor: float) -> None:
    told = in_unit(measured_on_loss(), unit)
    said = head_sentence(told, (SITE, 1), unit)
    assert said.startswith(f"The loss in {unit} is {value_text(3 * factor)}. ")
    assert signed(-3 * factor) in said
    assert f"the loss in {unit} {value_text(2 * factor)} → {value_text(3 * factor)};" in before_sentence(told, unit)
    grid = heads_grid(told, unit)
    assert grid.values[4, 1] == pytest.approx(-3 * factor)
    assert f"the loss in {unit} is " in grid.tips[4][1]
    values = np.array([[3.0, 2.5]])
    patched = PatchView(
        request=PatchRequest(run=1, other="x", kind="head"),
        aim=LOSS,
        other_value=2.0,
        rows=(SITE,),
        values=values,
        stands_for=(0, 1),
        other_labels=("a", "b"),
    )
    of_patch = in_unit(patched, unit)
    patch = patch_grid(of_patch, answers.ran(), unit)
    assert patch is not None
    assert patch.tips[0][1].endswith(f"the loss in {unit} is {value_text(2.5 * factor)}")
    np.testing.assert_allclose(of_patch.shares, patched.shares, atol=1e-12)


@pytest.mark.parametrize(("unit", "factor"), [("nats", 1.0), ("bits", 1 / math.log(2))])
def test_a_logit_has_no_unit_and_the_loss_beside_it_does(unit: Unit, factor: float) -> None:
    before = MetricValue(value=7.0, best_label="␣Anna", best_share=0.5, loss=2.0)
    told = in_unit(effects(EffectsRequest(run=1), before=before), unit)
    said = before_sentence(told, unit)
    assert "“Tom” 7.000 → 9.000" in said
    assert said.endswith(f"loss {value_text(2 * factor)} → {value_text(3 * factor)} {unit}.")


def test_a_token_that_cannot_be_seen_is_no_zero() -> None:
    ran = answers.ran()
    count = len(ran.tokens)
    reached = np.arange(count) < count - 1
    view = ExplanationView(
        request=ExplanationRequest(run=1),
        aim=AIM,
        accounts=(Account("attention", np.where(reached, 0.25, 0.0)),),
        correlations=np.ones((1, 1)),
        reached=reached,
    )
    grid = tokens_grid(view, ran)
    np.testing.assert_array_equal(np.isnan(grid.values[0]), ~reached)


def test_a_head_of_several_stacks_is_named_with_its_stack() -> None:
    """Layer 3, head 3 is one of the encoder, one of the decoder and one of cross-attention."""
    view = effects(EffectsRequest(run=1))
    of_cross = replace(view, sites=(*view.sites, SiteEffects(SiteRef("cross", 3), np.array([0.0, -9.0]))))
    said = head_sentence(of_cross, (SITE, 0), "bits")
    assert "Most changes without cross-attention layer 3, head 1: −9" in said
    assert "Without the selected head (decoder layer 4, head 0): " in said
    assert heads_grid(of_cross, "bits").tips[-1][1].startswith("cross-attention layer 3, head 1: without it")
    assert heads_grid(view, "bits").tips[4][1].startswith("layer 4, head 1: without it")
