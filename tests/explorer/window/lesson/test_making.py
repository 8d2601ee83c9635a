"""A lesson made by clicks: what is on screen becomes its steps, and its file reads back equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton, QWidget

from attention_explorer.cli.lessons import checked
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.registry import TITLES
from attention_explorer.session import lesson_files
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.session.lesson_drafts import LETTERS, is_of_step
from attention_explorer.session.lesson_files import shipped_lessons
from attention_explorer.session.lessons import OpenLesson
from attention_explorer.window.lesson.column import SideDock
from attention_explorer.window.lesson.making import Making
from attention_explorer.window.window import MainWindow
from attention_models.files.sample_pictures import title_of_picture
from attention_models.protocol.facts import FactsView
from tests.explorer.real_window import (
    EXAMPLE,
    back_to_start,
    click_cell,
    click_head,
    opened_window,
    panel_of,
    paste,
    press,
    settle,
    wait_until,
)
from tests.explorer.visible_texts import texts_in
from tests.explorer.widgets.pictures import rendered
from tests.explorer.window.test_terms import unexplained

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="heads") as window:
        _ = window.lessons.making  # with its column, which stays as long as the window does
        yield window


@pytest.fixture
def window(opened: MainWindow) -> Iterator[MainWindow]:
    back_to_start(opened)
    opened.menus["new_lesson"].trigger()
    yield opened
    opened.lessons.end()
    let_go(opened)
    settle(opened)


@pytest.fixture
def making(window: MainWindow) -> Making:
    return window.lessons.making


def let_go(window: MainWindow) -> None:
    """Close what is made, without saving it."""
    making = window.lessons.making
    if making.is_on:
        left(making.column.close_button)
    if (box := question(window)) is not None:
        left(button_of(box, "Do not save"))
    assert not making.is_on


def left(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def question(window: MainWindow) -> QMessageBox | None:
    return next((box for box in window.findChildren(QMessageBox) if box.isVisible()), None)


def button_of(box: QMessageBox, text: str) -> QPushButton:
    return next(b for b in box.findChildren(QPushButton) if b.text().replace("&", "") == text)


def add(window: MainWindow, title: str, say: str = "") -> None:
    """Press the button, and write."""
    settle(window)
    column = window.lessons.making.column
    left(column.add)
    QTest.keyClicks(column.step_title, title)  # over the one that is selected
    if say:
        column.text.field.setFocus()
        QTest.keyClicks(column.text.field, say)


def choose_kind(making: Making, text: str) -> None:
    box = making.column.question.kind
    row = box.findText(text)
    assert row >= 0
    box.setCurrentIndex(row)
    box.activated.emit(row)


def titles(making: Making) -> list[str]:
    return [making.column.list.item(row).text() for row in range(making.column.list.count())]


def saved_by(making: Making, target: Path, monkeypatch: pytest.MonkeyPatch) -> OpenLesson:
    """What the reader of lessons makes of the file that Save as writes."""
    monkeypatch.setattr("attention_explorer.window.lesson.making.ask_where_to_save", lambda *_: target)
    left(making.column.save_as)
    return lesson_files.load(target, tuple(TITLES))


@pytest.mark.full
def test_a_lesson_made_by_clicks_reads_back_equal(
    window: MainWindow, making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    click_head(window, 2, 3)
    click_cell(window, 9, 4)
    add(window, "A head", "It attends to {peak}.")
    choose_kind(making, "Predict the next token")
    first = window.session.state.document
    paste(window, "Anna ran. Tom")
    window.dock_host.raise_panel("masks")
    window.menus["layer_up"].trigger()
    add(window, "Another text")
    second = window.session.state.document
    assert first != second
    written = saved_by(making, tmp_path / "mine.lesson", monkeypatch)
    assert written == making.draft.opened()
    assert making.is_saved
    assert [step.title for step in written.lesson.step] == ["A head", "Another text"]
    assert [state.document.inputs for state in written.states] == [first.inputs, second.inputs]
    cells = [(s.site, s.head, s.query, s.key) for s in (first.selection, second.selection)]
    kept = [state.document.selection for state in written.states]
    assert [(s.site, s.head, s.query, s.key) for s in kept] == cells
    assert ["masks" in state.screen.front for state in written.states] == [False, True]
    ask = written.lesson.step[0].ask
    assert ask is not None
    assert (ask.word, ask.hide) == ("next", "next")
    assert {name: figure.kind for name, figure in written.lesson.step[0].figures.items()} == {
        "peak": "peak",
        "next": "next",
    }


def test_a_mask_and_a_role_can_be_asked_for(
    window: MainWindow, making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(window, "Mask")
    choose_kind(making, "Predict the mask of the row")
    add(window, "Role")
    choose_kind(making, "Predict what the head does")
    mask, role = (step.ask for step in saved_by(making, tmp_path / "mine.lesson", monkeypatch).lesson.step)
    assert mask is not None
    assert role is not None
    assert (mask.cells, mask.hide) == ("visible_keys", "mask")
    assert role.hide == "role"
    assert role.right_options({"role": "previous"}) == (0,)
    assert role.right_options({"role": "obj-to-head"}) == (len(role.options) - 1,)


def test_giving_it_brings_back_what_was_on_screen(window: MainWindow, making: Making) -> None:
    add(window, "One", "{peak} and {weight}")
    document, front = window.session.state.document, set(window.dock_host.front_panels())
    paste(window, "Tom ran")
    window.dock_host.raise_panel("cell")
    settle(window)
    left(making.column.try_it)
    guide = window.lessons.guide
    assert guide is not None
    wait_until(lambda: guide.is_settled and window.is_settled())
    assert not making.column.isVisible()
    assert window.session.state.document.inputs == document.inputs
    assert window.session.state.selection == document.selection
    assert set(window.dock_host.front_panels()) == front
    figures = guide.figures
    assert guide.column.text.toPlainText() == f"{figures['peak']} and {100 * float(figures['weight']):.1f} %"
    left(guide.column.end)
    assert making.column.isVisible()


def test_a_ring_lies_around_the_cell_that_was_selected(window: MainWindow, making: Making) -> None:
    click_cell(window, 9, 4)
    add(window, "One")
    ring = making.column.ring
    ring.setCurrentIndex(ring.findData("cell"))
    ring.activated.emit(ring.currentIndex())
    click_cell(window, 3, 1)
    settle(window)
    left(making.column.try_it)
    guide = window.lessons.guide
    assert guide is not None
    wait_until(lambda: guide.is_settled and window.is_settled())
    heat_map = panel_of(window, HeadMapPanel).map
    assert guide.place() == (heat_map, heat_map.cell_rect(9, 4).toAlignedRect())


def test_what_is_changed_in_the_model_is_of_the_step(window: MainWindow, making: Making) -> None:
    from attention_explorer.session.intents import BlockCell

    click_cell(window, 13, 1)
    window.session.dispatch(BlockCell(True))
    add(window, "Blocked")
    (step,) = making.draft.steps
    assert step.state is not None
    assert [listed.value for listed in step.state.document.interventions] == [
        listed.value for listed in window.session.state.document.interventions
    ]
    assert step.state.document.interventions


def test_the_preview_has_the_models_own_figures(window: MainWindow, making: Making) -> None:
    add(window, "Figures", "**{peak}** gets {peak_weight}")
    wait_until(lambda: "%" in making.column.text.preview.toPlainText())
    view = window.session.state.results.of(FactsView)
    assert view is not None
    figures = dict(zip((fact.kind for fact in view.request.facts), view.values, strict=True))
    said = making.column.text.preview.toPlainText()
    assert said == f"{figures['peak']} gets {100 * float(figures['peak weight']):.1f} %"
    paste(window, "Anna ran")  # which is not what the step shows
    settle(window)
    assert making.column.text.preview.toPlainText() == "… gets …"
    left(making.column.show_it)
    settle(window)
    wait_until(lambda: making.column.text.preview.toPlainText() == said)
    assert window.session.state.document.text == EXAMPLE


def test_the_figures_come_back_after_a_guess(window: MainWindow, making: Making) -> None:
    add(window, "Figures", "{peak}")
    wait_until(lambda: making.column.text.preview.toPlainText() not in ("", "…"))
    said = making.column.text.preview.toPlainText()
    window.menus["predict_weight"].trigger()
    settle(window)
    guide = window.lessons.guide
    assert guide is not None
    wait_until(lambda: guide.is_settled)
    window.lessons.end()
    wait_until(lambda: making.column.text.preview.toPlainText() == said)


def test_the_grip_of_a_column_has_the_colours_of_the_window(window: MainWindow, making: Making) -> None:
    window.lessons.begin(shipped_lessons()[0])
    wait_until(lambda: window.lessons.is_giving)
    docks = [making.dock, *(dock for dock in window.findChildren(SideDock) if dock is not making.dock)]
    assert [dock.windowTitle() for dock in docks] == ["Lesson editor", "Lesson"]
    for dock in docks:
        grip = dock.titleBarWidget()
        assert grip is not None
        pictures = []
        for theme in (DARK, LIGHT):
            window.lessons.set_theme(theme)
            grip.resize(60, 10)  # also of the one that has made room
            pictures.append(rendered(grip))
        assert pictures[0] != pictures[1], dock.windowTitle()
        assert "double-click" not in grip.toolTip()  # it has no window of its own


def test_steps_are_dragged_and_moved_by_keys(window: MainWindow, making: Making) -> None:
    for title in ("A", "B", "C"):
        add(window, title)
    steps = making.column.list
    assert titles(making) == ["1  A", "2  B", "3  C"]
    press(steps, Qt.Key.Key_Up, CONTROL)
    assert titles(making) == ["1  A", "2  C", "3  B"]
    assert making.at == 1
    drop(making, 2, 0)
    assert titles(making) == ["1  B", "2  A", "3  C"]
    drop(making, 0, 3)
    assert titles(making) == ["1  A", "2  C", "3  B"]
    assert making.at == 2
    for _ in range(3):
        press(steps, Qt.Key.Key_Z, CONTROL)
    assert titles(making) == ["1  A", "2  B", "3  C"]
    press(steps, Qt.Key.Key_Y, CONTROL)
    assert titles(making) == ["1  A", "2  C", "3  B"]


def drop(making: Making, row: int, before: int) -> None:
    """Let go of a row above another one, or below the last."""
    steps = making.column.list
    steps.setCurrentRow(row)
    last = steps.visualItemRect(steps.item(steps.count() - 1))
    at = QPoint(
        20, last.bottom() - 2 if before == steps.count() else steps.visualItemRect(steps.item(before)).top() + 2
    )
    data = QMimeData()
    data.setData("application/x-qabstractitemmodeldatalist", b"")
    event = QDropEvent(
        QPointF(at), Qt.DropAction.MoveAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    steps.dropEvent(event)
    assert event.isAccepted()


def test_a_step_that_is_deleted_comes_back_with_undo(window: MainWindow, making: Making) -> None:
    document = window.session.state.document
    add(window, "A")
    add(window, "B")
    steps = making.column.list
    left(making.column.delete)
    assert titles(making) == ["1  A"]
    press(steps, Qt.Key.Key_Z, CONTROL)
    assert titles(making) == ["1  A", "2  B"]
    assert window.session.state.document == document  # the session's own undo is another


def test_letters_typed_in_a_field_are_undone_there(window: MainWindow, making: Making) -> None:
    add(window, "A", "Seen")
    field = making.column.text.field
    press(field, Qt.Key.Key_Z, CONTROL)
    assert field.text() == ""
    assert making.draft.steps[0].say == ""
    assert titles(making) == ["1  A"]


def test_the_screen_is_taken_again(window: MainWindow, making: Making) -> None:
    add(window, "A", "Stays")
    paste(window, "Anna ran")
    settle(window)
    left(making.column.take)
    (step,) = making.draft.steps
    assert step.state is not None
    assert (step.say, step.state.document.text) == ("Stays", "Anna ran")


def test_an_answer_that_is_not_complete_is_said_with_its_step(
    window: MainWindow, making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(window, "A")
    choose_kind(making, "Several answers")
    add(window, "B")
    asked: list[object] = []
    monkeypatch.setattr("attention_explorer.window.lesson.making.ask_where_to_save", lambda *_: asked.append(1))
    left(making.column.save)
    assert not asked
    assert making.at == 0
    assert making.column.fault.text() == "Step 1: answer A of its question says nothing."
    form = making.column.question
    form.question.setFocus()
    QTest.keyClicks(form.question, "Who?")
    for row, (say, when) in zip(form.rows, (("Less", "weight < 2"), ("More", "weight > 2")), strict=True):
        QTest.keyClicks(row.say, say)
        QTest.keyClicks(row.when, when)
    settle(window)
    wait_until(lambda: [row.mark.text() for row in form.rows] == ["✓", "✗"])
    written = saved_by(making, tmp_path / "a.lesson", monkeypatch)
    assert written == making.draft.opened()
    ask = written.lesson.step[0].ask
    assert ask is not None
    assert [(option.say, option.when) for option in ask.options] == [("Less", "weight < 2"), ("More", "weight > 2")]


@pytest.mark.parametrize("path", shipped_lessons()[::4], ids=lambda path: path.stem)
def test_a_lesson_that_comes_along_is_changed_and_saved_as_ones_own(
    window: MainWindow, making: Making, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = lesson_files.load(path)
    monkeypatch.setattr("attention_explorer.widgets.dialogs.file_to_open", lambda *_: str(path))
    window.menus["edit_lesson"].trigger()
    wait_until(lambda: len(titles(making)) == len(shipped.lesson.step))
    assert making.draft.opened() == shipped
    target = tmp_path / "own.lesson"
    written = saved_by(making, target, monkeypatch)
    assert written == shipped
    assert making.path == target


def test_what_is_not_saved_is_asked_about(window: MainWindow, making: Making, tmp_path: Path, monkeypatch) -> None:
    add(window, "A")
    left(making.column.close_button)
    box = question(window)
    assert box is not None
    assert not box.isModal()
    left(button_of(box, "Cancel"))
    assert making.column.isVisible()
    monkeypatch.setattr("attention_explorer.window.lesson.making.ask_where_to_save", lambda *_: tmp_path / "a.lesson")
    left(making.column.close_button)
    box = question(window)
    assert box is not None
    left(button_of(box, "Save"))
    assert not making.is_on
    assert lesson_files.load(tmp_path / "a.lesson").lesson.step[0].title == "A"


def test_a_window_with_a_lesson_that_is_not_saved_stays_until_it_is_asked(window: MainWindow, making: Making) -> None:
    add(window, "A")
    assert not window.close()
    assert window.isVisible()
    box = question(window)
    assert box is not None
    left(button_of(box, "Cancel"))
    assert window.isVisible()
    assert making.draft.steps


@pytest.mark.full
def test_a_program_that_is_ended_asks_nothing(qapp: QApplication) -> None:
    with opened_window() as window:
        left_alone = window.lessons.making
        left_alone.add()
        assert not left_alone.is_saved
        window.end()
        assert not window.isVisible()
        assert question(window) is None


def test_a_checkpoint_that_a_lesson_may_not_name_is_no_step(
    window: MainWindow, making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = window.sessions.present()
    elsewhere = replace(present, document=replace(present.document, checkpoint="/home/somebody/model"))
    monkeypatch.setattr(window.sessions, "present", lambda: elsewhere)
    left(making.column.add)
    assert not making.draft.steps
    notice = window.session.state.notice
    assert notice is not None
    assert "no checkpoint that a lesson may name" in notice.text


def test_the_menu_begins_a_lesson_with_what_is_on_screen(opened: MainWindow) -> None:
    back_to_start(opened)
    action = opened.menus["add_step"]
    assert isinstance(action, QAction)
    action.trigger()
    making = opened.lessons.making
    assert making.is_on
    assert titles(making) == ["1  Step 1"]
    let_go(opened)


def test_a_step_says_what_its_model_reads(window: MainWindow, making: Making) -> None:
    """With a vision model that is a picture, and not the text that waits for a model of texts."""
    add(window, "A")
    assert making.column.shows.text() == f"Shows story-gpt: “{EXAMPLE}”"
    window.session.dispatch(OpenCheckpoint("vit-quickdraw"))
    settle(window)
    assert window.session.state.document.text == EXAMPLE
    add(window, "B")
    step = making.draft.steps[-1]
    assert step.state is not None
    assert window.session.state.ran is not None
    assert (step.state.document.text, step.state.document.picture) == ("", window.session.state.ran.inputs.picture)
    assert making.column.shows.text() == f"Shows vit-quickdraw: {title_of_picture(step.state.document.picture)}"
    assert is_of_step(step, window.session.state, ())


def test_a_step_has_the_size_of_text_that_was_chosen_for_it(window: MainWindow, making: Making) -> None:
    add(window, "A")
    making.column.text_size.setValue(150)
    assert window.text_factor == 1.5
    assert making.draft.opened().lesson.step[0].text_size == 1.5
    add(window, "B")
    assert making.draft.opened().lesson.step[1].text_size == 1.5
    let_go(window)
    assert window.text_factor == 1.0


def test_what_the_column_says_is_plain(window: MainWindow, making: Making) -> None:
    """As of every other label: see `test_terms.py`."""
    add(window, "A")
    texts = texts_in(making.column) | {action.text() for action in making.column.text.menu.actions()}
    for row in range(making.column.question.kind.count()):
        choose_kind(making, making.column.question.kind.itemText(row))
        settle(window)
        texts |= texts_in(making.column)
    assert len(texts) > 30
    # names of tokens, models and figures, and the letters of answers
    assert unexplained(texts, frozenset({"tom", "gpt", "peak", *LETTERS.casefold()})) == {}


def test_every_step_of_a_lesson_of_ones_own_is_checked(
    window: MainWindow, making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(window, "A", "{peak}")
    choose_kind(making, "Several answers")
    form = making.column.question
    QTest.keyClicks(form.question, "Who?")
    for row, (say, when) in zip(form.rows, (("One", "weight < 2"), ("Other", "weight < 3")), strict=True):
        QTest.keyClicks(row.say, say)
        QTest.keyClicks(row.when, when)
    add(window, "B")
    path = tmp_path / "mine.lesson"
    saved_by(making, path, monkeypatch)
    let_go(window)
    lines = list(checked(window, path))
    assert [wrong for _, wrong in lines] == [True, False]
    assert "2 of its options are right" in lines[0][0]
    assert lines[1][0] == "mine.lesson, step 2, B: passed"


@pytest.mark.full
def test_a_class_does_not_see_the_column(window: MainWindow, making: Making) -> None:
    add(window, "A")
    window.menus["present"].trigger()
    settle(window)
    assert not making.column.isVisible()
    window.menus["add_step"].trigger()
    assert len(making.draft.steps) == 2
    window.menus["present"].trigger()
    wait_until(making.column.isVisible)


def test_nothing_of_the_page_is_cut_off_at_its_side(window: MainWindow, making: Making) -> None:
    add(window, "A")
    choose_kind(making, "Several answers")
    area = making.column.area
    page = area.widget()
    assert page is not None
    wait_until(lambda: page.width() <= area.viewport().width())
    before = page.minimumSizeHint().width()
    window.scale_text(2.0)
    wait_until(lambda: before < page.minimumSizeHint().width() <= page.width() <= area.viewport().width())
    window.scale_text(0)
    settle(window)


def test_ctrl_s_in_the_column_saves_the_lesson_and_not_the_session(
    window: MainWindow, making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(window, "A", "Said")
    monkeypatch.setattr("attention_explorer.window.lesson.making.ask_where_to_save", lambda *_: tmp_path / "a.lesson")
    monkeypatch.setattr("attention_explorer.window.sessions.ask_where_to_save", lambda *_: tmp_path / "a.attn")
    press(making.column.text.field, Qt.Key.Key_S, CONTROL)
    assert making.is_saved
    QTest.keyClicks(making.column.text.field, "!")
    press(making.column.list, Qt.Key.Key_S, CONTROL)
    assert lesson_files.load(tmp_path / "a.lesson").lesson.step[0].say == "Said!"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.lesson"]
