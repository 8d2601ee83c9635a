"""The part of `long` that needs a window: from the run's end to pictures, and from a pan or zoom to sharp tiles."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication

from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.state import Document, State
from attention_explorer.settings import Settings
from attention_explorer.window.window import MainWindow
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.request import Result
from attention_models.protocol.running import Ran
from tests.benchmarks.window import Heartbeat, Paints, panel_of, wait_until

ZOOMS = (2.0, 4.0, 8.0, 30.0)
PLACES = ((0.1, 0.2), (0.5, 0.8), (0.3, 0.9), (0.6, 0.6), (0.85, 0.95))


def measured_window(folder: Path, text: str, tile_ms: float, first_s: float, whole_s: float) -> None:
    """Print what a person waits for in a window of 1440 x 900."""
    from tests.benchmarks.long import say

    app = QApplication.instance() or QApplication([])
    window = MainWindow(State(Document(checkpoint=str(folder), text=text)), Settings(), remembers=False)
    window.dock_host.arrange(1.0, "heads")
    window.resize(1440, 900)
    arrived: dict[str, float] = {}

    def note(result: Result) -> None:
        arrived.setdefault(type(result).__name__, time.perf_counter())
        if isinstance(result, AtlasView) and result.done == 1:
            arrived["whole"] = time.perf_counter()

    window.bridge.arrived.connect(note)
    window.show()
    window.start()
    panel, atlas = panel_of(window, HeadMapPanel), panel_of(window, HeadAtlasPanel)
    assert isinstance(panel, HeadMapPanel)
    assert isinstance(atlas, HeadAtlasPanel)
    wait_until(lambda: Ran.__name__ in arrived or window.session.state.notice is not None)
    if window.session.state.notice is not None:
        raise SystemExit(window.session.state.notice.text)
    beats = Heartbeat()
    paints = Paints(atlas.atlas, lambda: AtlasView.__name__ in arrived)
    wait_until(lambda: paints.count > 0)
    first = time.perf_counter() - arrived[Ran.__name__]
    wait_until(window.is_settled)
    say("first picture of all heads, painted, after the run's end", f"{first:.2f} s", f"{first_s:g} s")
    say("all heads, after the run's end", f"{arrived['whole'] - arrived[Ran.__name__]:.2f} s", f"{whole_s:g} s")
    say("longest time the window does not answer meanwhile", f"{max(beats.stop()):.0f} ms", "50 ms")
    beats = Heartbeat()
    taken = []
    for zoom in ZOOMS:
        panel.map.reset_view()
        wait_until(window.is_settled)
        taken.append(_until_sharp(panel, partial(panel.map.zoom_by, zoom)))
        taken += [_until_sharp(panel, partial(panel.map.centre_on, *place)) for place in PLACES]
    needed = [seconds for seconds, tiles in taken if tiles]
    say(
        f"pan or zoom to the sharp picture, {len(needed)} that lacked tiles",
        f"{1e3 * statistics.median(needed):.0f} ms",
        f"{tile_ms:g} ms",
    )
    say("the slowest of them", f"{1e3 * max(needed):.0f} ms", f"{tile_ms:g} ms")
    say("longest time the window does not answer meanwhile", f"{max(beats.stop()):.0f} ms", "50 ms")
    window.close()
    app.processEvents()


def _until_sharp(panel: HeadMapPanel, move: Callable[[], None]) -> tuple[float, int]:
    """Seconds from a movement until all that shows is sharp and painted, and how many tiles it lacked."""
    started = time.perf_counter()
    move()
    lacking = len(panel.map.missing())
    wait_until(lambda: not panel.map.missing())
    paints = Paints(panel.map)
    panel.map.update()
    wait_until(lambda: paints.count > 0)
    return time.perf_counter() - started, lacking
