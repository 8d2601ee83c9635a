"""The button that says where the model runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.intents import Arrived
from attention_explorer.session.state import State
from attention_explorer.window.top_bar import DeviceMenu
from attention_models.protocol.loading import DevicesRequest, DevicesView, LoadRequest
from attention_models.protocol.request import Request
from attention_models.protocol.values import DeviceInfo, Placement
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession

DEVICES = (
    DeviceInfo("cpu", "CPU", 20_100_000_000, 24_000_000_000),
    DeviceInfo("cuda:0", "CUDA 0 (Card)", 70_000_000_000, 80_000_000_000),
    DeviceInfo("xpu:0", "XPU 0", None, None),
)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(State())


@pytest.fixture
def menu(qtbot, session) -> DeviceMenu:
    button = DeviceMenu(session)
    qtbot.addWidget(button)
    session.dispatch(Arrived(answers.loaded()))
    button.show()
    return button


def texts(menu: DeviceMenu) -> list[str]:
    return [action.text() for action in menu.choices.actions() if action.isCheckable()]


def test_it_says_where_the_model_runs(menu):
    assert menu.text() == "CPU float32"
    assert menu.isVisible()


def test_nothing_is_said_before_a_model_is_open(qtbot):
    button = DeviceMenu(SilentSession(State()))
    qtbot.addWidget(button)
    assert not button.isVisibleTo(button.parentWidget() or button)


def test_opening_asks_and_the_answer_fills_it_in(menu, session):
    asked: list[Request] = []
    session.requested.connect(asked.append)
    menu.choices.aboutToShow.emit()
    assert asked == [DevicesRequest()]
    session.dispatch(Arrived(DevicesView(request=DevicesRequest(), devices=DEVICES)))
    assert texts(menu)[:3] == ["CPU: 20.1 of 24 GB free", "CUDA 0 (Card): 70.0 of 80 GB free", "XPU 0"]
    assert texts(menu)[3:] == [
        "float32: as precise as this program compares",
        "bfloat16: half the memory, coarse numbers",
        "float16: half the memory, no very large numbers",
    ]
    checked = [action.text() for action in menu.choices.actions() if action.isChecked()]
    assert [text.split(":")[0] for text in checked] == ["CPU", "float32"]
    tips = [action.toolTip() for action in menu.choices.actions() if action.isCheckable()][3:]
    assert ["6e-08" in tips[0], "4e-03" in tips[1], "5e-04" in tips[2]] == [True] * 3


def test_a_device_is_chosen(menu, session):
    session.dispatch(Arrived(DevicesView(request=DevicesRequest(), devices=DEVICES)))
    asked: list[Request] = []
    session.requested.connect(asked.append)
    next(a for a in menu.choices.actions() if a.text().startswith("CUDA")).trigger()
    assert asked[-1] == LoadRequest(reference="story-gpt", placement=Placement("cuda:0", "float32"))


def test_what_is_on_screen_is_kept_when_devices_become_known(menu, session):
    loaded = session.state.results.loaded
    session.dispatch(Arrived(DevicesView(request=DevicesRequest(), devices=DEVICES)))
    assert session.state.results.loaded is loaded
    session.dispatch(Arrived(answers.loaded("story-bert")))
    assert session.state.results.of(DevicesView).devices == DEVICES


def test_a_textbook_model_has_nothing_to_choose(menu, session):
    answer = answers.loaded()
    session.dispatch(Arrived(replace(answer, info=replace(answer.info, textbook=True))))
    assert not any(action.isEnabled() for action in menu.choices.actions() if action.isCheckable())
