"""Prepared experiments: the file is whole, measures are what they say, and every claim holds at three seeds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attention_explorer.paths import resource
from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.transformer import IGNORE
from attention_models.training.comparison import Comparison, Finding, figure
from attention_models.training.experiment import experiment
from attention_models.training.measures import Learner, calibration_error, largest_weight, measure
from attention_models.training.prepared import MEASURES, Prepared, Run, Statement, read_prepared
from attention_models.training.rows import TextRows

EXPERIMENTS = read_prepared(resource("experiments.toml"))
SEEDS = (0, 1, 2)


def done(prepared: Prepared, seed: int) -> Comparison:
    comparison = Comparison(prepared, seed)
    while not comparison.is_done:
        comparison.step()
    return comparison


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_claimed_holds(name, seed):
    verdict = done(EXPERIMENTS[name], seed).verdict()
    checked = [finding for finding in verdict.findings if not finding.statement.is_clocked]
    assert checked
    assert not verdict.notices
    assert all(finding.holds for finding in checked), "\n".join(verdict.lines())


def test_an_experiment_goes_by_its_seed_alone():
    """Side by side with others, and noted on the way, a run is what it is by itself."""
    prepared = EXPERIMENTS["without-positions"]
    comparison = Comparison(prepared, 5)
    for _ in range(6):
        comparison.step()
    alone = experiment(prepared.runs[1].spec, prepared.runs[1].switches, 5).training()
    points = [alone.step() for _ in range(6)]
    assert comparison.learners[1].losses == [point.loss for point in points]
    assert comparison.learners[0].losses != comparison.learners[1].losses


def test_every_run_of_every_experiment_can_be_made_and_measured():
    used = set()
    for prepared in EXPERIMENTS.values():
        comparison = Comparison(prepared, 0)
        comparison.step()
        verdict = comparison.verdict()
        used |= set(verdict.measured)
        for name, by_run in verdict.measured.items():
            assert set(by_run) == {run.name for run in prepared.runs}
            reached = [value for value in by_run.values() if math.isfinite(value)]
            assert reached or name in ("steps to learn", "seconds to learn", "middle half"), (prepared.name, name)
        assert len({run.name for run in prepared.runs}) == len(prepared.runs)
        for text in (prepared.title, prepared.compares, prepared.look_for, prepared.claim, prepared.source):
            assert text == text.strip() != ""
    assert used == set(MEASURES)


# --------------------------------------------------------------------------- measures


def learner(spec: str = "copy:4", **switches: str) -> Learner:
    small = {"width": "16", "heads": "2", "layers": "1", "batch": "8", "shape": "decoder", **switches}
    return Learner("one", experiment(spec, small, 1, "the cat sat on the mat, and a dog lay by it. " * 20).training())


def test_measures_of_curves():
    one = learner()
    for i in range(100):
        one.note(loss=100.0 - i, right=0.0 if i < 40 else 1.0, seconds=0.5)
    assert measure("training loss", one) == pytest.approx(np.mean(range(1, 21)))
    assert measure("steps to learn", one) == 49  # nine of the last ten
    assert measure("seconds to learn", one) == pytest.approx(24.5)
    assert measure("milliseconds a step", one) == pytest.approx(500)
    assert measure("middle half", one) == pytest.approx(0.06)  # 0.2 to 0.8 of the mean over ten steps
    even = learner()
    for i in range(1000):
        even.note(loss=1.0, right=i / 2000, seconds=0.5)
    assert measure("middle half", even) == pytest.approx(0.5, abs=0.01)
    assert measure("steps to learn", even) == math.inf
    assert figure("steps to learn", math.inf) == "never"


def test_calibration_error_is_that_of_its_formula():
    generator = torch.Generator().manual_seed(3)
    sure = torch.rand(500, generator=generator, dtype=torch.float64)
    right = (torch.rand(500, generator=generator) < 0.6).double()
    wanted = 0.0
    for low in np.arange(0, 1, 0.1):
        inside = [(s, r) for s, r in zip(sure.tolist(), right.tolist(), strict=True) if low <= s < low + 0.1]
        if inside:
            s, r = np.mean(inside, axis=0)
            wanted += len(inside) / 500 * abs(s - r)
    assert calibration_error(sure, right) == pytest.approx(wanted, abs=1e-9)
    assert calibration_error(torch.ones(4, dtype=torch.float64), torch.tensor([1.0, 1, 1, 0]).double()) == 0.25


def test_how_sure_a_model_is_and_how_often_right():
    one = learner()
    batch = one.training.rows.held_out(200)
    with torch.no_grad():
        one.training.model.eval()
        chances = torch.softmax(one.training.model(**batch.inputs).logits.double(), -1)
    kept = batch.labels != IGNORE
    sure, chosen = chances[kept].max(-1)
    wanted = sure.mean() - (chosen == batch.labels[kept]).double().mean()
    assert measure("overconfidence", one) == pytest.approx(float(wanted), abs=1e-9)


def eager_weights(one: Learner, inputs: dict[str, torch.Tensor]) -> list[np.ndarray]:
    """(rows, heads, queries, keys) of each layer, as the textbook's own eager formula gives them to the module."""
    model = one.training.model
    assert isinstance(model, TextbookModel)
    found: list[np.ndarray] = []

    def hook(_: nn.Module, __: Any, out: tuple[torch.Tensor, torch.Tensor]) -> None:
        found.append(out[1].numpy())

    model.set_attn_implementation("eager")
    handles = [m.register_forward_hook(hook) for n, m in model.named_modules() if n.endswith("self_attn")]
    with torch.no_grad():
        model.eval()
        model(**inputs)
    for handle in handles:
        handle.remove()
    return found


def test_the_largest_weight_and_the_prefix_match_are_read_off_the_weights():
    one = learner("recall:6", layers="2", positions="rope")
    ours = largest_weight(one), measure("prefix-match score", one)
    few, many = (one.training.rows.held_out(count) for count in (20, 200))
    largest = []
    for w in eager_weights(one, few.inputs):
        largest += [row.max() for text in w for head in text for i, row in enumerate(head) if i > 0]
    assert ours[0] == pytest.approx(np.mean(largest), abs=1e-5)
    scores = []
    ids, real = many.inputs["input_ids"].numpy(), many.inputs["input_ids"].numpy() != 0
    for w in eager_weights(one, many.inputs):
        for head in range(w.shape[1]):
            sums = []
            for text in range(len(ids)):
                for i in range(1, ids.shape[1]):
                    after = [j for j in range(1, i) if ids[text, j - 1] == ids[text, i]] if real[text, i] else []
                    if after and ids[text, i] > 4:
                        sums.append(w[text, head, i, after].sum())
            scores.append(np.mean(sums))
    assert ours[1] == pytest.approx(max(scores), abs=1e-5)


def test_a_loss_is_held_against_letter_frequencies():
    """0 of a model whose logits are the log of how often each held-out token occurs; for others the formula."""
    one = learner()
    batch = one.training.rows.held_out(200)
    labels = batch.labels[batch.labels != IGNORE].numpy()
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    with torch.no_grad():
        one.training.model.eval()
        scores = torch.log_softmax(one.training.model(**batch.inputs).logits.double(), -1)
    kept = batch.labels != IGNORE
    loss = -scores[kept].gather(-1, batch.labels[kept][:, None]).mean()
    wanted = float(loss) + float((shares * np.log(shares)).sum())
    assert wanted > 0, "before training it knows no frequencies"
    assert measure("loss beside frequencies", one) == pytest.approx(wanted, abs=1e-6)


def test_loss_beyond_the_trained_length_is_of_the_places_beyond_it():
    one = learner("text:10", context="64")
    rows = one.training.rows
    assert isinstance(rows, TextRows)
    batch = rows.longer(30, 200)
    assert batch.labels.shape[1] == 30
    with torch.no_grad():
        one.training.model.eval()
        logits = one.training.model(**batch.inputs).logits.double()
    by_place = -torch.log_softmax(logits, -1).gather(-1, batch.labels[..., None])[..., 0]
    assert measure("loss on longer rows", one) == pytest.approx(float(by_place[:, 10:].mean()), abs=1e-5)
    assert measure("loss at the trained length", one) == pytest.approx(float(by_place[:, 7:10].mean()), abs=1e-5)
    times = float(by_place[:, 10:].mean() / by_place[:, 7:10].mean())
    assert measure("times the trained loss", one) == pytest.approx(times, abs=1e-5)


# --------------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("stated", "value", "other", "holds"),
    [
        ({"at_least": 0.5}, 0.5, math.nan, True),
        ({"at_least": 0.5}, 0.49, math.nan, False),
        ({"at_most": 0.5}, 0.51, math.nan, False),
        ({"above": "b", "by": 0.5}, 1.5, 1.0, True),
        ({"above": "b", "times": 2}, 1.9, 1.0, False),
        ({"below": "b", "times": 2}, 0.5, 1.0, True),
        ({"below": "b", "by": 0.5}, 0.6, 1.0, False),
        ({"at_least": 0.5}, math.nan, math.nan, False),
        ({"above": "b"}, math.inf, 10, True),
        ({"below": "b"}, math.inf, math.inf, False),
    ],
)
def test_a_statement_holds_or_not(stated, value, other, holds):
    assert Statement("training loss", "a", **stated).holds(value, other) == holds


def test_a_claim_that_does_not_hold_is_said_so():
    run = {"width": "16", "heads": "2", "layers": "1", "batch": "8"}
    runs = (Run("a", "copy:3", run), Run("b", "copy:3", {**run, "positions": "none"}))
    stated = (Statement("sequences right", "a", at_least=0.9), Statement("training loss", "a", above="b", by=50))
    prepared = Prepared("x", "X", "", "", "", "", 3, 1, runs, stated)
    verdict = done(prepared, 0).verdict()
    assert not verdict.holds
    assert [finding.holds for finding in verdict.findings] == [False, False]
    lines = list(verdict.lines())
    assert lines[-2] == "no   sequences right of “a” 0: at least 0.9 is claimed"
    assert lines[-1].endswith(": at least 50 more is claimed")


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"at_least": 0.5}, "training loss of “a” 2: at least 0.5 is claimed"),
        ({"at_most": 0.5}, "training loss of “a” 2: at most 0.5 is claimed"),
        ({"above": "b"}, "training loss of “a” 2, of “b” never: as much or more is claimed"),
        ({"below": "b"}, "training loss of “a” 2, of “b” never: as much or less is claimed"),
        ({"above": "b", "by": 0.5}, "training loss of “a” 2, of “b” never: at least 0.5 more is claimed"),
        ({"below": "b", "by": 0.5}, "training loss of “a” 2, of “b” never: at least 0.5 less is claimed"),
        ({"above": "b", "times": 1.5}, "training loss of “a” 2, of “b” never: at least 1.5 times as much is claimed"),
        (
            {"above": "b", "times": 2, "by": 1},
            "training loss of “a” 2, of “b” never: at least 2 times as much and 1 more is claimed",
        ),
        (
            {"below": "b", "times": 2},
            "training loss of “a” 2, of “b” never: at least 2 times as much of the other is claimed",
        ),
    ],
)
def test_a_statement_is_told_with_its_figures(stated, words):
    assert Finding(Statement("training loss", "a", **stated), 2.0, math.inf, False).sentence == words


def test_a_run_that_diverges_is_told_and_the_others_go_on():
    run = {"width": "16", "heads": "2", "layers": "1", "batch": "8"}
    runs = (Run("calm", "copy:3", run), Run("wild", "copy:3", {**run, "rate": "1e30", "warmup": "1"}))
    prepared = Prepared("x", "X", "", "", "", "", 12, 1, runs, (Statement("training loss", "calm", at_most=9),))
    comparison = done(prepared, 0)
    assert len(comparison.learners[0].losses) == 12 > len(comparison.learners[1].losses)
    (notice,) = comparison.verdict().notices
    assert notice.startswith("wild: At step ")
    assert "rate=1e+30" in notice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\ntitle = 'A'", "the experiment a is not whole"),
        (
            "[a]\ntitle='A'\ncompares=''\nlook_for=''\nclaim=''\nsource=''\nsteps=1\nseconds=1\ntask='copy'\n"
            "runs=[{name='x'}, {name='y'}]\nholds=[{measure='luck', run='x', at_least=1}]",
            "measures “luck”",
        ),
        (
            "[a]\ntitle='A'\ncompares=''\nlook_for=''\nclaim=''\nsource=''\nsteps=1\nseconds=1\ntask='copy'\n"
            "runs=[{name='x'}, {name='y'}]\nholds=[{measure='training loss', run='z', at_least=1}]",
            "has no run “z”",
        ),
        (
            "[a]\ntitle='A'\ncompares=''\nlook_for=''\nclaim=''\nsource=''\nsteps=1\nseconds=1\ntask='copy'\n"
            "runs=[{name='x'}, {name='y'}]\nholds=[{measure='training loss', run='x'}]",
            "states neither or both",
        ),
    ],
)
def test_a_file_that_is_no_list_of_experiments(tmp_path: Path, text, words):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_prepared(tmp_path / "x.toml")
