"""The recurrent models against the same mathematics written out in float64 NumPy, and against themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_models.attention import attention
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from tests.models.recurrent_by_hand import Hand

TOLERANCE = 1e-10  # the modules are run in float64 here

SOURCE = [4, 7, 5, 9, 6, 8, 5, 2]
TARGET = [1, 5, 8, 8, 6, 4]

KINDS = [
    *((score, "global") for score in ("none", "bahdanau", "dot", "general", "concat")),
    *itertools.product(("dot", "general", "concat"), ("monotonic", "predictive")),
]


def made(score="bahdanau", scope="global", **choices) -> RecurrentSeq2Seq:
    torch.manual_seed(3)
    sizes = {"vocabulary": 12, "target_vocabulary": 10, "embedding": 5, "hidden": 6, "window": 2}
    config = RecurrentConfig(score=score, scope=scope, **{**sizes, **choices})
    model = RecurrentSeq2Seq(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)  # further from 0, so that weights are far from even
    return model


def row(ids: list[int]) -> Tensor:
    return torch.tensor([ids])


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(kind))
def kind(request):
    return request.param


# --------------------------------------------------------------------------- by hand


@pytest.mark.short("none-*-one-way", "general-*-both-ways", "*-monotonic-*", "concat-predictive-*")
@pytest.mark.parametrize("bidirectional", [True, False], ids=["both-ways", "one-way"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_everything_equals_a_hand_computation(kind, cell, bidirectional):
    model = made(*kind, cell=cell, bidirectional=bidirectional)
    hand = Hand(model).run(SOURCE, TARGET)
    out = model(row(SOURCE), row(TARGET))
    np.testing.assert_allclose(out.states[0].detach(), hand.states, atol=TOLERANCE)
    np.testing.assert_allclose(out.logits[0].detach(), hand.logits, atol=TOLERANCE)
    if kind[0] == "none":
        assert out.inputs is None
        return
    if kind[1] != "predictive":  # there the logarithm of the Gaussian has joined the scores
        np.testing.assert_allclose(attention.scores(out.inputs)[0, 0].detach(), hand.scores, atol=1e-5)
    weights = attention.weights(out.inputs)[0, 0].detach()
    np.testing.assert_allclose(weights, hand.weights, atol=1e-6)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert np.ptp(hand.weights) > 0.05  # weights that are all alike would hide a wrong score


# --------------------------------------------------------------------------- against itself


def test_padding_changes_nothing(kind):
    model = made(*kind)
    short, long = SOURCE[:5], SOURCE
    source = torch.tensor([short + [0] * 3, long])
    together = model(source, torch.tensor([TARGET, TARGET]))
    for i, ids in enumerate((short, long)):
        alone = model(row(ids), row(TARGET))
        torch.testing.assert_close(together.logits[i], alone.logits[0], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(together.states[i], alone.states[0], atol=TOLERANCE, rtol=0)
    if together.inputs is not None:
        weights = attention.weights(together.inputs)[0, 0]
        assert weights[:, 5:].eq(0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[:, 0]))


def test_step_by_step_equals_teacher_forcing(kind):
    model = made(*kind)
    whole = model(row(SOURCE), row(TARGET))
    writing = model.begin(row(SOURCE))
    for i, id_ in enumerate(TARGET):
        logits, writing = model.step(writing, torch.tensor([id_]))
        torch.testing.assert_close(logits[0], whole.logits[0, i], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(writing.context[0], whole.contexts[0, i], atol=TOLERANCE, rtol=0)
    assert writing.written == len(TARGET)


def test_some_of_a_batch_go_on_as_they_would_alone():
    model = made("general", cell="lstm")
    writing = model.begin(torch.tensor([SOURCE, SOURCE[::-1]]))
    _, writing = model.step(writing, torch.tensor([1, 1]))
    logits, _ = model.step(writing.taken(torch.tensor([1, 1, 0])), torch.tensor([5, 6, 7]))
    for i, (source, word) in enumerate(((SOURCE[::-1], 5), (SOURCE[::-1], 6), (SOURCE, 7))):
        alone = model(row(source), row([1, word])).logits[0, 1]
        torch.testing.assert_close(logits[i], alone, atol=TOLERANCE, rtol=0)


@pytest.mark.short("none-*", "general-global-gru", "*-monotonic-lstm", "concat-predictive-*")
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_gradients_reach_every_parameter(kind, cell):
    model = made(*kind, cell=cell, dropout=0.0).train()
    logits = model(torch.tensor([SOURCE, SOURCE[::-1]]), torch.tensor([TARGET, TARGET])).logits
    F.cross_entropy(logits.flatten(0, 1), torch.tensor([*TARGET[1:], 2] * 2)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_bahdanau_looks_with_the_state_before_and_luong_with_the_one_after():
    before, after = (made(score)(row(SOURCE), row(TARGET)) for score in ("bahdanau", "general"))
    torch.testing.assert_close(before.looking[0, 0], before.first[0])
    torch.testing.assert_close(before.looking[0, 1:], before.states[0, :-1])
    torch.testing.assert_close(after.looking, after.states)


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"score": "none", "scope": "monotonic"}, "not with none"),
        ({"score": "bahdanau", "scope": "predictive"}, "not with bahdanau"),
        ({"score": "bilinear"}, "“bilinear” is none of none, bahdanau, dot, general, concat."),
        ({"scope": "local"}, "“local”"),
        ({"cell": "rnn"}, "“rnn” is none of gru, lstm."),
        ({"hidden": 0}, "hidden is 0"),
        ({"window": 1.5}, "window is 1.5"),
        ({"vocabulary": "many"}, "vocabulary is 'many'"),
        ({"end": 10}, "end is 10, and has to be a whole number from 0 to 9"),
    ],
)
def test_an_impossible_choice_is_refused_with_a_sentence(choices, said):
    with pytest.raises(ValueError, match=said) as caught:
        RecurrentConfig(**{"vocabulary": 12, "target_vocabulary": 10, **choices})
    assert str(caught.value).endswith(".")
