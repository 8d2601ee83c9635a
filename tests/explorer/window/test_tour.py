"""The tour in the real window: by a person's own clicks and keys, by "Show me", left and taken up again, remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer import settings as remembered
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.session.intents import OpenCheckpoint, SelectQuery, SetText
from attention_explorer.session.state import Document, State
from attention_explorer.settings import Settings
from attention_explorer.window.tour.pointing import place_of
from attention_explorer.window.tour.tour import TourGuide
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint
from tests.explorer.real_window import (
    EXAMPLE,
    back_to_start,
    destroy,
    look_put_back,
    opened_window,
    panel_of,
    press,
    settle,
    wait_until,
)
from tests.models import tiny


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(arrangement="flow") as window:
        yield window


@pytest.fixture
def window(opened: MainWindow) -> Iterator[MainWindow]:
    back_to_start(opened)
    opened.dock_host.arrange(1.0, "flow")
    opened.tour.at = 0
    settle(opened)
    yield opened
    if opened.tour.is_on:
        opened.tour.leave("later")


@torch.no_grad()
def expected(blocked: bool) -> float:
    """How likely transformers' own eager GPT-2 finds " Tom" next, in percent; `blocked`: with a cell of 5.5 masked."""
    model = open_checkpoint("story-gpt")
    eager, inputs = tiny.eager(model), model.encode(EXAMPLE).inputs
    tokens = inputs["input_ids"].shape[1]

    def mask_one(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        mask = torch.full((1, 8, tokens, tokens), 0.0)
        mask += torch.full((tokens, tokens), torch.finfo(torch.float32).min).triu(1)
        mask[0, 5, tokens - 1, 1] = torch.finfo(torch.float32).min
        return args, {**kwargs, "attention_mask": mask}

    if blocked:
        eager.transformer.h[5].attn.register_forward_pre_hook(mask_one, with_kwargs=True)
    logits = eager(**inputs).logits[0, -1].double()
    (tom,) = model.tokenizer(" Tom", add_special_tokens=False)["input_ids"]
    return 100 * float(torch.softmax(logits, dim=-1)[tom])


def under_the_ring(window: MainWindow) -> tuple[QWidget, QPoint]:
    """The widget in the middle of what the ring surrounds, and where: the ring itself is not in the way."""
    ring = window.tour.ring
    wait_until(ring.isVisible)
    QTest.qWait(150)  # it follows a moment later
    middle = ring.geometry().center()
    found = ring.window().childAt(middle)
    assert found is not None
    return found, found.mapFrom(ring.window(), middle)


def act(window: MainWindow) -> None:
    """Do what the step asks for with the mouse: press what is in the ring, until nothing more is asked for."""
    guide = window.tour
    for _ in range(3):
        if guide.is_done(window.session.state):
            return
        widget, where = under_the_ring(window)
        if guide.tour.step[guide.at].point == "checkpoint":
            choose_from(window, "en-es")
        else:
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=where)
        settle(window)
    assert guide.is_done(window.session.state)


def choose_from(window: MainWindow, name: str) -> None:
    menu = window.top_bar.menu
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.rect().center())
    view = menu.view()
    wait_until(view.isVisible)
    press(view, Qt.Key.Key_Home)
    for _ in range(menu.findData(name)):
        press(view, Qt.Key.Key_Down)
    press(view, Qt.Key.Key_Return)
    wait_until(lambda: window.session.state.document.checkpoint == name and window.session.state.up_to_date)


def press_button(window: MainWindow, name: str) -> None:
    button = window.tour.bar.buttons[name]  # type: ignore[index]
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton, pos=button.rect().center())
    settle(window)


def text_of(guide: TourGuide) -> str:
    wait_until(lambda: "…" not in guide.bar.text.text())
    return guide.bar.text.text()


def check_figures(guide: TourGuide, said: list[str]) -> None:
    """The figures in the sentences are what transformers computes."""
    before, after = f"{expected(False):.1f} %", f"{expected(True):.1f} %"
    assert f"“Tom” ({before})" in said[1]
    assert "“⟨start⟩” takes 94" in said[3]
    assert f"“Tom” falls from {before} to {after}" in said[7]
    assert "To write “gato” this head attends to “cat” with 99" in said[8]
    assert (before, after) == ("67.9 %", "36.6 %")


@pytest.mark.full
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # no keyboard for a menu offscreen
def test_by_ones_own_acts(window: MainWindow) -> None:
    guide = window.tour
    guide.begin()
    said = []
    for number, step in enumerate(guide.tour.step):
        assert (guide.at, guide.bar.title.text()) == (number, step.title)
        assert guide.bar.text.text() == step.say
        assert not guide.bar.buttons["next"].isVisible()
        assert number == 0 or window.focusWidget() is guide.bar.buttons["show"]  # where "Go on" was pressed
        act(window)
        said.append(text_of(guide))
        assert not guide.ring.isVisible()
        assert guide.bar.buttons["next"].text() not in {panel.title for panel in window.panels}
        if step.act.blocked:  # the bars that it speaks of can be seen
            assert ("next" in window.dock_host.front_panels()) == ("{key_share}" in step.done)
        press_button(window, "next")
    assert guide.bar.text.text() == guide.tour.end
    check_figures(guide, said)
    press_button(window, "next")
    assert not guide.bar.isVisible()
    assert guide.answer == "done"


@pytest.mark.short("mouse")
@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_by_show_me(window: MainWindow, by: str) -> None:
    guide, said = window.tour, []
    guide.begin()
    for _ in guide.tour.step:
        if by == "mouse":
            press_button(window, "show")
        else:
            press(window, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
        wait_until(lambda: guide.is_done(window.session.state))
        settle(window)
        said.append(text_of(guide))
        press(window, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
    assert guide.at == len(guide.tour.step)
    check_figures(guide, said)
    press(window, Qt.Key.Key_PageUp, Qt.KeyboardModifier.AltModifier)
    assert guide.at == len(guide.tour.step) - 1


@pytest.mark.full
def test_somebody_who_does_something_else_is_let_be_and_finds_the_way_back(window: MainWindow) -> None:
    guide = window.tour
    guide.begin()
    window.session.dispatch(SelectQuery(3))
    settle(window)
    assert guide.bar.text.text() == guide.tour.step[0].say  # another token is no reason to complain
    window.session.dispatch(SetText("My own text"))
    settle(window)
    assert "another text or model" in guide.bar.text.text()
    assert guide.bar.buttons["show"].text() == "Go there"
    assert not guide.ring.isVisible()
    assert window.session.state.document.text == "My own text"
    press_button(window, "show")
    wait_until(lambda: guide.ring.isVisible())
    assert window.session.state.document.text == EXAMPLE
    window.session.undo()
    settle(window)
    assert window.session.state.document.text == "My own text"


@pytest.mark.full
def test_another_model_and_the_way_back_from_it(window: MainWindow) -> None:
    guide = window.tour
    guide.begin()
    window.session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(lambda: window.session.state.document.checkpoint == "story-bert" and window.is_settled())
    assert guide.bar.buttons["show"].text() == "Go there"
    press_button(window, "show")
    wait_until(lambda: guide.ring.isVisible())
    document = window.session.state.document
    assert (document.checkpoint, document.text) == ("story-gpt", EXAMPLE)


def test_escape_closes_it_and_help_takes_it_up_again_at_the_step(window: MainWindow) -> None:
    guide = window.tour
    guide.begin()
    for _ in range(2):
        act(window)
        press_button(window, "next")
    guide.bar.buttons["show"].setFocus()
    press(guide.bar.buttons["show"], Qt.Key.Key_Escape)
    assert not guide.bar.isVisible()
    assert not guide.ring.isVisible()
    window.menus["tour"].trigger()
    assert guide.at == 2
    assert guide.bar.title.text() == guide.tour.step[2].title
    press_button(window, "back")
    assert guide.at == 1


@pytest.mark.full
def test_the_ring_follows_the_window_its_docks_and_the_size_of_text(window: MainWindow) -> None:
    guide = window.tour
    guide.at = 3
    window.dock_host.raise_panel("heads")
    guide.begin()
    window.session.dispatch(SelectQuery(13))
    settle(window)

    def is_round_its_place() -> bool:
        place = place_of(window.contents, guide.tour.step[3].point, guide.tour.step[3].act, window.session.state)
        if place is None or not guide.ring.isVisible():
            return False
        widget, rect = place
        return guide.ring.window() is widget.window() and guide.ring.geometry().center() == (
            widget.mapTo(widget.window(), rect.center())
        )

    wait_until(is_round_its_place)
    first = guide.ring.geometry()
    window.resize(1500, 900)
    wait_until(lambda: guide.ring.geometry() != first and is_round_its_place())
    window.scale_text(1.5)
    QTest.qWait(300)
    wait_until(is_round_its_place)
    window.scale_text(0)
    window.dock_host.docks["heads"].setFloating(True)
    wait_until(lambda: guide.ring.window() is window.dock_host.docks["heads"] and is_round_its_place())
    window.dock_host.docks["heads"].setFloating(False)
    window.dock_host.raise_panel("flow")  # behind another: its tab is pointed at
    wait_until(lambda: guide.ring.isVisible() and guide.ring.window() is window)
    window.resize(1280, 800)


@pytest.mark.full
def test_what_is_scrolled_away_is_scrolled_to_once(window: MainWindow) -> None:
    guide = window.tour
    window.scale_text(1.5)
    QTest.qWait(300)
    guide.at = 3
    window.dock_host.raise_panel("heads")
    guide.begin()
    settle(window)
    area = panel_of(window, HeadAtlasPanel).area
    wait_until(lambda: guide.ring.isVisible() and area.verticalScrollBar().value() > 0)
    area.verticalScrollBar().setValue(0)
    QTest.qWait(250)
    assert area.verticalScrollBar().value() == 0
    window.scale_text(0)
    QTest.qWait(300)


@pytest.mark.short("size1-1.0")
@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_nothing_of_the_bar_is_cut(window: MainWindow, size: tuple[int, int], scale: float) -> None:
    guide = window.tour
    window.resize(*size)
    window.scale_text(scale)
    QTest.qWait(300)
    guide.begin()
    for _ in range(4):
        press_button(window, "show")
        wait_until(lambda: guide.is_done(window.session.state))
        settle(window)
        QTest.qWait(250)
        label = guide.bar.text
        assert label.heightForWidth(label.width()) <= label.height()
        shown = [button for button in guide.bar.buttons.values() if button.isVisible()]
        assert all(button.width() >= button.sizeHint().width() for button in shown)
        assert guide.bar.mapTo(window, guide.bar.rect().bottomRight()).y() < window.height()
        press_button(window, "next")
    window.scale_text(0)
    window.resize(1280, 800)


# --------------------------------------------------------------------------- the offer, and what is remembered


class Never:
    """An engine that answers nothing."""

    def run(self, *_: object) -> object:
        raise AssertionError


def started(settings: Settings, **options: object) -> MainWindow:
    state = State(Document(text=EXAMPLE, **options))  # type: ignore[arg-type]
    window = MainWindow(state, settings, engine_factory=Never)  # type: ignore[arg-type]
    window.show()
    window.start()
    wait_until(window.has_all_panels)
    return window


@pytest.fixture
def starts(qapp: QApplication) -> Iterator[list[MainWindow]]:
    windows: list[MainWindow] = []
    with look_put_back():
        yield windows
        for window in windows:
            window.close()
            destroy(window)


def start_again(starts: list[MainWindow], **options: object) -> MainWindow:
    if starts:
        starts[-1].close()
    starts.append(started(remembered.load()[0], **options))
    return starts[-1]


def is_offered(window: MainWindow) -> bool:
    return window._tour is not None and window._tour.bar.isVisible()


@pytest.mark.full
@pytest.mark.parametrize(("button", "again"), [("later", True), ("never", False)])
def test_the_offer_is_quiet_and_its_answer_is_remembered(
    starts: list[MainWindow], settings_folder: object, button: str, again: bool
) -> None:
    window = start_again(starts)
    assert is_offered(window)
    assert window.tour.bar.title.text() == "New here? Two minutes"
    assert QApplication.activeModalWidget() is None
    assert window.input.text.hasFocus()  # what is typed still goes to the text
    bar = window.tour.bar.buttons[button]  # type: ignore[index]
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.rect().center())
    assert not is_offered(window)
    second = start_again(starts)
    assert is_offered(second) == again
    second.menus["tour"].trigger()  # Help has it all the same
    assert second.tour.bar.isVisible()


@pytest.mark.full
def test_a_tour_that_was_broken_off_goes_on_at_its_step(starts: list[MainWindow], settings_folder: object) -> None:
    window = start_again(starts)
    window.tour.begin()
    window.tour._enter(4)
    second = start_again(starts)
    assert is_offered(second)
    assert "step 5 of 9" in second.tour.bar.text.text()
    button = second.tour.bar.buttons["next"]
    QTest.mouseClick(button, Qt.MouseButton.LeftButton, pos=button.rect().center())
    assert second.tour.at == 4
    second.tour._enter(9)
    second.tour.leave("done")
    assert not is_offered(start_again(starts))


@pytest.mark.full
def test_another_checkpoint_is_started_without_an_offer(starts: list[MainWindow], settings_folder: object) -> None:
    assert not is_offered(start_again(starts, checkpoint="story-bert"))
