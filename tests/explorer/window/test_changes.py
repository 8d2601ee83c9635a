"""A change costs no more than it did: panels drawn and Python calls, counted in the window's thread.

See tests/benchmarks/changes.py, which prints the figures. Bounds leave room for what another machine's timing adds.
"""

from __future__ import annotations

from PySide6.QtTest import QTest

from attention_explorer.window.window import MainWindow
from tests.benchmarks import changes


def test_a_letter(window: MainWindow) -> None:
    assert len(window.dock_host.front_panels()) == 3  # and the input and the signs of trust
    cost = changes.of_a_letter(window, turns=3)
    assert cost.changes <= 8
    assert cost.renders <= 15
    assert cost.sizes <= 300


def test_another_head(window: MainWindow) -> None:
    cost = changes.of_a_head(window, turns=3)
    assert cost.changes <= 3
    assert cost.renders <= 8


def test_a_decoding_step(window: MainWindow) -> None:
    cost = changes.of_a_decoding_step(window, turns=3)
    assert cost.changes <= 8
    assert cost.renders <= 18


def test_while_nothing_happens_nothing_is_drawn(window: MainWindow) -> None:
    QTest.qWait(300)
    with changes.counted(window) as so_far:
        QTest.qWait(300)
        cost = so_far()
    assert (cost.changes, cost.renders) == (0, 0)
