"""Where no window can be shown, or none that can be read, a sentence says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import qInstallMessageHandler, qWarning

from attention_explorer.window.display import NO_FONT, WITHOUT_WINDOW, qt_messages_logged, why_unreadable

ROOT = Path(__file__).resolve().parents[3]

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays and fontconfig are those of Linux")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command where no display is but the one that `environment` names."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.run(
        [sys.executable, "-m", "attention_explorer", *arguments],
        cwd=ROOT,
        env=kept | {"QT_QPA_PLATFORM": ""} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@linux
@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, f"There is no display to show a window on: DISPLAY and WAYLAND_DISPLAY are not set. {WITHOUT_WINDOW}"),
        ({"DISPLAY": ":9999"}, f"The display does not answer (DISPLAY=:9999). {WITHOUT_WINDOW}"),
        (
            {"QT_QPA_PLATFORM": "telepathy"},
            "QT_QPA_PLATFORM asks Qt for “telepathy”, which it does not have. Leave it out, or say xcb or wayland.",
        ),
    ],
    ids=["none", "dead", "unknown platform"],
)
def test_without_a_display_there_is_a_sentence(environment, sentence):
    done = run(**environment)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{sentence}\n")


@pytest.fixture
def no_fonts(tmp_path):
    """The environment of a computer without fonts."""
    config = tmp_path / "fonts.conf"
    config.write_text(
        f'<?xml version="1.0"?><fontconfig><dir>{tmp_path}</dir><cachedir>{tmp_path}/c</cachedir></fontconfig>'
    )
    return {"FONTCONFIG_FILE": str(config)}


@linux
def test_without_fonts_there_is_a_sentence_and_no_picture_of_boxes(tmp_path, no_fonts):
    done = run("--png", str(tmp_path / "a.png"), **no_fonts)
    assert (done.returncode, done.stderr) == (1, f"{NO_FONT}\n")
    assert not (tmp_path / "a.png").exists()


def test_with_fonts_nothing_is_said(qapp):
    assert why_unreadable() == ""


def test_what_qt_says_is_logged(qapp, caplog, capsys):
    with qt_messages_logged():
        qWarning("This plugin does not support raise()")
        qWarning("something of Qt's")
    assert [record.getMessage() for record in caplog.records] == ["Qt: something of Qt's"]
    assert capsys.readouterr().err == "something of Qt's\n"
    theirs = qInstallMessageHandler(None)
    qInstallMessageHandler(theirs)
    assert theirs is not None  # the test's own handler is back
