"""Figures of lessons, held against transformers' own eager pass and closed forms in float64."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint
from attention_models.effects.lens import lens_view
from attention_models.engine.engine import Engine
from attention_models.forward.run import run
from attention_models.lessons import effect_facts, reading
from attention_models.protocol.effects import AdversarialAttentionRequest, AdversarialAttentionView
from attention_models.protocol.facts import KINDS, Fact, FactsRequest, FactsView
from attention_models.protocol.interventions import Mask
from attention_models.protocol.named_tokens import Named
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, forward, opened

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
SITE = SiteRef("decoder", 5)
TO, TOM = 13, 1
CELL: Any = {"site": SITE, "head": 5, "query": TO, "key": TOM}


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = opened("story-gpt")
    forward(engine, TEXT)
    return engine


@cache
def eager() -> tuple[np.ndarray, np.ndarray]:
    """Weights of layer 5 (heads, queries, keys), and what comes next (tokens, vocabulary) as shares; both float64."""
    model = open_checkpoint("story-gpt")
    with torch.no_grad():
        out = tiny.eager(model)(**model.encode(TEXT).inputs, output_attentions=True)
    return out.attentions[5][0].double().numpy(), out.logits[0].double().softmax(dim=-1).numpy()


def value(engine: Engine, **said: Any) -> Any:
    view = ask(engine, FactsRequest(run=2, ticket=3, facts=(Fact(**said),)))
    assert isinstance(view, FactsView), view
    return view.values[0]


@pytest.mark.full
def test_a_figure_of_other_interventions_is_that_of_the_model_run_with_them(engine: Engine) -> None:
    """transformers' own eager pass, given the mask: what is not causal, or is blocked in every head, is −∞."""
    model = open_checkpoint("story-gpt")
    for blocked in (0, TOM):
        visible = torch.ones(14, 14).tril()
        visible[TO, blocked] = 0
        mask = torch.zeros(14, 14).masked_fill(visible == 0, torch.finfo(torch.float32).min)
        with torch.no_grad():
            ids = model.encode(TEXT).inputs["input_ids"]
            out = tiny.eager(model)(input_ids=ids, attention_mask=mask[None, None], output_attentions=True)
        share = out.logits[0, TO].double().softmax(dim=-1)[token(" Tom")]
        painted = (Mask("painted", cells=((TO, blocked, False),)),)
        of_run = {"interventions": painted, "query": TO}
        assert value(engine, kind="probability", word="Tom", **of_run) == pytest.approx(float(share), abs=1e-5)
        row = out.attentions[5][0, 5, TO].double()
        asked = {**CELL, "interventions": painted, "key": 9}
        assert value(engine, kind="weight", **asked) == pytest.approx(float(row[9]), abs=1e-5)
        moved = (out.logits[0, TO].double().softmax(dim=-1).numpy() - eager()[1][TO]).clip(0).sum()
        assert value(engine, kind="moved", **of_run) == pytest.approx(moved, abs=1e-5)
    assert value(engine, kind="probability", word="Tom", query=TO) == pytest.approx(0.6792, abs=1e-3)  # the run stays


def token(word: str) -> int:
    (found,) = open_checkpoint("story-gpt").tokenizer(word, add_special_tokens=False)["input_ids"]
    return int(found)


def test_weights_are_those_of_the_eager_pass(engine: Engine) -> None:
    row = eager()[0][5][TO]
    assert value(engine, kind="weight", **CELL) == pytest.approx(row[TOM], abs=1e-6)
    assert value(engine, kind="weight", site=SITE, head=5, query=Named("to", 2), key=Named("Tom")) == pytest.approx(
        row[TOM], abs=1e-6
    )
    assert value(engine, kind="peak weight", **CELL) == pytest.approx(row.max(), abs=1e-6)
    bits = -sum(w * math.log2(w) for w in row if w > 0)
    assert value(engine, kind="entropy", **CELL) == pytest.approx(bits, abs=1e-5)
    columns = eager()[0][5][:, TOM]
    assert value(engine, kind="received", **CELL) == pytest.approx(columns.sum(), abs=1e-5)
    before = np.diagonal(eager()[0][2], -1).mean()
    assert value(engine, kind="diagonal", site=SITE, head=2, at=1) == pytest.approx(before, abs=1e-6)
    assert value(engine, kind="above", **CELL) == 0
    assert value(engine, kind="visible", site=SITE, head=5, query=4, key=0) == 5


def test_a_weight_is_the_softmax_of_its_scores(engine: Engine) -> None:
    scores = [value(engine, kind="scaled score", **{**CELL, "key": key}) for key in range(TO + 1)]
    products = [value(engine, kind="product", **{**CELL, "key": key}) for key in range(TO + 1)]
    width = value(engine, kind="head width", **CELL)
    assert scores == pytest.approx([p / math.sqrt(width) for p in products], abs=1e-4)
    shares = np.exp(np.array(scores) - max(scores))
    assert shares[TOM] / shares.sum() == pytest.approx(eager()[0][5][TO][TOM], abs=1e-5)


def test_answers_are_those_of_the_eager_pass(engine: Engine) -> None:
    shares = eager()[1][TO]
    assert value(engine, kind="next", query=TO) == "Tom"
    assert int(shares.argmax()) == token(" Tom")
    assert value(engine, kind="next probability", query=TO) == pytest.approx(shares.max(), abs=1e-5)
    assert value(engine, kind="probability", word="Anna", query=TO) == pytest.approx(shares[token(" Anna")], abs=1e-5)
    assert value(engine, kind="rank", word="Anna", query=TO) == 1 + (shares > shares[token(" Anna")]).sum()


def test_another_text_and_the_model_unchanged(engine: Engine) -> None:
    changes = (Mask("window", window=3),)
    ran = ask(engine, ForwardRequest(inputs=RunInputs(TEXT, interventions=changes), ticket=4))
    assert isinstance(ran, Ran)

    def of(**said: Any) -> Any:
        view = ask(engine, FactsRequest(run=4, ticket=5, facts=(Fact(**said),)))
        assert isinstance(view, FactsView), view
        return view.values[0]

    try:
        now, before = (of(kind="probability", word="Tom", query=TO, unchanged=on) for on in (False, True))
        assert before == pytest.approx(eager()[1][TO][token(" Tom")], abs=1e-5)
        assert now < before / 2
        assert 0 < of(kind="moved", query=TO) <= 1
        assert of(kind="visible", **CELL) == 3
        same = of(kind="probability", word="Tom", text=TEXT, query=TO, unchanged=True)
        assert same == pytest.approx(before, abs=1e-6)
    finally:
        forward(engine, TEXT)


def test_what_is_written_is_what_generate_writes(engine: Engine) -> None:
    model = open_checkpoint("story-gpt")
    inputs = model.encode(TEXT).inputs
    ids = tiny.eager(model).generate(**inputs, max_new_tokens=6, do_sample=False, pad_token_id=0)
    expected = model.tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip()
    assert value(engine, kind="writes", steps=6) == expected


def test_sizes_are_those_of_the_weights(engine: Engine) -> None:
    module: Any = open_checkpoint("story-gpt").module
    assert value(engine, kind="parameters") == sum(p.numel() for p in module.parameters())
    assert value(engine, kind="width") == module.config.n_embd
    assert value(engine, kind="layers") == module.config.n_layer
    assert value(engine, kind="heads") == module.config.n_layer * module.config.n_head
    assert value(engine, kind="heads", **CELL) == module.config.n_head
    queries = module.transformer.h[0].attn.c_attn.weight[:, : module.config.n_embd]
    assert value(engine, kind="query parameters", **CELL) == queries.numel()
    assert value(engine, kind="tokens") == TO + 1


def test_formulas_in_closed_form(engine: Engine) -> None:
    numbers = (2.0, 1.0, 0.5)
    top = sum(math.exp(n) for n in numbers)
    assert value(engine, kind="softmax", numbers=numbers, at=0) == pytest.approx(math.exp(2) / top)
    assert value(engine, kind="division", numbers=numbers, at=0) == pytest.approx(2 / 3.5)
    for width in (16, 256):  # the variance of a sum of `width` products of independent standard normals
        assert value(engine, kind="variance", at=width) == pytest.approx(width, rel=0.2)
    raw, scaled = (value(engine, kind="largest share", at=512, numbers=n) for n in ((), (1.0,)))
    assert raw > 0.9 > 0.4 > scaled > 1 / 16
    assert value(engine, kind="turn error", at=17) < 1e-12
    angles = [(3 - 8) / 10_000 ** (2 * i / 64) for i in range(32)]
    assert value(engine, kind="wave likeness", numbers=(3.0, 8.0)) == pytest.approx(np.mean(np.cos(angles)))


def test_a_word_in_two_texts_is_itself_at_the_embedding_only() -> None:
    engine = opened("story-bert")
    forward(engine, "She sat on the river bank.")
    said: Any = {"kind": "cosine", "word": "bank", "text": "He put his coins in the bank."}
    first, last = (value(engine, **said, at=layer) for layer in (0, 6))
    assert first > 0.5 > last or first > last
    assert value(engine, **{**said, "text": "She sat on the river bank."}, at=6) == pytest.approx(1)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"kind": "weight"}, "it needs a layer"),
        ({"kind": "weight", "site": SiteRef("decoder", 40)}, "there is no head 0 in layer 40"),
        ({"kind": "weight", **CELL, "query": Named("dog")}, "there is no token “dog”"),
        ({"kind": "weight", **CELL, "key": 99}, "there is no token 99"),
        ({"kind": "probability", "word": "xyzzy"}, "“xyzzy” is none of the model's answers"),
        ({"kind": "softmax", "numbers": (1.0,), "at": 3}, "there is no number 3"),
        ({"kind": "division", "numbers": (-1.0, 1.0)}, "not negative"),
        ({"kind": "variance", "at": 5000}, "a width is 1 to 1024"),
        ({"kind": "cosine", "word": "Tom"}, "it needs another text"),
        ({"kind": "mask"}, "it needs a layer"),
    ],
)
def test_what_cannot_be_computed_is_said(engine: Engine, said: dict[str, Any], sentence: str) -> None:
    failure = ask(engine, FactsRequest(run=2, ticket=3, facts=(Fact(**said),)))
    assert isinstance(failure, Failure)
    assert sentence in failure.sentence


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "mood"},
        {"kind": "writes", "steps": 0},
        {"kind": "next", "text": "x" * 1001},
        {"kind": "softmax", "numbers": (math.nan,)},
        {"kind": "role score", "word": "dancing"},
    ],
)
def test_a_figure_that_there_is_not_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no figure|not written|too long|finite|no role “dancing”"):
        Fact(**said)


@pytest.mark.full
def test_every_kind_is_computed_by_name(engine: Engine) -> None:
    one = Fact(kind="weight", **CELL)
    own: dict[str, Any] = {
        "probability": {"word": "Tom"},
        "rank": {"word": "Tom"},
        "cosine": {"word": "Tom", "text": "Tom ran."},
        "softmax": {"numbers": (1.0, 2.0)},
        "division": {"numbers": (1.0, 2.0)},
        "variance": {"at": 8},
        "largest share": {"at": 8},
        "diagonal": {"at": 1},
        "wave likeness": {"numbers": (1.0, 2.0)},
        "role score": {"word": "previous"},
        "even role score": {"word": "previous"},
        "agreement": {"word": "gradient"},
    }
    for kind in KINDS:
        if kind.startswith("gradient"):
            continue  # of recurrent models
        fact = replace(one, kind=kind, **own.get(kind, {}))  # type: ignore[arg-type]
        view = ask(engine, FactsRequest(run=2, ticket=3, facts=(fact,)))
        assert isinstance(view, FactsView), (kind, view)


def test_other_weights_are_searched_once_for_all_figures_and_for_the_panel(engine: Engine) -> None:
    apart, moved = value(engine, kind="weights apart", **CELL), value(engine, kind="answer apart", **CELL)
    view = ask(engine, AdversarialAttentionRequest(run=2, ticket=4, site=SITE, head=5, position=TO))
    assert isinstance(view, AdversarialAttentionView), view
    assert view.done == 1  # nothing was left to search
    assert (apart, moved) == (float(view.same.divergence[0]) / math.log(2), float(view.same.distance))
    # Jensen and Shannon's divergence of the weights that were found from the model's own
    p, q = eager()[0][5][TO], view.same.weights[0]
    middle = (p + q) / 2
    nats = sum(w * math.log(w / m) / 2 for side in (p, q) for w, m in zip(side, middle, strict=True) if w > 0)
    assert apart == pytest.approx(nats / math.log(2), abs=1e-6)


def test_figures_of_one_input_share_its_run(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Any] = []

    def counted(model: Any, text: Any, **given: Any) -> Any:
        texts.append(text)
        return run(model, text, **given)

    monkeypatch.setattr(reading, "run", counted)
    said: tuple[dict[str, Any], ...] = (
        {"kind": "next", "query": 1, "text": "Tom ran"},
        {"kind": "tokens", "text": "Tom ran"},
        {"kind": "next", "query": 1, "text": "Anna ran away"},
        {"kind": "tokens", "text": "Anna ran away"},
        {"kind": "tokens"},
        {"kind": "next", "query": 1, "text": "Tom ran"},
    )
    view = ask(engine, FactsRequest(run=2, ticket=3, facts=tuple(Fact(**each) for each in said)))
    assert isinstance(view, FactsView), view
    assert texts == ["Tom ran", "Anna ran away", "Tom ran"]  # one other run is held at a time
    assert list(view.values) == [value(engine, **each) for each in said]
    assert view.values[1] != view.values[3] != view.values[4]


def test_the_stream_is_read_early_once_for_all_figures(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*given: Any) -> Any:
        calls.append(1)
        return lens_view(*given)

    monkeypatch.setattr(effect_facts, "lens_view", counted)
    facts = tuple(Fact(kind="early", query=TO, at=at) for at in (0, 4, 8))
    view = ask(engine, FactsRequest(run=2, ticket=3, facts=(*facts, Fact(kind="settled after", query=TO))))
    assert isinstance(view, FactsView), view
    assert len(calls) == 1
    assert view.values[2] == value(engine, kind="next", query=TO)
