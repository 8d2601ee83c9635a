"""pyqtgraph takes a third of a second to import: nobody waits for it who looks at no plot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import sys
from PySide6.QtWidgets import QApplication
from tests.explorer.real_window import opened_window, wait_until

app = QApplication([])
with opened_window() as window:
    print("started", "pyqtgraph" in sys.modules)
    window.dock_host.raise_panel("variance")
    app.processEvents()
    wait_until(lambda: "pyqtgraph" in sys.modules)
    print("plot", "pyqtgraph" in sys.modules)
"""
TRAINED = """
import sys
from PySide6.QtWidgets import QApplication
from attention_explorer.panels.playground.panel import PlaygroundPanel
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import Train
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.training_plan import PlanRequest, PlanView
from tests.explorer.real_window import wait_until
from tests.explorer.silent import SilentSession

app = QApplication([])
session = SilentSession()
panel = PlaygroundPanel(session, Hover())
panel.show()
app.processEvents()
print("panel", "pyqtgraph" in sys.modules)
if sys.argv[1] == "planned":
    session.arrive(PlanView(request=next(asked for asked in session.asked if isinstance(asked, PlanRequest))))
else:
    session.dispatch(Train(Asked("reverse")))
wait_until(lambda: "pyqtgraph" in sys.modules)  # nothing has been drawn
print("then", "pyqtgraph" in sys.modules)
"""


def printed(program: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_started_window_has_no_pyqtgraph_until_a_plot_is_shown():
    assert printed(PROGRAM) == ["started False", "plot True"]


@pytest.mark.parametrize("when", ["planned", "begun"])
def test_it_is_imported_beside_the_window_before_a_model_has_learned_anything(when):
    """As soon as the form says what would come of Train: by then the window is there."""
    assert printed(TRAINED, when) == ["panel False", "then True"]
