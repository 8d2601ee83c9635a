"""Fetching from a hub onto a disk that is really full, or that can really only be read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from transformers import GPT2Config, GPT2LMHeadModel

from attention_models import open_checkpoint
from attention_models.files.names import parse
from attention_models.hub.engine import HubEngine
from attention_models.protocol.hub import FetchRequest, HubFetched, HubListing, LookUpRequest
from attention_models.protocol.request import Failure, Request, Result, ShouldStop
from tests.models import hub_server
from tests.models.asking import never, silent
from tests.models.gguf_maker import gguf_of
from tests.models.hub_server import REPOSITORY, Hub, reached
from tests.models.tiny import TinyFolder
from tests.real_disks import Disk

REFERENCE = f"hf://{REPOSITORY}"
GGUF = "tiny-F32.gguf"


@pytest.fixture
def hub(tiny_folder: TinyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A checkpoint of a megabyte, and a GGUF file."""
    source = Path(shutil.copytree(tiny_folder("gpt2"), tmp_path / "on the hub"))
    model = GPT2LMHeadModel(GPT2Config(n_embd=128, n_layer=1, n_head=4, n_positions=64, vocab_size=330))
    model.save_pretrained(source)
    gguf_of(tiny_folder("llama"), source / GGUF)
    with reached(source, monkeypatch) as hub:
        yield hub


@pytest.fixture
def engine(hub: Hub, small_disk: Disk, monkeypatch: pytest.MonkeyPatch) -> HubEngine:
    """One that fetches onto the small disk."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(small_disk.folder))
    return HubEngine(hub.address, timeout=30.0)


def ask(engine: HubEngine, request: Request, should_stop: ShouldStop = never) -> Result:
    return engine.run(request, should_stop, silent)


def look_up(engine: HubEngine, text: str = REPOSITORY) -> HubListing:
    answer = ask(engine, LookUpRequest(text=text))
    assert isinstance(answer, HubListing), answer
    return answer


def refused(answer: Result, *words: str) -> None:
    assert isinstance(answer, Failure), answer
    for word in words:
        assert word in answer.sentence, answer.sentence


@pytest.mark.parametrize("text", [REPOSITORY, f"{REPOSITORY}:{GGUF}"])
def test_without_room_nothing_is_begun(engine: HubEngine, small_disk: Disk, text: str) -> None:
    listing = look_up(engine, text)
    small_disk.fill(leave=50_000)
    refused(ask(engine, FetchRequest(listing=listing)), "needs", "more, and the disk of", "kB free", "Make room")
    assert not list(small_disk.folder.rglob("*.incomplete"))


@pytest.mark.parametrize("text", [REPOSITORY, f"{REPOSITORY}:{GGUF}"])
def test_a_disk_that_fills_up_while_it_is_fetched(
    engine: HubEngine, hub: Hub, small_disk: Disk, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = look_up(engine, text)
    largest = max(listing.files, key=lambda file: file.size)

    def another_program_writes() -> bool:
        if any(small_disk.folder.rglob(f"{largest.etag}.incomplete")) and not (small_disk.folder / "ballast").exists():
            small_disk.fill()
        return False

    refused(ask(engine, FetchRequest(listing=listing), another_program_writes), "is full", "Make room", "is kept")
    small_disk.empty()
    again = look_up(engine, text)
    assert 0 < again.missing < again.size
    told: list[float | None] = []
    answer = engine.run(FetchRequest(listing=listing), never, lambda _, fraction: told.append(fraction))
    assert isinstance(answer, HubFetched)  # the same listing goes on, counted from what is here
    assert told[-1] == 1.0
    assert open_checkpoint(again.reference).info.parameters == again.tensors.parameters


def test_looking_up_on_a_full_disk(engine: HubEngine, small_disk: Disk) -> None:
    small_disk.fill()
    refused(ask(engine, LookUpRequest(text=REPOSITORY)), str(small_disk.folder), "is full", "Make room", "HF_HOME")


def test_a_full_disk_does_not_lose_what_was_fetched(
    engine: HubEngine, hub: Hub, small_disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(engine, FetchRequest(listing=look_up(engine)))
    monkeypatch.setattr(hub_server, "COMMIT", "f" * 40)
    (hub.folder / "config.json").write_text((hub.folder / "config.json").read_text() + "\n")
    small_disk.fill()
    refused(ask(engine, LookUpRequest(text=REPOSITORY)), "is full")
    assert open_checkpoint(REFERENCE).info.model_type == "gpt2"
    ref = small_disk.folder / parse(REPOSITORY).cache_folder / "refs" / "main"
    assert ref.read_text() == "0123456789abcdef0123456789abcdef01234567"


def test_a_cache_that_can_only_be_read(engine: HubEngine, hub: Hub, small_disk: Disk) -> None:
    ask(engine, FetchRequest(listing=look_up(engine)))
    small_disk.forbid_writing()
    listing = look_up(engine)  # all of it is there, and nothing has to be written
    assert listing.missing == 0
    assert open_checkpoint(REFERENCE).info.model_type == "gpt2"
    other = look_up(engine, f"{REPOSITORY}:{GGUF}")
    words = (str(small_disk.folder), "cannot be written", "HF_HOME")
    refused(ask(engine, FetchRequest(listing=other)), *words)
    refused(ask(engine, LookUpRequest(text=f"{REPOSITORY}@v1")), *words)
    assert open_checkpoint(REFERENCE).info.model_type == "gpt2"
