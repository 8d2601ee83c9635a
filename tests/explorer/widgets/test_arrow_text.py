from __future__ import annotations

import pytest
from PySide6.QtGui import QFont, QFontMetricsF
from PySide6.QtWidgets import QApplication

from attention_explorer.widgets.labels import elided

PAIR = "durmiendo → sobre"


@pytest.mark.parametrize("share", [1.0, 0.9, 0.7, 0.5, 0.35])
def test_a_pair_keeps_its_arrow_and_fits(qapp: QApplication, share: float) -> None:
    metrics = QFontMetricsF(QFont("DejaVu Sans", 12))
    room = share * metrics.horizontalAdvance(PAIR)
    shown = elided(metrics, PAIR, room)
    assert metrics.horizontalAdvance(shown) <= room + 1
    assert " → " in shown
    assert shown.startswith("d") or share < 0.7
    assert shown == PAIR or "…" in shown
    assert shown.endswith("→ sobre") == (share >= 0.7)


def test_any_other_text_is_cut_in_its_middle(qapp: QApplication) -> None:
    metrics = QFontMetricsF(QFont("DejaVu Sans", 12))
    shown = elided(metrics, "unbelievable", 0.6 * metrics.horizontalAdvance("unbelievable"))
    assert shown.startswith("un")
    assert shown.endswith("e")
    assert "…" in shown
