"""Every head zeroed in one batch: as one by one, and as transformers' own eager forward with a slice of zeros."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_models import head_effects, open_checkpoint, run
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.metric import aimed, resolve, token_of
from attention_models.effects.sweep import HeadSweep, effects_of
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.effects import EffectsRequest, EffectsView, Metric
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Scale
from attention_models.protocol.request import Cancelled, Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, opened, silent
from tests.models.eager import target_for
from tests.models.tiny import TinyModel

ATOL = 1e-4  # of logits between -30 and 30
STORY = "Tom and Anna went to the park. Anna gave the ball to"


def value(logits: np.ndarray, ids: tuple[int, ...]) -> float:
    return float(logits[ids[0]]) - (float(logits[ids[1]]) if len(ids) > 1 else 0.0)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "gpt_neox", "opt", "t5", "marian", "bart"])
def test_batched_is_as_one_by_one(tiny_model: TinyModel, kind: str) -> None:
    model, text = tiny_model(kind), tiny.SENTENCE
    written = target_for(model)
    effects = head_effects(model, text, target=7, against=9, written=written)
    before = run(model, text, target=written).logits[-1]
    assert {at.site for at in effects.sites} == {site.ref for site in run(model, text, target=written).sites}
    for at in effects.sites:
        for head, effect in enumerate(at.heads):
            after = run(model, text, target=written, interventions=[Ablation("head", at.site, head)]).logits[-1]
            assert effect == pytest.approx(value(after, (7, 9)) - value(before, (7, 9)), abs=ATOL)


def test_a_head_is_a_slice_of_what_w_o_reads(story_gpt: Model) -> None:
    effects = head_effects(story_gpt, STORY, target=" Tom")
    losses = head_effects(story_gpt, STORY, measure="loss")
    tom = token_of(story_gpt, run(story_gpt, "Tom"), " Tom")
    ids = story_gpt.encode(STORY).inputs["input_ids"]
    for layer, head in ((0, 0), (3, 7), (5, 3), (7, 1)):
        theirs: Any = tiny.eager(story_gpt)
        size = story_gpt.info.width // 8

        def zero(_module: Any, args: tuple[Tensor], head: int = head, size: int = size) -> tuple[Tensor]:
            read = args[0].clone()
            read[..., head * size : (head + 1) * size] = 0.0
            return (read,)

        with torch.no_grad():
            plain = theirs(ids).logits[0]
            theirs.transformer.h[layer].attn.c_proj.register_forward_pre_hook(zero)
            changed = theirs(ids).logits[0]
        found, lost = effects.of(SiteRef("decoder", layer)), losses.of(SiteRef("decoder", layer))
        assert found is not None
        assert lost is not None
        assert found[head] == pytest.approx(float(changed[-1, tom] - plain[-1, tom]), abs=ATOL)
        of_text = [float(F.cross_entropy(logits[:-1].double(), ids[0, 1:])) for logits in (plain, changed)]
        assert lost[head] == pytest.approx(of_text[1] - of_text[0], abs=1e-5)


def test_the_heads_that_find_the_name_are_found(story_gpt: Model) -> None:
    """Who is given the ball: one head notices the name that has come twice, another finds the one that is left."""
    effects = head_effects(story_gpt, STORY, target=" Tom", against=" Anna")
    assert "Tom" in effects.aim.words
    assert "Anna" in effects.aim.words
    assert effects.aim.value > 1
    assert effects.largest is not None
    site, head, change = effects.largest
    assert change < -1
    trace = run(story_gpt, STORY)
    words = [token.text.strip() for token in trace.tokens]
    row = trace.weights(site, head)[-1]
    assert words[int(row.argmax())] == "Anna"
    assert row.max() > 0.8
    found = effects.of(SiteRef("decoder", 5))
    assert found is not None
    finder = int(found.argmin())
    assert found[finder] < -1
    assert trace.weights(("decoder", 5), finder)[-1, words.index("Tom")] > 0.2


def test_a_head_that_writes_nothing_matters_nothing(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    theirs = tiny.eager(model)
    size = model.info.width // 4 if model.config.n_head == 4 else model.info.width // model.config.n_head
    with torch.no_grad():
        theirs.get_submodule("transformer.h.1.attn.c_proj").weight[:size] = 0.0
    changed = Model(model.info, model.module.__class__(model.config), model.tokenizer)
    changed.module.load_state_dict(theirs.state_dict())
    changed.module.set_attn_implementation(model.config._attn_implementation)  # type: ignore[operator]
    effects = head_effects(changed, tiny.SENTENCE, target=7)
    found = effects.of(SiteRef("decoder", 1))
    assert found is not None
    assert abs(found[0]) < 1e-6 < np.abs(found[1:]).max()


def test_it_is_of_the_run_with_its_interventions(story_gpt: Model) -> None:
    edits = (Scale(0.5), Ablation("mlp", SiteRef("decoder", 2)), Ablation("head", SiteRef("decoder", 4), 2, "mean"))
    effects = head_effects(story_gpt, STORY, target=" Tom", interventions=edits)
    tom = token_of(story_gpt, run(story_gpt, "Tom"), " Tom")
    before = run(story_gpt, STORY, interventions=edits).logits[-1, tom]
    assert effects.aim.value == pytest.approx(before, abs=1e-6)
    after = run(story_gpt, STORY, interventions=[*edits, Ablation("head", SiteRef("decoder", 5), 3)]).logits[-1, tom]
    found = effects.of(SiteRef("decoder", 5))
    assert found is not None
    assert found[3] == pytest.approx(after - before, abs=ATOL)
    held = effects.of(SiteRef("decoder", 4))
    assert held is not None
    assert held[2] != 0  # at its mean it gave something


def test_another_token_asks_for_no_other_pass(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(STORY), ticket=2))
    request = EffectsRequest(run=2, aim=Metric(target=100))
    seen = []
    view: Any = None
    while view is None or view.done < 1:
        view = ask(engine, EffectsRequest(run=2, aim=request.aim, have=0.0 if view is None else view.done))
        assert isinstance(view, EffectsView)
        seen.append(view.done)
        computed = sum(int((~np.isnan(at.heads)).sum()) for at in view.sites)
        assert computed == round(64 * view.done)
    assert seen == sorted(seen)
    assert len(seen) > 1
    monkeypatch.setattr(BatchedRuns, "run", None)
    for aim in (Metric(target=200), Metric(measure="loss"), Metric(measure="difference", target=5, against=6)):
        other = ask(engine, EffectsRequest(run=2, aim=aim))
        assert isinstance(other, EffectsView)
        assert other.done == 1
    trace = run(story_gpt, STORY)
    assert view.aim.value == pytest.approx(float(trace.logits[-1, 100]), abs=1e-6)


def test_before_and_now_are_said_of_an_edited_run(story_gpt: Model) -> None:
    engine = opened("story-gpt")
    edits = (Ablation("head", SiteRef("decoder", 4), 1),)
    ask(engine, ForwardRequest(inputs=RunInputs(STORY, interventions=edits), ticket=2))
    view = ask(engine, EffectsRequest(run=2, aim=Metric(target=" Tom")))
    assert isinstance(view, EffectsView)
    assert view.before is not None
    for said, trace in ((view.before, run(story_gpt, STORY)), (view.now, run(story_gpt, STORY, interventions=edits))):
        logits = torch.tensor(trace.logits, dtype=torch.float64)
        tom = token_of(story_gpt, trace, " Tom")
        assert said.value == pytest.approx(float(logits[-1, tom]), abs=1e-5)
        assert said.best_label == story_gpt.piece_label(int(logits[-1].argmax()))
        assert said.best_share == pytest.approx(float(logits[-1].softmax(-1).max()), abs=1e-6)
        ids = story_gpt.encode(STORY).inputs["input_ids"][0, 1:]
        assert said.loss == pytest.approx(float(F.cross_entropy(logits[:-1], ids)), abs=1e-5)
    alone = head_effects(story_gpt, STORY)
    assert alone.before is None


def test_of_a_batch_the_text_that_is_shown(story_gpt: Model) -> None:
    texts = ["The cat", STORY]
    traces = run(story_gpt, texts)
    from attention_models import Batch

    batch = Batch.of(texts).showing(1)
    found = effects_of(story_gpt, traces[1], batch, None, Metric(target=50))
    alone = head_effects(story_gpt, STORY, target=50)
    for one, other in zip(found.sites, alone.sites, strict=True):
        np.testing.assert_allclose(one.heads, other.heads, atol=ATOL)


@pytest.mark.parametrize(
    ("checkpoint", "given", "measure"),
    [
        ("story-bert", "Tom [MASK] to the park.", None),
        ("story-next", ("Tom fell.", "He cried."), None),
        ("vit-quickdraw", "sample:fish-1", None),
        ("en-es", "Good morning.", "difference"),
    ],
)
def test_whatever_says_something(checkpoint: str, given: Any, measure: Any) -> None:
    model = open_checkpoint(checkpoint)
    position = 2 if checkpoint == "story-bert" else None
    written = "Buenos" if model.seq2seq else None
    effects = head_effects(model, given, measure=measure, position=position, written=written)
    at = effects.sites[-1]
    trace = run(model, given, target=written)
    changed = run(model, given, target=written, interventions=[Ablation("head", at.site, 1)])
    place, target, against = effects.aim.position, effects.aim.target, effects.aim.against
    ids = [target] if against is None else [target, against]
    was, now = (t.logits_at([place])[0].double().numpy() for t in (trace, changed))
    assert at.heads[1] == pytest.approx(value(now, tuple(ids)) - value(was, tuple(ids)), abs=ATOL)  # type: ignore[arg-type]


def test_it_is_called_off_between_blocks(story_gpt: Model) -> None:
    trace = run(story_gpt, STORY)
    sweep = HeadSweep(BatchedRuns.of(story_gpt, trace, STORY, None), resolve(story_gpt, trace, Metric()))
    asked: list[float] = []
    told: list[float | None] = []

    def stop() -> bool:
        asked.append(time.perf_counter())
        return len(asked) > 4

    with pytest.raises(Cancelled):
        sweep.advance(stop, lambda _words, share: told.append(share))
    assert len(asked) == 5
    assert told == sorted(told, key=float)  # type: ignore[arg-type]
    assert 0 < len(told) < 8
    while not sweep.is_whole:  # it goes on where it was
        sweep.advance(lambda: False, silent)
    whole = sweep.view(EffectsRequest(run=0), resolve(story_gpt, trace, Metric()))
    np.testing.assert_array_equal(
        whole.sites[2].heads, effects_of(story_gpt, trace, STORY, None, Metric()).sites[2].heads
    )


def test_many_logits_are_not_kept(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = head_effects(story_gpt, STORY, target=" Tom")
    monkeypatch.setattr("attention_models.effects.sweep.KEPT_BYTES", 1)
    monkeypatch.setattr("attention_models.effects.sweep.LOGIT_BYTES", 1)
    made = head_effects(story_gpt, STORY, target=" Tom")
    for one, other in zip(made.sites, kept.sites, strict=True):
        np.testing.assert_allclose(one.heads, other.heads, atol=ATOL)


@pytest.mark.short("story-gpt-aim1-story-gpt has no answer 1*", "story-bert-aim3-there is no loss. Choose*")
@pytest.mark.parametrize(
    ("checkpoint", "aim", "sentence"),
    [
        ("story-gpt", Metric(position=99), "There is no position 99: the text has tokens 0 to"),
        ("story-gpt", Metric(target=10**6), "story-gpt has no answer 1000000: they go from 0 to"),
        ("story-gpt", Metric(measure="difference", target=4, against=4), "choose another for one of them"),
        ("story-bert", Metric(measure="loss"), "there is no loss. Choose the logit of one of its answers"),
        ("recurrent-en-es-bahdanau", Metric(), "is a recurrent model: it has no residual stream to take parts out of"),
    ],
)
def test_what_cannot_be_is_a_sentence(checkpoint: str, aim: Metric, sentence: str) -> None:
    engine = opened(checkpoint)
    ask(engine, ForwardRequest(inputs=RunInputs("Good morning.", target="Buenos"), ticket=2))
    failure = ask(engine, EffectsRequest(run=2, aim=aim))
    assert isinstance(failure, Failure)
    assert sentence in failure.sentence


def test_a_family_whose_heads_are_not_reached_and_one_without_a_head(tiny_model: TinyModel) -> None:
    with pytest.raises(InputError, match=r"\. So the output of a single head cannot be changed"):
        head_effects(tiny_model("bloom"), tiny.SENTENCE)


def test_a_word_of_several_tokens_is_no_target(story_gpt: Model) -> None:
    with pytest.raises(InputError, match=r"“ Tom and” is 2 tokens to story-gpt .*: name one"):
        head_effects(story_gpt, STORY, target=" Tom and")
    with pytest.raises(InputError, match="goes with no target"):
        aimed(" Tom", None, "loss", None)
    classes = open_checkpoint("story-next")
    assert classes.info.class_head is not None
    trace = run(classes, ("Tom fell.", "He cried."))
    assert token_of(classes, trace, classes.info.class_head.labels[1]) == 1
    with pytest.raises(InputError, match="has no class “perhaps”"):
        token_of(classes, trace, "perhaps")
