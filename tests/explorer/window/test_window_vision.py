"""A window that looks at pictures, driven by mouse and keyboard, with a real model behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.panels.positions.panel import PositionsPanel
from attention_explorer.session.intents import OpenCheckpoint, SelectKey, SetPicture, Show
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.number_text import value_text
from attention_explorer.window.window import MainWindow
from attention_models.files.sample_pictures import SAMPLES
from attention_models.protocol.head import HeadView
from attention_models.protocol.positions import PatchPositionsView
from attention_models.protocol.prediction import PredictionView
from tests.explorer import documents
from tests.explorer.real_window import click, opened_window, panel_of, press, settle, wait_until


@pytest.fixture(scope="module")
def shared(qapp) -> Iterator[MainWindow]:
    with opened_window("vit-quickdraw", "") as window:
        yield window


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    shared.session.dispatch(SetPicture("sample:fish-1"))
    shared.session.dispatch(Show(None))
    settle(shared)
    return shared


def best(window: MainWindow) -> str:
    view = window.session.state.results.of(PredictionView)
    assert view is not None
    return view.predictions[0].candidates[0].label


@pytest.fixture
def drawing(tmp_path: Path) -> Path:
    """A rainbow, as a file of one's own."""
    path = tmp_path / "mein bild ñ.png"
    source = SAMPLES / "drawings" / "rainbow-1.png"
    Image.open(source).resize((112, 112)).save(path)
    return path


def drop(window: MainWindow, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    action, button, no_key = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(window.rect().center(), action, data, button, no_key)
    window.dragEnterEvent(enter)
    assert enter.isAccepted()
    window.dropEvent(QDropEvent(QPointF(window.rect().center()), action, data, button, no_key))
    settle(window)


def test_it_opens_with_a_sample(window):
    state = window.session.state
    assert state.notice is None
    assert state.document.picture == "sample:fish-1"
    assert state.selection.query == 0
    assert best(window) == "fish"
    assert window.input.picture.isVisible()
    assert not window.input.text.isVisible()
    assert not window.input.step_button.isVisible()
    assert "28 × 28 pixels in 7 × 7 patches" in window.input.picture.facts.text()
    assert panel_of(window, NextTokenPanel).card.accessibleName() == "What it sees"
    assert panel_of(window, HeadMapPanel).isVisible()


def test_panels_for_texts_are_put_away(window):
    for name in ("decoding", "alignment"):
        assert not window.dock_host.docks[name].toggleViewAction().isChecked()
    for name in ("cell", "masks", "positions", "lookup"):
        assert window.dock_host.docks[name].toggleViewAction().isChecked()


def test_an_effect_is_one_on_the_classes(window):
    window.dock_host.docks["masks"].raise_()
    settle(window)
    panel = panel_of(window, MaskScalePanel)
    assert panel.effect.next_title.text() == "What it sees in the picture"
    window.dock_host.docks["next"].raise_()
    settle(window)


def test_positions_of_patches_are_compared_and_linked_with_the_selected_one(window):
    window.dock_host.docks["positions"].raise_()
    settle(window)
    panel = panel_of(window, PositionsPanel)
    grid = panel.patches.grid
    assert not panel.chooser.isVisible()
    view, ran = window.session.state.results.of(PatchPositionsView), window.session.state.ran
    assert view is not None
    assert view.alike is not None
    assert view.alike.shape == (7, 7, 7, 7)
    assert "Dosovitskiy et al. 2021" in panel.patches.words.text()
    click(grid, grid.map_rect(17).center().toPoint())
    settle(window)
    assert ran is not None
    assert ran.seen is not None
    assert window.session.state.selection.query == ran.seen.first + 17
    press(grid, Qt.Key.Key_Down)
    settle(window)
    assert window.session.state.selection.query == ran.seen.first + 24
    assert grid.readout().startswith("r4 c4 and ")
    window.session.dispatch(SelectKey(ran.seen.first))
    value = value_text(float(view.alike[3, 3, 0, 0]))
    assert grid.readout() == f"r4 c4 and r1 c1: {value}"
    window.session.dispatch(SetPicture("sample:cat-1"))
    settle(window)
    newer = window.session.state.results.of(PatchPositionsView)
    assert newer is not None
    np.testing.assert_array_equal(newer.alike, view.alike)  # positions are of the model, not of the picture
    window.dock_host.docks["next"].raise_()
    settle(window)


def test_another_sample_is_chosen_by_the_keyboard(window):
    box = window.input.picture.samples
    box.setFocus()
    here = box.currentIndex()
    press(box, Qt.Key.Key_Down)
    settle(window)
    assert window.session.state.document.picture == box.itemData(here + 1) == "sample:fish-2"
    assert window.session.state.ran.inputs.picture == "sample:fish-2"
    window.session.undo()
    settle(window)
    assert window.session.state.ran.inputs.picture == "sample:fish-1"
    assert box.currentIndex() == here


def test_a_patch_is_selected_by_a_click(window):
    view = window.input.picture.view
    click(view, view.patch_rect(15).center().toPoint())
    settle(window)
    assert window.session.state.selection.query == 16
    assert window.input.caption.text().endswith("from “r3 c2”")
    head = window.session.state.results.of(HeadView)
    coloured = window.input.picture.weights.grab().toImage()
    press(view, Qt.Key.Key_Down)
    settle(window)
    assert window.session.state.selection.query == 23
    assert window.input.picture.weights.grab().toImage() != coloured
    assert head.weights.shape == (50, 50)
    click(window.input.strip, window.input.strip.chip_rect(0).center().toPoint())
    assert window.session.state.selection.query == 0


def test_a_file_is_dropped(window, drawing):
    drop(window, drawing)
    assert window.session.state.document.picture == str(drawing)
    assert best(window) == "rainbow"
    assert window.input.picture.samples.currentText() == "mein bild ñ.png"
    assert window.input.picture.facts.text().endswith("Of the picture: 112 × 112 scaled to 28 × 28.")


def test_what_was_squeezed_and_dropped_is_said(window, tmp_path):
    path = tmp_path / "glass.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 52, 4), dtype=np.uint8)).save(path)
    drop(window, path)
    said = "52 × 30 squeezed to 28 × 28; alpha dropped; colours turned grey."
    assert window.input.picture.facts.text().endswith(said)


def test_a_file_is_opened(window, drawing, monkeypatch):
    monkeypatch.setattr(dialogs, "file_to_open", lambda *_: str(drawing))
    QTest.mouseClick(window.input.picture.open_button, Qt.MouseButton.LeftButton)
    settle(window)
    assert window.session.state.ran.inputs.picture == str(drawing)


def test_a_broken_file_leaves_the_last_picture(window, tmp_path):
    broken = tmp_path / "half.png"
    noise = np.random.default_rng(0).integers(0, 256, (60, 60), dtype=np.uint8)
    Image.fromarray(noise).save(broken)
    broken.write_bytes(broken.read_bytes()[:900])
    drop(window, broken)
    assert "half.png is broken" in window.session.state.notice.text
    assert window.session.state.ran.inputs.picture == "sample:fish-1"
    window.session.undo()
    settle(window)
    assert window.session.state.notice is None


def test_a_file_that_is_no_picture_leaves_the_one_before_it_by_its_name_too(window, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    run, row = window.session.state.ran, window.input.picture
    before = row.view.grab().toImage()
    window.session.dispatch(SetPicture(str(bad)))
    settle(window)
    assert "bad.png is no picture that can be read" in window.notice_bar.text
    assert window.session.state.document.picture == "sample:fish-1"
    assert row.samples.currentData() == "sample:fish-1"
    assert row.samples.findData(str(bad)) < 0
    assert window.session.state.ran is run
    assert window.session.state.up_to_date
    assert row.view.grab().toImage() == before
    window.session.undo()
    settle(window)
    assert window.session.state.document.picture != str(bad)


def test_a_picture_that_is_squeezed_is_said_to_be(window, tmp_path):
    wide = tmp_path / "wide.png"
    Image.fromarray(np.zeros((200, 300, 3), np.uint8)).save(wide)
    window.session.dispatch(SetPicture(str(wide)))
    settle(window)
    assert "300 × 200 squeezed to" in window.input.picture.facts.text()


def test_the_picture_grows_with_the_window_and_keeps_its_shape(window):
    for width, height, side in ((1280, 800, 120), (1920, 1080, 232), (1920, 2000, 500), (1280, 800, 120)):
        window.resize(width, height)
        picture = window.input.picture.view
        wait_until(lambda: picture.size() == QSize(side, side) and window.input.height() < 0.3 * height)  # noqa: B023


def test_a_session_names_the_picture(window, drawing, tmp_path):
    drop(window, drawing)
    path = tmp_path / "session.json"
    documents.save(window.session.state.document, path)
    assert documents.load(path).picture == str(drawing)


def test_a_model_of_text_and_back(window, drawing):
    window.session.dispatch(OpenCheckpoint("story-bert"))
    settle(window)
    assert window.input.text.isVisible()
    assert not window.input.picture.isVisible()
    assert window.session.state.document.text
    drop(window, drawing)
    notice = window.session.state.notice
    assert "reads text" in notice.text
    assert notice.action == OpenCheckpoint("vit-cifar10")
    window.session.dispatch(OpenCheckpoint("vit-quickdraw"))
    settle(window)
    assert best(window) == "fish"
