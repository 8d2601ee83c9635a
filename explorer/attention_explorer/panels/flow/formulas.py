"""The formula of a box, and the same with the numbers of one row of its table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_explorer.panels.flow.box_text import bracketed, is_off, neuron_name, norm_terms
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.flow import (
    STREAM,
    BlockView,
    Box,
    FeedForwardBox,
    FirstTerms,
    HeadsBox,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)

_LARGEST = 3  # weights of a row that are written out


def formula(box: Box) -> str:
    """In letters; "" for a module of which no more is known than what went in and what came out."""
    match box:
        case NormBox():
            return _of_norm(box)
        case ProjectionBox(makes=makes, bias=bias):
            name = makes if len(makes) == 1 else ", ".join(makes)
            return f"{name} = x W{'_' + makes.upper() if len(makes) == 1 else ''}{' + b' if bias else ''}"
        case HeadsBox():
            return "head = Σⱼ wⱼ vⱼ: its weights of the row, times the values"
        case OutputBox(bias=bias):
            return f"y = concat(heads) W_O{' + b' if bias else ''}"
        case FeedForwardBox():
            return _of_network(box)
        case SumBox(reads=reads):
            return "y = " + " + ".join(("x₁", "x₂", "x₃", "x₄")[: len(reads)])
    return ""


def worked(view: BlockView, number: int, row: int, keys: Sequence[str]) -> str:
    """One row of the table of box `number`, as it is computed; "" where there are no numbers to write."""
    box = view.boxes[number]
    if is_off(box) and not isinstance(box, NormBox):
        return "Switched off: nothing of it is added to the stream."
    match box:
        case HeadsBox():
            return _head(box, row, keys)
        case FeedForwardBox(neurons=neurons) if row < len(neurons):
            neuron = neurons[row]
            return (
                f"neuron {neuron_name(neuron)}: {value_text(neuron.activation)} × its row of W₂, "
                f"a vector of norm {value_text(neuron.write_norm)}"
            )
    if row >= len(box.after):
        return ""
    y = value_text(float(box.after[row]))
    match box:
        case NormBox(before=before) if before is not None:
            return f"dimension {row}: {norm_terms(box, row)} = {y}"
        case ProjectionBox(before=before, first=first) | OutputBox(before=before, first=first) if before is not None:
            if first is None:
                bias = f" + b[{row}]" if box.bias else ""
                return f"dimension {row}: Σᵢ xᵢ W[i, {row}]{bias} = {y}, over {len(before):,} dimensions of x"
            return f"dimension {row}: {' + '.join(_products(before, first, row))} = {y}"
        case SumBox():
            terms = _terms(view, box, row)
            return f"dimension {row}: {' + '.join(terms)} = {y}" if terms else ""
    return ""


def _of_norm(box: NormBox) -> str:
    inner = "x ÷ √(mean of x² + ε)" if box.rms else "(x − mean) ÷ √(variance + ε)"
    learned = "" if box.gain is None or box.off else " × gain"
    return f"y = {inner}{learned}{'' if box.bias is None or box.off else ' + bias'}"


def _of_network(box: FeedForwardBox) -> str:
    if box.experts or box.expert_count:
        return "y = Σ share × expert(x), over the experts that the router chose"
    width, function = len(box.after), box.activation or "f"
    if box.gated:
        return f"y = ({function}(x W_g) × x W₁) W₂"
    matrices = 2 * width * box.hidden
    first, last = (" + b₁", " + b₂") if box.parameters == matrices + width + box.hidden else ("", "")
    return f"y = {function}(x W₁{first}) W₂{last}"


def _head(box: HeadsBox, head: int, keys: Sequence[str]) -> str:
    if head in box.off:
        return f"head {head}: switched off, nothing of it is written"
    weights = box.weights[head]
    largest = np.argsort(-weights, kind="stable")[:_LARGEST]
    terms = [f"{value_text(float(weights[k]))} v(“{keys[k] if k < len(keys) else k}”)" for k in map(int, largest)]
    more = " + …" if len(weights) > len(terms) else ""
    return f"head {head}: {' + '.join(terms)}{more}, a vector of norm {value_text(float(box.norms[head]))}"


def _products(before: np.ndarray, first: FirstTerms, row: int) -> list[str]:
    """What is added up in one dimension of a matrix' output: the first products, how many more, the bias."""
    weights = first.weights[:, row]
    pairs = ((float(x), float(w)) for x, w in zip(before[: len(weights)], weights, strict=True))
    terms = [f"{value_text(x) if n == 0 else bracketed(x)} × {bracketed(w)}" for n, (x, w) in enumerate(pairs)]
    more = len(before) - len(weights)
    if more > 0:
        terms.append(f"… ({more:,} more)")
    if first.bias is not None:
        terms.append(bracketed(float(first.bias[row])))
    return terms


def _terms(view: BlockView, box: SumBox, dimension: int) -> list[str]:
    """What is added up in one dimension; nothing where an addend is no vector of this position."""
    factors = box.factors or (1.0,) * len(box.reads)
    terms: list[str] = []
    for read, factor in zip(box.reads, factors, strict=True):
        vector = view.before if read == STREAM else view.boxes[read].after
        if len(vector) != len(box.after):
            return []
        value = float(vector[dimension])
        times = "" if factor == 1 else f"{value_text(factor)} × "
        terms.append(times + (bracketed(value) if terms or times else value_text(value)))
    return terms
