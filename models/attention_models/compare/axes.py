"""Which stacks of two runs can be held against each other, along which tokens, and why not where they cannot."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.two_runs import AlignedAxis
from attention_models.protocol.values import CheckpointInfo, Site, Token, site_tokens
from attention_models.text.aligning import align, align_places

Axes = tuple[AlignedAxis, AlignedAxis]
"""Of the queries, and of the keys."""


class Alignment:
    """The tokens of two runs, aligned for any two of their sites; each two lists of tokens once."""

    def __init__(self, a: CurrentRun, b: CurrentRun) -> None:
        self._a, self._b = a, b
        self._known: dict[tuple[bool, bool], AlignedAxis] = {}  # by whether each is what an encoder reads

    def axes(self, site: Site, other: Site, should_stop: ShouldStop = never) -> Axes:
        """How rows and columns of two sites are aligned.

        Raises:
            InputError: they cannot be; the sentence says why.
        """
        a, b = self._a.trace, self._b.trace
        if (a.picture is None) != (b.picture is None):
            sees, reads = ("A", "B") if a.picture is not None else ("B", "A")
            raise InputError(f"{sees} looks at a picture and {reads} reads text: no patch stands for a word.")
        found = []
        for place, count, other_count in ((0, site.queries, other.queries), (1, site.keys, other.keys)):
            ours, theirs = site_tokens(a, site)[place], site_tokens(b, other)[place]
            if (len(ours), len(theirs)) != (count, other_count):
                raise InputError("These layers attend to other things than tokens, which cannot be aligned.")
            key = (ours is a.source, theirs is b.source)
            if key not in self._known:
                self._known[key] = self._aligned(ours, theirs, should_stop)
            found.append(self._known[key])
        return found[0], found[1]

    def predicting(self, should_stop: ShouldStop = never) -> AlignedAxis | None:
        """Of the tokens at which the runs say something; None where those of one are read and the other's written."""
        a, b = self._a, self._b
        if (a.trace.picture is None) != (b.trace.picture is None) or a.model.seq2seq != b.model.seq2seq:
            return None
        if (False, False) not in self._known:
            try:
                self._known[False, False] = self._aligned(self._a.trace.tokens, self._b.trace.tokens, should_stop)
            except InputError:
                return None
        return self._known[False, False]

    def _aligned(self, ours: Sequence[Token], theirs: Sequence[Token], should_stop: ShouldStop) -> AlignedAxis:
        seen, other_seen = self._a.trace.picture, self._b.trace.picture
        if seen is None or other_seen is None:
            return align(ours, theirs, should_stop)
        grids = [(p.rows, p.columns, p.first) for p in (seen, other_seen)]
        if grids[0] != grids[1]:
            raise InputError(
                f"A cuts its picture into {seen.rows} × {seen.columns} patches after {seen.first} other tokens, B into "
                f"{other_seen.rows} × {other_seen.columns} after {other_seen.first}: no patch stands for another."
            )
        return align_places(len(ours))


def compared_queries(a: Trace, b: Trace, site: Site, other: Site, axes: Axes) -> Tensor:
    """Which query places are compared, (places,) bool: those of both runs, unless one has nothing but padding there."""
    ours, theirs = site_tokens(a, site)[0], site_tokens(b, other)[0]

    def stands(tokens: Sequence[Token], span: tuple[int, int]) -> bool:
        return any(not token.padding for token in tokens[slice(*span)])

    return torch.tensor([stands(ours, place.a) and stands(theirs, place.b) for place in axes[0].places])


def counterpart_stacks(a: CurrentRun, b: CurrentRun) -> dict[str, str | None]:
    """For each stack of A that of B whose tokens are of the same kind of text (`_does`); None where none is."""
    theirs = {_does(b.model, site.stack): site.stack for site in b.trace.sites}
    return {site.stack: theirs.get(_does(a.model, site.stack)) for site in a.trace.sites}


def _does(model: Model, stack: str) -> str:
    """Whether tokens of a stack are of the text that is read, of that which is written, or of both: "cross".

    A decoder alone reads the text that it goes on with, as an encoder does.
    """
    if stack == "cross":
        return "cross"
    return "writes" if model.seq2seq and stack == "decoder" else "reads"


def why_no_counterparts(a: CurrentRun, b: CurrentRun, stacks: dict[str, str | None]) -> list[str]:
    """A sentence for each stack of A that nothing in B is held against."""
    ours, theirs = a.model.info.name, b.model.info.name
    for run, name in ((a, ours), (b, theirs)):
        if not run.trace.sites:
            return [f"{name} has no attention: only what both say is compared."]
    has_self = any(site.stack != "cross" for site in b.trace.sites)
    reasons: dict[str, list[str]] = {}
    for stack, other in stacks.items():
        if other is None:
            own = "reads and writes one text" if has_self else "has no self-attention"
            why = "has no cross-attention" if stack == "cross" else own
            reasons.setdefault(why, []).append(_named(stack))
    return [
        f"{theirs} {why}: the heads of {ours}'s {' and '.join(lacking)} have no counterpart."
        for why, lacking in reasons.items()
    ]


def why_not_by_index(a: CurrentRun, b: CurrentRun, stacks: dict[str, str | None]) -> str:
    """Why heads of the same layer and number are no counterparts; "" where they are."""
    for stack, other in stacks.items():
        if other is None:
            continue
        ours = [(s.layer, s.heads) for s in a.trace.sites if s.stack == stack]
        theirs = [(s.layer, s.heads) for s in b.trace.sites if s.stack == other]
        if ours != theirs:
            return (
                f"{_shape(a.model.info, stack, ours)}, {_shape(b.model.info, other, theirs)}: heads of the same number "
                "are no counterparts. Each is held against the one that is most like it."
            )
    return ""


def _shape(info: CheckpointInfo, stack: str, layers: Sequence[tuple[int, int]]) -> str:
    heads = sorted({heads for _, heads in layers})
    number = str(heads[0]) if len(heads) == 1 else f"{heads[0]} to {heads[-1]}"
    return f"{info.name} has {len(layers)} × {number} heads in its {_named(stack)}"


def _named(stack: str) -> str:
    return "cross-attention" if stack == "cross" else stack
