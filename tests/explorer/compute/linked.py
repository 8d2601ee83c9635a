"""A session and a link to the real process that trains, or to that of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil

from attention_explorer.compute.process_link import ProcessLink
from attention_explorer.session.session import Session

LinkT = TypeVar("LinkT", bound=ProcessLink[Any])


class Linked(Generic[LinkT]):
    def __init__(self, link: LinkT, connect: Callable[[Session, LinkT], None]) -> None:
        self.session, self.link = Session(), link
        connect(self.session, link)

    @property
    def process(self) -> psutil.Process:
        assert self.link.process is not None
        return psutil.Process(self.link.process.pid)


def wait(qtbot, holds) -> None:
    qtbot.waitUntil(holds, timeout=120_000)


def babbling(folder: Path) -> str:
    """The name of a module in `folder` whose process says what is no message, and does not end."""
    program = "def serve():\n    print('hello', flush=True)\n    import time; time.sleep(60)\n"
    (folder / "babbling.py").write_text(program)
    return "babbling"
