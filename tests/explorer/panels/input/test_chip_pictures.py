"""How often chips are drawn: once, until text, font, theme or width is another one."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import DARK
from attention_explorer.panels.input import chip_pictures
from attention_explorer.panels.input.chip_pictures import Chip
from attention_explorer.panels.input.token_strip import TokenStripArea
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

WORDS = [Chip(f"word{i}") for i in range(200)]


@pytest.fixture
def drawn(monkeypatch) -> list[str]:
    """The labels of the chips that were drawn, in order."""
    labels: list[str] = []
    draw = chip_pictures.draw_label

    def counted(painter, chip, *rest):
        labels.append(chip.label)
        draw(painter, chip, *rest)

    monkeypatch.setattr(chip_pictures, "draw_label", counted)
    return labels


@pytest.fixture
def area(qtbot, drawn) -> TokenStripArea:
    widget = TokenStripArea(most_lines=3)
    qtbot.addWidget(widget)
    widget.resize(600, 10)
    widget.set_tokens(WORDS)
    widget.show()
    return widget


def paint(area: TokenStripArea, drawn: list[str]) -> set[str]:
    """Paint what can be seen; which chips were drawn for it."""
    drawn.clear()
    rendered(area)
    return set(drawn)


def visible(area: TokenStripArea) -> set[str]:
    seen = area.strip.visibleRegion().boundingRect().toRectF()
    return {chip.label for i, chip in enumerate(WORDS) if area.strip.chip_rect(i).intersects(seen)}


def test_what_can_be_seen_is_drawn_once(area, drawn):
    rendered(area)
    assert visible(area) <= set(drawn) < {chip.label for chip in WORDS}
    assert len(drawn) == len(set(drawn))
    assert paint(area, drawn) == set()


def test_selection_arcs_shades_and_the_pointer_draw_no_chip(area, drawn, qtbot):
    plain = rendered(area)
    area.strip.set_selection(3, 1)
    area.strip.set_arcs(np.full(len(WORDS), 0.5, np.float32), 3)
    assert paint(area, drawn) == set()
    area.strip.set_shades(np.full(len(WORDS), 0.5, np.float32))
    move_pointer(area.strip, area.strip.chip_rect(2).center().toPoint())
    qtbot.keyClick(area.strip, Qt.Key.Key_Right)
    assert paint(area, drawn) == set()
    assert rendered(area) != plain


def test_another_text_is_drawn(area, drawn):
    paint(area, drawn)
    area.set_tokens([Chip("one"), Chip("two")])
    assert paint(area, drawn) == {"one", "two"}


@pytest.mark.parametrize("change", ["theme", "font", "width", "special", "screen"])
def test_another_look_is_drawn(area, drawn, change):
    rendered(area)
    drawn.clear()
    if change == "theme":
        area.set_theme(DARK)
    elif change == "font":
        font = area.strip.font()
        font.setPointSizeF(font.pointSizeF() * 1.5)
        area.strip.setFont(font)
    elif change == "width":
        area.resize(400, area.height())
        QApplication.processEvents()
    elif change == "special":
        area.strip.set_dim_special(False)
    else:
        area.strip.devicePixelRatioF = lambda: 2.0
        QApplication.sendEvent(area.strip, QEvent(QEvent.Type.DevicePixelRatioChange))
    rendered(area, area.strip.devicePixelRatioF())
    assert visible(area) <= set(drawn)


def test_what_is_scrolled_to_is_drawn_and_what_was_left_is_kept(area, drawn):
    paint(area, drawn)
    bar = area.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert "word199" in paint(area, drawn)
    bar.setValue(0)
    assert paint(area, drawn) == set()


def test_a_font_that_reaches_the_chips_last_still_decides_the_height(area):
    font = area.strip.font()
    font.setPointSizeF(font.pointSizeF() * 1.5)
    area.strip.setFont(font)
    assert area.height() == area.wanted_height()
