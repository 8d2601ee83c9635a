"""What one change costs in the window's thread: changes of the state, panels drawn, Python calls, and their files.

    python -m tests.benchmarks.changes

Counted for a letter typed, a decoding step, another head and a training's step with its snapshot, from the event until
all that is in sight shows it. These are no times: they hardly differ between runs and machines. The bounds are held by
tests/explorer/window/test_changes.py.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # started as a script, from a checkout
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEventLoop, Qt, QTimer  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from attention_explorer.panels import base  # noqa: E402
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel  # noqa: E402
from attention_explorer.panels.decoding.panel import DecodingPanel  # noqa: E402
from attention_explorer.panels.playground.panel import PlaygroundPanel  # noqa: E402
from attention_explorer.session.training import TrainingState  # noqa: E402
from attention_explorer.window.window import MainWindow  # noqa: E402
from tests.explorer.real_window import opened_window, panel_of, press, settle, wait_until  # noqa: E402

OURS = tuple(f"{ROOT / package}{os.sep}" for package in ("explorer", "models"))
TURNS = 5
"""How often each is done; the median counts."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one change came to."""

    changes: int  # of the state
    renders: int  # of panels
    calls: int  # of Python functions
    files: int  # of this program, whose functions were called
    sizes: int  # asked of layouts by widgets of ours

    def __str__(self) -> str:
        return f"{self.changes:7} {self.renders:8} {self.calls:9,} {self.files:6} {self.sizes:7}"


@contextmanager
def counted(window: MainWindow) -> Iterator[Callable[[], Cost]]:
    """Count meanwhile; what it gives says how much that was."""
    calls: Counter[str] = Counter()
    renders: Counter[str] = Counter()
    sizes = changes = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal sizes
        if event != "call":
            return
        code, before = frame.f_code, frame.f_back
        calls[code.co_filename] += 1
        if code.co_name == "render_state" and before is not None and before.f_code.co_filename == base.__file__:
            renders[code.co_filename] += 1
        sizes += code.co_name in ("sizeHint", "minimumSizeHint")

    def note_change(*_: object) -> None:
        nonlocal changes
        changes += 1

    window.session.changed.connect(note_change)
    sys.setprofile(note)
    try:
        yield lambda: Cost(changes, renders.total(), calls.total(), sum(name.startswith(OURS) for name in calls), sizes)
    finally:
        sys.setprofile(None)
        window.session.changed.disconnect(note_change)


def cost(window: MainWindow, act: Callable[[], object], until: Callable[[], bool]) -> Cost:
    """What `act` costs until `until` and until all that is in sight shows it and is painted."""
    QTest.qWait(150)  # what was begun before is over
    with counted(window) as so_far:
        act()
        _pass(lambda: until() and not window.bridge.busy and window.is_settled())
        QTest.qWait(150)  # veils and paints
        return so_far()


def _pass(condition: Callable[[], bool]) -> None:
    """Let the event loop run until `condition`, which is looked at seldom and is not counted."""
    waker = QTimer()
    waker.start(20)
    while True:
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        counting = sys.getprofile()
        sys.setprofile(None)
        holds = condition()
        sys.setprofile(counting)
        if holds:
            return


def middle(costs: list[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(*(int(median(getattr(one, name) for one in costs)) for name in Cost.__slots__))


def of_a_letter(window: MainWindow, turns: int = TURNS) -> Cost:
    """A letter typed into the text."""
    costs = []
    for _ in range(turns):
        before = window.session.state.ran
        costs.append(
            cost(
                window,
                lambda: press(window.input.text, Qt.Key.Key_A),
                lambda before=before: window.session.state.ran is not before,  # type: ignore[misc]
            )
        )
    return middle(costs)


def of_a_head(window: MainWindow, turns: int = TURNS) -> Cost:
    """Another head clicked."""
    window.dock_host.raise_panel("heads")
    atlas = panel_of(window, HeadAtlasPanel).atlas
    costs = []
    for turn in range(turns):
        where = atlas.cell_rect(turn % 4, (3 * turn + 1) % 8).center().toPoint()
        click = partial(QTest.mouseClick, atlas, Qt.MouseButton.LeftButton, pos=where)
        costs.append(cost(window, click, lambda: True))
    return middle(costs)


def of_a_decoding_step(window: MainWindow, turns: int = TURNS) -> Cost:
    """“Step” pressed in the player; what it writes is run and shown too."""
    window.dock_host.raise_panel("decoding")
    settle(window)
    panel = panel_of(window, DecodingPanel)
    costs = []
    for _ in range(turns):
        before = window.session.state.ran
        costs.append(
            cost(
                window,
                panel.view.transport.step_button.click,
                lambda before=before: window.session.state.ran is not before,  # type: ignore[misc]
            )
        )
    return middle(costs)


def of_a_snapshot(window: MainWindow, turns: int = TURNS) -> Cost:
    """One step of a training, until its snapshot is followed. Ends with a training that is paused."""
    window.dock_host.raise_panel("playground")
    panel = panel_of(window, PlaygroundPanel)
    wait_until(panel.train.isEnabled)
    panel.train.click()

    def learning() -> TrainingState:
        found = window.session.live.learning
        assert found is not None
        return found

    wait_until(lambda: window.session.state.training is not None and learning().step > 5)
    panel.pause.click()
    wait_until(lambda: learning().phase == "paused" and learning().snapshot == learning().step)
    wait_until(lambda: opened_step(window) == learning().step and window.is_settled())
    costs = []
    for _ in range(turns):
        step = learning().step + 1
        costs.append(
            cost(
                window,
                panel.batch.click,
                lambda step=step: opened_step(window) == step and learning().step == step,  # type: ignore[misc]
            )
        )
    return middle(costs)


def opened_step(window: MainWindow) -> int | None:
    """The step of the training whose weights are open."""
    loaded = window.session.state.results.loaded
    training = None if loaded is None else loaded.info.training
    return None if training is None else training.step


CHANGES = {
    "a letter typed": of_a_letter,
    "another head": of_a_head,
    "a decoding step": of_a_decoding_step,
    "a training's step and snapshot": of_a_snapshot,
}


def main() -> int:
    QApplication(sys.argv[:1])
    print(f"{'':32} changes  renders     calls  files   sizes")
    with opened_window() as window:
        for what, of in CHANGES.items():
            print(f"{what:32} {of(window)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
