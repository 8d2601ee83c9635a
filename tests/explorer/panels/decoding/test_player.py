"""The player without a session: what it has done by others, and what it makes of what comes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.panels.decoding.player import DecodePlayer
from attention_explorer.panels.decoding.situation import Situation
from attention_explorer.session.branches import ROOT, Branches
from attention_models.protocol.decoding import DecodeSamplesRequest, DecodeSettings, DecodeStepRequest
from attention_models.protocol.running import RunInputs
from tests.explorer.session import answers

TEXT = "Tom and Anna"


class Stage:
    """A situation that a test sets, and everything that the player has had done, in its own words."""

    def __init__(self) -> None:
        self.now = Situation(
            loaded=answers.loaded(),
            origin=("story-gpt", RunInputs(TEXT)),
            branches=Branches(),
            site=None,
            head=3,
            up_to_date=True,
            caught_up=True,
            answer=None,
            pending=None,
            passage=0,
            problem="",
        )
        self.done: list[tuple[object, ...]] = []

    def ask_step(self, request: DecodeStepRequest, parent: int, goes_on: bool) -> None:
        self.done.append(("step", request, parent, goes_on))
        self.now = replace(self.now, pending=request, passage=1)

    def ask_samples(self, request: DecodeSamplesRequest, parents: tuple[int, ...], shown: int, goes_on: bool) -> None:
        self.done.append(("samples", request, parents, shown, goes_on))
        self.now = replace(self.now, pending=request, passage=1)

    def go_to(self, node: int) -> None:
        self.done.append(("go to", node))
        self.now = replace(self.now, branches=self.now.branches.go(node))

    def name(self, node: int, name: str) -> None:
        self.done.append(("name", node, name))

    def delete(self, node: int) -> None:
        self.done.append(("delete", node))

    def becomes(self, player: DecodePlayer, **changes: object) -> None:
        """The session has changed: the player hears of it as from its panel."""
        before, self.now = self.now, replace(self.now, **changes)  # type: ignore[arg-type]
        player.take_up(self.now, before)
        player.receive(self.now, before)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def player(qapp, stage) -> DecodePlayer:
    player = DecodePlayer(lambda: stage.now, stage)
    player.take_up(stage.now, None)
    player.set_knobs(DecodeSettings(), 5, 1, "")
    return player


def answered(stage: Stage, player: DecodePlayer, token: int) -> None:
    """The engine has chosen `token`, and the session has it in its tree."""
    request = stage.now.pending
    assert isinstance(request, DecodeStepRequest)
    tree = stage.now.branches.grow(token, f"t{token}", -0.5)
    stage.becomes(player, pending=None, answer=answers.step_view(request, token), branches=tree)


def test_a_step_is_asked_for_at_the_place_in_view(stage, player):
    player.step()
    ((what, request, parent, goes_on),) = stage.done
    assert (what, parent, goes_on) == ("step", ROOT, False)
    assert (request.inputs.prompt, request.ids, request.number, request.head) == (TEXT, (), 1, 3)
    player.step()
    assert len(stage.done) == 1  # one at a time
    answered(stage, player, 7)
    assert player.at == 1
    view = player.shown_view()
    assert view is not None
    assert view.request == request
    player.step()
    assert (stage.done[-1][1].ids, stage.done[-1][2]) == ((7,), 1)


def test_playing_goes_on_by_itself_until_the_steps_are_used_up(qtbot, stage, player):
    player.play(True)
    for token in (7, 8, 9, 10, 11):
        qtbot.waitUntil(lambda: stage.now.pending is not None)
        answered(stage, player, token)
    assert not player.playing
    assert player.why_not().startswith("All 5 steps are used up")
    assert [done[3] for done in stage.done] == [False, True, True, True, True]  # undone in one go


def test_a_step_that_fails_ends_playing_and_says_why(stage, player):
    player.play(True)
    stage.becomes(player, pending=None, problem="There is not enough memory.")
    assert not player.playing
    assert player.said == "There is not enough memory."


def test_another_text_has_what_was_written_after_it(stage, player):
    player.step()
    answered(stage, player, 7)
    written = stage.now.branches
    other = ("story-gpt", "Another text", None, ())
    stage.becomes(player, origin=other, branches=Branches(), passage=0)
    assert player.shown_view() is None
    stage.becomes(player, origin=("story-gpt", RunInputs(TEXT)), branches=written)
    assert player.shown_view() is not None
    stage.becomes(player, loaded=answers.loaded())  # opened again: its steps may be others
    assert player.shown_view() is None


def test_several_samples_are_asked_for_at_once(stage, player):
    player.set_knobs(DecodeSettings(strategy="sample", seed=4), 5, 3, "")
    player.step()
    ((what, request, parents, shown, _),) = stage.done
    assert (what, parents, shown) == ("samples", (ROOT,) * 3, 0)
    assert (request.samples, request.ids, request.settings.seed) == ((0, 1, 2), ((), (), ()), 4)


def test_going_back_and_sideways(stage, player):
    player.step()
    answered(stage, player, 7)
    player.back()
    assert stage.done[-1] == ("go to", ROOT)
    player.jump(1)
    assert stage.done[-1] == ("go to", 1)
    player.branch_off(9)
    assert stage.done[-1][1].forced == 9
    assert stage.done[-1][2] == ROOT
