"""An hour of work in minutes: after it the program holds about as much memory as when it had seen everything once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.harness.program import Program, started

TEXT_MODELS = ("story-gpt", "story-bert", "en-es", "recurrent-en-es-bahdanau")
ALL_MODELS = (*TEXT_MODELS, "story-next", "dates-luong", "vit-cifar10", "vit-quickdraw")
WORDS = ("the", "park", "went", "Anna", "and", "a", "ball", "to", "Tom", "gave", "cat", ".")


def work(program: Program, checkpoints: tuple[str, ...], keys: int, rng: random.Random) -> None:
    """Open each checkpoint, and type `keys` keys into each."""
    for checkpoint in checkpoints:
        program.ask(f"window.session.dispatch(intents.OpenCheckpoint({checkpoint!r}))")
        program.settle()
        if not program.ask("window.input.text.isVisible()"):  # a model that is shown pictures
            continue
        typed = ""
        while len(typed) < keys:
            typed += f"{rng.choice(WORDS)} "
        program.ask("window.input.text.selectAll()")
        program.ask(f"keys(window, {typed[:keys]!r})")
        program.settle()


def grown(folder: Path, checkpoints: tuple[str, ...], rounds: int, keys: int) -> tuple[float, float]:
    """Megabytes after one round of work, and after all of them."""
    rng = random.Random(0)
    with started(folder) as program:
        program.settle()
        for _ in range(2):
            work(program, checkpoints, keys, rng)
        before = program.ask("memory()")
        for _ in range(rounds):
            work(program, checkpoints, keys, rng)
        after = program.ask("memory()")
        program.closed_now()
        assert program.complaints() == []
    return before, after


@pytest.mark.full
def test_a_few_minutes_of_work_do_not_add_up(tmp_path):
    """A model that stays behind at each of the eight switches would be 100 MB or more."""
    before, after = grown(tmp_path, ("story-gpt", "story-bert"), rounds=4, keys=25)
    assert after < before + 60


@pytest.mark.long
def test_an_hour_of_work_does_not_add_up(tmp_path, record_property):
    """10,000 keys and 200 checkpoints."""
    before, after = grown(tmp_path, ALL_MODELS, rounds=25, keys=70)
    record_property("megabytes", (before, after))
    print(f"\n{before:.0f} MB after a round, {after:.0f} MB after 25 more")
    assert after < before + 100
