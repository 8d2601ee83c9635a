"""What a session says of its picture is held against the picture that is there."""

from __future__ import annotations

import builtins
import hashlib
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attention_explorer.session.kept import Kept, KeptState, SessionFile, WhatWasRead
from attention_explorer.session.session_check import checked, with_files
from attention_explorer.session.state import Compared, CorpusChoice, Document
from attention_models.protocol.request import never


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "mein bild ñ.png"
    path.write_bytes(b"one")
    return path


def saved(picture: str) -> KeptState:
    """What a session file would say of it."""
    document = Document(checkpoint="/gone", picture=picture)
    return with_files(SessionFile(KeptState(document)), never).present


def test_its_hash_is_that_of_the_file(picture: Path) -> None:
    assert saved(str(picture)).picture_hash == hashlib.sha256(b"one").hexdigest()


@pytest.mark.parametrize(
    "reference", ["", "sample:chelsea", "/gone/x.png", "\x00", "~nobody-at-all/x.png", "/dev/zero"]
)
def test_what_is_no_file_of_a_persons_own_has_none(reference: str) -> None:
    assert saved(reference).picture_hash == ""
    assert checked(saved(reference), None, never).picture == ""


def test_the_text_half_of_a_checkpoint_is_kept_and_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    reference = f"{folder}#text"
    state = with_files(SessionFile(KeptState(Document(checkpoint=reference))), never).present
    assert state.files == {"model.safetensors": hashlib.sha256(b"weights").hexdigest()}
    assert checked(state, None, never).state.document.checkpoint == reference
    (folder / "model.safetensors").write_bytes(b"others!")
    assert checked(state, None, never).found == "changed"
    (folder / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "beside").mkdir()
    folder.rename(tmp_path / "beside" / "clip")  # moved together with the session's file
    found = checked(state, tmp_path / "beside", never)
    assert found.state.document.checkpoint == str(tmp_path / "beside" / "clip#text")


def test_one_that_is_the_same_is_not_spoken_of(picture: Path) -> None:
    assert checked(saved(str(picture)), None, never).warning == ""


def test_one_that_has_changed_is_said_by_name_and_hash(picture: Path) -> None:
    state = saved(str(picture))
    picture.write_bytes(b"another")
    found = checked(state, None, never)
    before, now = (hashlib.sha256(content).hexdigest()[:12] for content in (b"one", b"another"))
    assert found.state == state
    assert found.warning == (
        f"The picture mein bild ñ.png has other contents than when the session was saved (SHA-256 {now}…, and it was "
        f"{before}…). The figures are those of the picture that is there now."
    )


def test_one_that_was_moved_with_the_session_is_found(picture: Path, tmp_path: Path) -> None:
    state, elsewhere = saved(str(picture)), tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = Path(shutil.move(picture, elsewhere / picture.name))
    found = checked(state, elsewhere, never)
    assert (found.state.document.picture, found.warning) == (str(moved), "")
    moved.write_bytes(b"another")
    assert checked(state, elsewhere, never).state.document.picture == str(picture)


def test_one_that_has_gone_is_said_where_it_is_read(picture: Path) -> None:
    state = saved(str(picture))
    picture.unlink()
    assert checked(state, picture.parent, never).warning == ""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "b"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def with_b(checkpoint: Path, picture: str = "") -> KeptState:
    """What a session file would say of a state with this B."""
    document = Document(
        checkpoint="story-gpt", compared=Compared(Document(checkpoint=str(checkpoint), picture=picture))
    )
    return with_files(SessionFile(KeptState(document)), never).present


def test_a_b_that_is_the_same_is_not_spoken_of(checkpoint: Path, picture: Path) -> None:
    state = with_b(checkpoint, str(picture))
    assert state.b is not None
    assert state.b.files["model.safetensors"] == hashlib.sha256(b"weights").hexdigest()
    assert state.b.picture_hash == hashlib.sha256(b"one").hexdigest()
    found = checked(state, None, never)
    assert (found.state, found.found, found.warning) == (state, "same", "")


def test_a_checkpoint_of_b_that_has_gone_is_said_by_name_and_a_is_untouched(checkpoint: Path) -> None:
    state = with_b(checkpoint)
    shutil.rmtree(checkpoint)
    found = checked(state, None, never)
    assert (found.state, found.found) == (state, "same")
    assert found.warning == f"The checkpoint of B, b, is not at {checkpoint}: it is not there."


def test_a_checkpoint_of_b_that_has_changed_is_said_by_name(checkpoint: Path, picture: Path) -> None:
    state = with_b(checkpoint, str(picture))
    (checkpoint / "model.safetensors").write_bytes(b"others")
    picture.write_bytes(b"another")
    found = checked(state, None, never)
    assert (found.state, found.found) == (state, "same")
    assert found.warning.startswith("The checkpoint of B, b, is another than when the session was saved: ")
    assert "model.safetensors" in found.warning
    assert "The picture mein bild ñ.png has other contents" in found.warning


def test_a_checkpoint_of_b_that_was_moved_with_the_session_is_found(checkpoint: Path, tmp_path: Path) -> None:
    state, elsewhere = with_b(checkpoint), tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = Path(shutil.move(checkpoint, elsewhere / checkpoint.name))
    found = checked(state, elsewhere, never)
    assert found.warning == ""
    assert found.state.document.compared is not None
    assert found.state.document.compared.document.checkpoint == str(moved)


# --------------------------------------------------------------------------- steps of a training


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A folder of a training with two snapshots; of its files only their contents are looked at."""
    folder = tmp_path / "my-model"
    (folder / "snapshots").mkdir(parents=True)
    for name in ("config.json", "training.json", "model.safetensors", "explorer.json"):
        (folder / name).write_text("{}")
    for step in (20, 40):
        (folder / "snapshots" / f"step-{step:08}.safetensors").write_bytes(bytes([step]))
    return folder


def of_step(folder: Path, step: int) -> KeptState:
    state = KeptState(Document(checkpoint=f"{folder}@{step}"))
    return with_files(SessionFile(state), never).present


def test_a_step_of_a_training_is_known_by_its_own_file(training: Path) -> None:
    state = of_step(training, 20)
    digest = hashlib.sha256(bytes([20])).hexdigest()
    assert dict(state.files) == {
        "config.json": hashlib.sha256(b"{}").hexdigest(),
        "step-00000020.safetensors": digest,
    }
    assert checked(state, None, never).found == "same"
    for name in ("training.json", "explorer.json", "model.safetensors"):  # the training went on
        (training / name).write_text("{ }")
    (training / "snapshots" / "step-00000060.safetensors").write_bytes(b"60")
    assert checked(state, None, never).found == "same"
    (training / "snapshots" / "step-00000020.safetensors").write_bytes(b"x")
    found = checked(state, None, never)
    assert (found.found, found.why) == ("changed", "step-00000020.safetensors has other contents")


def test_a_training_that_was_moved_with_the_session_is_found_at_its_step(training: Path, tmp_path: Path) -> None:
    state, elsewhere = of_step(training, 40), tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = shutil.move(training, elsewhere / training.name)
    assert checked(state, None, never).found == "missing"
    found = checked(state, elsewhere, never)
    assert (found.found, found.state.document.checkpoint) == ("same", f"{moved}@40")


SHARE = "//server/share/model"


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that Python asks the system about or opens."""
    paths: list[str] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(path: Any = ".", *args: Any, **named: Any) -> Any:
            paths.append(os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else "")
            return function(path, *args, **named)

        return noted

    for module, names in (
        (os, ("stat", "lstat", "open", "scandir", "listdir", "readlink", "access")),
        (os.path, ("exists", "isfile", "isdir", "realpath")),
        (builtins, ("open",)),
        (io, ("open",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, noting(getattr(module, name)))
    return paths


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Document(checkpoint=SHARE), f"the checkpoint {SHARE}"),
        (Document(picture=f"{SHARE}.png"), f"the picture {SHARE}.png"),
        (Document(corpus=CorpusChoice(f"{SHARE}.txt")), f"the file of texts {SHARE}.txt"),
        (Document(probe=f"{SHARE}.conllu"), f"the file that roles are found on {SHARE}.conllu"),
        (Document(compared=Compared(Document(checkpoint=SHARE))), f"the checkpoint of B {SHARE}"),
        (Document(compared=Compared(Document(picture=SHARE))), f"the picture of B {SHARE}"),
        (Document(checkpoint=SHARE, picture="file:///x"), f"the checkpoint {SHARE}, the picture file:///x"),
    ],
)
def test_a_share_that_a_session_names_is_asked_about_and_not_touched(
    tmp_path: Path, touched: list[str], document: Document, said: str
) -> None:
    known = {"model.safetensors": "0" * 64}
    read = WhatWasRead(known, "0" * 64)
    found = checked(KeptState(document, files=known, picture_hash="0" * 64, b=read), tmp_path, never)
    assert found.found == "elsewhere"
    assert found.question == f"The session names a place on another computer: {said}. Nothing there has been touched."
    assert touched == []


def test_a_share_that_the_person_has_agreed_to_is_looked_at(touched: list[str]) -> None:
    state = KeptState(Document(checkpoint=SHARE), files={"model.safetensors": "0" * 64})
    assert checked(state, None, never, (SHARE,)).found == "missing"
    assert any(path.startswith("//server") for path in touched)


def test_to_write_a_session_touches_no_share_of_a_state_that_was_never_opened(touched: list[str]) -> None:
    kept = Kept(states=(KeptState(Document(checkpoint=SHARE, picture=f"{SHARE}.png"), name="one"),))
    with_files(SessionFile(KeptState(Document(compared=Compared(Document(checkpoint=SHARE)))), kept), never)
    assert not [path for path in touched if path.startswith("//server")]
