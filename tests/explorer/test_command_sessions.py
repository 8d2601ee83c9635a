"""Sessions on the command line: saved without a window, and run again to the same weights, bit for bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from attention_explorer import app
from attention_explorer.session import attn, files, short_texts
from attention_explorer.session.kept import KeptState, SessionFile
from attention_explorer.session.state import Document
from attention_models.files.catalogue import WEIGHTS

TEXT = "Tom and Anna went to the park. Anna gave the ball to"


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as found:
        return {name: found[name] for name in found if name != "meta"}


def assert_same(one: Path, other: Path) -> None:
    first, second = arrays(one), arrays(other)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], strict=True)


@pytest.mark.short("--text * --mask *", "--checkpoint en-es --text * --target *")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--text", TEXT),
        ("--text", TEXT, "--mask", "window:3", "--scale", "0.5"),
        ("--text", TEXT, "--dtype", "bfloat16"),
        ("--text", TEXT, "--words"),
        ("--checkpoint", "en-es", "--text", "Good morning."),
        ("--checkpoint", "en-es", "--text", "Good morning.", "--target", "Buenos"),
        ("--checkpoint", "story-next", "--text", "Tom fell.", "--pair", "He cried."),
        ("--checkpoint", "vit-cifar10", "--picture", "chelsea"),
        ("--checkpoint", "dates-luong", "--text", "3 May 2001"),
    ],
    ids=lambda arguments: " ".join(arguments).replace(TEXT, "…"),
)
def test_a_session_gives_the_weights_of_the_run_that_saved_it(tmp_path, capsys, arguments):
    session, first, again = (str(tmp_path / name) for name in ("a.attn", "first.npz", "again.npz"))
    assert app.main([*arguments, "--save", session, "--weights", first]) == 0
    assert app.main([session, "--weights", again]) == 0
    assert capsys.readouterr() == ("", "")
    assert_same(tmp_path / "first.npz", tmp_path / "again.npz")


@pytest.mark.full
def test_what_the_model_writes_comes_back_by_its_seed(tmp_path, capsys):
    session = str(tmp_path / "a.attn")
    assert app.main(["--text", TEXT, "--decode", "8", "--temperature", "0.9", "--seed", "5", "--save", session]) == 0
    written = capsys.readouterr().out
    assert app.main([session, "--decode", "8"]) == 0
    assert capsys.readouterr().out == written
    assert app.main([session, "--decode", "8", "--seed", "6"]) == 0
    assert capsys.readouterr().out != written


def test_options_change_what_a_session_says(tmp_path):
    session, direct, changed = (str(tmp_path / name) for name in ("a.attn", "direct.npz", "changed.npz"))
    assert app.main(["--text", "Another text", "--mask", "window:3", "--save", session]) == 0
    assert app.main([session, "--text", TEXT, "--scale", "0.5", "--weights", changed]) == 0
    assert app.main(["--text", TEXT, "--mask", "window:3", "--scale", "0.5", "--weights", direct]) == 0
    assert_same(tmp_path / "direct.npz", tmp_path / "changed.npz")


def test_a_share_that_a_session_names_is_refused_and_one_that_is_typed_is_not(tmp_path, capsys):
    path, out = tmp_path / "a.attn", str(tmp_path / "a.npz")
    share = f"/{tmp_path}/none"  # on Windows two slashes begin the name of a share
    attn.save(SessionFile(KeptState(Document(checkpoint=share, text=TEXT))), path)
    assert app.main([str(path), "--weights", out]) == 1
    assert capsys.readouterr().err == (
        f"The session names a place on another computer: the checkpoint {share}. Nothing there has been touched. "
        "Open the session in the window, which asks you first, and save it again with copies on this computer.\n"
    )
    assert app.main([str(path), "--checkpoint", share, "--weights", out]) == 1
    assert f"There is no checkpoint called “{share}”" in capsys.readouterr().err
    assert app.main([str(path), "--checkpoint", "story-gpt", "--weights", out]) == 0
    with_it = ["--text", TEXT, "--compare", str(tmp_path / "two.csv"), "--with-session", str(path)]
    assert app.main(with_it) == 1
    assert "Nothing there has been touched." in capsys.readouterr().err
    assert app.main([*with_it, "--with-checkpoint", "story-gpt"]) == 0


def test_a_name_without_its_ending_gets_it(tmp_path, capsys):
    assert app.main(["--text", "Tom", "--save", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().err == f"The session is written to {tmp_path / 'a.attn'}.\n"
    assert attn.load(tmp_path / "a.attn").present.document.text == "Tom"


def test_a_session_of_an_earlier_version_runs(tmp_path):
    older = tmp_path / "older.json"
    older.write_bytes(files.encode(Document(text=TEXT)))
    assert app.main([str(older), "--weights", str(tmp_path / "a.npz")]) == 0
    assert app.main(["--text", TEXT, "--weights", str(tmp_path / "b.npz")]) == 0
    assert_same(tmp_path / "a.npz", tmp_path / "b.npz")


def test_another_checkpoint_is_not_passed_off_as_the_one_that_was_saved(tmp_path, capsys):
    model = Path(shutil.copytree(WEIGHTS / "dates-bottleneck", tmp_path / "mine"))
    session, out = str(tmp_path / "a.attn"), str(tmp_path / "a.npz")
    assert app.main(["--checkpoint", str(model), "--text", "3 May 2001", "--save", session]) == 0
    files_then = attn.load(Path(session)).present.files
    (tmp_path / "elsewhere").mkdir()
    shutil.move(model, tmp_path / "elsewhere" / "other")
    assert app.main([session, "--weights", out]) == 1
    said = capsys.readouterr().err
    assert f"mine (model.safetensors, SHA-256 {files_then['model.safetensors'][:12]}…), which is not at" in said
    assert said.endswith("Say with --checkpoint where the session's own is.\n")
    assert app.main([session, "--checkpoint", str(tmp_path / "elsewhere" / "other"), "--weights", out]) == 0
    config = tmp_path / "elsewhere" / "other" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "later": 1}))
    assert app.main([session, "--checkpoint", str(tmp_path / "elsewhere" / "other"), "--weights", out]) == 1
    assert "is another checkpoint: config.json has other contents." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.attn", "--weights", "a.npz"], "The session no.attn could not be read (No such file or directory)."),
        (["/dev/zero", "--weights", "a.npz"], "(it is a device, not a file)."),
        (["a.attn", "--text", "Tom"], "--text changes a session only without a window"),
        (
            ["--text", "a" * 200_001, "--weights", "a.npz"],
            "--text has 200,001 characters, and the window takes 200,000",
        ),
    ],
)
def test_what_can_not_be_done_is_one_sentence(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert app.main(arguments) == 1
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert list(tmp_path.glob("*.npz")) == []


def test_a_short_text_gives_the_weights_of_what_it_says(tmp_path, capsys):
    session, first, again = (str(tmp_path / name) for name in ("a.attn", "first.npz", "again.npz"))
    assert app.main(["--text", TEXT, "--scale", "0.5", "--save", session, "--weights", first]) == 0
    short = short_texts.encode(attn.load(Path(session)).present)
    assert app.main(["open", short, "--weights", again]) == 0
    assert capsys.readouterr() == ("", "")
    assert_same(tmp_path / "first.npz", tmp_path / "again.npz")


def test_a_damaged_short_text_says_so(tmp_path, capsys):
    assert app.main(["open", "attn1.AAAA", "--weights", str(tmp_path / "w.npz")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "This is no short text that can be opened: a part of it is missing or another. Copy it whole.\n"
    )
