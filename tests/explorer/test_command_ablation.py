"""`--ablate` on the command line: a row a head, as the function gives them."""

from __future__ import annotations

import csv

import pytest

import attention_models as models
from attention_explorer.app import main
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.values import SiteRef

STORY = "Tom and Anna went to the park. Anna gave the ball to"


@pytest.fixture(scope="module")
def model():
    return models.open_checkpoint("story-gpt")


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.short("None")
@pytest.mark.parametrize("against", [None, " Anna"])
def test_a_row_a_head(tmp_path, capfd, model, against):
    out = tmp_path / "out.csv"
    given = ["--text", STORY, "--target", " Tom", "--ablate", str(out), "--skip", "5.mlp"]
    assert main([*given, *(["--against", against] if against else [])]) == 0
    header, *rows = rows_of(out)
    assert header == ["stack", "layer", "head", "effect"]
    skip = (Ablation("mlp", SiteRef("decoder", 5)),)
    effects = models.head_effects(model, STORY, target=" Tom", against=against, interventions=skip)
    expected = [(at.site, head, value) for at in effects.sites for head, value in enumerate(at.heads)]
    assert len(rows) == len(expected) == 64
    for (stack, layer, head, effect), (site, number, value) in zip(rows, expected, strict=True):
        assert (SiteRef(stack, int(layer)), int(head)) == (site, number)
        assert float(effect) == pytest.approx(value, abs=1e-5)
    said = capfd.readouterr().err
    assert "“␣Tom” less “␣Anna”" in said if against else "logit of “␣Tom”" in said
    assert "changes it most" in said


@pytest.mark.full
def test_a_masked_model_is_measured_at_its_mask_or_where_one_says(tmp_path):
    bert, text = models.open_checkpoint("story-bert"), "The cats near the house [MASK] hungry."
    for option, position in ([], None), (["--position", "2"], 2):
        out = tmp_path / "out.csv"
        assert main(["--checkpoint", "story-bert", "--text", text, "--ablate", str(out), *option]) == 0
        effects = models.head_effects(bert, text, position=position)
        expected = [value for at in effects.sites for value in at.heads]
        assert [float(row[3]) for row in rows_of(out)[1:]] == pytest.approx(expected, abs=1e-5)


def test_of_a_translator_what_was_written(tmp_path):
    out = tmp_path / "out.csv"
    given = ["--checkpoint", "en-es", "--text", "Good morning.", "--target", "Buenos", "--ablate", str(out)]
    assert main(given) == 0
    assert {row[0] for row in rows_of(out)[1:]} == {"encoder", "decoder", "cross"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--target", " Tom and Anna"], "tokens to story-gpt"),
        (["--text", "Tom", "--text", "Anna"], "--ablate goes with one text"),
        (["--checkpoint", "recurrent-en-es-bahdanau"], "is a recurrent model"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(tmp_path, capfd, given, sentence):
    out = tmp_path / "out.csv"
    assert main([*given, "--ablate", str(out)]) != 0
    assert sentence in capfd.readouterr().err
    assert not out.exists()


def test_a_folder_that_is_not_there_and_an_option_alone(tmp_path, capfd):
    assert main(["--text", "Tom", "--ablate", str(tmp_path / "nowhere" / "out.csv")]) == 1
    assert "There is no folder" in capfd.readouterr().err
    assert main(["--text", "Tom", "--against", " Anna"]) != 0
    assert "goes with --ablate" in capfd.readouterr().err
