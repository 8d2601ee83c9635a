"""Hostile session files, each opened as the window opens it: a sentence, within five seconds and a gigabyte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.hostile_sessions import hostile_sessions

ROOT = Path(__file__).resolve().parents[2]
SECONDS, GIGABYTE = 5.0, 1 << 30

OPENER = """
import json, sys, time
from pathlib import Path
from attention_explorer.session import attn
from attention_explorer.session.session_check import checked
for path in sorted(Path(sys.argv[1]).iterdir()):
    began = time.process_time()
    try:
        session = attn.load(path)
        outcome = checked(session.present, path.parent, lambda: False).found
        assert attn.decode(attn.encode(session)) == session
    except ValueError as error:
        outcome = str(error)
    print(json.dumps([path.name, outcome, time.process_time() - began]), flush=True)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) << 10)
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, tuple[str, float]], int, Path]:
    """What came of each file and how much computing it took, the most memory, and the folder."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "files").mkdir()
    for name, content in hostile_sessions():
        (folder / "files" / name.replace("/", "-")).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", OPENER, folder / "files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    *lines, peak = done.stdout.splitlines()
    return {name: (said, spent) for name, said, spent in map(json.loads, lines)}, int(peak), folder


pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read where Linux says it")


def test_there_are_enough(opened):
    assert len(opened[0]) >= 150


def test_each_is_a_sentence_or_a_session_that_holds(opened):
    for name, (said, _) in opened[0].items():
        assert said in ("same", "missing", "changed", "elsewhere") or (said.endswith(".") and name in said), (
            name,
            said,
        )
    refused = [name for name, (said, _) in opened[0].items() if said.endswith(".")]
    assert len(refused) >= 100


def test_none_takes_long_or_much(opened):
    found, peak, _ = opened
    assert {name: spent for name, (_, spent) in found.items() if spent > SECONDS} == {}
    assert peak < GIGABYTE


def test_nothing_is_touched_outside(opened):
    _, _, folder = opened
    assert [path.name for path in folder.iterdir()] == ["files"]
    assert not any(path.name == "harm" for path in ROOT.iterdir())
