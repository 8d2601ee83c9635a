"""How long a step of the scale slider and a painted cell take, until the map and the bars are repainted.

    python -m tests.benchmarks.interventions [tokens]

Prints the median and the worst of each. The slider is dragged at 30 steps a second by a pointer that does not wait.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEventLoop, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.session.intents import SetView
from attention_explorer.session.state import Document, Selection
from attention_models.protocol.head import HeadView
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.masks_host import Host, opened_host
from tests.explorer.real_window import EXAMPLE
from tests.explorer.widgets.pointer import move_pointer

STEPS = 60
RATE = 30.0  # steps a second
REPEATS = 20


def main() -> None:
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    app = QApplication([])
    words = EXAMPLE.split()
    text = " ".join(words[i % len(words)] for i in range(tokens - 6))
    selection = Selection(SiteRef("decoder", 5), head=5, query=tokens, key=1)
    with opened_host(Document("story-gpt", text, selection), clock=time.monotonic) as host:
        assert host.state.ran is not None
        print(f"story-gpt, {len(host.state.ran.tokens)} tokens")
        report("scale: one step, map and bars repainted", [scale_step(host, i) for i in range(REPEATS)])
        shown, took = dragged(host)
        report(f"scale: drag at {RATE:.0f} steps a second, {STEPS} asked, {shown} shown; from step to repaint", took)
        report("paint: one cell, bars repainted", [painted_cell(host, i) for i in range(REPEATS)])
    app.processEvents()


def scale_step(host: Host, i: int) -> float:
    started = time.perf_counter()
    host.masks.scale_knobs.slider.setFocus()
    QTest.keyClick(host.masks.scale_knobs.slider, Qt.Key.Key_Left if i % 8 < 4 else Qt.Key.Key_Right)
    return until_shown(host, started)


def painted_cell(host: Host, i: int) -> float:
    host.session.dispatch(SetView("painting", "block"))
    host.settle()
    heat_map = host.map.map
    where = heat_map.cell_rect(20 + i, 3 + i).center().toPoint()
    started = time.perf_counter()
    QTest.mouseClick(heat_map, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, where)
    return until_shown(host, started)


def until_shown(host: Host, started: float) -> float:
    while not is_shown(host):
        let_go()
    repaint(host)
    return time.perf_counter() - started


def dragged(host: Host) -> tuple[int, list[float]]:
    """How many steps were shown, and the seconds from each of these to its repaint."""
    slider = host.masks.scale_knobs.slider
    start = slider.handle_rect().center().toPoint()
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)
    asked: dict[float, float] = {}  # factor -> when the pointer asked for it
    took: list[float] = []
    begun, step, last = time.perf_counter(), 0, None
    while step < STEPS or not is_shown(host):
        now = time.perf_counter()
        if step < STEPS and now - begun >= step / RATE:
            step += 1
            move_pointer(slider, start + QPoint(-step, 0), Qt.MouseButton.LeftButton)
            asked.setdefault(slider.value, now)
        let_go()
        factor = shown_factor(host)
        if factor is not None and factor != last and is_current_run_shown(host):
            repaint(host)
            last = factor
            if factor in asked:
                took.append(time.perf_counter() - asked[factor])
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start + QPoint(-step, 0))
    host.settle()
    return len(took), took


def let_go() -> None:
    """Handle what has happened, then leave the interpreter to the engine's thread: waiting inside Qt would hold it."""
    QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 2)
    time.sleep(0.0005)


def is_current_run_shown(host: Host) -> bool:
    ran, head, bars = host.state.ran, host.state.results.of(HeadView), host.state.results.of(PredictionView)
    return ran is not None and head is not None and bars is not None and ran.run == head.request.run == bars.request.run


def is_shown(host: Host) -> bool:
    return host.state.up_to_date and is_current_run_shown(host)


def shown_factor(host: Host) -> float | None:
    ran = host.state.ran
    return next((getattr(item, "factor", None) for item in ran.inputs.interventions), 1.0) if ran is not None else None


def repaint(host: Host) -> None:
    host.map.map.repaint()
    host.next.bars.repaint()


def report(what: str, seconds: list[float]) -> None:
    ms = [1000 * s for s in seconds]
    print(f"{what}: median {statistics.median(ms):.1f} ms, worst {max(ms):.1f} ms")


if __name__ == "__main__":
    main()
