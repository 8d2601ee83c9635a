"""A position scheme that no other file knows of: recognised, described, refused and turned off by its own class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pytest
import torch

import attention_models as models
from attention_models import open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.forward.position_schemes import SCHEMES, Scheme, register, scheme_of
from attention_models.protocol.errors import InputError
from attention_models.protocol.positions import PositionScheme
from attention_models.views.positions import describe_positions
from tests.models.textbook_folders import KINDS, write_folder
from tests.models.tiny import SENTENCE


class Reversed(Scheme):
    """Counts the tokens of a text from its end. Of a model that says so in its config."""

    @classmethod
    def of(cls, model: Model) -> Self | None:
        return cls() if getattr(model.config, "counts_from_the_end", False) else None

    def at(self, model: Model, site: Any) -> PositionScheme:
        return PositionScheme(kind="reversed", name="from the end", title="Counted from the end", words="Backwards.")

    def why_not_off(self, model: Model) -> str:
        return ""

    @contextmanager
    def off(self, inputs: dict[str, torch.Tensor]) -> Iterator[dict[str, torch.Tensor]]:
        count = inputs["input_ids"].shape[1]
        yield {**inputs, "position_ids": torch.arange(count - 1, -1, -1)[None]}


@pytest.fixture
def reversed_model(tiny_model, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setattr("attention_models.forward.position_schemes.SCHEMES", schemes := list(SCHEMES))
    register_first(schemes)
    model: Model = tiny_model("llama")
    monkeypatch.setattr(model, "position_scheme", None)
    model.config.counts_from_the_end = True
    return model


def register_first(schemes: list[type[Scheme]]) -> None:
    """In the list that the test looks in, before the rotations that the model has as well."""
    register(Reversed)
    schemes.insert(0, schemes.pop())


def test_a_new_scheme_is_recognised_described_and_turned_off(reversed_model):
    assert isinstance(scheme_of(reversed_model), Reversed)
    assert scheme_of(reversed_model) is scheme_of(reversed_model)
    trace = models.run(reversed_model, SENTENCE)
    scheme = describe_positions(reversed_model, trace.sites[0])
    assert (scheme.kind, scheme.name, scheme.off_note) == ("reversed", "from the end", "")
    assert scheme.shift_note == f"{reversed_model.info.name} has no positions that could be shifted."
    off = models.run(reversed_model, SENTENCE, interventions=[models.Positions("off")])
    inputs = dict(reversed_model.encode(SENTENCE).inputs)
    inputs["position_ids"] = torch.arange(inputs["input_ids"].shape[1] - 1, -1, -1)[None]
    with torch.no_grad():
        expected = reversed_model.forward(inputs).logits[0]
    torch.testing.assert_close(off.logits_at(range(len(off.tokens))), expected, atol=0, rtol=0)
    assert float((torch.from_numpy(trace.logits) - expected).abs().max()) > 1e-3
    with pytest.raises(InputError, match="has no positions that could be shifted"):
        models.run(reversed_model, SENTENCE, interventions=[models.Positions("shift", 3)])


def test_a_model_without_it_keeps_its_own(story_gpt):
    assert type(scheme_of(story_gpt)).__name__ == "Table"


@pytest.mark.parametrize(
    ("kind", "stack", "words", "farthest"),
    [
        ("additive", "encoder", "that are concatenated to a token's embedding are waves", None),
        ("encoder-decoder", "encoder", "that are added to a token's embedding are waves", None),
        ("not-causal", "decoder", "Slopes (ALiBi)", 160),
        ("slopes-both-ways", "encoder", "Slopes (ALiBi)", 160),
    ],
)
def test_textbook_transformers(tmp_path, kind, stack, words, farthest):
    model = open_checkpoint(write_folder(tmp_path, **KINDS[kind]))
    trace = run(model, "abcab>", target="" if model.seq2seq else None)
    scheme = scheme_of(model).at(model, next(site for site in trace.sites if site.stack == stack))
    assert scheme is not None
    assert words in f"{scheme.title} {scheme.words}"
    if farthest is not None:  # both ways, as the scores have it
        assert scheme.distances is not None
        assert scheme.bias is not None
        assert scheme.distances[-1] == farthest
        bias = trace.inputs[0].bias
        assert bias is not None
        np.testing.assert_allclose(scheme.bias[:, farthest - 2 : farthest + 3], bias[0, :, 2, :5], atol=1e-6)
