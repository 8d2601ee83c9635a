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


def test_a_started_window_has_no_pyqtgraph_until_a_plot_is_shown():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["started False", "plot True"]
