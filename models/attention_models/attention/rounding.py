"""How far rounding to a number format can move attention's weights and outputs: bounds, cell by cell.

Rounding moves a number by at most u of its size: u = 2^-8 in bfloat16, 2^-11 in float16 (the unit roundoff: Higham
2002, section 2.2). Attention that computes in such a format rounds a score s after every operation on it. With the
same queries and keys it therefore has some s + d in the place of s, where |d| is at most

    D = 2 u |scale q.k|    the product, and the scale
      + u |scale q.k + b|  where there is a bias (T5); likewise where a mask adds numbers (ALiBi)
      + 3 u |s|            where there is a soft cap: division, tanh, product; tanh damps what comes before it
      + u (max s - s)      where the largest is taken away first (gpt_oss)

and, whatever the format, by what float32 rounds, in which the d products of q.k are added and the softmax is computed:

      + sqrt(d) v |scale| sum_i |q_i k_i| + v (max s - s)      v = 2^-24

where sqrt(d) stands for any order of adding d products (Higham and Mary 2019, equation 1.4; d is the bound of the worst
case, which needs all of them rounded to one side). Processors add in orders of their own, which change with the number
of threads and of rows that are asked for. In float32 u is v, and the same bounds hold.

A weight w_j = exp(s_j) / sum_k exp(s_k) is then largest where d_j = D_j and every other d_k = -D_k, and smallest the
other way about:

    w_j e^-D_j / (w_j e^-D_j + sum_{k != j} w_k e^D_k)  <=  w'_j  <=  w_j e^D_j / (w_j e^D_j + sum_{k != j} w_k e^-D_k)

which to first order is w_j +- 2 w_j (1 - w_j) D where all D are alike; and w'_j is rounded itself, by u w'_j, and by
what the sum of n exponentials is off by in float32, sqrt(n) v w'_j, and its exponential and quotient, 8 v w'_j. Scores
of 60, as T5's unscaled ones are, have D = 0.7 in bfloat16: no fixed tolerance would do for them and for scores of 1.
In float32 two computations part by at most 4 w_j (1 - w_j) D; where both add in one order, by that of operations alone.
An output o = sum_j w_j v_j moves by no more than its weights do, and by 2 u sum_j w_j |v_j|: parts of the sum, and o.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part, Rows

_SINGLE_UNIT = 2**-24
_QUOTIENT = 8  # units in float32: of an exponential and a quotient, which libraries round to two or three


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Where one head's weights may lie that were computed in a format of few digits. Each is (rows, keys) float32."""

    weights: Tensor  # without rounding
    low: Tensor
    high: Tensor
    unit: float  # u
    smallest: float  # how far numbers next to 0 lie apart; float32's exponential may end there too
    in_single: float  # what operations alone are off by in float32: the largest D, without sums, of a visible key

    def share_of_weights(self, theirs: Tensor) -> float:
        """The largest share of what rounding explains that `theirs` (rows, keys) makes use of; beyond 1 it is wrong."""
        off = theirs.float() - self.weights
        return _largest_share(off, torch.where(off > 0, self.high - self.weights, self.weights - self.low))

    def share_of_outputs(self, theirs: Tensor, exact: Tensor, value: Tensor) -> float:
        """Likewise of outputs (rows, value_dim) of values (keys, value_dim); `exact` was made without rounding."""
        size = value.float().abs()
        moved = torch.maximum(self.high - self.weights, self.weights - self.low)
        room = moved @ size + 2 * self.unit * ((self.weights + moved) @ size) + self.smallest
        return _largest_share(theirs.float() - exact, room)


def product_off(size: Tensor, terms: int) -> Tensor:
    """How far float32 may move a sum of `terms` products, added in any order; `size` is the sum of their magnitudes."""
    return math.sqrt(terms) * _SINGLE_UNIT * size


def bounds(x: AttentionInputs, head: int, rows: Rows, weights: Tensor) -> Bounds:
    """What rounding to the format of `x` explains.

    Args:
        weights: of `head` at `rows`, (rows, keys) float32, computed from the queries and keys of `x` without rounding.
    """
    format_ = torch.finfo(x.query.dtype)
    unit, smallest = format_.eps / 2, max(format_.tiny * format_.eps, torch.finfo(torch.float32).tiny)
    operations, of_sink = _scores_off(x, head, rows, unit)
    sums = _sums_off(x, head, rows, weights)
    off = operations + sums
    sink = (1 - weights.sum(-1, keepdim=True)).clamp(min=0) if of_sink is not None else torch.zeros(())
    of_sink = torch.zeros(()) if of_sink is None else of_sink
    up, down = weights * off.exp(), weights * (-off).exp()
    others_up = up.sum(-1, keepdim=True) + sink * of_sink.exp() - up
    others_down = down.sum(-1, keepdim=True) + sink * (-of_sink).exp() - down
    high = (up / (up + others_down.clamp(min=0))).nan_to_num(0.0)  # a row to which nothing is visible
    low = (down / (down + others_up.clamp(min=0))).nan_to_num(0.0)
    more = unit + (_QUOTIENT + math.sqrt(x.keys)) * _SINGLE_UNIT
    return Bounds(
        weights=weights,
        low=low * (1 - more) - smallest,
        high=high * (1 + more) + smallest,
        unit=unit,
        smallest=smallest,
        in_single=float((operations * (weights > 0)).max()) * _SINGLE_UNIT / unit,
    )


def share_of_inputs(theirs: Tensor, ours: Tensor) -> float:
    """How much of two units in the last place of the largest number two copies of one tensor differ by.

    A device that adds in no fixed order need not give the same twice.
    """
    room = 2 * torch.finfo(ours.dtype).eps * float(ours.abs().max())
    return _largest_share((theirs.float() - ours.float()).abs().max(), torch.tensor(room))


def _scores_off(x: AttentionInputs, head: int, rows: Rows, unit: float) -> tuple[Tensor, Tensor | None]:
    """D of every score, (rows, keys), and of the sink's, (rows, 1), where there is one."""
    plain = replace(x, bias=None, softcap=None, mask=None)
    s = attention.scores(plain, Part([head], rows))[0, 0]
    off = 2 * unit * s.abs()
    if x.bias is not None:
        s = attention.scores(replace(x, softcap=None, mask=None), Part([head], rows))[0, 0]
        off += unit * s.abs()
    if x.softcap is not None:
        z = s.abs() / x.softcap
        off = off / x.softcap + unit * z
        s = x.softcap * z.tanh()
        off = x.softcap * (z.tanh() - (z - off).tanh()) + 2 * unit * s  # tanh is steeper towards 0
    whole = attention.scores(x, Part([head], rows))[0, 0]
    if x.mask is not None and x.mask.dtype != torch.bool:
        off += torch.where(attention.added_bias(x, Part([head], rows))[0, 0] != 0, unit * whole.abs(), 0.0)
    if x.sinks is None:
        return off, None
    masked = attention.masked_cells(x, Part([head], rows))
    sink = x.sinks[head].float()
    seen = whole if masked is None else whole.masked_fill(masked[0, 0], -math.inf)
    most = torch.maximum(seen.amax(-1, keepdim=True), sink) + off.amax(-1, keepdim=True)
    return off + unit * (most - whole).clamp(min=0), unit * (most - sink)


def _sums_off(x: AttentionInputs, head: int, rows: Rows, weights: Tensor) -> Tensor:
    """What adding in float32 moves a score by, and taking away its row's largest: (rows, keys)."""
    size = replace(x, query=x.query.abs(), key=x.key.abs(), scale=abs(x.scale), bias=None, softcap=None, mask=None)
    off = product_off(attention.scores(size, Part([head], rows))[0, 0], x.query.shape[-1])
    s = attention.scores(x, Part([head], rows))[0, 0]
    peak = s.masked_fill(weights == 0, -math.inf).amax(-1, keepdim=True)
    return off + _SINGLE_UNIT * (peak - s).clamp(min=0)


def _largest_share(off: Tensor, room: Tensor) -> float:
    """The largest |off| / room; 0 where both are 0. What is no number is infinitely far."""
    share = torch.where(off == 0, 0.0, off.abs() / room)
    value = float(share.max())
    return math.inf if math.isnan(value) else value
