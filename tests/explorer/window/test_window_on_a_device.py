"""The whole window with its engine on a device that is not the CPU, and what it offers where that is full."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton

from attention_explorer.window.window import MainWindow
from attention_models.protocol.loading import DevicesView
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import Placement
from tests import pretend_device
from tests.explorer.real_window import EXAMPLE, bars, click, opened_window, paste, settle, wait_until

pytestmark = pytest.mark.full

DEVICE = Placement("pretend:0", "float32")


@pytest.fixture
def window(qapp) -> Iterator[MainWindow]:
    with pretend_device.pretended(no_float64=True), opened_window() as window:
        yield window


def choices(window: MainWindow) -> list[QAction]:
    """The device menu's, as they stand once it was opened."""
    menu = window.top_bar.devices.choices
    menu.aboutToShow.emit()
    wait_until(lambda: window.session.state.results.of(DevicesView) is not None)
    return [action for action in menu.actions() if action.isCheckable()]


def placement(window: MainWindow) -> Placement:
    loaded = window.session.state.results.loaded
    assert loaded is not None
    return loaded.placement


def test_the_first_accelerator_is_taken_and_every_panel_filled(window):
    assert placement(window) == DEVICE
    assert window.top_bar.devices.text() == "PRETEND 0 (Card 0) float32"
    there = bars(window)
    for name in window.dock_host.docks:
        window.dock_host.raise_panel(name)
        settle(window)
    report = window.session.state.results.of(TrustReport)
    assert report is not None
    assert report.holds
    assert window.session.state.notice is None
    cpu = next(action for action in choices(window) if action.text().startswith("CPU"))
    assert "PRETEND 1 (Card 1): 64.0 of 64 GB free" in [action.text() for action in choices(window)]
    cpu.trigger()
    wait_until(lambda: placement(window).device == "cpu")
    settle(window)
    assert bars(window) == there


def take_the_offer(window: MainWindow) -> None:
    button = next(button for button in window.notice_bar.findChildren(QPushButton) if button.isVisible())
    click(button, button.rect().center())


def offered(window: MainWindow, sentence: str) -> str:
    """What is offered with the notice, once it begins with `sentence`."""
    wait_until(lambda: window.notice_bar.isVisible() and window.notice_bar.text.startswith(sentence))
    notice = window.session.state.notice
    assert notice is not None
    return notice.action_label


def test_a_full_device_offers_a_smaller_format_and_then_the_cpu(window):
    pretend_device.set_budget(pretend_device.held() + 1_000_000)
    paste(window, EXAMPLE * 8)
    assert offered(window, "There is not enough memory for this.") == "Use bfloat16"
    take_the_offer(window)
    refusal = "story-gpt takes 17.1 MB of memory to open in bfloat16, and"  # beside the open one, which stays
    assert offered(window, refusal) == "Use the CPU"
    assert placement(window) == DEVICE
    take_the_offer(window)
    wait_until(lambda: placement(window) == Placement("cpu", "bfloat16"))
    settle(window)
    assert window.session.state.notice is None
    assert window.session.state.ran is not None
    assert window.session.state.ran.inputs.prompt == EXAMPLE * 8
