"""How the window looks and where its panels are, with the real engine: hover, hiding, themes, colours, help."""

from __future__ import annotations

import time

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QTextBrowser

from attention_explorer.look.colour_maps import sequential
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import SetText, Show
from attention_explorer.session.state import Notice
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models import load_weights
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.views import export
from attention_models.views.export import save_weights
from tests.explorer.answering import answering, pressing
from tests.explorer.real_window import (
    bars,
    click,
    click_head,
    click_token,
    colour_at,
    panel_of,
    paste,
    picture,
    press,
    requests_of,
    settle,
    wait_until,
)
from tests.explorer.widgets.pictures import rgb
from tests.explorer.widgets.pointer import move_pointer

pytestmark = pytest.mark.x


def colour_of_cell(window: MainWindow, query: int, key: int) -> tuple[int, int, int]:
    heat_map = panel_of(window, HeadMapPanel).map
    return colour_at(picture(heat_map), heat_map.cell_rect(query, key).center().toPoint())


# --------------------------------------------------------------------------- hover


def test_hover_shows_everywhere_and_computes_nothing(window):
    heat_map = panel_of(window, HeadMapPanel).map
    strip = window.input.strip
    state, sizes = window.session.state, [panel.geometry() for panel in (window.input, *window.panels)]
    calm_map, calm_strip = picture(heat_map), picture(strip)
    with requests_of(window) as asked:
        move_pointer(heat_map, heat_map.cell_rect(9, 3).center().toPoint())
        assert window.hover.pointed.query == 9
        assert window.hover.pointed.key == 3
        assert window.input.caption.text() == "arcs: layer 5, head 5, from “Anna”"
        assert picture(heat_map) != calm_map
        assert picture(strip) != calm_strip
        QApplication.sendEvent(heat_map, QEvent(QEvent.Type.Leave))
        assert picture(heat_map) == calm_map
        assert picture(strip) == calm_strip
        assert window.input.caption.text() == "arcs: layer 5, head 5, from “to”"
        move_pointer(strip, strip.chip_rect(6).center().toPoint())
        assert picture(heat_map) != calm_map  # the crosshair
        QApplication.sendEvent(strip, QEvent(QEvent.Type.Leave))
        assert picture(heat_map) == calm_map
    QApplication.processEvents()
    assert asked == []
    assert window.session.state is state
    assert [panel.geometry() for panel in (window.input, *window.panels)] == sizes


def test_hover_over_a_thumbnail_selects_nothing(window):
    atlas = panel_of(window, HeadAtlasPanel).atlas
    before = window.session.state
    with requests_of(window) as asked:
        move_pointer(atlas, atlas.cell_rect(1, 2).center().toPoint())
    assert (window.hover.pointed.site.layer, window.hover.pointed.head) == (1, 2)
    assert asked == []
    assert window.session.state is before
    QApplication.sendEvent(atlas, QEvent(QEvent.Type.Leave))


# --------------------------------------------------------------------------- panels


def test_a_hidden_panel_asks_for_nothing_and_catches_up(window):
    before = bars(window)
    window.menus["panel_next"].trigger()
    assert not panel_of(window, NextTokenPanel).isVisible()
    with requests_of(window) as asked:
        click_token(window, 1)
        settle(window)
    assert not any(isinstance(request, PredictionRequest) for request in asked)
    assert bars(window) == before
    with requests_of(window) as asked:
        window.menus["panel_next"].trigger()
        settle(window)
    assert [type(request) for request in asked] == [PredictionRequest]
    assert window.session.state.results.of(PredictionView).predictions[0].position == 1
    assert bars(window) != before


def test_a_panel_that_missed_a_whole_run_shows_the_new_one(window):
    window.menus["panel_heads"].trigger()
    paste(window, "Tom went home")
    settle(window)
    assert window.session.state.results.of(AtlasView).request.run != window.session.state.ran.run
    window.menus["panel_heads"].trigger()
    settle(window)
    assert window.session.state.results.of(AtlasView).request.run == window.session.state.ran.run
    assert window.session.state.results.of(AtlasView).images.shape[2:] == (4, 4)


def test_heads_walked_over_quickly_are_asked_for_and_the_last_one_is_shown(window):
    with requests_of(window) as asked:
        for head in (0, 1, 2, 3, 4, 6, 7):
            click_head(window, 3, head)
    assert {request.head for request in asked if isinstance(request, HeadRequest)} == {0, 1, 2, 3, 4, 6, 7}
    settle(window)
    assert window.session.state.results.of(HeadView).request.head == 7


def test_the_layout_can_be_changed_and_reset(window):
    docks = window.dock_host.docks
    docks["heads"].setFloating(True)
    docks["map"].hide()
    QApplication.processEvents()
    window.menus["reset"].trigger()
    QApplication.processEvents()
    settle(window)
    assert docks["heads"].isVisible()
    assert docks["map"].isVisible()
    assert not any(dock.isFloating() for dock in docks.values())
    assert docks["flow"].x() < docks["next"].x()
    window.heads_side_by_side()  # as the tests below expect it
    settle(window)


# --------------------------------------------------------------------------- look


def test_the_dark_theme_and_back(window):
    table = sequential("viridis")
    light = colour_of_cell(window, 1, 13)
    corner = QPoint(3, window.height() - 3)
    assert colour_at(picture(window), corner) == rgb(QColor(LIGHT.window))
    window.menus["theme_dark"].trigger()
    QApplication.processEvents()
    assert colour_at(picture(window), corner) == rgb(QColor(DARK.window))
    heat_map = panel_of(window, HeadMapPanel).map
    assert heat_map.theme is DARK
    assert colour_of_cell(window, 0, 0) == tuple(table[255])  # the numbers keep their colours
    masked = colour_of_cell(window, 1, 13)
    assert sum(masked) < 300 < sum(light)
    assert window.settings.theme == "dark"
    window.menus["theme_light"].trigger()
    QApplication.processEvents()
    assert colour_at(picture(window), corner) == rgb(QColor(LIGHT.window))


def test_colour_maps_reach_the_map_the_bar_and_the_thumbnails(window):
    panel, atlas = panel_of(window, HeadMapPanel), panel_of(window, HeadAtlasPanel).atlas
    before = picture(panel.bar), picture(atlas)
    window.menus["colour_map_magma"].trigger()
    settle(window)
    assert colour_of_cell(window, 0, 0) == tuple(sequential("magma")[255])
    assert picture(panel.bar) != before[0]
    assert picture(atlas) != before[1]
    assert window.menus["colour_map_magma"].isChecked()
    window.session.undo()
    settle(window)
    assert colour_of_cell(window, 0, 0) == tuple(sequential("viridis")[255])
    assert window.menus["colour_map_viridis"].isChecked()


def test_scaling_by_row_divides_each_row_by_its_largest_weight(window):
    panel = panel_of(window, HeadMapPanel)
    panel.scale.setFocus()
    press(panel.scale, Qt.Key.Key_Down)
    settle(window)
    weights = window.session.state.results.of(HeadView).weights
    ratio = float(weights[13, 1] / weights[13].max())
    assert panel.map.readout(13, 1) == f"“to” looks at “Tom”: weight / max {ratio:.3f}"
    assert all(colour_of_cell(window, row, int(weights[row].argmax())) == tuple(sequential()[255]) for row in range(14))


def test_the_mean_over_heads_stands_beside_each_layer(window):
    atlas = panel_of(window, HeadAtlasPanel).atlas
    window.menus["mean_column"].trigger()
    settle(window)
    mean = window.session.state.results.of(AtlasView).mean
    np.testing.assert_allclose(mean[3], window.session.state.results.of(AtlasView).images[3].mean(axis=0), atol=1e-6)
    assert atlas.head_name(3, 8) == "layer 3, mean of its heads"
    assert window.menus["mean_column"].isChecked()


def test_text_grows_shrinks_and_comes_back(window):
    size = window.input.caption.font().pointSizeF()
    window.settings.text_scale = 1.9
    window.menus["larger"].trigger()
    assert window.settings.text_scale == 2.0
    wait_until(lambda: window.input.caption.font().pointSizeF() == pytest.approx(2 * size))
    QApplication.processEvents()
    assert window.input.text.viewport().height() >= window.input.text.fontMetrics().lineSpacing()
    window.settings.text_scale = 0.8
    window.menus["smaller"].trigger()
    assert window.settings.text_scale == 0.75
    window.menus["normal"].trigger()
    wait_until(lambda: window.input.caption.font().pointSizeF() == pytest.approx(size))
    window.resize(1280, 800)
    QApplication.processEvents()


def test_a_key_that_is_held_down_lays_the_window_out_once_and_no_more_at_the_limit(window, monkeypatch):
    laid_out: list[float] = []
    monkeypatch.setattr(type(window), "apply_theme", lambda self: laid_out.append(self.settings.text_scale))
    for _ in range(30):
        window.menus["larger"].trigger()
    wait_until(lambda: bool(laid_out))
    window.menus["larger"].trigger()
    QTest.qWait(50)
    assert laid_out == [2.0]
    for _ in range(2):
        window.menus["normal"].trigger()
    QTest.qWait(50)
    assert laid_out == [2.0, 1.0]


@pytest.mark.parametrize("factor", [2.0, 1.3, 0.75])
def test_columns_are_as_before_when_text_is(window, factor):
    def widths() -> list[int]:
        return [dock.width() for name, dock in window.dock_host.docks.items() if name in ("flow", "next")]

    window.reset_layout()
    QTest.qWait(500)
    before = widths()
    window.scale_text(factor)
    QTest.qWait(1000)
    window.scale_text(0)
    wait_until(lambda: widths() == pytest.approx(before, abs=2))
    window.heads_side_by_side()  # as the tests below expect it
    settle(window)


def test_full_screen_and_back(window):
    window.menus["full"].trigger()
    assert window.isFullScreen()
    window.menus["full"].trigger()
    assert not window.isFullScreen()
    window.resize(1280, 800)
    QApplication.processEvents()


def test_full_screen_goes_back_to_a_window_that_was_maximised(window):
    window.showMaximized()
    QApplication.processEvents()
    for full in (True, False):
        window.menus["full"].trigger()
        QApplication.processEvents()
        assert window.isFullScreen() is full
    assert window.isMaximized()
    window.showNormal()
    window.resize(1280, 800)
    window.activateWindow()
    wait_until(window.isActiveWindow)


# --------------------------------------------------------------------------- help and files


def test_f1_opens_the_help_and_escape_closes_it(window):
    press(window.input.text, Qt.Key.Key_F1)
    dialog = window.findChild(QDialog)
    assert dialog.isVisible()
    assert dialog.windowTitle() == "Help"
    assert "attention" in dialog.findChild(QTextBrowser).toPlainText()
    press(dialog, Qt.Key.Key_Escape)
    wait_until(lambda: window.findChild(QDialog) is None)


def test_about_names_the_versions_it_stands_on(window):
    window.menus["about"].trigger()
    dialog = window.findChild(QDialog)
    text = dialog.findChild(QTextBrowser).toPlainText()
    assert "torch 2." in text
    assert "(not installed)" not in text
    press(dialog, Qt.Key.Key_Escape)
    wait_until(lambda: window.findChild(QDialog) is None)


def test_saving_a_picture_and_the_weights(window, tmp_path, monkeypatch):
    chosen = {"png": tmp_path / "a.png", "npz": tmp_path / "a.npz"}
    monkeypatch.setattr(
        dialogs, "file_to_save", lambda _parent, _title, name, *_: (str(chosen[name.rsplit(".")[-1]]), "")
    )
    window.menus["picture"].trigger()
    assert chosen["png"].stat().st_size > 10_000
    window.menus["weights"].trigger()
    wait_until(lambda: str(chosen["npz"]) in window.notice_bar.text)
    settle(window)
    with np.load(chosen["npz"]) as written:
        np.testing.assert_array_equal(written["decoder.5"][5], window.session.state.results.of(HeadView).weights)


def test_a_saved_picture_is_said_and_has_no_older_sentence_in_it(window, tmp_path, monkeypatch):
    window.dock_host.setFocus()  # a cursor would blink
    QApplication.processEvents()
    without = window.grab().toImage()
    window.session.dispatch(Show(Notice("warning", "An older sentence")))
    QApplication.processEvents()
    assert window.grab().toImage() != without
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(tmp_path / "mypic"), "PNG (*.png)"))
    window.menus["picture"].trigger()
    assert window.notice_bar.text == f"The picture is saved: {tmp_path / 'mypic.png'}."
    saved = QImage(str(tmp_path / "mypic.png"))
    assert saved.convertToFormat(without.format()) == without


@pytest.mark.parametrize(("typed", "file"), [("mypic", "mypic.jpg"), ("my.pic", "my.pic.jpg"), ("a.png", "a.png")])
def test_a_picture_gets_the_ending_of_its_kind(window, tmp_path, monkeypatch, typed, file):
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(tmp_path / typed), "JPEG (*.jpg *.jpeg)"))
    window.menus["picture"].trigger()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [file]
    assert not QImage(str(tmp_path / file)).isNull()


def test_a_small_file_is_not_of_no_bytes(window, tmp_path, monkeypatch):
    window.session.dispatch(SetText("Tom"))
    settle(window)
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(tmp_path / "few"), "NumPy (*.npz)"))
    window.menus["weights"].trigger()
    wait_until((tmp_path / "few.npz").exists)
    settle(window)
    assert window.notice_bar.text.endswith(f"({(tmp_path / 'few.npz').stat().st_size / 1000:.1f} kB).")


@pytest.mark.parametrize(
    ("typed", "kind", "file"),
    [
        ("a.np", "NumPy (*.npz)", "a.npz"),
        ("b", "safetensors (*.safetensors)", "b.safetensors"),
        ("c.safetensors", "NumPy (*.npz)", "c.safetensors"),
    ],
)
def test_an_ending_typed_wrongly_is_mended(window, tmp_path, monkeypatch, typed, kind, file):
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(tmp_path / typed), kind))
    window.menus["weights"].trigger()
    wait_until((tmp_path / file).exists)
    settle(window)
    assert file in window.notice_bar.text
    before = (tmp_path / file).stat()
    leaves = iter([(str(tmp_path / typed), kind), ("", "")])
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: next(leaves))
    with answering(pressing("Keep it")) as said:
        window.menus["weights"].trigger()
    settle(window)
    assert said == [f"{file} is there already."]
    assert (tmp_path / file).stat() == before
    saved = load_weights(tmp_path / file)
    assert saved.text == window.session.state.ran.inputs.prompt


def test_saving_weights_is_cancelled_with_a_button_and_leaves_no_file(window, tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(path), ""))

    def long_file(trace, path, should_stop, report, words):
        """As of a long text: it writes until it is called off."""
        for _ in range(3000):
            if should_stop():
                break
            time.sleep(0.01)
        return save_weights(trace, path, should_stop, report, words=words)

    with monkeypatch.context() as patch:
        patch.setattr(export, "save_weights", long_file)
        window.menus["weights"].trigger()
        cancel = window.top_bar.cancel
        wait_until(lambda: window.top_bar.doing.text() == "Writing the weights …")
        assert cancel.isVisible()
        click(cancel, cancel.rect().center())
        settle(window)
        assert window.notice_bar.text == "Saving the weights was cancelled."
        assert not cancel.isVisible()
        window.input.run_model()
        settle(window)  # the worker is free again
    assert list(tmp_path.glob("a.npz*")) == []
    window.menus["weights"].trigger()
    wait_until(path.exists)
    settle(window)


def test_a_picture_that_cannot_be_written_is_told(window, tmp_path, monkeypatch):
    path = tmp_path / "missing" / "a.png"
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(path), ""))
    window.menus["picture"].trigger()
    assert window.notice_bar.text.startswith(f"The picture could not be written to {path}: there is no such folder.")
