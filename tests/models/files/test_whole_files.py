"""Files whole or not at all, on a disk that is really full and one that can really only be read."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attention_models import open_checkpoint, run
from attention_models.files.safe_files import UNFINISHED, not_written, open_regular, replacing, write_whole
from attention_models.protocol.errors import ExplorerError
from attention_models.views.export import save_weights
from tests.real_disks import Disk

ROOT = Path(__file__).resolve().parents[3]

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
    assert not list(tmp_path.glob(f".*{UNFINISHED}"))


def test_what_else_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"a person's own")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a.part").read_bytes() == b"a person's own"


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "real", tmp_path / "link"
    link.symlink_to(real)
    for content in (b"new where nothing was", b"newer"):
        write_whole(link, content)
        assert link.is_symlink()
        assert real.read_bytes() == content
    assert [entry.name for entry in (tmp_path / "far").iterdir()] == ["real"]


def test_a_link_that_leads_to_itself_is_a_sentence(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OSError, match=r"loop|levels") as caught:
        write_whole(link, b"")
    assert "that is a link that leads to itself" in not_written("It", link, caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_the_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"older")
    path.chmod(mode)
    write_whole(path, b"newer")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    write_whole(tmp_path / "a", b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    pipe, place = tmp_path / "pipe", tmp_path / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        for path, words in (
            (pipe, "it is a pipe, not a file. Choose another name."),
            (place, "it is a socket, not a file. Choose another name."),
            (Path("/dev/null"), "it is a device, not a file. Choose another name."),
            (tmp_path, "a folder has that name. Choose another name."),
        ):
            before = path.stat()
            with pytest.raises(OSError, match=r"not a file|directory") as caught:
                write_whole(path, b"content")
            assert not_written("It", path, caught.value) == f"It could not be written to {path}: {words}"
            assert path.stat() == before
            with pytest.raises(OSError, match=r"not a file|directory"):
                open_regular(path)


WRITER = """
import sys
from pathlib import Path
from attention_models.files.safe_files import write_whole
path, letter = Path(sys.argv[1]), sys.argv[2].encode()
for _ in range(100):
    write_whole(path, letter * 300_000)
"""


def test_of_two_programs_that_write_one_file_it_always_holds_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    write_whole(path, b"a" * 300_000)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, letter], cwd=ROOT, stderr=subprocess.PIPE)
        for letter in "ab"
    ]
    reads = set()
    while any(writer.poll() is None for writer in writers):
        content = path.read_bytes()
        reads.add((len(content), bytes(set(content))))
    for writer in writers:
        _, said = writer.communicate()
        assert (writer.returncode, said) == (0, b"")
    assert reads <= {(300_000, b"a"), (300_000, b"b")}
    assert len(reads) == 2
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["shared"]


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


HOLDS = """
import sys
from pathlib import Path
from attention_models.files.safe_files import replacing
with replacing(Path(sys.argv[1])) as part:
    part.write_bytes(b"half of")
    print(part, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(os.name != "posix", reason="elsewhere it cannot be told who holds a file")
def test_what_a_kill_left_behind_goes_when_the_file_is_written_next(tmp_path: Path) -> None:
    path = tmp_path / "a"
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDS, path], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    parts = [Path(program.stdout.readline().strip()) for program in programs if program.stdout is not None]
    for part in parts:
        os.utime(part, (1e9, 1e9))  # it takes long over it
    foreign = [tmp_path / name for name in (f".mine{UNFINISHED}", f"x.{'0' * 16}{UNFINISHED}", f".{'0' * 16}.part")]
    for other in foreign:
        other.write_bytes(b"a person's own")
        os.utime(other, (1e9, 1e9))
    (tmp_path / f".{'1' * 16}{UNFINISHED}").symlink_to(foreign[0])
    programs[0].kill()
    programs[0].wait()
    write_whole(path, b"new")
    assert not parts[0].exists()
    assert parts[1].exists()  # it is still being written
    assert programs[1].communicate("\n")[1] is None
    assert path.read_bytes() == b"half of"
    assert not parts[1].exists()
    assert all(other.exists() for other in foreign)
    for program in programs:
        for pipe in (program.stdin, program.stdout):
            if pipe is not None:
                pipe.close()
