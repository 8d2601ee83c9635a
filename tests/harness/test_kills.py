"""However the program ends, no more than the last two seconds are lost, and no file is broken."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.harness.kills import kill_once

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

MOST_LOST = 2.0  # seconds


def check(folder: Path, seed: int) -> None:
    killed = kill_once(folder, random.Random(seed))
    assert killed.broken == ()
    assert killed.lost <= MOST_LOST, f"{killed.lost:.2f} s of {len(killed.journal)} keys, {killed.kept} kept"


@pytest.mark.short("0")
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_a_random_moment(tmp_path, seed):
    check(tmp_path / "one", seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_killed_two_hundred_times(tmp_path, seed):
    check(tmp_path / "one", seed)
