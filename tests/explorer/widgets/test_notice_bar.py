"""Notices."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton

from attention_explorer.look.theme import DARK
from attention_explorer.widgets.notice_bar import NoticeBar
from tests.explorer.widgets.pictures import rendered


@pytest.fixture
def notice(qtbot) -> NoticeBar:
    widget = NoticeBar()
    qtbot.addWidget(widget)
    widget.resize(500, 60)
    return widget


def test_hidden_until_there_is_something_to_say(notice):
    assert not notice.isVisible()
    notice.show_notice("error", "The file is broken.")
    assert notice.isVisible()
    assert notice.text == "The file is broken."
    assert notice.accessibleName() == "Error: The file is broken."


def test_the_action_is_offered_only_where_there_is_one(notice, qtbot):
    button = notice.findChild(QPushButton)
    notice.show_notice("info", "Saved.")
    assert not button.isVisible()
    notice.show_notice("warning", "No heads here.", "Open another")
    assert button.isVisible()
    assert button.text() == "Open another"
    with qtbot.waitSignal(notice.action_triggered):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert notice.isVisible()


def test_dismissing_hides_it(notice, qtbot):
    notice.show_notice("info", "Saved.")
    with qtbot.waitSignal(notice.dismissed):
        qtbot.mouseClick(notice.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert not notice.isVisible()


def test_every_kind_looks_different_even_in_grey(notice):
    pictures = []
    for kind in ("info", "warning", "error"):
        notice.show_notice(kind, "The same words.")
        glyph = rendered(notice).copy(12, 0, 30, notice.height()).convertToFormat(QImage.Format.Format_Mono)
        pictures.append(glyph)
    assert pictures[0] != pictures[1] != pictures[2] != pictures[0]


def test_the_text_is_plain_selectable_and_wraps(notice):
    notice.show_notice("warning", "<b>not bold</b> " * 20)
    label = notice.findChild(QLabel)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
    assert notice.heightForWidth(300) > notice.heightForWidth(1200)


def test_theme_changes_the_picture(notice):
    notice.show_notice("warning", "Look.")
    light = rendered(notice)
    notice.set_theme(DARK)
    assert rendered(notice) != light
