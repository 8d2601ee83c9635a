"""GGUF files on a hub: listed, described from their header before they are fetched, fetched, and found again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from attention_models import open_checkpoint
from attention_models.files import gguf as gguf_files
from attention_models.files.catalogue import folder_of
from attention_models.files.names import parse
from attention_models.hub.engine import HubEngine
from attention_models.opening.describe import description_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import FetchRequest, HubFetched, HubListing, LookUpRequest
from attention_models.protocol.loading import Described, DescribeRequest
from attention_models.protocol.request import Cancelled, Failure, Request, Result
from tests.models import hub_server
from tests.models.asking import never, silent
from tests.models.gguf_maker import gguf_of
from tests.models.hub_server import COMMIT, REPOSITORY, Hub
from tests.models.tiny import TinyFolder
from tests.real_disks import Disk

SMALL, WHOLE, DEEP = "tiny-Q8_0.gguf", "tiny-F32.gguf", "old/tiny ñ-Q8_0.gguf"
NEXT = "89abcdef0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def made(tiny_folder: TinyFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ggufs")
    (folder / "old").mkdir()
    gguf_of(tiny_folder("llama"), folder / WHOLE)
    gguf_of(tiny_folder("llama"), folder / SMALL, packed=True)
    shutil.copy(folder / SMALL, folder / DEEP)
    return folder


@pytest.fixture
def source(made: Path, tmp_path: Path) -> Path:
    """What lies on the hub: GGUF files of one model, and no other checkpoint."""
    folder = Path(shutil.copytree(made, tmp_path / "on the hub"))
    (folder / "README.md").write_text("# Quantised")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """huggingface_hub's cache, for this test."""
    cache = tmp_path / "cache ñ"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    return cache


@pytest.fixture
def engine(hub: Hub, cache: Path) -> HubEngine:
    return HubEngine(hub.address, timeout=30.0)


def ask(engine: HubEngine, request: Request) -> Result:
    return engine.run(request, never, silent)


def listing_of(engine: HubEngine, file: str = "", offline: bool = False) -> HubListing:
    text = f"{REPOSITORY}:{file}" if file else REPOSITORY
    answer = ask(engine, LookUpRequest(text=text, offline=offline))
    assert isinstance(answer, HubListing), answer
    return answer


def fetch(engine: HubEngine, listing: HubListing) -> str:
    answer = ask(engine, FetchRequest(listing=listing))
    assert isinstance(answer, HubFetched), getattr(answer, "sentence", answer)
    return answer.reference


def refused(engine: HubEngine, request: Request, *words: str) -> None:
    answer = ask(engine, request)
    assert isinstance(answer, Failure), answer
    for word in words:
        assert word in answer.sentence, answer.sentence
    assert answer.sentence.endswith(".")


def described(listing: HubListing) -> Described:
    return description_of(DescribeRequest(reference=listing.reference, listing=listing))


# --------------------------------------------------------------------------- what there is


def test_listed_with_their_sizes_and_nothing_is_fetched(engine: HubEngine, hub: Hub, source: Path, cache: Path) -> None:
    listing = listing_of(engine)
    assert {file.name: file.size for file in listing.ggufs} == {
        name: (source / name).stat().st_size for name in (SMALL, DEEP, WHOLE)
    }
    assert [file.size for file in listing.ggufs] == sorted(file.size for file in listing.ggufs)
    assert (listing.files, listing.gguf, listing.parts, listing.missing) == ((), "", 0, 0)
    assert not any(hub.bytes_sent(name) for name in (SMALL, DEEP, WHOLE))
    assert not cache.exists()


@pytest.mark.parametrize("name", [SMALL, WHOLE, DEEP])
@pytest.mark.parametrize("knows_ranges", [True, False])
def test_described_from_the_header_as_the_file_is(
    engine: HubEngine, hub: Hub, source: Path, name: str, knows_ranges: bool
) -> None:
    hub.knows_ranges = knows_ranges
    listing = listing_of(engine, name)
    size = (source / name).stat().st_size
    assert (listing.reference, listing.gguf) == (f"hf://{REPOSITORY}:{name}", name)
    assert [(file.name, file.size, file.here) for file in listing.files] == [(name, size, 0)]
    assert listing.header == (source / name).read_bytes()[: len(listing.header)]
    assert 0 < len(listing.header) < size // 2
    found, local = described(listing), description_of(DescribeRequest(reference=str(source / name)))
    assert not found.refusal
    assert found.info is not None
    assert local.info is not None
    for field in ("name", "stacks", "parameters", "file_bytes", "context", "vocabulary", "gguf", "family"):
        assert getattr(found.info, field) == getattr(local.info, field), field
    assert found.info.folder == str((Path(listing.folder) / name).parent)
    assert found.weights == local.weights


def test_header_alone_comes_of_a_large_file(engine: HubEngine, hub: Hub, source: Path) -> None:
    with (source / WHOLE).open("ab") as file:
        file.truncate(40 << 20)
    before = hub.sent
    listing_of(engine, WHOLE)
    assert hub.sent - before < 20 << 20  # what the sockets on the way hold


def test_a_file_that_is_no_model_is_refused_before_it_is_fetched(engine: HubEngine, source: Path) -> None:
    (source / SMALL).write_bytes(b"PK" + bytes(5000))
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:{SMALL}"), SMALL, "no GGUF file")
    (source / SMALL).write_bytes(b"GGUF\3\0\0\0" + b"\xff" * 5000)
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:{SMALL}"), SMALL, "damaged")


def test_an_architecture_nobody_knows_is_refused_before_it_is_fetched(
    engine: HubEngine, source: Path, tiny_folder: TinyFolder
) -> None:
    gguf_of(tiny_folder("llama"), source / SMALL, architecture="llamango")
    found = described(listing_of(engine, SMALL))
    assert SMALL in found.refusal
    assert "llamango" in found.refusal


def test_a_full_disk_of_temporary_files_is_said(
    engine: HubEngine, small_disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(small_disk.folder))
    listing = listing_of(engine, SMALL)
    small_disk.fill(leave=4096)
    sentence = described(listing).refusal
    assert sentence.startswith(f"The header of {SMALL} could not be written to {small_disk.folder}")
    assert "the disk is full. Make room" in sentence
    assert small_disk.names() == set()


def test_the_missing_extra_is_said_before_anything_is_fetched(
    engine: HubEngine, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_files, "GGUF", ("gguf", "no_such_package"))
    found = described(listing_of(engine, SMALL))
    assert "no_such_package" in found.refusal
    assert "python -m pip install no_such_package" in found.refusal
    assert len(hub.bytes_sent(SMALL)) == 1  # for its header


# --------------------------------------------------------------------------- split files, and files beside safetensors


def test_split_files_are_counted_and_refused_by_a_sentence(engine: HubEngine, hub: Hub, source: Path) -> None:
    for part in (1, 2, 3):
        (source / f"tiny-BF16-0000{part}-of-00003.gguf").write_bytes(bytes(3000))
    listing = listing_of(engine)
    assert listing.parts == 3
    assert {file.name for file in listing.ggufs} == {SMALL, DEEP, WHOLE}
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:tiny-BF16-00001-of-00003.gguf"), "split", "llama-gguf-split")
    for name in (SMALL, DEEP, WHOLE):
        (source / name).unlink()
    refused(engine, LookUpRequest(text=REPOSITORY), REPOSITORY, "split", "llama-gguf-split")
    assert not any(path.endswith(".gguf") for _, path, _ in hub.asked)


def test_no_such_file(engine: HubEngine) -> None:
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:other.gguf"), "no file other.gguf", f"Look up {REPOSITORY}")


@pytest.mark.parametrize(
    "name", ["../../evil.gguf", "/etc/evil.gguf", "a\\evil.gguf", "<b>evil.gguf", "a\nb.gguf", ".gguf"]
)
def test_names_that_no_file_should_have_are_left_out(
    engine: HubEngine, hub: Hub, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = hub.info()
    info["siblings"].append({"rfilename": name, "size": 10, "blobId": "0" * 40})
    monkeypatch.setattr(hub, "info", lambda: info)
    assert {file.name for file in listing_of(engine).ggufs} == {SMALL, DEEP, WHOLE}


def test_beside_safetensors_they_are_an_alternative(
    engine: HubEngine, source: Path, tiny_folder: TinyFolder, cache: Path
) -> None:
    shutil.copytree(tiny_folder("gpt2"), source, dirs_exist_ok=True)
    listing = listing_of(engine)
    assert {file.name for file in listing.files} >= {"config.json", "model.safetensors"}
    assert {file.name for file in listing.ggufs} == {SMALL, DEEP, WHOLE}
    assert (listing.gguf, listing.safetensors) == ("", (source / "model.safetensors").stat().st_size)
    assert open_checkpoint(fetch(engine, listing)).info.model_type == "gpt2"
    assert open_checkpoint(fetch(engine, listing_of(engine, SMALL))).info.model_type == "llama"
    assert open_checkpoint(f"hf://{REPOSITORY}").info.model_type == "gpt2"
    for file in ("", SMALL):
        assert listing_of(engine, file, offline=True).safetensors == listing.safetensors


@pytest.mark.parametrize("beside", [("config.json",), ("config.json", "pytorch_model.bin")])
def test_where_nothing_else_can_be_opened_they_are_what_there_is(
    engine: HubEngine, source: Path, beside: tuple[str, ...]
) -> None:
    for name in beside:
        (source / name).write_text("{}")
    listing = listing_of(engine)
    assert (listing.files, len(listing.ggufs)) == ((), 3)


# --------------------------------------------------------------------------- fetching, and finding it again


def test_fetched_opened_and_found_offline(engine: HubEngine, hub: Hub, source: Path, cache: Path) -> None:
    labels: list[tuple[str, float | None]] = []
    listing = listing_of(engine, SMALL)
    answer = engine.run(FetchRequest(listing=listing), never, lambda *told: labels.append(told))
    assert isinstance(answer, HubFetched)
    assert answer.reference == f"hf://{REPOSITORY}:{SMALL}"
    assert SMALL in labels[-1][0]
    assert labels[-1][1] == 1.0
    path = folder_of(answer.reference)
    assert path.read_bytes() == (source / SMALL).read_bytes()
    again = listing_of(engine, SMALL)
    assert (again.missing, again.header) == (0, b"")
    assert [file.name for file in listing_of(engine).ggufs if file.here == file.size] == [SMALL]
    before = len(hub.asked)
    offline = listing_of(engine, SMALL, offline=True)
    assert (offline.missing, offline.commit, offline.gguf) == (0, COMMIT, SMALL)
    assert not described(offline).refusal
    whole = listing_of(engine, offline=True)
    assert [file.name for file in whole.ggufs] == [SMALL]
    assert whole.files == ()
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:{WHOLE}", offline=True), WHOLE, "offline", "not in")
    model = open_checkpoint(answer.reference)
    assert (model.info.reference, model.info.name, model.info.gguf) == (answer.reference, "tiny-Q8_0", SMALL)
    assert len(hub.asked) == before
    with pytest.raises(CheckpointError, match=rf"name one of them, as in “hf://{REPOSITORY}:{SMALL}”"):
        open_checkpoint(f"hf://{REPOSITORY}")


def test_of_a_folder_and_of_a_revision(engine: HubEngine, source: Path) -> None:
    reference = fetch(engine, listing_of(engine, DEEP))
    assert folder_of(reference).read_bytes() == (source / DEEP).read_bytes()
    assert open_checkpoint(reference).info.gguf == Path(DEEP).name
    answer = ask(engine, LookUpRequest(text=f"{REPOSITORY}@v1:{DEEP}"))
    assert isinstance(answer, HubListing)
    assert answer.missing == 0
    assert open_checkpoint(fetch(engine, answer)).info.reference == f"hf://{REPOSITORY}@v1:{DEEP}"


def test_what_was_fetched_is_found_after_the_branch_has_moved_on(
    engine: HubEngine, hub: Hub, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = fetch(engine, listing_of(engine, SMALL))
    monkeypatch.setattr(hub_server, "COMMIT", NEXT)
    (source / "README.md").write_text("# Now with a comma")
    listing = listing_of(engine, SMALL)
    assert (listing.commit, listing.missing) == (NEXT, 0)  # under the same hash: nothing has to come again
    assert len(hub.bytes_sent(SMALL)) == 2  # a header, and the file
    fetch(engine, listing_of(engine, WHOLE))  # moves the branch on in the cache
    assert open_checkpoint(reference).info.gguf == SMALL


def test_another_content_under_the_same_name_is_fetched(
    engine: HubEngine, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = fetch(engine, listing_of(engine, SMALL))
    monkeypatch.setattr(hub_server, "COMMIT", NEXT)
    shutil.copy(source / WHOLE, source / SMALL)
    listing = listing_of(engine, SMALL)
    assert listing.missing == listing.size
    assert open_checkpoint(reference).info.gguf == SMALL  # the one before, until the new one has come
    fetch(engine, listing)
    assert folder_of(reference).read_bytes() == (source / WHOLE).read_bytes()


# --------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {}, ("not logged in", "hf auth login")),
        (403, {"X-Error-Code": "GatedRepo"}, ("Ask on its page", "HF_TOKEN")),
        (404, {"X-Error-Code": "RepoNotFound"}, ("has no model",)),
        (429, {"Retry-After": "37"}, ("429", "37 seconds")),
        (503, {}, ("503", "later")),
    ],
)
def test_refusals(engine: HubEngine, hub: Hub, status: int, headers: dict[str, str], words: tuple[str, ...]) -> None:
    listing = listing_of(engine, SMALL)
    hub.status, hub.headers = status, headers
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:{SMALL}"), *words)
    refused(engine, FetchRequest(listing=listing), *words)


def test_half_a_file_wrong_bytes_and_a_broken_header(engine: HubEngine, hub: Hub, source: Path, cache: Path) -> None:
    listing = listing_of(engine, SMALL)
    hub.breaks_after = 10
    refused(engine, FetchRequest(listing=listing), "breaks off", "kept")
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:{WHOLE}"), "breaks off")
    hub.breaks_after, hub.wrong_bytes = None, True
    refused(engine, FetchRequest(listing=listing), "wrong hash", "fetch it again")
    refused(engine, LookUpRequest(text=f"{REPOSITORY}:{WHOLE}"), "no GGUF file")
    hub.wrong_bytes = False
    assert open_checkpoint(fetch(engine, listing)).info.gguf == SMALL
    assert not list((cache / parse(REPOSITORY).cache_folder / "blobs").glob("*.incomplete"))


def test_called_off_and_taken_up_again(engine: HubEngine, hub: Hub, source: Path) -> None:
    listing = listing_of(engine, WHOLE)
    hub.breaks_after = listing.size // 2
    told: list[float | None] = []
    with pytest.raises(Cancelled):
        engine.run(FetchRequest(listing=listing), lambda: bool(told), lambda _, fraction: told.append(fraction))
    hub.breaks_after = None
    again = listing_of(engine, WHOLE)
    assert 0 < again.files[0].here < again.size
    assert again.ggufs[-1].here == again.files[0].here
    reference = fetch(engine, again)
    assert hub.bytes_sent(WHOLE)[-1] == f"bytes={again.files[0].here}-"
    assert folder_of(reference).read_bytes() == (source / WHOLE).read_bytes()


def test_reading_a_header_is_called_off(engine: HubEngine) -> None:
    with pytest.raises(Cancelled):
        engine.run(LookUpRequest(text=f"{REPOSITORY}:{WHOLE}"), lambda: True, silent)
