"""Activations of one run in another: as transformers' own forward with hooks, and everything gives the other run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attention_models import patch, run
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.patching import PatchSweep, aligned
from attention_models.forward.model import Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.effects import Metric, Patched, PatchRequest, PatchView
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, opened
from tests.models.tiny import TinyModel

HERE = "Tom and Anna went to the park. Anna gave the ball to"
THERE = "Tom and Anna went to the park. Tom gave the ball to"
ATOL = 1e-4
LAYER, POSITION, HEAD = 4, 9, 1


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox", "bert"])
def test_the_whole_stream_of_the_other_run_gives_the_other_run(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    here = [token.id for token in model.tokenize(tiny.SENTENCE)]
    there = [*here[:3], *here[4:9], here[3], *here[9:]]
    copies = [BatchedRuns.of(model, run(model, ids), ids, None) for ids in (here, there)]
    sweep = PatchSweep(PatchRequest(run=0, other="", kind="residual", aim=Metric(target=7)), *copies)
    other = run(model, there).logits
    assert np.abs(other - run(model, here).logits).max() > 10 * ATOL
    for row in range(len(sweep.rows)):
        logits = sweep.logits([(row, list(range(len(here))))], None)[0].numpy()
        np.testing.assert_allclose(logits, other, atol=ATOL)


@pytest.mark.short("attention", "head")
@pytest.mark.parametrize("kind", ["residual", "attention", "mlp", "head", "pattern"])
def test_a_run_patched_with_itself_stays(story_gpt: Model, kind: Patched) -> None:
    view = patch(story_gpt, HERE, HERE, kind, target=" Tom")
    found = view.values[~np.isnan(view.values)]
    np.testing.assert_allclose(found, view.aim.value, atol=ATOL)
    assert np.isnan(view.shares).all()  # there is no way from one to the other


def of_transformers(model: Model, kind: Patched) -> float:
    """The logit with one place patched, by hooks on transformers' own modules."""
    theirs: Any = tiny.eager(model)
    size = model.info.width // 8
    block = theirs.transformer.h[LAYER]
    kept: dict[str, torch.Tensor] = {}
    module = {"residual": block, "attention": block.attn.c_proj, "mlp": block.mlp.c_proj, "head": block.attn.c_proj}[
        kind
    ]

    def read(_module: Any, args: tuple[torch.Tensor, ...]) -> None:
        kept["read"] = args[0].clone()

    def gave(_module: Any, _args: Any, out: torch.Tensor) -> None:
        kept["gave"] = out.clone()

    handles = [module.register_forward_pre_hook(read), module.register_forward_hook(gave)]
    with torch.no_grad():
        theirs(model.encode(THERE).inputs["input_ids"])
    for handle in handles:
        handle.remove()

    def put(_module: Any, args: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        given = args[0].clone()
        if kind == "residual":
            given[:, POSITION] = kept["read"][:, POSITION]
        else:
            given[..., HEAD * size : (HEAD + 1) * size] = kept["read"][..., HEAD * size : (HEAD + 1) * size]
        return (given, *args[1:])

    def add(_module: Any, _args: Any, out: torch.Tensor) -> torch.Tensor:
        out = out.clone()
        out[:, POSITION] = kept["gave"][:, POSITION]
        return out

    if kind in ("residual", "head"):
        module.register_forward_pre_hook(put)
    else:
        module.register_forward_hook(add)
    with torch.no_grad():
        logits = theirs(model.encode(HERE).inputs["input_ids"]).logits[0, -1]
    return float(logits[300])


@pytest.mark.short("residual", "mlp")
@pytest.mark.parametrize("kind", ["residual", "attention", "mlp", "head"])
def test_one_place_is_as_by_hooks_on_transformers_modules(story_gpt: Model, kind: Patched) -> None:
    view = patch(story_gpt, HERE, THERE, kind, target=300)
    row = view.rows.index(SiteRef("decoder", LAYER))
    found = view.values[row, HEAD if kind == "head" else POSITION]
    assert found == pytest.approx(of_transformers(story_gpt, kind), abs=ATOL)


def test_a_pattern_is_the_others_weights_on_ones_own_values(story_gpt: Model) -> None:
    view = patch(story_gpt, HERE, THERE, "pattern", target=300)
    weights = torch.tensor(run(story_gpt, THERE).weights(("decoder", LAYER), HEAD))
    theirs: Any = tiny.eager(story_gpt)
    size = story_gpt.info.width // 8
    kept: dict[str, torch.Tensor] = {}
    attention = theirs.transformer.h[LAYER].attn
    attention.c_attn.register_forward_hook(lambda _m, _a, out: kept.update(qkv=out))

    def put(_module: Any, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        given, here = args[0].clone(), slice(HEAD * size, (HEAD + 1) * size)
        value = kept["qkv"][0, :, 2 * story_gpt.info.width :][:, here]
        given[0, :, here] = weights @ value
        return (given,)

    attention.c_proj.register_forward_pre_hook(put)
    with torch.no_grad():
        expected = float(theirs(story_gpt.encode(HERE).inputs["input_ids"]).logits[0, -1, 300])
    assert view.values[view.rows.index(SiteRef("decoder", LAYER)), HEAD] == pytest.approx(expected, abs=ATOL)


def test_the_name_that_differs_carries_the_answer_until_it_is_moved(story_gpt: Model) -> None:
    """Where only one name differs, the early stream matters there, the late stream at the last token."""
    view = patch(story_gpt, HERE, THERE, target=" Tom", against=" Anna")
    assert view.aim.value > 0 > view.other_value
    labels = [token.text.strip() for token in run(story_gpt, HERE).tokens]
    name, last = len(labels) - 1 - labels[::-1].index("Anna"), len(labels) - 1
    shares = view.shares
    assert shares[0, name] == pytest.approx(1, abs=1e-3)
    assert shares[-1, last] > 0.8
    assert abs(shares[0, last]) < 1e-3
    assert abs(shares[-1, name]) < 0.1


def test_it_comes_in_moments() -> None:
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(HERE), ticket=2))
    view: Any = None
    while view is None or view.done < 1:
        have = 0.0 if view is None else view.done
        view = ask(engine, PatchRequest(run=2, other=THERE, kind="head", aim=Metric(target=300), have=have))
        assert isinstance(view, PatchView)
    alone = patch(opened("story-gpt").workspace.model, HERE, THERE, "head", target=300)  # type: ignore[arg-type]
    np.testing.assert_array_equal(view.values, alone.values)


def test_of_different_length_it_is_said_and_aligned(story_gpt: Model) -> None:
    longer = "Little Tom and Anna went to the park. Anna gave the ball to"
    with pytest.raises(InputError, match=r"^The texts are \d+ and \d+ tokens long to story-gpt.*align them: from the"):
        patch(story_gpt, HERE, longer)
    here, there = run(story_gpt, HERE).tokens, run(story_gpt, longer).tokens
    shift = len(there) - len(here)
    from_end = aligned(story_gpt, here, there, "end")
    assert from_end == tuple(range(shift, len(there)))
    from_start = aligned(story_gpt, here, there, "start")
    assert from_start == tuple(range(len(here)))
    by_token = aligned(story_gpt, here, there, "tokens")
    assert all(here[i].id == there[j].id for i, j in enumerate(by_token) if j is not None and i > 3)
    view = patch(story_gpt, HERE, longer, align="end", target=300)
    assert not np.isnan(view.values).any()
    with pytest.raises(InputError, match="a pattern goes only between texts of one length"):
        patch(story_gpt, HERE, longer, "pattern", align="end")


def test_an_engine_answers_with_the_sentence_where_nothing_says_what_stands_for_what() -> None:
    """So that a window can offer what to do beside it."""
    engine = opened("story-gpt")
    ran = ask(engine, ForwardRequest(inputs=RunInputs(HERE), ticket=2))
    assert isinstance(ran, Ran)
    longer = f"Little {HERE}"
    view = ask(engine, PatchRequest(run=2, other=longer))
    assert isinstance(view, PatchView)
    assert view.why.startswith(f"The texts are {len(ran.tokens)} and {len(view.other_labels)} tokens long to story-gpt")
    assert view.values.size == 0
    assert view.done == 1
    assert view.stands_for == (None,) * len(ran.tokens)
    view = ask(engine, PatchRequest(run=2, other=longer, align="end"))
    assert isinstance(view, PatchView)
    assert view.why == ""
    assert view.stands_for[-1] == len(view.other_labels) - 1


def test_counted_from_the_start_is_as_padded_at_the_end(story_gpt: Model) -> None:
    """Padding is masked and stands behind all: it changes no figure of the tokens before it."""
    longer = f"{HERE} Ben"
    padded, alone = run(story_gpt, Batch((HERE, longer), "right")), run(story_gpt, HERE)
    real = [i for i, token in enumerate(padded.tokens) if not token.padding]
    assert len(real) < len(padded.tokens)
    np.testing.assert_allclose(padded.logits[real], alone.logits, atol=1e-4)
    assert aligned(story_gpt, alone.tokens, run(story_gpt, longer).tokens, "start") == tuple(real)


def test_a_recurrent_model_is_refused() -> None:
    engine = opened("recurrent-en-es-bahdanau")
    ask(engine, ForwardRequest(inputs=RunInputs("Good morning.", target="Buenos"), ticket=2))
    failure = ask(engine, PatchRequest(run=2, other="Good evening."))
    assert isinstance(failure, Failure)
    assert "is a recurrent model" in failure.sentence
