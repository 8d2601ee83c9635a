"""The log: where it cannot be written the program works without one, and waits for nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from attention_explorer.recovery.log import handlers


def test_it_lies_beside_the_settings(settings_folder: Path) -> None:
    (handler,) = handlers()
    handler.emit(logging.makeLogRecord({"msg": "something"}))
    handler.close()
    assert (settings_folder / "log.txt").read_text(encoding="utf-8") == "something\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_of_its_name_is_not_waited_for(settings_folder: Path) -> None:
    os.mkfifo(settings_folder / "log.txt")
    assert [type(handler) for handler in handlers()] == [logging.NullHandler]


def test_a_folder_of_its_name_is_no_reason_to_fail(settings_folder: Path) -> None:
    (settings_folder / "log.txt").mkdir()
    assert [type(handler) for handler in handlers()] == [logging.NullHandler]
