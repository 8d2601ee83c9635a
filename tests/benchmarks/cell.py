"""How long the Cell panel takes from an arrow key to repainted pixels: worker, queue and painting together.

    python -m tests.benchmarks.cell

Walks 200 cells of story-gpt with 14 and with about 512 tokens and prints median and worst, in milliseconds.
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

from attention_explorer.compute.bridge import Bridge, connect
from attention_explorer.look import theme
from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import SelectCell, SelectHead
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, State
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.values import SiteRef

SENTENCE = "Tom and Anna went to the park. Anna gave the ball to"
MOVES = 200


def walk(app: QApplication, text: str) -> tuple[int, list[float], list[float]]:
    """Tokens, and per move: seconds until the new numbers are painted, and of these the seconds in this thread."""
    session = Session(State(Document(text=text)))
    bridge = Bridge()
    connect(session, bridge)
    panel = CellPanel(session, Hover())
    panel.resize(560, 900)
    panel.show()
    session.start()

    def settle() -> None:
        while session.state.ran is None or bridge.busy or panel.is_waiting():
            app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, 50)
        app.processEvents()

    settle()
    session.dispatch(SelectHead(SiteRef("decoder", 5), 5))
    settle()
    assert session.state.ran is not None
    tokens = len(session.state.ran.tokens)
    waits, own = [], []
    for move in range(MOVES + 10):
        query, key = tokens - 1 - move // 20 % 5, move % tokens
        started, busy = time.perf_counter(), time.thread_time()
        session.dispatch(SelectCell(query, key))
        while not _is_shown(session, query, key):
            app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, 50)
        app.processEvents()  # layout and painting that were put off
        waits.append(time.perf_counter() - started)
        own.append(time.thread_time() - busy)
    bridge.stop()
    panel.close()
    return tokens, waits[10:], own[10:]


def _is_shown(session: Session, query: int, key: int) -> bool:
    view = session.state.results.of(CellView)
    if view is None or not isinstance(view.request, CellRequest):
        return False
    return (view.request.query, view.request.key) == (query, key)


def main() -> None:
    app = QApplication([])
    theme.apply(app, theme.LIGHT)
    long = (SENTENCE + " Tom. ") * 34
    for text in (SENTENCE, long.strip()):
        tokens, waits, own = walk(app, text)
        print(
            f"{tokens:4d} tokens: key to pixels median {1e3 * statistics.median(waits):.1f} ms, "
            f"worst {1e3 * max(waits):.1f} ms; of these the window's own {1e3 * statistics.median(own):.1f} ms"
        )


if __name__ == "__main__":
    main()
