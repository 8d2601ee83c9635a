"""Choosing one of the GGUF files of a repository in the dialog, by keys and mouse; the window answers by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.chooser.dialog import GgufList
from attention_models.protocol.hub import FetchRequest, HubFile
from tests.explorer.chooser.desk import Desk, opened_desk
from tests.explorer.chooser.fake_hub import FakeHub
from tests.explorer.real_window import press

pytestmark = pytest.mark.x

FILES = (
    HubFile("tiny-Q2_K.gguf", 40_000_000),
    HubFile("tiny-Q4_K_M.gguf", 60_000_000),
    HubFile("tiny-Q8_0.gguf", 100_000_000, here=25_000_000),
    HubFile("tiny-F16.gguf", 200_000_000, here=200_000_000),
)
SUGGESTED = "hf://owner/tiny:tiny-Q4_K_M.gguf"


@pytest.fixture
def desk(qapp) -> Iterator[Desk]:
    hub = FakeHub()
    hub.ggufs, hub.has_safetensors = FILES, False
    with opened_desk(hub) as desk:
        yield desk


def rows(ggufs: GgufList) -> list[tuple[str, ...]]:
    found = (ggufs.rows.topLevelItem(i) for i in range(ggufs.rows.topLevelItemCount()))
    return [tuple(item.text(column) for column in range(3)) for item in found if item is not None]


def asked_for(desk: Desk, reference: str) -> bool:
    return desk.asked[-1][0] == reference


def test_listed_by_name_and_size_and_one_is_visibly_suggested(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    dialog = desk.dialog
    assert dialog.ggufs.isVisible()
    assert rows(dialog.ggufs) == [
        ("tiny-Q2_K.gguf", "40.0 MB", ""),
        ("tiny-Q4_K_M.gguf", "60.0 MB", "suggested"),
        ("tiny-Q8_0.gguf", "100.0 MB", "25.0 MB here"),
        ("tiny-F16.gguf", "200.0 MB", "here"),
    ]
    assert dialog.ggufs.reference == SUGGESTED
    assert "smallest whose name says at least 4 bits" in dialog.ggufs.note.text()
    assert dialog.hub_box.name.text() == "owner/tiny:tiny-Q4_K_M.gguf"  # how it is called, for the next time
    assert dialog.ggufs.rows.hasFocus()
    assert not dialog.download_button.isEnabled()
    desk.answer()
    assert dialog.download_button.text() == "&Download 60.0 MB"
    assert not any(isinstance(asked, FetchRequest) for asked in desk.hub.asked)


def test_another_by_keys_alone_fetched_and_opened(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    desk.answer()
    dialog, reference = desk.dialog, "hf://owner/tiny:tiny-Q8_0.gguf"
    press(dialog.ggufs.rows, Qt.Key.Key_Down)
    assert not dialog.download_button.isVisible()  # it would be of the one before
    assert "Asking what it is" in dialog.view.text
    qtbot.waitUntil(lambda: asked_for(desk, reference))
    assert dialog.ggufs.reference == reference
    desk.answer()
    assert dialog.download_button.text() == "&Download 75.0 MB"
    press(dialog.ggufs.rows, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: desk.client.progress is not None)
    assert not dialog.ggufs.rows.isEnabled()
    desk.hub.gate.set()
    qtbot.waitUntil(lambda: desk.asked[-1] == (reference, None))  # what lies there now is described
    desk.answer()
    assert not dialog.ggufs.isVisible()
    dialog.accept_choice()
    assert desk.opened == [reference]


def test_passing_over_files_asks_only_for_the_one_it_rests_on(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up):
        press(desk.dialog.ggufs.rows, key)
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/tiny:tiny-Q2_K.gguf"))
    texts = [asked.text for asked in desk.hub.asked]
    assert texts == ["owner/tiny", "owner/tiny:tiny-Q4_K_M.gguf", "owner/tiny:tiny-Q2_K.gguf"]


def test_what_is_here_is_opened_at_once(desk, qtbot):
    desk.type_name("owner/tiny:tiny-F16.gguf")
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/tiny:tiny-F16.gguf"))
    desk.answer()
    assert desk.dialog.ggufs.reference == "hf://owner/tiny:tiny-F16.gguf"
    desk.dialog.ggufs.rows.setFocus()
    press(desk.dialog.ggufs.rows, Qt.Key.Key_Return)
    assert desk.opened == ["hf://owner/tiny:tiny-F16.gguf"]


def test_called_off_and_gone_on_with(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    desk.answer()
    desk.dialog.download()
    qtbot.waitUntil(lambda: desk.client.progress is not None)
    desk.hub.ggufs = (HubFile("tiny-Q4_K_M.gguf", 60_000_000, here=20_000_000),)
    count = len(desk.asked)
    QTest.mouseClick(desk.dialog.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(desk.asked) > count)
    desk.answer()
    assert desk.dialog.ggufs.rows.isEnabled()
    assert rows(desk.dialog.ggufs) == [("tiny-Q4_K_M.gguf", "60.0 MB", "suggested, 20.0 MB here")]
    assert desk.dialog.download_button.text() == "&Download 40.0 MB"


def test_a_file_that_is_refused_leaves_the_others_to_choose(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    desk.hub.refuses = "tiny-Q8_0.gguf is no GGUF file, whatever its name says."
    press(desk.dialog.ggufs.rows, Qt.Key.Key_Down)
    qtbot.waitUntil(desk.dialog.view.refusal.isVisible)
    assert "whatever its name says" in desk.dialog.view.text
    assert not desk.dialog.download_button.isVisible()
    assert desk.dialog.ggufs.isVisible()
    desk.hub.refuses = ""
    press(desk.dialog.ggufs.rows, Qt.Key.Key_Up)
    assert not desk.dialog.view.refusal.isVisible()
    qtbot.waitUntil(lambda: len(desk.asked) == 3)
    desk.answer()
    assert desk.dialog.download_button.isEnabled()


def test_what_can_not_be_opened_is_not_fetched(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    desk.answer("GGUF files need gguf, which is not installed.", understood=False)
    press(desk.dialog.ggufs.rows, Qt.Key.Key_Return)
    assert not desk.client.is_fetching
    assert not any(isinstance(asked, FetchRequest) for asked in desk.hub.asked)


def test_without_a_suggestion_nothing_is_chosen(desk, qtbot):
    desk.hub.ggufs = (FILES[0], HubFile("other.gguf", 50_000_000))
    desk.hub.parts = 3
    desk.type_name("owner/tiny")
    qtbot.waitUntil(desk.dialog.ggufs.isVisible)
    assert desk.dialog.ggufs.reference == ""
    assert "Choose one of the GGUF files" in desk.dialog.view.text
    assert "3 more are parts of split models" in desk.dialog.ggufs.note.text()
    assert len(desk.asked) == 1
    desk.dialog.ggufs.rows.setFocus()
    press(desk.dialog.ggufs.rows, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/tiny:other.gguf"))


def test_beside_safetensors_they_are_offered_below(desk, qtbot):
    desk.hub.has_safetensors = True
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/tiny"))
    desk.answer()
    ggufs = desk.dialog.ggufs
    assert rows(ggufs)[0] == ("safetensors", "100.0 MB", "")
    assert [row[2] for row in rows(ggufs)[1:]] == ["", "", "25.0 MB here", "here"]  # nothing else is suggested
    assert ggufs.reference == "hf://owner/tiny"
    assert desk.dialog.download_button.text() == "&Download 100.0 MB"
    item = ggufs.rows.topLevelItem(4)
    assert item is not None
    QTest.mouseClick(ggufs.rows.viewport(), Qt.MouseButton.LeftButton, pos=ggufs.rows.visualItemRect(item).center())
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/tiny:tiny-F16.gguf"))
    desk.answer()
    assert desk.dialog.open_button.isEnabled()
    assert rows(ggufs)[0] == ("safetensors", "100.0 MB", "")
    ggufs.rows.setFocus()
    press(ggufs.rows, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/tiny"))


def test_the_list_goes_when_something_else_is_chosen(desk, qtbot):
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    press(desk.dialog.ggufs.rows, Qt.Key.Key_Down)
    desk.dialog.choices.choose("en-es")
    assert not desk.dialog.ggufs.isVisible()
    qtbot.wait(400)  # the file that was passed over is not asked for
    assert asked_for(desk, "en-es")
    desk.hub.ggufs, desk.hub.has_safetensors = (), True
    desk.dialog.hub_box.name.clear()
    desk.type_name("owner/other")
    qtbot.waitUntil(lambda: asked_for(desk, "hf://owner/other"))
    assert not desk.dialog.ggufs.isVisible()


def test_everything_is_inside_at_its_smallest(desk, qtbot):
    desk.hub.parts = 2
    desk.type_name("owner/tiny")
    qtbot.waitUntil(lambda: asked_for(desk, SUGGESTED))
    desk.answer("A sentence that says in many words why this one cannot be opened. " * 3)
    desk.dialog.resize(desk.dialog.minimumSize())
    QApplication.processEvents()
    for widget in (desk.dialog.ggufs.rows, desk.dialog.download_button, desk.dialog.open_button):
        assert desk.dialog.rect().contains(widget.mapTo(desk.dialog, widget.rect().bottomRight()))
    assert desk.dialog.ggufs.rows.height() >= 60
    assert desk.dialog.ggufs.rows.accessibleName()
