"""Play: steps, pauses, and nothing that moves where motion is reduced."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.flow.body import PlayBar
from attention_explorer.panels.flow.player import Player


@pytest.fixture
def player(qtbot) -> Player:
    player = Player()
    player.set_count(3)
    player.halt_ms = 10
    return player


def test_it_plays_to_the_end_and_stays_there(player, qtbot):
    seen: list[int] = []
    player.changed.connect(lambda: seen.append(player.at))
    player.play()
    qtbot.waitUntil(lambda: not player.playing, timeout=10_000)
    assert player.at == 2
    assert sorted(set(seen)) == [0, 1, 2]
    player.play()  # from the beginning again
    assert player.at == 0
    player.stop()


def test_moving_takes_time_and_with_reduced_motion_none(player):
    player.step(1)
    assert player.travel == 0
    player.jumps = True
    player.step(1)
    assert (player.at, player.travel) == (1, 1.0)


def test_it_moves_all_the_way(player, qtbot):
    travelled: list[float] = []
    player.changed.connect(lambda: travelled.append(player.travel))
    player.step(1)
    qtbot.waitUntil(lambda: player.travel == 1, timeout=10_000)
    assert travelled == sorted(travelled)
    assert any(0 < travel < 1 for travel in travelled)


def test_steps_end_at_both_ends_and_pause_keeps_the_place(player):
    player.jumps = True
    player.step(-1)
    assert player.at == -1
    for _ in range(5):
        player.step(1)
    assert player.at == 2
    player.step(-1)
    player.play()
    player.pause()
    assert (player.at, player.playing) == (2, False)
    player.set_count(1)  # there is no third step any more
    assert player.at == -1


def test_the_bar_says_what_can_be_pressed(qtbot):
    bar = PlayBar()
    qtbot.addWidget(bar)
    bar.show_state(-1, 3, playing=False)
    assert (bar.play_button.text(), bar.back_button.isEnabled(), bar.step_button.isEnabled()) == ("▶ Play", False, True)
    bar.show_state(2, 3, playing=True)
    assert (bar.play_button.accessibleName(), bar.back_button.isEnabled()) == ("Pause", True)
    assert not bar.step_button.isEnabled()
    paces: list[int] = []
    bar.paced.connect(paces.append)
    qtbot.keyClick(bar.speed, Qt.Key.Key_Right)
    qtbot.keyClick(bar.speed, Qt.Key.Key_Left)
    assert paces[0] < paces[1] == bar.halt_ms
