"""Which parts of each block are offered to be switched off."""

from __future__ import annotations

from attention_models.protocol.ablation import PartsRequest, PartsView
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models.asking import ask, opened

NORMS = tuple(f"norm{i + 1}" for i in range(3))


def parts_of(reference: str, text: str) -> PartsView:
    engine = opened(reference)
    ask(engine, ForwardRequest(inputs=RunInputs(text, target="Buenos"), ticket=2))
    view = ask(engine, PartsRequest(run=2))
    assert isinstance(view, PartsView)
    return view


def test_both_stacks_of_a_translator() -> None:
    view = parts_of("en-es", "Good morning.")
    encoder, decoder = view.at(SiteRef("encoder", 0)), view.at(SiteRef("decoder", 2))
    assert encoder is not None
    assert encoder.parts == ("attention", "mlp", *NORMS[:2])
    assert decoder is not None
    assert decoder.parts == ("attention", "cross", "mlp", *NORMS)
    assert view.at(SiteRef("cross", 2)) is decoder
    assert view.at(SiteRef("decoder", 99)) is None
    assert not any(block.why for block in view.blocks)


def test_a_recurrent_model_has_none() -> None:
    assert parts_of("recurrent-en-es-bahdanau", "Good morning.").blocks == ()
