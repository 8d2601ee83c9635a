"""Attention that is computed by a family's own code: found by its softmax, whose rows multiply the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attention_models.dataflow.blocks import SiteNodes
from attention_models.dataflow.graph import Graph
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import Site, SiteRef

SOFTMAX = frozenset(("_softmax", "softmax", "_safe_softmax"))
_PRODUCTS = ("bmm", "baddbmm")


def own_sites(graph: Graph, first: int, last: int, sites: Iterable[Site]) -> list[SiteNodes]:
    """One for each of `sites`, in the order in which softmaxes ran among the nodes from `first` to `last`.

    Fewer, where products of matrices on both sides of a softmax are not found.
    """
    found = []
    waiting = list(sites)
    for number in range(first, last + 1):
        node = graph.nodes[number]
        if not waiting or node.op not in SOFTMAX or len(node.shape) < 3 or node.part not in ((), (0,)):
            continue
        scores = _product_below(graph, number, first)
        mixing = _product_above(graph, number, last)
        if scores is None or mixing is None:
            continue
        queries, keys = graph.nodes[scores].reads[-2:]
        found.append(SiteNodes(waiting.pop(0), None, queries, keys, mixing[1], mixing[0]))
    return found


def _product_below(graph: Graph, softmax: int, first: int) -> int | None:
    """The product of queries and keys that a softmax is made of; of several (DeBERTa's, with positions) the first."""
    found: set[int] = set()

    def after(here: int) -> Sequence[int]:
        node = graph.nodes[here]
        if node.op in _PRODUCTS:
            found.add(here)
            return ()
        return node.reads if (here >= first and node.unit < 0) or here == softmax else ()

    for _ in graph.walk(softmax, after):
        pass
    return min(found, default=None)


def _product_above(graph: Graph, softmax: int, last: int) -> tuple[int, int] | None:
    """The product of weights and values, and the node of the values."""
    made = {softmax}
    for number in range(softmax + 1, last + 1):
        node = graph.nodes[number]
        if not made & set(node.reads):
            continue
        if node.op in _PRODUCTS:
            values = [n for n in node.reads[-2:] if n not in made]
            return (number, values[0]) if len(values) == 1 else None
        made.add(number)
    return None


def own_sites_of(model: Model, trace: Trace, stack: str, layer: int) -> list[Site]:
    """The sites of a block of a family that computes attention itself, in the order in which they run."""
    if not model.info.weights_only:
        return []
    refs = [SiteRef(stack, layer), *([SiteRef("cross", layer)] if stack == "decoder" else [])]
    return [site for ref in refs for site in trace.sites if site.ref == ref]
