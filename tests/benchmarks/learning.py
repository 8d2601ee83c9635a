"""What a training costs the window that looks on, and what the window costs the training.

    python -m tests.benchmarks.learning
    QT_QPA_PLATFORM=xcb xvfb-run -a python -m tests.benchmarks.learning --seconds 60

A window trains the default model by its Playground, and follows it: the longest silence of its event loop is that of
the whole time. The steps it takes in a second stand beside those of a bare loop of the same model, in a process of its
own with as many threads and the same priority, before and after, while the same window rests. Twice: with the panels
of the heads in sight, which follow every snapshot, and while the window shows the model as it was at first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

from PySide6.QtWidgets import QApplication

from attention_explorer.panels.playground.panel import PlaygroundPanel
from attention_explorer.session.intents import GoToStep
from attention_explorer.session.state import Document, State
from attention_explorer.session.training import TrainingState
from attention_explorer.settings import Settings
from attention_explorer.window.window import MainWindow
from attention_models.protocol.training_plan import PlanView
from tests.benchmarks.window import GAP, Heartbeat, gaps, machine, panel_of, say, wait_until

THROUGHPUT = 0.9  # of a bare loop
_RISES = 3.0  # seconds at the beginning that are not counted


def bare(seconds: float) -> None:
    """Be the process of the bare loop, and print its steps a second."""
    import psutil
    import torch

    from attention_models.textbook.pretrained import TextbookModel
    from attention_models.training.experiment import experiment
    from tests.benchmarks.training import BareLoop

    torch.set_num_threads(1)
    psutil.Process().nice(5)
    planned = experiment("reverse:10", {})
    model = planned.training().model
    assert isinstance(model, TextbookModel)
    model.set_attn_implementation("eager")
    loop, number, begun, first = BareLoop(model, model.config.label_smoothing), 0, time.perf_counter(), 0
    while (now := time.perf_counter()) < begun + _RISES + seconds:
        if now < begun + _RISES:
            first = number
        batch = planned.rows.batch(number, planned.settings.batch)
        loop.step(batch.inputs, batch.labels)
        number += 1
    print((number - first) / seconds)


def time_bare(seconds: float) -> float:
    """Steps a second of the bare loop, while this window's event loop runs."""
    command = [sys.executable, "-m", "tests.benchmarks.learning", "--bare", "--seconds", str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: process.poll() is not None)
    assert process.stdout is not None
    return float(process.stdout.read())


def learning_of(window: MainWindow) -> TrainingState:
    learning = window.session.live.learning
    assert learning is not None
    return learning


def is_planned(window: MainWindow, seconds: int) -> bool:
    """Whether the form says what comes of what was chosen: nobody presses a button sooner."""
    plan = window.session.state.results.of(PlanView)
    return plan is not None and plan.request.asked.seconds == seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each training")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # as the process that trains has it on two cores
    if args.bare:
        bare(args.seconds)
        return 0
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

    QApplication(sys.argv[:1])
    window = MainWindow(
        State(Document(text="Tom and Anna went to the park.")), Settings(theme="light"), remembers=False
    )
    window.dock_host.arrange(1.0, "heads")
    window.resize(1440, 900)
    window.show()
    window.start()
    wait_until(lambda: window.session.state.ran is not None and window.is_settled())
    panel = panel_of(window, PlaygroundPanel)
    assert isinstance(panel, PlaygroundPanel)
    seconds = round(args.seconds + _RISES)
    before = time_bare(args.seconds)
    for what, follows in (("All heads and Head follow it", True), ("its first step stays on screen", False)):
        window.dock_host.raise_panel("playground")
        panel.form.seconds.setValue(seconds)
        wait_until(lambda: is_planned(window, seconds) and panel.train.isEnabled())
        heartbeat = Heartbeat()
        panel.train.click()
        wait_until(lambda: window.session.state.training is not None and learning_of(window).step > 0)
        if not follows:
            window.session.dispatch(GoToStep(0))
        first_step, first_time = learning_of(window).step, time.perf_counter()
        wait_until(lambda: learning_of(window).phase == "ended")
        learning, lasted = learning_of(window), time.perf_counter() - first_time
        silences = heartbeat.stop()
        steps = (learning.step - first_step) / lasted
        after = time_bare(args.seconds)
        rate = statistics.mean((before, after))
        held = learning.held_out
        assert held is not None
        say(f"while a model learns and {what}", gaps(silences), f"{GAP:.0f} ms")
        above = sum(gap > GAP for gap in silences)
        say("   silences above that, of all", f"{above} of {len(silences):,}")
        say("   longest work of its thread between two beats", gaps(heartbeat.worked))
        say("   steps a second, of a bare loop's", f"{steps:.1f} of {rate:.1f} ({before:.1f}, {after:.1f})")
        say("   throughput", f"{steps / rate:.3f}", f"{THROUGHPUT}")
        say(f"   held-out sequences right after {learning.seconds:.0f} s", f"{held.sequences_right:.3f}")
        before = after
    print(machine(), f"load {os.getloadavg()[0]:.1f}")
    window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
