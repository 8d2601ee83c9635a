"""Takes one step of a training apart: it is the training's own step, with its batch and its dropout.

loss of a token   -sum_j y_j log p_j,  y the label's 1 smoothed: (1 - s) [j = label] + s / V      section 5.4
loss              their mean over the N tokens that are learned from
gradient          dL/dW[j, i] = sum_t (p_tj - y_tj) h_ti / N     of the output matrix, logits = W h
Adam              Kingma and Ba 2015, algorithm 1                                                 section 5.3
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_models.protocol.gradient_breakdown import (
    AdamStep,
    GradientBreakdown,
    Moved,
    NumericalGradient,
    OutputGradient,
    Term,
    TokenLoss,
)
from attention_models.text.tokens import special_label, visible
from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.tokenizer import END_ID, SPECIAL, START_ID
from attention_models.textbook.transformer import IGNORE, loss
from attention_models.training.gradients import HeadPass
from attention_models.training.rows import Batch
from attention_models.training.training import BETAS, EPSILON, Training

_TOP = 5  # logits told of each token
_WIDTH = 1e-4  # of the numerical difference, in float64: its error is of the order of the square


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a parameter."""

    name: str
    index: tuple[int, ...]


def break_down_gradient(
    training: Training, token: int | None = None, dimension: int | None = None, deeper: Entry | None = None
) -> GradientBreakdown:
    """Take the training's next step, and tell what happened in it. The step is the one that `step` would have taken.

    Args:
        token, dimension: of the output matrix's entry; the first label of the batch, and the dimension with which it
            was said, where they are left out.
        deeper: another entry, whose gradient is compared with a numerical difference; left out one of the first
            block's first matrix, where its gradient is largest.

    Raises:
        TypeError: the model is no textbook transformer.
        Diverged: as `Training.step`; nothing was changed then.
        IndexError: no such entry.
        KeyError: no such parameter.
    """
    model = training.model
    if not isinstance(model, TextbookModel):
        raise TypeError("The next batch is shown in numbers where a transformer learns, and this is a recurrent model.")
    batch, number = training.next_batch()
    with HeadPass(model.lm_head) as head:
        logits = training.logits(model, batch, number)
    smoothing = model.config.label_smoothing
    value = loss(logits, batch.labels, smoothing)
    value.backward()
    named = dict(model.named_parameters())
    gradients = {name: p.grad.detach().clone() for name, p in named.items() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    length = float(torch.stack([g.norm() for g in gradients.values()]).norm())
    # a tied output matrix has the name of the embedding
    name = next(name for name, p in named.items() if p is model.lm_head.weight)
    said, read = logits.detach(), head.states
    output = _output(model, gradients[name], head.gradient, batch, read, said, smoothing, token, dimension)
    entry = deeper or _deep_entry(gradients)
    numerical = _numerical(training, model, batch, number, entry, gradients)
    before = {name: p.detach().clone() for name, p in named.items()}
    moments = training.moments(name)
    point = training.step(training.cooling)
    adam = _adam(training, named, before, gradients, output, moments, length, number, point.rate, name)
    return GradientBreakdown(
        step=number,
        words=_labels(training),
        width=model.config.width,
        rows=len(batch.labels),
        inputs=tuple((name, _ids(t)) for name, t in batch.inputs.items()),
        labels=_ids(batch.labels),
        smoothing=smoothing,
        tokens=_token_losses(batch, said, smoothing, _read(model, batch)),
        loss=float(value.detach()),
        gradient_length=length,
        clip=training.settings.clip,
        output=output,
        deeper=numerical,
        adam=adam,
        moved=_moved(training.parts, named, before, gradients),
    )


def _read(model: TextbookModel, batch: Batch) -> Tensor:
    """Ids that the stack that predicts reads, (rows, tokens)."""
    return batch.inputs["decoder_input_ids" if model.config.shape == "encoder-decoder" else "input_ids"]


def _labels(training: Training) -> tuple[str, ...]:
    start, end = SPECIAL[START_ID], SPECIAL[END_ID]
    special = (special_label(piece, False, start, end) for piece in SPECIAL)
    return (*special, *map(visible, training.rows.alphabet))


def _ids(t: Tensor) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in t.long().tolist())


def _wanted(labels: Tensor, vocabulary: int, smoothing: float) -> Tensor:
    """y: what each token should give each word, (tokens, vocabulary) float64."""
    hot = nn.functional.one_hot(labels, vocabulary).double()
    return (1 - smoothing) * hot + smoothing / vocabulary


def _token_losses(batch: Batch, logits: Tensor, smoothing: float, read: Tensor) -> tuple[TokenLoss, ...]:
    found = []
    for row, place in (batch.labels != IGNORE).nonzero().tolist():
        said, label = logits[row, place].double(), int(batch.labels[row, place])
        log_p = said.log_softmax(-1)
        y = _wanted(batch.labels[row, place][None], len(said), smoothing)[0]
        best = said.topk(min(_TOP, len(said))).indices.tolist()
        found.append(
            TokenLoss(
                row=row,
                place=place,
                read=int(read[row, place]),
                label=label,
                top=tuple((id_, float(said[id_]), math.exp(float(log_p[id_]))) for id_ in best),
                logit=float(said[label]),
                probability=math.exp(float(log_p[label])),
                loss=float(-(y * log_p).sum()),
                plain=-float(log_p[label]),
            )
        )
    return tuple(found)


def _output(
    model: TextbookModel,
    gradient: Tensor,
    head: Tensor,
    batch: Batch,
    states: Tensor,
    logits: Tensor,
    smoothing: float,
    token: int | None,
    dimension: int | None,
) -> OutputGradient:
    """By the chain rule, in float64: (p - y) h of every token, and their sum.

    `gradient` and `head` are autograd's: of all that the matrix is used for, and of its use as the output matrix.
    """
    places = (batch.labels != IGNORE).nonzero()
    labels, h = batch.labels[batch.labels != IGNORE], states[batch.labels != IGNORE].double()
    p = logits[batch.labels != IGNORE].double().softmax(-1)  # (tokens, vocabulary)
    y = _wanted(labels, p.shape[1], smoothing)
    token = int(labels[0]) if token is None else token
    dimension = int(h[0].abs().argmax()) if dimension is None else dimension
    if not (0 <= token < p.shape[1] and 0 <= dimension < h.shape[1]):
        raise IndexError(f"The output matrix has no entry ({token}, {dimension}): it is {p.shape[1]} x {h.shape[1]}.")
    terms = (p[:, token] - y[:, token]) * h[:, dimension] / len(labels)  # (tokens,)
    total = float(gradient[token, dimension])
    return OutputGradient(
        token=token,
        dimension=dimension,
        terms=tuple(
            Term(row, place, *numbers)
            for (row, place), *numbers in zip(
                places.tolist(),
                p[:, token].tolist(),
                y[:, token].tolist(),
                h[:, dimension].tolist(),
                terms.tolist(),
                strict=True,
            )
        ),
        through_output=float(terms.sum()),
        through_embedding=total - float(head[token, dimension]) if model.config.tied else 0.0,
        total=total,
    )


def _deep_entry(gradients: Mapping[str, Tensor]) -> Entry:
    name = next(name for name, g in gradients.items() if ".layers.0." in name and g.dim() == 2)
    flat = int(gradients[name].abs().argmax())
    return Entry(name, (flat // gradients[name].shape[1], flat % gradients[name].shape[1]))


def _numerical(
    training: Training, model: TextbookModel, batch: Batch, number: int, entry: Entry, gradients: Mapping[str, Tensor]
) -> NumericalGradient:
    """By a copy of the model in float64, with the same dropout."""
    gradient = float(gradients[entry.name][entry.index])
    exact = copy.deepcopy(model).double()
    exact.set_attn_implementation("eager")
    exact.train()
    weight = exact.get_parameter(entry.name)
    kept = float(weight.detach()[entry.index])
    found = []
    with torch.no_grad():
        for side in (kept + _WIDTH, kept - _WIDTH):
            weight[entry.index] = side
            found.append(float(loss(training.logits(exact, batch, number), batch.labels, exact.config.label_smoothing)))
    above, below = found
    return NumericalGradient(
        name=entry.name,
        index=entry.index,
        width=_WIDTH,
        above=above,
        below=below,
        difference=(above - below) / (2 * _WIDTH),
        gradient=gradient,
    )


def _adam(
    training: Training,
    named: Mapping[str, nn.Parameter],
    before: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    output: OutputGradient,
    moments: tuple[Tensor, Tensor],
    length: float,
    number: int,
    rate: float,
    name: str,
) -> AdamStep:
    index = (output.token, output.dimension)
    (beta1, beta2), epsilon = BETAS, EPSILON
    gradient = float(gradients[name][index])
    clipped = gradient * min(1.0, training.settings.clip / (length + 1e-6))  # as torch's clip_grad_norm_
    m_before, v_before = (float(t[index]) for t in moments)
    m = beta1 * m_before + (1 - beta1) * clipped
    v = beta2 * v_before + (1 - beta2) * clipped**2
    m_corrected, v_corrected = m / (1 - beta1**number), v / (1 - beta2**number)
    return AdamStep(
        name=name,
        index=index,
        step=number,
        before=float(before[name][index]),
        gradient=gradient,
        clipped=clipped,
        m_before=m_before,
        v_before=v_before,
        m=m,
        v=v,
        m_corrected=m_corrected,
        v_corrected=v_corrected,
        betas=BETAS,
        epsilon=EPSILON,
        rate=rate,
        change=-rate * m_corrected / (math.sqrt(v_corrected) + epsilon),
        after=float(named[name].detach()[index]),
    )


@torch.no_grad()
def _moved(
    parts: Mapping[str, list[nn.Parameter]],
    named: Mapping[str, nn.Parameter],
    before: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
) -> tuple[Moved, ...]:
    part_of = {id(p): part for part, parameters in parts.items() for p in parameters}
    return tuple(
        Moved(
            name=name,
            part=part_of[id(p)],
            numbers=p.numel(),
            gradient=float(gradients[name].double().norm()) if name in gradients else 0.0,
            update=float((p.double() - before[name].double()).norm()),
            weights=float(before[name].double().norm()),
        )
        for name, p in named.items()
    )
