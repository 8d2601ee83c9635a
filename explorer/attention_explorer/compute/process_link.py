"""Between the session and a process that is told what to do: one is started, heard and ended at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from PySide6.QtCore import QObject, Signal

from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.compute.message_process import HeardT, MessageProcess, Work, end_all
from attention_models.protocol.training_messages import Failed, Fell, Message


class ProcessLink(QObject, Generic[HeardT]):
    """One process at a time, and those before it until they have ended. Methods are called in the GUI thread."""

    told = Signal(int, object)
    """What the process that was started with this number has said."""

    def __init__(self, turns: GuiQueue, parent: QObject | None = None) -> None:
        """What processes say is heard in `turns`."""
        super().__init__(parent)
        self._turns = turns
        self._process: MessageProcess[HeardT] | None = None
        self._ending: list[MessageProcess[HeardT]] = []
        self._is_stopped = False

    @property
    def process(self) -> MessageProcess[HeardT] | None:
        return self._process

    def _start(
        self, work: Work[HeardT], number: int, first: Message, prepare: Callable[[], str] = lambda: ""
    ) -> MessageProcess[HeardT]:
        def hear(message: HeardT | Failed | Fell) -> None:
            self._turns.do(lambda: self._on_said(number, message))

        process = MessageProcess(work, first, hear, prepare)
        process.start()
        self._process = process
        return process

    def _part(self) -> MessageProcess[HeardT] | None:
        """Tell the process to end, without waiting for it; that process, None where there is none."""
        self._ending = [process for process in self._ending if process.is_alive]
        process, self._process = self._process, None
        if process is not None:
            process.end()
            self._ending.append(process)
        return process

    def _end(self, timeout: float) -> bool:
        """Hear of no process any more, and end all as `end_all` does; whether they have ended."""
        self._is_stopped = True
        return end_all([*self._ending, *([] if self._process is None else [self._process])], timeout)

    def _on_said(self, number: int, message: HeardT | Failed | Fell) -> None:
        if not self._is_stopped:
            self.told.emit(number, message)
