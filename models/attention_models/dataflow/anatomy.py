"""How a block comes from the stream as it enters to the stream as it leaves, read off the graph of its operations.

The residual stream is climbed from the end: a sum of which one operand leads down to the entry by sums and
normalisations alone is a step of the stream, its other operand is what a sublayer wrote. Where no such way leads down,
the block is of a kind that is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from attention_models.dataflow.blocks import ATTENTION, BlockCall, SiteNodes
from attention_models.dataflow.graph import Graph, Term, size_of
from attention_models.dataflow.matrices import is_matrix
from attention_models.dataflow.norms import Norm, norm_of
from attention_models.dataflow.own_attention import SOFTMAX, own_sites
from attention_models.dataflow.watch import ROUTER, Unit, Watch
from attention_models.protocol.flow import Part, Placement
from attention_models.protocol.values import Site


@dataclass(slots=True, eq=False)
class NormCall:
    """A normalisation as it ran."""

    unit: Unit
    norm: Norm


@dataclass(slots=True, eq=False)
class ScaleCall:
    """A product with a learned vector, by a module or by an operation of the block itself (LayerScale)."""

    node: int
    reads: int  # the node that is multiplied
    unit: Unit | None
    weight: Tensor | None  # of an operation: the vector


@dataclass(slots=True, eq=False)
class Sublayer:
    """What wrote into the stream: all summands of one sublayer.

    Attributes:
        terms: the nodes whose sum was added, each with its factor.
        reads: the nodes of the stream that it is made of, in the order in which they came about.
        before: the normalisation of the stream that it reads, if any.
        on_write: what it went through on the way to the sum, the last first: a normalisation, a learned scale.
        inner: the node of what it wrote before that, one for each term.
        units: every call of a module that it is made of, in the order in which they ran.
    """

    part: Part
    terms: list[Term]
    reads: list[int]
    units: list[Unit]
    sites: list[SiteNodes] = field(default_factory=list)
    before: NormCall | None = None
    on_write: list[NormCall | ScaleCall] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    module: str = ""

    @property
    def alters(self) -> bool:
        """Whether what it gives is normalised or scaled before it is added."""
        return bool(self.on_write) or any(term.factor != 1.0 for term in self.terms)


@dataclass(slots=True, eq=False)
class SumStep:
    """The stream after an addition: the node of the sum, and which sublayers were added."""

    node: int
    terms: list[Term]
    carried: float = 1.0  # what the stream itself was multiplied by
    sublayers: list[Sublayer] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class NormStep:
    """A normalisation of the stream itself."""

    call: NormCall


Step = SumStep | NormStep


@dataclass(slots=True, eq=False)
class Anatomy:
    """The steps of a block's stream from its entry to its end; `known` is False where they were not found."""

    steps: list[Step]
    known: bool
    placement: Placement
    parallel: bool

    @property
    def adds(self) -> bool:
        """Whether the stream is added to, and nothing else is done to it."""
        return self.known and not any(isinstance(step, NormStep) for step in self.steps)

    @property
    def sublayers(self) -> list[Sublayer]:
        return [sublayer for step in self.steps if isinstance(step, SumStep) for sublayer in step.sublayers]


class Reader:
    """Reads one call of a block. Its units must still hold their tensors."""

    def __init__(self, watch: Watch, call: BlockCall, sites: Sequence[SiteNodes], own: Sequence[Site] = ()) -> None:
        """`sites` are the attention modules that ran; `own` those of a family that computes attention itself."""
        self.watch, self.call = watch, call
        self.graph: Graph = watch.graph
        self.sites = list(sites)
        if own:
            self.sites = own_sites(self.graph, call.first_node, len(self.graph.nodes) - 1, own)
        self._norms: dict[int, NormCall | None] = {}

    @property
    def names(self) -> dict[int, str]:
        """The names of the parameters of the block, by `id`."""
        return {id(p): f"{self.call.name}.{name}" for name, p in self.call.module.named_parameters()}

    def anatomy(self) -> Anatomy:
        steps = self.climb(self.call.end) if self.call.end >= 0 and self.call.start >= 0 else None
        if not steps:
            return Anatomy([], False, "unknown", False)
        states = [self.call.start, *(self._node(step) for step in steps)]
        terms = {term.node for step in steps if isinstance(step, SumStep) for term in step.terms}
        for step in steps:
            if isinstance(step, SumStep):
                step.sublayers = self._sublayers(step, states, terms)
        sublayers = [sublayer for step in steps if isinstance(step, SumStep) for sublayer in step.sublayers]
        for sublayer in sublayers:
            others = [name for other in sublayers if other is not sublayer for name in self._names(other)]
            sublayer.module = self._module_of(sublayer, others)
        return Anatomy(steps, True, _placement(steps, sublayers), _is_parallel(sublayers))

    def added_outside(self, stream: int) -> Anatomy | None:
        """With node `stream` as what the block makes of it, where what it gives is added outside of it; else None."""
        gave, self.call.end = self.call.end, stream
        anatomy = self.anatomy()
        if len(anatomy.steps) == 1 and isinstance(anatomy.steps[0], SumStep):
            given = self.graph.origin(gave).node
            self.call.outer = [(term.node, term.factor) for term in anatomy.steps[0].terms] == [(given, 1.0)]
        if self.call.outer:
            return anatomy
        self.call.end = gave
        return None

    # ----------------------------------------------------------------- the stream

    def climb(self, number: int) -> list[Step] | None:
        """The steps from the block's entry to `number`; None where the stream does not lead there."""
        origin = self.graph.origin(number)
        number = origin.node
        entry = self.graph.origin(self.call.start)  # the stream may enter as embeddings multiplied by a number
        if number in (self.call.start, entry.node):
            return [] if origin.factor == entry.factor else None
        if number < self.call.first_node:
            return None
        if self.graph.is_sum(number):
            operands = self.graph.summands(number)
            for stream, other in (operands, operands[::-1]):
                steps = self.climb(stream.node)
                if steps is not None and stream.factor == 1.0:
                    return [*steps, SumStep(number, self.graph.terms(other.node, (), other.factor))]
            return None
        norm = self.norm_at(number)
        if norm is None:
            return None
        steps = self.climb(norm.unit.reads[0])
        return None if steps is None else [*steps, NormStep(norm)]

    def norm_at(self, number: int) -> NormCall | None:
        """The normalisation that gave node `number`, if one did."""
        unit = self.watch.unit_of(number)
        if unit is None:
            return None
        if unit.number not in self._norms:
            norm = norm_of(unit.module, unit.given[0], unit.gave[0]) if unit.given and unit.gave else None
            self._norms[unit.number] = None if norm is None else NormCall(unit, norm)
        return self._norms[unit.number]

    def _node(self, step: Step) -> int:
        return step.node if isinstance(step, SumStep) else step.call.unit.gives[0]

    # ----------------------------------------------------------------- what writes into it

    def _sublayers(self, step: SumStep, states: list[int], terms: set[int]) -> list[Sublayer]:
        """The summands of one step, those of one sublayer together, in the order in which they came about."""
        found: list[Sublayer] = []
        for term in sorted(step.terms, key=lambda term: term.node):
            sublayer = self._sublayer(term, states, terms)
            same = next((other for other in found if _belongs(sublayer, other, self.call.name)), None)
            if same is None:
                found.append(sublayer)
                continue
            same.terms += sublayer.terms
            same.inner += sublayer.inner
            same.units = sorted({u.number: u for u in (*same.units, *sublayer.units)}.values(), key=lambda u: u.number)
        return found

    def _sublayer(self, term: Term, states: list[int], terms: set[int]) -> Sublayer:
        stops = frozenset((*states, *(terms - {term.node})))
        inside, reads = self.cone(term.node, stops)
        units = sorted({u for n in inside if (u := self.graph.nodes[n].unit) >= 0})
        calls = [self.watch.units[u] for u in units]
        sites = [site for site in self.sites if site.mixed in inside]
        sublayer = Sublayer("other", [term], sorted(reads), calls, sites)
        if sites:
            sublayer.part = "cross" if any(site.site.stack == "cross" for site in sites) else "attention"
        elif any(self.graph.nodes[n].op in SOFTMAX and self._mixes(n, inside) for n in inside):
            sublayer.part = "attention"
        elif self._has_router(calls, inside) or not any(self.graph.nodes[n].op in _MIXES for n in inside):
            sublayer.part = "feed_forward"
        number = term.node
        while (step := self._on_write(number)) is not None:
            sublayer.on_write.append(step)
            number = self.graph.origin(step.reads if isinstance(step, ScaleCall) else step.unit.reads[0]).node
        sublayer.inner = [number]
        for call in calls:
            norm = self.norm_at(call.gives[0])
            if norm is not None and self.graph.origin(call.reads[0]).node in stops and norm not in sublayer.on_write:
                sublayer.before = norm
                break
        return sublayer

    def _on_write(self, number: int) -> NormCall | ScaleCall | None:
        """The normalisation or learned scale that gave node `number` of what is written."""
        norm = self.norm_at(number)
        if norm is not None:
            return norm
        unit, node = self.watch.unit_of(number), self.graph.nodes[number]
        if unit is None:
            if node.op not in ("mul", "mul_") or len(node.reads) != 2:
                return None
            for reads, scale in (node.reads, node.reads[::-1]):
                weight = self.graph.nodes[self.graph.origin(scale).node].value
                if isinstance(weight, nn.Parameter) and size_of(self.graph.nodes[reads].shape) == size_of(node.shape):
                    return ScaleCall(number, reads, None, weight)
            return None
        own = list(unit.module.parameters())
        width = node.shape[-1] if node.shape else 0
        is_scale = len(own) == 1 and own[0].numel() == width and len(unit.given) == 1
        return ScaleCall(number, unit.reads[0], unit, None) if is_scale and not is_matrix(unit.module) else None

    def cone(self, number: int, stops: frozenset[int]) -> tuple[set[int], set[int]]:
        """The nodes of this block that `number` is made of, and those among `stops` where that ended."""
        reached: set[int] = set()

        def after(here: int) -> tuple[int, ...]:
            if here != number and (here in stops or here == self.call.start):
                reached.add(here)
                return ()
            if here < self.call.first_node:
                return ()
            unit = self.watch.unit_of(here)
            reads = self.graph.nodes[here].reads if unit is None else unit.reads
            return tuple(reads)

        walked = set(self.graph.walk(number, after))
        return {n for n in walked - reached if n >= self.call.first_node}, reached

    def projections(self, sublayer: Sublayer) -> dict[int, str]:
        """By the number of a unit: which of queries, keys and values are made of what it gives, "qkv" say."""
        makes: dict[int, str] = {}
        stops = frozenset(sublayer.reads)
        for site in sublayer.sites:
            for letter, node in zip("qkv", (site.query, site.key, site.value), strict=True):
                inside, _ = self.cone(node, stops)
                for unit in sublayer.units:
                    known = makes.get(unit.number, "")
                    if letter not in known and any(number in inside for number in unit.gives):
                        makes[unit.number] = known + letter
        return makes

    def after_heads(self, sublayer: Sublayer, makes: Mapping[int, str]) -> list[Unit]:
        """The calls that read what the heads gave; the first matrix among them is W_O."""
        stops = frozenset(sublayer.reads)
        heads = {site.mixed for site in sublayer.sites}
        found = []
        for unit in sublayer.units:
            inside = {n for node in unit.reads for n in self.cone(node, stops)[0]}
            if unit.number not in makes and heads & inside:
                found.append(unit)
        return found

    def output_matrix(self, sublayer: Sublayer) -> Unit | None:
        """The call that multiplied the joined heads by W_O; None where something else read them."""
        after = self.after_heads(sublayer, self.projections(sublayer))
        return after[0] if after and is_matrix(after[0].module) else None

    def _mixes(self, softmax: int, inside: set[int]) -> bool:
        """Whether a softmax mixes positions: some product of matrices is made of it."""
        shape = self.graph.nodes[softmax].shape
        return len(shape) >= 3 and any(self.graph.nodes[n].op in ("bmm", "baddbmm") for n in inside)

    def _has_router(self, calls: list[Unit], inside: set[int]) -> bool:
        """Whether the largest few of some numbers are chosen: experts."""
        own = (n for call in calls for n in range(call.first, max(call.gives) + 1))
        return any(self.graph.nodes[n].op == ROUTER for n in (*inside, *own))

    def _names(self, sublayer: Sublayer) -> list[str]:
        """The modules that a sublayer is made of, but for its normalisations."""
        calls = (sublayer.before, *sublayer.on_write)
        norms = {call.unit.number for call in calls if call is not None and call.unit is not None}
        names = [unit.name for unit in sublayer.units if unit.number not in norms]
        return names + [site.site.module for site in sublayer.sites if site.site.module]

    def _module_of(self, sublayer: Sublayer, others: list[str]) -> str:
        """The innermost module that holds all of a sublayer and nothing else; where there is none, its last one."""
        names = self._names(sublayer)
        if not names:
            return self.call.name
        shared = common(names)
        if len(shared) > len(self.call.name) and not any(f"{name}.".startswith(f"{shared}.") for name in others):
            return shared
        return sublayer.sites[-1].site.module if sublayer.sites else names[-1]


def common(names: Iterable[str]) -> str:
    """The innermost module that all of `names` are in, or the one that they name."""
    split = [name.split(".") for name in names]
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


# operations that may carry something from one position to another
_MIXES = frozenset(("bmm", "baddbmm", "convolution", "cumsum", ATTENTION))


def _belongs(one: Sublayer, other: Sublayer, block: str) -> bool:
    """Whether two summands are of one sublayer: experts that are shared and experts that are chosen."""
    if one.part != other.part or one.sites or other.sites or one.before is not other.before:
        return False
    shared = common([*(unit.name for unit in one.units[-1:]), *(unit.name for unit in other.units[-1:])])
    return one.reads == other.reads and len(shared) > len(block)


def _placement(steps: list[Step], sublayers: list[Sublayer]) -> Placement:
    """Where normalisations stand, where all sublayers agree on it."""
    found: set[Placement] = set()
    for i, step in enumerate(steps):
        if not isinstance(step, SumStep):
            continue
        after = i + 1 < len(steps) and isinstance(steps[i + 1], NormStep)
        for sublayer in step.sublayers:
            wrote = any(isinstance(call, NormCall) for call in sublayer.on_write)
            if after:
                found.add("post" if sublayer.before is None and not wrote else "unknown")
            elif sublayer.before is not None:
                found.add("both" if wrote else "pre")
            else:
                found.add("write" if wrote else "none")
    if len(found) > 1:
        found.discard("none")  # ModernBERT's first block reads what the embeddings' own normalisation gave
    return found.pop() if len(found) == 1 else "unknown"


def _is_parallel(sublayers: list[Sublayer]) -> bool:
    """Whether attention and the feed-forward network read the same stream."""
    attention = [s for s in sublayers if s.part == "attention"]
    networks = [s for s in sublayers if s.part == "feed_forward"]
    return any(a.reads == n.reads for a in attention for n in networks)


def written(sublayer: Sublayer, watch: Watch) -> Tensor | None:
    """What it added to the stream, in the stream's layout; None where a summand's tensor is not held."""
    total: Tensor | None = None
    for term in sublayer.terms:
        seen = watch.graph.nodes[term.seen].value if term.seen >= 0 else None
        value = value_of(term.node, watch) if seen is None else seen
        if value is None:
            return None
        part = value if term.factor == 1.0 else value * term.factor
        total = part if total is None else total + part.reshape(total.shape).to(total.device)
    return total


def value_of(number: int, watch: Watch) -> Tensor | None:
    """The tensor of a node, where its unit or the graph holds it."""
    node = watch.graph.nodes[number]
    if node.unit < 0:
        return node.value
    unit = watch.units[node.unit]
    return unit.gave[unit.gives.index(number)] if unit.gave else None
