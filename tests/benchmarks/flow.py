"""How long Flow takes: its numbers in the engine, and its pictures on screen.

    python tests/benchmarks/flow.py

Prints the time of the whole model's numbers and of one block's after an arrow key, beside that of a cell, and how long
both pictures take to paint: anew, as after an arrow key, and again, as under the pointer.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from attention_explorer.panels.flow.block_picture import BlockPicture  # noqa: E402
from attention_explorer.panels.flow.model_picture import ModelPicture  # noqa: E402
from attention_explorer.panels.flow.panel import FlowPanel  # noqa: E402
from attention_explorer.session.intents import SelectQuery, SetView  # noqa: E402
from attention_explorer.window.window import MainWindow  # noqa: E402
from tests.benchmarks.window import TimedEngine, panel_of, say, show_tokens, spread, start_window, wait_until  # noqa: E402

PAINT = 5.0  # ms


def times_of(action: Callable[[], object], times: int = 30) -> list[float]:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - started))
    return taken


def anew(picture: ModelPicture | BlockPicture) -> None:
    """Paint all of it, as after an arrow key."""
    picture._ground.drop()
    picture.repaint()


def walk(window: MainWindow, times: int) -> None:
    """Press an arrow key so often, and let everything follow."""
    for step in range(times):
        window.session.dispatch(SelectQuery(100 + step))
        wait_until(window.is_settled)


def main() -> int:
    window = start_window()
    window.reset_layout()
    window.dock_host.raise_panel("cell")  # beside Flow: both follow the arrow key
    wait_until(window.is_settled)
    for tokens in (128, 512):
        TimedEngine.milliseconds.clear()
        show_tokens(window, tokens)
        walk(window, 20)
        taken = TimedEngine.milliseconds
        say(f"the whole model's numbers at {tokens} tokens", spread(taken["FlowRequest"]))
        say("one block's after an arrow key", f"{statistics.median(taken['BlockRequest']):7.1f} ms")
        say("   a cell's", f"{statistics.median(taken['CellRequest']):7.1f} ms")
        panel = panel_of(window, FlowPanel)
        assert isinstance(panel, FlowPanel)
        model, block = panel.body.model, panel.body.block

        say("   the picture of the model, painted again", spread(times_of(model.repaint)), f"{PAINT:.0f} ms")
        say("   anew", spread(times_of(partial(anew, model))))
        window.session.dispatch(SetView("distance", "block"))
        wait_until(window.is_settled)
        say("   the picture of a block, painted again", spread(times_of(block.repaint)), f"{PAINT:.0f} ms")
        say("   anew", spread(times_of(partial(anew, block))))
        window.session.dispatch(SetView("distance", "model"))
    window.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
