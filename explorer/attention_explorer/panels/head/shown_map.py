"""What the head map shows of the answers that are here: values, their range, and what they are called. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product

import numpy as np

from attention_explorer.look.colour_maps import ColourTable, diverging, sequential
from attention_explorer.panels.selected_head import site_word_labels, site_words
from attention_explorer.session.state import State
from attention_explorer.session.view_options import SCORES, Normalisation
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.head import HeadView, ScoresView, WordWeights
from attention_models.protocol.mask_kinds import Cell
from attention_models.protocol.running import Ran
from attention_models.protocol.values import LARGEST_WHOLE, Site
from attention_models.protocol.word_spans import Words
from attention_models.protocol.word_spans import site_words as words_of_site


@dataclass(frozen=True, eq=False)
class WordCells:
    """`weights` are those between pieces, (queries, keys); `query_names` and `key_names` what the pieces are called."""

    queries: Words
    keys: Words
    weights: np.ndarray
    query_names: Sequence[str]
    key_names: Sequence[str]

    def cell_of(self, query: int, key: int) -> tuple[int, int]:
        """The (query word, key word) of two pieces; -1 for a piece that there is not."""
        return self.queries.word(query), self.keys.word(key)

    def strongest(self, query: int, key: int) -> tuple[int, int]:
        """The pieces of two words with the largest weight between them: what is selected with the cell."""
        rows, columns = self.queries.tokens(query), self.keys.tokens(key)
        block = self.weights[rows.start : rows.stop, columns.start : columns.stop]
        row, column = np.unravel_index(int(block.argmax()), block.shape)
        return rows[int(row)], columns[int(column)]

    def words_of(self, queries: Sequence[int], keys: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The words that some pieces are in, rising."""
        rows = dict.fromkeys(self.queries.word(query) for query in queries)
        return tuple(rows), tuple(dict.fromkeys(self.keys.word(key) for key in keys))

    def note(self, query: int, key: int) -> str:
        """ ", most from “un” to “able”": which pieces are selected; "" where both words are one piece."""
        if len(self.queries.tokens(query)) == len(self.keys.tokens(key)) == 1:
            return ""
        row, column = self.strongest(query, key)
        return f", most from “{self.query_names[row]}” to “{self.key_names[column]}”"

    def pieces(self, cells: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Every (query, key) of pieces in these cells."""
        blocks = (product(self.queries.tokens(query), self.keys.tokens(key)) for query, key in cells)
        return tuple(chain.from_iterable(blocks))

    def painted(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """The cells all of whose pieces are painted alike."""
        counts: dict[Cell, int] = {}
        for query, key, allowed in cells:
            cell = (*self.cell_of(query, key), allowed)
            counts[cell] = counts.get(cell, 0) + 1
        return tuple(
            cell
            for cell, count in counts.items()
            if count == len(self.queries.tokens(cell[0])) * len(self.keys.tokens(cell[1]))
        )


Source = HeadView | CompareView | ScoresView

SCALES: dict[Normalisation, tuple[str, str, str]] = {  # as listed, in full, and beside the colours
    "none": ("Weights", "Weights as they are", "weight"),
    "row": ("Rows / max", "Each row by its largest", "weight / max"),
    "column": ("Columns / max", "Each column by its largest", "weight / max"),
    "difference": ("Change", "Change by interventions", "change"),
    "raw": ("Scores q · k", "Scores: query times key, before they are scaled", "q · k"),
    "scaled": ("Scaled scores", "Scores as scaled, with a position's bias and a soft cap where there are", "score"),
    "masked": ("Masked scores", "What the softmax is given: scaled scores, and nothing where the mask hides", "score"),
}

_NAMES: dict[Normalisation, str] = {"raw": "q · k", "scaled": "scaled score", "masked": "score"}
_TIP = "What the colours show: the weights, each row or column divided by its largest, what changed, or the scores"
_ONLY_WHOLE = (
    "Weights, or each row divided by its largest. Columns and scores are shown up to "
    f"{LARGEST_WHOLE:,} tokens, changes in Masks."
)
_FEWEST, _SOME = 2_000, 0.02  # of fewer weights each one can be seen; the share above which a map is not dark
_RECURRENT = "A recurrent model's scores are not scaled, and no product of q and k: they are shown with their mask."


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A map that is held whole. Values are (queries, keys)."""

    values: np.ndarray
    masked: np.ndarray | None
    rows: Sequence[str]
    columns: Sequence[str]
    low: float
    high: float
    value_name: str  # in the readout; "" for a weight
    label: str  # beside the colours
    cells: WordCells | None = None  # where it is one of words
    sinks: np.ndarray | None = None  # (queries,) the share of each row that a sink takes


def offered(state: State) -> tuple[tuple[Normalisation, ...], str]:
    """What can be shown of this model's heads, and why not all of it, or what there is to choose."""
    loaded = state.results.loaded
    info = None if loaded is None else loaded.info
    if state.site is not None and state.site.is_long:
        return ("none", "row"), _ONLY_WHOLE
    if info is not None and info.weights_only:
        return tuple(how for how in SCALES if how not in SCORES), f"{_TIP}. {info.weights_only}"
    if info is not None and info.textbook:
        return tuple(how for how in SCALES if how not in ("raw", "scaled")), f"{_TIP}. {_RECURRENT}"
    return tuple(SCALES), _TIP


def shown_scaling(state: State) -> Normalisation:
    """What is shown: the choice, where the model and the text have it."""
    chosen = state.document.view.normalisation
    return chosen if chosen in offered(state)[0] else "none"


def is_of_pieces(how: Normalisation) -> bool:
    """Whether it is shown for pieces alone, also where words are wanted."""
    return how == "difference" or how in SCORES


def table_for(how: Normalisation, colour_map: str) -> ColourTable:
    """The colours of values that lie on both sides of 0, or of weights."""
    return diverging() if how == "difference" or how in SCORES else sequential(colour_map)


def source_of(state: State, how: Normalisation) -> Source | None:
    """The newest answer that shows it; scores of the selected head alone."""
    if how in SCORES:
        view, chosen = state.results.of(ScoresView), state.selection
        is_chosen = view is not None and (view.request.site, view.request.head) == (chosen.site, chosen.head)
        return view if is_chosen else None
    return state.results.of(CompareView) if how == "difference" else state.results.of(HeadView)


def shown_map(view: Source, how: Normalisation, ran: Ran, site: Site) -> ShownMap:
    """What is drawn of `view`, which is of `site`."""
    rows, columns = site_words(ran, site)
    label = SCALES[how][2]
    if isinstance(view, CompareView):
        high = view.largest_difference or 1.0
        return ShownMap(view.difference, view.masked_throughout, rows, columns, -high, high, "changed by", label)
    if isinstance(view, ScoresView):
        values = view.raw if how == "raw" else view.scaled
        masked = view.masked if how == "masked" else None
        high = float(np.abs(values if masked is None else values[~masked]).max(initial=0.0)) or 1.0
        return ShownMap(values, masked, rows, columns, -high, high, _NAMES[how], label)
    shown: HeadView | WordWeights = view
    cells = None
    if view.by_word is not None:
        shown, (rows, columns) = view.by_word, site_word_labels(ran, site)
        cells = WordCells(*words_of_site(ran, site), view.weights, *site_words(ran, site))
    values = normalised(shown.weights, how)
    high = float(values.max(initial=0.0)) or 1.0
    name = "" if how == "none" else label
    return ShownMap(values, shown.masked, rows, columns, 0.0, high, name, label, cells, view.sinks)


def normalised(weights: np.ndarray, how: Normalisation) -> np.ndarray:
    """(queries, keys) weights divided by the largest of their row or column; a row or column of zeros stays so."""
    if how not in ("row", "column"):
        return weights
    largest = weights.max(axis=1 if how == "row" else 0, keepdims=True)
    scaled: np.ndarray = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    return scaled


def is_faint(values: np.ndarray | None) -> bool:
    """Whether hardly any of these weights is a tenth of the largest: their map is dark. NaN and 0 are masked."""
    if values is None:
        return False
    seen = values[values > 0]
    return len(seen) >= _FEWEST and float(np.mean(seen > seen.max() / 10)) < _SOME
