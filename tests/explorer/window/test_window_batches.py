"""A window that runs several texts at once, driven by keyboard and mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import AddTexts, OpenCheckpoint, RestoreDocument, SetChat, Show
from attention_explorer.session.state import Document
from attention_explorer.widgets import dialogs as save_dialog
from attention_explorer.window import dialogs as window_pictures
from attention_explorer.window.window import MainWindow
from attention_models import load_weights, open_checkpoint, run
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.batch import Batch
from attention_models.protocol.head import HeadView
from attention_models.protocol.trust import TrustReport
from tests.explorer.real_window import click, opened_window, panel_of, press, settle, wait_until

pytestmark = pytest.mark.x

TEXTS = ("Tom and Anna went to the park.", "A cat", "There was a dog.")
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(scope="module")
def shared(qapp) -> Iterator[MainWindow]:
    with opened_window("story-gpt", TEXTS[0]) as window:
        yield window


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    shared.session.dispatch(RestoreDocument(Document(checkpoint="story-gpt", text=TEXTS[0])))
    shared.session.dispatch(Show(None))
    settle(shared)
    return shared


def typed(window: MainWindow) -> None:
    window.input.text.setFocus()
    for text in TEXTS[1:]:
        press(window, Qt.Key.Key_A, CONTROL | SHIFT)
        assert window.input.text.hasFocus()
        QTest.keyClicks(window.input.text, text)
    settle(window)


def prompt(window: MainWindow) -> Batch:
    found = window.session.state.document.prompt
    assert isinstance(found, Batch)
    return found


def test_texts_are_typed_and_stepped_through_without_another_run(window: MainWindow, monkeypatch) -> None:
    before = window.input.height()
    assert not any(part.isVisible() for part in window.input.batch.row)
    typed(window)
    assert prompt(window) == Batch(TEXTS, "right", 2)
    assert window.input.height() <= before + 60
    assert window.height() == 800
    traces = run(open_checkpoint("story-gpt"), [*TEXTS])
    from attention_models.forward import run as module

    monkeypatch.setattr(module, "run_batch", lambda *_, **__: pytest.fail("another run"))
    for key, shown in ((Qt.Key.Key_PageUp, 1), (Qt.Key.Key_PageUp, 0), (Qt.Key.Key_PageDown, 1)):
        press(window, key, CONTROL)
        settle(window)
        assert prompt(window).shown == shown
        assert window.input.text.text() == TEXTS[shown]
        ran, view = window.session.state.ran, window.session.state.results.of(HeadView)
        assert ran is not None
        assert view is not None
        assert ran.tokens == traces[shown].tokens
        np.testing.assert_array_equal(view.weights, traces[shown].weights(view.request.site, view.request.head))
        assert not ran.tokens[window.session.state.selection.query].padding
    assert window.input.batch.list.currentText() == f"2 of 3:  {TEXTS[1]}"


@pytest.mark.full
def test_its_buttons_and_list_do_the_same(window: MainWindow) -> None:
    typed(window)
    batch = window.input.batch
    assert not batch.next.isEnabled()
    click(batch.previous, batch.previous.rect().center())
    settle(window)
    assert prompt(window).shown == 1
    batch.list.setFocus()
    QTest.keyClick(batch.list, Qt.Key.Key_Up)
    settle(window)
    assert prompt(window).shown == 0
    assert not batch.previous.isEnabled()
    click(batch.remove, batch.remove.rect().center())
    settle(window)
    assert prompt(window) == Batch(TEXTS[1:])
    click(batch.remove, batch.remove.rect().center())
    settle(window)
    assert window.session.state.document.prompt == TEXTS[2]
    assert not batch.list.isVisible()
    press(window, Qt.Key.Key_Z, CONTROL)
    press(window, Qt.Key.Key_Z, CONTROL)
    settle(window)
    assert prompt(window) == Batch(TEXTS)


def test_padding_on_the_left_is_faint_named_and_no_fault_of_the_rows(window: MainWindow) -> None:
    typed(window)
    press(window, Qt.Key.Key_PageUp, CONTROL)
    left = window.input.batch.side.button(1)
    click(left, left.rect().center())
    settle(window)
    assert prompt(window).padding == "left"
    wait_until(lambda: window.session.state.results.of(TrustReport) is not None)
    settle(window)
    state = window.session.state
    report, atlas, ran = state.results.of(TrustReport), state.results.of(AtlasView), state.ran
    assert report is not None
    assert report.holds
    assert ran is not None
    padded = [i for i, token in enumerate(ran.tokens) if token.padding]
    assert padded == list(range(len(padded)))
    assert padded
    assert atlas is not None
    assert (atlas.empty_rows, atlas.padding_rows) == (0, 64 * len(padded))
    assert window.top_bar.trust.rows.text == "✓ rows sum to 1"
    assert f"{64 * len(padded)} rows of padding may attend to nothing" in window.top_bar.trust.rows.toolTip()
    heads = panel_of(window, HeadMapPanel)
    assert heads.map.readout(len(padded), 0).endswith("cannot look at “⟨pad⟩”: masked")
    image = heads.map.grab().toImage()
    real, faint = (heads.map.cell_rect(i, i).center().toPoint() for i in (len(padded), 0))
    ratio = image.devicePixelRatio()
    colours = [image.pixelColor(int(at.x() * ratio), int(at.y() * ratio)).lightnessF() for at in (faint, real)]
    assert colours[0] > 0.9  # nearly the ground, where the hatching is
    assert {"", "fills this text up"} & {chip.tooltip for chip in window.input.strip.chips} == set()
    assert all("fills this text up" in window.input.strip.chips[i].tooltip for i in padded)


def test_right_padding_attends_and_is_named_in_the_readout(window: MainWindow) -> None:
    typed(window)
    press(window, Qt.Key.Key_PageUp, CONTROL)
    settle(window)
    heads = panel_of(window, HeadMapPanel)
    assert ", of padding: " in heads.map.readout(5, 0)
    assert "padding" not in heads.map.readout(1, 0)


def test_lines_that_were_copied_and_a_file_become_texts(window: MainWindow, tmp_path: Path, monkeypatch) -> None:
    clipboard = QGuiApplication.clipboard()
    clipboard.setText(f"{TEXTS[1]}\n\n  {TEXTS[2]}  \n")
    _trigger(window, "Paste each line as a text")
    settle(window)
    assert prompt(window) == Batch(TEXTS, "right", 1)
    _trigger(window, "Keep only this text")
    settle(window)
    assert window.session.state.document.prompt == TEXTS[1]
    clipboard.setText("  ")
    _trigger(window, "Paste each line as a text")
    assert window.session.state.notice is not None
    assert "What was copied has no line" in window.session.state.notice.text
    (tmp_path / "lines.txt").write_text("One.\nTwo.\n")
    monkeypatch.setattr(save_dialog, "file_to_open", lambda *_: str(tmp_path / "lines.txt"))
    _trigger(window, "Open a file of lines…")
    settle(window)
    assert prompt(window) == Batch((TEXTS[1], "One.", "Two."), "right", 1)
    (tmp_path / "lines.txt").write_bytes(b"caf\xe9")
    _trigger(window, "Open a file of lines…")
    assert window.session.state.notice is not None
    assert "is not text in UTF-8" in window.session.state.notice.text
    assert len(prompt(window).texts) == 3


def test_an_empty_text_asks_for_words_and_goes_when_one_steps_on(window: MainWindow) -> None:
    press(window, Qt.Key.Key_A, CONTROL | SHIFT)
    settle(window)
    notice = window.session.state.notice
    assert notice is not None
    assert (notice.kind, notice.text.startswith("Text 2: The input is empty.")) == ("info", True)
    press(window, Qt.Key.Key_PageUp, CONTROL)
    settle(window)
    assert window.session.state.document.prompt == TEXTS[0]
    assert window.session.state.notice is None


@pytest.mark.full
def test_models_of_one_input_offer_no_further_text(window: MainWindow) -> None:
    typed(window)
    for reference in ("vit-quickdraw", "recurrent-en-es-bahdanau"):
        window.session.dispatch(OpenCheckpoint(reference))
        wait_until(lambda: window.session.state.loading is None)
        settle(window)
        assert window.input.batch.add.isHidden()
        assert not window.input.batch.list.isVisible()
    notice = window.session.state.notice
    assert notice is not None
    assert "takes one text at a time: the 2 others were taken out" in notice.text
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    wait_until(lambda: window.session.state.loading is None)
    settle(window)
    window.session.dispatch(SetChat(False))


@pytest.mark.parametrize("answer", ["All 3 texts", "Text 2 alone"])
def test_saving_the_weights_asks_of_which_texts(window: MainWindow, tmp_path: Path, answer: str) -> None:
    window.session.dispatch(AddTexts(TEXTS[1:]))
    settle(window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(save_dialog, "file_to_save", lambda *_: (str(tmp_path / "w.npz"), ""))
        asked = pressing(answer)
        window.menus["weights"].trigger()
    assert asked == ["3 texts ran together."]
    wait_until(lambda: "The weights are written" in window.notice_bar.text)
    settle(window)
    traces = run(open_checkpoint("story-gpt"), list(TEXTS))
    if answer == "Text 2 alone":
        files = {tmp_path / "w.npz": traces[1]}
        assert str(tmp_path / "w.npz") in window.notice_bar.text
    else:
        files = {tmp_path / f"w-{place}.npz": trace for place, trace in enumerate(traces, start=1)}
        assert f"{tmp_path / 'w-1.npz'} to w-3.npz, a file a text" in window.notice_bar.text
    assert {path for path in tmp_path.iterdir() if path.is_file()} == set(files)
    for path, trace in files.items():
        saved = load_weights(path)
        assert saved.tokens == trace.tokens
        assert [token.padding for token in saved.tokens].count(True) == sum(token.padding for token in trace.tokens)
        np.testing.assert_array_equal(saved.weights("decoder", 3)[5], trace.weights(("decoder", 3), 5))


def test_a_file_that_is_there_is_asked_about_before_all_texts_are_saved(window: MainWindow, tmp_path: Path) -> None:
    window.session.dispatch(AddTexts(TEXTS[1:]))
    settle(window)
    (tmp_path / "w-2.npz").write_bytes(b"older")
    replacing: list[str] = []

    def keep(_parent: object, _title: str, path: Path) -> bool:
        replacing.append(path.name)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_pictures, "may_replace", keep)
        patch.setattr(save_dialog, "file_to_save", lambda *_: (str(tmp_path / "w.npz"), ""))
        pressing("All 3 texts")
        window.menus["weights"].trigger()
    settle(window)
    assert replacing == ["w-2.npz"]
    assert (tmp_path / "w-2.npz").read_bytes() == b"older"
    assert not (tmp_path / "w-1.npz").exists()


def test_who_leaves_the_question_saves_nothing(window: MainWindow, tmp_path: Path) -> None:
    window.session.dispatch(AddTexts(TEXTS[1:]))
    settle(window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(save_dialog, "file_to_save", lambda *_: (str(tmp_path / "w.npz"), ""))
        pressing("Cancel")
        window.menus["weights"].trigger()
    settle(window)
    assert not list(tmp_path.glob("*.npz"))


def pressing(answer: str) -> list[str]:
    """Press a button of the question that is about to come; what it says is in the list once it was pressed."""
    asked: list[str] = []

    def press_it() -> None:
        box = next((widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMessageBox)), None)
        if box is None or not box.isVisible():
            QTimer.singleShot(20, press_it)
            return
        asked.append(box.text())
        button = next(button for button in box.buttons() if button.text().replace("&", "") == answer)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    QTimer.singleShot(20, press_it)
    return asked


def _trigger(window: MainWindow, text: str) -> None:
    next(action for action in window.input.batch.menu.actions() if action.text() == text).trigger()


@pytest.mark.parametrize(
    ("typed", "kind", "saved"),
    [
        ("run 1.5", "safetensors", "run 1.5.safetensors"),  # no ending, though it looks like one
        ("w", "NumPy", "w.npz"),
        ("w.np", "safetensors", "w.npz"),
        ("w.st", "NumPy", "w.safetensors"),
    ],
)
def test_weights_get_the_ending_of_the_kind_that_was_chosen(
    window: MainWindow, tmp_path: Path, typed: str, kind: str, saved: str
) -> None:
    settle(window)
    shown = next(each.filter for each in window_pictures.WEIGHTS if each.name == kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(save_dialog, "file_to_save", lambda *_: (str(tmp_path / typed), shown))
        window.menus["weights"].trigger()
        wait_until((tmp_path / saved).exists)
    settle(window)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [saved]
