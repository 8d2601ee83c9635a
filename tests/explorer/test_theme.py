"""The two themes and the colour maps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton

from attention_explorer.look import colour_maps, theme
from attention_explorer.look.theme import DARK, LIGHT, Theme
from tests.explorer.real_window import look_put_back

BOTH = pytest.mark.parametrize("look", [LIGHT, DARK], ids=lambda look: look.name)
ROLES = [field.name for field in fields(Theme) if field.name not in ("name", "is_dark")]


def test_contrast_of_known_pairs():
    assert theme.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert theme.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert theme.contrast("#336699", "#336699") == 1


@BOTH
@pytest.mark.parametrize("role", ["text", "text_dim", "query", "key", "ok", "warning", "error"])
@pytest.mark.parametrize("ground", ["surface", "surface_alt", "window"])
def test_text_reads_on_every_surface(look, role, ground):
    assert theme.contrast(getattr(look, role), getattr(look, ground)) >= 4.5


@BOTH
@pytest.mark.parametrize("ground", ["surface", "surface_alt", "window"])
def test_text_and_lines_stand_out_on_a_projector(look, ground):
    shown = theme.for_projector(look)
    lines = ("bar", "border_strong", "attention", "cross", "feed_forward", "system", "user", "assistant")
    for role in ("text", "text_dim", "query", "key", "ok", "warning", "error", "first", "second", "focus", *lines):
        assert theme.contrast(getattr(shown, role), getattr(shown, ground)) >= 4.5, role
    assert theme.contrast(shown.stream, getattr(shown, ground)) >= 3
    assert getattr(shown, ground) == getattr(look, ground)


@BOTH
@pytest.mark.parametrize("accent", ["query", "key", "bar"])
def test_text_reads_upon_an_accent_on_a_projector(look, accent):
    shown = theme.for_projector(look)
    assert theme.contrast(shown.on_accent, getattr(shown, accent)) >= 4.5


@BOTH
def test_what_stands_out_already_stays_on_a_projector(look):
    shown = theme.for_projector(look)
    assert (shown.text, shown.key, shown.name) == (look.text, look.key, look.name)


@BOTH
def test_a_ticked_box_has_a_tick(qtbot, look):
    with look_put_back() as app:
        theme.apply(app, look)
        box = QCheckBox("All keys")
        qtbot.addWidget(box)
        box.setChecked(True)
        box.show()
        box.clearFocus()
        image = box.grab().toImage()
        seen = {QColor(image.pixel(x, y)).name() for x in range(20) for y in range(image.height())}
        assert {look.key, look.on_accent} <= seen
        box.setChecked(False)
        image = box.grab().toImage()
        assert look.key not in {QColor(image.pixel(x, y)).name() for x in range(20) for y in range(image.height())}


@BOTH
@pytest.mark.parametrize("ground", ["query", "key"])
def test_text_reads_upon_an_accent(look, ground):
    assert theme.contrast(look.on_accent, getattr(look, ground)) >= 4.5


@BOTH
def test_focus_ring_stands_out_and_borrows_no_accent(look):
    assert theme.contrast(look.focus, look.surface) >= 3
    assert look.focus not in (look.query, look.key)


@BOTH
def test_every_role_is_a_colour(look):
    for role in ROLES:
        assert re.fullmatch(r"#[0-9a-f]{6}", getattr(look, role)), role


def test_a_theme_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        LIGHT.text = "#000000"  # type: ignore[misc]


@BOTH
def test_stylesheet_is_complete(look):
    sheet = theme.stylesheet(look)
    assert "$" not in sheet
    assert sheet.count("{") == sheet.count("}")
    assert set(re.findall(r"#[0-9a-f]{6}", sheet)) <= {getattr(look, role) for role in ROLES}


@BOTH
def test_palette_follows_the_theme(look):
    palette = theme.palette(look)
    assert palette.color(QPalette.ColorRole.Window) == QColor(look.window)
    assert palette.color(QPalette.ColorRole.WindowText) == QColor(look.text)
    disabled = palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert disabled == QColor(look.border_strong)


@pytest.fixture
def restored_application(qapp: QApplication) -> Iterator[QApplication]:
    """The application, which gets its own look back after the test."""
    style, font, palette = qapp.style().name(), qapp.font(), qapp.palette()
    yield qapp
    qapp.setStyleSheet("")
    qapp.setStyle(style)
    qapp.setFont(font)
    qapp.setPalette(palette)


@BOTH
def test_apply_restyles_a_living_application(restored_application, qtbot, look):
    button, line, label = QPushButton("Run"), QLineEdit("text"), QLabel("dim")
    label.setProperty("role", "dim")
    for widget in (button, line, label):
        qtbot.addWidget(widget)
    restored_application.setFont(QFont("Sans", 6))
    theme.apply(restored_application, look)
    label.ensurePolished()
    line.ensurePolished()
    assert label.palette().color(QPalette.ColorRole.WindowText) == QColor(look.text_dim)
    assert line.palette().color(QPalette.ColorRole.Text) == QColor(look.text)
    assert restored_application.font().pointSizeF() == theme.SMALLEST_FONT


@pytest.mark.parametrize("name", theme.SEQUENTIAL_MAPS)
def test_sequential_maps_grow_lighter_throughout(name):
    table = colour_maps.sequential(name)
    assert table.shape == (256, 3)
    assert table.dtype == np.uint8
    luminance = table.astype(float) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) > -1.5).all()
    assert luminance[-1] > luminance[0] + 100


def test_the_maps_are_those_that_others_ship():
    from pyqtgraph import colormap

    for name in theme.SEQUENTIAL_MAPS:
        np.testing.assert_array_equal(colour_maps.sequential(name), colormap.get(name).getLookupTable(nPts=256)[:, :3])
    np.testing.assert_array_equal(colour_maps.diverging(), colormap.get("CET-D1A").getLookupTable(nPts=256)[:, :3])


def test_an_unknown_map_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="viridis"):
        colour_maps.sequential("rainbow")


def test_diverging_map_is_palest_at_zero_and_blue_against_red():
    table = colour_maps.diverging()
    luminance = table.astype(float) @ [0.2126, 0.7152, 0.0722]
    assert 120 <= int(luminance.argmax()) <= 135
    assert table[0, 2] > table[0, 0]
    assert table[-1, 0] > table[-1, 2]


def test_maps_are_shared_and_read_only():
    assert colour_maps.sequential("viridis") is colour_maps.sequential("viridis")
    with pytest.raises(ValueError, match="read-only"):
        colour_maps.diverging()[0, 0] = 1


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # an offscreen list takes no keyboard
@pytest.mark.parametrize("points", [10.0, 20.0])
def test_a_drop_down_shows_its_last_entry(qapp, qtbot, points):
    with look_put_back():
        font = qapp.font()
        font.setPointSizeF(points)
        qapp.setFont(font)
        theme.apply(qapp, LIGHT)
        box = QComboBox()
        box.addItems(["story-gpt", "Change", "Prefix", "a longer one", "vit-quickdraw"])
        qtbot.addWidget(box)
        box.show()
        box.showPopup()
        view = box.view()
        qtbot.waitUntil(view.isVisible)
        for row in range(box.count()):
            place = view.visualRect(box.model().index(row, 0))
            assert view.viewport().rect().contains(place)
        box.hidePopup()
