"""The command line: what it prints and writes, and what it says when it cannot."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtGui import QImage
from safetensors.torch import load_file, save_file

import attention_models as models
from attention_explorer import __version__
from attention_explorer.app import main
from attention_explorer.recovery.log import Log
from attention_models import decode, load_weights, open_checkpoint
from attention_models.files.catalogue import folder_of
from tests.models.talking import save_talking

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """`python -m attention_explorer` in `folder`, as a person runs it who has installed it."""
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "attention_explorer", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


# --------------------------------------------------------------------------- without a model


def test_help_explains_every_option(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    for option in ("--checkpoint", "--text", "--theme", "--png", "--size", "--weights", "--version"):
        assert option in text
    for option in (
        "--chat",
        "--target",
        "--decode",
        "--strategy",
        "--beams",
        "--length-penalty",
        "--temperature",
        "--seed",
    ):
        assert option in text


def test_an_option_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--telepathy"])
    assert ended.value.code == 2
    assert "--telepathy" in capsys.readouterr().err


def test_version_from_the_source_tree():
    done = run("--version")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, f"attention-explorer {__version__}", "")


@pytest.mark.short("models.py")
@pytest.mark.parametrize("theirs", ["models/__init__.py", "models.py", "explorer.toml"])
def test_a_folder_with_models_of_its_own_is_not_mistaken_for_ours(tmp_path, theirs):
    path = tmp_path / theirs
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise RuntimeError('not ours')")
    done = run("--version", folder=tmp_path)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, f"attention-explorer {__version__}", "")


@pytest.mark.full
def test_a_folder_with_models_of_its_own_does_not_stop_the_engine(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise RuntimeError('not ours')")
    (tmp_path / "requests.py").write_text("raise RuntimeError('not ours')")
    done = run("--weights", "weights.npz", "--text", "Tom", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(tmp_path / "weights.npz") as written:
        assert written["tokens"].tolist() == ["<|endoftext|>", "Tom"]


@pytest.mark.parametrize("folder", ["explorer", "models"])
def test_it_runs_in_a_folder_of_the_source_that_it_takes_off_the_path(folder):
    done = run("--text", "Once upon a", "--decode", "2", folder=ROOT / folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, " time,\n", "")


@pytest.mark.full
def test_folders_named_as_packages_are_not_taken_for_them(tmp_path):
    for name in ("gguf", "peft", "triton", "scipy", "torchvision", "kernels", "sentencepiece"):
        (tmp_path / name).mkdir()
    done = run("--text", "Once upon a", "--decode", "2", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, " time,\n", "")


@pytest.mark.short("no checkpoint", "no text", "too long")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--png", "a.png", "--size", "huge"], "“huge” is no size"),
        (["--png", "a.png", "--size", "100x100"], "960x600 at least"),
        (["--png", "missing/a.png"], "There is no folder missing"),
        (["--weights", "a.npz", "--checkpoint", "no-such-thing"], "There is no checkpoint called “no-such-thing”"),
        (["--weights", "a.npz", "--checkpoint", "~nobody-of-that-name/x"], "There is no checkpoint called"),
        (["--weights", "a.npz", "--checkpoint", "x" * 5000], "There is no checkpoint called"),
        (["--weights", "a.npz", "--text", ""], "The text is empty"),
        (["--png", "a.png", "--text", ""], "The text is empty"),
        (["--weights", "a.npz", "--text", "the " * 600], "512"),
    ],
    ids=[
        "size",
        "too small",
        "no folder",
        "no checkpoint",
        "nobody's home",
        "long name",
        "no text",
        "no text to draw",
        "too long",
    ],
)
def test_what_can_not_be_done_is_one_sentence_and_exit_code_1(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""
    assert "Traceback" not in err
    assert list(tmp_path.glob("a.*")) == []


# --------------------------------------------------------------------------- weights


def test_weights_between_words_where_one_says_so(tmp_path, capsys):
    for arguments in (["--weights", str(tmp_path / "a.npz")], ["--weights", str(tmp_path / "b.npz"), "--decode", "1"]):
        assert main([*arguments, "--words", "--text", "unbelievably mischievous"]) == 0
    capsys.readouterr()
    saved, longer = (models.load_weights(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert saved.by_word
    assert longer.by_word
    count = sum(not token.continues for token in saved.tokens)
    assert saved.sites["decoder.0"] == (8, count, count)
    assert count < len(saved.tokens)
    assert main(["--words"]) == 1
    assert "--words goes with" in capsys.readouterr().err


@pytest.mark.short("story-gpt")
@pytest.mark.parametrize("checkpoint", ["story-gpt", "story-bert"])
def test_weights_are_those_of_the_trace(tmp_path, checkpoint):
    path = tmp_path / "weights.npz"
    assert main(["--weights", str(path.with_suffix("")), "--checkpoint", checkpoint]) == 0
    model = models.open_checkpoint(checkpoint)
    trace = models.run(model, model.info.example)
    with np.load(path) as written:
        names = {f"{site.stack}.{site.layer}" for site in trace.sites}
        assert set(written) == {"meta", "tokens", *names}
        assert written["tokens"].tolist() == [token.piece for token in trace.tokens]
        for site in trace.sites:
            array = written[f"{site.stack}.{site.layer}"]
            assert array.dtype == np.float32
            assert array.shape == (site.heads, len(trace.tokens), len(trace.tokens))
            for head in range(site.heads):
                np.testing.assert_array_equal(array[head], trace.weights(site, head))
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["weights.npz"]


@pytest.mark.short("arguments0-*")
@pytest.mark.parametrize(
    ("arguments", "picture"), [([], "sample:chelsea"), (["--picture", "sample:coffee"], "sample:coffee")]
)
def test_weights_of_a_picture(tmp_path, arguments, picture):
    path = tmp_path / "weights.npz"
    assert main(["--weights", str(path), "--checkpoint", "vit-cifar10", *arguments]) == 0
    trace = models.run(models.open_checkpoint("vit-cifar10"), picture)
    with np.load(path) as written:
        assert written["tokens"].tolist()[:2] == ["CLS", "r1 c1"]
        np.testing.assert_array_equal(written["encoder.4"][2], trace.weights(("encoder", 4), 2))


def test_a_picture_that_is_none_is_a_sentence(tmp_path, capsys):
    arguments = ["--weights", str(tmp_path / "a"), "--checkpoint", "vit-cifar10", "--picture", "/nowhere.png"]
    assert main(arguments) == 1
    assert "There is no picture /nowhere.png" in capsys.readouterr().err


def test_weights_that_can_not_be_written_leave_nothing_behind(tmp_path, capsys):
    (tmp_path / "taken.npz").mkdir()
    assert main(["--weights", str(tmp_path / "taken.npz"), "--text", "Tom"]) == 1
    assert f"The weights could not be written to {tmp_path / 'taken.npz'}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "taken.npz"]
    assert main(["--weights", str(tmp_path / "missing" / "a.npz"), "--text", "Tom"]) == 1


@pytest.mark.full
def test_what_is_written_without_a_window_and_a_full_disk(small_disk, capsys):
    weights, picture = small_disk.folder / "a.npz", small_disk.folder / "a.png"
    for path in (weights, picture):
        path.write_bytes(b"older")
    small_disk.fill(leave=20_000)
    assert main(["--weights", str(weights), "--text", "Tom and Anna went to the park. " * 9]) == 1
    why = "the disk is full. Make room, or choose another folder."
    assert capsys.readouterr().err == f"The weights could not be written to {weights}: {why}\n"
    done = run("--png", str(picture), "--text", "Tom")
    assert (done.returncode, done.stderr) == (1, f"The picture could not be written to {picture}: {why}\n")
    assert {path.read_bytes() for path in (weights, picture)} == {b"older"}
    assert small_disk.names() == {"a.npz", "a.png"}


def test_a_log_on_a_full_disk_is_silent(small_disk, capfd):
    handler = Log(small_disk.folder / "log.txt", maxBytes=10_000, backupCount=1)
    small_disk.fill()
    for size in (10, 5_000, 20_000):
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "y" * size, None, None))
    assert capfd.readouterr() == ("", "")
    small_disk.empty()
    handler.close()


# --------------------------------------------------------------------------- pictures


@pytest.mark.full
def test_a_picture_of_story_bert_with_odd_bytes_in_the_text(tmp_path):
    path = tmp_path / "bert.png"
    done = run(
        "--png",
        str(path),
        "--checkpoint",
        "story-bert",
        "--text",
        os.fsdecode("Tom\r\nwent home 😀".encode() + b"\xff"),
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    image = QImage(str(path))
    assert (image.width(), image.height()) == (1440, 900)


@pytest.mark.full
def test_no_picture_of_a_model_that_does_not_take_what_it_was_given(tmp_path):
    done = run("--png", str(tmp_path / "a.png"), "--checkpoint", "vit-quickdraw", "--text", "Tom")
    assert (done.returncode, done.stdout) == (1, "")
    assert "vit-quickdraw looks at pictures and reads no text" in done.stderr
    assert list(tmp_path.glob("*.png")) == []


@pytest.mark.full
def test_a_picture_that_can_not_be_taken_says_why():
    done = run("--png", "a.png", "--checkpoint", str(ROOT / "resources"))
    assert done.returncode == 1
    assert "resources has no config.json" in done.stderr
    assert not (ROOT / "a.png").exists()


# --------------------------------------------------------------------------- text


@pytest.fixture(scope="module")
def translator() -> models.Model:
    return models.open_checkpoint("en-es")


def generated(model: models.Model, text: str, **settings: Any) -> str:
    """What transformers' own `generate` writes."""
    inputs = model.tokenizer(text, return_tensors="pt")
    generate: Any = model.module.generate
    ids = generate(inputs["input_ids"], attention_mask=inputs["attention_mask"], **settings)
    written: str = model.tokenizer.decode(ids[0], skip_special_tokens=True)
    return written


@pytest.mark.short("options0-*-Where*")
@pytest.mark.parametrize("text", ["The black cat is sleeping on the table.", "Where do you live?"])
@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ((), {"num_beams": 1}),
        (("--beams", "4"), {"num_beams": 4}),
        (("--beams", "2", "--length-penalty", "2"), {"num_beams": 2, "length_penalty": 2.0}),
        (("--beams", "1"), {"num_beams": 1}),
        (("--temperature", "0"), {"num_beams": 1}),
    ],
)
def test_decode_prints_what_generate_writes_and_nothing_else(capsys, translator, text, options, settings):
    assert main(["--checkpoint", "en-es", "--text", text, "--decode", "40", *options]) == 0
    out, err = capsys.readouterr()
    assert out == generated(translator, text, max_new_tokens=40, do_sample=False, **settings) + "\n"
    assert err == ""


@pytest.mark.full
def test_decode_goes_on_with_a_text_and_draws_by_the_seed(capsys):
    arguments = ["--text", "Once upon a time", "--decode", "8", "--top-p", "0.9"]
    outs = []
    for seed in ("1", "1", "2"):
        assert main([*arguments, "--seed", seed]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] != outs[2]
    assert "Once upon a time" not in outs[0]


@pytest.mark.short("arguments0-*", "arguments2-*", "arguments3-*")
@pytest.mark.parametrize(
    ("arguments", "written", "said"),
    [
        (["en-es", "--text", "Good morning.", "--decode", "9"], "Buenos días.", ""),
        (["en-es", "--text", "Good morning.", "--decode", "2"], "Buenos", "en-es has not ended the text: all 2 tokens"),
        (
            ["en-es", "--text", "Good morning.", "--decode", "2", "--beams", "2"],
            "Buenos",
            "en-es has not ended the text",
        ),
        (
            ["en-es", "--text", "Guten Morgen, wie geht es dir?", "--decode", "40"],
            "",
            "This looks like German; en-es reads",
        ),
        (["story-gpt", "--text", "Once upon a", "--decode", "2"], " time,", ""),
        (
            ["story-gpt", "--text", "park " * 508, "--decode", "9"],
            "",
            "The context is full: story-gpt takes 512 tokens",
        ),
        (["story-bert", "--text", "Tom [MASK] to the [MASK].", "--decode", "9"], "Tom went to the station.", ""),
    ],
)
def test_what_is_to_be_said_of_the_text_goes_to_standard_error(capsys, arguments, written, said):
    assert main(["--checkpoint", *arguments]) == 0
    out, err = capsys.readouterr()
    assert out == f"{written}\n" or (not written and "nonsense" not in out and "context" not in out)
    assert err.startswith(said)
    assert bool(err) == bool(said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--beams", "4"], "--beams says how to write, and --decode is missing"),
        (["--strategy", "greedy"], "--strategy says how to write, and --decode is missing"),
        (["--decode", "0"], "--decode 0 would write nothing"),
        (["--decode", "5", "--beams", "99"], "A beam search of width 99 is not offered"),
        (["--decode", "5", "--top-p", "2"], "top-p 2.0 is no share"),
        (["--decode", "5", "--top-k", "0"], "top-k 0 keeps no token"),
        (["--decode", "5", "--temperature", "-1"], "A temperature of -1.0 makes no probabilities"),
        (
            ["--decode", "5", "--strategy", "greedy", "--beams", "4"],
            "--beams changes nothing with the strategy “greedy”",
        ),
        (["--decode", "5", "--beams", "4", "--seed", "1"], "--seed changes nothing with the strategy “beam”"),
        (["--decode", "5", "--target", "El"], "Give one of them"),
        (["--decode", "5", "--checkpoint", "no-such-thing"], "There is no checkpoint called “no-such-thing”"),
        (
            ["--decode", "5", "--checkpoint", "story-bert", "--text", "No mask."],
            "There is no [MASK] to fill",
        ),
        (["--decode", "5", "--checkpoint", "story-bert", "--beams", "2"], "A beam search writes from left to right"),
        (["--decode", "5", "--checkpoint", "vit-quickdraw"], "vit-quickdraw writes nothing"),
        (["--decode", "5", "--checkpoint", "en-es", "--text", "  "], "The input is empty"),
        (["--decode", "5", "--text", ""], "The text is empty"),
    ],
)
def test_text_that_can_not_be_written_is_one_sentence_and_exit_code_1(capsys, arguments, words):
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.short("*-way0")
@pytest.mark.parametrize("way", [["--weights", "a.npz"], ["--decode", "3"]])
@pytest.mark.parametrize(
    ("checkpoint", "given", "words"),
    [
        ("story-gpt", ["--picture", "sample:coffee"], "story-gpt reads text. Leave --picture out"),
        ("story-gpt", ["--target", "Tom"], "Leave --target out"),
        ("story-gpt", ["--pair", "Tom"], "story-gpt reads no pairs of texts. Leave --pair out."),
        ("story-bert", ["--pair", "Tom", "--chat"], "Give one of them."),
        ("vit-quickdraw", ["--text", "Tom"], "vit-quickdraw looks at pictures and reads no text"),
        ("vit-quickdraw", ["--chat"], "vit-quickdraw looks at pictures and reads no text"),
    ],
)
def test_what_the_model_does_not_take_is_not_passed_over(tmp_path, monkeypatch, capsys, way, checkpoint, given, words):
    if "--target" in given and "--decode" in way:
        words = "Give one of them"
    monkeypatch.chdir(tmp_path)
    assert main(["--checkpoint", checkpoint, *given, *way]) == 1
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""
    assert list(tmp_path.glob("a.*")) == []


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_what_is_written_is_among_the_weights(tmp_path, capsys, ending):
    path = tmp_path / f"weights.{ending}"
    assert main(["--text", "Once upon a time", "--decode", "5", "--weights", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    saved = models.load_weights(path)
    model = open_checkpoint("story-gpt")
    *_, last = decode(model, "Once upon a time", 5)
    assert out == f"{last.text}\n"
    assert saved.meta["generated"]["ids"] == list(last.ids) == list(saved.ids[-5:])
    assert saved.text == f"Once upon a time{last.text}"
    trace = models.run(model, list(saved.ids))
    np.testing.assert_array_equal(saved.weights("decoder", 3)[2], trace.weights(("decoder", 3), 2))


def test_an_ending_typed_wrongly_is_mended_or_a_sentence(tmp_path, capsys):
    assert main(["--text", "Tom", "--weights", str(tmp_path / "out.np")]) == 0
    assert f"The weights are written to {tmp_path / 'out.npz'}." in capsys.readouterr().err
    assert models.load_weights(tmp_path / "out.npz").text == "Tom"
    assert main(["--text", "Tom", "--weights", str(tmp_path / "out.csv")]) == 1
    assert "not as “.csv”" in capsys.readouterr().err
    assert [path.name for path in tmp_path.glob("out*")] == ["out.npz"]


@pytest.mark.full
@pytest.mark.parametrize("way", [["--weights", "a.npz"], ["--png", "a.png"], ["--decode", "3"]])
def test_a_run_that_overflows_is_a_sentence_and_exit_code_1(tmp_path, way):
    done = run("--text", "Tom went", "--scale", "1e39", *way, folder=tmp_path)
    assert done.returncode == 1
    words = "attention scores of decoder layer 0, head 0, are too large for float32. Choose a smaller scale."
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.glob("a.*")) == []


def test_a_target_decides_the_weights(tmp_path):
    path = tmp_path / "weights.npz"
    arguments = ["--checkpoint", "en-es", "--text", "The cat.", "--target", "El gato"]
    assert main([*arguments, "--weights", str(path)]) == 0
    with np.load(path) as written:
        assert written["cross.2"].shape == (8, 3, 4)  # ⟨start⟩ El gato; The cat . ⟨end⟩


def test_chat_lets_a_model_answer(capsys, tmp_path):
    folder = save_talking("chatml", tmp_path / "talks")
    text = "Tom went to the park."
    assert main(["--checkpoint", str(folder), "--chat", "--text", text, "--decode", "3"]) == 0
    steps = list(decode(open_checkpoint(folder), [{"role": "user", "content": text}], steps=3))
    assert capsys.readouterr().out == f"{steps[-1].text}\n"
    assert main(["--chat", "--text", text, "--decode", "3"]) == 1
    assert "story-gpt has no chat template" in capsys.readouterr().err


# --------------------------------------------------------------------------- small ones


def test_a_sample_is_called_as_in_the_menu(tmp_path):
    for name in ("chelsea", "sample:chelsea"):
        path = tmp_path / f"{name.removeprefix('sample:')}-{len(name)}.npz"
        assert main(["--checkpoint", "vit-cifar10", "--picture", name, "--weights", str(path)]) == 0
        given = models.load_weights(path).meta["input"]
        assert given["picture"] == "sample:chelsea"


@pytest.mark.full
def test_what_is_too_long_is_cut_where_one_says_so(tmp_path, capsys):
    text, path = "the " * 600, tmp_path / "a.npz"
    assert main(["--text", text, "--weights", str(path)]) == 1
    assert "--cut keeps what fits." in capsys.readouterr().err
    assert main(["--text", text, "--weights", str(path), "--cut"]) == 0
    saved = models.load_weights(path)
    assert len(saved.tokens) == 512
    assert text.startswith(saved.text or "nothing")
    assert main(["--text", text, "--decode", "3"]) == 1
    assert "--cut keeps what fits." in capsys.readouterr().err
    assert main(["--text", text, "--decode", "3", "--cut"]) == 0
    assert "The context is full" in capsys.readouterr().err
    assert main(["--text", text, "--cut"]) == 1
    assert "--cut goes with" in capsys.readouterr().err


@pytest.mark.full
def test_a_picture_of_a_text_that_is_cut(tmp_path):
    assert run("--text", "the " * 600, "--png", "a.png", folder=tmp_path).returncode == 1
    done = run("--text", "the " * 600, "--png", "a.png", "--cut", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not QImage(str(tmp_path / "a.png")).isNull()


@pytest.mark.full
def test_what_opens_says_nothing_on_standard_error(tmp_path):
    """transformers prints a table of the tensors that it has no place for."""
    folder = tmp_path / "more"
    folder.mkdir()
    for file in folder_of("story-gpt").iterdir():
        if file.name != "model.safetensors":
            (folder / file.name).write_bytes(file.read_bytes())
    tensors = load_file(folder_of("story-gpt") / "model.safetensors")
    save_file({**tensors, "value_head.weight": torch.zeros(2, 2)}, folder / "model.safetensors", {"format": "pt"})
    done = run("--checkpoint", str(folder), "--text", "Once upon a", "--decode", "2", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == " time,\n"


def test_a_pair_is_run_as_one(tmp_path):
    path = tmp_path / "a.npz"
    given = ["--checkpoint", "story-bert", "--text", "Tom went home.", "--pair", "Anna has a ball."]
    assert main([*given, "--weights", str(path)]) == 0
    saved = load_weights(path)
    assert (saved.text, saved.second) == ("Tom went home.", "Anna has a ball.")
    assert saved.segment_ids == (0,) * 6 + (1,) * 6
    trace = models.run(open_checkpoint("story-bert"), ("Tom went home.", "Anna has a ball."))
    np.testing.assert_array_equal(saved.weights("encoder", 2)[3], trace.weights(("encoder", 2), 3))
