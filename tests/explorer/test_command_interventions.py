"""`--scale`, `--mask` and `--skip` on the command line."""

from __future__ import annotations

import numpy as np
import pytest

import attention_models as models
from attention_explorer.app import main
from attention_explorer.cli.arguments import parse
from attention_explorer.cli.first_state import first_state
from attention_explorer.session.state import InterventionItem
from attention_explorer.session.view_options import ViewOptions
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import SiteRef

TEXT = "Tom and Anna went to the park."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ()),
        (["--scale", "0.5"], (Scale(0.5),)),
        (["--mask", "window:8"], (Mask("window", window=8),)),
        (
            ["--mask", "full", "--scale", "0", "--mask", "padding:2"],
            (Scale(0), Mask("full"), Mask("padding", window=2)),
        ),
        (["--scale", "1", "--mask", "trained"], ()),
        (
            ["--skip", "5.mlp", "--skip", "encoder.2.norm1"],
            (Ablation("mlp", SiteRef("", 5)), Ablation("norm1", SiteRef("encoder", 2))),
        ),
    ],
)
def test_what_they_ask_for(arguments, expected):
    args = parse(arguments)
    assert args.interventions == expected
    assert first_state(args, ViewOptions()).document.interventions == tuple(InterventionItem(item) for item in expected)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scale", "half"], "--scale takes a number, as in --scale 0.5, not “half”."),
        (["--scale=-1"], "A scale factor of -1.0 would make the worst fit the best"),
        (["--scale", "nan"], "A scale factor of nan"),
        (["--mask", "window:0"], "A “window” mask needs a number from 1 to "),
        (["--mask", "window"], "A “window” mask needs a number from 1 to "),
        (["--mask", "window:x"], "“window:x” is no mask: after the colon comes a number"),
        (["--mask", "diagonal"], "There is no mask “diagonal”: choose one of "),
        (["--skip", "mlp"], "“mlp” names no part of a block: write the layer and the part, as in 5.mlp"),
        (["--skip", "5.heart"], "A block has no part “heart” that could be switched off"),
        (["--skip", "5.head"], "Say which head, counted from 0, as in head3"),
        (["--skip", "5.head8"], "there are only heads 0 to 7"),
        (["--skip", "8.mlp"], "“feed-forward network off, decoder layer 8”: story-gpt has no such layer"),
        (["--skip", "encoder.2.mlp"], "cannot be done in story-gpt: its only stack is the decoder."),
        (["--skip", "5.cross"], "this block of story-gpt has no cross-attention"),
        (["--mask", "causal", "--mask", "painted"], "A painted mask cannot be written here"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_1(arguments, sentence, capsys, tmp_path):
    out = tmp_path / "w.npz"
    assert main(["--weights", str(out), *arguments]) == 1
    said = capsys.readouterr()
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert "None" not in said.err
    assert said.out == ""
    assert not out.exists()


def test_the_weights_are_those_of_the_edited_run(tmp_path):
    out = tmp_path / "w.npz"
    assert main(["--text", TEXT, "--scale", "0.5", "--mask", "window:3", "--weights", str(out)]) == 0
    trace = models.run(models.open_checkpoint("story-gpt"), TEXT, interventions=[Scale(0.5), Mask("window", window=3)])
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["decoder.5"][5], trace.weights(("decoder", 5), 5))


def test_what_is_written_is_what_the_edited_model_writes(capsys):
    edits = (Scale(0.1), Mask("window", window=4))
    assert main(["--text", TEXT, "--decode", "6", "--scale", "0.1", "--mask", "window:4"]) == 0
    expected = list(models.decode(models.open_checkpoint("story-gpt"), TEXT, 6, interventions=edits))[-1].text
    assert capsys.readouterr().out == f"{expected}\n"
    assert main(["--text", TEXT, "--decode", "6"]) == 0
    assert capsys.readouterr().out != f"{expected}\n"


@pytest.mark.full
def test_a_part_that_is_off_is_off_in_weights_and_in_what_is_written(tmp_path, capsys):
    out, model = tmp_path / "w.npz", models.open_checkpoint("story-gpt")
    skip = Ablation("mlp", SiteRef("decoder", 5))
    assert main(["--text", TEXT, "--skip", "5.mlp", "--weights", str(out)]) == 0
    trace = models.run(model, TEXT, interventions=[skip])
    saved = models.load_weights(out)
    np.testing.assert_array_equal(saved.weights("decoder", 7), np.stack([trace.weights(7, h) for h in range(8)]))
    assert saved.interventions == (skip,)
    capsys.readouterr()
    assert main(["--text", TEXT, "--decode", "6", "--skip", "5.mlp", "--skip", "0.attention"]) == 0
    skips = [skip, Ablation("attention", SiteRef("decoder", 0))]
    assert capsys.readouterr().out == f"{list(models.decode(model, TEXT, 6, interventions=skips))[-1].text}\n"
    assert main(["--checkpoint", "en-es", "--text", "Good morning.", "--decode", "6", "--skip", "encoder.0.mlp"]) == 0
    english, off = models.open_checkpoint("en-es"), Ablation("mlp", SiteRef("encoder", 0))
    expected = list(models.decode(english, "Good morning.", 6, interventions=[off]))[-1].text
    assert capsys.readouterr().out == f"{expected}\n"


def test_a_head_that_is_off_is_off_in_what_is_written(capsys):
    assert main(["--text", TEXT, "--decode", "6", "--skip", "5.head3", "--skip", "6.head7"]) == 0
    model = models.open_checkpoint("story-gpt")
    skips = [Ablation("head", SiteRef("decoder", 5), 3), Ablation("head", SiteRef("decoder", 6), 7)]
    assert capsys.readouterr().out == f"{list(models.decode(model, TEXT, 6, interventions=skips))[-1].text}\n"
