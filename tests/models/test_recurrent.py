"""The recurrent models against the same mathematics written out in float64 NumPy, and against themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from models import attention
from models.textbook.recurrent import RecurrentConfig, RecurrentSeq2Seq

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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Hand:
    """The whole model once more, one vector at a time."""

    def __init__(self, model: RecurrentSeq2Seq) -> None:
        self.config = model.config
        self.named = {name: t.detach().numpy() for name, t in model.state_dict().items()}
        self.states: list[np.ndarray] = []  # the decoder's, after each step
        self.scores: list[list[float]] = []  # before any window
        self.weights: list[list[float]] = []
        self.logits: list[np.ndarray] = []

    def linear(self, name, x):
        bias = self.named.get(f"{name}.bias", 0.0)
        return self.named[f"{name}.weight"] @ x + bias

    def turn(self, where: str, suffix: str, x, h, c):
        gates_x = self.named[f"{where}.weight_ih{suffix}"] @ x + self.named[f"{where}.bias_ih{suffix}"]
        gates_h = self.named[f"{where}.weight_hh{suffix}"] @ h + self.named[f"{where}.bias_hh{suffix}"]
        if self.config.cell == "lstm":
            i, f, g, o = np.split(gates_x + gates_h, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(c), c
        (rx, zx, nx), (rh, zh, nh) = np.split(gates_x, 3), np.split(gates_h, 3)
        z = sigmoid(zx + zh)
        return (1 - z) * np.tanh(nx + sigmoid(rx + rh) * nh) + z * h, c

    def read(self, ids: list[int], suffix: str) -> list[np.ndarray]:
        h = c = np.zeros(self.config.hidden)
        states = []
        for id_ in ids:
            h, c = self.turn("encoder", suffix, self.named["source_embedding.weight"][id_], h, c)
            states.append(h)
        return states

    def score(self, s: np.ndarray, h: np.ndarray) -> float:
        match self.config.score:
            case "dot" | "general":
                return float(s @ (self.linear("score.narrow", h) if "score.narrow.weight" in self.named else h))
            case _:
                inside = np.tanh(self.linear("score.w", s) + self.linear("score.u", h))
                return float(self.linear("score.v", inside)[0])

    def look(self, s, encoded, step):
        e = [self.score(s, h) for h in encoded]
        self.scores.append(e)
        last, d = len(encoded) - 1, self.config.window
        factors = [1.0] * len(encoded)
        if self.config.scope == "monotonic":
            factors = [float(abs(j - min(step, last)) <= d) for j in range(len(encoded))]
        if self.config.scope == "predictive":
            p = last * sigmoid(self.linear("place.v", np.tanh(self.linear("place.w", s)))[0])
            # Luong et al. 2015, equation 10, with sigma = D / 2; here the row is made to sum to 1 after it
            factors = [
                float(np.exp(-((j - p) ** 2) / (2 * (d / 2) ** 2))) if abs(j - p) <= d else 0.0
                for j in range(len(encoded))
            ]
        powers = [np.exp(score - max(e)) * factor for score, factor in zip(e, factors, strict=True)]
        self.weights.append([power / sum(powers) for power in powers])
        return sum(w * h for w, h in zip(self.weights[-1], encoded, strict=True))

    def run(self, source: list[int], target: list[int]) -> Hand:
        config = self.config
        encoded = self.read(source, "_l0")
        last = encoded[-1]
        if config.bidirectional:
            backward = self.read(source[::-1], "_l0_reverse")[::-1]
            last = np.concatenate([encoded[-1], backward[0]])
            encoded = [np.concatenate(pair) for pair in zip(encoded, backward, strict=True)]
        first = s = np.tanh(self.linear("bridge", last))
        memory = np.zeros_like(s)
        for step, id_ in enumerate(target):
            y = self.named["target_embedding.weight"][id_]
            if config.score in ("none", "bahdanau"):
                if config.score == "none":
                    context = np.concatenate([first, np.zeros(config.encoded - config.hidden)])
                else:
                    context = self.look(s, encoded, step)
                s, memory = self.turn("decoder", "", np.concatenate([y, context]), s, memory)
                joined = np.concatenate([s, context, y])
            else:
                s, memory = self.turn("decoder", "", y, s, memory)
                context = self.look(s, encoded, step)
                joined = np.concatenate([context, s])
            self.states.append(s)
            self.logits.append(self.linear("output", np.tanh(self.linear("combine", joined))))
        return self


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
