"""The dialog in which a checkpoint is chosen, driven by keys and mouse; the window's answers are given by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel

from attention_explorer.chooser.dialog import CheckpointDialog
from attention_explorer.look import theme as themes
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.widgets import dialogs
from attention_models.files.catalogue import SHIPPED
from attention_models.protocol.hub import FetchRequest
from tests.explorer.chooser.desk import Desk, opened_desk
from tests.explorer.chooser.fake_hub import FakeHub, described
from tests.explorer.real_window import press

pytestmark = pytest.mark.x

RECENT = ["/models/mi modelo ñ", "hf://owner/name@v1", "/models/x.gguf"]


@pytest.fixture
def desk(qapp) -> Iterator[Desk]:
    with opened_desk(FakeHub(), RECENT) as desk:
        yield desk


def entries(desk: Desk) -> list[str]:
    return [desk.dialog.choices.item(i).text().strip() for i in range(desk.dialog.choices.count())]


# --------------------------------------------------------------------------- the list


def test_what_is_listed(desk):
    assert entries(desk)[:3] == ["Included", "story-gpt", "story-bert"]
    assert entries(desk)[-4:] == ["Opened lately", "models/mi modelo ñ", "owner/name@v1", "models/x.gguf"]
    assert desk.asked == [("story-gpt", None)]


def test_arrow_keys_choose_and_ask_what_it_is_and_skip_headings(desk):
    choices = desk.dialog.choices
    assert choices.hasFocus()
    press(choices, Qt.Key.Key_Down)
    assert desk.asked[-1] == ("story-bert", None)
    for _ in range(len(SHIPPED) - 2):
        press(choices, Qt.Key.Key_Down)
    assert desk.asked[-1] == (SHIPPED[-1], None)
    press(choices, Qt.Key.Key_Down)
    assert desk.asked[-1] == (RECENT[0], None)


def test_one_of_a_hub_can_be_looked_up_again(desk, qtbot):
    desk.dialog.choices.choose(RECENT[1])
    desk.answer("owner/name is not on this computer yet.", understood=False)
    desk.dialog.hub_box.look_up_button.click()
    qtbot.waitUntil(lambda: desk.asked[-1][1] is not None)
    assert desk.asked[-1][0] == "hf://owner/name@v1"


def test_open_waits_for_the_description(desk):
    assert not desk.dialog.open_button.isEnabled()
    press(desk.dialog.choices, Qt.Key.Key_Return)
    assert desk.opened == []
    desk.answer()
    assert desk.dialog.open_button.isEnabled()
    press(desk.dialog.choices, Qt.Key.Key_Return)
    assert desk.opened == ["story-gpt"]
    assert desk.dialog.result() == QDialog.DialogCode.Accepted


def test_what_can_not_be_opened_says_why(desk):
    desk.answer("It takes 80 GB, and 12 GB are free.")
    assert not desk.dialog.open_button.isEnabled()
    assert desk.dialog.view.refusal.isVisible()
    assert "80 GB" in desk.dialog.view.text
    assert "134.5 million" in desk.dialog.view.text  # what is known is still said
    press(desk.dialog.choices, Qt.Key.Key_Return)
    assert desk.opened == []
    press(desk.dialog.choices, Qt.Key.Key_Down)
    assert not desk.dialog.view.refusal.isVisible()
    desk.answer("No config.json.", understood=False)
    assert "No config.json." in desk.dialog.view.text
    assert "million" not in desk.dialog.view.text


def test_an_answer_to_an_earlier_question_is_ignored(desk):
    press(desk.dialog.choices, Qt.Key.Key_Down)
    desk.dialog.show_described(described("story-gpt"))
    assert not desk.dialog.open_button.isEnabled()
    assert "story-gpt" not in desk.dialog.view.title.text()


def test_facts_are_said(desk):
    desk.answer()
    text = desk.dialog.view.text.replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "LlamaForCausalLM: continues a text",
        "134.5 million",
        "30 layers × 9 heads of 64 sharing 3 keys and values",
        "8,192 tokens",
        "49,152 tokens",
        "538.1 MB in float32, 269.0 MB in bfloat16 or float16",
        "1.5 GB more for 8,192 tokens (q, k, v, the residual stream)",
        "12.3 GB are free (CPU)",
        "98.4 MB in /models/x",
        "✓  Attention",
        "✕  Alignment",
        "one stack only",
    ):
        assert words in text
    assert "None" not in text


def test_values_stand_below_their_names_where_there_is_no_room_beside(desk):
    desk.answer()
    view = desk.dialog.view
    labels = {label.text(): label for label in view.findChildren(QLabel)}
    name, value = labels["Parameters"], labels["134.5 million"]
    desk.dialog.resize(1100, 700)
    QApplication.processEvents()
    assert value.x() > name.x()
    said = view.text
    desk.dialog.setMinimumSize(0, 0)
    desk.dialog.resize(640, 700)
    QApplication.processEvents()
    assert value.x() == name.x()
    assert value.y() > name.y()
    assert view.text == said


def test_the_text_half_of_a_model_of_texts_and_pictures_is_a_choice_of_its_own(desk):
    desk.answer()
    assert not desk.dialog.text_button.isVisible()
    desk.dialog.choices.choose(RECENT[0])
    desk.answer(text_part=f"{RECENT[0]}#text")
    assert desk.dialog.text_button.isVisible()
    desk.dialog.text_button.click()
    assert desk.asked[-1] == (f"{RECENT[0]}#text", None)
    assert entries(desk)[:2] == ["Just chosen", "models/mi modelo ñ#text"]
    desk.answer()
    assert not desk.dialog.text_button.isVisible()
    press(desk.dialog.choices, Qt.Key.Key_Return)
    assert desk.opened == [f"{RECENT[0]}#text"]


def test_removing_and_clearing(desk):
    dialog = desk.dialog
    assert not dialog.remove_button.isEnabled()
    dialog.choices.choose(RECENT[1])
    assert dialog.remove_button.isEnabled()
    press(dialog.choices, Qt.Key.Key_Delete)
    assert desk.recent == [[RECENT[0], RECENT[2]]]
    assert "owner/name@v1" not in entries(desk)
    assert not dialog.open_button.isEnabled()
    dialog.choices.choose("story-gpt")
    press(dialog.choices, Qt.Key.Key_Delete)  # a shipped one stays
    assert "story-gpt" in entries(desk)
    dialog.choices.choose(RECENT[0])
    QTest.mouseClick(dialog.remove_button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(dialog.clear_button, Qt.MouseButton.LeftButton)
    assert desk.recent[-2:] == [[RECENT[2]], []]
    assert "Opened lately" not in entries(desk)
    assert not dialog.clear_button.isEnabled()


def test_browsing(desk, monkeypatch):
    monkeypatch.setattr(dialogs, "folder", lambda *_: "")
    QTest.mouseClick(desk.dialog.folder_button, Qt.MouseButton.LeftButton)
    assert len(desk.asked) == 1
    monkeypatch.setattr(dialogs, "folder", lambda *_: "/models/new one")
    QTest.mouseClick(desk.dialog.folder_button, Qt.MouseButton.LeftButton)
    assert desk.asked[-1] == ("/models/new one", None)
    monkeypatch.setattr(dialogs, "file_to_open", lambda *_: "/models/b.gguf")
    QTest.mouseClick(desk.dialog.file_button, Qt.MouseButton.LeftButton)
    assert desk.asked[-1] == ("/models/b.gguf", None)
    assert entries(desk)[:3] == ["Just chosen", "models/b.gguf", "models/new one"]


@pytest.mark.parametrize(
    ("dropped", "reference"), [("folder ñ", "folder ñ"), ("folder ñ/config.json", "folder ñ"), ("m.gguf", "m.gguf")]
)
def test_dropping(desk, tmp_path, dropped, reference):
    (tmp_path / "folder ñ").mkdir()
    for name in ("folder ñ/config.json", "m.gguf"):
        (tmp_path / name).write_text("x")
    drop(desk.dialog, [tmp_path / dropped])
    assert desk.asked[-1] == (str(tmp_path / reference), None)


def test_dropping_what_is_no_checkpoint(desk, tmp_path):
    (tmp_path / "other").mkdir()
    drop(desk.dialog, [tmp_path, tmp_path / "other"])  # which of the two?
    assert len(desk.asked) == 1


def drop(widget: CheckpointDialog, paths: list[Path]) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    where = widget.rect().center()
    enter = QDragEnterEvent(where, Qt.DropAction.CopyAction, mime, left, none)
    QApplication.sendEvent(widget, enter)
    if enter.isAccepted():
        QApplication.sendEvent(widget, QDropEvent(QPointF(where), Qt.DropAction.CopyAction, mime, left, none))


def test_escape_opens_nothing(desk):
    desk.answer()
    press(desk.dialog, Qt.Key.Key_Escape)
    assert not desk.dialog.isVisible()
    assert desk.opened == []


# --------------------------------------------------------------------------- a hub


def test_looked_up_fetched_and_opened_by_keys_alone(desk, qtbot):
    dialog = desk.dialog
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: len(desk.asked) == 2)
    reference, listing = desk.asked[-1]
    assert reference == "hf://owner/tiny"
    assert listing.missing == 100_000_000
    assert "/cache" in dialog.hub_box.cache.text()
    assert not dialog.download_button.isVisible() or not dialog.download_button.isEnabled()
    desk.answer()
    assert "licence mit" in dialog.view.text
    assert dialog.download_button.text() == "&Download 100.0 MB"
    assert not dialog.open_button.isEnabled()
    dialog.download_button.setFocus()
    press(dialog.download_button, Qt.Key.Key_Space)
    qtbot.waitUntil(dialog.progress.isVisible)
    qtbot.waitUntil(lambda: dialog.progress.value() == 250)
    assert dialog.doing.text() == "Downloading tiny: 25 MB of 100 MB"
    assert not dialog.open_button.isEnabled()
    assert dialog.cancel_button.isVisible()
    desk.hub.gate.set()
    qtbot.waitUntil(lambda: len(desk.asked) == 3)
    assert desk.asked[-1] == ("hf://owner/tiny", None)  # what lies there now is described
    desk.answer()
    assert not dialog.progress.isVisible()
    assert not dialog.download_button.isVisible()
    assert dialog.open_button.isEnabled()
    dialog.accept_choice()
    assert desk.opened == ["hf://owner/tiny"]


def test_called_off_and_gone_on_with(desk, qtbot):
    dialog = desk.dialog
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: len(desk.asked) == 2)
    desk.answer()
    dialog.download()
    qtbot.waitUntil(dialog.cancel_button.isVisible)
    qtbot.waitUntil(lambda: any(isinstance(asked, FetchRequest) for asked in desk.hub.asked))
    QTest.mouseClick(dialog.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(desk.asked) == 3)
    desk.answer()
    assert dialog.download_button.text() == "&Download 50.0 MB"
    assert "50.0" in dialog.view.text
    assert "are here already" in dialog.view.text
    assert dialog.download_button.isEnabled()


def test_closing_calls_a_download_off(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: len(desk.asked) == 2)
    desk.answer()
    desk.dialog.download()
    qtbot.waitUntil(lambda: desk.client.progress is not None)
    press(desk.dialog, Qt.Key.Key_Escape)
    assert not desk.client.is_fetching
    qtbot.waitUntil(desk.hub.cancelled.is_set)


def test_a_hub_that_refuses(desk, qtbot):
    desk.hub.refuses = "There is no connection to the hub."
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: desk.dialog.view.refusal.isVisible())
    assert "There is no connection to the hub." in desk.dialog.view.text
    assert not desk.dialog.open_button.isEnabled()
    press(desk.dialog.choices, Qt.Key.Key_Down)  # and the list goes on working
    assert not desk.dialog.view.refusal.isVisible()
    desk.answer()
    assert desk.dialog.open_button.isEnabled()


def test_what_can_not_be_opened_is_not_downloaded(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: len(desk.asked) == 2)
    desk.answer("It takes 80 GB, and 12 GB are free.")
    assert not desk.dialog.download_button.isEnabled()
    desk.dialog.download()
    assert not desk.client.is_fetching


def test_choosing_from_the_list_calls_a_question_off(desk, qtbot):
    desk.type_name("owner/tiny")
    desk.dialog.choices.choose("en-es")
    assert desk.asked[-1] == ("en-es", None)
    qtbot.waitUntil(lambda: len(desk.hub.asked) == 1)
    qtbot.wait(50)
    assert desk.asked[-1] == ("en-es", None)


def test_offline(desk, qtbot):
    desk.dialog.hub_box.offline.setFocus()
    press(desk.dialog.hub_box.offline, Qt.Key.Key_Space)
    assert desk.offline == [True]
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: len(desk.hub.asked) == 1)
    assert desk.hub.asked[0].offline


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_everything_is_inside_at_its_smallest(desk, theme):
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    themes.apply(app, theme)
    desk.dialog.set_theme(theme)
    desk.answer("A sentence that says in many words why this one cannot be opened. " * 3)
    desk.dialog.resize(desk.dialog.minimumSize())
    QApplication.processEvents()
    inside = desk.dialog.rect()
    for widget in (
        desk.dialog.open_button,
        desk.dialog.hub_box.look_up_button,
        desk.dialog.clear_button,
        desk.dialog.hub_box.offline,
    ):
        corner = widget.mapTo(desk.dialog, widget.rect().bottomRight())
        assert inside.contains(corner)
        assert widget.width() >= widget.sizeHint().width() - 1


def test_every_control_is_reached_by_tab_and_named(desk):
    desk.answer()
    reached = set()
    for _ in range(30):
        focus = QApplication.focusWidget()
        if focus is None:
            break
        reached.add(focus)
        press(focus, Qt.Key.Key_Tab)
    dialog = desk.dialog
    wanted = (
        dialog.choices,
        dialog.folder_button,
        dialog.file_button,
        dialog.hub_box.name,
        dialog.hub_box.offline,
        dialog.open_button,
    )
    assert set(wanted) <= reached
    assert dialog.choices.accessibleName()
    assert dialog.hub_box.name.accessibleName()
