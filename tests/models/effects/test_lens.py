"""Every layer read by the model's own norm and head: held against the formula on transformers' hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attention_models import adopt, logit_lens, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.effects import LensRequest, LensView
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.models import own_modules, tiny
from tests.models.asking import ask, opened
from tests.models.eager import target_for
from tests.models.tiny import TinyModel

STORY = "Tom and Anna went to the park. Anna gave the ball to"

LAST_NORM = {
    "gpt2": "transformer.ln_f",
    "llama": "model.norm",
    "gemma2": "model.norm",  # and a cap on the logits
    "gpt_neox": "gpt_neox.final_layer_norm",
    "opt": "model.decoder.final_layer_norm",
    "t5": "decoder.final_layer_norm",
    "bert": "",
    "roberta": "",
    "marian": "",
}


def head_of(model: Model, theirs: Any, states: torch.Tensor, kind: str) -> Any:
    """transformers' own modules after the last norm, called by hand."""
    if kind == "bert":
        return theirs.cls(states)
    if kind == "roberta":
        return theirs.lm_head(states)
    if kind == "t5":
        return theirs.lm_head(states * model.config.d_model**-0.5)
    logits = theirs.get_output_embeddings()(states)
    if kind == "gemma2":
        cap = model.config.final_logit_softcapping
        return torch.tanh(logits / cap) * cap
    return logits + theirs.final_logits_bias if kind == "marian" else logits


@pytest.mark.parametrize("kind", LAST_NORM)
def test_it_is_the_models_own_norm_and_head(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    written = target_for(model)
    lens = logit_lens(model, tiny.SENTENCE, written=written)
    assert lens.why == ""
    theirs: Any = tiny.eager(model)
    stream = run(model, tiny.SENTENCE, target=written).residual[model.info.predicting_stack]
    assert lens.best is not None
    assert lens.best.shape == (len(stream), len(stream[0]))
    final = run(model, tiny.SENTENCE, target=written).logits.argmax(axis=-1)
    np.testing.assert_array_equal(lens.targets, final)
    for row, states in enumerate(stream):
        with torch.no_grad():
            normed = theirs.get_submodule(LAST_NORM[kind])(states) if LAST_NORM[kind] else states
            logits = head_of(model, theirs, normed, kind).double()
        p = logits.softmax(dim=-1)
        there = p[range(len(p)), torch.tensor(final)]
        np.testing.assert_array_equal(lens.best[row], logits.argmax(dim=-1).numpy())
        np.testing.assert_allclose(lens.best_share[row], p.amax(dim=-1).numpy(), atol=1e-5)  # type: ignore[index]
        np.testing.assert_allclose(lens.target_share[row], there.numpy(), atol=1e-5)  # type: ignore[index]
        rank = 1 + (logits > logits[range(len(p)), torch.tensor(final)][:, None]).sum(dim=-1).numpy()
        assert np.abs(lens.target_rank[row] - rank).max() <= 1  # type: ignore[index]
        bits = -(p * p.log2()).sum(dim=-1).numpy()
        np.testing.assert_allclose(lens.entropy[row], bits, atol=1e-4)  # type: ignore[index]
        np.testing.assert_allclose(lens.norms[row], states.norm(dim=-1).numpy(), rtol=1e-5)
        if row:
            change = (states - stream[row - 1]).norm(dim=-1).numpy()
            np.testing.assert_allclose(lens.written[row - 1], change, rtol=1e-4)
    np.testing.assert_array_equal(lens.target_rank[-1], 1)  # type: ignore[index]
    assert set(lens.labels or ()) == {*np.unique(lens.best).tolist(), *np.unique(final).tolist()}


def test_a_name_that_is_due_rises_with_depth(story_gpt: Model) -> None:
    lens = logit_lens(story_gpt, STORY)
    assert lens.target_rank is not None
    assert lens.labels is not None
    assert lens.targets is not None
    assert "Tom" in lens.labels[int(lens.targets[-1])]
    ranks = lens.target_rank[:, -1]
    assert ranks[0] > 50
    assert ranks[-1] == 1
    assert lens.deviation < 1e-4


def test_another_token_is_followed() -> None:
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(STORY), ticket=2))
    view = ask(engine, LensRequest(run=2, target=300))
    assert isinstance(view, LensView)
    assert view.targets is not None
    assert (view.targets == 300).all()


def test_a_picture_is_read_where_the_classes_are() -> None:
    model = open_checkpoint("vit-cifar10")
    lens = logit_lens(model, "sample:chelsea")
    assert lens.best is not None
    trace = run(model, "sample:chelsea")
    assert lens.best[-1, 0] == trace.logits[0].argmax()


@pytest.mark.parametrize("checkpoint", ["story-next", "recurrent-en-es-bahdanau"])
def test_where_the_head_does_not_read_the_stream_it_is_said(checkpoint: str) -> None:
    engine = opened(checkpoint)
    ask(engine, ForwardRequest(inputs=RunInputs("Good morning.", target="Buenos"), ticket=2))
    view = ask(engine, LensRequest(run=2))
    assert isinstance(view, LensView)
    assert view.best is None
    assert view.why.endswith(".")


def test_it_is_called_off(story_gpt: Model) -> None:
    from attention_models.effects.lens import lens_view
    from attention_models.protocol.request import Cancelled

    trace = run(story_gpt, STORY)
    with pytest.raises(Cancelled):
        lens_view(LensRequest(run=0), story_gpt, trace, story_gpt.encode(STORY).inputs, lambda: True)


def test_the_stream_after_the_last_block_counts_what_is_added_outside_of_it() -> None:
    """Blocks that leave adding to whoever calls them give only what they wrote."""
    module = own_modules.Writer("sdpa")
    model = adopt(module, own_modules.CHARACTERS)
    try:
        lens = logit_lens(model, "Tom and Anna")
        assert lens.why == ""
        ids = torch.tensor([[ord(c) for c in "Tom and Anna"]])
        wrote: list[torch.Tensor] = []
        handles = [block.register_forward_hook(lambda _m, _a, out: wrote.append(out[0])) for block in module.blocks]
        with torch.no_grad():
            own = module(ids)
            stream = module.wte(ids)[0] + module.wpe(torch.arange(ids.shape[1]))
        for handle in handles:
            handle.remove()
        for row in range(len(wrote) + 1):
            stream = stream if row == 0 else stream + wrote[row - 1]
            with torch.no_grad():
                p = module.head(stream).double().softmax(dim=-1)
            np.testing.assert_allclose(lens.best_share[row], p.amax(dim=-1).numpy(), atol=1e-6)  # type: ignore[index]
            np.testing.assert_allclose(lens.norms[row], stream.norm(dim=-1).numpy(), rtol=1e-5)
        np.testing.assert_array_equal(lens.targets, own[0][0].argmax(dim=-1).numpy())
    finally:
        model.release()
