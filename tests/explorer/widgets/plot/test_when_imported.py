"""pyqtgraph takes a third of a second to import: nobody waits for it who looks at no plot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
from explorer.panels.playground.curves import CurvesPage
from explorer.session.training import TrainingState
from models.protocol.training_messages import Asked
from tests.explorer.real_window import wait_until

app = QApplication([])
page = CurvesPage()
print("page", "pyqtgraph" in sys.modules)
page.show_training(TrainingState(1, Asked("reverse")))
wait_until(lambda: "pyqtgraph" in sys.modules)  # nothing has been drawn
print("training", "pyqtgraph" in sys.modules)
"""


def printed(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_started_window_has_no_pyqtgraph_until_a_plot_is_shown():
    assert printed(PROGRAM) == ["started False", "plot True"]


def test_while_a_training_starts_it_is_imported_beside_the_window():
    assert printed(TRAINED) == ["page False", "training True"]
