"""Hostile pictures, against a program of its own: a sentence each or a picture, little time and memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.hostile.attack import Attack
from tests.hostile.pictures import HostilePicture, pictures
from tests.hostile.test_checkpoints import MOST_BYTES, MOST_SECONDS, faults_of
from tests.models import tiny_vision

NAMED = (
    *("1 x 50,000,000 in RGB", "50,000,000 x 1 in grey", "30,000 square", "a head of 2,147,483,647 x 2,147,483,647"),
    *("P3, written out", "P2, written out", "three million frames", "ten thousand scans", "a gigabyte of packed text"),
    *("a pipe", "a device", "links in a ring", "EPS by another name", "PPM: digits without end", "half of a WEBP"),
)


@pytest.fixture
def attack(tmp_path: Path) -> Iterator[Attack]:
    sound = tiny_vision.save("vit", tmp_path / "sound")
    with Attack(sound, "picture", "sample:chelsea", most_seconds=4 * MOST_SECONDS, most_bytes=2 * MOST_BYTES) as attack:
        yield attack


def all_faults(attack: Attack, hostiles: Iterable[HostilePicture], folder: Path) -> list[str]:
    found = []
    for number, hostile in enumerate(hostiles):
        place = folder / f"hostile {number}"
        place.mkdir()
        hostile.make(place / f"picture{hostile.suffix}")
        outcome = attack.ask("look", str(place / f"picture{hostile.suffix}"))
        wrong = list(faults_of(outcome))
        if outcome.opened and not hostile.seen:
            wrong.append("it was looked at")
        if outcome.opened:
            attack.ask("begin")
        elif not outcome.said.endswith("."):
            wrong.append(f"no sentence, but {outcome.said!r}")
        if not attack.ask("untouched").untouched:
            wrong.append("what was open is another")
        found += [f"{hostile.name}: {fault}" for fault in wrong]
        shutil.rmtree(place)
    return found


def test_hostile_pictures(attack: Attack, tmp_path: Path) -> None:
    chosen = [hostile for hostile in pictures() if hostile.name in NAMED]
    assert len(chosen) == len(NAMED)
    assert all_faults(attack, chosen, tmp_path) == []


@pytest.mark.long
def test_all_hostile_pictures(attack: Attack, tmp_path: Path) -> None:
    every = tuple(pictures())
    assert len(every) > 60
    assert all_faults(attack, every, tmp_path) == []
