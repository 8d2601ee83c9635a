"""The ways a text went on: a frozen tree of chosen tokens, all of which are kept. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attention_models.protocol.decoding import DecodeSettings

ROOT = 0
"""The prompt."""

GREEDY = DecodeSettings()

MOST_NODES = 5000
"""Of one tree: ten texts of 500 tokens that have nothing in common."""


@dataclass(frozen=True, slots=True)
class Node:
    """One chosen token. Two branches that begin alike share their first nodes."""

    id: int
    parent: int
    token: int
    label: str
    log_probability: float  # of this token, after all before it
    ended: bool = False  # the model ended the text with it
    name: str = ""  # a person's word for the branch that ends here
    settings: DecodeSettings = GREEDY  # what it was chosen with
    forced: bool = False  # a person chose it, not the settings


@dataclass(frozen=True, slots=True)
class Branches:
    """Nodes in the order in which they were chosen; `current` is the selected one.

    Methods that name a node raise KeyError where there is none.
    """

    nodes: tuple[Node, ...] = ()
    current: int = ROOT
    made: int = 0  # nodes that there ever were: ids are not used again

    def has_room(self, tokens: int = 1) -> bool:
        return len(self.nodes) + tokens <= MOST_NODES

    def __contains__(self, id_: int) -> bool:
        """Whether there is such a node; the prompt always is."""
        return id_ == ROOT or any(node.id == id_ for node in self.nodes)

    def node(self, id_: int) -> Node:
        for node in self.nodes:
            if node.id == id_:
                return node
        raise KeyError(f"There is no node {id_} in this tree.")

    def children(self, id_: int) -> tuple[Node, ...]:
        """What followed on a node, in the order in which it was chosen."""
        return tuple(node for node in self.nodes if node.parent == id_)

    def path(self, id_: int | None = None) -> tuple[Node, ...]:
        """From the prompt to a node (the current one if None), the prompt left out."""
        by_id = {node.id: node for node in self.nodes}
        at = self.current if id_ is None else id_
        found: list[Node] = []
        while at != ROOT:
            if at not in by_id:
                raise KeyError(f"There is no node {at} in this tree.")
            found.append(by_id[at])
            at = by_id[at].parent
        return tuple(reversed(found))

    def ids(self, id_: int | None = None) -> tuple[int, ...]:
        """The tokens of a path."""
        return tuple(node.token for node in self.path(id_))

    def log_probability(self, id_: int | None = None) -> float:
        """Of a whole path: the sum over its tokens."""
        return sum(node.log_probability for node in self.path(id_))

    def furthest(self) -> tuple[Node, ...]:
        """The path to the current node, and on along what was chosen last after each."""
        newest = {node.parent: node for node in self.nodes}  # later ones win
        path, at = list(self.path()), self.current
        while at in newest:
            path.append(newest[at])
            at = newest[at].id
        return tuple(path)

    def leaves(self) -> tuple[Node, ...]:
        """Where branches end: nodes that nothing follows."""
        parents = {node.parent for node in self.nodes}
        return tuple(node for node in self.nodes if node.id not in parents)

    def grow(
        self,
        token: int,
        label: str,
        log_probability: float,
        ended: bool = False,
        settings: DecodeSettings = GREEDY,
        forced: bool = False,
    ) -> Branches:
        """Go on from the current node with `token`: into the branch that has it already, else into a new one.

        The node keeps how it was chosen last.
        """
        for child in self.children(self.current):
            if child.token == token:
                now = replace(child, ended=ended, settings=settings, forced=forced)
                nodes = self.nodes if now == child else tuple(now if n is child else n for n in self.nodes)
                return replace(self, nodes=nodes, current=child.id)
        id_ = self.made + 1
        node = Node(id_, self.current, token, label, log_probability, ended, settings=settings, forced=forced)
        return Branches((*self.nodes, node), id_, id_)

    def go(self, id_: int) -> Branches:
        """Select another node, or the prompt."""
        if id_ != ROOT:
            self.node(id_)
        return replace(self, current=id_)

    def named(self, id_: int, name: str) -> Branches:
        """Call the branch that ends at a node by a name; "" takes the name away."""
        node = self.node(id_)
        if node.name == name.strip():
            return self
        return replace(self, nodes=tuple(replace(n, name=name.strip()) if n is node else n for n in self.nodes))

    def without(self, id_: int) -> Branches:
        """Without a node and all that follows it. Where one of these was selected, what was before them is."""
        node = self.node(id_)
        gone = {n.id for n in self._below(id_)}
        current = node.parent if self.current in gone else self.current
        return replace(self, nodes=tuple(n for n in self.nodes if n.id not in gone), current=current)

    def branch_start(self, id_: int) -> int:
        """The first node that belongs to the branch of `id_` alone: what to delete so that the others stay."""
        at = self.node(id_)
        while at.parent != ROOT and len(self.children(at.parent)) == 1:
            at = self.node(at.parent)
        return at.id

    def _below(self, id_: int) -> tuple[Node, ...]:
        """A node and all that follows it."""
        gone = {id_}
        for node in self.nodes:  # parents come before their children
            if node.parent in gone:
                gone.add(node.id)
        return tuple(node for node in self.nodes if node.id in gone)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of tokens without a fork, as one line of an outline."""

    last: int  # node
    depth: int  # forks before it
    text: str
    tokens: int
    log_probability: float  # of the whole path to `last`
    ended: bool
    name: str
    on_path: bool  # whether the current path goes through it


def outline(branches: Branches) -> tuple[Segment, ...]:
    """The tree as lines, each branch below the one it forks from, in the order in which they were chosen."""
    children: dict[int, list[Node]] = {}
    for node in branches.nodes:
        children.setdefault(node.parent, []).append(node)
    on_path = {node.id for node in branches.path()}
    lines: list[Segment] = []
    waiting = [(node, 0, 0.0) for node in reversed(children.get(ROOT, []))]
    while waiting:
        node, depth, total = waiting.pop()
        text, tokens = node.label, 1
        total += node.log_probability
        while len(following := children.get(node.id, [])) == 1 and not node.name:
            node = following[0]
            text, tokens, total = text + node.label, tokens + 1, total + node.log_probability
        lines.append(Segment(node.id, depth, text, tokens, total, node.ended, node.name, node.id in on_path))
        deeper = depth + 1 if len(following) > 1 else depth
        waiting.extend((child, deeper, total) for child in reversed(following))
    return tuple(lines)
