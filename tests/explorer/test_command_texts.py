"""Several texts on the command line: their weights, a picture, and what does not go together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attention_models as models
from attention_explorer.app import main
from attention_explorer.cli.arguments import parse
from attention_explorer.cli.first_state import first_state
from attention_explorer.session.state import BatchText
from attention_explorer.session.view_options import ViewOptions
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from tests.models import tiny

TEXTS = ["Tom and Anna went to the park.", "A cat", "There was a dog."]


def given(*options: str) -> list[str]:
    return [*(word for text in TEXTS for word in ("--text", text)), *options]


@pytest.mark.parametrize("side", ["right", "left"])
def test_weights_of_each_text_are_those_of_one_run(tmp_path, capsys, side):
    assert main(given("--weights", str(tmp_path / "out.npz"), "--padding", side)) == 0
    assert "The weights of 3 texts are written to" in capsys.readouterr().err
    traces = models.run(models.open_checkpoint("story-gpt"), TEXTS, padding=side)
    for place, (text, trace) in enumerate(zip(TEXTS, traces, strict=True), start=1):
        saved = models.load_weights(tmp_path / f"out-{place}.npz")
        assert saved.text == text
        assert saved.tokens == trace.tokens
        assert saved.meta["input"]["batch"] == {"texts": TEXTS, "padding": side, "shown": place - 1, "targets": []}
        np.testing.assert_array_equal(saved.weights("decoder", 4)[2], trace.weights(("decoder", 4), 2))


def test_a_file_of_lines_is_run_as_texts(tmp_path):
    (tmp_path / "lines.txt").write_text("\ufeff" + "\r\n".join(["", *TEXTS, "  ", ""]), encoding="utf-8")
    assert main(["--texts", str(tmp_path / "lines.txt"), "--weights", str(tmp_path / "a.safetensors")]) == 0
    assert [models.load_weights(tmp_path / f"a-{i}.safetensors").text for i in (1, 2, 3)] == TEXTS


def test_choices_are_read_with_the_same_text(tmp_path, capsys):
    folder = tiny.save("bert_choice", tmp_path / "chooses")
    choices = ["They ran.", "It was a fish."]
    options = ["--checkpoint", str(folder), "--text", TEXTS[0], *(w for c in choices for w in ("--choice", c))]
    assert main([*options, "--weights", str(tmp_path / "c.npz")]) == 0
    traces = models.run(models.open_checkpoint(folder), [(TEXTS[0], choice) for choice in choices])
    for place, (choice, trace) in enumerate(zip(choices, traces, strict=True), start=1):
        saved = models.load_weights(tmp_path / f"c-{place}.npz")
        assert (saved.text, saved.second) == (TEXTS[0], choice)
        np.testing.assert_array_equal(saved.weights("encoder", 2)[1], trace.weights(("encoder", 2), 1))
    state = first_state(parse(options), ViewOptions())
    assert state.document.prompt == Batch.of([(TEXTS[0], choice) for choice in choices])
    with pytest.raises(ValueError, match=r"--choice goes with one --text.*--pair does not go with it"):
        parse([*options, "--pair", "No."])
    with pytest.raises(ValueError, match="--choice goes with one --text"):
        parse(["--choice", "No."])
    assert main(["--checkpoint", "story-bert", *options[2:], "--weights", str(tmp_path / "d.npz")]) == 1
    assert "does not choose between texts" in capsys.readouterr().err


@pytest.mark.full
def test_pairs_and_targets_go_with_their_texts(tmp_path):
    pairs = ["--text", "Tom ran.", "--text", "A cat.", "--pair", "So did Anna, too.", "--pair", "It ran."]
    assert main(["--checkpoint", "story-bert", *pairs, "--weights", str(tmp_path / "p.npz")]) == 0
    saved = models.load_weights(tmp_path / "p-2.npz")
    trace = models.run(
        models.open_checkpoint("story-bert"), [("Tom ran.", "So did Anna, too."), ("A cat.", "It ran.")]
    )[1]
    assert (saved.text, saved.second) == ("A cat.", "It ran.")
    np.testing.assert_array_equal(saved.weights("encoder", 1)[3], trace.weights(("encoder", 1), 3))
    english = ["--checkpoint", "en-es", "--text", "I live here.", "--text", "Good morning."]
    for targets, said in ((["Vivo aquí.", "Buenos días."],) * 2, (["Hola."], ["Hola."] * 2)):
        options = [word for target in targets for word in ("--target", target)]
        assert main([*english, *options, "--weights", str(tmp_path / "t.npz")]) == 0
        found = [models.load_weights(tmp_path / f"t-{i}.npz").meta["input"]["target"] for i in (1, 2)]
        assert found == said


@pytest.mark.full
def test_each_text_that_is_too_long_is_cut_where_one_says_so(tmp_path, capsys):
    long = "Tom and Anna " * 300
    options = ["--text", "A cat", "--text", long, "--text", long, "--weights", str(tmp_path / "out.npz")]
    assert main(options) == 1
    assert "Text 2: This text is" in capsys.readouterr().err
    assert main([*options, "--cut"]) == 0
    saved = [models.load_weights(tmp_path / f"out-{i}.npz") for i in (1, 2, 3)]
    assert [len(one.tokens) for one in saved] == [512] * 3
    assert saved[0].text == "A cat"
    assert saved[1].text == saved[2].text
    assert long.startswith(saved[1].text or "?")


def test_the_window_begins_with_them():
    document = first_state(parse(given("--padding", "left")), ViewOptions()).document
    assert document.prompt == Batch(tuple(TEXTS), "left")
    assert document.after == (BatchText(TEXTS[1]), BatchText(TEXTS[2]))
    one = first_state(parse(["--text", "a", "--pair", "b"]), ViewOptions()).document
    assert one.prompt == Pair("a", "b")


@pytest.mark.full
def test_a_picture_shows_the_first_of_them(tmp_path):
    options = given("--png", str(tmp_path / "a.png"), "--size", "1280x800")
    done = subprocess.run(
        [sys.executable, "-m", "attention_explorer", *options], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--text", "a", "--texts", "b.txt"], "Give one of them"),
        (["--texts", "nowhere.txt"], "nowhere.txt could not be read"),
        (["--text", "a", "--text", "b", "--pair", "c"], "--pair is given 1 time, where there are 2 texts"),
        (
            ["--text", "a", "--text", "b", "--target", "c", "--target", "d", "--target", "e"],
            "--target is given 3 times",
        ),
        (["--text", "a", "--text", "b", "--decode", "3"], "--decode goes with one text, and these are 2"),
        (["--text", "a", "--text", "b", "--chat"], "--chat goes with one text, and these are 2"),
        (["--text", "a", "--padding", "left"], "and there is one text"),
        (["--text", "a"] * 257, "257 texts; 256 are run at once"),
        (["--texts", ""], "--texts is given nothing"),
        (["--text", "a", "--text", "", "--weights", "a.npz"], "Text 2: The input is empty"),
        (
            ["--checkpoint", "recurrent-en-es-bahdanau", "--text", "a", "--text", "b", "--weights", "a.npz"],
            "takes one text at a time",
        ),
    ],
)
def test_what_does_not_go_together_is_one_sentence(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    assert main(options) == 1
    assert words in capsys.readouterr().err
    assert list(Path().glob("a*.npz")) == []
