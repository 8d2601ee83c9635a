"""The player: step by step, back and sideways in its cache, with the rows of one head on the way."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from attention_models import decode, run
from attention_models.attention import attention
from attention_models.attention import row_cache as kept_rows
from attention_models.attention.inputs import WHOLE, Part
from attention_models.engine.engine import Engine
from attention_models.protocol import values
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.interventions import Mask
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import SiteRef
from tests.models.asking import ask, failure_of, opened

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
ENGLISH = "The old teacher lives in a small house."
SITE = SiteRef("decoder", 5)
GREEDY = DecodeSettings()
DRAWN = DecodeSettings(strategy="sample", temperature=1.2, top_k=50, seed=7)


@pytest.fixture(scope="module")
def translator() -> Engine:
    return opened("en-es")


def step(engine, number=1, ids=(), text=TEXT, settings=GREEDY, steps=20, interventions=(), **more) -> DecodeStepView:
    request = DecodeStepRequest(
        inputs=RunInputs(text, interventions=interventions),
        settings=settings,
        steps=steps,
        number=number,
        ids=tuple(ids),
        **more,
    )
    view = ask(engine, request)
    assert isinstance(view, DecodeStepView), view
    return view


def played(engine, count, text=TEXT, **more) -> list[DecodeStepView]:
    views: list[DecodeStepView] = []
    for number in range(1, count + 1):
        views.append(step(engine, number, views[-1].ids if views else (), text, **more))
        if views[-1].ending:
            break
    return views


def drawn(engine, count, numbers, text=TEXT, settings=DRAWN, ids=(), **more) -> dict[int, list[DecodeStepView]]:
    """`count` steps of several samples side by side."""
    found: dict[int, list[DecodeStepView]] = {number: [] for number in numbers}
    written = dict.fromkeys(numbers, tuple(ids))
    for number in range(len(ids) + 1, len(ids) + count + 1):
        if not written:
            break
        request = DecodeSamplesRequest(
            inputs=RunInputs(text),
            settings=settings,
            steps=100,
            number=number,
            samples=tuple(written),
            ids=tuple(written.values()),
            **more,
        )
        view = ask(engine, request)
        assert isinstance(view, DecodeSamplesView), view
        for sample, each in zip(request.samples, view.steps, strict=True):
            found[sample].append(each)
        written = {s: each.ids for s, each in zip(written, view.steps, strict=True) if each.ending != "model"}
    return found


def _assert_alike(candidates, others) -> None:
    """The same candidates in the same order; a token that ran alone differs from one that ran in a row by rounding."""
    assert [(o.id, o.cut_by) for o in candidates] == [(o.id, o.cut_by) for o in others]
    np.testing.assert_allclose([o.probability for o in candidates], [o.probability for o in others], atol=1e-5)
    np.testing.assert_allclose([o.kept for o in candidates], [o.kept for o in others], atol=1e-5)


def rows(engine, ids, text=TEXT, site=SITE, head=5) -> DecodeRowsView:
    view = ask(engine, DecodeRowsRequest(inputs=RunInputs(text), ids=tuple(ids), site=site, head=head))
    assert isinstance(view, DecodeRowsView)
    return view


@pytest.mark.parametrize(
    "settings",
    [GREEDY, DecodeSettings(strategy="sample", temperature=1.5, top_k=30, seed=4), DecodeSettings(no_repeat_ngram=1)],
)
def test_it_writes_what_decode_writes(gpt, story_gpt, settings):
    views = played(gpt, 10, settings=settings, steps=10)
    expected = list(decode(story_gpt, TEXT, 10, **{n: getattr(settings, n) for n in settings.__slots__}))
    assert views[-1].ids == expected[-1].ids
    for view, other in zip(views, expected, strict=True):
        _assert_alike(view.candidates, other.candidates)
    assert sum(view.log_probability for view in views) == pytest.approx(expected[-1].log_probability, abs=1e-4)
    assert views[-1].whole == TEXT + expected[-1].text
    assert views[-1].ending == "steps"


def test_a_beam_search_writes_what_decode_writes(gpt, story_gpt):
    settings = DecodeSettings(strategy="beam", beams=3)
    views = [step(gpt, number, settings=settings, steps=6) for number in range(1, 7)]
    expected = list(decode(story_gpt, TEXT, 6, strategy="beam", beams=3))
    assert [view.beams for view in views] == [e.beams for e in expected]
    assert views[-1].ids == expected[-1].ids
    assert views[-1].ending == "steps"
    again = step(gpt, 3, settings=settings, steps=6)  # back: searched anew from the prompt
    assert again.beams == views[2].beams


@pytest.mark.parametrize("back_to", [0, 2, 5])
def test_going_back_and_sideways_gives_what_a_fresh_start_gives(gpt, back_to):
    ids = played(gpt, 6)[-1].ids[:back_to]
    sideways = step(gpt, back_to + 1, ids, forced=42)
    assert sideways.chosen is not None
    assert sideways.chosen.id == 42
    after = step(gpt, back_to + 2, sideways.ids)
    fresh = opened("story-gpt")
    expected = step(fresh, back_to + 2, (*ids, 42))
    assert after.ids == expected.ids
    _assert_alike(after.candidates, expected.candidates)


def test_the_cache_computes_one_token_a_step_and_reuses_the_others(gpt):
    prompt = len(gpt.workspace.model.tokenize(TEXT))
    views = played(gpt, 4)
    for number, view in enumerate(views, 1):
        assert len(view.cache) == 8
        for layer in view.cache:
            assert layer.stored == prompt + number - 1
            assert (layer.heads, layer.key_heads, layer.head_dim) == (8, 8, 32)
            assert layer.bytes == 2 * 4 * layer.stored * layer.key_heads * layer.head_dim  # float32 keys and values
        assert view.cache_bytes == sum(layer.bytes for layer in view.cache)
    assert [view.cache[0].computed for view in views[1:]] == [1, 1, 1]
    back = step(gpt, 2, views[0].ids)
    assert (back.cache[0].reused, back.cache[0].computed) == (prompt, 1)


def test_grouped_queries_share_what_is_stored(tiny_model, tiny_folder):
    engine = opened(str(tiny_folder("llama")))
    layer = played(engine, 2)[-1].cache[0]
    assert layer.heads > layer.key_heads
    assert layer.bytes == 2 * 4 * layer.stored * layer.key_heads * layer.head_dim


def test_rows_that_are_too_many_are_not_kept_and_come_from_a_whole_pass(gpt, monkeypatch):
    monkeypatch.setattr(kept_rows, "MOST_BYTES", 100)
    views = played(gpt, 3, "Anna gave a dog to Tom", site=SITE, head=3)
    first = rows(gpt, views[-1].ids, "Anna gave a dog to Tom", head=3)
    again = rows(gpt, views[-1].ids, "Anna gave a dog to Tom", head=3)
    assert not first.from_steps
    assert not again.from_steps
    monkeypatch.undo()
    rows(gpt, views[-1].ids, "Anna gave a dog to Tom", head=3)
    kept = rows(gpt, views[-1].ids, "Anna gave a dog to Tom", head=3)
    assert kept.from_steps
    np.testing.assert_array_equal(kept.weights, first.weights)


def test_rows_of_a_sliding_window_stand_where_their_keys_do(tiny_folder, tiny_model):
    engine, model = opened(str(tiny_folder("gemma2"))), tiny_model("gemma2")
    text = "The black cat is sleeping on the table."
    prompt = [token.id for token in model.tokenize(text)]
    for site in (SiteRef("decoder", 0), SiteRef("decoder", 1)):
        ids: tuple[int, ...] = ()
        for number in range(1, 6):
            view = step(engine, number, ids, text, site=site, head=1, forced=20 + number)
            before = len(prompt) + number - 2 if ids else 0  # read in the steps before
            added, kept = len(prompt) + number - 1 - before, model.config.sliding_window - 1
            window = (min(before, kept), added, min(before + added, kept))
            full = (before, added, before + added)  # layer 1 has no window
            assert [(c.reused, c.computed, c.stored) for c in view.cache] == [window, full, window]
            ids = view.ids
        found = rows(engine, ids, text, site, 1)
        trace = run(model, [*prompt, *ids[:-1]])
        assert found.from_steps
        np.testing.assert_allclose(found.weights, trace.weights(site, 1), atol=1e-5, rtol=0)
        np.testing.assert_array_equal(found.masked, trace.masked(site, 1))


def test_the_sources_keys_are_computed_once(translator):
    views = played(translator, 3, ENGLISH)
    source = len(translator.workspace.model.tokenize(ENGLISH))
    cross = [[layer for layer in view.cache if layer.stack == "cross"] for view in views]
    assert [(c[0].reused, c[0].computed) for c in cross] == [(0, source), (source, 0), (source, 0)]


def test_rows_assembled_from_steps_are_a_whole_passs_rows(gpt, story_gpt):
    text = "Anna gave the dog to"
    views = played(gpt, 8, text, site=SITE, head=5)
    view = rows(gpt, views[-1].ids, text)
    assert view.from_steps
    tokens = [token.id for token in story_gpt.tokenize(text)] + list(views[-1].ids[:-1])
    trace = run(story_gpt, tokens)
    assert view.weights.shape == (len(tokens), len(tokens))
    np.testing.assert_allclose(view.weights, trace.weights(SITE, 5), atol=1e-5, rtol=0)
    np.testing.assert_array_equal(view.masked, trace.masked(SITE, 5))
    earlier = rows(gpt, views[3].ids, text)
    assert earlier.from_steps
    np.testing.assert_array_equal(earlier.weights, view.weights[: len(earlier.weights), : len(earlier.weights)])


@pytest.mark.parametrize("kept", [True, False])
def test_of_a_long_text_the_last_rows_are_shown_and_held(gpt, story_gpt, monkeypatch, kept):
    """Held whole, one head of 32,768 tokens takes 4 GB."""
    text = "Anna gave the dog to Tom and Tom gave the dog to"
    prompt = [token.id for token in story_gpt.tokenize(text)]
    monkeypatch.setattr(values, "LARGEST_WHOLE", 10)
    monkeypatch.setattr(kept_rows, "LARGEST_WHOLE", 10)
    if not kept:
        monkeypatch.setattr(kept_rows, "MOST_BYTES", 10)
    read: list[int] = []
    weights = attention.weights

    def counted(x, part=WHOLE, out=None):
        found = weights(x, part, out)
        if part.keys is None:
            read.append(found[0, 0].numel())
        return found

    monkeypatch.setattr(attention, "weights", counted)
    views = played(gpt, 8, text, site=SITE, head=5)
    for view in (views[-1], views[2], views[5]):
        found = rows(gpt, view.ids, text)
        tokens = [*prompt, *view.ids[:-1]]
        shown = 100 // len(tokens)
        assert found.weights.shape == (shown, len(tokens)) == (len(found.queries), len(found.keys))
        assert (found.first, found.chose) == (len(tokens) - shown, shown - 1)
        assert found.prompt == max(0, len(prompt) - found.first)
        assert found.from_steps == kept
        trace = run(story_gpt, tokens)
        np.testing.assert_allclose(
            found.weights, weights(trace.at(SITE, 5), Part([5]))[0, 0, -shown:], atol=1e-5, rtol=0
        )
        np.testing.assert_array_equal(found.masked, trace.masked(SITE, 5, slice(-shown, None)))
    assert read
    assert max(read) <= 100


def test_rows_whose_last_keys_are_hidden_are_as_wide_as_the_text(gpt, story_gpt):
    text, edit = "Anna gave the dog to", (Mask("painted", cells=tuple((i, i, False) for i in range(1, 30))),)
    views = played(gpt, 4, text, site=SITE, head=5, interventions=edit)
    found = ask(
        gpt, DecodeRowsRequest(inputs=RunInputs(text, interventions=edit), ids=views[-1].ids, site=SITE, head=5)
    )
    tokens = [*(token.id for token in story_gpt.tokenize(text)), *views[-1].ids[:-1]]
    trace = run(story_gpt, tokens, interventions=edit)
    assert isinstance(found, DecodeRowsView)
    assert found.from_steps
    np.testing.assert_allclose(found.weights, trace.weights(SITE, 5), atol=1e-5, rtol=0)
    np.testing.assert_array_equal(found.masked, trace.masked(SITE, 5))


@pytest.mark.parametrize("largest", [1024, 4])
def test_the_row_of_the_mask_that_was_filled_is_told(monkeypatch, story_bert, largest):
    monkeypatch.setattr(values, "LARGEST_WHOLE", largest)
    monkeypatch.setattr(kept_rows, "LARGEST_WHOLE", largest)
    engine, text = opened("story-bert"), "Tom [MASK] to the park. He [MASK] a dog."
    site, masked = SiteRef("encoder", 3), text
    ids: tuple[int, ...] = ()
    for number in (1, 2):
        view = step(engine, number, ids, text, site=site, head=5)
        ids = view.ids
        found = rows(engine, ids, text, site)
        assert found.first + found.chose == view.place
        trace = run(story_bert, masked)
        here = trace.weights(site, 5)[view.place]
        np.testing.assert_allclose(found.weights[found.chose], here, atol=1e-6, rtol=0)
        assert found.queries[found.chose] == trace.tokens[view.place].word
        assert len(found.queries) == (len(trace.tokens) if largest == 1024 else 1)
        masked = view.text


@pytest.mark.parametrize("site", [SiteRef("decoder", 2), SiteRef("cross", 1), SiteRef("encoder", 0)])
def test_rows_of_a_translation(translator, en_es, site):
    views = played(translator, 5, ENGLISH, site=site, head=3)
    view = rows(translator, views[-1].ids, ENGLISH, site, 3)
    assert view.from_steps == (site.stack != "encoder")
    trace = run(en_es, ENGLISH, target=list(views[-1].ids[:-1]))
    np.testing.assert_allclose(view.weights, trace.weights(site, 3), atol=1e-5, rtol=0)
    assert view.weights.shape == (len(view.queries), len(view.keys))


@pytest.mark.full
def test_rows_of_every_beam_are_a_whole_passs_rows(gpt, story_gpt):
    text, settings = "Anna gave the dog to", DecodeSettings(strategy="beam", beams=4)
    views = [step(gpt, n, text=text, settings=settings, steps=8, site=SITE, head=5) for n in range(1, 9)]
    prompt = [token.id for token in story_gpt.tokenize(text)]
    for view in views[1:]:
        assert sum(beam.kept for beam in view.beams) == (4 if view is not views[-1] else 0)
        for beam in view.beams:  # also those that were pruned
            found = rows(gpt, beam.ids, text)
            assert found.from_steps
            assert found.weights.shape == (len(prompt) + view.request.number - 1,) * 2
            trace = run(story_gpt, [*prompt, *beam.ids[:-1]])
            np.testing.assert_allclose(found.weights, trace.weights(SITE, 5), atol=1e-5, rtol=0)
            np.testing.assert_array_equal(found.masked, trace.masked(SITE, 5))


@pytest.mark.full
@pytest.mark.parametrize("site", [SiteRef("cross", 2), SiteRef("decoder", 3)])
def test_rows_of_every_beam_of_a_translation(translator, en_es, site):
    settings = DecodeSettings(strategy="beam", beams=4)
    views: list[DecodeStepView] = []
    while not views or not views[-1].ending:
        number = len(views) + 1
        views.append(step(translator, number, text=ENGLISH, settings=settings, steps=30, site=site, head=1))
    assert any(beam.finished for view in views for beam in view.beams)
    for view in views:
        for beam in view.beams:
            if beam.kept or beam.finished:
                found = rows(translator, beam.ids, ENGLISH, site, 1)
                assert found.from_steps
                trace = run(en_es, ENGLISH, target=list(beam.ids[:-1]) or None)
                np.testing.assert_allclose(found.weights, trace.weights(site, 1), atol=1e-5, rtol=0)


def test_a_beam_says_what_it_wrote(gpt):
    settings = DecodeSettings(strategy="beam", beams=3)
    views = [step(gpt, number, settings=settings, steps=4) for number in range(1, 5)]
    assert {beam.text for beam in views[-1].beams if beam.ids == views[-1].ids} == {views[-1].text}
    assert len({beam.text for beam in views[-1].beams}) == len(views[-1].beams)
    layer = views[-1].cache[0]
    assert layer.texts == 3
    assert layer.bytes == 3 * 2 * 4 * layer.stored * layer.key_heads * layer.head_dim


def test_samples_side_by_side_are_those_written_alone(gpt):
    together = drawn(gpt, 8, range(5), site=SITE, head=5)
    assert len({views[-1].ids for views in together.values()}) == 5
    layer = together[0][-1].cache[0]
    assert (layer.texts, layer.computed) == (5, 1)
    for number, views in together.items():
        alone = played(gpt, 8, settings=dataclasses.replace(DRAWN, sample=number), steps=100)
        assert views[-1].ids == alone[-1].ids
        for view, other in zip(views, alone, strict=True):
            _assert_alike(view.candidates, other.candidates)
            assert view.drawn == other.drawn
            assert view.request == dataclasses.replace(other.request, site=SITE, head=5)
        assert (views[-1].text, views[-1].whole) == (alone[-1].text, alone[-1].whole)


def test_sample_0_is_what_was_drawn_before_there_were_several(gpt):
    views = played(gpt, 3, settings=DRAWN)
    assert [view.drawn for view in views] == [np.random.default_rng((7, number)).random() for number in (1, 2, 3)]
    other = played(gpt, 3, settings=dataclasses.replace(DRAWN, sample=2))
    assert [view.drawn for view in other] == [np.random.default_rng((7, n, 2)).random() for n in (1, 2, 3)]


def test_samples_end_one_by_one_and_the_others_go_on(translator):
    settings = DecodeSettings(strategy="sample", temperature=0.8, seed=1)
    together = drawn(translator, 40, range(4), ENGLISH, settings)
    lengths = {len(views) for views in together.values()}
    assert len(lengths) > 1
    assert all(views[-1].ending == "model" for views in together.values())
    for number, views in together.items():
        alone = played(translator, 40, ENGLISH, settings=dataclasses.replace(settings, sample=number), steps=100)
        assert views[-1].ids == alone[-1].ids


@pytest.mark.parametrize("engine", ["gpt", "translator"])
def test_samples_are_taken_up_where_they_were_left(request, engine):
    engine, text = request.getfixturevalue(engine), TEXT if engine == "gpt" else ENGLISH
    begun = played(engine, 2, text)[-1].ids  # they go on from here
    whole = drawn(engine, 6, (0, 1, 2), text, ids=begun)
    halves = drawn(engine, 3, (0, 1, 2), text, ids=begun)
    played(engine, 1, text)
    request_ = DecodeSamplesRequest(
        inputs=RunInputs(text),
        settings=DRAWN,
        steps=100,
        number=6,
        samples=(0, 1, 2),
        ids=tuple(views[-1].ids for views in halves.values()),
    )
    drawn(engine, 1, (0, 1), text)  # others come between
    view = ask(engine, request_)
    assert isinstance(view, DecodeSamplesView)
    for each, expected in zip(view.steps, whole.values(), strict=True):
        assert each.ids == expected[3].ids
        _assert_alike(each.candidates, expected[3].candidates)


def test_rows_of_every_sample_are_a_whole_passs_rows(gpt, story_gpt):
    prompt = [token.id for token in story_gpt.tokenize(TEXT)]
    for views in drawn(gpt, 6, range(4), site=SITE, head=2).values():
        found = rows(gpt, views[-1].ids, head=2)
        assert found.from_steps
        trace = run(story_gpt, [*prompt, *views[-1].ids[:-1]])
        np.testing.assert_allclose(found.weights, trace.weights(SITE, 2), atol=1e-5, rtol=0)


def test_a_masked_model_draws_several_samples_too(bert):
    text = "Tom and [MASK] went to the [MASK]."
    together = drawn(bert, 2, range(3), text)
    for number, views in together.items():
        alone = played(bert, 2, text, settings=dataclasses.replace(DRAWN, sample=number))
        assert [view.whole for view in views] == [view.whole for view in alone]


def test_another_heads_rows_come_from_a_whole_pass_and_then_go_on_from_there(gpt):
    views = played(gpt, 4, site=SITE, head=5)
    other = rows(gpt, views[-1].ids, head=1)
    assert not other.from_steps
    step5 = step(gpt, 5, views[-1].ids, site=SITE, head=1)
    grown = rows(gpt, step5.ids, head=1)
    assert grown.from_steps
    np.testing.assert_allclose(grown.weights[:-1, :-1], other.weights, atol=1e-6)


def test_the_most_confident_mask_is_filled_first(bert):
    text = "Tom and [MASK] went to the [MASK]."
    views = played(bert, 5, text)
    assert len(views) == 2
    assert [view.masks for view in views] == [1, 0]
    assert views[-1].ending == "masks"
    assert "[MASK]" not in views[-1].text
    first, second = views
    assert first.chosen is not None
    assert second.place != first.place
    again = step(bert, 2, (first.chosen.id,), text)
    assert again.whole == second.whole
    assert "no [MASK] to fill" in failure_of(bert, _request(text="No mask here.")).sentence
    beam = failure_of(bert, _request(text=text, settings=DecodeSettings(strategy="beam")))
    assert "left to right" in beam.sentence


def _request(text=TEXT, settings=GREEDY, number=1, ids=()) -> DecodeStepRequest:
    return DecodeStepRequest(inputs=RunInputs(text), settings=settings, steps=10, number=number, ids=ids)


def test_a_full_context_is_said(gpt, story_gpt):
    limit = story_gpt.info.context
    assert limit is not None
    words = "the " * (limit - 2)
    text = words.strip()
    prompt = len(story_gpt.tokenize(text))
    views = played(gpt, 10, text)
    assert len(views) == limit - prompt
    assert views[-1].ending == "context"
    full = failure_of(gpt, _request(text, number=len(views) + 1, ids=views[-1].ids))
    assert "The context is full" in full.sentence


def test_an_empty_text_is_refused_and_nothing_is_lost(gpt):
    before = played(gpt, 2)[-1]
    assert "empty" in failure_of(gpt, _request("")).sentence
    assert step(gpt, 3, before.ids).request.number == 3


def test_a_model_that_writes_nothing_says_so(tiny_folder):
    engine = opened(str(tiny_folder("bert")))
    assert engine.workspace.model is not None
    engine.workspace.model.info = dataclasses.replace(engine.workspace.model.info, family="encoder")
    assert "nothing to decode" in failure_of(engine, _request()).sentence


def test_before_a_model_is_open_the_question_is_stale():
    assert failure_of(Engine(), _request()).stale


def test_another_model_forgets_the_text():
    engine = opened("story-gpt")
    played(engine, 2)
    ask(engine, LoadRequest(ticket=9, reference="en-es"))
    assert step(engine, text=ENGLISH).cache[0].reused == 0
