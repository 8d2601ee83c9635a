"""Everything that an engine can be asked about one text, and how two engines' answers differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from attention_models.engine.engine import Engine
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.alignment import AlignmentRequest
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.comparison import CompareRequest
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
    into_input,
)
from attention_models.protocol.effects import (
    AttributionRequest,
    EffectsRequest,
    ExplanationRequest,
    LensRequest,
    PatchRequest,
)
from attention_models.protocol.export import Exported, ExportRequest
from attention_models.protocol.flow import BlockRequest, FlowRequest
from attention_models.protocol.head import HeadRequest, RowRequest, TilesRequest
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.matrices import MatricesRequest
from attention_models.protocol.positions import PositionsRequest, ShuffleRequest
from attention_models.protocol.prediction import ClassesRequest, PredictionRequest
from attention_models.protocol.request import Failure, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.sentence import SentenceRequest
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.two_runs import OtherRun, TwoRunsRequest
from attention_models.protocol.values import Placement, SiteRef, Tile
from attention_models.protocol.variance import VarianceRequest
from tests.models import tiny
from tests.models.asking import ask

Asked = Iterator[tuple[Request, Result]]

STEPS = 3

TEXTS = {"en-es": "Good morning, how are you?", "story-bert": "Tom [MASK] to the [MASK].", "bert": "Tom [MASK] to it."}
PICTURES = {"vit-cifar10": "sample:chelsea", "vit-quickdraw": "sample:fish-1"}

EVERY_FILTER = DecodeSettings(
    strategy="sample",
    temperature=1.3,
    top_k=40,
    top_p=0.95,
    min_p=0.001,
    repetition_penalty=1.1,
    no_repeat_ngram=2,
    seed=3,
)


def text_of(name: str) -> str:
    """What an included model, or a kind of `tiny.KINDS`, is asked about."""
    return TEXTS.get(name, tiny.SENTENCE)


def open_in(reference: str | Path, placement: Placement) -> Engine:
    engine = Engine()
    loaded = ask(engine, LoadRequest(ticket=1, reference=str(reference), placement=placement))
    assert isinstance(loaded, Loaded), loaded
    assert engine.workspace.model is not None
    aligned(engine.workspace.model.module)
    return engine


def aligned(module: nn.Module) -> nn.Module:
    """`module` with weights in memory of their own.

    In a file they begin where the one before them ends, and products round differently there.
    """
    for held in (*module.parameters(), *module.buffers()):
        if held.device.type == "cpu":
            held.data = held.data.clone()
    return module


def edits(site: SiteRef) -> list[tuple[Intervention, ...]]:
    """Interventions of every kind, a run each."""
    return [
        (Scale(0.5), Scale(2.0, site=site, head=1)),
        (Mask("none"), Mask("padding", window=2, site=site)),
        (Mask("causal"), Mask("full", site=site, head=0)),
        (Mask("window", window=3), Mask("blocks", window=4, site=site)),
        (Mask("prefix", window=2), Mask("trained", site=site)),
        (Mask("painted", cells=((3, 1, False), (3, 2, False), (4, 5, True))), Scale(0.3)),
        (Positions("off"),),
        (Positions("shift", 2),),
        (Ablation("mlp", SiteRef("", 0)), Ablation("norm2", SiteRef("", 1))),
        (Ablation("head", site, 0, "mean"), Ablation("mlp", SiteRef("", 0), None, "position", 1)),
    ]


def _stack_of(site: SiteRef) -> str:
    """The stack whose block a site is in."""
    return "decoder" if site.stack == "cross" else site.stack


def _what_it_says(engine: Engine, ran: Ran) -> Request:
    """Words, classes or a vector."""
    model, last = engine.workspace.model, len(ran.tokens) - 1
    assert model is not None
    if model.info.class_head is not None:
        return ClassesRequest(run=ran.run, position=last)
    if model.info.family == "encoder":
        return SentenceRequest(run=ran.run)
    return PredictionRequest(run=ran.run, positions=(0, last))


def views(engine: Engine, ran: Ran, folder: Path, gradients: bool = True) -> Asked:
    """Every request about one run; of an edited one those that see the edit."""
    site, query, key = ran.sites[-1].ref, ran.sites[-1].queries - 1, 0
    last, head = len(ran.tokens) - 1, ran.sites[-1].heads - 1
    about: dict[str, Any] = {"run": ran.run}
    cell: dict[str, Any] = {**about, "site": site, "head": head}
    requests: list[Request] = [
        _what_it_says(engine, ran),
        HeadRequest(**cell),
        TilesRequest(**cell, tiles=(Tile(0, 0, 0), Tile(1, 0, 0)), pooling="mean"),
        AtlasRequest(**about, size=64),
        CellRequest(**cell, query=query, key=key),
        MatricesRequest(**cell),
        CompareRequest(**cell, position=last),
        FlowRequest(**about),
        BlockRequest(**about, stack=_stack_of(site), layer=site.layer, position=query),
        PositionsRequest(**cell, query=query, key=key),
        EffectsRequest(**about),
        AttributionRequest(**about),
        LensRequest(**about),
        *([ExplanationRequest(**about)] if gradients else []),
    ]
    if any(other.stack == "cross" for other in ran.sites):
        requests += [AlignmentRequest(**about), AlignmentRequest(**about, site=site, head=head)]
    if not ran.inputs.interventions:
        requests += [
            RowRequest(**cell, query=query),
            TilesRequest(**cell, tiles=(Tile(2, 0, 0),), scale_rows=True),
            AtlasRequest(**about, size=4, pooling="mean"),
            ExportRequest(**about, path=str(folder / "weights.npz")),
            VarianceRequest(**cell, batch=2, tokens=8, deviation=1.0, seed=0),
            into_input(ran.inputs),
            TrustRequest(**about),
            ShuffleRequest(**about, seed=1),
            TwoRunsRequest(**cell, other=OtherRun(replace(ran.inputs, interventions=(Scale(0.5),)))),
            TwoRunsRequest(**cell, other=OtherRun(RunInputs("Tom went to the park.")), matching="similarity"),
            PatchRequest(**about, other="Tom went to the park.", align="end"),
            PatchRequest(**about, other="Tom went to the park.", align="tokens", kind="mlp"),
            PatchRequest(**about, other="Tom went to the park.", align="end", kind="head"),
        ]
    for request in requests:
        result = _whole(engine, request)
        yield request, _written(request.path, result) if isinstance(request, ExportRequest) else result


def _whole(engine: Engine, request: Request) -> Any:
    """The last answer to a request that is answered in parts, as far as each comes within a moment."""
    result: Any = ask(engine, request)
    while isinstance(request, (EffectsRequest, PatchRequest, TwoRunsRequest)) and getattr(result, "done", 1) < 1:
        request = replace(request, have=result.done)
        result = ask(engine, request)
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Written(Result):
    """What is in a file of weights beside its description, which names the device."""

    arrays: tuple[np.ndarray, ...]


def _written(path: str, result: Result) -> Result:
    if not isinstance(result, Exported):
        return result
    with np.load(path) as file:
        return Written(request=result.request, arrays=tuple(file[name] for name in file if name != "meta"))


def writing(engine: Engine, text: str, site: SiteRef, interventions: tuple[Intervention, ...] = ()) -> Asked:
    """Every way of writing, some steps of each, with a step back and another branch."""
    inputs = RunInputs(text, interventions=interventions)
    told: dict[str, Any] = {"inputs": inputs, "steps": STEPS, "site": site}
    for settings in (DecodeSettings(), EVERY_FILTER, DecodeSettings(strategy="beam", beams=3)):
        ids: tuple[int, ...] = ()
        for number in range(1, STEPS + 1):
            step = DecodeStepRequest(**told, settings=settings, number=number, ids=ids)
            view = ask(engine, step)
            yield step, view
            if not isinstance(view, DecodeStepView) or view.ending:
                break
            ids = view.ids
        rows = DecodeRowsRequest(inputs=inputs, ids=ids, site=site, head=0)
        yield rows, ask(engine, rows)
    back = DecodeStepRequest(**told, settings=DecodeSettings(), number=2, ids=ids[:1], forced=7)
    yield back, ask(engine, back)
    written: tuple[tuple[int, ...], ...] = ((), (), ())
    numbers: tuple[int, ...] = (0, 1, 2)
    for number in range(1, STEPS + 1):
        samples = DecodeSamplesRequest(**told, settings=EVERY_FILTER, number=number, samples=numbers, ids=written)
        several = ask(engine, samples)
        yield samples, several
        if not isinstance(several, DecodeSamplesView):
            break
        left = [(n, step.ids) for n, step in zip(numbers, several.steps, strict=True) if not step.ending]
        if not left:
            break
        numbers, written = tuple(n for n, _ in left), tuple(ids for _, ids in left)


def everything(engine: Engine, text: str, folder: Path, picture: str = "", gradients: bool = True) -> Asked:
    """A run and every view of it, those that take `gradients` too, the same with edits of every kind, and writing."""
    plain = ForwardRequest(inputs=RunInputs(text, picture=picture), ticket=2)
    ran = ask(engine, plain)
    yield plain, ran
    if not isinstance(ran, Ran):
        return
    yield from views(engine, ran, folder, gradients)
    site = ran.sites[-1].ref
    for ticket, interventions in enumerate(edits(site), start=3):
        # with a target, which takes no search
        forward = ForwardRequest(
            inputs=RunInputs(text, target=text[:12], picture=picture, interventions=interventions), ticket=ticket
        )
        edited = ask(engine, forward)
        yield forward, edited
        if isinstance(edited, Ran):
            yield from views(engine, edited, folder, gradients)
    if not picture:
        yield from writing(engine, text, site)
        yield from writing(engine, text, site, (Scale(0.5), Mask("window", window=4)))
        yield from writing(engine, text, site, (Mask("none"), Positions("shift", 1)))


_OF_THE_MOMENT = ("request", "seconds", "cause", "no_room", "device")
"""Fields of a result that say nothing of what was asked."""


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Where two results are not the same, number for number; none where they are."""
    if type(one) is not type(other):
        broken = other if isinstance(other, Failure) else one
        yield f"{where}: {one!r} and {other!r}" + (f"\n{broken.cause}" if isinstance(broken, Failure) else "")
    elif is_dataclass(one) and not isinstance(one, type):
        for f in fields(one):
            if f.name not in _OF_THE_MOMENT:
                yield from differences(getattr(one, f.name), getattr(other, f.name), f"{where}.{f.name}")
    elif isinstance(one, (tuple, list)):
        if len(one) != len(other):
            yield f"{where}: {len(one)} and {len(other)} of them"
        for i, (a, b) in enumerate(zip(one, other, strict=False)):
            yield from differences(a, b, f"{where}[{i}]")
    elif isinstance(one, np.ndarray) and one.dtype.kind in "US":
        if one.tolist() != other.tolist():
            yield f"{where}: other words"
    elif isinstance(one, np.ndarray):
        if one.shape != other.shape or not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
            apart = np.abs(np.subtract(one, other, dtype=np.float64)).max() if one.shape == other.shape else "shapes"
            yield f"{where}: {apart}"
    elif not (one == other or (one != one and other != other)):
        yield f"{where}: {one!r} and {other!r}"


def unlike(expected: Asked, found: Asked) -> list[str]:
    """Where two engines' answers to the same questions differ; also a question that only one was asked."""
    return [
        difference
        for (asked, one), (again, other) in zip(expected, found, strict=True)
        for difference in ([f"{asked} and {again}"] if asked != again else differences(one, other, _name(asked)))
    ]


def _name(request: Request) -> str:
    told = ("interventions", "settings", "number", "run")
    return f"{type(request).__name__}({', '.join(f'{t}={getattr(request, t)}' for t in told if hasattr(request, t))})"
