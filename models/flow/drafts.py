"""The boxes of a block without their numbers: which modules each stands for, and which others it reads.

Drafts are made once a block; a position's numbers are then rows of what the modules gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from models.dataflow.anatomy import Anatomy, NormCall, NormStep, Reader, Sublayer, SumStep
from models.dataflow.blocks import SiteNodes
from models.dataflow.network import Network, is_matrix, network_of
from models.dataflow.watch import Unit
from models.protocol.flow import STREAM, Part


@dataclass(slots=True, eq=False)
class Draft:
    """One box.

    Attributes:
        part: the sublayer it is of.
        module: its name in the model.
        gives: the nodes that are its results.
        reads: the nodes that it reads, then the numbers of the boxes that gave them.
        given: its input, for every position; None where it has no single one.
        gave: what it gives, for every position.
        units: the calls that it stands for.
    """

    part: Part
    module: str
    gives: frozenset[int]
    reads: tuple[int, ...]
    units: tuple[Unit, ...] = ()
    given: Tensor | None = None
    gave: Tensor | None = None
    boxes: tuple[int, ...] = ()


@dataclass(slots=True, eq=False, kw_only=True)
class NormDraft(Draft):
    call: NormCall


@dataclass(slots=True, eq=False, kw_only=True)
class ProjectionDraft(Draft):
    makes: str


@dataclass(slots=True, eq=False, kw_only=True)
class HeadsDraft(Draft):
    site: SiteNodes


@dataclass(slots=True, eq=False, kw_only=True)
class OutputDraft(Draft):
    site: SiteNodes


@dataclass(slots=True, eq=False, kw_only=True)
class NetworkDraft(Draft):
    network: Network
    factor: float = 1.0
    straight: bool = True  # what it gives is added to the stream as it is


@dataclass(slots=True, eq=False, kw_only=True)
class SumDraft(Draft):
    factors: tuple[float, ...] = ()


@dataclass(slots=True, eq=False, kw_only=True)
class ModuleDraft(Draft):
    pass


class Drafting:
    """Makes the drafts of one block."""

    def __init__(self, reader: Reader, anatomy: Anatomy) -> None:
        self.reader, self.anatomy = reader, anatomy
        self.graph, self.watch = reader.graph, reader.watch
        self.drafts: list[Draft] = []

    def made(self) -> list[Draft]:
        if not self.anatomy.known:
            call = self.reader.call
            self.drafts.append(ModuleDraft("other", call.name, frozenset((call.end,)), (call.start,)))
            return self._resolved()
        part: Part = "other"
        stream = self.reader.call.start
        for step in self.anatomy.steps:
            if isinstance(step, NormStep):
                self._norm(step.call, part)
                stream = step.call.unit.gives[0]
                continue
            for sublayer in step.sublayers:
                part = sublayer.part
                self._sublayer(sublayer)
            self._sum(step, stream, part)
            stream = step.node
        return self._resolved()

    def _sum(self, step: SumStep, stream: int, part: Part) -> None:
        reads = (stream, *(term.node for term in step.terms))
        factors = (1.0, *(term.factor for term in step.terms))
        plain = all(factor == 1.0 for factor in factors)
        self.drafts.append(
            SumDraft(
                part,
                "",
                frozenset((step.node,)),
                reads,
                gave=self.graph.nodes[step.node].value,
                factors=() if plain else factors,
            )
        )

    def _norm(self, call: NormCall, part: Part) -> None:
        unit = call.unit
        self.drafts.append(
            NormDraft(
                part, unit.name, frozenset(unit.gives), unit.reads[:1], (unit,), unit.given[0], unit.gave[0], call=call
            )
        )

    def _sublayer(self, sublayer: Sublayer) -> None:
        """Its boxes, in the order in which they ran."""
        if sublayer.before is not None:
            self._norm(sublayer.before, sublayer.part)
        norms = {id(call.unit) for call in (sublayer.before, *sublayer.on_write) if call is not None}
        rest = [unit for unit in sublayer.units if id(unit) not in norms]
        network = network_of(self.reader, sublayer) if sublayer.part == "feed_forward" else None
        if network is not None and {unit.number for unit in rest} == network.units:
            self._network(sublayer, network)
        elif sublayer.sites:
            self._attention(sublayer, rest)
        else:
            self._whole(sublayer, rest)
        for call in reversed(sublayer.on_write):
            self._norm(call, sublayer.part)

    def _network(self, sublayer: Sublayer, network: Network) -> None:
        units = (*network.first, *network.functions, network.last)
        self.drafts.append(
            NetworkDraft(
                "feed_forward",
                sublayer.module,
                frozenset(network.last.gives),
                network.first[0].reads[:1],
                units,
                network.first[0].given[0],
                network.last.gave[0],
                network=network,
                factor=sublayer.terms[0].factor,
                straight=not sublayer.on_write and network.last.gives[0] == sublayer.terms[0].node,
            )
        )

    def _attention(self, sublayer: Sublayer, rest: list[Unit]) -> None:
        """Projections, heads, W_O; any other module in between is a box of its own."""
        placed: set[int] = set()
        for site in sublayer.sites:
            made: dict[int, str] = {}
            for letter, node in zip("qkv", (site.query, site.key, site.value), strict=True):
                inside, _ = self.reader.cone(node, self._stops())
                for unit in rest:
                    if any(number in inside for number in unit.gives):
                        made[unit.number] = made.get(unit.number, "") + letter
            for unit in rest:
                if unit.number in made and unit.number not in placed:
                    placed.add(unit.number)
                    self._projection(unit, made[unit.number], sublayer.part)
            nodes = frozenset((site.query, site.key, site.value))
            self.drafts.append(HeadsDraft(sublayer.part, site.site.module, nodes, tuple(nodes), site=site))
        found = False
        for unit in rest:
            if unit.number in placed:
                continue
            if not found and is_matrix(unit.module):
                found = True
                self.drafts.append(
                    OutputDraft(
                        sublayer.part,
                        unit.name,
                        frozenset(unit.gives),
                        unit.reads[:1],
                        (unit,),
                        unit.given[0],
                        unit.gave[0],
                        site=sublayer.sites[-1],
                    )
                )
            else:
                self._module(unit, sublayer.part)

    def _projection(self, unit: Unit, makes: str, part: Part) -> None:
        if not is_matrix(unit.module):
            self._module(unit, part)
            return
        _, reached = self.reader.cone(unit.gives[0], self._stops())
        own = bool(reached)  # else it reads the other stack, whose positions are not this one's
        self.drafts.append(
            ProjectionDraft(
                part,
                unit.name,
                frozenset(unit.gives),
                unit.reads[:1],
                (unit,),
                unit.given[0] if own else None,
                unit.gave[0] if own else None,
                makes=makes,
            )
        )

    def _module(self, unit: Unit, part: Part) -> None:
        given = unit.given[0] if unit.given else None
        self.drafts.append(
            ModuleDraft(part, unit.name, frozenset(unit.gives), unit.reads, (unit,), given, unit.gave[0])
        )

    def _whole(self, sublayer: Sublayer, rest: list[Unit]) -> None:
        """All of a sublayer that could not be read as one box."""
        inner = [term.node for term in sublayer.terms]
        if sublayer.on_write:
            inner = [self.graph.origin(sublayer.on_write[-1].unit.reads[0]).node]
        reads = tuple(sublayer.before.unit.gives) if sublayer.before is not None else tuple(sublayer.reads)
        given = sublayer.before.unit.gave[0] if sublayer.before is not None else None
        values = [self._value(node) for node in inner]
        gave: Tensor | None = values[0]
        for value in values[1:]:
            gave = None if gave is None or value is None else gave + value.reshape(gave.shape)
        self.drafts.append(
            ModuleDraft(sublayer.part, sublayer.module, frozenset(inner), reads, tuple(rest), given, gave)
        )

    def _value(self, number: int) -> Tensor | None:
        unit = self.watch.unit_of(number)
        if unit is None:
            return self.graph.nodes[number].value
        return unit.gave[unit.gives.index(number)]

    def _stops(self) -> frozenset[int]:
        states = [step.node if isinstance(step, SumStep) else step.call.unit.gives[0] for step in self.anatomy.steps]
        return frozenset((self.reader.call.start, *states))

    # ----------------------------------------------------------------- what reads what

    def _resolved(self) -> list[Draft]:
        owner: dict[int, int] = {}
        for place, draft in enumerate(self.drafts):
            for node in draft.gives:
                owner[node] = place
        for place, draft in enumerate(self.drafts):
            if isinstance(draft, SumDraft):  # one box for each summand, in the order of its factors
                draft.boxes = tuple(box for node in draft.reads for box in self._boxes_of((node,), owner, place))
            else:
                draft.boxes = tuple(self._boxes_of(draft.reads, owner, place))
        return self.drafts

    def _boxes_of(self, reads: Iterable[int], owner: dict[int, int], place: int) -> list[int]:
        """The boxes that gave what box `place` reads, and `STREAM` where that is the block's input."""
        found: set[int] = set()
        start = self.reader.call.start
        origin = self.graph.origin(start).node

        def after(here: int) -> tuple[int, ...]:
            if here in (start, origin):
                found.add(STREAM)
                return ()
            box = owner.get(here)
            if box is not None and box < place:
                found.add(box)
                return ()
            if here < self.reader.call.first_node:
                return ()
            unit = self.watch.unit_of(here)
            return self.graph.nodes[here].reads if unit is None else unit.reads

        for node in reads:
            for _ in self.graph.walk(node, after):
                pass
        return sorted(found)
