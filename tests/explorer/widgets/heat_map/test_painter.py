"""The title of the keys' axis: whole where there is room, never beyond the widget."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QFont, QFontMetricsF

from attention_explorer.look.theme import LIGHT
from attention_explorer.widgets.heat_map.frame import frame_for
from attention_explorer.widgets.heat_map.painter import KEY_TITLE, MapPainter
from attention_explorer.widgets.heat_map.view import MapView
from attention_models.protocol.word_spans import MERGED


@pytest.mark.parametrize("keys", [3, 40])
@pytest.mark.parametrize(
    ("share", "note", "expected"),
    [
        (1.1, "", KEY_TITLE),
        (1.1, MERGED, f"{KEY_TITLE} · {MERGED}"),
        (0.9, MERGED, f"key · {MERGED}"),
        (0.4, MERGED, "…"),
    ],
)
def test_the_title_of_the_keys_stays_in_the_widget(qapp, keys, share, note, expected):
    font = QFont()
    metrics = QFontMetricsF(font)
    size = QSize(round(share * metrics.horizontalAdvance(f"{KEY_TITLE} · {MERGED}")), 300)
    names = ["unbelievably"] * keys
    frame = frame_for(font, font, size, names, names)
    room = frame.room
    view = MapView.fit(keys, keys, room.x(), room.y(), room.width(), room.height())
    rect, _, text = MapPainter(LIGHT, frame, view, 1.0, note).key_title()
    assert text == expected or (expected == "…" and text.startswith("key · w") and text.endswith("…"))
    assert rect.left() >= 0
    assert rect.right() <= size.width()
    assert rect.width() >= metrics.horizontalAdvance(text)
    assert rect.top() > view.rows.end
