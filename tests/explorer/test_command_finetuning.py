"""`--finetune` as a person types it: what is printed, the folder, and a sentence for what cannot be done."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_explorer.app import main
from attention_models import open_checkpoint
from attention_models.protocol.training_messages import AskedTuning, Begin, Ended, Save, Saved
from tests.models.training.talk import Talk

WORDS = (("dog", "cat", "bird"), ("car", "ball", "park"))
ROWS = "\n".join(f"The {a} saw the {b}.\tEl {b} y {a}." for a in WORDS[0] for b in WORDS[1])


@pytest.mark.short("how0")
@pytest.mark.parametrize("how", [[], ["--only", "head"], ["--lora", "2"]])
def test_it_prints_the_loss_before_and_after_and_the_folder_opens(tmp_path, capfd, how):
    data, folder = tmp_path / "rows.tsv", tmp_path / "tuned"
    data.write_text(ROWS)
    assert main(["--finetune", "en-es", "--data", str(data), "--steps", "3", "--out", str(folder), *how]) == 0
    said = capfd.readouterr()
    last = said.out.splitlines()[-1]
    before, after = (float(part.split(":")[1]) for part in last.removeprefix("held-out loss ").split(","))
    assert last == f"held-out loss before: {before:.4f}, after: {after:.4f}"
    assert after < before
    assert "hub" not in said.err.lower()
    assert open_checkpoint(folder).info.name.endswith(", tuned")
    assert main(["--finetune", "en-es", "--data", str(data), "--steps", "1", "--out", str(folder), *how]) == 1
    assert "tuned holds another training, which would be lost" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--finetune", "story-gpt"], "--finetune needs what is to be learned: --data FILE"),
        (["--finetune", ""], "--finetune needs a checkpoint"),
        (["--finetune", "nix", "--data", "DATA"], "There is no checkpoint called “nix”"),
        (["--finetune", "vit-quickdraw", "--data", "DATA"], "writes no text and tells no classes"),
        (["--finetune", "story-next", "--data", "DATA"], "data.txt, line 1, has 1 column: each row is a text and its"),
        (["--finetune", "en-es", "--data", "DATA"], "give it a file of two columns"),
        (["--finetune", "story-gpt", "--data", "/none/x"], "x could not be read"),
        (["--finetune", "story-gpt", "--data", "DATA", "--lora", "0"], "The rank of an adapter is from 1 to 256"),
        (
            ["--finetune", "story-gpt", "--data", "DATA", "--set", "heads=2"],
            "There is no switch “heads”",
        ),
        (["--finetune", "story-gpt", "--data", "DATA", "--set", "rate=fast"], "Rate is “fast”, and has to be a number"),
        (["--finetune", "story-gpt", "--data", "DATA", "--set", "batch=2.5"], "Batch is “2.5”, and has to be a whole"),
        (["--finetune", "story-gpt", "--data", "DATA", "--set", "rate=-1"], "Rate is -1.0, and has to be above 0"),
        (["--finetune", "story-gpt", "--data", "DATA", "--set", "decay=2"], "Decay is 2.0, and is from 0 to 1"),
        (["--finetune", "story-gpt", "--data", "DATA", "--set", "batch=9999"], "Batch is 9,999, and 1,024 rows"),
        (["--finetune", "story-gpt", "--data", "DATA", "--decode", "4"], "--finetune tunes a checkpoint, and --decode"),
        (["--finetune", "story-gpt", "--train", "copy"], "--train makes a model from nothing, and --finetune"),
        (["--lora", "4"], "--lora says what is fine-tuned, and --finetune is missing"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, capfd, given, words):
    data = tmp_path / "data.txt"
    data.write_text("A word and another.")
    given = [str(data) if word == "DATA" else word for word in given]
    out = ["--out", str(tmp_path / "tuned")] if "--finetune" in given else []
    assert main([*given, *out]) == 1
    assert words in capfd.readouterr().err
    assert not (tmp_path / "tuned").exists()


def test_the_tuned_checkpoint_is_not_written_over(tmp_path, capfd):
    folder, data = tmp_path / "model", tmp_path / "rows.tsv"
    data.write_text("\n".join(f"{a}{b}\t{b}{a}" for a in "abcdef" for b in "abcdef"))
    quick = ["--set", "width=16", "--set", "heads=2", "--set", "layers=1"]
    assert main(["--train", "copy:3", "--steps", "2", "--out", str(folder), *quick]) == 0
    before = (folder / "model.safetensors").read_bytes()
    assert main(["--finetune", str(folder), "--data", str(data), "--steps", "2", "--out", str(folder)]) == 1
    assert "is the checkpoint that is tuned, and would be lost" in capfd.readouterr().err
    assert (folder / "model.safetensors").read_bytes() == before
    assert main(["--finetune", f"{folder}@2", "--data", str(data), "--steps", "2", "--out", str(tmp_path / "t")]) == 0


LABELLED = "\n".join(f"The {a} and the {b}.\tThey met.\t{i % 2}" for i, a in enumerate("abcdef") for b in "ghij")


@pytest.mark.full
@pytest.mark.parametrize(
    ("checkpoint", "content", "how"),
    [
        ("story-next", LABELLED, []),
        ("story-next", LABELLED, ["--lora", "2"]),
        ("en-es", ROWS, ["--only", "head"]),
        ("story-bert", "the cat saw a dog and the dog ran to a park " * 30, []),
    ],
)
def test_what_is_resumed_is_what_was_never_broken_off_bit_for_bit(tmp_path, capfd, checkpoint, content, how):
    data, whole, parts = tmp_path / "rows.tsv", tmp_path / "whole", tmp_path / "parts"
    data = data if "\t" in content else tmp_path / "text.txt"
    data.write_text(content)
    told = ["--finetune", checkpoint, "--data", str(data), "--seed", "3", *how]
    assert main([*told, "--steps", "4", "--out", str(whole)]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert main([*told, "--steps", "2", "--out", str(parts)]) == 0
    data.unlink()
    assert main(["--resume", str(parts), "--steps", "4"]) == 0
    said = capfd.readouterr().out
    assert "going on from step 2" in said
    assert said.splitlines()[-1] == last
    for name in ("model.safetensors", "snapshots/newest.safetensors"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    assert main(["--resume", str(parts)]) == 1
    assert "has come to step 4, and that is its end" in capfd.readouterr().err
    assert main(["--resume", str(parts), "--data", str(data)]) == 1
    assert "--resume goes on with what its folder says. Leave --data out." in capfd.readouterr().err


@pytest.mark.full
def test_one_that_was_killed_goes_on_to_the_length_that_was_asked_for(tmp_path, capfd):
    """As of a power cut after step 2 of 4: its record is that of the beginning, its snapshots go further."""
    data, folder, whole = tmp_path / "rows.tsv", tmp_path / "model", tmp_path / "whole"
    data.write_text(LABELLED)
    told = ["--finetune", "story-next", "--data", str(data)]
    assert main([*told, "--steps", "2", "--out", str(folder)]) == 0
    record = json.loads((folder / "training.json").read_text())
    record |= {"budget": {"seconds": None, "steps": 4, "spent": 0.0}, "steps": 0, "held_out": record["held_out"][:1]}
    (folder / "training.json").write_text(json.dumps({**record, "curve": []}))
    assert main([*told, "--steps", "4", "--out", str(whole)]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert main(["--resume", str(folder)]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == last
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def _other_shape(folder):
    save_file({"numbers": torch.tensor([1.0, 1.0, 0.0]).double()}, folder / "snapshots" / "newest.safetensors")


def _infinite(folder):
    path = folder / "snapshots" / "newest.safetensors"
    state = load_file(path)
    name = next(name for name in state if name.startswith("learned."))
    state[name][...] = float("nan")
    save_file(state, path)


def _other_base(folder):
    path = folder / "snapshots" / "step-00000000.safetensors"
    save_file({name: tensor + 1 for name, tensor in load_file(path).items()}, path)


def _record(**changes):
    def change(folder):
        path = folder / "training.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


@pytest.mark.short(
    *("<lambda>-is damaged", "change-the rank of an adapter is from 1 *"),
    *("change-describes no fine-tuning that cou*", "change-the seed is a number of more than*"),
)
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda folder: (folder / "training.data").write_text("Another text."), "it was changed. Fine-tune again."),
        (lambda folder: (folder / "training.data").unlink(), "training.data, which it learned from, cannot be read"),
        (lambda folder: (folder / "snapshots" / "newest.safetensors").write_bytes(b"broken"), "is damaged"),
        (lambda folder: (folder / "snapshots" / "newest.safetensors").unlink(), "cannot be gone on with"),
        (_other_shape, "newest.safetensors lacks"),
        (_infinite, "that are no numbers"),
        (_other_base, "story-next is not as it was: its"),
        (_record(settings={"tuned": "lora", "rank": 999}), "the rank of an adapter is from 1 to 256"),
        (_record(settings={"tuned": "everything"}), "describes no fine-tuning that could go on"),
        (_record(finetuned="/none/model"), "/none/model"),
        (_record(finetuned="vit-cifar10"), "writes no text and tells no classes"),
        (_record(finetuned="story-gpt"), "rows.tsv, line 1, has 3 columns"),
        (_record(finetuned=[]), "describes no fine-tuning that could go on"),
        (_record(finetuned="\x1b[2Jmodel"), "it names what no file is called"),
        (_record(finetuned="//server/share"), "it began as //server/share, a place on another computer, not touched"),
        (_record(data={"file": "\x1b[2J", "sha256": ""}), "it names what no file is called"),
        (_record(settings={"batch": 10**9}), "batch is 1,000,000,000, and 1,024 rows"),
        (_record(settings={"seed": 1 << 70}), "the seed is a number of more than 20 digits, and has to be"),
        (_record(settings={"snapshot_every": 0}), "snapshot_every is 0, and has to be at least 1"),
        (_record(budget={"seconds": None, "steps": None, "spent": 0.0}), "Fine-tune again"),
    ],
)
def test_a_folder_that_was_changed_is_not_gone_on_with(tmp_path, tuned_folder, capfd, harm, words):
    folder = tmp_path / "model"
    shutil.copytree(tuned_folder, folder)
    harm(folder)
    before = (folder / "model.safetensors").read_bytes()
    assert main(["--resume", str(folder), "--steps", "4"]) == 1
    assert words in capfd.readouterr().err
    assert (folder / "model.safetensors").read_bytes() == before


@pytest.fixture(scope="module")
def tuned_folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tuned")
    (made / "rows.tsv").write_text(LABELLED)
    told = ["--finetune", "story-next", "--data", str(made / "rows.tsv"), "--only", "head", "--steps", "1"]
    assert main([*told, "--out", str(made / "model")]) == 0
    return made / "model"


def test_a_classifier_says_last_also_how_many_texts_are_right(tmp_path, capfd):
    (tmp_path / "rows.tsv").write_text(LABELLED)
    told = ["--finetune", "story-next", "--data", str(tmp_path / "rows.tsv"), "--only", "head", "--steps", "2"]
    assert main([*told, "--out", str(tmp_path / "tuned")]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    record = json.loads((tmp_path / "tuned" / "training.json").read_text())["held_out"]
    before, after = ((found["loss"], found["tokens_right"]) for found in (record[0], record[-1]))
    assert last == (
        f"held-out loss before: {before[0]:.4f}, after: {after[0]:.4f}; "
        f"held-out texts right before: {before[1]:.3f}, after: {after[1]:.3f}"
    )


@pytest.mark.full
def test_a_folder_that_the_window_saved_is_gone_on_with(tmp_path, capfd):
    """Its process writes it; what comes of it is bit for bit what the command alone would have made."""
    (tmp_path / "rows.tsv").write_text(LABELLED)
    asked = AskedTuning("story-next", file=str(tmp_path / "rows.tsv"), seconds=None, steps=2)
    talk = Talk()
    talk.tell(Begin(asked, str(tmp_path / "private")))
    talk.until(Ended)
    talk.tell(Save(str(tmp_path / "saved")))
    talk.until(Saved)
    talk.close()
    assert main(["--resume", str(tmp_path / "saved")]) == 1
    assert "Say how far it is to go" in capfd.readouterr().err
    assert main(["--resume", str(tmp_path / "saved"), "--steps", "3"]) == 0
    told = ["--finetune", "story-next", "--data", str(tmp_path / "rows.tsv"), "--steps", "3"]
    assert main([*told, "--out", str(tmp_path / "whole")]) == 0
    weights = "model.safetensors"
    assert (tmp_path / "saved" / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()
