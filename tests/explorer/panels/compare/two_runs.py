"""A small answer about two runs, for tests that need no engine: "Tom ran home" beside "Tom ran far away"."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np

from attention_models.protocol.running import RunInputs
from attention_models.protocol.two_runs import (
    AlignedAxis,
    AlignedMaps,
    AlignedPlace,
    HeadChange,
    OtherRun,
    RunOutput,
    RunSide,
    SaidByBoth,
    TwoRunsRequest,
    TwoRunsView,
)
from attention_models.protocol.values import Candidate, Site, SiteRef, StackInfo, Token

ZERO = SiteRef("decoder", 0)
PLACES = (
    AlignedPlace((0, 1), (0, 1)),
    AlignedPlace((1, 2), (1, 2)),
    AlignedPlace((2, 3), (2, 3), same=False),
    AlignedPlace((3, 3), (3, 4)),
)
AXIS = AlignedAxis(PLACES, "words")
A = np.array([[1, 0, 0, nan], [0.5, 0.5, 0, nan], [0.25, 0.25, 0.5, nan], [nan] * 4], np.float32)
B = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0.25] * 4], np.float32)
LATER = np.triu(np.ones((4, 4), bool), 1)


def tokens(text: str) -> tuple[Token, ...]:
    return tuple(Token(i, word, word, 0, 0, label=word) for i, word in enumerate(text.split()))


def side(text: str, likeliest: str, probability: float) -> RunSide:
    count = len(text.split())
    sites = (Site("decoder", 0, 2, 2, 4, count, count), Site("decoder", 1, 2, 2, 4, count, count))
    candidates = (
        Candidate(1, likeliest, likeliest, probability, 3.0, 1),
        Candidate(2, "␣it", "it", 0.1, 1.0, 2),
    )
    return RunSide(
        reference="story-gpt",
        name="story-gpt",
        family="causal",
        model_type="gpt2",
        stacks=(StackInfo("decoder", 2, 2, 2),),
        files=(),
        device="cpu",
        dtype="float32",
        text=text,
        written="",
        tokens=tokens(text),
        source=(),
        sites=sites,
        seen=None,
        interventions=(),
        adapter="",
        output=RunOutput(kind="words", position=count - 1, candidates=candidates, entropy=1.0, loss=0.5),
        site=ZERO,
        head=1,
    )


def maps() -> AlignedMaps:
    difference = A - B
    return AlignedMaps(
        a=A,
        b=B,
        difference=difference,
        masked_a=LATER & ~np.isnan(A),
        masked_b=LATER,
        largest=0.25,
        largest_at=(2, 1),
    )


def view() -> TwoRunsView:
    """A's head 1 of layer 0 gives "ran" 0.25 more than B's from its third row."""
    changes = (
        HeadChange(ZERO, 0, ZERO, 0, 0.1),
        HeadChange(ZERO, 1, ZERO, 1, 0.4),
        HeadChange(SiteRef("decoder", 1), 0, SiteRef("decoder", 1), 1, 0.2, similarity=0.8),
    )
    return TwoRunsView(
        request=TwoRunsRequest(run=1, site=ZERO, head=1, other=OtherRun(RunInputs("Tom ran far away"), "story-gpt")),
        a=side("Tom ran home", "␣again", 0.5),
        b=side("Tom ran far away", "␣today", 0.25),
        same_checkpoint=True,
        same_run=False,
        said=(SaidByBoth("␣again", 0.5, 0.125, 3.0, 2.0), SaidByBoth("␣today", nan, 0.25, nan, 3.0)),
        queries=AXIS,
        keys=AXIS,
        maps=maps(),
        matching="index",
        changes=changes,
    )


def of_one_run() -> TwoRunsView:
    """A beside itself."""
    both = view()
    same = np.where(np.isnan(A), A, np.float32(0))
    nothing = replace(maps(), b=A, difference=same, largest=0.0, largest_at=None)
    return replace(both, b=both.a, same_run=True, maps=nothing)
