"""Texts run through a model, and what its heads do in them added up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.model import Encoded, Model
from attention_models.forward.run import run
from attention_models.forward.streaming import run_passing
from attention_models.protocol.errors import InputError, NotFiniteError
from attention_models.protocol.request import Report, ShouldStop
from attention_models.protocol.roles import PATTERNS, ROLE_NAMES, ROLES, RolesRequest, RolesView, why_not
from attention_models.protocol.values import Site, SiteRef, read_only
from attention_models.roles.copying import UNFOUND, copying_scores
from attention_models.roles.counting import (
    Asked,
    ByDistance,
    ClassedCells,
    OfMask,
    Tally,
    offsets,
    patch_offsets,
    visible_cells,
    weights_of_rows,
)
from attention_models.roles.patterns import CELLS
from attention_models.roles.probe import Probe
from attention_models.roles.reading import Item, Reader, batches
from attention_models.roles.relations import NAMES, Distances, Related
from attention_models.roles.token_features import UNORDERED, SiteTokenFeatures


class Breadth:
    """The mean over rows of H(row) / log2(keys it sees), 0 where all is on one key and 1 where all is even.

    H is in bits, of what the keys get (a sink's share is left out). Rows that see one key do not count.
    """

    def __init__(self, heads: int) -> None:
        self._shares, self._rows = np.zeros(heads), np.zeros(heads)

    def add(self, w: Tensor, visible: Tensor, real: Tensor) -> None:
        """Weights (texts, heads, rows, keys), what is visible (texts, heads or 1, rows, keys), and (texts, rows)."""
        seen = visible.sum(dim=-1)
        counted = ((seen > 1) & real[:, None]).expand(w.shape[:3]).float()  # (texts, heads, rows)
        total = w.sum(dim=-1).clamp(min=torch.finfo(w.dtype).tiny)
        entropy = torch.log(total) - torch.xlogy(w, w).sum(dim=-1) / total  # nats
        share = entropy / torch.log(seen.clamp(min=2).float())
        sums = torch.stack([(share * counted).sum(dim=(0, 2)), counted.sum(dim=(0, 2))]).double().cpu().numpy()
        self._shares += sums[0]
        self._rows += sums[1]

    @property
    def scores(self) -> np.ndarray:
        """(heads,) float64, NaN where no row was counted."""
        return np.divide(self._shares, self._rows, where=self._rows > 0, out=np.full_like(self._shares, np.nan))

    @property
    def rows(self) -> int:
        """How many rows of a head were counted."""
        return int(self._rows.max(initial=0))


_PATTERNS = tuple(role.name for role in PATTERNS)
_REPEATED = ("copy", "induction")
_MOST_SAID = 20
NO_EDGES = "The texts come without dependency edges. Give a CoNLL-U file (.conllu), or use the texts that come along."
NONE_SEEN = "In none of the texts is there something that a query could attend to so."


class _SiteFound:
    """What is added up of one site."""

    def __init__(self, heads: int) -> None:
        self.patterns, self.repeats = Tally(len(_PATTERNS), heads), Tally(len(_REPEATED), heads)
        self.relations = Tally(len(NAMES), heads)
        self.breadth, self.distance = Breadth(heads), ByDistance(heads)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What is the same for every layer of a batch that is masked alike, of some of its rows."""

    visible: Tensor  # (texts, heads or 1, rows, keys)
    asked: Asked  # of `_PATTERNS`, or of `_REPEATED` where tokens are repeated
    classed: ClassedCells
    real: Tensor  # (texts, rows)


class Finding:
    """Runs the texts, and adds up what the heads do."""

    def __init__(self, model: Model, probe: Probe, should_stop: ShouldStop, report: Report) -> None:
        self._model, self._probe = model, probe
        self._sides = SiteTokenFeatures(model)
        self._sites: dict[SiteRef, tuple[Site, _SiteFound]] = {}
        self._far: dict[str, Distances] = {}  # by stack
        self._reader = Reader(model, probe, should_stop, report)
        self._rows, self._related = OfMask[_Rows](), OfMask[Related]()  # of the batch that is run
        self._items: list[Item] = []
        self._copied: np.ndarray | None = None

    def serve(self, should_stop: ShouldStop, report: Report) -> None:
        """Heed another request from now on."""
        self._reader.should_stop, self._reader.report = should_stop, report

    def work(self) -> Iterator[float]:
        """Run the texts; yields the share that is done, after each batch.

        Raises:
            InputError: no text of the probe fits the model.
            Cancelled: then what was found cannot be used.
        """
        model = self._model
        items = yield from self._reader.items()
        repeats = self._reader.repeats()
        total = sum(item.length for item in (*items, *repeats))
        done = 0
        for group, repeated in ((items, False), (repeats, True)):
            for together, encoded in batches(model, group):
                self._reader.report(f"Looking at {len(items):,} texts", done / total)
                self._rows.clear()
                self._related.clear()
                self._sides.clear()
                run_passing(model, encoded, partial(self._see, together, encoded, repeated), self._asked_to_stop)
                done += sum(item.length for item in together)
                yield done / total
        if not self._sites:
            raise InputError(f"{model.info.name} has no attention that could be seen.")
        self._items = items
        yield from self._copying(items)

    def _asked_to_stop(self) -> bool:
        return self._reader.should_stop()

    # weights

    def _see(
        self,
        items: Sequence[Item],
        encoded: Sequence[Encoded],
        repeated: bool,
        site: Site,
        x: AttentionInputs,
        w: Tensor | None,
    ) -> None:
        _, found = self._sites.setdefault(site.ref, (site, _SiteFound(site.heads)))
        related = None if repeated else self._relations_of(items, encoded, site, x)
        for rows, part in weights_of_rows(x, w, self._asked_to_stop):
            make = partial(self._shared, encoded, repeated, site, x, rows)
            shared = self._rows.of_rows(site, x, rows, make)
            if repeated:
                found.repeats.add(shared.asked, part)
                continue
            found.patterns.add(shared.asked, part)
            found.breadth.add(part, shared.visible, shared.real)
            found.distance.add(part, shared.classed)
            if related is not None:
                found.relations.sums += related.sums(part, rows)
        if related is not None:
            found.relations.counts += related.counts[:, None]
            found.relations.even_sums += related.even[:, None]

    def _shared(self, encoded: Sequence[Encoded], repeated: bool, site: Site, x: AttentionInputs, rows: slice) -> _Rows:
        q, k = self._sides.of(encoded, site, x.query.device)
        keys, names = slice(0, x.keys), _REPEATED if repeated else _PATTERNS
        visible = visible_cells(x, rows, keys)
        cells = torch.stack([CELLS[name](q, k, rows, keys) for name in names])
        real = q.real[:, rows]
        picture = encoded[0].picture
        far = offsets(rows, keys, x.query.device)
        classes = far if picture is None else patch_offsets(picture, x.keys, x.query.device)[rows]
        return _Rows(visible, Asked.of(cells, visible, real), ClassedCells(visible, real, classes), real)

    def _relations_of(
        self, items: Sequence[Item], encoded: Sequence[Encoded], site: Site, x: AttentionInputs
    ) -> Related | None:
        if why_not("det-to-head", self._model.info, site.stack) or not any(item.text.edges for item in items):
            return None

        def make() -> Related:
            tokens = [one.source or one.tokens for one in encoded]
            visible = visible_cells(x, slice(0, x.queries), slice(0, x.keys))
            far = self._far.setdefault(site.stack, Distances())
            return Related([item.text for item in items], tokens, visible, far)

        return self._related.get_or_compute(site, x, make)

    # the result

    def view(self) -> RolesView:
        """What was found, once all of `work` is done."""
        items = self._items
        sites = [site for site, _ in self._sites.values()]
        heads = max(site.heads for site in sites)
        shape = (len(ROLES), len(sites), heads)
        scores, even, counts = np.full(shape, np.nan), np.full(shape[:2], np.nan), np.zeros(shape[:2], int)
        for i, (site, found) in enumerate(self._sites.values()):
            for name, of_heads, evenly, counted in _rows_of(found, self._far.get(site.stack, Distances())):
                if not why_not(name, self._model.info, site.stack):
                    place = _PLACES[name]
                    scores[place, i, : site.heads], even[place, i], counts[place, i] = of_heads, evenly, counted
        if not self._sides.ordered:
            scores[_PLACES["rare"]], even[_PLACES["rare"]], counts[_PLACES["rare"]] = np.nan, np.nan, 0
        if self._copied is not None:
            scores[_PLACES["ov-copying"], : len(self._copied), : self._copied.shape[1]] = self._copied
        self._check_finite(scores, counts, sites)
        return RolesView(
            request=RolesRequest(probe="" if self._probe.ours else self._probe.name),
            sites=tuple(site.ref for site in sites),
            roles=tuple(_PLACES),
            scores=read_only(scores),
            even=read_only(even),
            counts=read_only(counts),
            why=tuple(self._reasons(sites, scores)),
            texts=len(items),
            tokens=sum(item.length for item in items),
            left_out=_listed(self._reader.left_out),
        )

    def _copying(self, items: Sequence[Item]) -> Iterator[float]:
        """(sites, heads) of OV copying; None where the model has none."""
        stacks = {site.stack for site, _ in self._sites.values()}
        if all(why_not("ov-copying", self._model.info, stack) for stack in stacks):
            return
        self._reader.report("Following what the heads write", None)
        yield 0.999
        few = [token.id for token in items[0].encoded.tokens[:4]]
        self._copied = copying_scores(self._model, run(self._model, few), self._asked_to_stop)

    def _reasons(self, sites: Sequence[Site], scores: np.ndarray) -> Iterator[tuple[str, str, str]]:
        """Why a stack lacks a role."""
        for stack in dict.fromkeys(site.stack for site in sites):
            here = [i for i, site in enumerate(sites) if site.stack == stack]
            for name, place in _PLACES.items():
                if np.isnan(scores[place, here]).all():
                    yield name, stack, why_not(name, self._model.info, stack) or self._lacking(name)

    def _lacking(self, name: str) -> str:
        if name == "ov-copying":
            return UNFOUND
        if name == "rare" and not self._sides.ordered:
            return UNORDERED
        return NO_EDGES if ROLE_NAMES[name].kind == "relation" and not self._probe.has_edges else NONE_SEEN

    def _check_finite(self, scores: np.ndarray, counts: np.ndarray, sites: Sequence[Site]) -> None:
        """Raises NotFiniteError where a run gave no numbers: NaN is what a role is that nothing was counted of."""
        place = _PLACES["self"] if sites[0].stack != "cross" else _PLACES["first"]
        for i, site in enumerate(sites):
            if counts[place, i] and not np.isfinite(scores[place, i, : site.heads]).all():
                raise NotFiniteError(
                    f"{self._model.info.name} gives no figures here: attention weights of {site.stack} layer "
                    f"{site.layer} are no numbers. Choose another number format, or fetch the checkpoint again."
                )


_PLACES = {role.name: place for place, role in enumerate(ROLES)}


def _rows_of(found: _SiteFound, far: Distances) -> Iterator[tuple[str, np.ndarray, float, int]]:
    """(role, (heads,) scores, what an even head would score, how many were counted)."""
    for place, name in enumerate(_PATTERNS):
        tally, row = found.patterns, place
        if name in _REPEATED and found.repeats.counts.any():
            tally, row = found.repeats, _REPEATED.index(name)
        yield name, tally.scores[row], float(tally.even[row]), int(tally.counts[row].max())
    for place, name in enumerate(NAMES):
        tally = found.relations
        evenly = float(np.fmax(tally.even[place], far.best_share(place)))
        yield name, tally.scores[place], evenly, int(tally.counts[place].max())
    yield "positional", found.distance.explained, math.nan, int(found.distance.counts.sum())
    yield "breadth", found.breadth.scores, math.nan, found.breadth.rows


def _listed(sentences: list[str]) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    if len(sentences) <= _MOST_SAID:
        return tuple(sentences)
    return (*sentences[:_MOST_SAID], f"{len(sentences) - _MOST_SAID:,} more texts are left out.")
