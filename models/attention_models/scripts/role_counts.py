"""What is added up over many texts for a role, as lines: shares of weight, of entropy, of what distance explains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.roles.reading import Item
from attention_models.roles.relations import NAMES, grouped, pieces_of_words
from attention_models.scripts.script_text import Script


class Counted(ABC):
    """Lines of one role. In those of a text there are `text`, its number, and `given`; in those of a layer of it also
    `layer`, `w` (heads, queries, keys), `n`, `m`, and `visible`, (queries, keys) or (heads, queries, keys)."""

    def numbers(self, script: Script) -> None:  # noqa: B027 (most write none)
        """What the texts have beside their tokens."""

    @abstractmethod
    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None: ...

    def of_text(self, stack: str, q: str, k: str) -> list[str]:
        return []

    @abstractmethod
    def of_layer(self, stack: str, first: int) -> list[str]: ...

    @abstractmethod
    def end(self, script: Script, stack: str) -> None: ...


def counted_of(role: str, items: Sequence[Item], trace: Trace) -> Counted:
    """How `role` is counted in `items`, of which `trace` is one."""
    if ROLE_NAMES[role].kind == "relation":
        return _Relation(role, items)
    if role == "breadth":
        return _Breadth()
    return _Distance(items, trace) if role == "positional" else _Pattern()


class _Pattern(Counted):
    """The mean over queries of the weight on some cells."""

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        for name in ("sums", "counts", "evens"):
            script.line(f"{name}_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")

    def of_text(self, stack: str, q: str, k: str) -> list[str]:
        return [f"cells = cells_of({q}, {k})  # (queries, keys)"]

    def of_layer(self, stack: str, first: int) -> list[str]:
        return [
            "seen = visible.sum(dim=-1)  # how many keys each query sees",
            "hit = cells & visible & (seen > 1)[..., None]  # a query that sees one key has no choice",
            f"sums_{stack}[layer] += (w * hit).sum(dim=(1, 2))",
            f"counts_{stack}[layer] += hit.any(dim=-1).sum(dim=-1)  # the queries that count",
            f"evens_{stack}[layer] += (hit.sum(dim=-1) / seen.clamp(min=1)).sum(dim=-1)  # if heads attended evenly",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"scores = sums_{stack} / counts_{stack}")
        script.line(f"even = evens_{stack}.sum(dim=1) / counts_{stack}.sum(dim=1)")


class _Breadth(Counted):
    """The mean over rows of the entropy, as a share of the most that it could be."""

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        for name in ("sums", "counts"):
            script.line(f"{name}_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")

    def of_layer(self, stack: str, first: int) -> list[str]:
        return [
            "seen = visible.sum(dim=-1)  # how many keys each query sees",
            "counted = ((seen > 1) & torch.ones(w.shape[:2], dtype=torch.bool))  # (heads, queries)",
            "total = w.sum(dim=-1).clamp(min=torch.finfo(w.dtype).tiny)  # 1, less a sink's share",
            "entropy = torch.log(total) - torch.xlogy(w, w).sum(dim=-1) / total  # (heads, queries), nats",
            "share = entropy / torch.log(seen.clamp(min=2).float())  # of the most that it could be",
            f"sums_{stack}[layer] += (share * counted).sum(dim=-1)",
            f"counts_{stack}[layer] += counted.sum(dim=-1)",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"scores = sums_{stack} / counts_{stack}")


class _Distance(Counted):
    """The share of the map's variance that distance alone explains."""

    def __init__(self, items: Sequence[Item], trace: Trace) -> None:
        self._picture = trace.picture
        grids = {(p.rows, p.columns) for p in (item.encoded.picture for item in items) if p is not None}
        if len(grids) > 1:
            raise InputError(
                "These pictures are cut into grids of different size, so no one table has their distances."
            )
        self._longest = max(max(len(item.encoded.tokens), len(item.encoded.source)) for item in items)

    def numbers(self, script: Script) -> None:
        picture = self._picture
        if picture is None:
            return
        rows, columns, first, count = picture.rows, picture.columns, picture.first, self._longest
        script.line(f"rows, columns, first = {rows}, {columns}, {first}", "of patches, and where they begin")
        script.line(
            "down, right = torch.arange(rows * columns) // columns, torch.arange(rows * columns) % columns\n"
            "apart = (down[:, None] - down + rows - 1) * (2 * columns - 1) + right[:, None] - right + columns - 1\n"
            f"places = torch.full(({count}, {count}), -1)  # which distance each cell has; CLS and its like have none\n"
            "places[first : first + rows * columns, first : first + rows * columns] = apart"
        )

    def _most(self) -> int:
        picture = self._picture
        if picture is None:
            return 2 * self._longest
        return (2 * picture.rows - 1) * (2 * picture.columns - 1)

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        most = self._most()
        script.line(
            f"sums_{stack} = torch.zeros({layers}, {heads}, {most}, dtype=torch.float64)", "of each distance, by head"
        )
        script.line(f"squares_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")
        script.line(f"counts_{stack} = torch.zeros({layers}, {most}, dtype=torch.float64)", "cells of each distance")

    def of_layer(self, stack: str, first: int) -> list[str]:
        lines = ["seen = visible if visible.dim() == 2 else visible.any(dim=0)  # (queries, keys)"]
        if self._picture is None:
            lines.append(
                f"places = torch.arange(n)[:, None] - torch.arange(m) + {self._longest}  # which distance each cell has"
            )
        return [
            *lines,
            "counted = seen & (seen.sum(dim=-1) > 1)[:, None] & (places >= 0)",
            "kept, at = (w * counted).double(), places.clamp(min=0).flatten()",
            f"squares_{stack}[layer] += kept.square().sum(dim=(1, 2))",
            f"sums_{stack}[layer].index_add_(1, at, kept.flatten(1))",
            f"counts_{stack}[layer].index_add_(0, at, counted.flatten().double())",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"whole = sums_{stack}.sum(dim=-1) ** 2 / counts_{stack}.sum(dim=-1)[:, None]")
        script.line(f"between = (sums_{stack} ** 2 / counts_{stack}.clamp(min=1)[:, None]).sum(dim=-1) - whole")
        script.line(f"total = squares_{stack} - whole", "the variance of the weights, times the cells")
        script.line("scores = (between / total).clamp(0, 1)", "R^2")


class _Relation(Counted):
    """Attention between words that a dependency edge joins: Clark et al. 2019, section 4."""

    def __init__(self, role: str, items: Sequence[Item]) -> None:
        relation = NAMES.index(role)
        self._rows = []
        for item in items:
            pieces = pieces_of_words(item.encoded.source or item.encoded.tokens, item.text)
            self._rows.append(
                [
                    (pieces[source], [(target - source, pieces[target]) for target in targets if pieces[target]])
                    for place, source, targets in grouped(item.text)
                    if place == relation and pieces[source]
                ]
            )

    def numbers(self, script: Script) -> None:
        script.rows("related", self._rows, "of each text: a word's tokens, and how far and which those it is joined to")

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        script.uses("from collections import Counter")
        script.line(f"sums_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")
        for name in ("counts", "evens"):
            script.line(f"{name}_{stack} = torch.zeros({layers}, dtype=torch.float64)")
        script.line(f"far_{stack}, words_{stack} = Counter(), 0", "how often each distance in words leads there")

    def of_layer(self, stack: str, first: int) -> list[str]:
        return [
            "seen = visible if visible.dim() == 2 else visible[0]  # (queries, keys)",
            "for word, others in related[text]:",
            "    keys = [key for _, pieces in others for key in pieces if seen[word, key].all()]",
            "    if not keys:",
            "        continue  # nothing of what it is joined to is visible",
            f"    sums_{stack}[layer] += w[:, word][:, :, keys].sum(dim=-1).mean(dim=-1)  # to all pieces, from each",
            f"    counts_{stack}[layer] += 1",
            f"    evens_{stack}[layer] += (len(keys) / seen[word].sum(dim=-1)).mean()",
            f"    if layer == {first}:",
            f"        words_{stack} += 1",
            f"        far_{stack}.update({{far for far, pieces in others if pieces[0] in keys}})",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"scores = sums_{stack} / counts_{stack}[:, None]")
        script.line(
            f"best = max(far_{stack}.values()) / words_{stack}", "of a head that always attends so many words away"
        )
        script.line(f"even = (evens_{stack} / counts_{stack}).clamp(min=best)")
