"""Waiting for a window that no person sits at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from attention_explorer.session.kept import Screen
from attention_explorer.window.contents import Contents

# What is open and chosen in the window beside the state: read from it, and put back.


def screen_of(contents: Contents) -> Screen:
    panels = contents.made_panels
    docks = contents.dock_host
    return Screen(
        open=docks.open_panels(),
        front=docks.front_panels(),
        panels={name: panels[name].chosen() if name in panels else {} for name in docks.docks},
    )


def show_screen(contents: Contents, screen: Screen) -> None:
    """Put back what there is of it. A file says what stands in it: what does not fit is left alone."""
    if not screen.panels:
        return  # of a file that knows nothing of panels
    panels = {panel.name: panel for panel in contents.panels}
    for name, values in screen.panels.items():
        if name in panels:
            panels[name].choose_again(values)
    contents.dock_host.show_panels(screen.panels, screen.open, screen.front)


def wait_for(is_so: Callable[[], bool], deadline: QDeadlineTimer) -> bool:
    """Let Qt work until `is_so`, or until the deadline; whether it is so."""
    waker = QTimer()
    waker.start(20)  # with a time limit of its own processEvents would not sleep
    while not is_so():
        if deadline.hasExpired():
            return False
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    return True


def wait_within(seconds: float, is_so: Callable[[], bool]) -> bool:
    """The same for so many seconds at most."""
    return wait_for(is_so, QDeadlineTimer(int(seconds * 1000)))
