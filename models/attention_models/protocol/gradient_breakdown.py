"""One step of a training, taken apart in numbers: losses token by token, two gradients, what moved. Plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenLoss:
    """What one place of one row was to say, and what it cost."""

    row: int  # of the batch
    place: int
    read: int  # the id that stands there in what the predicting stack reads
    label: int  # the id that it is to say: in a decoder the next one, as the target is shifted
    top: tuple[tuple[int, float, float], ...]  # the likeliest ids with logit and probability, the likeliest first
    logit: float  # of the label
    probability: float
    loss: float  # nats, with label smoothing
    plain: float  # -log of the label's probability: without it


@dataclass(frozen=True, slots=True)
class Term:
    """What one token adds to the gradient of W[token, dimension]: (p - y) h / tokens."""

    row: int
    place: int
    p: float  # what the model gives the weight's token there
    y: float  # what it should give it: 1 or 0, moved by label smoothing
    h: float  # the dimension of the state that the output matrix reads
    term: float


@dataclass(frozen=True, slots=True)
class OutputGradient:
    """The gradient of one entry of the output matrix by the chain rule."""

    token: int
    dimension: int
    terms: tuple[Term, ...]  # one a token that is learned from
    through_output: float  # their sum
    through_embedding: float  # by autograd, where the same matrix embeds texts: what comes by that way; else 0
    total: float  # by autograd


@dataclass(frozen=True, slots=True)
class NumericalGradient:
    """The gradient of one entry of any parameter, held against a central difference in float64."""

    name: str
    index: tuple[int, ...]
    width: float  # the weight is moved by so much to either side
    above: float  # the loss there, float64
    below: float
    difference: float  # (above - below) / (2 width)
    gradient: float  # by autograd, in the number format that is trained in


@dataclass(frozen=True, slots=True)
class AdamStep:
    """How Adam moved one weight: Kingma and Ba 2015, algorithm 1."""

    name: str
    index: tuple[int, ...]
    step: int
    before: float
    gradient: float
    clipped: float  # the gradient as it counts: shortened where that of all weights is longer than `clip`
    m_before: float
    v_before: float
    m: float  # beta1 m + (1 - beta1) g
    v: float  # beta2 v + (1 - beta2) g^2
    m_corrected: float  # m / (1 - beta1^step)
    v_corrected: float  # v / (1 - beta2^step)
    betas: tuple[float, float]
    epsilon: float
    rate: float
    change: float  # -rate m_corrected / (sqrt(v_corrected) + epsilon)
    after: float


@dataclass(frozen=True, slots=True)
class Moved:
    """How far one parameter moved: lengths (Euclidean) of all its numbers together."""

    name: str  # "model.decoder.layers.0.attn.q_proj.weight"
    part: str  # of the model: "decoder block 0"
    numbers: int
    gradient: float
    update: float
    weights: float  # before the step


@dataclass(frozen=True, slots=True)
class GradientBreakdown:
    """One step of a training."""

    step: int  # counted from 1
    words: tuple[str, ...]  # what to draw for each id: "a", "␣", "⟨start⟩"
    width: int  # of what the output matrix reads
    rows: int
    inputs: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]  # by name, the ids of each row that the model read
    labels: tuple[tuple[int, ...], ...]  # of each row; IGNORE where nothing is to be said
    smoothing: float
    tokens: tuple[TokenLoss, ...]  # every one that is learned from, row by row
    loss: float  # of the batch, in the number format that is trained in: the mean of the tokens' losses
    gradient_length: float  # of all weights
    clip: float
    output: OutputGradient
    deeper: NumericalGradient
    adam: AdamStep  # of the entry of the output matrix
    moved: tuple[Moved, ...]
