"""The boxes of a block without their numbers: which modules each stands for, and which others it reads.

Drafts are made once a block; a position's numbers are then rows of what the modules gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from attention_models.dataflow.anatomy import Anatomy, NormCall, NormStep, Reader, ScaleCall, Sublayer, SumStep
from attention_models.dataflow.blocks import SiteNodes
from attention_models.dataflow.experts import Router, router_of
from attention_models.dataflow.matrices import is_matrix
from attention_models.dataflow.network import Network, network_at, network_of
from attention_models.dataflow.watch import Unit
from attention_models.protocol.flow import STREAM, Part


@dataclass(slots=True, eq=False)
class BoxSpec:
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
class NormSpec(BoxSpec):
    call: NormCall
    number: int = 0  # among the block's normalisations that learned something, from 1; 0 for one that did not


@dataclass(slots=True, eq=False, kw_only=True)
class ProjectionSpec(BoxSpec):
    makes: str


@dataclass(slots=True, eq=False, kw_only=True)
class HeadsSpec(BoxSpec):
    site: SiteNodes


@dataclass(slots=True, eq=False, kw_only=True)
class OutputSpec(BoxSpec):
    site: SiteNodes


@dataclass(slots=True, eq=False, kw_only=True)
class NetworkSpec(BoxSpec):
    network: Network
    factor: float = 1.0
    straight: bool = True  # what it gives is added to the stream as it is


@dataclass(slots=True, eq=False, kw_only=True)
class ExpertsSpec(BoxSpec):
    router: Router
    shared: tuple[Network, ...] = ()  # that every position goes through
    factors: tuple[float, ...] = ()  # of each of `shared`
    factor: float = 1.0  # of what the chosen ones give
    straight: bool = True  # what it gives is added to the stream as it is


@dataclass(slots=True, eq=False, kw_only=True)
class SumSpec(BoxSpec):
    factors: tuple[float, ...] = ()


@dataclass(slots=True, eq=False, kw_only=True)
class ModuleSpec(BoxSpec):
    pass


class Drafting:
    """Makes the drafts of one block."""

    def __init__(self, reader: Reader, anatomy: Anatomy) -> None:
        self.reader, self.anatomy = reader, anatomy
        self.graph, self.watch = reader.graph, reader.watch
        self.drafts: list[BoxSpec] = []

    def made(self) -> list[BoxSpec]:
        if not self.anatomy.known:
            call = self.reader.call
            self.drafts.append(ModuleSpec("other", call.name, frozenset((call.end,)), (call.start,)))
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
            SumSpec(
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
            NormSpec(
                part, unit.name, frozenset(unit.gives), unit.reads[:1], (unit,), unit.given[0], unit.gave[0], call=call
            )
        )

    def _sublayer(self, sublayer: Sublayer) -> None:
        """Its boxes, in the order in which they ran."""
        if sublayer.before is not None:
            self._norm(sublayer.before, sublayer.part)
        calls = (sublayer.before, *sublayer.on_write)
        norms = {id(call.unit) for call in calls if call is not None and call.unit is not None}
        rest = [unit for unit in sublayer.units if id(unit) not in norms]
        network = network_of(self.reader, sublayer) if sublayer.part == "feed_forward" else None
        if network is not None and {unit.number for unit in rest} == network.units:
            self._network(sublayer, network)
        elif not sublayer.sites or not self._attention(sublayer, rest):
            self._whole(sublayer, rest)
        for call in reversed(sublayer.on_write):
            if isinstance(call, NormCall):
                self._norm(call, sublayer.part)
            else:
                self._scale(call, sublayer.part)

    def _network(self, sublayer: Sublayer, network: Network) -> None:
        units = (*network.first, *network.functions, network.last)
        self.drafts.append(
            NetworkSpec(
                "feed_forward",
                sublayer.module,
                frozenset(network.last.gives),
                network.first[0].reads[:1],
                units,
                network.first[0].given[0],
                network.last.gave[0],
                network=network,
                factor=sublayer.terms[0].factor,
                straight=not sublayer.on_write,
            )
        )

    def _attention(self, sublayer: Sublayer, rest: list[Unit]) -> bool:
        """Projections, heads, W_O; any other module is a box of its own. False where no matrix reads the heads."""
        makes = self.reader.projections(sublayer)
        after = [unit for unit in self.reader.after_heads(sublayer, makes) if unit in rest]
        output = next((unit for unit in after if is_matrix(unit.module)), None)
        if output is None:
            return False
        before = [unit for unit in rest if unit not in after]
        for unit in before:
            self._projection(unit, makes.get(unit.number, ""), sublayer.part)
        others = tuple(number for unit in before if unit.number not in makes for number in unit.gives)
        for site in sublayer.sites:
            name = site.site.module or sublayer.module
            reads = (site.query, site.key, site.value, *others)
            heads = HeadsSpec(sublayer.part, name, frozenset((site.mixed,)), reads, site=site)
            if self.graph.origin(output.reads[0]).node == site.mixed:
                heads.gave = output.given[0]
            self.drafts.append(heads)
        for unit in after:
            if unit is output:  # what it reads are heads, or what a module between made of them
                self._output(unit, sublayer, unit is after[0])
            else:
                self._module(unit, sublayer.part)
        return True

    def _output(self, unit: Unit, sublayer: Sublayer, is_direct: bool) -> None:
        reads = tuple(site.mixed for site in sublayer.sites) if is_direct else unit.reads[:1]
        about = (sublayer.part, unit.name, frozenset(unit.gives), reads, (unit,), unit.given[0], unit.gave[0])
        self.drafts.append(OutputSpec(*about, site=sublayer.sites[-1]))

    def _projection(self, unit: Unit, makes: str, part: Part) -> None:
        if not makes or not is_matrix(unit.module):
            self._module(unit, part)
            return
        _, reached = self.reader.cone(unit.gives[0], self._stops())
        own = bool(reached)  # else it reads the other stack, whose positions are not this one's
        self.drafts.append(
            ProjectionSpec(
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
        self.drafts.append(ModuleSpec(part, unit.name, frozenset(unit.gives), unit.reads, (unit,), given, unit.gave[0]))

    def _scale(self, call: ScaleCall, part: Part) -> None:
        if call.unit is not None:
            self._module(call.unit, part)
            return
        names = self.reader.names
        name = "" if call.weight is None else names.get(id(call.weight), "")
        node = self.graph.nodes[call.node]
        given = self._value(self.graph.origin(call.reads).node)
        self.drafts.append(ModuleSpec(part, name, frozenset((call.node,)), (call.reads,), (), given, node.value))

    def _whole(self, sublayer: Sublayer, rest: list[Unit]) -> None:
        """All of a sublayer that could not be read as one box."""
        inner = sublayer.inner
        reads = tuple(sublayer.before.unit.gives) if sublayer.before is not None else tuple(sublayer.reads)
        given = sublayer.before.unit.gave[0] if sublayer.before is not None else None
        seen = {term.node: term.seen for term in sublayer.terms}
        values = [self._value(seen.get(node, -1)) for node in inner]
        values = [self._value(node) if value is None else value for node, value in zip(inner, values, strict=True)]
        gave: Tensor | None = values[0]
        for value in values[1:]:
            gave = None if gave is None or value is None else gave + value.reshape(gave.shape)
        router = router_of(self.reader, sublayer) if sublayer.part == "feed_forward" else None
        about = (sublayer.part, sublayer.module, frozenset(inner), reads, tuple(rest), given, gave)
        self.drafts.append(
            ModuleSpec(*about) if router is None else self._experts(sublayer, ExpertsSpec(*about, router=router))
        )

    def _experts(self, sublayer: Sublayer, draft: ExpertsSpec) -> ExpertsSpec:
        """With the networks beside the chosen ones."""
        factors = [term.factor for term in sublayer.terms]
        networks = [network_at(self.reader, node) for node in sublayer.inner]
        shared = [(network, factor) for network, factor in zip(networks, factors, strict=True) if network is not None]
        routed = [factor for network, factor in zip(networks, factors, strict=True) if network is None]
        draft.shared, draft.factors = tuple(n for n, _ in shared), tuple(f for _, f in shared)
        draft.factor = routed[0] if routed else 1.0
        draft.straight = not sublayer.on_write
        return draft

    def _value(self, number: int) -> Tensor | None:
        if number < 0:
            return None
        unit = self.watch.unit_of(number)
        if unit is None:
            return self.graph.nodes[number].value
        return unit.gave[unit.gives.index(number)]

    def _stops(self) -> frozenset[int]:
        states = [step.node if isinstance(step, SumStep) else step.call.unit.gives[0] for step in self.anatomy.steps]
        return frozenset((self.reader.call.start, *states))

    # ----------------------------------------------------------------- what reads what

    def _resolved(self) -> list[BoxSpec]:
        norms = [draft for draft in self.drafts if isinstance(draft, NormSpec)]
        learned = [draft for draft in norms if any(True for _ in draft.call.unit.module.parameters())]
        for number, norm in enumerate(sorted(learned, key=lambda draft: draft.call.unit.number), 1):
            norm.number = number
        owner: dict[int, int] = {}
        for place, draft in enumerate(self.drafts):
            for node in draft.gives:
                owner[node] = place
        for place, draft in enumerate(self.drafts):
            if isinstance(draft, SumSpec):  # one box for each summand, in the order of its factors
                self._resolve_sum(draft, owner, place)
            else:
                draft.boxes = tuple(self._boxes_of(draft.reads, owner, place))
        return self.drafts

    def _resolve_sum(self, draft: SumSpec, owner: dict[int, int], place: int) -> None:
        """One box for each summand, in the order of its factors; summands of one box are one."""
        boxes: dict[int, float] = {}
        factors = draft.factors or (1.0,) * len(draft.reads)
        for node, factor in zip(draft.reads, factors, strict=True):
            for box in self._boxes_of((node,), owner, place):
                boxes.setdefault(box, factor)
        draft.boxes = tuple(boxes)
        draft.factors = tuple(boxes.values()) if draft.factors else ()

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
