"""Every figure of a step that is taken apart, against autograd in float64, finite differences and a second training."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import nn

from attention_models.protocol.gradient_breakdown import GradientBreakdown
from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.tasks import TASKS
from attention_models.textbook.tokenizer import SPECIAL
from attention_models.textbook.transformer import IGNORE
from attention_models.textbook.transformer_config import TransformerConfig
from attention_models.training.common import Budget
from attention_models.training.gradient_breakdown import Entry, break_down_gradient
from attention_models.training.rows import TaskRows
from attention_models.training.settings import Settings
from attention_models.training.training import Training
from attention_models.training.training_loop import Command

SMALL = {"width": 16, "heads": 2, "layers": 2, "inner": 24}

SWITCHES: list[dict[str, Any]] = [
    {},
    {"shape": "decoder"},
    {"shape": "encoder", "label_smoothing": 0.0},
    {"shape": "decoder", "tied": False, "norm_place": "pre", "norm": "rms", "feed_forward": "swiglu", "key_heads": 1},
    {"dropout": 0.0, "tied": False, "positions": "alibi"},
    {"shape": "decoder", "score": "additive", "positions": "learned", "feed_forward": "none"},
]


def training(steps: int = 3, clip: float = 1.0, **switches: Any) -> Training:
    shape = switches.get("shape", "encoder-decoder")
    rows = TaskRows(TASKS["reverse"], 4, shape, 0)
    config = TransformerConfig(
        **{**SMALL, "vocabulary": len(SPECIAL) + len(rows.alphabet), "context": rows.context, **switches}
    )
    made = Training(config, rows, Settings(batch=6, warmup=10, clip=clip))
    for _ in range(steps):
        made.step()
    return made


def exact_copy(made: Training) -> TextbookModel:
    """The model in float64, computed by the formula as it is printed."""
    model = copy.deepcopy(made.model).double()
    assert isinstance(model, TextbookModel)
    model.set_attn_implementation("eager")
    return model


def loss_of(logits: torch.Tensor, labels: torch.Tensor, model: TextbookModel) -> torch.Tensor:
    """torch's own cross-entropy, float64."""
    smoothing = model.config.label_smoothing
    return nn.functional.cross_entropy(
        logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=smoothing
    )


def exact(made: Training) -> tuple[TextbookModel, torch.Tensor]:
    """A copy in float64, and the loss of the next step."""
    batch, number = made.next_batch()
    model = exact_copy(made)
    return model, loss_of(made.logits(model, batch, number), batch.labels, model)


@pytest.fixture(scope="module", params=range(len(SWITCHES)), ids=lambda i: ",".join(SWITCHES[i]) or "default")
def case(request: pytest.FixtureRequest) -> tuple[Training, GradientBreakdown, nn.Module, torch.Tensor]:
    switches = SWITCHES[request.param]
    made = training(**switches)
    model, value = exact(made)
    value.backward()
    return made, break_down_gradient(made), model, value.detach()


def test_losses_and_their_mean(case) -> None:
    made, found, _, value = case
    assert found.loss == pytest.approx(float(value), rel=1e-5)
    assert sum(token.loss for token in found.tokens) / len(found.tokens) == pytest.approx(float(value), rel=1e-5)
    assert len(found.tokens) == sum(label != IGNORE for row in found.labels for label in row)
    smoothing, v = found.smoothing, made.config.vocabulary
    assert isinstance(made.config, TransformerConfig)
    assert smoothing == made.config.label_smoothing
    assert smoothing == made.config.label_smoothing
    for token in found.tokens:
        assert token.plain == pytest.approx(-math.log(token.probability))
        if not smoothing:
            assert token.loss == pytest.approx(token.plain)
        assert [p for _, _, p in token.top] == sorted((p for _, _, p in token.top), reverse=True)
        assert token.label == found.labels[token.row][token.place]
        assert 0 <= token.label < v


def test_the_target_is_shifted(case) -> None:
    made, found, *_ = case
    if made.config.shape == "encoder":
        return  # it says what stands under its masks
    labels = {(token.row, token.place): token.label for token in found.tokens}
    for token in found.tokens:
        before = labels.get((token.row, token.place - 1))
        assert before is None or token.read == before  # what is read is what was to be said one place before


def test_the_output_gradient_is_the_sum_over_tokens(case) -> None:
    made, found, model, _ = case
    output = found.output
    wanted = float(model.lm_head.weight.grad[output.token, output.dimension])
    assert output.total == pytest.approx(wanted, rel=1e-4, abs=1e-7)
    assert sum(term.term for term in output.terms) == pytest.approx(output.through_output, abs=1e-12)
    for term in output.terms:
        assert term.term == pytest.approx((term.p - term.y) * term.h / len(output.terms), abs=1e-12)
    assert output.through_output + output.through_embedding == pytest.approx(output.total, abs=1e-6)
    assert (output.through_embedding != 0) == made.config.tied


@pytest.mark.parametrize("switches", SWITCHES[:4], ids=str)
def test_what_comes_through_the_output_matrix_alone(switches: dict[str, Any]) -> None:
    """With the states held, and the matrix a parameter of its own: autograd in float64."""
    made = training(**switches)
    batch, number = made.next_batch()
    model = exact_copy(made)
    states: list[torch.Tensor] = []
    handle = model.lm_head.register_forward_pre_hook(lambda _, args: states.append(args[0].detach()))
    made.logits(model, batch, number)
    handle.remove()
    matrix = model.lm_head.weight.detach().clone().requires_grad_()
    loss_of(states[0] @ matrix.T, batch.labels, model).backward()
    output = break_down_gradient(made).output
    assert matrix.grad is not None
    through = float(matrix.grad[output.token, output.dimension])
    assert output.through_output == pytest.approx(through, rel=1e-5)
    loss_of(made.logits(model, batch, number), batch.labels, model).backward()
    rest = float(model.lm_head.weight.grad[output.token, output.dimension]) - through
    assert output.through_embedding == pytest.approx(rest if model.config.tied else 0.0, rel=1e-4, abs=1e-6)


def test_a_deeper_gradient_is_the_difference(case) -> None:
    _, found, model, _ = case
    deeper = found.deeper
    wanted = float(model.get_parameter(deeper.name).grad[deeper.index])
    assert deeper.difference == pytest.approx(wanted, rel=1e-5, abs=1e-9)  # float64, an error of the width squared
    assert deeper.gradient == pytest.approx(wanted, rel=1e-3, abs=1e-7)  # float32
    assert deeper.difference == (deeper.above - deeper.below) / (2 * deeper.width)
    assert ".layers.0." in deeper.name


def test_adam_moved_the_weight(case) -> None:
    made, found, *_ = case
    adam = found.adam
    assert adam.after == float(made.model.get_parameter(adam.name).detach()[adam.index])
    # float32 rounds the weight that it is added to
    assert adam.after - adam.before == pytest.approx(adam.change, abs=1e-7 + 1e-6 * abs(adam.before))
    m, v = (float(t[adam.index]) for t in made.moments(adam.name))
    assert adam.m == pytest.approx(m, rel=1e-5, abs=1e-10)
    assert adam.v == pytest.approx(v, rel=1e-5, abs=1e-12)
    assert adam.rate == made.settings.learning_rate(found.step, made.config.width)
    assert abs(adam.clipped) <= abs(adam.gradient)


def test_what_moved_adds_up(case) -> None:
    made, found, model, _ = case
    assert [(one.name, one.numbers) for one in found.moved] == [(n, p.numel()) for n, p in model.named_parameters()]
    assert math.hypot(*(one.gradient for one in found.moved)) == pytest.approx(found.gradient_length, rel=1e-5)
    for one in found.moved:
        wanted = model.get_parameter(one.name)
        assert one.gradient == pytest.approx(float(wanted.grad.norm()), rel=1e-3, abs=1e-6)
        assert one.weights == pytest.approx(float(wanted.detach().norm()))
        assert any(made.model.get_parameter(one.name) is p for p in made.parts[one.part])


@pytest.mark.parametrize("switches", SWITCHES[:3], ids=str)
def test_the_step_is_the_trainings_own(switches: dict[str, Any]) -> None:
    one, other = training(**switches), training(**switches)
    found = break_down_gradient(one)
    point = other.step()
    assert (found.step, found.loss) == (point.step, point.loss)
    for name, p in one.model.named_parameters():
        assert torch.equal(p, other.model.get_parameter(name)), name
    assert one.step().loss == other.step().loss  # and all that follows


def test_updates_are_the_differences() -> None:
    made = training()
    before = {name: p.detach().double().clone() for name, p in made.model.named_parameters()}
    found = break_down_gradient(made)
    for one in found.moved:
        difference = made.model.get_parameter(one.name).detach().double() - before[one.name]
        assert one.update == pytest.approx(math.sqrt(float(difference.square().sum())))
    assert any(one.update > 0 for one in found.moved)


def test_ids_are_told_in_words(case) -> None:
    made, found, *_ = case
    alphabet = made.rows.alphabet
    ids = dict(found.inputs)["input_ids"][0]
    assert len(found.words) == made.config.vocabulary
    letters = [found.words[i] for i in ids if i >= len(SPECIAL)]
    assert letters == [alphabet[i - len(SPECIAL)] for i in ids if i >= len(SPECIAL)]
    assert found.words[: len(SPECIAL)] == ("⟨pad⟩", "⟨start⟩", "⟨end⟩", "⟨unk⟩", "⟨mask⟩")
    assert found.width == made.model.get_parameter("lm_head.weight").shape[1]


def test_the_rate_is_that_of_a_run_that_cools_down() -> None:
    made, rates = training(steps=0), []

    def command() -> Command:
        with made.untouched():
            rates.append(break_down_gradient(made).adam.rate)
        return "go"

    made.run(Budget(steps=5), command=command, cool_down=True)
    assert rates == [point.rate for point in made.points]
    assert rates[-1] < made.settings.learning_rate(5, made.config.width)
    with made.untouched():
        assert break_down_gradient(made).adam.rate == made.settings.learning_rate(6, made.config.width)


def test_the_first_step_and_a_gradient_that_is_cut() -> None:
    made = training(steps=0, clip=0.01)
    found = break_down_gradient(made)
    assert (found.adam.m_before, found.adam.v_before) == (0, 0)
    assert found.gradient_length > 0.01
    assert found.adam.clipped == pytest.approx(found.adam.gradient * 0.01 / found.gradient_length, rel=1e-4)
    # Adam's first step is the rate, whatever the gradient
    assert abs(found.adam.change) == pytest.approx(found.adam.rate, rel=1e-3)


def test_chosen_entries_and_those_that_are_none() -> None:
    made = training(tied=False)
    entry = Entry("model.decoder.layers.1.cross_attn.k_proj.weight", (3, 5))
    found = break_down_gradient(made, token=4, dimension=7, deeper=entry)
    assert (found.output.token, found.output.dimension) == (4, 7)
    assert (found.deeper.name, found.deeper.index) == (entry.name, entry.index)
    before = made.step_number
    with pytest.raises(IndexError, match="no entry"):
        break_down_gradient(made, token=4, dimension=16)
    with pytest.raises(KeyError):
        break_down_gradient(made, deeper=Entry("model.nothing.weight", (0, 0)))
    assert made.step_number == before
    assert all(p.grad is None for p in made.model.parameters())
