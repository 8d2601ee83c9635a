"""The places along which two runs are compared: what to call them, and which tokens are in them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attention_explorer.panels.selected_head import site_words
from attention_models.protocol.two_runs import AlignedAxis, AlignedPlace, RunSide, TwoRunsView
from attention_models.protocol.values import Site, Token, site_tokens

Axis = Literal["queries", "keys"]
Place = tuple[int, int]
"""A query's and a key's place on the maps; -1 for none."""

Faded = tuple[tuple[int, ...], tuple[int, ...]]
"""Places of queries and of keys that are drawn faint."""
NO_PLACE: Place = (-1, -1)
NO_TOKEN = "·"
"""The label of a place for which a run has no token."""


@dataclass(frozen=True, slots=True)
class PlaceWords:
    """What the places of an axis are called on each of the maps."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    both: tuple[str, ...]


def words_of(view: TwoRunsView, which: Axis) -> PlaceWords:
    """The labels of an axis; none without alignment."""
    axis, sites = _axis(view, which), (_site(view.a), _site(view.b))
    if axis is None or sites[0] is None or sites[1] is None:
        return PlaceWords((), (), ())
    side = 0 if which == "queries" else 1
    names_a, names_b = site_words(view.a, sites[0])[side], site_words(view.b, sites[1])[side]
    a = tuple(_joined(names_a, place.a) for place in axis.places)
    b = tuple(_joined(names_b, place.b) for place in axis.places)
    both = tuple(_both(place, *words) for place, *words in zip(axis.places, a, b, strict=True))
    return PlaceWords(a, b, both)


def place_of_cell(view: TwoRunsView | None, query: int, key: int) -> Place:
    """Where a cell of A lies on the maps; -1 on an axis without such a token."""
    if view is None:
        return NO_PLACE
    return _place(view.queries, query), _place(view.keys, key)


def cell_at_place(view: TwoRunsView, place: Place, query: int, key: int) -> tuple[int, int] | None:
    """The cell of A at a place; None where A has no token there.

    Of a place of several tokens that of `query` and `key`, the selected ones, or the first.
    """
    found = (_token(view.queries, place[0], query), _token(view.keys, place[1], key))
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def padding_of(view: TwoRunsView) -> tuple[Faded, Faded, Faded]:
    """On the maps of A, of B and of the difference the places of queries and keys that hold nothing but padding."""
    rows, columns = _padded(view, "queries"), _padded(view, "keys")
    a, b = zip(rows, columns, strict=True)
    return a, b, (tuple(sorted({*a[0], *b[0]})), tuple(sorted({*a[1], *b[1]})))


def _padded(view: TwoRunsView, which: Axis) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of A and of B."""
    axis, sites, side = _axis(view, which), (_site(view.a), _site(view.b)), 0 if which == "queries" else 1
    if axis is None or sites[0] is None or sites[1] is None:
        return (), ()
    a, b = site_tokens(view.a, sites[0])[side], site_tokens(view.b, sites[1])[side]
    spans = [(place.a, place.b) for place in axis.places]
    return (
        tuple(i for i, (span, _) in enumerate(spans) if _is_padding(a[slice(*span)])),
        tuple(i for i, (_, span) in enumerate(spans) if _is_padding(b[slice(*span)])),
    )


def _is_padding(tokens: tuple[Token, ...]) -> bool:
    return bool(tokens) and all(token.padding for token in tokens)


def differs(axis: AlignedAxis | None) -> bool:
    """Whether an alignment has something to show: a word in another's place, one that is alone, or other tokens."""
    return axis is not None and any(not (place.same and place.is_single) for place in axis.places)


def _axis(view: TwoRunsView, which: Axis) -> AlignedAxis | None:
    return view.queries if which == "queries" else view.keys


def _site(side: RunSide) -> Site | None:
    return next((site for site in side.sites if site.ref == side.site), None)


def _joined(names: list[str], tokens: tuple[int, int]) -> str:
    return " ".join(names[i] for i in range(*tokens) if i < len(names)) or NO_TOKEN


def _both(place: AlignedPlace, a: str, b: str) -> str:
    if not place.is_shared:
        return b if a == NO_TOKEN else a
    return a if place.same else f"{a} | {b}"


def _place(axis: AlignedAxis | None, token: int) -> int:
    place = None if axis is None else axis.place_of_a(token)
    return -1 if place is None else place


def _token(axis: AlignedAxis | None, place: int, selected: int) -> int | None:
    if axis is None or not 0 <= place < len(axis):
        return None
    tokens = range(*axis.places[place].a)
    return selected if selected in tokens else next(iter(tokens), None)
