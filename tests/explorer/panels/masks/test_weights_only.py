"""The Masks panel of a model that shows its weights alone: no masks and scales, all else."""

from __future__ import annotations

import pytest

from attention_explorer.session.intents import PutIntervention
from attention_explorer.session.state import Document
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.masks_host import opened_host
from tests.models import tiny


def test_what_can_be_switched_off_can_be_and_is_listed(qapp, tmp_path):
    checkpoint = str(tiny.save("bloom", tmp_path / "bloom"))
    with opened_host(Document(checkpoint, tiny.SENTENCE)) as host:
        panel, state = host.masks, host.session.state
        assert state.results.loaded is not None
        why = state.results.loaded.info.weights_only
        assert why
        assert panel.card.refusal == ""
        assert panel.unseen.isVisible()
        assert panel.unseen.text().startswith(why)
        assert not any(knobs.isVisible() for knobs in (panel.scope_chooser, panel.mask_knobs, panel.scale_knobs))
        assert panel.part_switches.isVisible()
        host.session.dispatch(PutIntervention(Ablation("mlp", SiteRef("decoder", 1))))
        host.settle()
        assert panel.list.isVisible()
        assert len(panel.list.lines) == 1
        view = host.session.state.results.of(CompareView)
        assert view is not None
        assert view.loss_before != pytest.approx(view.loss_after)
