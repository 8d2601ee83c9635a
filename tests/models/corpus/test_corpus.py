"""A file of texts: its means and lists held against transformers' eager weights, one text at a time, in float64."""

from __future__ import annotations

import gc
import json
import tracemalloc

import numpy as np
import pytest

from attention_models import read_corpus, run
from attention_models.corpus import corpus as reading
from attention_models.corpus.corpus_export import save_means
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.corpus import FARTHEST, MOST_HITS, POSITIONS, CorpusQuestion, CorpusRequest, CorpusView
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Mask, Positions, Scale
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, failure_of, opened
from tests.models.eager import attentions

TEXTS = [
    "Tom and Anna went to the park.",
    "Anna gave the ball to Tom.",
    "The dog is playing with a red ball in the garden.",
    "Tom fell.",
    "She was singing and talking to Anna.",
]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS))
    return path


@pytest.mark.short("gpt2", "bert")
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "gpt_neo"])
def test_means_are_those_of_eager_weights_text_by_text(tiny_model, lines, kind):
    model = tiny_model(kind)
    view = read_corpus(model, lines)
    assert (view.texts, view.lines, view.left_out_count, view.ended) == (5, 9, 0, True)
    maps = [attentions(tiny.eager_run(model, text), model) for text in TEXTS]
    for i, ref in enumerate(view.sites):
        for head in range(maps[0][ref].shape[0]):
            sums, counts = np.zeros((POSITIONS, POSITIONS)), np.zeros((POSITIONS, POSITIONS))
            apart: dict[int, list[float]] = {}
            for weights in maps:
                w = weights[ref][head].astype(np.float64)
                seen = np.ones(w.shape, bool) if kind == "bert" else np.tril(np.ones(w.shape, bool))
                if kind == "gpt_neo":
                    seen = weights[ref][head] > 0  # which says no more of its mask
                n = min(len(w), POSITIONS)
                sums[:n, :n] += (w * seen)[:n, :n]
                counts[:n, :n] += seen[:n, :n]
                for q, k in zip(*np.nonzero(seen), strict=True):
                    if seen[q].sum() > 1 and abs(q - k) <= FARTHEST:
                        apart.setdefault(int(q - k), []).append(w[q, k])
            there = counts > 0
            assert (view.texts_at[i] == counts).all()
            lengths = np.array([len(weights[ref][head]) for weights in maps])
            places = np.arange(POSITIONS)
            both = (np.maximum(*np.meshgrid(places, places)) < lengths[:, None, None]).sum(axis=0)
            assert (view.texts_with[i] == both).all()
            np.testing.assert_allclose(view.mean[i, head][there], sums[there] / counts[there], atol=2e-6)
            assert np.isnan(view.mean[i, head][~there]).all()
            for place, distance in enumerate(view.distances):
                mean = view.by_distance[i, head, place]
                if int(distance) in apart:
                    assert mean == pytest.approx(np.mean(apart[int(distance)]), abs=2e-6)
                else:
                    assert np.isnan(mean)


def test_what_a_head_attends_to_most_is_listed_with_its_place(story_gpt, lines):
    view = read_corpus(story_gpt, lines, attends_to="word:ball")
    site, head = SiteRef("decoder", 5), 5
    found = []
    for line, text in zip((1, 3, 5, 7, 9), TEXTS, strict=True):
        trace = run(story_gpt, text)
        words = [token.word for token in trace.tokens]
        keys = [i for i, word in enumerate(words) if word == "ball"]
        weights = trace.weights(site, head).astype(np.float64)
        found += [(weights[q, keys].sum(), line, q) for q in range(len(words)) if keys and q >= keys[0]]
    found.sort(reverse=True)
    hits = view.hits[5][head]
    assert len(hits) == min(MOST_HITS, len(found))
    for hit, (score, line, query) in zip(hits, found, strict=False):
        assert hit.score == pytest.approx(score, abs=1e-5)
        assert (hit.line, hit.query) == (line, query)
        assert hit.weight == pytest.approx(run(story_gpt, hit.text).weights(site, head)[query, hit.key], abs=1e-6)
        assert hit.key_word == "ball"
        assert hit.text == TEXTS[(line - 1) // 2]
    assert view.scores[5, head] == pytest.approx(np.mean([score for score, _, _ in found]), abs=1e-5)


def test_more_places_than_are_listed_keep_the_best(story_gpt, tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("\n".join(f"The {'very ' * (i % 3)}old man saw the {'small ' * (i % 2)}dog." for i in range(90)))
    view = read_corpus(story_gpt, path, attends_to="previous")
    every = []
    for line in path.read_text().split("\n")[:6]:  # they repeat after six
        trace = run(story_gpt, line)
        every += np.diagonal(trace.weights(SiteRef("decoder", 4), 1), offset=-1).tolist()
    best = sorted(every, reverse=True)
    hits = [hit.score for hit in view.hits[4][1]]
    assert hits == sorted(hits, reverse=True)
    assert hits[0] == pytest.approx(best[0], abs=1e-5)
    assert len(hits) == MOST_HITS


def test_rows_of_a_token_are_gathered_across_texts(story_gpt, lines):
    view = read_corpus(story_gpt, lines, rows_of="Anna")
    assert [row.line for row in sorted(view.rows, key=lambda row: row.line)] == [1, 3, 9]
    for row in view.rows:
        trace = run(story_gpt, row.text)
        assert trace.tokens[row.query].word == "Anna"
        assert row.keys == tuple(token.word for token in trace.tokens)
        for place, site in enumerate(view.row_sites):
            for head in (0, 5):
                given = row.weights[place][head]
                assert np.isnan(given[row.query + 1 :]).all()  # masked, which is not a weight of 0
                expected = trace.weights(site, head, [row.query])[0]
                np.testing.assert_allclose(given[: row.query + 1], expected[: row.query + 1], atol=1e-5)


def test_translators_write_or_say_what_they_are_given(en_es, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("Good morning.\tBuenos días.\nThank you.\n")
    view = read_corpus(en_es, path, attends_to="special")
    assert {site.stack for site in view.sites} == {"encoder", "decoder", "cross"}
    assert view.texts == 2
    cross = next(i for i, site in enumerate(view.sites) if site.stack == "cross")
    seconds = {hit.text: hit.second for hit in view.hits[cross][0]}
    assert seconds["Good morning."] == "Buenos días."
    assert seconds["Thank you."]  # its own words
    assert view.written == 1
    trace = run(en_es, "Good morning.", target="Buenos días.")
    other = run(en_es, "Thank you.", target=seconds["Thank you."])
    first = (trace.weights(("cross", 0), 1)[0, 0] + other.weights(("cross", 0), 1)[0, 0]) / 2
    at = next(i for i, site in enumerate(view.sites) if site == SiteRef("cross", 0))
    assert view.mean[at, 1, 0, 0] == pytest.approx(first, abs=1e-5)


def test_pairs_are_read_as_pairs(story_bert, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("text,second\nTom fell.,He cried.\n")
    view = read_corpus(story_bert, path)
    trace = run(story_bert, ("Tom fell.", "He cried."))
    assert view.tokens == len(trace.tokens)
    assert view.mean[2, 3, 1, 2] == pytest.approx(trace.weights(2, 3)[1, 2], abs=1e-5)


def test_a_recurrent_model_reads_one_text_after_the_other(tmp_path):
    path = tmp_path / "dates.txt"
    path.write_text("12 March 1998\n5/7/2001\n")
    view = ask(opened("dates-bahdanau"), CorpusRequest(path=str(path), question=CorpusQuestion("next")))
    assert isinstance(view, CorpusView)
    assert view.sites == (SiteRef("cross", 0),)
    assert view.hits[0][0][0].score > 0.5


def test_a_pattern_that_a_stack_cannot_have_is_not_listed(story_bert, lines):
    view = read_corpus(story_bert, lines, attends_to="next")
    assert np.isnan(view.scores).all()
    assert not any(view.hits)


# --------------------------------------------------------------------------- bad input


def test_lines_that_do_not_fit_are_left_out_and_said(tiny_model, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("Tom fell.\n" + "Tom " * 300 + "\nAnna gave the ball.\n")
    view = read_corpus(tiny_model("gpt2"), path)
    assert (view.texts, view.left_out_count) == (2, 1)
    assert view.left_out[0].startswith("Line 2 is left out")
    path.write_text("Tom " * 300)
    with pytest.raises(InputError, match=r"None of the texts of long.txt fits .* Line 1 is left out"):
        read_corpus(tiny_model("gpt2"), path)


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "no line"), (b"Tom.\n\0\n", "line 2 holds zero bytes"), (b"a" * 500_000, "line 1")]
)
def test_a_file_that_is_no_text_is_said_by_its_line(tiny_model, tmp_path, content, said):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_corpus(tiny_model("gpt2"), path)


def test_what_was_read_before_a_line_that_cannot_be_read_counts(gpt, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes("\n".join(TEXTS).encode() + b"\n\xff\xff\n")
    view = ask(gpt, CorpusRequest(path=str(path)))
    assert isinstance(view, CorpusView)
    while not view.ended:
        view = ask(gpt, CorpusRequest(path=str(path), have=view.answers))
        assert isinstance(view, CorpusView)
    assert view.texts == 5
    assert "line 6" in view.broken
    with pytest.raises(InputError, match="line 6"):
        read_corpus(gpt.workspace.model, path)


@pytest.mark.parametrize(
    "changes",
    [
        [Scale(0.3), Mask("window", window=2, site=SiteRef("decoder", 1))],
        [Ablation("head", SiteRef("decoder", 0), 1), Ablation("mlp", SiteRef("decoder", 1))],
        [Mask("painted", cells=((3, 0, False), (20, 4, False)))],
        [Positions("off")],
    ],
)
def test_means_of_changed_runs_are_those_of_each_text_run_so(tiny_model, lines, changes):
    model = tiny_model("gpt2")
    view = read_corpus(model, lines, interventions=changes)
    traces = [run(model, text, interventions=changes) for text in TEXTS]
    plain = read_corpus(model, lines)
    for i, ref in enumerate(view.sites):
        for head in range(2):
            weights = [trace.weights(ref, head).astype(np.float64) for trace in traces]
            seen = view.texts_at[i] > 0
            for q, k in zip(*np.nonzero(seen), strict=True):
                here = [w[q, k] for w in weights if q < len(w) and k <= q]
                mean = np.sum(here) / view.texts_at[i, q, k]
                assert view.mean[i, head, q, k] == pytest.approx(mean, abs=2e-6)
    assert np.nanmax(np.abs(view.mean - plain.mean)) > 1e-3


def test_a_change_that_the_model_cannot_make_is_said(gpt, lines):
    request = CorpusRequest(path=str(lines), interventions=(Ablation("head", SiteRef("decoder", 99), 0),))
    assert "layer" in failure_of(gpt, request).sentence


def test_a_question_that_there_is_not_is_refused(tiny_model, lines):
    with pytest.raises(InputError, match="no question"):
        read_corpus(tiny_model("gpt2"), lines, attends_to="grammar")


def test_pictures_and_models_without_attention_have_no_corpus(lines):
    for name, said in (("vit-quickdraw", "looks at pictures"), ("dates-bottleneck", "no attention")):
        assert said in failure_of(opened(name), CorpusRequest(path=str(lines))).sentence


# --------------------------------------------------------------------------- in the engine


def test_it_is_read_in_moments_and_goes_on_where_it_was(gpt, tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS * 12))
    monkeypatch.setattr(reading, "_MOMENT", 0.0)
    monkeypatch.setattr(reading, "_AT_ONCE", 10)
    request = CorpusRequest(path=str(path))
    answers, shares = [], []
    while True:
        view = ask(gpt, request)
        assert isinstance(view, CorpusView)
        answers.append(view.texts)
        shares.append(view.share)
        if view.ended:
            break
        request = CorpusRequest(path=str(path), have=view.answers)
    assert answers == sorted(answers)
    assert shares == sorted(shares)
    assert all(abs(share - texts / 60) < 0.03 for share, texts in zip(shares, answers, strict=True))
    assert len(answers) == view.answers > 5
    assert answers[-1] == 60
    monkeypatch.undo()
    whole = read_corpus(gpt.workspace.model, path)
    np.testing.assert_allclose(view.mean, whole.mean, atol=2e-6)


def test_it_is_called_off_between_two_layers_and_nothing_half_counted_is_kept(gpt, lines):
    calls = 0

    def soon() -> bool:
        nonlocal calls
        calls += 1
        return calls > 9

    request = CorpusRequest(path=str(lines))
    with pytest.raises(Cancelled):
        ask(gpt, request, soon)
    assert calls == 10
    assert gpt.workspace.kept_of_model.get(reading.CorpusReading) is None
    done = ask(gpt, request)
    assert isinstance(done, CorpusView)


@pytest.mark.full
def test_memory_does_not_grow_with_the_file(tiny_model, tmp_path, monkeypatch):
    """The most that Python holds, of a file four times as long."""
    monkeypatch.setattr(reading, "_AT_ONCE", 20)
    model, path = tiny_model("gpt2"), tmp_path / "texts.txt"
    held = []
    for times in (12, 48):
        path.write_text("\n".join(TEXTS * times))
        gc.collect()
        tracemalloc.start()
        view = read_corpus(model, path)
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert view.texts == 5 * times
    assert held[1] < 1.3 * held[0]


def test_means_are_written_as_arrays(tiny_model, lines, tmp_path):
    view = read_corpus(tiny_model("marian"), lines)
    save_means(view, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as file:
        for i, site in enumerate(view.sites):
            np.testing.assert_array_equal(file[f"{site.stack}.{site.layer}"], view.mean[i])
            np.testing.assert_array_equal(file[f"{site.stack}.{site.layer}.texts"], view.texts_at[i])
            np.testing.assert_array_equal(file[f"{site.stack}.{site.layer}.distance"], view.by_distance[i])
        assert json.loads(str(file["meta"]))["texts"] == 5
        np.testing.assert_array_equal(file["distances"], np.arange(-FARTHEST, FARTHEST + 1))
