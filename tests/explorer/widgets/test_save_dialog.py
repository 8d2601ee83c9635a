"""Asking where to save, with the real dialogs: nothing is replaced of which nobody was asked under its whole name."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.dialogs import Kind, ask_where_to_save, with_ending
from tests.explorer.answering import answering, leave, pressing, typing

# the list of names that match what is typed would take the keyboard
pytestmark = [pytest.mark.x, pytest.mark.qt_log_ignore("does not support grabbing the keyboard")]

TABLE = Kind("Table", ".csv")
PICTURE = Kind("JPEG", ".jpg", (".jpeg",))


@pytest.fixture
def ask(qtbot, tmp_path: Path):
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()
    return lambda: ask_where_to_save(parent, "Save", str(tmp_path / "suggested.csv"), (TABLE, PICTURE))


def test_a_new_name_is_taken_with_its_ending_and_no_question(ask, tmp_path):
    with answering(typing("mine")) as said:
        assert ask() == tmp_path / "mine.csv"
    assert said == ["Save"]


@pytest.mark.parametrize("typed", ["mine", "mine.csv"])
def test_what_is_there_is_asked_about_under_its_whole_name(ask, tmp_path, typed):
    (tmp_path / "mine.csv").write_text("older")
    with answering(typing(typed), pressing("Replace")) as said:
        assert ask() == tmp_path / "mine.csv"
    assert said == ["Save", "mine.csv is there already."]


def test_who_keeps_it_chooses_again(ask, tmp_path):
    (tmp_path / "mine.csv").write_text("older")
    with answering(typing("mine"), pressing("Keep it"), typing("another")) as said:
        assert ask() == tmp_path / "another.csv"
    assert len(said) == 3


def test_escape_keeps_it_and_escape_again_leaves(ask, tmp_path):
    (tmp_path / "mine.csv").write_text("older")
    with answering(typing("mine"), leave, leave):
        assert ask() is None


def test_a_file_of_the_name_without_the_ending_is_no_reason_to_ask(ask, tmp_path):
    (tmp_path / "mine").write_text("another file")
    with answering(typing("mine")) as said:
        assert ask() == tmp_path / "mine.csv"
    assert said == ["Save"]


@pytest.mark.parametrize(
    ("typed", "saved"),
    [
        ("a", "a.csv"),
        ("a.csv", "a.csv"),
        ("a.CSV", "a.CSV"),
        ("a.jpeg", "a.jpeg"),
        ("v1.5", "v1.5.csv"),
        ("a.png", "a.png.csv"),
    ],
)
def test_endings(typed, saved):
    assert with_ending(Path("x") / typed, (TABLE, PICTURE), TABLE) == Path("x") / saved
