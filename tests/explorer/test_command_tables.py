"""--roles and --corpus: tables of what heads do, without a window."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from attention_explorer.app import main
from attention_explorer.cli.arguments import parse


def test_roles_are_written_as_a_table(tmp_path, capsys):
    path = tmp_path / "out.csv"
    assert main(["--roles", str(path)]) == 0
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    best = max((row for row in rows if row["role"] == "next"), key=lambda row: float(row["score"]))
    assert best["layer"] == "5"
    assert "32 texts" in capsys.readouterr().err


def test_means_of_a_corpus_are_written(tmp_path, capsys):
    lines, path = tmp_path / "lines.txt", tmp_path / "out.npz"
    lines.write_text("Tom and Anna went.\n" + "Tom " * 600 + "\nAnna fell.\n")
    assert main(["--corpus", str(lines), "--weights-mean", str(path)]) == 0
    with np.load(path) as file:
        assert file["decoder.5"].shape == (8, 32, 32)
        assert file["decoder.5.texts"][0, 0] == 2
    said = capsys.readouterr().err
    assert "Line 2 is left out" in said
    other = tmp_path / "without.npz"
    assert main(["--corpus", str(lines), "--skip", "4.head3", "--skip", "3.mlp", "--weights-mean", str(other)]) == 0
    with np.load(path) as plain, np.load(other) as without:
        np.testing.assert_array_equal(plain["decoder.3"], without["decoder.3"])
        assert np.nanmax(np.abs(plain["decoder.5"] - without["decoder.5"])) > 1e-3
        assert "head 3 off" in str(without["meta"])
    assert "2 texts" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--probe", "x.txt"], "goes with --roles"),
        (["--corpus", "x.txt"], "Give both"),
        (["--weights-mean", "x.npz"], "Give both"),
        (["--roles", ""], "given nothing"),
    ],
)
def test_options_that_do_not_go_alone(given, said):
    with pytest.raises(ValueError, match=said):
        parse(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--roles", "/nowhere/out.csv"], "There is no folder"),
        (["--roles", "out.csv", "--probe", "nothing.txt"], "cannot be read"),
        (["--corpus", "nothing.txt", "--weights-mean", "out.npz"], "cannot be read"),
        (["--checkpoint", "dates-bottleneck", "--roles", "out.csv"], "no attention"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, monkeypatch, capsys, given, said):
    monkeypatch.chdir(tmp_path)
    assert main(given) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("out.*"))
