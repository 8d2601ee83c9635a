"""Quality against length in the whole window, with the real engine: run, work meanwhile, stop, broken files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.length.panel import FILE, TRANSLATION, QualityPanel
from attention_explorer.session.intents import OpenCheckpoint, SetText
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models.length import measurement as quality
from attention_models.protocol.quality import QualityView
from tests.explorer.real_window import click, opened_window, panel_of, settle, wait_until


@pytest.fixture(scope="module")
def window(qapp) -> Iterator[MainWindow]:
    with opened_window("dates-bahdanau", "5 March 1998") as window:
        window.dock_host.raise_panel("quality")
        settle(window)
        yield window


@pytest.fixture
def panel(window, monkeypatch) -> QualityPanel:
    monkeypatch.setattr(quality, "DATES", 200)
    monkeypatch.setattr(quality, "BATCH", 10)
    window.session.dispatch(OpenCheckpoint("dates-bahdanau"))
    settle(window)
    return panel_of(window, QualityPanel)


def press(button) -> None:
    click(button, QPoint(8, button.height() // 2))


def measured(panel: QualityPanel) -> bool:
    view = panel.session.state.results.of(QualityView)
    return view is not None and view.ended and panel.session.state.measuring is None


def test_run_to_the_end_with_a_text_and_a_checkpoint_opened_meanwhile(window, panel):
    press(panel.run)
    wait_until(lambda: len(panel.plot.places) >= 1)
    assert panel.session.state.measuring is not None
    window.session.dispatch(SetText("7 May 2001"))
    wait_until(lambda: window.session.state.up_to_date)
    assert window.session.state.ran.written == "2001-05-07"
    assert not measured(panel), "the measurement left no room for the text"
    window.session.dispatch(OpenCheckpoint("dates-luong"))
    wait_until(lambda: measured(panel))
    settle(window)
    assert window.session.state.results.loaded.info.reference == "dates-luong"
    view = window.session.state.results.of(QualityView)
    assert (view.sentences, view.done) == (200, 600)
    assert [round(value) for value in panel.plot.figure.series[0].y] == [100] * len(view.bins)
    assert panel.status.text().startswith("200 dates, 3 models")
    QTest.keyClick(panel.plot, Qt.Key.Key_Home)
    example = panel.examples.example
    press(panel.examples.use)
    settle(window)
    assert window.session.state.ran.inputs.prompt == example.source
    assert window.session.state.ran.written == example.written[1]


def test_stop(window, panel):
    press(panel.run)
    wait_until(lambda: len(panel.plot.places) >= 1)
    press(panel.stop)
    wait_until(lambda: not window.bridge.busy)
    view = window.session.state.results.of(QualityView)
    assert 0 < view.done < view.total
    assert len(panel.plot.places) >= 1
    assert panel.status.text().startswith(f"Stopped at {view.done} of 600")
    press(panel.run)
    wait_until(lambda: measured(panel))


def test_a_broken_file_is_a_sentence_and_the_next_run_works(window, panel, monkeypatch, tmp_path):
    path: Path = tmp_path / "notes.tsv"
    path.write_bytes("Go.\tVe.\nYes.\tSí.\n".encode("latin-1"))
    monkeypatch.setattr(dialogs, "file_to_open", lambda *args: str(path))
    press(panel.choices.task.button(TRANSLATION))
    press(panel.choices.sentences.button(FILE))
    press(panel.run)
    wait_until(lambda: window.session.state.notice is not None)
    assert window.session.state.notice.text.startswith("notes.tsv is not UTF-8 text: line 2")
    assert window.notice_bar.isVisible()
    assert window.session.state.measuring is None
    assert panel.run.isEnabled()
    press(panel.choices.task.button(1 - TRANSLATION))
    press(panel.run)
    wait_until(lambda: measured(panel))
    assert window.session.state.notice is None
