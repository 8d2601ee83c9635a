"""Choosing a checkpoint in the window, with the real engine, and a hub on this computer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from huggingface_hub import constants
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.chooser.dialog import CheckpointDialog
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import WEIGHTS
from attention_models.files.helper_process import Limits
from attention_models.hub.engine import HubEngine
from attention_models.opening import trial_process
from attention_models.protocol.loading import LoadRequest
from tests.explorer.real_window import opened_window, press, settle, wait_until
from tests.models import tiny
from tests.models.gguf_maker import gguf_of
from tests.models.hub_server import REPOSITORY, Hub, reached
from tests.models.opening.damage import change_config

pytestmark = pytest.mark.x


@pytest.fixture
def window(qapp) -> Iterator[MainWindow]:
    with opened_window() as window:
        yield window


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """story-gpt on a hub, without its card."""
    source = tmp_path / "on the hub"
    shutil.copytree(WEIGHTS / "story-gpt", source)
    (source / "explorer.json").unlink()
    with hub_of(source, tmp_path / "cache", monkeypatch) as hub:
        yield hub


@pytest.fixture
def ggufs_on_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A tiny llama on a hub, as two GGUF files."""
    made, source = tiny.save("llama", tmp_path / "llama"), tmp_path / "on the hub"
    source.mkdir()
    gguf_of(made, source / "tiny-F32.gguf")
    gguf_of(made, source / "tiny-Q8_0.gguf", packed=True)
    with hub_of(source, tmp_path / "cache", monkeypatch) as hub:
        yield hub


@contextmanager
def hub_of(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    with reached(source, monkeypatch) as hub:
        monkeypatch.setattr("attention_models.hub.engine.HubEngine", lambda: HubEngine(hub.address, cache))
        yield hub


def chooser(window: MainWindow) -> CheckpointDialog:
    """The dialog, opened by its key, once it has described what is open."""
    press(window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    window.menus["open"].trigger()
    dialog = window.chooser.dialog
    assert dialog is not None
    wait_until(dialog.open_button.isEnabled)
    return dialog


def test_another_shipped_one_by_keys_alone(window):
    dialog = chooser(window)
    assert "8.5 million" in dialog.view.text
    press(dialog.choices, Qt.Key.Key_Down)
    wait_until(lambda: "story-bert" in dialog.view.title.text() and dialog.open_button.isEnabled())
    assert "7.0 million" in dialog.view.text
    assert window.session.state.document.checkpoint == "story-gpt"  # nothing is loaded yet
    press(dialog.choices, Qt.Key.Key_Return)
    wait_until(lambda: window.session.state.document.checkpoint == "story-bert" and window.is_settled())
    assert window.chooser.dialog is None
    assert window.top_bar.menu.currentData() == "story-bert"


def test_a_folder_that_can_not_be_opened_is_said_before_it_is_tried(window, tmp_path, monkeypatch):
    dialog = chooser(window)
    before = window.session.state
    monkeypatch.setattr(dialogs, "folder", lambda *_: str(tmp_path))
    QTest.mouseClick(dialog.folder_button, Qt.MouseButton.LeftButton)
    wait_until(dialog.view.refusal.isVisible)
    assert "no config.json" in dialog.view.text
    assert not dialog.open_button.isEnabled()
    press(dialog, Qt.Key.Key_Escape)
    assert window.session.state.document == before.document
    assert window.session.state.ran is before.ran
    assert window.session.state.notice is None


@pytest.mark.full
def test_fetched_from_a_hub_and_opened(window, hub):
    dialog = chooser(window)
    dialog.hub_box.name.setFocus()
    QTest.keyClicks(dialog.hub_box.name, REPOSITORY)
    press(dialog.hub_box.name, Qt.Key.Key_Return)
    wait_until(lambda: dialog.download_button.isVisible() and dialog.download_button.isEnabled())
    assert "8.5 million" in dialog.view.text  # from the headers alone
    assert dialog.view.title.text() == "tiny-model"
    QTest.mouseClick(dialog.download_button, Qt.MouseButton.LeftButton)
    wait_until(dialog.open_button.isEnabled)
    dialog.accept_choice()
    wait_until(lambda: window.session.state.document.checkpoint == f"hf://{REPOSITORY}" and window.is_settled())
    settle(window)
    assert window.session.state.notice is None
    assert window.windowTitle().startswith("tiny-model")
    assert window.settings.recent == [f"hf://{REPOSITORY}"]
    assert window.top_bar.menu.currentText() == "tiny-model"


@pytest.mark.full
def test_a_gguf_file_of_a_hub_is_chosen_fetched_and_opened_again_offline(window, ggufs_on_hub):
    dialog = chooser(window)
    dialog.hub_box.name.setFocus()
    QTest.keyClicks(dialog.hub_box.name, REPOSITORY)
    press(dialog.hub_box.name, Qt.Key.Key_Return)
    wait_until(lambda: dialog.download_button.isVisible() and dialog.download_button.isEnabled())
    assert dialog.view.title.text() == "tiny-Q8_0"  # the smaller of the two, from its header alone
    assert "LlamaForCausalLM" in dialog.view.text
    press(dialog.ggufs.rows, Qt.Key.Key_Down)
    wait_until(lambda: dialog.view.title.text() == "tiny-F32" and dialog.download_button.isVisible())
    press(dialog.ggufs.rows, Qt.Key.Key_Return)
    wait_until(dialog.open_button.isEnabled)
    dialog.accept_choice()
    reference = f"hf://{REPOSITORY}:tiny-F32.gguf"
    wait_until(lambda: window.session.state.document.checkpoint == reference and window.is_settled())
    settle(window)
    assert window.session.state.notice is None
    assert window.windowTitle().startswith("tiny-F32")
    assert window.settings.recent == [reference]
    assert window.top_bar.menu.currentText() == "tiny-model:tiny-F32.gguf"
    asked = len(ggufs_on_hub.asked)
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    dialog = chooser(window)
    dialog.hub_box.offline.click()
    dialog.choices.choose(reference)
    wait_until(lambda: dialog.view.title.text() == "tiny-F32" and dialog.open_button.isEnabled())
    dialog.accept_choice()
    wait_until(lambda: window.session.state.document.checkpoint == reference and window.is_settled())
    settle(window)
    assert window.session.state.notice is None
    assert len(ggufs_on_hub.asked) == asked


def test_a_hub_that_refuses_leaves_the_open_model(window, hub):
    hub.status = 429
    dialog = chooser(window)
    dialog.hub_box.name.setText(REPOSITORY)
    dialog.look_up()
    wait_until(dialog.view.refusal.isVisible)
    assert "429" in dialog.view.text
    press(dialog, Qt.Key.Key_Escape)
    assert window.session.state.results.loaded.info.name == "story-gpt"
    assert window.session.state.notice is None


@pytest.mark.full
def test_the_choice_of_staying_offline_and_the_list_are_remembered(window):
    window.settings.recent = ["/models/a", "/models/b"]
    window.top_bar.set_recent(window.settings.recent)
    dialog = chooser(window)
    dialog.hub_box.offline.click()
    dialog.choices.choose("/models/a")
    press(dialog.choices, Qt.Key.Key_Delete)
    assert window.settings.offline
    assert window.settings.recent == ["/models/b"]
    assert window.top_bar.menu.findData("/models/a") < 0
    press(dialog, Qt.Key.Key_Escape)
    again = chooser(window)
    assert again.hub_box.offline.isChecked()
    press(again, Qt.Key.Key_Escape)


def test_one_dialog_at_a_time_and_it_closes_with_the_window(window, hub):
    dialog = chooser(window)
    window.choose_checkpoint()
    assert window.chooser.dialog is dialog
    hub.hangs.set()
    dialog.hub_box.name.setText(REPOSITORY)
    dialog.look_up()
    hub.released.set()
    window.close()
    assert window.stopped


@pytest.mark.full
def test_another_is_described_while_one_that_hangs_is_opened(window, tmp_path, monkeypatch):
    hangs = tiny.save("gpt_neo", tmp_path / "hangs")
    change_config(hangs, attention_types=[[["global"] * 1000, 1000]] * 200)  # two hundred million layers
    other = tiny.save("llama", tmp_path / "other")
    monkeypatch.setattr(trial_process, "LIMITS", Limits(processor_seconds=600, seconds=600, memory=1 << 40))
    window.session.dispatch(OpenCheckpoint(str(hangs)))
    wait_until(lambda: LoadRequest.lane in window.bridge.busy)
    window.choose_checkpoint()  # which asks what the one that hangs is
    dialog = window.chooser.dialog
    for reference, title in ((str(other), "other"), ("story-bert", "story-bert")):
        dialog.add(reference)
        wait_until(lambda: dialog.open_button.isEnabled() and title in dialog.view.title.text())  # noqa: B023
        assert LoadRequest.lane in window.bridge.busy
    dialog.add(str(other))
    wait_until(lambda: dialog.open_button.isEnabled() and "other" in dialog.view.title.text())
    press(dialog.choices, Qt.Key.Key_Return)
    settle(window)
    assert window.session.state.results.loaded.info.reference == str(other)
