"""Texts that are written side by side: the samples of one seed, and the beams of a search. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from attention_explorer.panels.decoding.situation import score
from attention_explorer.session.branches import ROOT, Branches
from attention_models.protocol.decoding import Beam, DecodeSamplesView, DecodeSettings, DecodeStepView


@dataclass(frozen=True)
class SideText:
    """A line of the list. `id` is a sample's number, or a beam's node."""

    id: int
    text: str
    log_probability: float
    ended: bool
    is_shown: bool
    is_best: bool
    length: int  # tokens


@dataclass(frozen=True)
class SampleSet:
    """Samples that are drawn side by side, as ways through the tree of branches."""

    settings: DecodeSettings  # of sample 0
    ways: tuple[tuple[int, ...], ...]  # the nodes of each, from the one that all go on from
    tokens: tuple[tuple[int, ...], ...]  # what each drew after that one; an undo lets other tokens take its nodes' ids
    preferred: int = 0  # the one that was picked

    @classmethod
    def begin(cls, settings: DecodeSettings, start: int, samples: int) -> SampleSet:
        return cls(settings, ((start,),) * samples, ((),) * samples)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Where each of them ends."""
        return tuple(way[-1] for way in self.ways)

    @property
    def is_begun(self) -> bool:
        """Whether any token was drawn."""
        return any(len(way) > 1 for way in self.ways)

    def within(self, branches: Branches) -> SampleSet | None:
        """As far as the tree has them: an undo takes steps away. None where they cannot go on side by side."""
        there = {node.id: node.token for node in branches.nodes}
        if self.ways[0][0] != ROOT and self.ways[0][0] not in there:
            return None
        ways, tokens = [], []
        for (start, *way), drew in zip(self.ways, self.tokens, strict=True):
            count = sum(1 for _ in takewhile(lambda step: there.get(step[0]) == step[1], zip(way, drew, strict=True)))
            ways.append((start, *way[:count]))
            tokens.append(drew[:count])
        cut = replace(self, ways=tuple(ways), tokens=tuple(tokens))
        return cut if len({len(ways[sample]) for sample in cut.writing(branches)}) <= 1 else None

    def shown(self, branches: Branches) -> int | None:
        """The sample in view: the picked one where several go through the current node. None on another way."""
        through = [sample for sample, way in enumerate(self.ways) if branches.current in way]
        return self.preferred if self.preferred in through else next(iter(through), None)

    def writing(self, branches: Branches) -> tuple[int, ...]:
        """The samples that have not ended."""
        ended = {node.id for node in branches.nodes if node.ended}
        return tuple(sample for sample, node in enumerate(self.nodes) if node not in ended)

    def grown(self, branches: Branches, view: DecodeSamplesView) -> SampleSet:
        """With the tokens of one step, which are in the tree already."""
        ways, tokens = list(self.ways), list(self.tokens)
        for sample, step in zip(view.request.samples, view.steps, strict=True):
            child = next(n.id for n in branches.children(ways[sample][-1]) if n.token == step.ids[-1])
            ways[sample], tokens[sample] = (*ways[sample], child), (*tokens[sample], step.ids[-1])
        return replace(self, ways=tuple(ways), tokens=tuple(tokens))

    def texts(self, branches: Branches, between: str = "") -> list[SideText]:
        """What each of them wrote after the node that they began at, with `between` between two tokens."""
        nodes = {node.id: node for node in branches.nodes}
        before = branches.log_probability(self.ways[0][0])
        shown, found = self.shown(branches), []
        for sample, way in enumerate(self.ways):
            written = [nodes[id_] for id_ in way[1:]]
            found.append(
                SideText(
                    sample,
                    between.join(node.label for node in written),
                    before + sum(node.log_probability for node in written),
                    ended=bool(written) and written[-1].ended,
                    is_shown=sample == shown,
                    is_best=False,
                    length=len(written),
                )
            )
        return found


def alive(views: Sequence[DecodeStepView]) -> list[Beam]:
    """The beams that are alive after the last of `views`: those that go on, and the best finished ones, best first."""
    if not views:
        return []
    settings, last = views[-1].request.settings, views[-1]

    def rank(beam: Beam) -> float:
        return -score(beam.log_probability, len(beam.ids), settings)

    finished = sorted((beam for view in views for beam in view.beams if beam.finished), key=rank)[: settings.beams]
    running = [] if last.ending else [beam for beam in last.beams if beam.kept]
    return sorted([*finished, *running], key=rank)


def best_of(views: Sequence[DecodeStepView]) -> Beam | None:
    """The beam whose text a search now holds for the best."""
    wanted = views[-1].ids if views else ()
    return next((beam for view in reversed(views) for beam in view.beams if beam.ids == wanted), None)


def followed(views: Sequence[DecodeStepView], picked: Beam) -> Beam | None:
    """What became of a beam after the last of `views`: its best continuation that is alive, or what it was before.

    None where it was given up.
    """
    if len(picked.ids) >= len(views):
        wanted = picked.ids[: len(views)]
        return next((beam for beam in views[-1].beams if beam.ids == wanted), None) if views else None
    living = alive(views)
    return next((beam for beam in living if beam.ids[: len(picked.ids)] == picked.ids), None)


def beam_texts(views: Sequence[DecodeStepView], shown: Beam | None) -> list[SideText]:
    best = best_of(views)
    return [
        SideText(
            beam.node,
            beam.text,
            beam.log_probability,
            beam.finished,
            shown is not None and beam.node == shown.node,
            best is not None and beam.node == best.node,
            len(beam.ids),
        )
        for beam in alive(views)
    ]
