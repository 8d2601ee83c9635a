"""Widgets in lines, as words in a text."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.layouts import FlowLayout


@pytest.fixture
def flow(qtbot) -> tuple[QWidget, list[QWidget]]:
    host = QWidget()
    qtbot.addWidget(host)
    layout = FlowLayout(host, gap=10, line_gap=5)
    words = [QWidget() for _ in range(3)]
    for word, height in zip(words, (20, 30, 20), strict=True):
        word.setFixedSize(100, height)
        layout.addWidget(word)
    host.show()
    return host, words


def places(words: list[QWidget]) -> list[tuple[int, int]]:
    return [(word.x(), word.y()) for word in words]


def test_one_line_where_there_is_room(flow):
    host, words = flow
    host.resize(320, 60)
    assert places(words) == [(0, 5), (110, 0), (220, 5)]  # each in the middle of its line
    assert host.heightForWidth(320) == 30


def test_what_does_not_fit_goes_to_the_next_line(flow):
    host, words = flow
    host.resize(319, 60)
    assert places(words) == [(0, 5), (110, 0), (0, 35)]
    assert host.heightForWidth(319) == 55
    assert host.heightForWidth(100) == 80


def test_what_is_hidden_takes_no_room(flow):
    host, words = flow
    host.resize(210, 60)
    words[1].hide()
    host.layout().activate()
    assert places(words)[2] == (110, 0)
    assert host.layout().sizeHint().width() == 210
    assert host.layout().minimumSize().width() == 100
