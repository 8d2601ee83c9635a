"""Closed in the middle of each kind of work, the program ends at once, in order, and leaves nothing half done."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_explorer import json_files
from attention_explorer.session import attn
from attention_explorer.settings import Settings
from attention_models.files.catalogue import folder_of
from attention_models.files.safe_files import UNFINISHED
from tests.harness.program import Program, started
from tests.models.hub_server import REPOSITORY, serving

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are those of POSIX")

MOST_SECONDS = 5.0
ATTEMPTS = 5
WORDS = ("the ", "a ", "an ", "Tom ", "it ")
LONG_TEXT = "window.session.dispatch(intents.SetText('the ' * 500))"
OPEN_OTHER = "window.session.dispatch(intents.OpenCheckpoint('en-es'))"
WORK = {
    # lane: what sets it going
    "load": ["window.session.dispatch(intents.OpenCheckpoint('story-gpt'))", OPEN_OTHER],
    "forward": [LONG_TEXT],
    "play": [
        "window.dock_host.raise_panel('decoding')",
        "panel('decoding').view.transport.restart_button.click()",
        "panel('decoding').view.transport.play_button.click()",
    ],
    "download": [
        "window.choose_checkpoint()",
        f"window.chooser.dialog.hub_box.name.setText({REPOSITORY!r})",
        "window.chooser.dialog.look_up()",
    ],
    "quality": [
        "window.session.dispatch(intents.OpenCheckpoint('dates-luong'))",
        "window.dock_host.raise_panel('quality')",
        "panel('quality').run.click()",
    ],
    "export": [LONG_TEXT],
    "save": [
        "[window.sessions.keep(f'state {i}') for i in range(100 - len(window.sessions.states.kept.states))]",
        "keys(window, 'the ')",
        "window.sessions._write(__import__('pathlib').Path('{folder}/mine.attn'))",
    ],
    "autosave": ["window.input.text.selectAll()", "keys(window, 'the ')"],
}
DELAYS = {"autosave": [0, 200, 390, 400, 405, 410, 420]}
"""Milliseconds after work has begun; of autosave, which waits before it writes, until it does."""
WAYS = ("window", "SIGTERM", "SIGINT")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """The address of a hub that takes its time over a large file."""
    folder = tmp_path / "repository"
    shutil.copytree(folder_of("story-gpt"), folder)
    with serving(folder) as server:
        server.pause = lambda _sent: time.sleep(0.05)
        yield server.address


def set_going(program: Program, lane: str, folder: Path, attempt: int) -> None:
    for step in WORK[lane]:
        program.ask(step.replace("the ", WORDS[attempt]).replace("{folder}", str(folder)))
        if step != WORK[lane][-1]:
            program.settle()
    if lane == "download":
        program.wait_until("window.chooser.dialog.download_button.isVisible()")
        program.wait_until("window.chooser.dialog.download_button.isEnabled()")
        program.ask("window.chooser.dialog.download()")
    if lane == "export":
        program.settle()
        path = str(folder / "weights.npz")
        program.ask(
            "window.session.request(__import__('attention_models.protocol.export', fromlist=['*'])"
            f".ExportRequest(run=window.session.state.ran.run, path={path!r}))"
        )


def closed(folder: Path, hub: str, lane: str, delay: int, how: str) -> float:
    """Seconds that the program took to end when it was closed at work. All else that is asked of it holds."""
    online = {"HF_ENDPOINT": hub, "HF_HUB_OFFLINE": "0", "HF_HOME": str(folder / "hub")}
    with started(folder, **(online if lane == "download" else {})) as program:
        program.settle()
        for attempt in range(ATTEMPTS):
            set_going(program, lane, folder, attempt)
            closed = program.closed_while(lane, delay, how)
            if closed is not None:
                break
            program.settle()
        assert closed is not None
        lanes, seconds = closed
        assert lane in lanes
        assert program.process.returncode == 0
        assert program.complaints() == []
    check_sessions(folder, lane)
    json_files.decode((folder / "settings" / "settings.json").read_bytes(), Settings)
    assert [path.name for path in folder.iterdir() if "weights" in path.name] in ([], ["weights.npz"])
    return seconds


def check_sessions(folder: Path, lane: str) -> None:
    """What was saved is whole, nothing is half written, and what was typed is in a file or kept for the next start."""
    saved = [*folder.glob("*.attn"), *(folder / "settings" / "autosave").glob("*.attn")]
    texts = [attn.load(path).present.document.text for path in saved]
    assert list(folder.rglob(f"*{UNFINISHED}")) == []
    if lane in ("save", "autosave"):
        assert any(any(word in text for word in WORDS) for text in texts)
        assert all(len(attn.load(path).kept.states) == 100 for path in saved if lane == "save")


@pytest.mark.short("play-SIGTERM")
@pytest.mark.parametrize(
    ("lane", "how"),
    [("download", "window"), ("play", "SIGTERM"), ("export", "SIGINT"), ("save", "window"), ("autosave", "SIGTERM")],
)
def test_closed_at_work(tmp_path, hub, lane, how):
    closed(tmp_path, hub, lane, 0, how)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("lane", WORK)
def test_closed_at_work_eighty_times(tmp_path, hub, lane, seed):
    rng = random.Random(f"{lane} {seed}")
    delay = rng.choice(DELAYS.get(lane, [0, 0, 3, 10, 30]))
    assert closed(tmp_path, hub, lane, delay, WAYS[seed % len(WAYS)]) <= MOST_SECONDS
