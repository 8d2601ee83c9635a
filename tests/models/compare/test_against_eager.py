"""Two runs side by side, against two eager runs of transformers that are subtracted."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import Adapter, Mask, Scale, compare_runs, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.values import SiteRef
from tests.models import lora, tiny
from tests.models.compare.eager_difference import cell, changes, groups_of, one_for_one
from tests.models.eager import attentions, target_for
from tests.models.tiny import TinyFolder, TinyModel

HERE = "Tom and Anna went to the park. Anna gave the ball to"
THERE = "Tom and Anna went to the park. Tom gave the ball to"
ATOL = 1e-5

KINDS = ["gpt2", "llama", "gemma2", "gpt_neox", "bert", "t5", "marian", "bart"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_change_is_the_difference_of_two_eager_runs(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    target = target_for(model)
    view = compare_runs(model, HERE, THERE, target=target, other_target=target)
    assert view.matching == "index"
    assert view.done == 1.0
    theirs = [attentions(tiny.eager_run(model, text, target), model) for text in (HERE, THERE)]
    found = {(c.site, c.head): c.change for c in view.changes}
    assert set(found) == {(site.ref, head) for site in view.a.sites for head in range(site.heads)}
    for site in view.a.sites:
        one = compare_runs(model, HERE, THERE, target=target, other_target=target, site=site.ref, head=1)
        assert one.queries is not None
        assert one.keys is not None
        assert one.maps is not None
        queries, keys = groups_of(one.queries), groups_of(one.keys)
        at_site = [{site.ref: w[site.ref]} for w in theirs]
        expected = changes(at_site[0], at_site[1], queries, keys)
        for place, value in expected.items():
            assert found[place] == pytest.approx(value, abs=ATOL)
        p, q = (w[site.ref][1] for w in theirs)
        for r, rows in enumerate(queries):
            for k, columns in enumerate(keys):
                both = [bool(i and j) for i, j in zip(rows, columns, strict=True)]
                shown = one.maps.a[r, k], one.maps.b[r, k], one.maps.difference[r, k]
                assert [not np.isnan(w) for w in shown] == [*both, all(both)]
                if all(both):
                    of_a, of_b = (cell(w, i, j) for w, i, j in zip((p, q), rows, columns, strict=True))
                    assert shown == pytest.approx((of_a, of_b, of_a - of_b), abs=ATOL)
    assert max(found.values()) > 100 * ATOL


def test_the_figures_above_are_those_of_two_eager_runs(story_gpt: Model) -> None:
    view = compare_runs(story_gpt, HERE, THERE)
    logits = [tiny.eager_run(story_gpt, text).logits[0, -1].double() for text in (HERE, THERE)]
    shares = [z.softmax(dim=-1) for z in logits]
    by_label = {story_gpt.piece_label(i): i for i in range(story_gpt.info.vocabulary)}
    for said in view.said:
        id_ = by_label[said.label]
        assert said.probability_a == pytest.approx(float(shares[0][id_]), abs=1e-5)
        assert said.probability_b == pytest.approx(float(shares[1][id_]), abs=1e-5)
        assert said.logit_a == pytest.approx(float(logits[0][id_]), abs=1e-3)
        assert said.logit_b == pytest.approx(float(logits[1][id_]), abs=1e-3)
    for side, text in ((view.a, HERE), (view.b, THERE)):
        ids = story_gpt.encode(text).inputs["input_ids"][0]
        log_p = tiny.eager_run(story_gpt, text).logits[0].double().log_softmax(dim=-1)
        expected = -log_p[torch.arange(len(ids) - 1), ids[1:]].mean()
        assert side.output.loss == pytest.approx(float(expected), abs=1e-5)
    assert [view.a.output.candidates[0].label, view.b.output.candidates[0].label] == ["␣Tom", "␣Anna"]
    assert {said.label for said in view.said} >= {c.label for c in view.b.output.candidates}


@pytest.mark.parametrize("matching", ["index", "similarity"])
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5", "gpt_oss", "mistral"])
def test_a_state_beside_itself_is_0_and_each_head_finds_itself(tiny_model: TinyModel, kind: str, matching: Any) -> None:
    model = tiny_model(kind)
    target = target_for(model)
    other = open_checkpoint(model.info.folder)  # so that it runs a second time
    for beside in (None, other):
        view = compare_runs(model, HERE, other_model=beside, target=target, other_target=target, matching=matching)
        assert view.same_run is (beside is None)
        assert {change.change for change in view.changes} == {0.0}
        assert [(c.site, c.head) for c in view.changes] == [(c.other_site, c.other_head) for c in view.changes]
        assert view.maps is not None
        assert (view.maps.largest, view.maps.largest_at) == (0.0, None)
        assert (view.maps.difference == 0).all()
        assert all(said.probability_a == said.probability_b for said in view.said)
        if matching == "similarity":
            assert {change.similarity for change in view.changes} == {1.0}


def test_a_head_that_was_changed_by_hand_is_the_one_that_is_found(tiny_model: TinyModel) -> None:
    model = tiny_model("llama")
    other = open_checkpoint(model.info.folder)
    size = model.info.head_dim
    module: Any = other.module
    with torch.no_grad():
        module.model.layers[2].self_attn.q_proj.weight[size : 2 * size] *= 0.5  # of head 1 in the last layer
    view = compare_runs(model, HERE, other_model=other)
    assert [(c.site, c.head) for c in view.changes if c.change > 0] == [(SiteRef("decoder", 2), 1)]
    assert (view.changed_most[0].site, view.changed_most[0].head) == (SiteRef("decoder", 2), 1)
    p, q = (attentions(self_run(m), model)[SiteRef("decoder", 2)][1] for m in (model, other))
    assert view.changed_most[0].change == pytest.approx(float(np.abs(p - q).sum(1).mean() / 2), abs=ATOL)


@torch.no_grad()
def self_run(model: Model) -> Any:
    """An eager run of the module as it is now."""
    module: Any = model.module
    eager = type(module)(deepcopy(module.config))
    eager.load_state_dict(module.state_dict())
    eager.set_attn_implementation("eager")
    return eager.eval()(**model.encode(HERE).inputs, output_attentions=True)


def test_heads_that_changed_places_are_found_by_similarity(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    other = open_checkpoint(model.info.folder)
    size, heads = model.info.head_dim, model.info.stacks[0].heads
    order = [*range(1, heads), 0]  # the head that stands at each place
    rows = torch.cat([torch.arange(head * size, (head + 1) * size) for head in order])
    attention: Any = other.module.transformer.h[1].attn  # type: ignore[union-attr, index]
    with torch.no_grad():
        for part in range(3):
            columns = part * model.info.width + rows
            for t in (attention.c_attn.weight, attention.c_attn.bias):
                t[..., part * model.info.width : (part + 1) * model.info.width] = t[..., columns].clone()
        attention.c_proj.weight.copy_(attention.c_proj.weight[rows].clone())
    by_index = compare_runs(model, HERE, other_model=other)
    view = compare_runs(model, HERE, other_model=other, matching="similarity", site=("decoder", 1), head=2)
    assert view.matched_over == len(view.a.tokens)
    for c in view.changes:
        expected = order.index(c.head) if c.site.layer == 1 else c.head
        assert (c.other_site, c.other_head) == (c.site, expected)
        assert c.change < 1e-6
        assert c.similarity > 1 - 1e-6
    assert (view.b.site, view.b.head) == (SiteRef("decoder", 1), 1)
    assert max(c.change for c in by_index.changes if c.site.layer == 1) > 0.05


def test_similarity_is_that_of_numpy(tiny_model: TinyModel) -> None:
    model, other = tiny_model("gpt2"), tiny_model("llama")
    view = compare_runs(model, HERE, other_model=other, matching="similarity")
    assert view.why_not == ()
    assert view.matching == "similarity"
    ours, theirs = (attentions(tiny.eager_run(m, HERE), m) for m in (model, other))
    a = {(site, h): w[h] for site, w in ours.items() for h in range(len(w))}
    b = {(site, h): w[h] for site, w in theirs.items() for h in range(len(w))}
    apart = {(i, j): float(np.abs(p - q).sum(1).mean() / 2) for i, p in a.items() for j, q in b.items()}
    taken: dict[Any, Any] = {}
    while len(taken) < min(len(a), len(b)):
        free = {k: v for k, v in apart.items() if k[0] not in taken and k[1] not in taken.values()}
        i, j = min(free, key=lambda pair: free[pair])
        taken[i] = j
    assert {(c.site, c.head): (c.other_site, c.other_head) for c in view.changes} == taken
    for c in view.changes:
        assert c.similarity == pytest.approx(1 - apart[(c.site, c.head), (c.other_site, c.other_head)], abs=ATOL)
        assert c.change == pytest.approx(1 - c.similarity, abs=ATOL)


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_before_and_after_an_intervention(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    edits: list[Intervention] = [
        Scale(0.5),
        Mask("window", window=3, site=SiteRef(model.info.stacks[0].stack, 0), head=1),
    ]
    view = compare_runs(model, HERE, other_interventions=edits)
    runs = [run(model, HERE), run(model, HERE, interventions=edits)]
    pairs = one_for_one(len(runs[0].tokens))
    weights = [{s.ref: np.stack([trace.weights(s, h) for h in range(s.heads)]) for s in trace.sites} for trace in runs]
    for place, value in changes(weights[0], weights[1], pairs, pairs).items():
        found = view.counterpart(*place)
        assert found is not None
        assert found.change == pytest.approx(value, abs=1e-6)
    assert view.a.interventions == ()
    assert view.b.interventions[0] == "scores × 0.5, everywhere"
    assert view.maps is not None
    assert (view.maps.masked_a == (runs[0].weights(0, 0) == 0)).all()


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`:UserWarning")
def test_a_base_beside_its_tuned_model(
    tiny_model: TinyModel, tiny_folder: TinyFolder, tmp_path: Path, kind: str
) -> None:
    from peft import PeftModel

    base = tiny_model(kind)
    folder = lora.save(kind, tiny_folder(kind), tmp_path / "tuned")
    tuned = open_checkpoint(folder)
    view = compare_runs(base, HERE, other_model=tuned)
    theirs = PeftModel.from_pretrained(tiny.eager(base), str(folder))
    with torch.no_grad():
        out = theirs(**base.encode(HERE).inputs, output_attentions=True)
    pairs = one_for_one(len(view.a.tokens))
    weights = attentions(tiny.eager_run(base, HERE), base), attentions(out, base)
    for place, value in changes(weights[0], weights[1], pairs, pairs).items():
        found = view.counterpart(*place)
        assert found is not None
        assert found.change == pytest.approx(value, abs=ATOL)
    assert max(c.change for c in view.changes) > 0.01
    assert (view.a.adapter, bool(view.b.adapter)) == ("", True)
    assert {name for name, _ in view.b.files} > {name for name, _ in view.a.files}
    # both of one model: with the adapter, and without it
    within = compare_runs(tuned, HERE, interventions=[Adapter()], other_model=tuned)
    for before, after in zip(view.changes, within.changes, strict=True):
        assert after.change == pytest.approx(before.change, abs=ATOL)
    assert within.a.interventions == ("adapter off",)
    assert (within.a.adapter, within.b.adapter) == ("", view.b.adapter)


def test_there_are_two_ways_to_match_heads(story_gpt: Model) -> None:
    with pytest.raises(ValueError, match="by index or by similarity, not by “likeness”"):
        compare_runs(story_gpt, "Tom", "Anna", matching="likeness")  # type: ignore[arg-type]
