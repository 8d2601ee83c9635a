"""The text field: text in and out unharmed, its height, its keys, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl, SignalInstance
from PySide6.QtGui import QTextCursor, QTextOption
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from attention_explorer.look import theme
from attention_explorer.panels.input.labels import TextInput
from attention_explorer.session.text_limits import MOST_CHARACTERS

pytestmark = pytest.mark.x


@pytest.fixture
def field(qtbot) -> Iterator[TextInput]:
    """A field as wide as in the window, in the window's style."""
    window = QWidget()
    qtbot.addWidget(window)
    window.setStyleSheet(theme.stylesheet(theme.LIGHT))
    column = QVBoxLayout(window)
    inside = TextInput()
    column.addWidget(inside)
    column.addWidget(QPushButton("next"))
    column.addStretch(1)
    window.resize(700, 400)
    window.show()
    yield inside
    window.close()


def heard(signal: SignalInstance) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    signal.connect(lambda *values: calls.append(values))
    return calls


def mime(text: str) -> QMimeData:
    data = QMimeData()
    data.setText(text)
    return data


@pytest.mark.parametrize(
    "text",
    ["a\u00a0b", "a\0b", "😀👩‍👩‍👧", "e\u0301", "שלום", "two\nlines\n", "tab\there", "x\u2028y", " \u3000 ", ""],
)
def test_text_comes_back_as_it_was_set(field, text):
    field.set_text("before")
    edits = heard(field.edited)
    field.set_text(text)
    assert field.text() == text
    assert edits == []


def test_a_lone_surrogate_is_shown_as_a_replacement(field):
    field.set_text("a\ud83db\udc00")
    assert field.text() == "a\ufffdb\ufffd"


@pytest.mark.parametrize("text", ["a\ud83db", "one\r\ntwo", "\ufeffmark"])
def test_a_text_that_qt_cannot_hold_is_set_once(field, text):
    """The window sets the session's text at every change of state: the cursor must not jump each time."""
    field.set_text(text)
    field.moveCursor(QTextCursor.MoveOperation.Start)
    field.set_text(text)
    assert field.textCursor().position() == 0
    field.set_text("another")
    field.set_text(text)
    assert field.text() != "another"


def test_typing_is_heard_with_the_whole_text(field):
    field.set_text("Tom")
    edits = heard(field.edited)
    QTest.keyClicks(field, "my")
    assert edits == [("Tomm",), ("Tommy",)]
    field.set_text("Tom")
    assert field.text() == "Tom"


def test_what_is_marked_is_counted_in_characters(field):
    field.set_text("😀😀 Tom 👍🏽 Anna")
    cursor = field.textCursor()
    cursor.setPosition(5)  # two emoji of two places each, and a space
    cursor.setPosition(8, QTextCursor.MoveMode.KeepAnchor)
    field.setTextCursor(cursor)
    start, end = field.selected_span()
    assert (start, end) == (3, 6)
    assert field.text()[start:end] == "Tom"
    cursor.setPosition(8)
    cursor.setPosition(0, QTextCursor.MoveMode.KeepAnchor)  # marked backwards
    field.setTextCursor(cursor)
    assert field.selected_span() == (0, 6)


def test_nothing_marked_is_an_empty_span(field):
    field.set_text("Tom")
    assert field.selected_span() == (3, 3)


def test_it_grows_from_one_line_to_three_and_then_scrolls(field, qtbot):
    line = field.fontMetrics().lineSpacing()
    heights = []
    for lines in range(1, 6):
        field.set_text("\n".join(["word"] * lines))
        qtbot.wait(1)  # the layout's turn
        heights.append(field.height())
        assert field.verticalScrollBar().isVisible() == (lines > 3)
        assert field.verticalScrollBar().maximum() == max(0, lines - 3)  # no blank line after the last
    assert heights[1] - heights[0] == pytest.approx(line, abs=1)
    assert heights[2] - heights[1] == pytest.approx(line, abs=1)
    assert heights[2] == heights[3] == heights[4]
    assert field.viewport().height() >= 3 * line
    field.set_text("word")
    qtbot.wait(1)
    assert field.height() == heights[0]
    assert field.viewport().height() >= line


def test_a_long_line_wraps_and_grows_too(field, qtbot):
    one_line = field.height()
    field.set_text("Tom and Anna went to the park. " * 5)
    qtbot.wait(1)
    assert field.height() > one_line


def test_a_larger_font_makes_it_higher(field, qtbot):
    before, line = field.height(), field.fontMetrics().lineSpacing()
    font = field.font()
    font.setPointSizeF(2 * font.pointSizeF())
    field.setFont(font)
    qtbot.wait(1)
    assert field.height() - before == pytest.approx(field.fontMetrics().lineSpacing() - line, abs=1)
    assert field.fontMetrics().lineSpacing() > 1.8 * line
    assert not field.verticalScrollBar().isVisible()


def test_before_it_is_shown_its_height_is_that_of_its_text(qtbot):
    field = TextInput()
    qtbot.addWidget(field)
    field.set_text("one line")
    assert field.fontMetrics().lineSpacing() <= field.height() < 3 * field.fontMetrics().lineSpacing()


def test_enter_submits_and_shift_enter_breaks_the_line(field):
    field.set_text("Tom")
    submits = heard(field.submitted)
    QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClick(field, Qt.Key.Key_Enter)
    assert len(submits) == 2
    assert field.text() == "Tom"
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert field.text() == "Tom\n"
    assert len(submits) == 2


def test_tab_leaves_the_field(field):
    field.set_text("Tom")
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert field.text() == "Tom"
    assert isinstance(field.window().focusWidget(), QPushButton)


def test_a_paste_up_to_the_limit_is_taken_and_one_beyond_is_refused(field):
    refusals, edits = heard(field.refused), heard(field.edited)
    field.set_text("ab")
    field.insertFromMimeData(mime("x" * (MOST_CHARACTERS - 1)))
    assert field.text() == "ab"
    assert edits == []
    assert "199,999 characters" in refusals[0][0]
    field.insertFromMimeData(mime("x" * (MOST_CHARACTERS - 2)))
    assert len(field.text()) == MOST_CHARACTERS
    assert len(edits) == 1
    assert len(refusals) == 1


def test_a_paste_is_plain_text(field):
    data = mime("bold")
    data.setHtml("<b>bold</b><img src='http://example.invalid/x.png'>")
    field.insertFromMimeData(data)
    assert field.text() == "bold"


def test_dropped_text_is_taken_and_a_dropped_file_is_left_to_the_window(field):
    assert field.canInsertFromMimeData(mime("Tom"))
    files = mime("file:///models/story")
    files.setUrls([QUrl.fromLocalFile("/models/story")])
    assert not field.canInsertFromMimeData(files)
    link = mime("https://example.invalid/")
    link.setUrls([QUrl("https://example.invalid/")])
    assert field.canInsertFromMimeData(link)


def test_a_key_beyond_the_limit_is_refused_and_one_that_replaces_is_not(field):
    refusals = heard(field.refused)
    field.set_text("x " * (MOST_CHARACTERS // 2))
    QTest.keyClicks(field, "y")
    assert len(field.text()) == MOST_CHARACTERS
    assert refusals == [(f"The input takes {MOST_CHARACTERS:,} characters, and has them all.",)]
    field.selectAll()
    QTest.keyClicks(field, "y")
    assert field.text() == "y"


def test_a_word_without_end_is_broken_anywhere_which_takes_no_search(field):
    usual, anywhere = QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere, QTextOption.WrapMode.WrapAnywhere
    for text, mode in (("a b", usual), ("a" * 20_000, anywhere), ("a b " * 5000, usual)):
        field.set_text(text)
        assert field.wordWrapMode() == mode
    field.insertFromMimeData(mime("b" * 20_000))
    assert field.wordWrapMode() == anywhere
