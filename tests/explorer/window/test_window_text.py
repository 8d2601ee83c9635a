"""The input with the real engine: typing, steps, masks, undo, and texts that no model was made for."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QToolButton, QWidget

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.window.window import MainWindow
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.head import HeadView
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.running import ForwardRequest
from tests.explorer.real_window import (
    EXAMPLE,
    bars,
    click,
    click_head,
    click_token,
    panel_of,
    paste,
    press,
    requests_of,
    settle,
    wait_until,
)

pytestmark = pytest.mark.x

CONTROL = Qt.KeyboardModifier.ControlModifier

ODD_TEXTS = {
    "emoji": "A 👩‍👩‍👧 and a 🇪🇸 flag 🏳️‍🌈",
    "arabic": "قال الولد مرحبا",
    "mixed directions": "Tom said שלום to Anna",
    "nul": "Tom\0Anna",
    "combining": "e\u0301o\u0323\u0302 \u0301",
    "no-break spaces": "Tom\u00a0and\u3000Anna",
    "controls": "a\tb\x07c\x7f",
    "invisible": "To\u200bm\u2060 \ufeff\u3164",
    "lines": "Tom\n\nAnna\n",
}


def words(window: MainWindow) -> list[str]:
    ran = window.session.state.ran
    assert ran is not None
    return [token.word for token in ran.tokens]


def reference(window: MainWindow) -> str:
    loaded = window.session.state.results.loaded
    assert loaded is not None
    return loaded.info.reference


def open_bert(window: MainWindow) -> None:
    press(window.top_bar.menu, Qt.Key.Key_Down)
    wait_until(lambda: window.is_settled() and reference(window) == "story-bert")


# --------------------------------------------------------------------------- typing, running, undo


def test_the_model_runs_as_one_types_and_the_selection_follows_the_end(window):
    QTest.keyClicks(window.input.text, " him")
    settle(window)
    assert window.session.state.ran.inputs.prompt == EXAMPLE + " him"
    assert words(window)[-1] == "him"
    assert window.session.state.selection.query == 14
    assert window.session.state.results.of(PredictionView).predictions[0].position == 14


def test_enter_runs_again_and_shift_enter_breaks_the_line(window):
    before = window.session.state.ran
    press(window.input.text, Qt.Key.Key_Return)
    settle(window)
    assert window.session.state.ran is not before
    assert window.session.state.ran.inputs.prompt == EXAMPLE
    press(window.input.text, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    settle(window)
    assert window.session.state.ran.inputs.prompt == EXAMPLE + "\n"
    assert words(window)[-1] == "⏎"


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_a_step_from_inside_the_input_writes_the_likeliest_token(window, key):
    press(window.input.text, key, CONTROL)
    settle(window)
    assert window.input.text.text() == EXAMPLE + " Tom"
    assert window.session.state.ran.inputs.prompt == EXAMPLE + " Tom"
    assert window.session.state.selection.query == 14


def test_undo_and_redo_from_inside_the_input(window):
    press(window.input.text, Qt.Key.Key_Return, CONTROL)
    settle(window)
    QTest.keyClicks(window.input.text, ".")
    settle(window)
    for text in (EXAMPLE + " Tom", EXAMPLE):
        press(window.input.text, Qt.Key.Key_Z, CONTROL)
        settle(window)
        assert window.input.text.text() == window.session.state.ran.inputs.prompt == text
    for text in (EXAMPLE + " Tom", EXAMPLE + " Tom."):
        press(window.input.text, Qt.Key.Key_Y, CONTROL)
        settle(window)
        assert window.input.text.text() == window.session.state.ran.inputs.prompt == text
    assert not window.menus["redo"].isEnabled()


def test_undo_of_a_selection_restores_the_head(window):
    click_head(window, 2, 3)
    settle(window)
    press(window.input.text, Qt.Key.Key_Z, CONTROL)
    settle(window)
    view = window.session.state.results.of(HeadView)
    assert (view.request.site.layer, view.request.head) == (5, 5)


def test_the_buttons_do_what_their_keys_do(window):
    with requests_of(window) as asked:
        click(window.input.run_button, window.input.run_button.rect().center())
    assert [type(request) for request in asked] == [ForwardRequest]
    settle(window)
    with requests_of(window) as asked:
        click(window.input.step_button, window.input.step_button.rect().center())
    assert [type(request) for request in asked] == [DecodeStepRequest]
    settle(window)
    assert window.input.text.text() == EXAMPLE + " Tom"


# --------------------------------------------------------------------------- another checkpoint


def test_the_checkpoint_menu_opens_another_model_and_comes_back(window):
    open_bert(window)
    state = window.session.state
    assert window.windowTitle() == "story-bert - Attention Explorer"
    assert "[MASK]" in window.input.text.text() == state.ran.inputs.prompt
    assert state.ran.masks
    assert state.selection.query == state.ran.masks[0]
    assert state.site.stack == "encoder"
    assert panel_of(window, NextTokenPanel).card.accessibleName() == "Masked tokens"
    assert panel_of(window, HeadMapPanel).map.readout(0, len(words(window)) - 1).startswith("“[CLS]” looks at “[SEP]”")
    assert window.input.mask_button.isVisible()
    press(window.top_bar.menu, Qt.Key.Key_Up)
    wait_until(lambda: window.is_settled() and reference(window) == "story-gpt")
    assert window.input.text.text() == EXAMPLE
    assert bars(window).startswith("␣Tom 67.9 %, ")
    assert not window.input.mask_button.isVisible()


def test_ctrl_m_masks_the_selected_word_and_the_model_fills_it_in(window):
    open_bert(window)
    paste(window, "Tom went to the park.")
    settle(window)
    click_token(window, words(window).index("park"))
    press(window.input.text, Qt.Key.Key_M, CONTROL)
    settle(window)
    assert window.input.text.text() == "Tom went to the [MASK]."
    likeliest = bars(window).split()[0]
    assert 0.05 < window.session.state.results.of(PredictionView).predictions[0].candidates[0].probability < 0.5
    press(window.input.text, Qt.Key.Key_Return, CONTROL)
    settle(window)
    assert window.input.text.text() == f"Tom went to the {likeliest}."


def test_ctrl_m_masks_what_is_marked_in_the_text(window):
    open_bert(window)
    paste(window, "😀 Tom went home.")
    settle(window)
    cursor = window.input.text.textCursor()
    cursor.setPosition(3)  # the emoji takes two places
    cursor.setPosition(6, cursor.MoveMode.KeepAnchor)
    window.input.text.setTextCursor(cursor)
    press(window.input.text, Qt.Key.Key_M, CONTROL)
    assert window.input.text.text() == "😀 [MASK] went home."


def test_a_very_long_word_neither_widens_the_window_nor_stops_it(window):
    open_bert(window)
    paste(window, "Tom " + "a" * 5000)
    settle(window)
    assert any(len(word) > 4000 for word in words(window))
    click_token(window, 2)
    settle(window)
    QApplication.processEvents()
    assert window.width() == 1280
    assert window.minimumSizeHint().width() <= 1280


def drop(widget: QWidget, folder: Path) -> bool:
    """Drag a folder from the desktop over `widget` and let it go there; whether anything took it."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(folder))])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    where = widget.rect().center()
    enter = QDragEnterEvent(where, Qt.DropAction.CopyAction, mime, left, none)
    QApplication.sendEvent(widget, enter)
    if not enter.isAccepted():
        return False
    QApplication.sendEvent(widget, QDropEvent(QPointF(where), Qt.DropAction.CopyAction, mime, left, none))
    return True


@pytest.mark.parametrize("place", ["window", "input"])
def test_a_bad_folder_gets_a_sentence_and_the_session_stays(window, tmp_path, place):
    ran = window.session.state.ran
    folder = tmp_path / "leer und übel"
    folder.mkdir()
    assert drop({"window": window, "input": window.input.text.viewport()}[place], folder)
    assert window.session.state.loading == str(folder)
    wait_until(lambda: window.session.state.notice is not None)
    settle(window)
    assert window.notice_bar.isVisible()
    assert "leer und übel" in window.notice_bar.text
    assert "config.json" in window.notice_bar.text
    assert window.session.state.ran is ran
    assert window.input.text.text() == EXAMPLE
    assert window.top_bar.menu.currentData() == "story-gpt"
    click_head(window, 3, 3)
    settle(window)
    assert window.session.state.results.of(HeadView).request.head == 3


def test_what_was_called_off_by_a_bad_folder_is_asked_again(window, tmp_path):
    click_head(window, 4, 4)
    window.session.dispatch(OpenCheckpoint(str(tmp_path)))  # before the head's weights are here
    wait_until(lambda: window.session.state.loading is None)
    settle(window)
    view = window.session.state.results.of(HeadView)
    assert (view.request.site.layer, view.request.head) == (4, 4)


def test_a_checkpoint_folder_dropped_on_the_window_opens(window, tmp_path):
    folder = tmp_path / "my story"
    folder.mkdir()
    for file in Path(window.session.state.results.loaded.info.folder).iterdir():
        (folder / file.name).symlink_to(file)
    assert drop(window, folder)
    wait_until(lambda: window.is_settled() and reference(window) == str(folder))
    assert window.top_bar.menu.currentData() == str(folder)
    assert window.settings.recent == [str(folder)]
    assert bars(window).startswith("␣Tom 67.9 %, ")


# --------------------------------------------------------------------------- texts no model was made for


def test_a_text_that_is_too_long_offers_to_keep_what_fits(window):
    before = window.session.state.ran
    paste(window, "the " * 600)
    wait_until(lambda: window.session.state.notice is not None)
    assert window.session.state.ran is before
    assert "512" in window.notice_bar.text
    button = next(b for b in window.notice_bar.findChildren(QPushButton) if b.text() == "Keep what fits")
    click(button, button.rect().center())
    settle(window)
    assert not window.notice_bar.isVisible()
    assert len(window.session.state.ran.tokens) == 512
    assert window.session.state.ran.inputs.prompt == window.input.text.text()


def test_an_emptied_input_gets_a_sentence_and_the_next_letter_takes_it_away(window):
    ran = window.session.state.ran
    press(window.input.text, Qt.Key.Key_A, CONTROL)
    press(window.input.text, Qt.Key.Key_Delete)
    settle(window)
    assert window.input.text.text() == ""
    assert window.session.state.ran is ran
    assert window.notice_bar.text.startswith("The input is empty.")
    assert window.session.state.notice.kind == "info"  # an invitation: nothing went wrong
    assert not window.input.step_button.isEnabled()
    assert window.input.caption.text().startswith("tokens of the last text that ran · ")
    QTest.keyClicks(window.input.text, "A")
    assert not window.notice_bar.isVisible()
    settle(window)
    assert words(window) == ["⟨start⟩", "A"]
    press(window.input.text, Qt.Key.Key_Backspace)
    settle(window)
    assert window.session.state.notice.action_label == "Use the example"
    use = next(button for button in window.notice_bar.findChildren(QPushButton) if button.text() == "Use the example")
    click(use, use.rect().center())
    settle(window)
    assert window.input.text.text() == EXAMPLE
    assert not window.notice_bar.isVisible()


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_odd_texts_are_run_as_they_were_pasted(window, text):
    paste(window, text)
    settle(window)
    assert window.session.state.notice is None
    assert window.session.state.ran.inputs.prompt == window.input.text.text() == text
    assert all(word.strip() for word in words(window))
    for token in range(len(words(window))):
        click_token(window, token)
    settle(window)
    assert window.session.state.selection.query == len(words(window)) - 1


def test_an_input_method_commits_whole_characters(window):
    event = QInputMethodEvent()
    event.setCommitString(" 日本語👍🏽")
    QApplication.sendEvent(window.input.text, event)
    settle(window)
    assert window.session.state.ran.inputs.prompt == EXAMPLE + " 日本語👍🏽"


def test_a_megabyte_is_refused_with_a_sentence(window):
    with requests_of(window) as asked:
        paste(window, "x" * 1_000_000)
    assert "1,000,000 characters" in window.notice_bar.text
    assert "Nothing was pasted" in window.notice_bar.text
    assert window.input.text.text() == EXAMPLE
    assert asked == []
    dismiss = window.notice_bar.findChild(QToolButton)
    click(dismiss, dismiss.rect().center())
    assert not window.notice_bar.isVisible()
    assert window.session.state.notice is None


def test_text_that_is_typed_faster_than_it_runs_ends_up_run(window):
    for _ in range(40):
        QTest.keyClicks(window.input.text, " and then")
    settle(window)
    assert window.session.state.ran.inputs.prompt == EXAMPLE + " and then" * 40
    assert window.session.state.selection.query == len(words(window)) - 1
