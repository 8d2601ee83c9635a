"""Two programs that fetch the same file into the same cache: it comes once, and whole."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.models.hub_server import COMMIT, REPOSITORY, Hub, serving

ROOT = Path(__file__).resolve().parents[3]
WEIGHTS = "model.safetensors"
HALF = 1 << 19  # bytes of the weights, after which the hub waits until a test says go on
PATIENCE = 60.0  # seconds

OURS = """
import sys
from pathlib import Path
from attention_models.hub.engine import HubEngine
from attention_models.protocol.hub import FetchRequest, LookUpRequest

said = ""
def say(sentence, fraction=None):
    global said
    if sentence != said:
        print(sentence, flush=True)
    said = sentence

engine = HubEngine(sys.argv[1], Path(sys.argv[2]))
listing = engine.run(LookUpRequest(text=sys.argv[3]), lambda: False, say)
answer = engine.run(FetchRequest(listing=listing), lambda: False, say)
say(getattr(answer, "sentence", type(answer).__name__))
"""

THEIRS = """
import sys
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.utils import logging

constants.FILELOCK_LOG_EVERY_SECONDS = 0.2
logging.set_verbosity_info()
hf_hub_download(sys.argv[3], "model.safetensors", cache_dir=sys.argv[2], endpoint=sys.argv[1])
print("fetched", flush=True)
"""


class Program:
    """A process that fetches, and what it says."""

    def __init__(self, script: str, hub: Hub, cache: Path) -> None:
        command = [sys.executable, "-c", script, hub.address, str(cache), REPOSITORY]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def says(self, words: str) -> None:
        """Wait until it prints a line with `words`."""
        assert self.process.stdout is not None
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if words in line:
                return
        pytest.fail(f"never said {words!r}: {seen}")


@contextmanager
def started(script: str, hub: Hub, cache: Path) -> Iterator[Program]:
    program = Program(script, hub, cache)
    try:
        yield program
    finally:
        program.process.kill()
        program.process.communicate()


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts may ask the hub."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "on the hub"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    noise = np.random.default_rng(0).standard_normal((512, 512), dtype=np.float32)  # 1 MB
    save_file({"weight": noise}, folder / WEIGHTS)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def hub(source: Path) -> Iterator[SlowHub]:
    with serving(source) as hub:
        yield SlowHub(hub)


class SlowHub:
    """Stops in the middle of the weights until a test goes on."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.is_half_way = threading.Event()
        self.goes_on = threading.Event()
        hub.pause = self._pause

    def _pause(self, sent: int) -> None:
        if sent >= HALF and not self.goes_on.is_set():
            self.is_half_way.set()
            self.goes_on.wait(PATIENCE)


def transfers(hub: Hub) -> list[str]:
    """The ranges of the weights that were fetched, without the reading of their header."""
    return [asked for asked in hub.bytes_sent(WEIGHTS) if not asked.startswith("bytes=0-")]


def assert_whole(cache: Path, source: Path) -> None:
    (path,) = cache.glob(f"models--*/snapshots/{COMMIT}/{WEIGHTS}")
    content = (source / WEIGHTS).read_bytes()
    assert path.read_bytes() == content
    assert path.resolve().name == hashlib.sha256(content).hexdigest()
    assert not list(cache.rglob("*.incomplete"))


@pytest.mark.short("ours")
@pytest.mark.parametrize("first", [OURS, THEIRS], ids=["ours", "huggingface_hub"])
def test_what_another_program_fetches_is_waited_for_and_used(
    first: str, hub: SlowHub, cache: Path, source: Path
) -> None:
    with started(first, hub.hub, cache) as one:
        assert hub.is_half_way.wait(PATIENCE)
        with started(OURS, hub.hub, cache) as two:
            two.says(f"Another program is fetching {WEIGHTS}")
            hub.goes_on.set()
            one.says("HubFetched" if first == OURS else "fetched")
            two.says("HubFetched")
    assert transfers(hub.hub) == [""]
    assert_whole(cache, source)


def test_huggingface_hub_waits_for_ours(hub: SlowHub, cache: Path, source: Path) -> None:
    with started(OURS, hub.hub, cache) as ours:
        assert hub.is_half_way.wait(PATIENCE)
        with started(THEIRS, hub.hub, cache) as theirs:
            theirs.says("Still waiting to acquire lock")
            hub.goes_on.set()
            ours.says("HubFetched")
            theirs.says("fetched")
    assert transfers(hub.hub) == [""]
    assert_whole(cache, source)


def test_one_that_is_killed_leaves_its_bytes_to_the_other(hub: SlowHub, cache: Path, source: Path) -> None:
    with started(OURS, hub.hub, cache) as one:
        assert hub.is_half_way.wait(PATIENCE)
        with started(OURS, hub.hub, cache) as two:
            two.says(f"Another program is fetching {WEIGHTS}")
            one.process.kill()
            one.process.wait()
            hub.goes_on.set()
            two.says("HubFetched")
    whole, rest = transfers(hub.hub)
    assert whole == ""
    first = int(rest.removeprefix("bytes=").removesuffix("-"))
    assert 0 < first <= HALF
    assert_whole(cache, source)
