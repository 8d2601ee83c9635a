"""While a question stands nothing on screen says its answer, and what says nothing of it can be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.base import Panel
from attention_explorer.panels.flow.box_text import title
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.paths import resource
from attention_explorer.session.figures import Figure
from attention_explorer.session.hidden import EVERYTHING, HIDDEN_WITH, HIDES, Hide
from attention_explorer.session.lesson_files import load
from attention_explorer.session.lessons import Ask, Option, Step
from attention_explorer.window.lesson.covers import Cover
from attention_explorer.window.lesson.guide import LessonGuide
from attention_explorer.window.lesson.question import AnswerList, OptionButton
from attention_explorer.window.window import MainWindow
from attention_models.protocol.facts import KINDS
from tests.explorer.real_window import back_to_start, key, opened_window, picture, settle, wait_until
from tests.explorer.visible_texts import painted, texts_in

LESSONS = {path.name[:2]: path for path in resource("lessons").glob("*.toml")}


def step_of(say: str = "", hide: Hide = "", **figures: Figure) -> Step:
    first = next(iter(figures))
    options = (Option(say="A", when=f"{first} = 1"), Option(say="B", when=f"{first} != 1"))
    return Step(title="T", say=say, figures=figures, ask=Ask(question="?", options=options, hide=hide))


def test_what_decides_the_answer_is_hidden_unasked() -> None:
    assert step_of(a=Figure(kind="head width")).hides == {"width"}
    assert step_of(a=Figure(kind="weight"), hide="next").hides == {"weight", "next"}
    assert step_of(a=Figure(kind="softmax", numbers=(1.0,))).hides == set()
    assert step_of(say="It is {a}.", a=Figure(kind="head width")).hides == set(), "its text says it"
    assert step_of(a=Figure(kind="layers"), b=Figure(kind="next")).hides == {"size"}, "b decides nothing"


def test_a_figure_of_another_input_is_not_on_screen_and_one_of_another_cell_is_hidden_with_the_map() -> None:
    assert step_of(a=Figure(kind="next", text="Another")).hides == set()
    assert step_of(a=Figure(kind="weight", unchanged=True)).hides == set()
    assert step_of(a=Figure(kind="cosine", text="Another", word="bank")).hides == {"vector"}
    assert step_of(a=Figure(kind="weight", key="Tom")).hides == {"row"}
    assert step_of(a=Figure(kind="peak", layer=7, head=7)).hides == {"map"}


def test_every_kind_that_is_covered_can_be_named_and_comes_of_a_figure() -> None:
    assert set(HIDDEN_WITH) <= set(KINDS)
    assert set(HIDDEN_WITH.values()) == EVERYTHING == set(get_args(Hide)) - {""}
    assert set(HIDES) - {""} == EVERYTHING


def test_a_panel_that_does_not_say_what_it_shows_is_covered_for_everything() -> None:
    assert Panel.shows == EVERYTHING


@pytest.mark.parametrize(
    ("lesson", "step", "hidden"),
    [
        ("02", 8, {"gradient"}),
        ("03", 1, {"next"}),
        ("03", 4, {"score"}),
        ("04", 2, {"variance"}),
        ("06", 7, {"width"}),
        ("07", 5, {"position"}),
        ("08", 1, {"size"}),
        ("09", 3, {"map"}),
    ],
)
def test_shipped_questions_hide_what_they_ask_for(lesson: str, step: int, hidden: set[Hide]) -> None:
    assert load(LESSONS[lesson]).lesson.step[step - 1].hides == hidden


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="flow") as window:
        yield window


@pytest.fixture
def window(opened: MainWindow) -> Iterator[MainWindow]:
    back_to_start(opened)
    yield opened
    opened.lessons.end()
    settle(opened)


def begun(window: MainWindow, lesson: str, step: int) -> LessonGuide:
    """Give a step of a lesson, numbered from 1."""
    window.lessons.begin(LESSONS[lesson])
    wait_until(lambda: window.lessons.guide is not None)
    guide = window.lessons.guide
    assert guide is not None
    guide.go_to(step - 1)
    wait_until(lambda: guide.is_settled and window.is_settled())
    return guide


def raised(window: MainWindow, name: str) -> Panel:
    window.dock_host.raise_panel(name)
    panel = next(panel for panel in window.panels if panel.name == name)
    wait_until(panel.isVisible)
    settle(window)
    return panel


def is_covered(widget: QWidget, at: QPoint | None = None) -> bool:
    """Whether a cover takes the pointer there: in the middle where no place is named."""
    where = widget.mapTo(widget.window(), widget.rect().center() - QPoint(3, 3) if at is None else at)
    return isinstance(widget.window().childAt(where), Cover)


def reveal(guide: LessonGuide) -> None:
    guide.column.question.options.group.buttons()[0].click()
    guide.column.question.reveal.click()


def test_neither_arcs_nor_frames_lead_to_the_next_word_while_it_is_asked(window: MainWindow) -> None:
    guide = begun(window, "03", 1)
    strip = window.input.strip
    top = round(strip.chip_rect(0).top())

    def colours_above() -> set[int]:
        shot = picture(strip)
        ratio = shot.devicePixelRatio()
        rows, columns = range(2, int((top - 4) * ratio)), range(4, shot.width() - 4)
        return {shot.pixel(x, y) for y in rows for x in columns}

    first = strip.chip_rect(1)
    edge = QPoint(round(first.left()) + 1, round(first.center().y()))
    assert len(colours_above()) == 1, "an arc is drawn"
    framed = picture(strip).pixelColor(edge * picture(strip).devicePixelRatio())
    reveal(guide)
    guide.go_to(1)  # the head that finds the name, with "Tom" as its key
    wait_until(lambda: guide.is_settled and window.is_settled())
    assert len(colours_above()) == 1, "the row is asked for"
    question = guide.column.question
    question.take_token("Tom")
    question.reveal.click()
    QApplication.processEvents()
    assert len(colours_above()) > 1, "arcs are back"
    assert picture(strip).pixelColor(edge * picture(strip).devicePixelRatio()) != framed, "and the key's frame"


def test_what_a_score_is_divided_by_is_said_nowhere_before_it_is_answered(window: MainWindow) -> None:
    guide = begun(window, "03", 4)
    width = int(guide.figures["width"])
    told = (f"√{width}", "√d", f"{float(guide.figures['product']) / float(guide.figures['scaled']):.2f}")
    cell = raised(window, "cell")
    with painted() as seen:
        texts = texts_in(guide.column) | set(seen)
    assert not [text for text in texts if any(word in text for word in told)]
    steps = next(child for child in cell.findChildren(QWidget) if type(child).__name__ == "StepList")
    assert is_covered(steps, QPoint(20, 10))
    vectors = next(child for child in cell.findChildren(QWidget) if type(child).__name__ == "VectorBars")
    assert not is_covered(vectors, QPoint(20, 10)), "the two vectors say nothing of it"
    assert is_covered(raised(window, "variance"))
    for name in ("next", "heads"):
        assert not is_covered(raised(window, name)), name
    reveal(guide)
    assert not is_covered(steps, QPoint(20, 10))


def test_the_width_of_a_head_is_covered_in_the_picture_and_in_its_cell(window: MainWindow) -> None:
    guide = begun(window, "06", 7)
    said = f"{int(guide.figures['each'])} dimensions"
    flow = raised(window, "flow")
    assert isinstance(flow, FlowPanel)
    view = flow.body.block.view
    assert view is not None
    assert any(said in title(box) for box in view.boxes), "it is what is below the cover"
    assert is_covered(flow)
    assert is_covered(raised(window, "cell"))
    assert not is_covered(raised(window, "map")), "a map says nothing of it"


@pytest.mark.full
def test_how_many_positions_there_are_is_covered_in_the_line_at_the_top_too(window: MainWindow) -> None:
    guide = begun(window, "07", 5)
    facts = window.contents.top_bar.facts
    assert f"{int(guide.figures['context']):,}" in facts.text()
    assert is_covered(facts)
    assert is_covered(raised(window, "positions"))
    assert not is_covered(raised(window, "flow"))
    reveal(guide)
    assert not is_covered(facts)


def test_an_i_and_the_lines_of_pytorch_wait_for_the_answer(window: MainWindow) -> None:
    guide = begun(window, "03", 1)
    panel = raised(window, "next")
    panel.show_about()
    assert panel.callout.sentences[0] == panel.hint
    assert not any("Tom" in sentence or "%" in sentence for sentence in panel.callout.sentences)
    asked: list[object] = []
    panel.script_wanted.connect(asked.append)
    window.contents.show_script()
    assert not panel.code_button.isEnabled()
    assert not asked
    reveal(guide)
    QApplication.processEvents()
    assert panel.code_button.isEnabled()
    wait_until(lambda: any("Tom" in sentence for sentence in panel.callout.sentences))
    panel.show_about(False)


@pytest.mark.full
def test_what_a_translator_wrote_after_the_selected_word_is_covered(window: MainWindow) -> None:
    begun(window, "09", 1)
    window.lessons.end()
    window.menus["predict_next"].trigger()
    guide = window.lessons.guide
    assert guide is not None
    wait_until(lambda: guide.is_settled and window.is_settled())
    target, query = window.input.target, window.session.state.selection.query
    chips = [target.strip.chip_rect(chip).center().toPoint() for chip in range(target.strip.count)]
    assert [is_covered(target.strip, chip) for chip in chips] == [at > query for at in range(len(chips))]
    assert is_covered(target.text)


def test_no_answer_looks_chosen_before_one_is(window: MainWindow) -> None:
    guide = begun(window, "03", 1)
    answers = guide.column.question.options
    wait_until(lambda: window.focusWidget() is answers)
    buttons = [button for button in answers.group.buttons() if isinstance(button, OptionButton)]
    assert isinstance(answers, AnswerList)
    assert not any(button.hasFocus() or button.isChecked() for button in buttons)
    tops = [picture(button).copy(0, 0, 10, button.height()) for button in buttons]
    assert all(top == tops[0] for top in tops), "one of them is drawn in another way"
    key(window, Qt.Key.Key_Down)
    assert [button.isChecked() for button in buttons] == [True, False, False]
    assert window.focusWidget() is buttons[0]


def test_a_letter_chooses_its_answer(window: MainWindow) -> None:
    guide = begun(window, "03", 1)
    answers = guide.column.question.options
    wait_until(lambda: window.focusWidget() is answers)
    QTest.keyClicks(answers, "c")
    assert guide.column.question.given == 2.0
    QTest.keyClicks(answers, "x")
    assert guide.column.question.given == 2.0
