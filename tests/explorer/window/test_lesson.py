"""A lesson in the real window: its steps on screen, going back, questions, what is covered, the score and its table."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QMouseEvent, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session import lesson_files
from attention_explorer.session.intents import SetText
from attention_explorer.session.lesson_files import shipped_lessons
from attention_explorer.session.lessons import OpenLesson
from attention_explorer.window.lesson.column import LessonColumn
from attention_explorer.window.lesson.covers import Cover, Covers, KeyCover, RowCover
from attention_explorer.window.lesson.guide import LessonGuide
from attention_explorer.window.lesson.question import OptionButton
from attention_explorer.window.tour.pointing import Ring
from attention_explorer.window.window import MainWindow
from attention_models.protocol.facts import places_in
from attention_models.protocol.values import SiteRef
from tests.explorer.lessons import BEGINNING
from tests.explorer.real_window import (
    EXAMPLE,
    back_to_start,
    colour_at,
    key,
    opened_window,
    panel_of,
    picture,
    settle,
    wait_until,
)

LESSON = f'''{BEGINNING}
[[step]]
title = "Lookup"
say = "A dictionary."
[step.show]
text = "Anna ran. Tom"
panel = "lookup"
choices = {{ lookup = {{ page = 1 }} }}
text_size = 1.25
[step.figures]
share = {{ kind = "next probability" }}
says = {{ kind = "next" }}
[step.ask]
question = "How likely?"
number = "share"
within = 0.05
hide = "next"

[[step]]
title = "Stop"
say = "Blocked."
[step.show]
text = "{EXAMPLE}"
layer = 5
head = 5
query = "to"
query_place = 2
key = "Tom"
blocks = true
panel = "map"
[step.figures]
now = {{ kind = "weight" }}
before = {{ kind = "weight", unchanged = true }}
[step.ask]
question = "It had {{before}}. How much is left?"
options = [{{ say = "All", when = "now = before" }}, {{ say = "Nothing", when = "now = 0" }}]

[[step]]
title = "Mask"
say = "Of “went”."
[step.show]
text = "{EXAMPLE}"
layer = 5
head = 5
query = "went"
panel = "map"
[step.figures]
seen = {{ kind = "visible keys" }}
[step.ask]
question = "Which?"
cells = "seen"
hide = "mask"
reveal = "It sees {{seen}}."
'''


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="flow") as window:
        yield window


@pytest.fixture
def window(opened: MainWindow, tmp_path: Path) -> Iterator[MainWindow]:
    back_to_start(opened)
    (tmp_path / "trial.toml").write_text(LESSON)
    opened.lessons.begin(tmp_path / "trial.toml")
    wait_until(lambda: opened.lessons.guide is not None)
    arrive(opened)
    yield opened
    opened.lessons.end()
    settle(opened)


def guide_of(window: MainWindow) -> LessonGuide:
    assert window.lessons.guide is not None
    return window.lessons.guide


def arrive(window: MainWindow) -> None:
    wait_until(lambda: guide_of(window).is_settled and window.is_settled())


def covers(window: MainWindow) -> list[Cover]:
    return [cover for cover in window.findChildren(Cover) if cover.isVisible()]


def test_a_step_puts_its_scene_on_screen_with_its_figures(window: MainWindow) -> None:
    state, guide = window.session.state, guide_of(window)
    assert (state.selection.site, state.selection.head, state.selection.query) == (SiteRef("decoder", 5), 5, 13)
    assert "map" in window.dock_host.front_panels()
    assert guide.column.text.toPlainText() == f"Row {100 * float(guide.figures['row']):.1f} %."
    assert guide.column.number.text() == "Step 1 of 4"


def test_a_row_is_covered_until_a_guess_is_revealed(window: MainWindow) -> None:
    guide, heat_map = guide_of(window), panel_of(window, HeadMapPanel).map
    question = guide.column.question
    hand = Qt.CursorShape.PointingHandCursor
    cover = next(c for c in covers(window) if c.parent() is heat_map and c.cursor().shape() == hand)
    row = heat_map.cell_rect(13, 0).united(heat_map.cell_rect(13, 13)).toAlignedRect()
    wait_until(lambda: cover.geometry().contains(row.adjusted(1, 1, -1, -1)))
    assert not question.reveal.isEnabled()
    middle = heat_map.cell_rect(13, 1).center().toPoint() - cover.pos()
    QTest.mouseClick(cover, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, middle)
    assert question.given == "Tom"
    QTest.mouseClick(question.reveal, Qt.MouseButton.LeftButton)
    assert guide.answers[0].right is (guide.figures["most"] == "Tom")
    assert not covers(window)
    assert question.said.text() == f"It is {guide.figures['most']}."


@pytest.mark.parametrize("hide", ["weight", "row", "mask"])
def test_the_selected_weight_is_spelled_out_nowhere_while_it_is_asked(window: MainWindow, hide: str) -> None:
    heat_map = panel_of(window, HeadMapPanel).map
    window.menus[f"predict_{hide}"].trigger()
    arrive(window)
    wait_until(lambda: isinstance(heat_map.childAt(heat_map.readout_rect().center().toPoint()), Cover))


def test_what_is_asked_stays_covered_where_another_cell_is_clicked(window: MainWindow) -> None:
    heat_map = panel_of(window, HeadMapPanel).map
    window.menus["predict_weight"].trigger()
    arrive(window)
    query, key = window.session.state.selection.query, window.session.state.selection.key
    QTest.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=heat_map.cell_rect(6, 2).center().toPoint())
    settle(window)
    assert window.session.state.selection.query == 6
    QTest.qWait(250)  # covers have followed
    assert isinstance(heat_map.childAt(heat_map.cell_rect(query, key).center().toPoint()), Cover)


def test_cells_of_a_mask_are_clicked_and_dragged_over(window: MainWindow) -> None:
    guide, heat_map = guide_of(window), panel_of(window, HeadMapPanel).map
    guide.go_to(3)
    arrive(window)
    question = guide.column.question
    cover = next(cover for cover in covers(window) if isinstance(cover, RowCover))
    everything = heat_map.cell_rect(0, 0).united(heat_map.cell_rect(13, 13)).toAlignedRect()
    wait_until(lambda: cover.geometry().contains(everything.adjusted(1, 1, -1, -1)))
    assert not question.reveal.isEnabled()

    def at(key: int, query: int = 4) -> QPoint:
        return heat_map.cell_rect(query, key).center().toPoint() - cover.pos()

    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QTest.mouseClick(cover, left, none, at(2, query=7))  # of another row
    assert not question.reveal.isEnabled()
    QTest.mousePress(cover, left, none, at(0))
    for cell in (1, 2, 3, 4, 5):
        move = QMouseEvent(
            QMouseEvent.Type.MouseMove, at(cell).toPointF(), cover.mapToGlobal(at(cell)).toPointF(), left, left, none
        )
        QApplication.sendEvent(cover, move)
    QTest.mouseRelease(cover, left, none, at(5))
    assert question.given == "0–5"
    assert "6 tokens" in question.clicked.text()
    question.reveal.click()
    assert not guide.answers[3].right  # 5 is a later token, which the causal mask hides
    assert guide.answers[3].truth == "0–4"
    assert question.said.text() == "13 of 14 cells are right.\n\nIt sees 0–4."
    assert not covers(window)


def test_a_cell_that_was_clicked_is_given_back(window: MainWindow) -> None:
    guide, heat_map = guide_of(window), panel_of(window, HeadMapPanel).map
    guide.go_to(3)
    arrive(window)
    cover = next(cover for cover in covers(window) if isinstance(cover, RowCover))
    for cell in (0, 1, 2, 3, 4, 6, 6):
        where = heat_map.cell_rect(4, cell).center().toPoint() - cover.pos()
        QTest.mouseClick(cover, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, where)
    guide.column.question.reveal.click()
    assert guide.answers[3].right


def test_nothing_that_shows_a_mask_can_be_read_while_it_is_asked(window: MainWindow) -> None:
    guide_of(window).go_to(3)
    arrive(window)
    for name in ("heads", "masks", "cell", "flow", "alignment"):
        window.dock_host.raise_panel(name)
        panel = next(panel for panel in window.panels if panel.name == name)
        wait_until(panel.isVisible)
        QApplication.processEvents()
        assert isinstance(panel.childAt(panel.rect().center() - QPoint(3, 3)), Cover), name


def test_page_keys_walk_and_going_back_takes_back_what_was_done(window: MainWindow) -> None:
    guide = guide_of(window)
    first = window.session.state.document
    QTest.keyClick(window, Qt.Key.Key_PageDown)
    arrive(window)
    assert window.session.state.document.text == "Anna ran. Tom"
    assert next(panel for panel in window.panels if panel.name == "lookup").chosen()["page"] == 1
    assert window.text_factor == 1.25
    window.session.dispatch(SetText("Something else"))
    settle(window)
    assert not guide.column.away.isHidden()
    QTest.keyClick(window, Qt.Key.Key_PageUp)
    arrive(window)
    assert window.session.state.document == first
    assert window.text_factor == 1.0


def test_one_undo_takes_a_whole_step_back(window: MainWindow) -> None:
    before = window.session.state.document
    guide_of(window).go_to(2)
    arrive(window)
    assert window.session.state.painted_cells == ((13, 1, False),)
    window.session.undo()
    settle(window)
    assert window.session.state.document == before


def test_a_number_and_options_are_scored_by_the_model(window: MainWindow, tmp_path: Path, monkeypatch) -> None:
    guide = guide_of(window)
    guide.go_to(1)
    arrive(window)
    question = guide.column.question
    assert question.number.suffix() == " %"
    assert question.number.valueFromText("٦٨ %") == 68  # the digits of any script
    question.number.setValue(100 * float(guide.figures["share"]))
    question.reveal.click()
    guide.go_to(2)
    arrive(window)
    asked = f"It had {100 * float(guide.figures['before']):.1f} %. How much is left?"
    assert question.question.text() == asked
    question.options.findChildren(QPushButton)[-2].click()
    question.reveal.click()
    assert [guide.answers[at].right for at in (1, 2)] == [True, False]
    guide.go_to(4)
    assert "1 of 2" in guide.column.text.toPlainText()
    target = tmp_path / "answers.csv"
    monkeypatch.setattr("attention_explorer.window.lesson.lessons.ask_where_to_save", lambda *_: target)
    window.menus["save_answers"].trigger()
    lines = target.read_text().splitlines()
    assert len(lines) == 3
    assert lines[2] == f"Trial,3,{asked},All,Nothing,0"


def test_what_comes_next_cannot_be_read_while_it_is_asked(window: MainWindow) -> None:
    guide_of(window).go_to(1)
    arrive(window)
    for name in ("next", "flow", "decoding", "effects"):
        window.dock_host.raise_panel(name)
        panel = next(panel for panel in window.panels if panel.name == name)
        wait_until(panel.isVisible)
        QApplication.processEvents()
        there = panel.childAt(panel.rect().center() - QPoint(3, 3))
        assert isinstance(there, Cover), name


def test_a_lesson_that_is_written_beside_the_window_goes_on_as_it_is_written(window: MainWindow) -> None:
    path = window.lessons.path
    assert path is not None
    path.write_text(LESSON.replace("Row {row}", "Now {row}"))
    wait_until(lambda: guide_of(window).column.text.toPlainText().startswith("Now"))


def test_a_file_that_is_no_lesson_changes_nothing(window: MainWindow, tmp_path: Path) -> None:
    guide = guide_of(window)
    (tmp_path / "bad.toml").write_text("title = 3")
    window.lessons.begin(tmp_path / "bad.toml")
    wait_until(lambda: (notice := window.session.state.notice) is not None and "line 1" in notice.text)
    assert window.lessons.guide is guide


def test_a_lesson_is_read_beside_the_window(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, read, threads = threading.Event(), lesson_files.load, []

    def slow(path: Path, panels: tuple[str, ...] = ()) -> OpenLesson:
        threads.append(threading.current_thread())
        assert may_go_on.wait(60)
        return read(path, panels)

    monkeypatch.setattr(lesson_files, "load", slow)
    before = guide_of(window)
    (tmp_path / "other.toml").write_text(LESSON)
    window.lessons.begin(tmp_path / "other.toml")
    wait_until(lambda: bool(threads))
    settle(window)  # the event loop goes on
    assert window.lessons.guide is before
    assert threads != [threading.current_thread()]
    may_go_on.set()
    wait_until(lambda: guide_of(window) is not before)
    assert window.lessons.path == tmp_path / "other.toml"
    arrive(window)


@pytest.mark.short("next-next")
@pytest.mark.parametrize(
    ("hide", "kind"),
    [("weight", "weight"), ("row", "peak"), ("next", "next"), ("mask", "visible keys"), ("role", "role")],
)
def test_what_is_on_screen_can_be_covered_and_guessed(window: MainWindow, hide: str, kind: str) -> None:
    document = window.session.state.document
    if hide == "role":
        window.dock_host.raise_panel("heads")  # no other panel says it
    window.menus[f"predict_{hide}"].trigger()
    arrive(window)
    guide = guide_of(window)
    assert window.session.state.document == document
    assert guide.steps[0].figures["it"].kind == kind
    assert covers(window)
    question = guide.column.question
    truth = guide.figures["it"]
    if hide == "weight":
        question.number.setValue(100 * float(truth))
    elif hide == "row":
        question.take_token(str(truth))
    elif hide == "mask":
        question.take_keys(places_in(str(truth)))
    elif hide == "role":
        ask = guide.steps[0].ask
        assert ask is not None
        (right,) = ask.right_options(guide.figures)
        question.options.findChildren(QPushButton)[right].click()
    else:
        question.word.setText(str(truth))
    question.reveal.click()
    assert guide.answers[0].right
    assert not covers(window)


def test_the_offer_of_a_tour_gives_way_to_a_lesson(window: MainWindow) -> None:
    path = window.lessons.path
    assert path is not None
    window.lessons.end()
    window.tour.offer()
    window.lessons.begin(path)
    wait_until(lambda: window.lessons.guide is not None)
    assert window.tour.bar.isHidden()
    arrive(window)


# by keyboard alone


def focus(window: MainWindow) -> QWidget:
    there: QWidget | None = window.focusWidget()
    assert there is not None
    return there


@pytest.mark.full
def test_a_token_of_a_covered_row_is_chosen_by_arrows_and_guessed_by_enter(window: MainWindow) -> None:
    guide = guide_of(window)
    wait_until(lambda: isinstance(focus(window), KeyCover))
    cover = focus(window)
    assert isinstance(cover, KeyCover)
    before = picture(cover)
    key(window, Qt.Key.Key_Return)
    assert 0 not in guide.answers, "nothing is chosen yet"
    for _ in range(3):
        key(window, Qt.Key.Key_Right)
    key(window, Qt.Key.Key_Left)
    assert guide.column.question.given == "Tom"
    row = cover.row()
    chosen = picture(cover)
    assert colour_at(chosen, row[1].center()) != colour_at(before, row[1].center()), "it is seen"
    assert colour_at(chosen, row[4].center()) == colour_at(before, row[4].center())
    key(window, Qt.Key.Key_End)
    key(window, Qt.Key.Key_Right)
    assert cover.at == 13
    key(window, Qt.Key.Key_Home)
    key(window, Qt.Key.Key_Right)
    key(window, Qt.Key.Key_Return)
    assert guide.answers[0].given == "Tom"
    assert guide.answers[0].right is (guide.figures["most"] == "Tom")
    assert not covers(window)
    key(window, Qt.Key.Key_Return)
    arrive(window)
    assert guide.at == 1, "Enter goes on"


@pytest.mark.full
def test_a_number_is_guessed_by_arrows_and_enter(window: MainWindow) -> None:
    guide = guide_of(window)
    guide.go_to(1)
    arrive(window)
    question = guide.column.question
    wait_until(lambda: focus(window) is question.slider)
    key(window, Qt.Key.Key_Return)
    assert 1 not in guide.answers
    key(window, Qt.Key.Key_Right)
    key(window, Qt.Key.Key_Return)
    assert guide.answers[1].given == question.number.text()


@pytest.mark.full
def test_the_presenter_goes_back_to_no_option_of_another_step(window: MainWindow) -> None:
    """The keyboard was on an option of a step; that step's options are deleted by the time the window is back."""
    guide = guide_of(window)
    guide.go_to(2)
    arrive(window)
    wait_until(lambda: guide.column.question.isAncestorOf(focus(window)))
    key(window, Qt.Key.Key_Down)
    assert isinstance(focus(window), OptionButton)
    key(window, Qt.Key.Key_F5)
    key(window, Qt.Key.Key_PageDown)
    arrive(window)
    assert guide.at == 3
    key(window, Qt.Key.Key_Escape)
    wait_until(lambda: not window.contents.one_panel.alone)  # an exception in a slot fails the test


def begun(window: MainWindow, path: Path) -> bool:
    return window.lessons.path == path


def test_a_lesson_that_has_ended_leaves_nothing_in_the_window(window: MainWindow) -> None:
    def parts() -> tuple[int, ...]:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        return tuple(len(window.findChildren(kind)) for kind in (LessonColumn, Ring, Covers, QShortcut))

    window.lessons.end()
    before = parts()
    assert before[0] == 0
    for path in shipped_lessons()[:2]:
        window.lessons.begin(path)
        wait_until(partial(begun, window, path))
        arrive(window)
    window.lessons.end()
    settle(window)
    assert parts() == before


@pytest.mark.full
def test_an_option_is_chosen_by_arrows_and_guessed_by_enter(window: MainWindow) -> None:
    guide = guide_of(window)
    guide.go_to(2)
    arrive(window)
    wait_until(lambda: guide.column.question.isAncestorOf(focus(window)))
    key(window, Qt.Key.Key_Down)
    assert guide.column.question.given_text == "All", "it begins with the first"
    key(window, Qt.Key.Key_Down)
    assert guide.column.question.given_text == "Nothing"
    key(window, Qt.Key.Key_Up)
    assert guide.column.question.given_text == "All"
    key(window, Qt.Key.Key_Down)
    key(window, Qt.Key.Key_Return)
    assert (guide.answers[2].given, guide.answers[2].right) == ("Nothing", True)


def test_cells_of_a_mask_are_taken_by_space_and_shift(window: MainWindow) -> None:
    guide = guide_of(window)
    guide.go_to(3)
    arrive(window)
    wait_until(lambda: isinstance(focus(window), RowCover))
    question = guide.column.question
    key(window, Qt.Key.Key_Right)
    key(window, Qt.Key.Key_Space)
    for _ in range(5):
        key(window, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert question.given == "0–5"
    key(window, Qt.Key.Key_Space)
    assert question.given == "0–4"
    key(window, Qt.Key.Key_Return)
    assert guide.answers[3].right


@pytest.mark.short("next")
@pytest.mark.parametrize("hide", ["weight", "row", "next", "mask", "role"])
def test_what_is_covered_on_screen_is_guessed_by_keys_alone(window: MainWindow, hide: str) -> None:
    window.menus[f"predict_{hide}"].trigger()
    arrive(window)
    guide = guide_of(window)
    answers_with = focus(window)
    window.input.text.setFocus()
    key(window, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
    assert focus(window) is answers_with, "it was there already"
    key(window, Qt.Key.Key_Right)
    if hide == "next":
        QTest.keyClicks(focus(window), "Tom")
    elif hide == "mask":
        key(window, Qt.Key.Key_Space)
    key(window, Qt.Key.Key_Return)
    assert 0 in guide.answers
    assert not covers(window)


@pytest.mark.full
def test_while_presenting_the_keyboard_goes_to_the_question_by_its_key(window: MainWindow) -> None:
    guide = guide_of(window)
    window.dock_host.go_to("map")
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    try:
        guide.go_to(3)
        arrive(window)
        assert not isinstance(window.focusWidget(), RowCover), "keys are the presenter's"
        key(window, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
        assert isinstance(focus(window), RowCover)
        key(window, Qt.Key.Key_Right)
        key(window, Qt.Key.Key_Space)
        key(window, Qt.Key.Key_Return)
        assert 3 in guide.answers
    finally:
        window.presenter.end()
        wait_until(lambda: not window.contents.one_panel.alone)
