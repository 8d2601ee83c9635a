"""A prompt and what was written after it, put together from the steps: held against one pass over the whole of it.

Rows that ran alone differ from rows of a pass by float32's rounding: 5e-6 in a weight, more where scores are unscaled
(T5); logits and the residual stream by 2e-5 of the largest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_models import run
from attention_models.decoding.cached_run import CachedRun
from attention_models.decoding.player import Player
from attention_models.decoding.samples import ContinuationRun
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.decoding import (
    DecodeSamplesRequest,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
    into_input,
)
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.prompt import plain_text
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, never, opened
from tests.models.room import room_of
from tests.models.tiny import TinyModel

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
WEIGHT, RELATIVE = 5e-6, 2e-5
GREEDY = DecodeSettings()
NOTHING: tuple[int, ...] = ()


def step(player: Player, inputs: RunInputs, ids: tuple[int, ...], forced: int | None = None) -> DecodeStepView:
    request = DecodeStepRequest(
        inputs=inputs, settings=GREEDY, steps=40, number=len(ids) + 1, ids=ids, forced=forced, top=3
    )
    return player.step(request, never)


def along(player: Player, inputs: RunInputs, ids: tuple[int, ...]) -> ContinuationRun:
    return player.read_along(replace(inputs, continuation=ids), never)


def assert_one_pass(model: Model, found: ContinuationRun, interventions: tuple[Intervention, ...] = ()) -> None:
    whole: Trace = run(model, found.read.text, target=found.target, interventions=interventions)
    trace = found.trace
    assert trace.tokens == whole.tokens
    assert trace.source == whole.source
    assert trace.sites == whole.sites
    for site, x in zip(whole.sites, whole.inputs, strict=True):
        for head in range(site.heads):
            exact = whole.weights(site, head)
            room = room_of(x, head, site.layer, torch.from_numpy(exact), WEIGHT, 2e-5)
            assert np.abs(trace.weights(site, head) - exact).max() <= room
            ours, theirs = trace.masked(site, head), whole.masked(site, head)
            assert (ours is None) == (theirs is None)
            assert ours is None or theirs is None or (ours == theirs).all()
    assert trace.residual.keys() == whole.residual.keys()
    for stack, stream in whole.residual.items():
        for ours_, theirs_ in zip(trace.residual[stack], stream, strict=True):
            assert float((ours_ - theirs_).abs().max()) <= RELATIVE * max(1.0, float(theirs_.abs().max()))
    assert np.abs(trace.logits - whole.logits).max() <= RELATIVE * max(1.0, float(np.abs(whole.logits).max()))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each forward pass of the decoder ran, from now on."""
    passes: list[int] = []
    logits = CachedRun.logits

    def counting(self: CachedRun) -> torch.Tensor:
        passes.append(self.ids.shape[1] - self.cached)
        return logits(self)

    monkeypatch.setattr(CachedRun, "logits", counting)
    return passes


EDITS: tuple[tuple[Intervention, ...], ...] = (
    (),
    (Scale(0.5), Mask("window", window=4)),
    (Mask("painted", cells=((15, 2, False), (3, 1, False)), site=SiteRef("decoder", 5), head=5),),
    (Ablation("mlp", SiteRef("decoder", 3)), Positions("off")),
)


@pytest.mark.short("untouched", "painted")
@pytest.mark.parametrize("edits", EDITS, ids=["untouched", "window and scale", "painted", "switched off"])
def test_each_step_is_the_pass_over_the_text(story_gpt: Model, edits: tuple[Intervention, ...]) -> None:
    player, inputs, ids = Player(story_gpt), RunInputs(TEXT, interventions=edits), NOTHING
    for _ in range(5):
        ids = step(player, inputs, ids).ids
        found = along(player, inputs, ids)
        assert_one_pass(story_gpt, found, edits)
    first = len(story_gpt.tokenize(TEXT))
    assert found.read.continued == tuple(range(first, first + 5))
    assert plain_text(found.read.whole or "").startswith(TEXT)


def test_a_step_and_its_row_are_one_forward(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass over the whole text, and none twice: what was read to show a token says what comes next."""
    player, inputs, ids = Player(story_gpt), RunInputs(TEXT), NOTHING
    ids = step(player, inputs, ids).ids
    along(player, inputs, ids)
    passes = counted(monkeypatch)
    for _ in range(5):
        ids = step(player, inputs, ids).ids
        shown = along(player, inputs, ids)
    assert passes == [1] * 5
    following = step(player, inputs, ids)
    assert passes == [1] * 5
    said = torch.from_numpy(shown.trace.logits[-1]).softmax(0)
    chosen = following.chosen
    assert chosen is not None
    assert chosen.id == int(said.argmax())
    assert chosen.probability == pytest.approx(float(said.max()), abs=1e-6)


def test_back_and_another_branch(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    player, inputs, ids = Player(story_gpt), RunInputs(TEXT), NOTHING
    for _ in range(5):
        ids = step(player, inputs, ids).ids
        along(player, inputs, ids)
    back = along(player, inputs, ids[:3])
    assert_one_pass(story_gpt, back)
    other = step(player, inputs, ids[:3], forced=story_gpt.tokenize(" park", special=False)[0].id).ids
    passes = counted(monkeypatch)
    assert_one_pass(story_gpt, along(player, inputs, other))
    assert passes == [1]
    assert_one_pass(story_gpt, along(player, inputs, ids))  # the first way again


def test_a_text_that_was_written_before_anybody_followed(story_gpt: Model) -> None:
    player, inputs, ids = Player(story_gpt), RunInputs(TEXT), NOTHING
    for _ in range(4):
        ids = step(player, inputs, ids).ids
    assert_one_pass(story_gpt, along(player, inputs, ids))


@pytest.mark.full
def test_samples_and_beams(story_gpt: Model) -> None:
    player, inputs = Player(story_gpt), RunInputs(TEXT)
    drawn = DecodeSettings(strategy="sample", seed=3)
    ids: tuple[tuple[int, ...], ...] = ((), (), ())
    for number in range(1, 4):
        request = DecodeSamplesRequest(
            inputs=inputs, settings=drawn, steps=20, number=number, samples=(0, 1, 2), ids=ids
        )
        ids = tuple(view.ids for view in player.samples(request, never).steps)
        for each in ids:
            assert_one_pass(story_gpt, along(player, inputs, each))
    beams = DecodeSettings(strategy="beam", beams=3)
    for number in range(1, 4):
        view = player.step(DecodeStepRequest(inputs=inputs, settings=beams, steps=20, number=number), never)
        for beam in view.beams:
            assert_one_pass(story_gpt, along(player, inputs, beam.ids))


def test_a_translation(en_es: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    player, inputs, ids = Player(en_es), RunInputs("The black cat sleeps on the table."), NOTHING
    for _ in range(5):
        view = step(player, inputs, ids)
        ids = view.ids
        found = along(player, inputs, ids)
        assert_one_pass(en_es, found)
        assert [token.id for token in found.trace.tokens[1:]] == list(ids)
    typed = RunInputs("The black cat sleeps on the table.", target="El gato")
    view = step(player, typed, ())
    found = along(player, typed, view.ids)
    assert_one_pass(en_es, found)
    assert found.read.continued == (3,)


def test_a_recurrent_model() -> None:
    engine = opened("recurrent-en-es-bahdanau")
    asked = RunInputs("I have an old book.")
    ids: tuple[int, ...] = ()
    for number in range(1, 5):
        view = ask(engine, DecodeStepRequest(inputs=asked, settings=GREEDY, steps=20, number=number, ids=ids))
        assert isinstance(view, DecodeStepView)
        ids = view.ids
        ran = ask(engine, ForwardRequest(inputs=RunInputs("I have an old book.", continuation=ids), ticket=number + 5))
        assert isinstance(ran, Ran)
        assert tuple(token.id for token in ran.tokens[1:]) == ids
        assert ran.continued == tuple(range(1, number + 1))


def test_masks_that_are_filled(story_bert: Model) -> None:
    player, inputs, ids = Player(story_bert), RunInputs("Tom [MASK] to the [MASK]."), NOTHING
    for _ in range(2):
        ids = step(player, inputs, ids).ids
        found = along(player, inputs, ids)
        assert_one_pass(story_bert, found)
        assert {found.trace.tokens[place].id for place in found.read.continued} == set(ids)
    assert "[MASK]" not in plain_text(found.read.whole or "")


def test_the_end_of_a_text_is_no_token_of_it(en_es: Model) -> None:
    player, inputs, ids, ending = Player(en_es), RunInputs("Good morning."), NOTHING, ""
    while ending != "model":
        view = step(player, inputs, ids)
        ids, ending = view.ids, view.ending
    found = along(player, inputs, ids)
    assert [token.id for token in found.trace.tokens[1:]] == list(ids[:-1])
    assert_one_pass(en_es, found)


@pytest.mark.short("mistral", "gpt_oss", "opt", "bart")
@pytest.mark.parametrize(
    "kind", ["llama", "mistral", "gemma2", "gpt_oss", "gpt_neox", "opt", "t5", "bart", "bert2bert"]
)
def test_families(tiny_model: TinyModel, kind: str) -> None:
    """Shared key heads, windows that forget keys, soft caps, sinks, position biases."""
    model = tiny_model(kind)
    player, inputs, ids = Player(model), RunInputs(tiny.SENTENCE), NOTHING
    for _ in range(4):
        view = step(player, inputs, ids)
        if view.ending:
            break
        ids = view.ids
        assert_one_pass(model, along(player, inputs, ids))
    assert ids


def test_what_is_written_into_a_text_that_went_on_goes_on_from_it() -> None:
    """Step and a click write after what is on screen."""
    engine = opened("story-gpt")
    first = ask(engine, DecodeStepRequest(inputs=RunInputs(TEXT), settings=GREEDY, steps=20, number=1))
    assert isinstance(first, DecodeStepView)
    inputs = RunInputs(TEXT, continuation=first.ids)
    ran = ask(engine, ForwardRequest(inputs=inputs, ticket=4))
    assert isinstance(ran, Ran)
    written = ask(engine, into_input(inputs))
    assert isinstance(written, DecodeStepView)
    assert plain_text(written.whole) == TEXT + first.text + written.text
    assert written.text
    head = ask(engine, HeadRequest(run=4, site=SiteRef("decoder", 5), head=5))
    assert isinstance(head, HeadView)
    assert head.weights.shape == (len(ran.tokens), len(ran.tokens))
