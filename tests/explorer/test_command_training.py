"""`--train` as a person types it: the folder, the last line, and a sentence for what cannot be done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attention_explorer.app import main
from attention_explorer.cli import headless
from attention_explorer.cli.arguments import parse
from attention_models import decode, open_checkpoint, run
from attention_models.training.experiment import experiment
from tests.harness.program import heed_signals

QUICK = ["--set", "width=32", "--set", "heads=2", "--set", "layers=1", "--set", "batch=16"]


def test_it_trains_and_prints_last_how_many_rows_are_right(tmp_path, capfd):
    folder = tmp_path / "model"
    assert main(["--train", "copy:3", "--steps", "20", "--seed", "3", "--out", str(folder), *QUICK]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1].startswith("held-out sequences right: 0.")
    assert lines[-2].startswith("20 steps in ")
    model = open_checkpoint(folder)
    assert (model.config.width, model.config.layers, model.info.name) == (32, 1, "copy")
    assert run(model, model.info.example).sites
    names = sorted(path.name for path in (folder / "snapshots").iterdir())
    assert names == ["step-00000000.safetensors", "step-00000020.safetensors"]  # from the random weights on


def test_a_seed_gives_the_same_model(tmp_path):
    for name in ("a", "b"):
        assert main(["--train", "sort:3", "--steps", "6", "--out", str(tmp_path / name), *QUICK]) == 0
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b"))
    assert one == other


def test_a_text_is_learned_character_by_character(tmp_path, capfd):
    text, folder = tmp_path / "text.txt", tmp_path / "model"
    text.write_text("".join(f"{i} green bottles hanging on the wall. " for i in range(99, 0, -1)))
    given = ["--train", "text:24", "--data", str(text), "--steps", "30", "--out", str(folder), *QUICK]
    assert main(given) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("held-out characters right: 0.")
    *_, last = decode(open_checkpoint(folder), "10 green", steps=5)
    assert len(last.text) == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--train", "juggle"], "There is no task “juggle”. There are copy"),
        (["--train", "reverse", "--set", "heads=5"], "Heads is 5, which does not divide the width of 64"),
        (["--train", "reverse", "--set", "positions"], "--set takes a name and a value"),
        (["--train", "reverse", "--set", "colour=red"], "There is no switch “colour”"),
        (["--train", "reverse", "--seconds", "0"], "--seconds 0 is no length of a training"),
        (["--train", "reverse", "--seconds", "nan"], "--seconds nan is no length of a training"),
        (["--train", "reverse", "--seconds", "5", "--steps", "5"], "Give one of them"),
        (["--train", "reverse", "--decode", "5"], "--train makes a model from nothing, and --decode is not of that"),
        (["--train", "reverse", "--checkpoint", "en-es"], "and --checkpoint is not of that"),
        (["--train", "text"], "--train text learns the characters of a file"),
        (["--train", "reverse", "--data", "x.txt"], "the other tasks make their own"),
        (["--train", "text", "--data", "/none/x.txt"], "x.txt could not be read"),
        (["--set", "layers=3"], "--set is of a training, and --train is missing"),
        (["--resume", "/none"], "There is no training in /none"),
        (["--resume", "x", "--set", "layers=3"], "--resume goes on with what its folder says. Leave --set out."),
        (["--resume", "x", "--decode", "5"], "--resume goes on with a training, and --decode is not of that"),
        (["--resume", ""], "--resume needs the folder of a training"),
        (["--seconds", "3"], "--seconds is of a training, and --train is missing"),
        (["--train", "reverse", "--seed", "-1"], "--seed is 0 or more"),
        (["--train", "reverse", "--seed", str(1 << 64)], "--seed is 0 or more, and 2,147,483,647 at most"),
        (["--train", "reverse", "--set", "layers=1000000"], "Layers is 1,000,000, and is 128 at most"),
        (["--train", "reverse", "--set", "batch=1000000000"], "Batch is 1,000,000,000, and is 4,096 at most"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, capfd, given, words):
    out = ["--out", str(tmp_path / "model")] if "--train" in given else []
    assert main([*given, *out]) == 1
    assert words in capfd.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_folder_is_needed_and_others_files_are_left_alone(tmp_path, capfd):
    assert main(["--train", "reverse"]) == 1
    assert "--train needs a folder for the model: --out FOLDER." in capfd.readouterr().err
    (tmp_path / "mine.txt").write_text("Dear Anna")
    assert main(["--train", "reverse", "--out", str(tmp_path)]) == 1
    assert "holds files that no training wrote" in capfd.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "Dear Anna"
    assert main(["--train", "reverse", "--out", str(tmp_path / ("x" * 300))]) == 1
    assert "cannot be looked at (File name too long). Name another folder." in capfd.readouterr().err


def test_memory_that_runs_out_is_told_with_advice_that_fits(tmp_path, capfd, monkeypatch):
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("attention_models.training.training.Training.step", full)
    assert main(["--train", "copy:3", "--steps", "4", "--out", str(tmp_path / "model"), *QUICK]) == 1
    assert "Take a smaller width, fewer layers or a smaller batch." in capfd.readouterr().err


def test_what_is_said_of_a_training_is_in_the_help(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    shown = capsys.readouterr().out
    assert "--train TASK[:N]" in shown
    assert "--set NAME=VALUE" in shown


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_ctrl_c_keeps_what_was_learned(tmp_path):
    folder = tmp_path / "model"
    command = [
        sys.executable,
        "-m",
        "attention_explorer",
        "--train",
        "copy:3",
        "--seconds",
        "500",
        "--out",
        str(folder),
        *QUICK,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,  # tests that were begun in the background ignore Ctrl+C, and so would this
    )
    try:
        end = time.monotonic() + 120
        while not list(folder.glob("snapshots/step-*")) and time.monotonic() < end:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert out.splitlines()[-1].startswith("held-out sequences right: 0.")
    assert run(open_checkpoint(folder), "abc").sites
    assert list(folder.glob("snapshots/step-*"))


def _files(folder: Path) -> dict[str, bytes]:
    """All but the record, which says how long it took."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "training.json"
    }


@pytest.mark.full
def test_one_that_was_killed_goes_on_to_the_very_same_model(tmp_path, capfd):
    through, broken = tmp_path / "through", tmp_path / "broken"
    given = ["--train", "copy:3", "--steps", "300", *QUICK, "--set", "snapshot_every=3"]
    assert main([*given, "--out", str(through)]) == 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "attention_explorer", *given, "--out", str(broken)]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], env=environment, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while len(list(broken.glob("snapshots/step-*"))) < 5 and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert not (broken / "snapshots" / "step-00000300.safetensors").exists()  # else it was not broken off
    capfd.readouterr()
    assert main(["--resume", str(broken)]) == 0
    assert "going on from step " in capfd.readouterr().out
    assert _files(broken) == _files(through)


def test_one_that_has_ended_goes_on_where_it_is_said_how_far(tmp_path, capfd):
    folder = tmp_path / "model"
    assert main(["--train", "copy:3", "--steps", "5", "--out", str(folder), *QUICK]) == 0
    assert main(["--resume", str(folder)]) == 1
    assert f"The training in {folder} has come to step 5, and that is its end." in capfd.readouterr().err
    assert main(["--resume", str(folder), "--steps", "9"]) == 0
    assert "9 steps in " in capfd.readouterr().out
    assert open_checkpoint(f"{folder}@9").info.name == "copy, step 9"
    assert main(["--resume", str(folder), "--seconds", "0.2"]) == 0


def test_a_full_disk_is_said_and_what_was_there_stays(small_disk, capfd):
    folder = small_disk.folder / "model"
    assert main(["--train", "copy:3", "--steps", "4", "--out", str(folder), *QUICK]) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    capfd.readouterr()
    small_disk.fill(leave=1 << 15)
    assert main(["--resume", str(folder), "--steps", "20"]) == 1
    said = capfd.readouterr().err
    assert f"The model could not be written to {folder}: the disk is full. Make room" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


# --------------------------------------------------------------------------- prepared experiments

TOLD = """
[tiny]
title = "Tiny"
compares = "One and another."
look_for = "Not much."
claim = "One has a loss."
source = "none"
task = "copy:3"
steps = 10
seconds = 1
set = {{ width = 16, heads = 2, layers = 1, batch = 8 }}
runs = [{{ name = "one" }}, {{ name = "another", set = {{ positions = "none" }} }}]
holds = [{{ measure = "training loss", run = "one", at_most = {most} }}]
"""


@pytest.mark.parametrize(("most", "code"), [(9, 0), (0, 1)])
def test_an_experiment_says_whether_its_claim_holds(monkeypatch, tmp_path, capfd, most, code):
    (tmp_path / "experiments.toml").write_text(TOLD.format(most=most))
    monkeypatch.setattr(headless, "resource", lambda name: tmp_path / name)
    assert main(["--experiment", "tiny", "--seed", "4"]) == code
    out, complaint = capfd.readouterr()
    lines = out.splitlines()
    assert lines[0] == "Tiny. One and another."
    losses = [line for line in lines if line.startswith("step ")]
    assert len(losses) == 10
    planned = experiment("copy:3", {"width": "16", "heads": "2", "layers": "1", "batch": "8"}, 4).training()
    assert losses[0].startswith(f"step 1: loss one {planned.step().loss:.3f}, another ")
    assert lines[-2].startswith("yes" if code == 0 else "no ")
    assert lines[-1] == ("Holds here: " if code == 0 else "Does not hold here: ") + "One has a loss."
    assert complaint.strip().endswith("The claim does not hold with seed 4." if code else "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--experiment", "juggle"], "There is no experiment “juggle”. There are without-positions"),
        (["--experiment", "recurrent", "--steps", "4"], "--steps is not of it"),
        (["--experiment", "recurrent", "--train", "copy"], "--train is not of it"),
        (["--experiment", "recurrent", "--seed", "-1"], "--seed is 0 or more"),
    ],
)
def test_an_experiment_that_cannot_be_run_is_told_in_a_sentence(given, words, capfd):
    assert main(given) == 1
    assert words in capfd.readouterr().err
