"""A run that overflows says so, and where; one that only comes close is shown."""

from __future__ import annotations

import pytest
import torch

from attention_models import decode, open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.protocol.errors import NotFiniteError
from attention_models.protocol.interventions import Scale
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models.asking import never, silent

TEXT = "Tom went to the park."


@pytest.mark.parametrize("layer", [0, 5])
def test_scores_that_overflow_are_named_by_layer_and_head(story_gpt: Model, layer: int) -> None:
    edit = Scale(1e39, site=SiteRef("decoder", layer), head=3)
    with pytest.raises(NotFiniteError) as caught:
        run(story_gpt, TEXT, interventions=[edit])
    assert str(caught.value) == (
        f"story-gpt gives no figures here: attention scores of decoder layer {layer}, head 3, are too large for "
        "float32. Choose a smaller scale."
    )


def test_scores_that_come_close_are_shown(story_gpt: Model) -> None:
    trace = run(story_gpt, TEXT, interventions=[Scale(1e36, site=SiteRef("decoder", 0))])
    assert set(trace.weights(("decoder", 0), 0).flatten().tolist()) <= {0.0, 0.5, 1.0}


def test_of_an_encoder_decoder_model_the_stack_is_named(en_es: Model) -> None:
    for stack in ("encoder", "decoder", "cross"):
        with pytest.raises(NotFiniteError, match=f"scores of {stack} layer 2, head 1, are too large"):
            run(en_es, "The cat.", target="El gato.", interventions=[Scale(1e39, site=SiteRef(stack, 2), head=1)])


@pytest.fixture
def own_story_gpt() -> Model:
    """One whose weights may be spoiled."""
    return open_checkpoint("story-gpt")


def spoil(model: Model, name: str, value: float) -> None:
    with torch.no_grad():
        model.module.get_parameter(name).fill_(value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("transformer.h.4.mlp.c_proj.bias", float("nan"), "what decoder layer 4 adds to the residual stream is NaN"),
        ("transformer.h.4.mlp.c_proj.bias", float("inf"), "what decoder layer 4 adds to the residual stream is infi"),
        ("transformer.wpe.weight", float("nan"), r"the embeddings of the decoder are NaN \(no numbers\) in float32"),
        ("transformer.h.2.attn.c_attn.bias", float("inf"), "queries, keys or values of decoder layer 2 are infinity"),
        ("transformer.ln_f.bias", 3e38, "the logits are"),
    ],
)
def test_weights_that_overflow_are_named_by_layer_and_kind(
    own_story_gpt: Model, name: str, value: float, words: str
) -> None:
    spoil(own_story_gpt, name, value)
    with pytest.raises(NotFiniteError, match=words) as caught:
        run(own_story_gpt, TEXT)
    assert "its weights may be damaged" in str(caught.value)


def test_float16_ends_early() -> None:
    model = open_checkpoint("story-gpt", dtype="float16")
    run(model, TEXT)
    spoil(model, "transformer.h.4.mlp.c_proj.bias", 60_000)
    spoil(model, "transformer.h.5.mlp.c_proj.bias", 60_000)
    with pytest.raises(NotFiniteError, match=r"decoder layer 5 adds .* in float16\. Choose bfloat16 or float32"):
        run(model, TEXT)


@pytest.mark.parametrize("strategy", ["greedy", "sample", "beam"])
def test_what_would_be_written_from_no_numbers_is_not_written(story_gpt: Model, strategy: str) -> None:
    with pytest.raises(NotFiniteError, match="decoder layer 0, head 0, are too large"):
        list(decode(story_gpt, TEXT, 3, strategy=strategy, interventions=[Scale(1e39)]))


def test_infinitely_unlikely_is_a_figure(own_story_gpt: Model) -> None:
    """Some heads say -inf of entries that they never mean."""

    def never_the_first(_module: object, _args: object, out: torch.Tensor) -> torch.Tensor:
        return out.index_fill(-1, torch.tensor([0]), -torch.inf)

    own_story_gpt.module.get_submodule("lm_head").register_forward_hook(never_the_first)
    assert run(own_story_gpt, TEXT).logits[-1, 0] == -torch.inf


def test_the_device_is_waited_for_once(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    whole = torch.Tensor.tolist

    def tolist(tensor: torch.Tensor) -> object:
        waits.append(tensor.numel())
        return whole(tensor)

    encoded = story_gpt.encode(TEXT)
    monkeypatch.setattr(story_gpt, "encode", lambda *_: encoded)
    monkeypatch.setattr(torch.Tensor, "tolist", tolist)
    run(story_gpt, TEXT)
    assert waits == [8 + 2]  # embeddings, after each of 8 blocks, logits


def test_the_window_is_told_that_there_are_no_figures() -> None:
    engine = Engine()
    engine.run(LoadRequest(reference="story-gpt", ticket=1), never, silent)
    asked = ForwardRequest(inputs=RunInputs(TEXT, interventions=(Scale(1e39),)), ticket=2)
    failure = engine.run(asked, never, silent)
    assert isinstance(failure, Failure)
    assert failure.no_figures
    empty = engine.run(ForwardRequest(inputs=RunInputs(""), ticket=3), never, silent)
    assert isinstance(empty, Failure)
    assert not empty.no_figures
