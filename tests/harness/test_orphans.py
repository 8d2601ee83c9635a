"""A program that was started for a test ends with the test, also where that is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.harness.program import PATIENCE, ROOT

PARENT = """
import sys, time
from pathlib import Path
from tests.harness.program import Program
program = Program(Path(sys.argv[1]))
if sys.argv[2] == "started":
    program.started()
print(program.process.pid, flush=True)
time.sleep(600)
"""


def has_ended(process: psutil.Process) -> bool:
    """Also where nobody has taken notice yet, as in a container without an init."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.mark.short("started")
@pytest.mark.parametrize("when", ["starting", "started"])
def test_a_program_ends_with_the_process_that_started_it(tmp_path: Path, when: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), when], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + PATIENCE
        while not has_ended(child):
            assert time.monotonic() < deadline, "it goes on"
            time.sleep(0.02)
    finally:
        parent.kill()
        parent.wait()
        assert parent.stdout is not None
        parent.stdout.close()
