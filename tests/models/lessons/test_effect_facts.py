"""Effects, values, gradients, words' own vectors and cost, held against transformers, differences and closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from attention_models import open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.protocol.facts import Fact, FactsRequest, FactsView
from attention_models.protocol.named_tokens import Named
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, forward, opened

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
TO, TOM = 13, 1
CELL: Any = {"site": SiteRef("decoder", 5), "head": 5, "query": TO, "key": TOM}


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = opened("story-gpt")
    forward(engine, TEXT)
    return engine


def value(engine: Engine, **said: Any) -> Any:
    view = ask(engine, FactsRequest(run=2, ticket=3, facts=(Fact(**said),)))
    assert isinstance(view, FactsView), view
    return view.values[0]


def in_eager(name: str, hook: Callable[[Any, Any, Tensor], Any], before: bool = False) -> Tensor:
    """Logits (vocabulary,) after the text, by transformers, with a hook on the output (or input) of one module."""
    model = open_checkpoint("story-gpt")
    module = tiny.eager(model)
    place = module.get_submodule(name)
    handle = (
        place.register_forward_pre_hook(lambda m, args: hook(m, None, args[0]))
        if before
        else place.register_forward_hook(hook)
    )
    try:
        with torch.no_grad():
            logits: Tensor = module(**model.encode(TEXT).inputs).logits[0, -1]
            return logits
    finally:
        handle.remove()


@pytest.mark.full
def test_without_a_head_the_logit_is_that_of_the_eager_pass_without_it(engine: Engine) -> None:
    own = in_eager("transformer.h.5.attn.c_proj", lambda m, _, x: None, before=True)
    best = int(own.argmax())

    def silence(head: int) -> Callable[[Any, Any, Tensor], Any]:
        def hook(_module: Any, _out: Any, joined: Tensor) -> tuple[Tensor]:
            joined = joined.clone()
            joined[..., 32 * head : 32 * (head + 1)] = 0
            return (joined,)

        return hook

    for head in (5, 0):
        after = in_eager("transformer.h.5.attn.c_proj", silence(head), before=True)
        expected = float(after[best] - own[best])
        assert value(engine, kind="head effect", **{**CELL, "head": head}) == pytest.approx(expected, abs=1e-3)


def test_what_is_read_is_a_weight_times_the_length_of_a_value(engine: Engine) -> None:
    found: list[Tensor] = []
    in_eager("transformer.h.5.attn.c_attn", lambda m, _, out: found.append(out))
    values = found[0][0, :, 512 + 5 * 32 : 512 + 6 * 32].double().norm(dim=-1).numpy()  # (tokens,)
    model = open_checkpoint("story-gpt")
    with torch.no_grad():
        out = tiny.eager(model)(**model.encode(TEXT).inputs, output_attentions=True)
    read = out.attentions[5][0, 5, TO].double().numpy() * values
    assert value(engine, kind="value length", **CELL) == pytest.approx(values[TOM], rel=1e-5)
    assert value(engine, kind="read length", **CELL) == pytest.approx(read[TOM], rel=1e-4)
    assert value(engine, kind="read peak", **CELL) == "Tom"
    assert int(read.argmax()) == TOM
    assert value(engine, kind="peak", **CELL) == "⟨start⟩"


@pytest.mark.full
def test_agreement_is_the_correlation_of_ranks(engine: Engine) -> None:
    from attention_models import explanations

    view = explanations(open_checkpoint("story-gpt"), TEXT)
    attention, gradient = view.of("attention"), view.of("gradient")
    assert attention is not None
    assert gradient is not None
    first, second = (np.argsort(np.argsort(np.abs(values))).astype(float) for values in (attention, gradient))
    expected = float(np.corrcoef(first, second)[0, 1])
    assert value(engine, kind="agreement", word="gradient", query=TO) == pytest.approx(expected, abs=1e-6)
    assert value(engine, kind="agreement", word="attention", query=TO) == pytest.approx(1)


def test_words_own_vectors_are_rows_of_the_embedding(engine: Engine) -> None:
    model = open_checkpoint("story-gpt")
    ids = model.encode(TEXT).inputs["input_ids"][0]
    module: Any = model.module
    vectors = module.transformer.wte.weight[ids].detach().double().numpy()
    products = vectors @ vectors[TOM]
    shares = np.exp(products - products.max())
    for key in (TOM, 3):
        assert value(engine, kind="raw product", query=TOM, key=key) == pytest.approx(products[key], abs=1e-9)
        share = shares[key] / shares.sum()
        assert value(engine, kind="raw weight", query=TOM, key=key) == pytest.approx(share, abs=1e-9)
    assert value(engine, kind="raw peak", query=Named("Tom")) == "Tom"


def test_what_is_said_early_is_the_stream_through_the_last_norm_and_the_embedding(engine: Engine) -> None:
    model = open_checkpoint("story-gpt")
    module: Any = tiny.eager(model)
    with torch.no_grad():
        out = module(**model.encode(TEXT).inputs, output_hidden_states=True)
        streams = [h[0, -1] for h in out.hidden_states]  # the last one comes normalised
        said = [int(module.lm_head(module.transformer.ln_f(h)).argmax()) for h in streams[:-1]]
        said.append(int(out.logits[0, -1].argmax()))
    words = [model.piece_label(id_).lstrip("␣") for id_ in said]
    assert [value(engine, kind="early", query=TO, at=block) for block in range(len(words))] == words
    assert len(set(words)) > 1
    after = next(block for block in range(len(words)) if set(words[block:]) == {"Tom"})
    assert value(engine, kind="settled after", query=TO) == after


@pytest.mark.full
def test_gradients_are_what_small_differences_say() -> None:
    engine = opened("dates-bottleneck")
    ran = forward(engine, "Thursday, 5 March 1998")
    assert isinstance(ran, Ran)
    model = open_checkpoint("dates-bottleneck")
    module: Any = model.module.double()
    source = torch.tensor([[token.id for token in ran.source]])
    written = torch.tensor([[token.id for token in ran.tokens]])
    table = module.source_embedding.weight
    with torch.no_grad():
        kept = table[source[0]].clone()
        best = int(module(source, written).logits[0, 0].argmax())
        slopes = np.zeros(kept.shape)
        places = [(token, axis) for token in range(len(kept)) for axis in range(kept.shape[1])]
        for token, axis in places:
            ends = []
            for step in (1e-5, -1e-5):
                moved = kept.clone()
                moved[token, axis] += step
                hook = module.source_embedding.register_forward_hook(lambda m, a, o, moved=moved: moved[None])
                ends.append(float(module(source, written).logits[0, 0, best]))
                hook.remove()
            slopes[token, axis] = (ends[0] - ends[1]) / 2e-5
    lengths = np.linalg.norm(slopes, axis=1)
    for key in (0, 18, 21):
        expected = lengths[key] / lengths.sum()
        assert value(engine, kind="gradient", query=0, key=key) == pytest.approx(expected, rel=1e-3)
    assert value(engine, kind="gradient peak", query=0) == ran.source[int(lengths.argmax())].word


def test_multiplications_are_those_that_torch_counts(engine: Engine) -> None:
    model = open_checkpoint("story-gpt")
    module: Any = tiny.eager(model)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(**model.encode(TEXT).inputs)
    output = 14 * module.config.n_embd * module.config.vocab_size
    both = value(engine, kind="attention products") + value(engine, kind="matrix products")
    assert both + output == counter.get_total_flops() / 2  # torch counts an addition to each multiplication
    assert value(engine, kind="attention products") == 2 * 8 * 14 * 14 * 256
    assert value(engine, kind="cells") == 8 * 8 * 14 * 14
    assert value(engine, kind="cached bytes") == 2 * 8 * 14 * 256 * 4
    longer = f"{TEXT} him. {TEXT}"
    assert value(engine, kind="cells", text=longer) == 8 * 8 * value(engine, kind="tokens", text=longer) ** 2


def test_multiplications_of_two_stacks_are_those_that_torch_counts() -> None:
    engine = opened("en-es")
    ran = forward(engine, "The cat sleeps.")
    model = open_checkpoint("en-es")
    module: Any = tiny.eager(model)
    encoded = model.encode("The cat sleeps.", "El gato duerme.")
    assert encoded.inputs["decoder_input_ids"].shape[1] == len(ran.tokens) > 3
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(**encoded.inputs)
    tokens = encoded.inputs["decoder_input_ids"].shape[1]
    output = tokens * module.get_output_embeddings().weight.numel()
    both = value(engine, kind="attention products") + value(engine, kind="matrix products")
    assert both + output == counter.get_total_flops() / 2


@pytest.mark.parametrize(
    ("reference", "said", "sentence"),
    [
        ("story-gpt", {"kind": "gradient", "query": 0}, "it is of recurrent models"),
        ("dates-luong", {"kind": "matrix products"}, "it is of transformers"),
        ("dates-luong", {"kind": "raw weight"}, "one stack"),
    ],
)
def test_what_a_model_has_not_is_said(reference: str, said: dict[str, Any], sentence: str) -> None:
    engine = opened(reference)
    forward(engine, "5 March 1998")
    failure = ask(engine, FactsRequest(run=2, ticket=3, facts=(Fact(**said),)))
    assert sentence in getattr(failure, "sentence", "")
