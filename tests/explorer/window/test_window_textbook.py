"""Every panel over textbook transformers in a real window: none is switched off, and each says what is so."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDockWidget

from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.trust.panel import TrustStrip
from attention_explorer.panels.variance.panel import VariancePanel
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until
from tests.models.textbook_folders import KINDS, TEXT, text_for, write_folder


@pytest.mark.parametrize("kind", ["additive", "llama-like", "slopes-both-ways", "not-causal"])
def test_every_panel(qapp, tmp_path, caplog, kind):
    folder = write_folder(tmp_path / kind, **KINDS[kind])
    shape = KINDS[kind].get("shape", "encoder-decoder")
    with opened_window(str(folder), text_for(shape) if shape == "encoder" else TEXT) as window:
        assert window.session.state.ran is not None
        for panel in list(window.panels):
            dock = panel.parent()
            while dock is not None and not isinstance(dock, QDockWidget):
                dock = dock.parent()
            if dock is not None:
                dock.show()
                dock.raise_()
                QTest.qWait(150)
                settle(window)
        assert not [record for record in caplog.records if "switched off" in record.getMessage()]
        additive = kind == "additive"
        assert panel_of(window, MaskScalePanel).scale_knobs.isHidden() == additive
        wait_until(lambda: "v · tanh(q + k)" in panel_of(window, VariancePanel).real.text() or not additive)
        trust = window.findChild(TrustStrip)
        assert isinstance(trust, TrustStrip)
        wait_until(lambda: "equals the model" in trust.equal.text)
