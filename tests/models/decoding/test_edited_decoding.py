"""Writing with interventions: a cached step gives what a whole edited pass gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import decode, run
from attention_models.decoding.cached_run import CachedRun, prevents_caching, start_run
from attention_models.decoding.choosing import end_ids
from attention_models.engine.engine import Engine
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.request import Result
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import SiteRef
from tests.models.asking import ask, failure_of, opened

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
ENGLISH = "The old teacher lives in a small house."
STEPS = 8
DECODER, CROSS, ENCODER = SiteRef("decoder", 2), SiteRef("cross", 1), SiteRef("encoder", 1)

KEPT: list[tuple[Intervention, ...]] = [
    (Scale(0.3),),
    (Scale(0.0, DECODER, 3), Scale(2.0)),
    (Mask("window", window=4),),
    (Mask("blocks", window=5, site=DECODER),),
    (Mask("causal"),),
    (Mask("prefix", window=1),),
    (Mask("painted", cells=((13, 2, False), (15, 13, False), (16, 0, False)), site=DECODER, head=1),),
    (Positions("off"),),
    (Mask("window", window=3, site=DECODER, head=0), Scale(0.5), Positions("off")),
    (Ablation("mlp", DECODER), Ablation("attention", SiteRef("", 0)), Ablation("norm2", SiteRef("decoder", 3))),
]
ANEW: list[tuple[Intervention, ...]] = [
    (Mask("full"),),
    (Mask("none", site=DECODER, head=2),),
    (Mask("padding", window=2),),
    (Mask("prefix", window=400),),
    (Mask("painted", cells=((2, 16, True),)),),
    (Mask("full", site=DECODER), Positions("off"), Scale(0.7)),
    (Mask("full"), Ablation("mlp", DECODER)),
]
ACROSS: list[tuple[Intervention, ...]] = [
    (Scale(0.2, CROSS),),
    (Mask("window", window=3, site=CROSS),),
    (Mask("padding", window=3, site=CROSS),),
    (Mask("causal", site=CROSS, head=0),),
    (Mask("window", window=2, site=ENCODER), Scale(1.5, ENCODER, 0)),
    (Ablation("cross", SiteRef("decoder", 1)), Ablation("mlp", ENCODER)),
]


def assert_steps_are_whole_passes(model: Model, text: str, interventions: tuple[Intervention, ...]) -> CachedRun:
    """Greedy steps, the logits of each against one pass over everything."""
    writing = start_run(model, model.encode(text), interventions)
    assert isinstance(writing, CachedRun)
    plain = start_run(model, model.encode(text))
    apart = 0.0
    for _ in range(STEPS):
        logits = writing.logits()
        ids = writing.ids[0].tolist()
        given = {"text": text, "target": ids[1:] or None} if model.seq2seq else {"text": ids}
        whole = run(model, **given, interventions=interventions).output_logits
        assert whole is not None
        torch.testing.assert_close(logits[0], whole[-1].float(), atol=1e-4, rtol=0)
        apart = max(apart, float((logits - plain.logits()).abs().max()))
        token = logits.argmax(dim=-1)
        writing.append(token)
        plain.append(token)
    changes = model.seq2seq or interventions not in ((Mask("causal"),), (Mask("prefix", window=1),))
    assert (apart > 1e-3) == changes  # the edit acted
    return writing


@pytest.mark.short("(Mask(kind='window', window=4, cells=Non*", "(Positions(mode='off', by=0),)")
@pytest.mark.parametrize("interventions", KEPT, ids=str)
def test_cached_steps_are_whole_edited_passes(story_gpt, interventions):
    writing = assert_steps_are_whole_passes(story_gpt, TEXT, interventions)
    assert writing.prevents_caching is None
    assert writing.cached == writing.prompt + STEPS - 1


@pytest.mark.short("(Mask(kind='full', window=None, cells=None, site=None, head=None),)", "(Mask(kind='painted'*")
@pytest.mark.parametrize("interventions", ANEW, ids=str)
def test_what_lets_a_token_see_the_future_is_read_anew_at_every_step(story_gpt, interventions):
    writing = assert_steps_are_whole_passes(story_gpt, TEXT, interventions)
    assert writing.prevents_caching in interventions
    assert writing.cached == writing.cache_bytes == 0
    assert writing.cache_layers() == ()


@pytest.mark.short(
    "(Scale(factor=0.2*", "(Mask(kind='window', window=2*", "(Ablation(part='cross'*", "(Mask(kind='full'*"
)
@pytest.mark.parametrize("interventions", [*ACROSS, *KEPT[:5], *KEPT[7:], ANEW[0], ANEW[2]], ids=str)
def test_translations_are_edited_at_every_stack(en_es, interventions):
    assert_steps_are_whole_passes(en_es, ENGLISH, interventions)


@pytest.mark.parametrize("kind", ["llama", "gemma2", "t5", "marian"])
@pytest.mark.parametrize(
    "interventions", [(Positions("off"),), (Mask("window", window=3), Scale(0.1)), (Mask("full"), Positions("off"))]
)
def test_rotations_and_biases_by_distance_are_edited_in_the_cache_too(tiny_model, kind, interventions):
    model = tiny_model(kind)
    writing = start_run(model, model.encode("one two three four five"), interventions)
    for _ in range(4):
        logits = writing.logits()
        ids = writing.ids[0].tolist()
        if model.seq2seq:
            trace = run(model, "one two three four five", target=ids[1:] or None, interventions=interventions)
        else:
            trace = run(model, ids, interventions=interventions)
        assert trace.output_logits is not None
        torch.testing.assert_close(logits[0], trace.output_logits[-1].float(), atol=1e-4, rtol=0)
        writing.append(logits.argmax(dim=-1))


def test_shifted_positions_go_on_counting(story_gpt):
    assert_steps_are_whole_passes(story_gpt, TEXT, (Positions("shift", 100),))


def test_a_prompt_may_see_itself_and_still_be_kept(story_gpt):
    prompt = len(story_gpt.tokenize(TEXT))
    for mask in (Mask("prefix", window=prompt), Mask("painted", cells=((1, prompt - 1, True),))):
        assert prevents_caching((mask,), prompt) is None
        assert_steps_are_whole_passes(story_gpt, TEXT, (mask,))
    assert prevents_caching((Mask("prefix", window=prompt + 1),), prompt) is not None


def test_beams_and_samples_are_edited_as_the_rest(story_gpt):
    """Each token's log-probability, along every text, from whole edited passes."""
    edits = (Scale(0.4), Mask("window", window=6))
    prompt = [token.id for token in story_gpt.tokenize(TEXT)]
    beam = list(decode(story_gpt, TEXT, 5, strategy="beam", beams=3, interventions=edits))[-1].beams
    drawn = list(decode(story_gpt, TEXT, 5, strategy="sample", samples=3, interventions=edits))[-1].samples
    texts = [(b.ids, b.log_probability) for b in beam[:4]] + [(s.ids, s.log_probability) for s in drawn]
    for ids, log_probability in texts:
        logits = run(story_gpt, [*prompt, *ids], interventions=edits).logits.astype(np.float64)
        log_p = (
            logits
            - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
            - logits.max(-1, keepdims=True)
        )
        expected = sum(log_p[len(prompt) - 1 + i, id_] for i, id_ in enumerate(ids))
        assert log_probability == pytest.approx(expected, abs=1e-4)


# --------------------------------------------------------------------------- the player


@pytest.fixture(scope="module")
def translator() -> Engine:
    return opened("en-es")


def played(engine: Engine, count: int, text: str, interventions: tuple[Intervention, ...], **more) -> DecodeStepView:
    ids: tuple[int, ...] = ()
    view: Result | None = None
    for number in range(1, count + 1):
        request = DecodeStepRequest(
            inputs=RunInputs(text, interventions=interventions),
            settings=DecodeSettings(),
            steps=50,
            number=number,
            ids=ids,
            **more,
        )
        view = ask(engine, request)
        assert isinstance(view, DecodeStepView), view
        ids = view.ids
        if view.ending:
            break
    assert isinstance(view, DecodeStepView)
    return view


def test_the_player_writes_what_the_edited_model_writes_and_then_what_the_model_writes(gpt, story_gpt):
    edits = (Scale(0.0, SiteRef("decoder", 5)), Mask("window", window=2))
    edited = played(gpt, 6, TEXT, edits)
    assert edited.ids == list(decode(story_gpt, TEXT, 6, interventions=edits))[-1].ids
    plain = played(gpt, 6, TEXT, ())
    assert plain.ids == list(decode(story_gpt, TEXT, 6))[-1].ids
    assert plain.ids != edited.ids


@pytest.mark.parametrize("edits", [(Mask("window", window=4), Scale(0.5)), (Mask("full"),)], ids=str)
def test_rows_are_those_of_the_edited_run(gpt, story_gpt, edits):
    site = SiteRef("decoder", 3)
    view = played(gpt, 5, TEXT, edits, site=site, head=2)
    assert (view.prevents_caching is not None) == (edits[0].kind == "full")
    rows = ask(gpt, DecodeRowsRequest(inputs=RunInputs(TEXT, interventions=edits), ids=view.ids, site=site, head=2))
    assert isinstance(rows, DecodeRowsView)
    assert rows.from_steps == (view.prevents_caching is None)
    prompt = [token.id for token in story_gpt.tokenize(TEXT)]
    trace = run(story_gpt, [*prompt, *view.ids[:-1]], interventions=edits)
    np.testing.assert_allclose(rows.weights, trace.weights(site, 2), atol=1e-5, rtol=0)
    if rows.masked is None:
        assert trace.masked(site, 2) is None
    else:
        np.testing.assert_array_equal(rows.masked, trace.masked(site, 2))


def test_masks_are_filled_by_the_edited_model(bert, story_bert):
    edits = (Scale(0.0),)
    view = played(bert, 1, "Tom went to the [MASK].", edits)
    trace = run(story_bert, "Tom went to the [MASK].", interventions=edits)
    place = [token.piece for token in trace.tokens].index("[MASK]")
    assert view.ids == (int(trace.logits[place].argmax()),)


def test_what_can_not_be_honoured_is_refused_in_a_sentence(gpt, translator):
    def refused(engine: Engine, *interventions: Intervention) -> str:
        request = DecodeStepRequest(
            inputs=RunInputs(TEXT, interventions=tuple(interventions)), settings=DecodeSettings(), steps=5, number=1
        )
        return failure_of(engine, request).sentence

    assert "this model has no such layer" in refused(gpt, Scale(0.5, SiteRef("cross", 0)))
    assert "only heads 0 to 7" in refused(gpt, Mask("causal", site=SiteRef("decoder", 1), head=9))
    assert "cannot be shifted" in refused(translator, Positions("shift", 3))
    assert "past the end" in refused(gpt, Positions("shift", 10_000))
    recurrent = opened("dates-bahdanau")
    assert "interventions are for transformers" in refused(recurrent, Scale(0.5))


def test_a_cached_painted_cell_counts_its_query_from_the_prompt(story_gpt):
    """The query of a cached step is not row 0 of the mask."""
    site, prompt = SiteRef("decoder", 0), len(story_gpt.tokenize(TEXT))
    cells = ((0, 0, False), (prompt, 3, False))
    writing = start_run(story_gpt, story_gpt.encode(TEXT), (Mask("painted", cells=cells, site=site),))
    assert isinstance(writing, CachedRun)
    writing.append(writing.logits().argmax(dim=-1))
    recorder = Recorder(story_gpt.module_names)
    with recording(recorder):
        writing.logits()
    assert writing.recorder is not None
    mask = writing.recorder.inputs[0].mask
    assert mask is not None
    assert torch.nonzero(~mask[0, 0, 0]).flatten().tolist() == [3]


def test_the_context_ends_an_edited_text_too(en_es):
    with pytest.raises(InputError, match="no such layer"):
        list(decode(en_es, ENGLISH, 3, interventions=(Scale(2.0, SiteRef("decoder", 40)),)))
    assert end_ids(en_es)
