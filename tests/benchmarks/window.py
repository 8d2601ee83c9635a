"""How immediate the window is: first paint, a change of head, the atlas, and the longest gap in its event loop.

    python tests/benchmarks/window.py
    QT_QPA_PLATFORM=xcb xvfb-run -a python tests/benchmarks/window.py

Prints one line a figure, with the target where there is one. What a person waits for stands beside a plain forward pass
of as many tokens, and the first paint beside that of a bare PySide6 window, both timed in the same run: these ratios
are what is aimed at, since times are wall-clock and no two machines are alike.
"""

from __future__ import annotations

import time

STARTED = time.perf_counter()

import argparse  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import ClassVar  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, QPoint, Qt, QTimer  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QApplication, QWidget  # noqa: E402

from attention_explorer.compute.worker import EngineLike, open_engine  # noqa: E402
from attention_explorer.look.theme import LIGHT, stylesheet  # noqa: E402
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel  # noqa: E402
from attention_explorer.panels.base import Panel  # noqa: E402
from attention_explorer.panels.head.panel import HeadMapPanel  # noqa: E402
from attention_explorer.session.intents import SetText  # noqa: E402
from attention_explorer.session.state import Document, State  # noqa: E402
from attention_explorer.settings import Settings  # noqa: E402
from attention_explorer.window.window import MainWindow  # noqa: E402
from attention_models.protocol.head import HeadView  # noqa: E402
from attention_models.protocol.request import Request, Result  # noqa: E402

HEAD_CHANGE, ATLAS, GAP = 16.0, 250.0, 50.0  # ms: the targets
CLICKED, POINTED, SILENT = 0.2, 0.05, 0.75  # of a plain forward pass of TOKENS tokens
PRESENTED, PRESENTED_SHARE = 200.0, 2.0  # ms, and of what Qt takes to style all widgets once
FIRST_PAINT = 1.6  # of that of a bare window
TOKENS = 512
PROSE = "Tom and Anna went to the park. Anna gave the ball to Tom and they were happy. "


class TimedEngine:
    """The real engine, and how long each kind of request took it."""

    milliseconds: ClassVar[defaultdict[str, list[float]]] = defaultdict(list)

    def __init__(self) -> None:
        self._engine = open_engine()

    def run(
        self,
        request: Request,
        should_stop: Callable[[], bool],
        report: Callable[[str, float | None], None],
    ) -> Result:
        started = time.perf_counter()
        try:
            return self._engine.run(request, should_stop, report)
        finally:
            self.milliseconds[type(request).__name__].append(1000 * (time.perf_counter() - started))


class Paints(QObject):
    """Counts the paint events of a widget at which `shows` holds."""

    def __init__(self, widget: QWidget, shows: Callable[[], bool] = lambda: True) -> None:
        super().__init__(widget)
        self.count = 0
        self._shows = shows
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint and self._shows()
        return False


class Heartbeat(QObject):
    """A timer of 5 ms in the GUI thread, the gaps between its beats, and how long it worked in each, in milliseconds.

    A gap that is longer than the work in it is the machine's: other threads and processes had the core.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[float] = []
        self.worked: list[float] = []
        self._last, self._last_work = time.perf_counter(), time.thread_time()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(5)

    def _beat(self) -> None:
        now, work = time.perf_counter(), time.thread_time()
        self.gaps.append(1000 * (now - self._last))
        self.worked.append(1000 * (work - self._last_work))
        self._last, self._last_work = now, work

    def stop(self) -> list[float]:
        self._timer.stop()
        return self.gaps


def wait_until(condition: Callable[[], bool]) -> None:
    """Let the event loop run, asleep where there is nothing to do, until `condition` holds."""
    waker = QTimer()
    waker.start(20)  # with a time limit of its own processEvents would not sleep
    while not condition():
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def panel_of(window: MainWindow, kind: type[Panel]) -> Panel:
    return next(panel for panel in window.panels if isinstance(panel, kind))


def say(what: str, figure: str, target: str = "") -> None:
    print(f"{what:<58} {figure:>26}  {target}", flush=True)


def spread(milliseconds: Sequence[float]) -> str:
    return f"{statistics.median(milliseconds):7.1f}, worst {max(milliseconds):7.1f} ms"


def gaps(milliseconds: Sequence[float]) -> str:
    return f"longest {max(milliseconds):7.1f} ms"


def ratio(milliseconds: Sequence[float] | float, plain: float, target: float) -> None:
    """Say what share of a plain forward pass that is."""
    value = milliseconds if isinstance(milliseconds, float) else statistics.median(milliseconds)
    say(f"   of a plain forward pass of {TOKENS} tokens", f"{value / plain:.3f}", f"{target:.2f}")


# --------------------------------------------------------------------------- what is timed beside it

_SAY = "print(time.perf_counter() - started, time.process_time(), flush=True)"

BARE = f"""
import time; started = time.perf_counter()
import os, sys
from PySide6.QtWidgets import QApplication, QMainWindow

class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        {_SAY}
        os._exit(0)

app = QApplication(sys.argv[:1])
app.setStyle("Fusion")
app.setStyleSheet(open(sys.argv[1]).read())
window = Window()
window.resize(1440, 900)
window.show()
app.exec()
"""

OURS = f"""
import time; started = time.perf_counter()
import os
from attention_explorer import app
from attention_explorer.window import window

class Window(window.MainWindow):
    is_painted = False

    def paintEvent(self, event):
        super().paintEvent(event)
        if not self.is_painted:
            {_SAY}
        self.is_painted = True

    def start(self):  # filled by now
        self.once_painted(self.end)

    def end(self):
        {_SAY}
        os._exit(0)

window.MainWindow = Window
app.main(["--theme", "light"])
"""


def time_first_paint(times: int) -> None:
    """First paints of whole processes, of a bare window and of ours in turns, with compiled modules and no settings.

    Ours is painted first, and then filled with what is seen in it: that is timed too.
    """
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "sheet.qss"
        sheet.write_text(stylesheet(LIGHT), encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("explorer", "models")),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"),
            "ATTENTION_EXPLORER_HOME": folder,
        }
        taken: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for turn in range(times + 1):
            for names, program in ((("bare",), BARE), (("ours", "filled"), OURS)):
                command = [sys.executable, "-c", program, str(sheet)]
                ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
                if turn:  # the first one compiles
                    for name, line in zip(names, ran.stdout.splitlines(), strict=True):
                        wall, processor = (1000 * float(figure) for figure in line.split())
                        taken[name].append((wall, processor))
    for index, what in enumerate(("elapsed", "processor")):
        bare, ours, filled = (
            statistics.median(figure[index] for figure in taken[name]) for name in ("bare", "ours", "filled")
        )
        say(f"first paint, {what} time: ours, a bare window", f"{ours:.0f}, {bare:.0f} ms")
        say("   of that of a bare window", f"{ours / bare:.2f}", f"{FIRST_PAINT:.1f}")
        say(f"   with text, cards and menus in it, {what} time", f"{filled:.0f} ms")


def plain_forward(times: int = 20) -> float:
    """Milliseconds that story-gpt takes in transformers alone, with SDPA, for TOKENS tokens: the median."""
    from attention_models import open_checkpoint
    from tests.benchmarks.forward import alone, ids_of, in_turns

    model = open_checkpoint("story-gpt")
    sdpa = alone(model, "sdpa")
    inputs = {**model.encode(ids_of(model, TOKENS)).inputs, **model.forward_options}
    return 1000 * statistics.median(in_turns({"plain": lambda: sdpa(**inputs)}, times)["plain"])


# --------------------------------------------------------------------------- the figures


def start_window() -> MainWindow:
    """Open the window, and say how long a person looks at nothing."""
    QApplication(sys.argv[:1])
    example = "Tom and Anna went to the park. Anna gave the ball to"
    factory: Callable[[], EngineLike] = TimedEngine
    window = MainWindow(State(Document(text=example)), Settings(theme="light"), factory, remembers=False)
    window.dock_host.arrange(1.0, "heads")  # these figures are of all heads and the selected one
    window.resize(1440, 900)
    paints = Paints(window.input.strip)
    window.show()
    window.start()
    shown = time.perf_counter()
    head_map = panel_of(window, HeadMapPanel).map  # type: ignore[attr-defined]
    attention = Paints(head_map, lambda: window.session.state.results.of(HeadView) is not None)
    heartbeat = Heartbeat()
    while not paints.count:
        QCoreApplication.processEvents()
    say("first paint here, since the script started", f"{1000 * (time.perf_counter() - STARTED):.0f} ms")
    say("torch imported by then", "yes" if "torch" in sys.modules else "no", "no")
    wait_until(lambda: attention.count > 0)
    say("window to first attention on screen", f"{1000 * (time.perf_counter() - shown):.0f} ms")
    wait_until(window.is_settled)
    say("GUI while torch is imported and the model opened", gaps(heartbeat.stop()), f"{GAP:.0f} ms")
    return window


def show_tokens(window: MainWindow, tokens: int) -> None:
    """Put a text of exactly `tokens` tokens on screen: prose, filled up with words that are one token each."""
    text = PROSE * (tokens // 25)
    for _ in range(2):
        window.session.dispatch(SetText(text))
        wait_until(window.is_settled)
        text += " the" * (tokens - token_count(window))
    assert token_count(window) == tokens


def token_count(window: MainWindow) -> int:
    ran = window.session.state.ran
    assert ran is not None
    return len(ran.tokens)


def time_head_changes(window: MainWindow, times: int, plain: float) -> None:
    atlas, head_map = panel_of(window, HeadAtlasPanel).atlas, panel_of(window, HeadMapPanel).map  # type: ignore[attr-defined]
    paints = Paints(head_map, lambda: panel_of(window, HeadMapPanel).wants(window.session.state) is None)
    TimedEngine.milliseconds.clear()
    taken = []
    for change in range(times):
        row, head = divmod(change * 7 % 64, 8)
        started, painted = time.perf_counter(), paints.count
        QTest.mouseClick(atlas, Qt.MouseButton.LeftButton, pos=atlas.cell_rect(row, head).center().toPoint())
        wait_until(lambda painted=painted: paints.count > painted)  # type: ignore[misc]
        taken.append(1000 * (time.perf_counter() - started))
    say(f"another head at {token_count(window)} tokens: click to painted", spread(taken), f"{HEAD_CHANGE:.0f} ms")
    ratio(taken, plain, CLICKED)
    say("   of this the worker", spread(TimedEngine.milliseconds["HeadRequest"]))
    paints.deleteLater()


def time_pointer(window: MainWindow, times: int, plain: float) -> None:
    head_map = panel_of(window, HeadMapPanel).map  # type: ignore[attr-defined]
    paints, taken = Paints(head_map), []
    rows, columns = head_map.view.rows, head_map.view.columns
    for step in range(times):  # seven pixels on each time: another cell, however small cells are
        across, down = (7 * step % (axis.extent - 2) + axis.origin + 1 for axis in (columns, rows))
        where = QPoint(round(across), round(down))
        started, painted = time.perf_counter(), paints.count
        QTest.mouseMove(head_map, where)
        wait_until(lambda painted=painted: paints.count > painted)  # type: ignore[misc]
        taken.append(1000 * (time.perf_counter() - started))
    say("pointer in the map: moved to painted", spread(taken))
    ratio(taken, plain, POINTED)
    paints.deleteLater()


def time_atlas(window: MainWindow) -> None:
    taken = TimedEngine.milliseconds["AtlasRequest"]
    taken.clear()
    for _ in range(10):
        window.input.run_model()
        wait_until(window.is_settled)
    say(f"atlas of all heads at {token_count(window)} tokens", spread(taken), f"{ATLAS:.0f} ms")


def time_arrow_keys(window: MainWindow, times: int) -> None:
    head_map = panel_of(window, HeadMapPanel).map  # type: ignore[attr-defined]
    paints = Paints(head_map)
    taken = []
    for press in range(times):
        started, painted = time.perf_counter(), paints.count
        QTest.keyClick(head_map, Qt.Key.Key_Up if press < times // 2 else Qt.Key.Key_Down)
        wait_until(lambda painted=painted: paints.count > painted)  # type: ignore[misc]
        taken.append(1000 * (time.perf_counter() - started))
    wait_until(window.is_settled)
    say("arrow key in the map: pressed to painted", spread(taken), f"{HEAD_CHANGE:.0f} ms")


def time_gaps(window: MainWindow, seconds: float, plain: float) -> None:
    """The longest silence of the event loop while the model runs again and again, then while one types meanwhile."""
    runs = TimedEngine.milliseconds["ForwardRequest"]
    for typing in (False, True):
        runs.clear()
        heartbeat, until, letters = Heartbeat(), time.perf_counter() + seconds, 0
        next_key = time.perf_counter()
        while time.perf_counter() < until:
            if not typing and not window.bridge.busy:
                window.input.run_model()
            if typing and time.perf_counter() >= next_key:
                QTest.keyClick(window.input.text, Qt.Key.Key_Backspace if letters % 2 else Qt.Key.Key_A)
                letters, next_key = letters + 1, next_key + 0.06
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)  # the heartbeat wakes it
        silences = heartbeat.stop()
        wait_until(window.is_settled)
        doing = f"typing {letters} letters" if typing else "running"
        passes = f"{len(runs)} forward passes of {statistics.median(runs):.0f} ms"
        say(f"GUI while {doing}, {passes}", gaps(silences), f"{GAP:.0f} ms")
        ratio(max(silences), plain, SILENT)


def time_presenter(window: MainWindow, times: int = 3) -> None:
    """F5 on and off: the work of the window's thread until it is all on screen, beside that of styling all widgets."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)

    def work_of(act: Callable[[], object]) -> float:
        began = time.thread_time()
        act()
        QTest.qWait(700)  # the screen is filled, and left, a moment later
        return 1000 * (time.thread_time() - began)

    sheet, styled = app.styleSheet(), list[float]()
    for _ in range(times):
        began = time.thread_time()
        app.setStyleSheet("")
        app.setStyleSheet(sheet)
        styled.append(1000 * (time.thread_time() - began))
    plain = statistics.median(styled)
    say(f"styling {len(app.allWidgets()):,} widgets", f"{plain:.0f} ms")
    idle = work_of(lambda: None)
    for what, act in (("F5, on", window.presenter.begin), ("F5, off", window.presenter.end)):
        taken = []
        for _ in range(times):
            taken.append(work_of(act) - idle)
            work_of(window.presenter.toggle)
        say(f"{what}: work of the window's thread", spread(taken), f"{PRESENTED:.0f} ms")
        say("  of styling all widgets", f"{statistics.median(taken) / plain:.1f}", f"{PRESENTED_SHARE:.1f}")
        if act == window.presenter.begin:
            work_of(act)


def machine() -> str:
    import PySide6
    import torch

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, "
        f"torch {torch.__version__} with {torch.get_num_threads()} threads, "
        f"PySide6 {PySide6.__version__} on {QApplication.platformName()}, Python {platform.python_version()}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How immediate the window is.")
    parser.add_argument("--times", type=int, default=100, help="changes of head and presses of an arrow key")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to look for gaps")
    parser.add_argument("--starts", type=int, default=7, help="starts of a bare window and of ours")
    args = parser.parse_args(argv)
    window = start_window()
    show_tokens(window, 256)
    time_atlas(window)
    show_tokens(window, TOKENS)
    plain = plain_forward()
    say(f"a plain forward pass of {TOKENS} tokens in transformers", f"{plain:.1f} ms")
    time_head_changes(window, args.times, plain)
    time_pointer(window, args.times, plain)
    time_arrow_keys(window, args.times)
    show_tokens(window, TOKENS - 1)
    time_gaps(window, args.seconds, plain)
    time_presenter(window)
    say("the plain forward pass once more", f"{plain_forward():.1f} ms")
    time_first_paint(args.starts)
    print(machine())
    window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
