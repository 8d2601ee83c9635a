"""Heads that were written down to do one thing score 1 on that, and low elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from attention_models import run
from attention_models.protocol.values import SiteRef
from attention_models.roles.probe import Probe, ProbeText
from attention_models.roles.roles import head_roles
from attention_models.roles.which_heads import which_heads
from tests.models.roles.hand_built import HEADS, hand_built

# Each text with letters that come again, and after them others than the first time: copies, what followed them, and
# what comes next are then different keys.
TEXTS = ("abcdefg, hij. bkcldm.enf", "zyx.wvu,tsr.qpo yw.xt,vp", "mnbvcxz. lkjh,gf mbn xvzc.")
ONE_THING = [name for name in HEADS if name != "even"]


@pytest.fixture(scope="module")
def found():
    return head_roles(hand_built(), Probe("ours by hand", tuple(ProbeText(text) for text in TEXTS)))


@pytest.mark.parametrize("name", ONE_THING)
def test_a_head_that_does_one_thing_scores_1_on_it_and_low_elsewhere(found, name):
    scores = found.of(SiteRef("decoder", 0), HEADS.index(name))
    # several copies of a mark share the weight of one row, so exactly 1 is what they come to together
    assert scores[name] == pytest.approx(1.0, abs=1e-4)
    others = {other: scores[other] for other in ONE_THING if other != name}
    assert max(others.values()) < 0.5, others


@pytest.mark.parametrize("name", ONE_THING)
def test_it_is_the_first_of_all_heads(found, name):
    (site, head, score), *_ = found.ranked(name)
    assert (site, HEADS[head]) == (SiteRef("decoder", 0), name)
    assert score == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", ONE_THING)
def test_one_run_is_ranked_likewise(name):
    model = hand_built()
    trace = run(model, TEXTS[0])
    answer = which_heads(model, trace, name)
    assert answer.scores[0, HEADS.index(name)] == pytest.approx(1.0, abs=1e-4)
    assert answer.ranked(trace.sites)[0][1] == HEADS.index(name)


def test_a_head_that_attends_evenly_scores_what_is_said_of_one(found):
    even = found.of(SiteRef("decoder", 0), HEADS.index("even"))
    for name in ONE_THING:
        assert even[name] == pytest.approx(found.even[found.roles.index(name), 0], abs=1e-6)


def test_distance_explains_heads_that_follow_it_and_breadth_is_that_of_even_attention(found):
    previous, self_, even = (found.of(SiteRef("decoder", 0), HEADS.index(n)) for n in ("previous", "self", "even"))
    assert previous["positional"] == pytest.approx(1.0, abs=1e-4)
    assert self_["positional"] == pytest.approx(1.0, abs=1e-4)
    assert found.of(SiteRef("decoder", 0), HEADS.index("special"))["positional"] < 0.3
    assert even["breadth"] == pytest.approx(1.0, abs=1e-6)
    assert previous["breadth"] == pytest.approx(0.0, abs=1e-4)


def test_what_it_lacks_is_said_in_a_sentence(found):
    said = {role: sentence for role, stack, sentence in found.why if stack == "decoder"}
    assert "vocabulary" in said["rare"]
    assert "CoNLL-U" in said["det-to-dependent"]
    assert all(sentence.endswith(".") for sentence in said.values())
    assert np.isnan(found.scores[found.roles.index("rare")]).all()
