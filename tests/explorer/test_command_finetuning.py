"""`--finetune` as a person types it: what is printed, the folder, and a sentence for what cannot be done."""

from __future__ import annotations

import pytest

from explorer.app import main
from models import open_checkpoint

WORDS = (("dog", "cat", "bird"), ("car", "ball", "park"))
ROWS = "\n".join(f"The {a} saw the {b}.\tEl {b} y {a}." for a in WORDS[0] for b in WORDS[1])


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
    assert main(["--finetune", "en-es", "--data", str(data), "--steps", "1", "--out", str(folder), *how]) == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--finetune", "story-gpt"], "--finetune needs what is to be learned: --data FILE"),
        (["--finetune", ""], "--finetune needs a checkpoint"),
        (["--finetune", "nix", "--data", "DATA"], "There is no checkpoint called “nix”"),
        (["--finetune", "story-next", "--data", "DATA"], "writes no text"),
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
