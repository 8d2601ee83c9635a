"""Files whole or not at all, on a disk that is really full and one that can really only be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models import open_checkpoint, run
from models.files.whole_files import not_written, replacing, write_whole
from models.protocol.errors import ExplorerError
from models.views.export import save_weights
from tests.real_disks import Disk

FULL, READ_ONLY = "the disk is full. Make room", "the disk can only be read. Choose another folder."


def test_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a ñ.txt"
    for content in (b"one", b"another"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["a ñ.txt"]


@pytest.mark.parametrize("failure", [OSError("no"), MemoryError(), KeyboardInterrupt()])
def test_what_fails_on_the_way_leaves_the_older_file_and_nothing_else(tmp_path: Path, failure: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"older")

    def half() -> None:
        with replacing(path) as part:
            part.write_bytes(b"half of")
            raise failure

    with pytest.raises(type(failure)):
        half()
    assert path.read_bytes() == b"older"
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "you may not write there. Choose another folder."),
        (OSError(36, "File name too long"), "file name too long. Choose another folder."),
        (OSError("odd"), "odd. Choose another folder."),
    ],
)
def test_refusals(error: OSError, words: str) -> None:
    path = Path("x/a.csv")
    assert not_written("The table", path, error) == f"The table could not be written to {path}: {words}"


def test_on_a_full_disk(small_disk: Disk) -> None:
    path = small_disk.folder / "a"
    path.write_bytes(b"older")
    small_disk.fill(leave=8192)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(path, bytes(20_000))
    assert FULL in not_written("It", path, caught.value)
    assert path.read_bytes() == b"older"
    assert small_disk.names() == {"a"}


def test_on_a_disk_that_can_only_be_read(small_disk: Disk) -> None:
    path = small_disk.folder / "a"
    path.write_bytes(b"older")
    small_disk.forbid_writing()
    with pytest.raises(OSError, match="Read-only") as caught:
        write_whole(path, b"newer")
    assert READ_ONLY in not_written("It", path, caught.value)
    assert path.read_bytes() == b"older"


@pytest.mark.parametrize("room", [0, 4096, 100_000])
def test_weights_on_a_disk_that_fills_up(small_disk: Disk, room: int) -> None:
    trace = run(open_checkpoint("story-gpt"), "Tom and Anna went to the park. Anna gave the ball to her. " * 3)
    path = small_disk.folder / "weights.npz"
    path.write_bytes(b"older")
    small_disk.fill(leave=room)
    with pytest.raises(ExplorerError, match=r"The weights could not be written to .*weights\.npz: the disk is full\."):
        save_weights(trace, path)
    assert path.read_bytes() == b"older"
    assert small_disk.names() == {"weights.npz"}
    small_disk.empty()
    save_weights(trace, path)
    with np.load(path) as written:
        assert len(written["tokens"]) == len(trace.tokens)


def test_weights_where_nothing_can_be_written(small_disk: Disk) -> None:
    trace = run(open_checkpoint("story-gpt"), "Tom")
    small_disk.forbid_writing()
    with pytest.raises(ExplorerError, match=r"the disk can only be read\. Choose another folder\."):
        save_weights(trace, small_disk.folder / "weights.npz")
