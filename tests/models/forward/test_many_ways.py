"""One text gives the same bits whatever ran before it, wherever its numbers lie, and beside a busy core."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.models.forward import many_ways


@pytest.mark.full
@pytest.mark.parametrize(("reproducible", "times"), [("", 33), ("COMPATIBLE", 5)])
def test_one_text_in_two_hundred_ways(reproducible: str, times: int) -> None:
    """With another number of threads a processor may add in another order: there rounding alone may differ."""
    settings = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MKL_CBWR")}
    settings |= {"OMP_WAIT_POLICY": "passive"} | ({"MKL_CBWR": reproducible} if reproducible else {})
    command = [sys.executable, "-m", many_ways.__name__, str(times)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ran = [sum(seen.values()) for by_threads in found["seen"].values() for seen in by_threads.values()]
    assert ran == [times] * 6
    for by_threads in found["seen"].values():
        for threads, seen in by_threads.items():
            assert len(seen) == 1, f"{threads} threads gave {len(seen)} answers: {seen}"
    assert max(found["apart"].values()) < 1e-5
