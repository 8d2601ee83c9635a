"""Which matrices there are, what each cell of them was made of, and the sum in digits. Pure.

Rows of the query token run through Q, the scores, the weights and the output; K stands transposed, so that a row of Q
and a column of K^T meet in their product; a row of the weights and a column of V meet in the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.matrices import MatricesView

Name = Literal["q", "k", "raw", "scaled", "masked", "weights", "v", "output"]
Side = Literal["query", "key", "dim"]

NAMES: tuple[Name, ...] = ("q", "k", "raw", "scaled", "masked", "weights", "v", "output")

TITLES: dict[Name, str] = {
    "q": "Q",
    "k": "Kᵀ",
    "raw": "Q Kᵀ",
    "scaled": "scaled",
    "masked": "masked",
    "weights": "weights",
    "v": "V",
    "output": "output",
}
SIDES: dict[Name, tuple[Side, Side]] = {
    "q": ("query", "dim"),
    "k": ("dim", "key"),
    "raw": ("query", "key"),
    "scaled": ("query", "key"),
    "masked": ("query", "key"),
    "weights": ("query", "key"),
    "v": ("key", "dim"),
    "output": ("query", "dim"),
}
"""What the rows and the columns of each are."""

_HIDDEN = "−∞"


class Place(NamedTuple):
    """One number: of which matrix, in which row and column of what is shown."""

    name: Name
    row: int
    column: int


class Lit(NamedTuple):
    """A part of a matrix that a number was made of; None stands for a whole row or column of it."""

    name: Name
    row: int | None
    column: int | None


@dataclass(frozen=True, eq=False)
class Matrix:
    """One of them: `values` (rows, columns), coloured from -`high` to `high`, or of weights from 0."""

    name: Name
    values: np.ndarray
    masked: np.ndarray | None
    high: float

    @property
    def low(self) -> float:
        return 0.0 if self.name == "weights" else -self.high

    @property
    def size(self) -> str:
        """ "14 × 32" """
        return f"{self.values.shape[0]} × {self.values.shape[1]}"

    @property
    def span(self) -> str:
        """What the colours reach from and to."""
        return f"0 to {value_text(self.high)}" if self.name == "weights" else f"±{value_text(self.high)}"


@dataclass(frozen=True, eq=False)
class Scene:
    """The matrices of one head, and what their tokens are called."""

    view: MatricesView
    queries: tuple[str, ...]  # of those shown
    keys: tuple[str, ...]
    matrices: dict[Name, Matrix]

    @classmethod
    def of(cls, view: MatricesView, queries: Sequence[str], keys: Sequence[str]) -> Scene:
        """`queries` and `keys` are those of the whole text.

        Raises:
            ValueError: they are not as many as the view says.
        """
        if (len(queries), len(keys)) != (view.queries, view.keys):
            raise ValueError(f"{len(queries)} and {len(keys)} names for {view.queries} queries and {view.keys} keys.")
        first, (rows, columns) = view.request, view.raw.shape
        scaled = _high(view.scores)
        arrays: dict[Name, tuple[np.ndarray, np.ndarray | None, float]] = {
            "q": (view.q, None, _high(view.q)),
            "k": (view.k.T, None, _high(view.k)),
            "raw": (view.raw, None, _high(view.raw)),
            "scaled": (view.scores, None, scaled),
            "masked": (view.scores, view.masked, scaled),
            "weights": (view.weights, view.masked, _high(view.weights)),
            "v": (view.v, None, _high(view.v)),
            "output": (view.output, None, _high(view.output)),
        }
        return cls(
            view,
            tuple(queries[first.first_query : first.first_query + rows]),
            tuple(keys[first.first_key : first.first_key + columns]),
            {name: Matrix(name, *parts) for name, parts in arrays.items()},
        )

    # between the matrices

    @property
    def scaling(self) -> str:
        """What makes scaled scores of raw ones: "× 0.177", "× 0.0625 + bias", "× 0.0625, cap 50"."""
        parts = [f"× {value_text(self.view.scale * self.view.factor)}"]
        parts += ["+ bias"] if self.view.bias is not None else []
        parts += [f"cap {self.view.softcap:g}"] if self.view.softcap is not None else []
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What is to be known of a window, of shared keys; "" where all is plain."""
        view, said = self.view, []
        if view.is_window:
            sides = (
                ("queries", view.request.first_query, len(self.queries), view.queries),
                ("keys", view.request.first_key, len(self.keys), view.keys),
            )
            windows = [f"{what} {i} to {i + n - 1} of {count:,}" for what, i, n, count in sides if n < count]
            said.append(f"A window about the selection: {' and '.join(windows)}. The output counts every key.")
        if len(view.key_group) > 1:
            heads = f"{view.key_group[0]} to {view.key_group[-1]}"
            said.append(f"K and V are those of key head {view.key_head}, which heads {heads} share.")
        if view.rotated:
            said.append("q and k are turned by their positions (RoPE).")
        return " ".join(said)

    # one number

    def cell(self, place: Place) -> tuple[int, int]:
        """The (query, key) that a place names, among those shown; -1 for the one that it does not."""
        sides = SIDES[place.name]
        at = dict(zip(sides, (place.row, place.column), strict=True))
        return at.get("query", -1), at.get("key", -1)

    def made_of(self, place: Place) -> tuple[Lit, ...]:
        """The rows, columns and cells that the number was made of."""
        name, row, column = place
        if name == "raw":
            return Lit("q", row, None), Lit("k", None, column)
        if name == "scaled":
            return (Lit("raw", row, column),)
        if name == "masked":
            return (Lit("scaled", row, column),)
        if name == "weights":
            return (Lit("masked", row, None),)
        return (Lit("weights", row, None), Lit("v", None, column)) if name == "output" else ()

    def number(self, place: Place) -> float | None:
        """The number itself; None of a masked score."""
        matrix = self.matrices[place.name]
        hidden = place.name == "masked" and matrix.masked is not None and matrix.masked[place.row, place.column]
        return None if hidden else float(matrix.values[place.row, place.column])

    def title(self, place: Place) -> str:
        """ "“to” · “Tom”, scaled" """
        query, key = self.cell(place)
        tokens = [f"“{names[at]}”" for names, at in ((self.queries, query), (self.keys, key)) if at >= 0]
        dim = "dim" in SIDES[place.name]
        which = f", dimension {self.dimension(place)}" if dim else ""
        what = {"q": "q of ", "k": "k of ", "v": "v of ", "output": "output of the head at "}.get(place.name, "")
        link = " and " if len(tokens) == 2 else ""
        before = f"{what}{link.join(tokens)}{which}"
        step = {"raw": "q · k", "scaled": "scaled score", "masked": "masked score", "weights": "weight"}
        return f"{before}: {step[place.name]}" if place.name in step else before

    def dimension(self, place: Place) -> int:
        """Which dimension of a vector it is; -1 of a score or a weight."""
        sides = SIDES[place.name]
        return (place.row, place.column)[sides.index("dim")] if "dim" in sides else -1

    def sum_of(self, place: Place) -> str:
        """How the number came about, in digits: "−0.014 = 0.31 × (−0.20) + 0.12 × 0.40"."""
        number = self.number(place)
        value = _HIDDEN if number is None else value_text(number)
        parts = self._parts(place, number)
        return f"{value} = {parts}" if parts else value

    def _parts(self, place: Place, number: float | None) -> str:
        view, (name, row, column) = self.view, place
        if name == "raw":
            return _products(view.q[row], view.k[column])
        if name == "scaled":
            return self._scaled(row, column)
        if name == "masked":
            score = value_text(float(view.scores[row, column]))
            return f"{score}: visible, it stays" if number is not None else f"{score} + ({_HIDDEN}): the mask hides it"
        if name == "weights":
            return self._softmax(row, column)
        if name == "output":
            outside = float(view.outside_output[row, column])
            rest = f" + {in_brackets(outside)} (keys outside of the window)" if view.outside_weight[row] else ""
            return _products(view.weights[row], view.v[:, column]) + rest
        return ""

    def _scaled(self, row: int, column: int) -> str:
        view = self.view
        text = f"{value_text(float(view.raw[row, column]))} × {value_text(view.scale)}"
        if view.factor != 1:
            text += f" × {value_text(view.factor)}"
        if view.bias is not None:
            text += f" + {in_brackets(float(view.bias[row, column]))}"
        return text if view.softcap is None else f"{view.softcap:g} × tanh(({text}) / {view.softcap:g})"

    def _softmax(self, row: int, column: int) -> str:
        view = self.view
        masked = np.zeros(view.scores.shape[1], bool) if view.masked is None else view.masked[row]
        if masked[column]:
            return "exp(−∞)"
        shift = float(view.shift[row])
        parts = [value_text(float(np.exp(s - shift))) for s in view.scores[row][~masked].astype(np.float64)]
        inside = float(np.exp(view.scores[row][~masked].astype(np.float64) - shift).sum())
        sink = 0.0 if view.sink is None else float(view.sink[row])
        outside = float(view.denominator[row]) - inside - sink
        parts += [f"{value_text(sink)} (the sink)"] if view.sink is not None else []
        parts += [f"{value_text(outside)} (outside of the window)"] if view.outside_weight[row] else []
        score = f"{value_text(float(view.scores[row, column]))} − {in_brackets(shift)}"
        return f"exp({score}) / ({' + '.join(parts)})"


def in_brackets(number: float) -> str:
    """A negative number in brackets, as it is written by hand."""
    text = value_text(number)
    return text if text[0].isdigit() else f"({text})"


def cell_text(number: float | None) -> str:
    """A number in a cell: three digits, in as few letters as there are."""
    if number is None:
        return _HIDDEN
    size = abs(number)
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{round(number, digits) + 0.0:.{digits}f}".replace("-", "−")


def _products(first: np.ndarray, second: np.ndarray) -> str:
    return " + ".join(f"{in_brackets(float(a))} × {in_brackets(float(b))}" for a, b in zip(first, second, strict=True))


def _high(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0)) or 1.0
