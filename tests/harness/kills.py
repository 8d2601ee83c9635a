"""Kills the real program at a random moment, and says what was lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from attention_explorer.session import attn
from tests.harness.program import heed_signals
from tests.harness.typing_program import typed

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0


@dataclass(frozen=True)
class Killed:
    """What a kill left: when it came, and what was typed and found afterwards."""

    at: float
    journal: tuple[tuple[float, int], ...]  # time and number of each key
    kept: int  # keys in the newest text that was found
    broken: tuple[str, ...]  # files that cannot be read

    @property
    def lost(self) -> float:
        """How old the oldest key is that was lost, in seconds before the kill; 0 where none was."""
        gone = [when for when, count in self.journal if count > self.kept]
        return max(0.0, self.at - gone[0]) if gone else 0.0


def kill_once(folder: Path, rng: random.Random, longest: float = 4.0) -> Killed:
    """Start the program with settings in `folder`, kill it up to `longest` seconds after the first key."""
    folder.mkdir()
    home, journal, session = folder / "home", folder / "journal", folder / "mine.attn"
    environment = {**os.environ, "ATTENTION_EXPLORER_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.typing_program", journal, session],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=heed_signals,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not journal.exists():
            assert program.poll() is None, "the program ended by itself"
            assert time.monotonic() < deadline, "the program did not start"
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, longest))
        at = time.time()
        os.kill(program.pid, signal.SIGKILL)
    finally:
        program.kill()
        program.wait()
    lines = [line.split() for line in journal.read_text().splitlines()]
    keys = tuple((float(when), int(count)) for when, count in lines)
    return Killed(at, keys, *_found(home, session))


def _found(home: Path, session: Path) -> tuple[int, tuple[str, ...]]:
    """The most keys in any file that was left, and the files that cannot be read."""
    most, broken = 0, []
    for path in [*(home / "autosave").glob("*.attn"), session]:
        if not path.exists():
            continue
        try:
            text = attn.load(path).present.document.text
        except ValueError as error:
            broken.append(str(error))
            continue
        if text != typed(len(text)):
            broken.append(f"{path.name} holds what nobody typed: {text!r}")
        most = max(most, len(text))
    settings = home / "settings.json"
    if settings.exists():
        import json

        try:
            json.loads(settings.read_bytes())
        except ValueError as error:
            broken.append(f"settings: {error}")
    return most, tuple(broken)
