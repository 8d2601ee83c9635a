"""Gradients told apart, against autograd in float64 on models that are put together so that it tells them apart."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from attention_models.textbook.transformer import IGNORE
from attention_models.training.common import Budget
from attention_models.training.experiment import experiment
from attention_models.training.training import Training

TINY = {"width": "16", "heads": "2", "layers": "1", "batch": "8"}
RECURRENT: list[dict[str, str]] = [
    {},
    {"score": "none", "bidirectional": "off"},
    {"score": "none", "cell": "lstm"},
    {"score": "dot", "scope": "monotonic", "cell": "lstm", "dropout": "0"},
]


def loss_of(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    return nn.functional.cross_entropy(
        logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=smoothing
    )


def at_its_next_measurement(task: str, switches: dict[str, str]) -> Training:
    """Before step 10, whose gradients are measured."""
    made = experiment(task, switches, 3).training()
    made.run(Budget(steps=9))
    return made


@pytest.mark.parametrize("shape", ["encoder-decoder", "decoder", "encoder"])
@pytest.mark.parametrize("tied", ["on", "off"])
def test_the_head_is_told_apart_from_the_embedding_that_it_shares_its_matrix_with(shape: str, tied: str) -> None:
    made = at_its_next_measurement("reverse:4", {**TINY, "shape": shape, "tied": tied})
    model = copy.deepcopy(made.model).double()
    assert isinstance(model, TextbookModel)
    model.set_attn_implementation("eager")
    batch, number = made.next_batch()
    own_head = nn.Parameter(model.lm_head.weight.detach().clone())
    model.lm_head.weight = own_head  # no longer the embedding's
    loss_of(made.logits(model, batch, number), batch.labels, model.config.label_smoothing).backward()
    found = dict(made.step().gradients)
    assert own_head.grad is not None
    assert found["head"] == pytest.approx(float(own_head.grad.norm()), rel=1e-4)
    embeddings = {
        name: p.grad.norm()
        for name, p in model.named_parameters()
        if name.endswith(".embedding.weight") and p.grad is not None
    }
    if tied == "on":
        assert set(embeddings) == {f"model.{'encoder' if shape != 'decoder' else 'decoder'}.embedding.weight"}
        assert found["embedding"] == pytest.approx(float(*embeddings.values()), rel=1e-4)
    else:
        for name, length in embeddings.items():
            assert found[f"{name.split('.')[1]} embedding"] == pytest.approx(float(length), rel=1e-4)
    assert not any("and" in part for part in found)


class Unrolled(nn.Module):
    """The encoder of a recurrent model by cells, every state a tensor that keeps its gradient: float64."""

    def __init__(self, model: RecurrentSeq2Seq) -> None:
        super().__init__()
        self.model = model
        self.states: dict[tuple[int, int, int], Tensor] = {}  # by direction, row and step
        self.read: dict[tuple[int, int], Tensor] = {}  # by row and step: what the decoder reads
        self.cells = [self.cell(backward) for backward in range(2 if model.config.bidirectional else 1)]

    def cell(self, backward: int) -> nn.Module:
        encoder, config = self.model.encoder, self.model.config
        kind = nn.GRUCell if config.cell == "gru" else nn.LSTMCell
        cell = kind(config.embedding, config.hidden).double()
        for name, p in cell.named_parameters():
            p.data = getattr(encoder, f"{name}_l0{'_reverse' if backward else ''}").detach()
        return cell

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        model, config = self.model, self.model.config
        x = model.dropout(model.source_embedding(source))
        rows, last = [], []
        for row, ids in enumerate(source):
            length = int((ids != config.pad).sum())
            found: list[dict[int, Tensor]] = []
            for backward, cell in enumerate(self.cells):
                state = x.new_zeros(1, config.hidden)
                memory, here = torch.zeros_like(state), {}
                for t in reversed(range(length)) if backward else range(length):
                    if config.cell == "gru":
                        state = cell(x[row, t][None], state)
                    else:
                        state, memory = cell(x[row, t][None], (state, memory))
                    state.retain_grad()
                    self.states[backward, row, t] = state
                    here[t] = state[0]
                found.append(here)
            steps = []
            for t in range(length):
                read = torch.cat([half[t] for half in found])
                read.retain_grad()
                self.read[row, t] = read
                steps.append(read)
            steps += [x.new_zeros(config.encoded)] * (source.shape[1] - length)
            rows.append(torch.stack(steps))
            ends = [steps[length - 1][: config.hidden], steps[0][config.hidden :]]
            last.append(torch.cat(ends[: len(found)]))
        return torch.stack(rows), torch.tanh(model.bridge(torch.stack(last)))


def root_mean_square(gradients: list[Tensor]) -> float:
    return math.sqrt(sum(float(g.square().sum()) for g in gradients) / len(gradients))


@pytest.mark.parametrize("task", ["reverse:5", "addition:2"], ids=["equal lengths", "lengths that differ"])
@pytest.mark.parametrize("switches", RECURRENT, ids=lambda s: ",".join(s.values()) or "default")
def test_gradients_of_the_states_of_an_encoder(task: str, switches: dict[str, str], monkeypatch: Any) -> None:
    made = at_its_next_measurement(
        task, {"model": "recurrent", "hidden": "8", "embedding": "6", "batch": "6", **switches}
    )
    model = copy.deepcopy(made.model).double()
    assert isinstance(model, RecurrentSeq2Seq)
    unrolled = Unrolled(model)
    monkeypatch.setattr(model, "encode", unrolled.encode)
    batch, number = made.next_batch()
    model.train()
    value = loss_of(made.logits(model, batch, number), batch.labels, 0.0)
    value.backward()
    point = made.step()
    assert point.loss == pytest.approx(float(value.detach()), rel=1e-5)
    assert point.states
    directions = range(2 if model.config.bidirectional else 1)
    for t, (whole, read, passed) in enumerate(point.states):
        rows = [row for row, step in unrolled.read if step == t]
        wholes = [torch.cat([_grad(unrolled.states[d, row, t])[0] for d in directions]) for row in rows]
        reads = [_grad(unrolled.read[row, t]) for row in rows]
        assert whole == pytest.approx(root_mean_square(wholes), rel=1e-4, abs=1e-9)
        assert read == pytest.approx(root_mean_square(reads), rel=1e-4, abs=1e-9)
        rest = [w - r for w, r in zip(wholes, reads, strict=True)]
        assert passed == pytest.approx(root_mean_square(rest), rel=1e-3, abs=1e-9)
    assert len(point.states) == max(step for _, step in unrolled.read) + 1


def _grad(t: Tensor) -> Tensor:
    return torch.zeros_like(t) if t.grad is None else t.grad


def test_looking_changes_nothing(monkeypatch: Any) -> None:
    """A training whose gradients are measured at every tenth step goes as one in which nobody looks."""
    for switches in (TINY, {"model": "recurrent", "hidden": "8"}):
        one, other = (experiment("copy:3", switches, 1).training() for _ in range(2))
        monkeypatch.setattr(other, "_norms", lambda _: ())
        monkeypatch.setattr(other, "_watched", torch.enable_grad)
        for _ in range(11):
            assert one.step().loss == other.step().loss
        for name, p in one.model.named_parameters():
            assert torch.equal(p, other.model.get_parameter(name)), name


def test_through_the_bottleneck_it_vanishes_and_attention_reads_every_state() -> None:
    """Bengio et al. 1994: of an untrained encoder's first state far less is learned than of its last."""
    found = {}
    for score in ("none", "bahdanau"):
        switches = {"model": "recurrent", "score": score, "bidirectional": "off", "dropout": "0"}
        found[score] = experiment("reverse:12", switches, 0).training().step().states
    bottleneck, attention = found["none"], found["bahdanau"]
    assert [state.read for state in bottleneck[:-1]] == [0.0] * (len(bottleneck) - 1)
    assert bottleneck[0].whole < 0.05 * bottleneck[-1].whole
    assert min(state.read for state in attention) > 0.0
    assert attention[0].whole / attention[-1].whole > 10 * bottleneck[0].whole / bottleneck[-1].whole
