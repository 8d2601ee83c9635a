"""The recipe of the recurrent models: two steps on little data, and the checkpoint opens like a shipped one."""

from __future__ import annotations

import json
import lzma
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attention_models import decode, open_checkpoint
from attention_models.training import recurrent
from attention_models.training.common import IGNORE

TINY = ["--steps", "2", "--hidden", "8", "--embedding", "4", "--batch", "4"]


@pytest.fixture(autouse=True)
def few_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "DATES", 60)
    monkeypatch.setattr(recurrent, "DATES_HELD_OUT", 20)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = [f"The house has {n} doors.\tLa casa tiene {n} puertas.\tsomeone" for n in range(60)]
    lines.append("Far too long. " * 20 + "\tDemasiado largo.\tsomeone")
    path = tmp_path / "pairs.tsv.xz"
    path.write_bytes(lzma.compress("\n".join(lines).encode()))
    return path


@pytest.mark.full
@pytest.mark.parametrize(
    "choices",
    [["--score", "bahdanau"], ["--score", "none"], ["--score", "dot", "--scope", "predictive", "--cell", "lstm"]],
    ids=lambda choices: choices[1],
)
def test_dates(choices: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recurrent.main(["--task", "dates", "--out", str(tmp_path), *choices, *TINY])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["step"] == 2
    model = open_checkpoint(tmp_path)
    # untrained, it is about as unsure as a guess among all characters
    assert report["cross_entropy"] == pytest.approx(math.log(model.info.vocabulary), rel=0.15)
    assert {t.dtype for t in load_file(tmp_path / "model.safetensors").values()} == {torch.float16}
    assert next(decode(model, "5 March 1998", steps=3, strategy="sample", seed=1)).number == 1
    assert [token.text for token in model.tokenize("5/3/98")][:-1] == list("5/3/98")


def test_sentences(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    options = ["--task", "en-es", "--pairs", str(pairs), "--score", "bahdanau", "--vocabulary", "60"]
    recurrent.main([*options, "--out", str(out), *TINY])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 2
    model = open_checkpoint(out)
    assert [token.piece for token in model.tokenize("The house")][-1] == "</s>"
    assert model.info.vocabulary <= 60


def test_sentences_need_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        recurrent.main(["--task", "en-es", "--out", str(tmp_path), *TINY])
    assert "--pairs is needed" in capsys.readouterr().err


def test_a_batch_holds_source_target_and_what_follows() -> None:
    tokenizer = recurrent.character_tokenizer(["ab", "abc"])
    a, b, c = (tokenizer.token_to_id(char) for char in "abc")
    batch = recurrent.batch_of(tokenizer, [("ab", "c"), ("abc", "ba")])
    assert batch.inputs["source"].tolist() == [[a, b, 2, 0], [a, b, c, 2]]
    assert batch.inputs["target"].tolist() == [[1, c, 0], [1, b, a]]
    assert batch.labels.tolist() == [[c, 2, IGNORE], [b, a, 2]]


def test_long_pairs_are_left_out() -> None:
    ten, eleven = " ".join("a" * 10), " ".join("a" * 11)
    assert recurrent.short([(ten, ten), (ten, eleven), (eleven, ten)]) == [(ten, ten)]
