"""The widgets of the decoding player, driven by mouse and keyboard."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.beam_tree import BeamNode, BeamTree
from attention_explorer.panels.decoding.cache_page import CacheBar, CacheView
from attention_explorer.panels.decoding.player_view import BranchList, BranchRow, StepTimelineArea
from attention_explorer.panels.decoding.stages import FilterBars, FilterRow
from attention_explorer.panels.decoding.step_timeline import StepTimeline, TimelineStep

LEFT = Qt.MouseButton.LeftButton


def show(qtbot, widget: QWidget, width: int = 400) -> None:
    qtbot.addWidget(widget)
    widget.resize(width, widget.sizeHint().height())
    widget.show()


def test_a_click_and_enter_activate_a_candidate(qtbot):
    bars = FilterBars()
    bars.set_rows([FilterRow("a", 0.6, 0.8, chosen=True), FilterRow("b", 0.2, 0.2), FilterRow("c", 0.1, 0, "top-k")])
    show(qtbot, bars)
    with qtbot.waitSignal(bars.row_activated) as caught:
        qtbot.mouseClick(bars, LEFT, pos=bars.row_rect(2).center().toPoint())
    assert caught.args == [2]
    qtbot.keyClick(bars, Qt.Key.Key_Up)
    with qtbot.waitSignal(bars.row_activated) as caught:
        qtbot.keyClick(bars, Qt.Key.Key_Return)
    assert caught.args == [1]
    assert "c 10.0 %, cut by top-k" in bars.accessibleDescription()


def test_what_the_settings_cut_is_drawn_otherwise(qtbot):
    bars = FilterBars()
    bars.set_rows([FilterRow("a", 0.6, 0.6), FilterRow("b", 0.4, 0.4)])
    show(qtbot, bars)
    plain, height = bars.grab().toImage(), bars.sizeHint().height()
    bars.set_rows([FilterRow("a", 0.6, 1.0), FilterRow("b", 0.4, 0.0, "top-p")])
    assert bars.sizeHint().height() > height  # the columns have names now
    assert bars.grab().toImage() != plain


def test_the_timeline_wraps_and_any_step_can_be_gone_to(qtbot):
    timeline = StepTimeline()
    timeline.set_steps([TimelineStep(f"token {i}", 0.5) for i in range(12)], 12)
    show(qtbot, timeline, 300)
    timeline.resize(300, timeline.heightForWidth(300))
    assert all(timeline.step_rect(step).right() <= 300 for step in range(13))
    assert timeline.step_rect(12).top() > timeline.step_rect(0).top()
    with qtbot.waitSignal(timeline.step_selected) as caught:
        qtbot.mouseClick(timeline, LEFT, pos=timeline.step_rect(5).center().toPoint())
    assert caught.args == [5]
    with qtbot.waitSignal(timeline.step_selected) as caught:
        qtbot.keyClick(timeline, Qt.Key.Key_Left)
    assert caught.args == [11]
    with qtbot.assertNotEmitted(timeline.step_selected):
        qtbot.keyClick(timeline, Qt.Key.Key_Right)


def test_any_text_takes_three_lines_and_shows_the_step_that_is_looked_at(qtbot):
    area = StepTimelineArea(3)
    area.resize(300, 40)
    show(qtbot, area, 300)
    for count in (1, 8, 40, 500):
        steps = [TimelineStep(f"token {i}", 0.5) for i in range(count)]
        for current in (count, 1, count // 2, count):
            area.set_steps(steps, current)
            chip = area.timeline.step_rect(current).toRect().translated(area.timeline.pos())
            assert area.viewport().rect().contains(chip), (count, current)
        assert area.height() == area.timeline.height_of(3)


def test_what_a_person_scrolled_to_stays_while_nothing_is_written(qtbot):
    area, steps = StepTimelineArea(3), [TimelineStep(f"token {i}", 0.5) for i in range(200)]
    show(qtbot, area, 300)
    area.set_steps(steps, 200)
    area.verticalScrollBar().setValue(0)
    area.set_steps(steps, 200)
    assert area.verticalScrollBar().value() == 0


def test_lines_of_the_outline_are_chosen(qtbot):
    branches = BranchList()
    branches.set_rows([BranchRow("a", 0, "−1"), BranchRow("b", 1, "−2", current=True), BranchRow("c", 40, "−3")])
    show(qtbot, branches)
    with qtbot.waitSignal(branches.row_selected) as caught:
        qtbot.mouseClick(branches, LEFT, pos=branches.row_rect(0).center().toPoint())
    assert caught.args == [0]
    with qtbot.waitSignal(branches.row_selected) as caught:
        qtbot.keyClick(branches, Qt.Key.Key_Down)
    assert caught.args == [2]
    assert not branches.grab().toImage().isNull()


def beam(id_: int, parent: int, fate: str, best: bool = False) -> BeamNode:
    return BeamNode(id_, parent, f"t{id_}", -float(id_), fate, best)  # type: ignore[arg-type]


def test_beams_lie_in_lines_and_pruned_ones_give_way_first(qtbot):
    tree = BeamTree()
    first = [beam(0, -1, "kept", True), *(beam(i, -1, "pruned") for i in range(1, 40)), beam(40, -1, "finished")]
    tree.set_steps([first, [beam(41, 0, "kept", True)]])
    show(qtbot, tree, 420)
    shown = [node.id for node in first if not tree.node_rect(node.id).isEmpty()]
    assert {0, 40} <= set(shown)
    assert len(shown) < len(first)
    assert all(tree.node_rect(id_).right() <= 420 for id_ in shown)
    assert tree.node_rect(41).top() > tree.node_rect(0).bottom()
    assert not any(tree.node_rect(a).intersects(tree.node_rect(b)) for i, a in enumerate(shown) for b in shown[i + 1 :])
    assert tree.accessibleDescription() == "2 steps. Best: t0t41."


def test_a_beam_is_selected_by_mouse_and_keys(qtbot):
    tree = BeamTree()
    lines = [
        [beam(0, -1, "kept", True), beam(1, -1, "kept"), beam(2, -1, "pruned")],
        [beam(3, 0, "kept", True), beam(4, 1, "pruned"), beam(5, 1, "kept")],
    ]
    tree.set_steps(lines)
    show(qtbot, tree, 420)
    plain = tree.grab().toImage()
    chosen: list[int] = []
    tree.node_selected.connect(chosen.append)
    tree.node_selected.connect(lambda id_: tree.set_steps(lines, id_))
    qtbot.mouseClick(tree, LEFT, pos=tree.node_rect(2).center().toPoint())
    keys = (Qt.Key.Key_Left, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Down)
    for key in keys:
        qtbot.keyClick(tree, key)
    assert chosen == [2, 1, 5, 1, 0, 3]  # down to what goes on; up from the first line is nowhere
    assert tree.grab().toImage() != plain
    assert "Selected: t0t3." in tree.accessibleDescription()


def test_a_threshold_and_a_running_sum_are_drawn(qtbot):
    bars = FilterBars()
    rows = [FilterRow("a", 0.6, 0.7), FilterRow("b", 0.3, 0.3), FilterRow("c", 0.1, 0, "top-p")]
    bars.set_rows(rows, ("before", "after"), None, always_two=True)
    show(qtbot, bars)
    plain = bars.grab().toImage()
    bars.set_rows(rows, ("before", "after"), 0.9, always_two=True)
    line = bars.grab().toImage()
    assert line != plain
    shifted = [replace(row, start=start) for row, start in zip(rows, (0.0, 0.6, 0.9), strict=True)]
    bars.set_rows(shifted, ("before", "after"), 0.9, always_two=True)
    assert bars.grab().toImage() != line


def test_shared_heads_and_new_tokens_show_in_the_cache(qtbot):
    cache = CacheView()
    cache.set_bars([CacheBar("Layer 0", 6, 1, 7, "1 kB", heads=8, key_heads=8)])
    show(qtbot, cache)
    own = cache.grab().toImage()
    cache.set_bars([CacheBar("Layer 0", 6, 1, 7, "1 kB", heads=8, key_heads=2)])
    assert cache.grab().toImage() != own
    assert cache.accessibleDescription() == "Layer 0: 6 reused, 1 computed, 1 kB"


def test_what_is_empty_says_so(qtbot):
    for widget in (FilterBars(), BranchList(), BeamTree(), CacheView()):
        show(qtbot, widget)
        blank = widget.grab().toImage()
        widget.set_empty_text("Nothing yet.")
        assert widget.grab().toImage() != blank
