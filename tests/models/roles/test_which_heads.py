"""Every head of a run, scored by what it attends to: held against transformers' own weights, summed in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import run
from attention_models.attention import attention
from attention_models.attention.incremental import BlockSize
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Mask
from attention_models.protocol.roles import PATTERNS, HeadQuestion, WhichHeadsRequest, WhichHeadsView
from attention_models.protocol.values import SiteRef
from attention_models.roles import which_heads as asking
from attention_models.roles.token_features import is_punctuation, rare_ids
from attention_models.roles.which_heads import which_heads
from tests.models import tiny
from tests.models.asking import ask, forward
from tests.models.eager import attentions

TEXT = "Tom and Anna went to the park. Anna gave the ball to Tom, and Tom gave the ball to Anna."
TARGET = "Tom fue al parque. Ana fue al parque."


def cells_by_hand(name: str, queries, keys, ordered: bool = True) -> list[list[int]]:
    """Of each query the keys that count, by the words of the documentation."""
    rare = rare_ids(keys) if ordered else set()
    marks = [token.special or is_punctuation(token.word) for token in keys]
    found = []
    for i, query in enumerate(queries):
        after = queries[i + 1] if i + 1 < len(queries) else None
        if after is not None and (after.special or is_punctuation(after.word)):
            after = None
        found.append(
            [
                j
                for j, key in enumerate(keys)
                if {
                    "previous": j == i - 1,
                    "self": j == i,
                    "first": j == 0,
                    "special": marks[j],
                    "copy": j < i and key.id == query.id,
                    "induction": 0 < j < i and keys[j - 1].id == query.id,
                    "next": after is not None and not marks[j] and key.word == after.word,
                    "rare": key.id in rare and not marks[j],
                }[name]
            ]
        )
    return found


def by_hand(weights: np.ndarray, cells: list[list[int]], visible: np.ndarray) -> tuple[float, float, int]:
    """(score, that of an even head, queries) of one head's weights (queries, keys)."""
    scores, even = [], []
    for i, keys in enumerate(cells):
        seen = [j for j in keys if visible[i, j]]
        if seen and visible[i].sum() > 1:
            scores.append(weights[i, seen].astype(np.float64).sum())
            even.append(len(seen) / visible[i].sum())
    return (float(np.mean(scores)), float(np.mean(even)), len(scores)) if scores else (np.nan, np.nan, 0)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "marian", "gpt_neo"])
def test_patterns_are_those_of_eager_weights(tiny_model, kind):
    model = tiny_model(kind)
    target = TARGET if model.seq2seq else None
    text = TEXT[:40] if model.info.context and model.info.context < 80 else TEXT
    target = target and target[:20]
    trace = run(model, text, target=target)
    theirs = attentions(tiny.eager_run(model, text, target), model)
    compared = 0
    for role in PATTERNS:
        answer = which_heads(model, trace, role.name)
        for place, site in enumerate(trace.sites):
            if answer.why[place]:
                assert np.isnan(answer.scores[place]).all()
                continue
            queries = trace.source if site.stack == "encoder" and trace.source else trace.tokens
            keys = trace.tokens if site.stack == "decoder" or not trace.source else trace.source
            cells = cells_by_hand(role.name, queries, keys)
            visible = (
                np.tri(len(queries), len(keys), dtype=bool) if site.causal else np.ones((len(queries), len(keys)), bool)
            )
            if kind == "gpt_neo":  # which says no more of its mask than its weights do
                visible = theirs[site.ref][0] > 0
            for head in range(site.heads):
                score, even, counted = by_hand(theirs[site.ref][head], cells, visible)
                np.testing.assert_allclose(answer.scores[place, head], score, atol=1e-6)
                compared += 1
            np.testing.assert_allclose(answer.even[place], even, atol=1e-6)
            assert answer.queries[place] == counted
    assert compared > 10


def test_a_cell_a_row_a_column_and_painted_cells(story_gpt):
    trace = run(story_gpt, TEXT)
    site = SiteRef("decoder", 5)
    weights = np.stack([[trace.weights(s, h) for h in range(s.heads)] for s in trace.sites]).astype(np.float64)
    visible = np.tri(len(trace.tokens), dtype=bool)

    cell = which_heads(story_gpt, trace, HeadQuestion("cell", site, query=13, key=1))
    np.testing.assert_allclose(cell.scores, weights[:, :, 13, 1], atol=1e-6)
    np.testing.assert_allclose(cell.even, 1 / 14, atol=1e-7)

    hidden = which_heads(story_gpt, trace, HeadQuestion("cell", site, query=1, key=13))
    assert (hidden.scores == 0).all()  # it is masked

    column = which_heads(story_gpt, trace, HeadQuestion("column", site, key=3))
    np.testing.assert_allclose(column.scores, weights[:, :, 3:, 3].mean(axis=2), atol=1e-6)
    assert (column.queries == len(trace.tokens) - 3).all()

    row = which_heads(story_gpt, trace, HeadQuestion("row", site, head=5, query=13))
    np.testing.assert_allclose(row.scores, np.minimum(weights[:, :, 13], weights[5, 5, 13]).sum(axis=2), atol=1e-6)
    best, head, overlap = row.ranked(trace.sites)[0]
    assert (best, head) == (site, 5)
    assert overlap == pytest.approx(1.0, abs=1e-6)

    cells = ((13, 1), (13, 3), (9, 3), (2, 8))  # the last one lies in the future
    painted = which_heads(story_gpt, trace, HeadQuestion("painted", site, cells=cells))
    expected = (weights[:, :, 13, 1] + weights[:, :, 13, 3] + weights[:, :, 9, 3]) / 2
    np.testing.assert_allclose(painted.scores, expected, atol=1e-6)
    even = ((visible[13, [1, 3]] / 14).sum() + 1 / 10) / 2
    np.testing.assert_allclose(painted.even, even, atol=1e-6)


def test_heads_of_an_edited_run_are_those_of_the_edited_run(story_gpt):
    """One head of a layer sees less than the others: its own queries count."""
    site = SiteRef("decoder", 2)
    trace = run(story_gpt, TEXT, interventions=[Mask("window", window=2, site=site, head=3)])
    answer = which_heads(story_gpt, trace, "first")
    edited = trace.weights(site, 3).astype(np.float64)
    np.testing.assert_allclose(answer.scores[2, 3], edited[1:2, 0].mean(), atol=1e-6)  # only query 1 still sees it
    np.testing.assert_allclose(answer.scores[2, 4], trace.weights(site, 4)[1:, 0].astype(np.float64).mean(), atol=1e-6)


def test_a_question_about_one_stack_leaves_the_others_out(en_es):
    trace = run(en_es, "Good morning.", target="Buenos días.")
    answer = which_heads(en_es, trace, HeadQuestion("cell", SiteRef("cross", 1), query=1, key=2))
    for place, site in enumerate(trace.sites):
        assert bool(answer.why[place]) == (site.stack != "cross")
        assert np.isnan(answer.scores[place]).all() == (site.stack != "cross")


def test_of_a_long_text_rows_are_asked_a_few_at_a_time(story_gpt, monkeypatch):
    """The blocks add up to the whole, and none of them holds the maps of all heads."""
    trace = run(story_gpt, (TEXT + " ") * 20)
    tokens = len(trace.tokens)
    whole = which_heads(story_gpt, trace, "induction")
    largest = 0
    weights = attention.weights

    def watched(x, part):
        nonlocal largest
        w = weights(x, part)
        largest = max(largest, w.numel())
        return w

    monkeypatch.setattr(attention, "weights", watched)
    monkeypatch.setattr(asking, "_BLOCK", BlockSize(8 * tokens * 16))
    in_parts = which_heads(story_gpt, trace, "induction")
    assert largest <= 8 * tokens * 16 < 8 * tokens * tokens / 10
    np.testing.assert_allclose(in_parts.scores, whole.scores, atol=1e-6)
    assert (in_parts.queries == whole.queries).all()


def test_an_answer_comes_in_parts_and_goes_on_where_it_was(gpt, monkeypatch):
    forward(gpt, TEXT, ticket=7)
    monkeypatch.setattr("attention_models.forward.current_run.WORK_PER_ANSWER", {"cpu": 1})
    question, done, answers = HeadQuestion("previous"), 0.0, 0
    scores = np.full(1, np.nan)
    while done < 1:
        view = ask(gpt, WhichHeadsRequest(run=7, question=question, have=done))
        assert isinstance(view, WhichHeadsView)
        assert view.done > done
        scores = view.scores
        done, answers = view.done, answers + 1
    assert answers > 2
    assert not np.isnan(scores).any()
    assert not scores.flags.writeable


def test_bad_questions_are_answered_in_a_sentence(story_gpt):
    trace = run(story_gpt, TEXT)
    site = SiteRef("decoder", 0)
    with pytest.raises(InputError, match="no cell"):
        which_heads(story_gpt, trace, HeadQuestion("cell", site, query=999, key=0))
    with pytest.raises(InputError, match="no row"):
        which_heads(story_gpt, trace, HeadQuestion("row", site, query=999))
    with pytest.raises(InputError, match="Paint"):
        which_heads(story_gpt, trace, HeadQuestion("painted", site))
    with pytest.raises(ValueError, match="There is no question"):
        HeadQuestion("nsubj-to-head")
    with pytest.raises(ValueError, match="names the site"):
        HeadQuestion("cell")


def test_padding_of_a_batch_is_neither_asked_nor_answered(story_gpt):
    texts = [TEXT, "Tom and Anna went."]
    _, short = run(story_gpt, texts)
    alone = run(story_gpt, texts[1])
    for name in ("previous", "special", "first", "rare", "self"):
        in_batch, by_itself = which_heads(story_gpt, short, name), which_heads(story_gpt, alone, name)
        np.testing.assert_allclose(in_batch.scores, by_itself.scores, atol=1e-5)
        assert (in_batch.queries == by_itself.queries).all()


def test_pictures_and_vectors_have_no_words(tiny_model):
    model = tiny_model("bert_bare")
    answer = which_heads(model, run(model, "Tom went to the park."), "next")
    assert all("encoder" in sentence for sentence in answer.why)
    assert np.isnan(answer.scores).all()
    assert torch.is_grad_enabled()
