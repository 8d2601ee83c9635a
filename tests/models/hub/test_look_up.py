"""Fetching from a hub, against one that runs in a thread: what comes, what is kept, what is said of what goes wrong."""

from __future__ import annotations

import gzip
import json
import logging
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants
from safetensors import safe_open
from transformers import GPT2Config, GPT2LMHeadModel

from attention_models import open_checkpoint, run
from attention_models.files import hub_cache
from attention_models.files.names import parse
from attention_models.hub import transfer
from attention_models.hub.engine import HubEngine
from attention_models.opening.trial import TrialRequest, judge
from attention_models.protocol.hub import FetchRequest, HubFetched, HubListing, LookUpRequest
from attention_models.protocol.request import Cancelled, Failure, Request, Result
from tests.models import hub_server, lora
from tests.models.asking import never, silent
from tests.models.hub_server import COMMIT, REPOSITORY, Handler, Hub
from tests.models.tiny import TinyFolder


@pytest.fixture
def source(tiny_folder: TinyFolder, tmp_path: Path) -> Path:
    """What lies on the hub: a sound checkpoint, and files that nobody needs."""
    folder = Path(shutil.copytree(tiny_folder("gpt2"), tmp_path / "on the hub"))
    (folder / "README.md").write_text("# A model")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle" * 1000)
    (folder / "model.onnx").write_bytes(b"x" * 9000)
    (folder / "evil.py").write_text("raise SystemExit")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache ñ 模型"


@pytest.fixture
def engine(hub: Hub, cache: Path) -> HubEngine:
    return HubEngine(hub.address, cache, timeout=30.0)


def ask(engine: HubEngine, request: Request) -> Result:
    return engine.run(request, never, silent)


def listing_of(engine: HubEngine, text: str = REPOSITORY) -> HubListing:
    answer = ask(engine, LookUpRequest(text=text))
    assert isinstance(answer, HubListing), answer
    return answer


def fetch(engine: HubEngine, listing: HubListing) -> HubFetched:
    answer = ask(engine, FetchRequest(listing=listing))
    assert isinstance(answer, HubFetched), getattr(answer, "sentence", answer)
    return answer


def refused(engine: HubEngine, request: Request, *words: str) -> str:
    answer = ask(engine, request)
    assert isinstance(answer, Failure), answer
    for word in words:
        assert word in answer.sentence, answer.sentence
    assert answer.sentence.endswith(".")
    assert "\n" not in answer.sentence
    return answer.sentence


def peak_memory() -> int:
    """The most bytes that this process has held so far, as far as the system says."""
    resource = pytest.importorskip("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


# --------------------------------------------------------------------------- what there is


def test_listing(engine: HubEngine, source: Path) -> None:
    listing = listing_of(engine)
    names = {file.name for file in listing.files}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    assert not names & {"README.md", "pytorch_model.bin", "model.onnx", "evil.py"}
    assert listing.size == sum((source / name).stat().st_size for name in names)
    assert listing.missing == listing.size - (source / "config.json").stat().st_size
    assert (listing.reference, listing.commit, listing.licence) == (f"hf://{REPOSITORY}", COMMIT, "mit")
    assert listing.has_tokenizer


def test_listing_reads_the_headers_alone(engine: HubEngine, hub: Hub, source: Path) -> None:
    listing = listing_of(engine)
    with safe_open(source / "model.safetensors", "pt") as file:
        assert listing.tensors.shapes == {n: tuple(file.get_slice(n).get_shape()) for n in file.keys()}  # noqa: SIM118
    ranges = hub.bytes_sent("model.safetensors")
    assert ranges
    assert all(asked.startswith("bytes=0-") for asked in ranges)
    assert int(ranges[-1].partition("-")[2]) < (source / "model.safetensors").stat().st_size // 2


def test_listing_where_the_server_knows_no_ranges(engine: HubEngine, hub: Hub) -> None:
    hub.knows_ranges = False
    assert listing_of(engine).tensors.shapes


def test_shards(engine: HubEngine, source: Path) -> None:
    model = open_checkpoint(source)
    (source / "model.safetensors").unlink()
    model.module.save_pretrained(source, max_shard_size="40KB")  # type: ignore[operator]
    listing = listing_of(engine)
    assert sum(file.name.endswith(".safetensors") for file in listing.files) > 1
    assert listing.tensors.parameters == model.info.parameters
    fetch(engine, listing)
    assert open_checkpoint(listing.folder).info.parameters == model.info.parameters


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "config.json").unlink(), ("no config.json",)),
        (lambda f: (f / "model.safetensors").unlink(), ("only as a pickle", "pytorch_model.bin", "any program")),
        (
            lambda f: [(f / n).unlink() for n in ("model.safetensors", "pytorch_model.bin")],
            ("no weights in safetensors",),
        ),
        (
            lambda f: (f / "config.json").write_text('{"auto_map": {"AutoModel": "evil.M"}}'),
            ("never run", "not fetched"),
        ),
        (lambda f: (f / "config.json").write_text("{"), ("JSON",)),
        (
            lambda f: (f / "config.json").rename(f / "adapter_config.json"),
            ("no adapter_model.safetensors", "no adapter to be put on"),
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 5000), ("no safetensors file", "nothing was fetched")),
    ],
)
def test_nothing_to_open(engine: HubEngine, hub: Hub, source: Path, change: Any, words: tuple[str, ...]) -> None:
    change(source)
    refused(engine, LookUpRequest(text=REPOSITORY), *words)
    assert not hub.bytes_sent("pytorch_model.bin")
    assert "" not in hub.bytes_sent("model.safetensors")


def test_config_of_no_size(engine: HubEngine, source: Path) -> None:
    with (source / "config.json").open("ab") as file:
        file.truncate((16 << 20) + 1)
    refused(engine, LookUpRequest(text=REPOSITORY), "config.json", "larger than 16 MB")


# --------------------------------------------------------------------------- fetching


def test_fetched_and_opened(engine: HubEngine, hub: Hub, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = listing_of(engine)
    fractions: list[float] = []
    labels: list[str] = []

    def report(label: str, fraction: float | None = None) -> None:
        labels.append(label)
        fractions.append(fraction or 0.0)

    answer = engine.run(FetchRequest(listing=listing), never, report)
    assert isinstance(answer, HubFetched)
    assert answer.reference == f"hf://{REPOSITORY}"
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert "tiny-model" in labels[-1]
    for file in listing.files:
        assert (Path(answer.folder) / file.name).read_bytes() == (source / file.name).read_bytes()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(engine.cache.folder))
    info = open_checkpoint(answer.reference).info
    assert (info.name, info.reference, info.folder) == ("tiny-model", answer.reference, answer.folder)
    again = listing_of(engine)
    assert again.missing == 0
    before = len(hub.bytes_sent("model.safetensors"))
    fetch(engine, again)
    assert len(hub.bytes_sent("model.safetensors")) == before


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_is_fetched_and_put_on_its_model(
    engine: HubEngine, source: Path, tiny_folder: TinyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny_folder("gpt2")
    tuned = lora.save("gpt2", base, tmp_path / "tuned", use_dora=True)
    for file in source.iterdir():
        file.unlink()
    for file in tuned.iterdir():
        shutil.copy(file, source)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(engine.cache.folder))
    listing = listing_of(engine)
    assert [file.name for file in listing.files] == ["adapter_config.json", "adapter_model.safetensors"]
    said = judge(TrialRequest(reference=listing.reference, listing=listing))
    assert said.refusal == ""
    assert said.info is not None
    assert said.info.adapter is not None
    assert said.info.adapter.words == "DoRA of rank 4, alpha 6 (scale 1.5), on c_attn, c_proj (9 matrices)"
    assert not (Path(listing.folder) / "adapter_model.safetensors").exists()
    model = open_checkpoint(fetch(engine, listing).reference)
    assert (model.info.folder, model.info.name) == (str(base), "tiny-model")
    assert np.array_equal(run(model, "Tom and").logits, run(open_checkpoint(tuned), "Tom and").logits)
    offline = ask(engine, LookUpRequest(text=REPOSITORY, offline=True))
    assert isinstance(offline, HubListing)
    assert offline.tensors.shapes == listing.tensors.shapes


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_of_a_model_that_is_not_here_says_so(
    engine: HubEngine, source: Path, tiny_folder: TinyFolder, tmp_path: Path
) -> None:
    tuned = lora.save("gpt2", tiny_folder("gpt2"), tmp_path / "tuned")
    for file in source.iterdir():
        file.unlink()
    for file in tuned.iterdir():
        shutil.copy(file, source)
    settings = json.loads((source / "adapter_config.json").read_text())
    (source / "adapter_config.json").write_text(json.dumps({**settings, "base_model_name_or_path": "nobody/nothing"}))
    listing = listing_of(engine)
    said = judge(TrialRequest(reference=listing.reference, listing=listing))
    assert "made for nobody/nothing, which is not on this computer. Fetch that model" in said.refusal


def test_huggingface_hub_finds_it(engine: HubEngine, cache: Path) -> None:
    """The cache is the one that every other program uses."""
    listing = listing_of(engine)
    ask(engine, FetchRequest(listing=listing))
    found = huggingface_hub.snapshot_download(REPOSITORY, cache_dir=cache, local_files_only=True)
    assert Path(found) == Path(listing.folder)
    cached = huggingface_hub.scan_cache_dir(cache)
    assert [repo.repo_id for repo in cached.repos] == [REPOSITORY]
    assert not cached.warnings


def test_revision(engine: HubEngine, cache: Path) -> None:
    listing = listing_of(engine, f"{REPOSITORY}@v1")
    assert listing.reference == f"hf://{REPOSITORY}@v1"
    assert (cache / parse(REPOSITORY).cache_folder / "refs" / "v1").read_text() == COMMIT
    refused(engine, LookUpRequest(text=f"{REPOSITORY}@v9"), "no revision", "v9")


def test_called_off_and_taken_up_again(engine: HubEngine, hub: Hub, source: Path) -> None:
    model = GPT2LMHeadModel(GPT2Config(n_embd=128, n_layer=2, n_head=4, n_positions=64, vocab_size=330))
    model.save_pretrained(source)  # more than one piece
    listing = listing_of(engine)
    polls = 0

    def third_piece() -> bool:
        nonlocal polls
        polls += hub.bytes_sent("model.safetensors")[-1] == ""
        return polls > 2

    with pytest.raises(Cancelled):
        engine.run(FetchRequest(listing=listing), third_piece, silent)
    again = listing_of(engine)
    weights = next(file for file in again.files if file.name == "model.safetensors")
    assert 0 < weights.here < weights.size
    fetch(engine, again)
    assert hub.bytes_sent("model.safetensors")[-1] == f"bytes={weights.here}-"
    assert open_checkpoint(again.folder).info.parameters == again.tensors.parameters


def test_waiting_for_another_program_is_called_off(engine: HubEngine, hub: Hub) -> None:
    listing = listing_of(engine)
    weights = next(file for file in listing.files if file.name == "model.safetensors")
    held, called_off = threading.Event(), threading.Event()

    def another_program() -> None:
        with engine.cache.locked(parse(REPOSITORY), weights.etag, lambda: None):
            held.set()
            called_off.wait(60)

    other = threading.Thread(target=another_program)
    other.start()
    assert held.wait(60)
    told: list[str] = []
    with pytest.raises(Cancelled):
        engine.run(
            FetchRequest(listing=listing),
            lambda: any("Another program is fetching model.safetensors" in sentence for sentence in told),
            lambda sentence, _: told.append(sentence),
        )
    called_off.set()
    other.join()
    assert not any(asked == "" for asked in hub.bytes_sent("model.safetensors"))
    fetch(engine, listing)


def test_half_of_a_newer_one_leaves_the_older_one(
    engine: HubEngine, hub: Hub, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(engine.cache.folder))
    model = open_checkpoint(source)
    reference = fetch(engine, listing_of(engine)).reference
    first = open_checkpoint(reference).info.folder
    monkeypatch.setattr(hub_server, "COMMIT", "f" * 40)
    (source / "model.safetensors").unlink()
    model.module.save_pretrained(source, max_shard_size="40KB")  # type: ignore[operator]
    listing = listing_of(engine)
    shards = [file for file in listing.files if file.name.endswith(".safetensors")]
    assert len(shards) > 1

    def one_has_come() -> bool:
        return any(Path(listing.folder).glob("*.safetensors"))

    with pytest.raises(Cancelled):
        engine.run(FetchRequest(listing=listing), one_has_come, silent)
    assert open_checkpoint(reference).info.folder == first
    fetch(engine, listing_of(engine))
    assert open_checkpoint(reference).info.folder == listing.folder != first


def test_taken_up_where_the_server_knows_no_ranges(engine: HubEngine, hub: Hub, cache: Path, source: Path) -> None:
    listing = listing_of(engine)
    weights = next(file for file in listing.files if file.name == "model.safetensors")
    part = cache / parse(REPOSITORY).cache_folder / "blobs" / f"{weights.etag}.incomplete"
    part.write_bytes((source / "model.safetensors").read_bytes()[:3000])
    hub.knows_ranges = False
    fetch(engine, listing_of(engine))
    assert (Path(listing.folder) / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()


def test_half_a_file_is_taken_up(engine: HubEngine, hub: Hub, source: Path) -> None:
    listing = listing_of(engine)
    hub.breaks_after = (source / "model.safetensors").stat().st_size * 2 // 3
    fetch(engine, listing)
    assert any(r.startswith("bytes=") and not r.startswith("bytes=0-") for r in hub.bytes_sent("model.safetensors"))
    assert (Path(listing.folder) / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()


def test_connection_that_always_breaks(engine: HubEngine, hub: Hub) -> None:
    listing = listing_of(engine)
    hub.breaks_after = 10
    refused(engine, FetchRequest(listing=listing), "breaks off", "kept", "go on")


def test_wrong_hash(engine: HubEngine, hub: Hub, cache: Path) -> None:
    listing = listing_of(engine)
    hub.wrong_bytes = True
    refused(engine, FetchRequest(listing=listing), "wrong hash", "fetch it again")
    assert not list((cache / parse(REPOSITORY).cache_folder / "blobs").glob("*.incomplete"))
    hub.wrong_bytes = False
    fetch(engine, listing)


def test_longer_than_said(engine: HubEngine, cache: Path, source: Path) -> None:
    listing = listing_of(engine)
    with (source / "model.safetensors").open("ab") as file:
        file.write(b"more")
    refused(engine, FetchRequest(listing=listing), "model.safetensors", "longer than", "not kept")
    assert not list((cache / parse(REPOSITORY).cache_folder / "blobs").glob("*.incomplete"))


# --------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {}, ("not logged in", "hf auth login")),
        (401, {"X-Error-Code": "RepoNotFound"}, ("not logged in", "Check the name")),
        (403, {"X-Error-Code": "GatedRepo"}, ("Ask on its page", "HF_TOKEN")),
        (403, {}, ("403", "right to read")),
        (404, {"X-Error-Code": "RepoNotFound"}, ("has no model", "Check the name")),
        (404, {}, ("has no model",)),
        (429, {"Retry-After": "37"}, ("429", "37 seconds")),
        (429, {}, ("429", "few minutes")),
        (500, {}, ("500", "later")),
        (503, {}, ("503", "later")),
    ],
)
def test_refusals(engine: HubEngine, hub: Hub, status: int, headers: dict[str, str], words: tuple[str, ...]) -> None:
    listing = listing_of(engine)
    hub.status, hub.headers = status, headers
    host = hub.address.removeprefix("http://")
    sentence = refused(engine, LookUpRequest(text=REPOSITORY), *words)
    assert host in sentence or REPOSITORY in sentence
    refused(engine, FetchRequest(listing=listing), *words)


def test_hangs(hub: Hub, cache: Path) -> None:
    listing = listing_of(HubEngine(hub.address, cache, timeout=5.0))
    hub.hangs.set()
    impatient = HubEngine(hub.address, cache, timeout=0.2)
    refused(impatient, LookUpRequest(text=REPOSITORY), "does not answer", "try again")
    refused(impatient, FetchRequest(listing=listing), "does not answer", "try again")


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "127.0.0.1:9", "http://[half", "ftp://127.0.0.1"])
def test_nobody_there(cache: Path, hub: Hub, address: str) -> None:
    engine = HubEngine(address, cache, timeout=5.0)
    refused(engine, LookUpRequest(text=REPOSITORY), "HF_ENDPOINT")


def test_no_hub(engine: HubEngine, hub: Hub) -> None:
    hub.answers_nonsense = True
    refused(engine, LookUpRequest(text=REPOSITORY), "not as a hub", "HF_ENDPOINT")


@pytest.mark.parametrize("info", [[], {}, {"sha": "x"}, {"id": "a", "sha": 5}, {"id": "a", "siblings": [{}]}])
def test_no_listing(engine: HubEngine, hub: Hub, info: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "info", lambda: info)
    refused(engine, LookUpRequest(text=REPOSITORY), "not as a hub")


def test_a_list_that_comes_drop_by_drop_can_be_called_off(engine: HubEngine, hub: Hub) -> None:
    come = threading.Event()

    def drops() -> Iterator[bytes]:
        while True:
            yield b" "
            come.set()
            time.sleep(0.01)

    hub.instead = lambda handler, path: handler.send_pieces(drops(), {})
    with pytest.raises(Cancelled):
        engine.run(LookUpRequest(text=REPOSITORY), come.is_set, silent)


def test_a_header_that_comes_drop_by_drop_can_be_called_off(engine: HubEngine, hub: Hub) -> None:
    come = threading.Event()

    def drops() -> Iterator[bytes]:
        while True:
            yield b"\0"
            come.set()
            time.sleep(0.5)

    def instead(handler: Handler, path: str) -> bool:
        return path.endswith("model.safetensors") and handler.send_pieces(drops(), {})

    hub.instead = instead
    with pytest.raises(Cancelled):
        engine.run(LookUpRequest(text=REPOSITORY), come.is_set, silent)


def test_a_list_without_end_is_not_read_to_its_end(engine: HubEngine, hub: Hub) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        while True:
            yield bytes(1 << 20)
            sent += 1 << 20

    hub.instead = lambda handler, path: handler.send_pieces(pieces(), {})
    refused(engine, LookUpRequest(text=REPOSITORY), "not as a hub does")
    assert sent < 100 << 20


@pytest.mark.short("200")
@pytest.mark.parametrize("status", [200, 500])
def test_what_comes_packed_is_not_unpacked(engine: HubEngine, hub: Hub, status: int) -> None:
    bomb = gzip.compress(bytes(256 << 20))
    assert len(bomb) < 1 << 20

    def instead(handler: Handler, path: str) -> bool:
        handler._send(status, bomb, {"Content-Encoding": "gzip"})
        return True

    hub.instead = instead
    before = peak_memory()
    refused(engine, LookUpRequest(text=REPOSITORY), "not as a hub does" if status == 200 else "fault of its own")
    assert peak_memory() - before < 100 << 20


def test_no_place_to_write_to_is_taken_from_an_answer(engine: HubEngine, hub: Hub, cache: Path) -> None:
    places = {"ETag": '"../../../evil"', "X-Linked-ETag": '"../../../evil"', "X-Repo-Commit": "../../../evil"}

    def instead(handler: Handler, path: str) -> bool:
        if "/resolve/" not in path:
            return False
        content = hub.content(path.rpartition("/")[2])
        handler._send(200, content if handler.command == "GET" else b"", places)
        return True

    hub.instead = instead
    fetch(engine, listing_of(engine))
    assert engine.cache.path_of(parse(REPOSITORY)) is not None
    assert not [path for path in cache.parent.rglob("*evil*") if path.parent != hub.folder]


def test_a_size_that_is_none(engine: HubEngine, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    info = hub.info()
    for sibling in info["siblings"]:
        sibling["size"] = float("inf")
    monkeypatch.setattr(hub, "info", lambda: info)
    refused(engine, LookUpRequest(text=REPOSITORY), "not as a hub does")


@pytest.mark.parametrize(("licence", "shown"), [("a\n<b> " * 9999, ("a <b> " * 99)[:80]), ([5], ""), (None, "")])
def test_a_licence_that_is_no_name(
    engine: HubEngine, hub: Hub, licence: Any, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = {**hub.info(), "cardData": {"license": licence}}
    monkeypatch.setattr(hub, "info", lambda: info)
    assert listing_of(engine).licence == shown


@pytest.mark.parametrize("etag", ["../../evil", "", "0" * 39, None, 5])
def test_hash_that_is_none(engine: HubEngine, hub: Hub, etag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    info = hub.info()
    for sibling in info["siblings"]:
        sibling.pop("lfs", None)
        sibling["blobId"] = etag
    monkeypatch.setattr(hub, "info", lambda: info)
    refused(engine, LookUpRequest(text=REPOSITORY), "not as a hub")


def test_name_that_is_none(engine: HubEngine, hub: Hub) -> None:
    refused(engine, LookUpRequest(text="not a name"), "owner/name")
    assert not hub.asked


def test_disk_without_room(engine: HubEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = listing_of(engine)
    monkeypatch.setattr(hub_cache.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    refused(engine, FetchRequest(listing=listing), "more, and the disk of", "free", "Make room")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_disk_that_fills_up(engine: HubEngine, cache: Path) -> None:
    listing = listing_of(engine)
    weights = next(file for file in listing.files if file.name == "model.safetensors")
    (cache / parse(REPOSITORY).cache_folder / "blobs" / f"{weights.etag}.incomplete").symlink_to("/dev/full")
    refused(engine, FetchRequest(listing=listing), "is full", "Make room")


@pytest.mark.skipif(not Path("/sys/kernel").exists(), reason="no folder in which nobody may write")
def test_cache_that_can_not_be_written(hub: Hub) -> None:
    engine = HubEngine(hub.address, Path("/sys/kernel/hub"), timeout=5.0)
    refused(engine, LookUpRequest(text=REPOSITORY), "/sys/kernel/hub", "cannot be written", "HF_HOME")


# --------------------------------------------------------------------------- offline, and the token


def test_offline_asks_nobody(engine: HubEngine, hub: Hub) -> None:
    refused(engine, LookUpRequest(text=REPOSITORY, offline=True), "offline", "not in")
    listing = listing_of(engine)
    refused(engine, LookUpRequest(text=REPOSITORY, offline=True), "offline", "not in")  # looked up, but not fetched
    refused(engine, FetchRequest(listing=listing, offline=True), "offline")
    ask(engine, FetchRequest(listing=listing))
    before = len(hub.asked)
    found = ask(engine, LookUpRequest(text=REPOSITORY, offline=True))
    assert isinstance(found, HubListing)
    assert (found.missing, found.folder, found.commit) == (0, listing.folder, COMMIT)
    assert found.tensors.shapes == listing.tensors.shapes
    assert len(hub.asked) == before


def test_offline_by_the_environment(engine: HubEngine, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused(engine, LookUpRequest(text=REPOSITORY), "offline")
    assert not hub.asked


def test_token_is_sent_and_never_kept(
    engine: HubEngine,
    hub: Hub,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = "hf_secretsecretsecret"
    monkeypatch.setenv("HF_TOKEN", token)
    caplog.set_level(logging.DEBUG)
    listing = listing_of(engine)
    ask(engine, FetchRequest(listing=listing))
    assert set(hub.authorisations) == {f"Bearer {token}"}
    hub.status = 401
    failure = ask(engine, LookUpRequest(text=REPOSITORY))
    assert isinstance(failure, Failure)
    assert "Traceback" in failure.cause  # for the log
    assert token not in repr(failure)
    assert token not in repr(listing)
    assert token not in caplog.text
    assert not any(token.encode() in path.read_bytes() for path in cache.rglob("*") if path.is_file())


def test_listing_is_plain(engine: HubEngine) -> None:
    listing = listing_of(engine)
    assert json.dumps([file.name for file in listing.files])
    assert "torch" not in {type(shape).__module__ for shape in listing.tensors.shapes.values()}


# --------------------------------------------------------------------------- an answer without end


def trickling(handler: Handler, path: str) -> bool:
    """Of the list of files a byte now and then, for good."""

    def drops() -> Iterator[bytes]:
        while True:
            yield b" "
            time.sleep(0.05)

    return path.startswith("/api/models/") and handler.send_pieces(drops(), {})


def test_an_answer_that_trickles_is_not_waited_for(
    engine: HubEngine, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PATIENCE_SECONDS", 0.5)
    hub.instead = trickling
    refused(engine, LookUpRequest(text=REPOSITORY), "does not answer", "try again")


@pytest.mark.parametrize("does", ["hangs", "trickles"])
def test_an_answer_that_is_waited_for_is_called_off(hub: Hub, cache: Path, does: str) -> None:
    engine = HubEngine(hub.address, cache, timeout=1.5)  # for the thread that is left, which nobody waits for
    if does == "hangs":
        hub.hangs.set()
    else:
        hub.instead = trickling
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    with pytest.raises(Cancelled):
        engine.run(LookUpRequest(text=REPOSITORY), should_stop, silent)
