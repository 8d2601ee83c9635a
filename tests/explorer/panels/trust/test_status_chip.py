"""Status chips."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.look.theme import DARK
from attention_explorer.panels.trust.status_chip import StatusChip
from tests.explorer.visible_texts import painted
from tests.explorer.widgets.pictures import rendered


@pytest.fixture
def chip(qtbot) -> StatusChip:
    widget = StatusChip("eval mode", "ok")
    qtbot.addWidget(widget)
    widget.resize(widget.sizeHint())
    return widget


@pytest.mark.parametrize(
    ("kind", "sign", "spoken"),
    [
        ("ok", "✓", "holds"),
        ("pending", "…", "being measured"),
        ("none", "–", "not measured"),
        ("warning", "!", "warning"),
        ("error", "✕", "does not hold"),
    ],
)
def test_a_sign_tells_the_state_without_colour(chip, kind, sign, spoken):
    chip.set_status(kind, "rows sum to 1", "largest error 1.2e-7")
    assert chip.text == f"{sign} rows sum to 1"
    assert chip.kind == kind
    assert chip.accessibleName() == f"rows sum to 1: {spoken}"
    assert chip.toolTip() == "largest error 1.2e-7"


def test_what_is_said_again_is_not_news(chip, qtbot):
    chip.set_status("ok", "rows sum to 1", "largest error 1.2e-7")
    with qtbot.assertNotEmitted(chip.said):
        chip.set_status("ok", "rows sum to 1", "largest error 1.2e-7")
    for news in (("ok", "rows sum to 1", "largest error 3.4e-7"), ("error", "rows sum to 1", "largest error 3.4e-7")):
        with qtbot.waitSignal(chip.said):
            chip.set_status(*news)
        assert chip.toolTip() == "largest error 3.4e-7"


@pytest.mark.parametrize(("kind", "drawn"), [("ok", "✓"), ("pending", "…"), ("error", "✕ rows"), ("warning", "! rows")])
def test_without_room_only_bad_news_is_cut(chip, kind, drawn):
    chip.set_status(kind, "rows miss 1")
    chip.resize(chip.width_of(chip.text) - 30, chip.height())
    with painted() as seen:
        rendered(chip)
    assert seen == [drawn] if kind in ("ok", "pending") else seen[0].startswith(drawn) and seen[0].endswith("…")


def test_its_size_follows_the_text(chip):
    before = chip.sizeHint().width()
    chip.set_status("ok", "equals the model (1.5e-7)")
    assert chip.sizeHint().width() > before


def test_it_is_only_clickable_when_told(chip, qtbot):
    assert chip.focusPolicy() == Qt.FocusPolicy.NoFocus
    with qtbot.assertNotEmitted(chip.clicked):
        qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
        qtbot.keyClick(chip, Qt.Key.Key_Return)
    chip.set_clickable(True)
    with qtbot.waitSignal(chip.clicked):
        qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(chip.clicked):
        qtbot.keyClick(chip, Qt.Key.Key_Space)


def test_state_and_theme_change_the_picture(chip):
    ok = rendered(chip)
    chip.set_status("error", "eval mode")
    error = rendered(chip)
    assert error != ok
    chip.set_theme(DARK)
    assert rendered(chip) != error
