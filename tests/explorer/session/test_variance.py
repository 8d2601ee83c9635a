"""What an answer to the variance experiment does to the state."""

from __future__ import annotations

from attention_explorer.session.state import State
from attention_models.protocol.values import SiteRef
from attention_models.protocol.variance import HeadScores, VarianceRequest, VarianceView
from attention_models.views.variance import measure
from tests.explorer.session import answers

EXPERIMENT = measure(1, 4, 1.0, 0)
SITE = SiteRef("decoder", 5)
HEAD = HeadScores(SITE, 5, head_dim=32, cells=10, mean=0.0, variance=4.0, scale=0.5, independent=3.0)


def view(run: int | None) -> VarianceView:
    request = VarianceRequest(batch=1, tokens=4, deviation=1.0, seed=0, run=run, site=SITE, head=5)
    return VarianceView(request=request, experiment=EXPERIMENT, head=HEAD if run is not None else None)


def test_it_is_kept(running):
    found = view(run=1)
    assert answers.after(running, found).results.of(VarianceView) is found


def test_of_another_run_only_the_random_draws_are_kept(running):
    kept = answers.after(running, view(run=2)).results.of(VarianceView)
    assert kept is not None
    assert kept.experiment is EXPERIMENT
    assert kept.head is None


def test_it_needs_no_run():
    found = view(run=None)
    assert answers.after(State(), answers.loaded(), found).results.of(VarianceView) is found


def test_another_checkpoint_takes_it_away(running):
    state = answers.after(running, view(run=1), answers.loaded("story-gpt"))
    assert state.results.of(VarianceView) is None
