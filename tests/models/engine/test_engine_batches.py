"""Several texts run by the engine: stepping through them runs nothing, and each is as in the model's own call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.decoding import DecodeStepView, into_input
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.interventions import Intervention, Scale
from attention_models.protocol.prediction import ClassesRequest, ClassesView, PredictionRequest, PredictionView
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, opened

TEXTS = ("Tom and Anna went to the park.", "A cat", "There was a dog, and it ran. Tom")
ENGLISH = ("The cat drinks milk.", "I live here.", "My friend bought an old book yesterday.")


def forward(engine: Engine, batch: Batch, ticket: int, *edits: Intervention, target: str | None = None) -> Ran:
    ran = ask(engine, ForwardRequest(inputs=RunInputs(batch, target, interventions=edits), ticket=ticket))
    assert isinstance(ran, Ran), ran
    return ran


@contextmanager
def counted(engine: Engine) -> Iterator[list[int]]:
    """How often the module ran meanwhile."""
    calls: list[int] = []
    assert engine.workspace.model is not None
    handle = engine.workspace.model.module.register_forward_pre_hook(lambda *_: calls.append(1))
    yield calls
    handle.remove()


def weights(engine: Engine, ran: Ran, site: SiteRef) -> np.ndarray:
    view = ask(engine, HeadRequest(run=ran.run, site=site, head=3))
    assert isinstance(view, HeadView)
    return view.weights


@pytest.fixture(scope="module")
def gpt_engine() -> Engine:
    return opened("story-gpt")


@pytest.fixture(scope="module")
def spanish() -> Engine:
    return opened("en-es")


@pytest.mark.parametrize("edits", [(), (Scale(0.5),)])
def test_stepping_through_the_texts_runs_nothing(
    gpt_engine: Engine, story_gpt: Model, edits: tuple[Intervention, ...]
) -> None:
    batch, site = Batch(TEXTS), SiteRef("decoder", 2)
    with counted(gpt_engine) as calls:
        forward(gpt_engine, batch, 10, *edits)
        assert len(calls) == 1
        for shown in (1, 2, 0, 2):
            ran = forward(gpt_engine, batch.showing(shown), 11 + shown, *edits)
            theirs = run(story_gpt, list(TEXTS), interventions=edits)[shown]
            assert ran.tokens == theirs.tokens
            np.testing.assert_array_equal(weights(gpt_engine, ran, site), theirs.weights(site, 3))
        assert len(calls) == 1
        for other in (replace(batch, padding="left"), replace(batch, texts=TEXTS[:2])):
            forward(gpt_engine, other, 20, *edits)
        assert len(calls) == 3


def test_what_is_compared_with_runs_once_for_all_texts(gpt_engine: Engine) -> None:
    batch = Batch(TEXTS)
    forward(gpt_engine, batch, 30, Scale(0.5))
    current = gpt_engine.workspace.run
    assert current is not None
    with counted(gpt_engine) as calls:
        plain = [current.untouched(lambda: False)]
        for shown in (1, 2):
            forward(gpt_engine, batch.showing(shown), 30 + shown, Scale(0.5))
            assert gpt_engine.workspace.run is not None
            plain.append(gpt_engine.workspace.run.untouched(lambda: False))
        assert len(calls) == 1
    current = gpt_engine.workspace.run
    assert current is not None
    assert [trace.tokens for trace in plain] == [trace.tokens for trace in current.traces]
    assert not any(trace.interventions for trace in plain)


@pytest.mark.parametrize("padding", ["right", "left"])
def test_the_strip_holds_for_each_text(gpt_engine: Engine, padding: str) -> None:
    for shown in range(3):
        ran = forward(gpt_engine, Batch(TEXTS, padding, shown), 40 + shown)  # type: ignore[arg-type]
        report = ask(gpt_engine, TrustRequest(run=ran.run))
        assert isinstance(report, TrustReport)
        assert report.holds
        assert report.alone is not None
        assert report.alone.weight_difference < 7e-6
        assert report.alone.logit_difference < 7e-6
        assert report.input is not None
        assert report.input.equal


def test_the_input_grows_in_the_text_that_is_shown(gpt_engine: Engine) -> None:
    batch = Batch(TEXTS, "right", 1)
    inputs = forward(gpt_engine, batch, 50).inputs
    view = ask(gpt_engine, into_input(inputs))
    assert isinstance(view, DecodeStepView)
    alone = opened("story-gpt")
    assert isinstance(ask(alone, ForwardRequest(inputs=RunInputs(TEXTS[1]), ticket=2)), Ran)
    single = ask(alone, into_input(RunInputs(TEXTS[1])))
    assert isinstance(single, DecodeStepView)
    assert view.text == single.text
    assert view.whole == batch.with_prompt(TEXTS[1] + view.text)


def test_a_mask_is_filled_in_the_text_that_is_shown() -> None:
    engine = opened("story-bert")
    batch = Batch(("Tom and Anna went.", "Tom [MASK] home.", Pair("Tom", "ran [MASK]")), "left", 1)
    view = ask(engine, into_input(forward(engine, batch, 2).inputs))
    assert isinstance(view, DecodeStepView)
    assert isinstance(view.whole, Batch)
    assert "[MASK]" not in view.whole.plain
    assert view.whole == batch.with_prompt(view.whole.prompt)
    pair = ask(engine, into_input(forward(engine, batch.showing(2), 3).inputs))
    assert isinstance(pair, DecodeStepView)
    assert isinstance(pair.whole, Batch)
    assert isinstance(pair.whole.prompt, Pair)


@pytest.mark.full
@pytest.mark.parametrize("padding", ["right", "left"])
def test_each_text_is_translated_as_alone_and_equals_eager(spanish: Engine, padding: str) -> None:
    batch = Batch(ENGLISH, padding)  # type: ignore[arg-type]
    with counted(spanish) as calls:
        ran = [forward(spanish, batch, 60)]
        before = len(calls)
        ran += [forward(spanish, batch.showing(shown), 60 + shown) for shown in (1, 2)]
        assert len(calls) == before
    model = open_checkpoint("en-es")
    own = [forward(opened("en-es"), Batch((text,)), 2) for text in ENGLISH]
    assert [one.written for one in ran] == [one.written for one in own]
    assert len({sum(not token.padding for token in one.tokens) for one in ran}) > 1  # so that some are padded
    tokenizer = model.tokenizer
    assert spanish.workspace.run is not None
    rows = [[token.id for token in one.tokens if not token.padding] for one in own]
    longest, fill = max(map(len, rows)), model.config.pad_token_id
    made = tokenizer(list(ENGLISH), padding=True, padding_side=padding, return_tensors="pt")
    decoded = []
    for row in rows:
        more = [fill] * (longest - len(row))
        decoded.append(row + more if padding == "right" else more + row)
    eager = tiny.eager(model)
    for place, trace in enumerate(spanish.workspace.run.traces):
        assert [token.id for token in trace.source] == made["input_ids"][place].tolist()
        assert [token.id for token in trace.tokens] == decoded[place]
        with torch.no_grad():  # the text alone: in a batch transformers' own forward counts padding on the left
            out = eager(
                **tokenizer(ENGLISH[place], return_tensors="pt"),
                decoder_input_ids=torch.tensor([rows[place]]),
                output_attentions=True,
            )
        real, read = ([i for i, t in enumerate(side) if not t.padding] for side in (trace.tokens, trace.source))
        for layer, theirs in enumerate(out.cross_attentions):
            ours = np.stack([trace.weights(("cross", layer), head) for head in range(8)])
            np.testing.assert_allclose(ours[:, real][:, :, read], theirs[0].numpy(), atol=1e-6)
        np.testing.assert_allclose(trace.logits[real], out.logits[0].numpy(), atol=1e-5, rtol=1e-5)


def test_one_target_may_be_typed_and_the_others_written(spanish: Engine) -> None:
    own = forward(spanish, Batch(ENGLISH), 70).written
    batch = Batch(ENGLISH, "right", 0, (None, "Vivo", None))
    with counted(spanish) as calls:
        assert forward(spanish, batch, 71).written == own
        assert len(calls) == 1  # what was written stays
        assert forward(spanish, batch.showing(1), 72, target="Vivo").written == "Vivo"
        assert len(calls) == 1
    typed = forward(spanish, batch.showing(1), 73, target="Vivo").tokens
    assert [token.text for token in typed if not token.padding] == ["", "Vivo"]
    assert typed[-1].padding


def test_padding_is_no_token_of_the_text(gpt_engine: Engine) -> None:
    ran = forward(gpt_engine, Batch(TEXTS, "right", 1), 80)
    last = max(i for i, token in enumerate(ran.tokens) if not token.padding)
    assert last < len(ran.tokens) - 1
    assert ran.unknown == 0  # the token that fills up stands for unknown words too
    view = ask(gpt_engine, PredictionRequest(run=ran.run, positions=(last,)))
    assert isinstance(view, PredictionView)
    assert view.predictions[0].actual is None  # nothing follows


def test_what_is_wrong_is_said_of_its_text(gpt_engine: Engine, spanish: Engine) -> None:
    for engine in (gpt_engine, spanish):
        failure = ask(engine, ForwardRequest(inputs=RunInputs(Batch(("a cat", ""))), ticket=90))
        assert isinstance(failure, Failure)
        assert failure.sentence.startswith("Text 2: The input is empty.")
    long = "Tom and Anna " * 400
    for shown, cut in ((0, False), (1, True)):
        failure = ask(gpt_engine, ForwardRequest(inputs=RunInputs(Batch(("a cat", long), "right", shown)), ticket=91))
        assert isinstance(failure, Failure)
        assert failure.sentence.startswith("Text 2: This text is ")
        assert (failure.cut_to is not None) == cut


def test_classes_and_all_heads_are_those_of_the_text_alone() -> None:
    engine = opened("story-next")
    pairs = (Pair("Tom ran.", "So did Anna, who was late for school."), Pair("A cat.", "It ran."))
    for shown, pair in enumerate(pairs):
        ran = forward(engine, Batch(pairs, "right", shown), 2 + shown)
        found = ask(engine, ClassesRequest(run=ran.run, position=0))
        drawn = ask(engine, AtlasRequest(run=ran.run, size=64))
        alone = opened("story-next")
        one = ask(alone, ForwardRequest(inputs=RunInputs(pair), ticket=2))
        assert isinstance(one, Ran)
        single = ask(alone, ClassesRequest(run=one.run, position=0))
        assert isinstance(found, ClassesView)
        assert isinstance(single, ClassesView)
        assert isinstance(drawn, AtlasView)
        for ours, theirs in zip(found.classes, single.classes, strict=True):
            assert ours.logit == pytest.approx(theirs.logit, abs=1e-4)
        count = len(one.tokens)
        whole = ask(alone, AtlasRequest(run=one.run, size=64))
        assert isinstance(whole, AtlasView)
        np.testing.assert_allclose(drawn.images[..., :count, :count], whole.images, atol=1e-5)
