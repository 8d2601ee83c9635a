"""`--compare` on the command line: a row a head, as the function gives them, and B as the options or a session say."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import attention_models as models
from attention_explorer.app import main
from attention_explorer.cli.arguments import parse
from attention_explorer.session import session_check
from attention_explorer.session.comparing import frozen
from attention_explorer.session.kept import Kept, KeptState, SessionFile
from attention_explorer.session.state import Compared, Document, InterventionItem
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.request import never
from attention_models.protocol.values import SiteRef

HERE = "Tom and Anna went to the park. Anna gave the ball to"
THERE = "Tom and Anna went to the park. Tom gave the ball to"


@pytest.fixture(scope="module")
def model():
    return models.open_checkpoint("story-gpt")


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def assert_rows_are(path, view):
    rows = rows_of(path)
    assert len(rows) == len(view.changes) > 0
    for row, change in zip(rows, view.changes, strict=True):
        assert (row["stack"], int(row["layer"]), int(row["head"])) == (*astuple(change.site), change.head)
        assert float(row["change"]) == pytest.approx(change.change, abs=1e-6)
        if "similarity" in row:
            other = row["other_stack"], int(row["other_layer"]), int(row["other_head"])
            assert other == (*astuple(change.other_site), change.other_head)
            assert float(row["similarity"]) == pytest.approx(change.similarity, abs=1e-6)


def astuple(site):
    return site.stack, site.layer


def test_two_texts(tmp_path, capfd, model):
    out = tmp_path / "out.csv"
    assert main(["--text", HERE, "--with-text", THERE, "--compare", str(out)]) == 0
    view = models.compare_runs(model, HERE, THERE)
    assert_rows_are(out, view)
    assert list(rows_of(out)[0]) == ["stack", "layer", "head", "change"]
    said = capfd.readouterr()
    most = view.changed_most[0]
    assert f"decoder layer {most.site.layer}, head {most.head} differs most, by {most.change:.3f}." in said.err
    assert "A says “␣Tom” (67.9%), B “␣Anna” (71.9%)." in said.err
    assert said.out == ""


def test_before_and_after_interventions(tmp_path, model):
    out = tmp_path / "out.csv"
    of_a = ["--text", HERE, "--scale", "2"]
    of_b = ["--with-scale", "0.5", "--with-mask", "window:3", "--with-skip", "5.head3"]
    assert main([*of_a, *of_b, "--compare", str(out)]) == 0
    edits: list[Intervention] = [Scale(0.5), Mask("window", window=3), Ablation("head", SiteRef("decoder", 5), 3)]
    assert_rows_are(out, models.compare_runs(model, HERE, interventions=[Scale(2)], other_interventions=edits))
    assert main([*of_a, "--with-text", THERE, "--compare", str(out)]) == 0  # what is not said is as in A
    edits = [Scale(2)]
    assert_rows_are(out, models.compare_runs(model, HERE, THERE, interventions=edits, other_interventions=edits))


@pytest.mark.full
def test_another_checkpoint_by_similarity(tmp_path, capfd, model):
    out = tmp_path / "out.csv"
    assert main(["--text", HERE, "--with-checkpoint", "story-bert", "--compare", str(out)]) == 0
    other = models.open_checkpoint("story-bert")
    assert_rows_are(out, models.compare_runs(model, HERE, other_model=other))
    assert "heads of the same number are no counterparts" in capfd.readouterr().err
    assert main(["--text", HERE, "--with-text", THERE, "--match", "similarity", "--compare", str(out)]) == 0
    assert_rows_are(out, models.compare_runs(model, HERE, THERE, matching="similarity"))


def test_arrays(tmp_path, model):
    out = tmp_path / "out.npz"
    assert main(["--text", HERE, "--with-text", THERE, "--compare", str(out)]) == 0
    first = models.compare_runs(model, HERE, THERE).changed_most[0]
    view = models.compare_runs(model, HERE, THERE, site=first.site, head=first.head)
    assert view.maps is not None
    with np.load(out) as file:
        meta = json.loads(str(file["meta"]))
        np.testing.assert_allclose(file["change"], [c.change for c in view.changes], atol=1e-6)
        assert set(file["stack"]) == {"decoder"}
        np.testing.assert_allclose(file["difference"], view.maps.difference, atol=1e-6)
        np.testing.assert_allclose(file["a"] - file["b"], file["difference"], atol=1e-6)
        assert file["queries"].tolist() == [[i, i + 1, i, i + 1] for i in range(14)]
    assert meta["a"]["head"] == ["decoder", first.site.layer, first.head]
    assert meta["b"]["text"] == THERE
    assert meta["b"]["tokens"][9] == "␣Tom"
    assert meta["a"]["sha256"].keys() == {"model.safetensors"}
    assert meta["a"]["says"][0]["label"] == "␣Tom"
    assert meta["aligned"] == {"queries": "words", "keys": "words"}


@pytest.mark.full
def test_b_of_a_session_and_a_session_as_b(tmp_path, capfd, model):
    session, out = tmp_path / "b.attn", tmp_path / "out.csv"
    assert main(["--text", THERE, "--scale", "0.5", "--save", str(session)]) == 0
    assert main(["--text", HERE, "--with-session", str(session), "--compare", str(out)]) == 0
    assert_rows_are(out, models.compare_runs(model, HERE, THERE, other_interventions=[Scale(0.5)]))
    # the options change what the session says
    assert main(["--text", HERE, "--with-session", str(session), "--with-text", HERE, "--compare", str(out)]) == 0
    assert_rows_are(out, models.compare_runs(model, HERE, other_interventions=[Scale(0.5)]))
    assert main(["--text", HERE, "--with-session", str(tmp_path / "none.attn"), "--compare", str(out)]) == 1
    assert "none.attn" in capfd.readouterr().err


def test_the_b_that_a_session_was_saved_with(tmp_path, model):
    session, out = tmp_path / "both.attn", tmp_path / "out.csv"
    edits = (InterventionItem(Scale(0.5)), InterventionItem(Mask("window", window=3), on=False))
    b = Compared(frozen(Document(text=THERE, interventions=edits)))
    session_check.write(SessionFile(KeptState(Document(text=HERE, compared=b)), Kept()), session, never)
    assert main([str(session), "--compare", str(out)]) == 0
    assert_rows_are(out, models.compare_runs(model, HERE, THERE, other_interventions=[Scale(0.5)]))
    assert main([str(session), "--with-scale", "2", "--compare", str(out)]) == 0
    assert_rows_are(out, models.compare_runs(model, HERE, THERE, other_interventions=[Scale(2)]))


@pytest.mark.full
def test_translators(tmp_path, capfd):
    out = tmp_path / "out.csv"
    given = ["--checkpoint", "en-es", "--text", "The house has three doors.", "--compare", str(out)]
    assert main([*given, "--with-checkpoint", "recurrent-en-es-bahdanau"]) == 0
    said = capfd.readouterr().err
    assert "A says “La casa tiene tres puertas.”, B “la casa tiene tres puerta.”." in said
    assert len(rows_of(out)) == 1
    out.unlink()
    assert main([*given, "--with-checkpoint", "recurrent-en-es-bottleneck"]) == 1
    said = capfd.readouterr().err
    assert "recurrent-en-es-bottleneck has no attention" in said
    assert "There is no table of heads to write." in said
    assert not out.exists()


@pytest.mark.full
def test_pictures(tmp_path):
    out = tmp_path / "out.csv"
    given = ["--checkpoint", "vit-cifar10", "--picture", "chelsea", "--compare", str(out)]
    assert main([*given, "--with-picture", "coffee"]) == 0
    vit = models.open_checkpoint("vit-cifar10")
    assert_rows_are(out, models.compare_runs(vit, "sample:chelsea", "sample:coffee"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--compare", "out.csv"], "--compare needs B"),
        (["--compare", "out.txt", "--with-text", "Tom"], "not “out.txt”"),
        (["--compare", "out", "--with-text", "Tom"], "not “out”"),
        (["--compare", "", "--with-text", "Tom"], "--compare is given nothing"),
        (["--with-text", "Tom"], "goes with --compare"),
        (["--with-mask", "window:3"], "--with-mask says what is other in B"),
        (["--match", "similarity"], "goes with --compare"),
        (["--compare", "out.csv", "--with-text", ""], "--with-text is given nothing"),
        (["--compare", "out.csv", "--with-mask", "windw"], "windw"),
        (["--compare", "out.csv", "--with-scale", "much"], "--with-scale takes a number"),
        (["--compare", "out.csv", "--with-skip", "99.mlp"], "B cannot be run by story-gpt"),
        (["--compare", "out.csv", "--with-checkpoint", "nothing-here"], "B cannot be opened"),
        (["--compare", "out.csv", "--with-picture", "chelsea"], "reads text. Leave --with-picture out."),
        (["--compare", "out.csv", "--with-target", "Hola"], "Leave --with-target out."),
        (["--compare", "out.csv", "--with-checkpoint", "vit-cifar10", "--with-text", "Tom"], "Give B a --with-picture"),
        (["--compare", "out.csv", "--with-text", "Tom " * 600], "B cannot be run by story-gpt: This text is"),
        (["--compare", "out.csv", "--with-text", "Tom", "--text", "Tom", "--text", "Anna"], "goes with one text"),
        (["--compare", "out.csv", "--with-text", "Tom", "--cut"], "--cut goes with"),
        (["--compare", "nowhere/out.csv", "--with-text", "Tom"], "There is no folder"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(tmp_path, monkeypatch, capfd, given, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(given) != 0
    said = capfd.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
    assert not list(tmp_path.glob("out*"))


def test_what_is_said_of_b():
    args = parse(["--compare", "out.csv", "--with-mask", "window:3", "--scale", "2"])
    assert args.other_interventions == (Mask("window", window=3),)
    assert args.without_window
    assert parse(["--compare", "out.csv", "--with-text", "Tom", "--scale", "2"]).other_interventions is None
