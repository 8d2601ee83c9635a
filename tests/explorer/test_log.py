"""The log: where it cannot be written the program works without one, and waits for nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from explorer.log import log_to_file


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> list[logging.Handler]:
    """Those that the root logger is given, in place of the tests' own."""
    given: list[logging.Handler] = []
    monkeypatch.setattr(logging.getLogger(), "handlers", given)
    return given


def test_it_lies_beside_the_settings(settings_folder: Path, handlers: list[logging.Handler]) -> None:
    log_to_file()
    logging.getLogger("a").warning("something")
    assert (settings_folder / "log.txt").read_text(encoding="utf-8").strip().endswith("something")
    for handler in handlers:
        handler.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_of_its_name_is_not_waited_for(settings_folder: Path, handlers: list[logging.Handler]) -> None:
    os.mkfifo(settings_folder / "log.txt")
    log_to_file()
    assert [type(handler) for handler in handlers] == [logging.NullHandler]


def test_a_folder_of_its_name_is_no_reason_to_fail(settings_folder: Path, handlers: list[logging.Handler]) -> None:
    (settings_folder / "log.txt").mkdir()
    log_to_file()
    assert [type(handler) for handler in handlers] == [logging.NullHandler]
