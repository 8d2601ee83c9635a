"""Block views as tests ask for them, and what must hold of each."""

from __future__ import annotations

import numpy as np

from attention_models.forward.context import Context, Workspace
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.protocol.flow import (
    STREAM,
    BlockRequest,
    BlockView,
    FeedForwardBox,
    HeadsBox,
    NormBox,
    OutputBox,
    SumBox,
)
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import never
from attention_models.protocol.running import RunInputs
from tests.models import tiny
from tests.models.eager import target_for


def context_of(model: Model, text: str = tiny.SENTENCE, *interventions: Intervention) -> Context:
    """A context whose run, ticket 1, is of `text`; of a vision model the name of a picture."""
    target = target_for(model)
    trace = run(model, text, target=target, interventions=interventions)
    picture = text if model.info.family == "vision" else ""
    inputs = RunInputs("" if picture else text, target=target or "", picture=picture, interventions=interventions)
    workspace = Workspace(model=model, run=CurrentRun(model, (trace,), inputs, target, 1))
    return Context(workspace, never, lambda _label, _fraction: None)


def close(found: np.ndarray | float, wanted: np.ndarray | float, tolerance: float = 1e-5) -> None:
    largest = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * largest)


def assert_adds_up(view: BlockView) -> None:
    """Every box is what its formula says of the boxes that it reads, in float64 numpy."""
    given = {STREAM: view.before, **{place: box.after for place, box in enumerate(view.boxes)}}
    assert all(place < index for index, box in enumerate(view.boxes) for place in box.reads)
    for box in view.boxes:
        match box:
            case NormBox():
                assert box.before is not None
                (source,) = box.reads
                close(box.before, given[source])
                x = box.before.astype(np.float64)
                y = (x - box.mean) / np.sqrt(box.deviation**2 + box.eps)
                y = y if box.gain is None else y * box.gain
                close(box.after, y if box.bias is None else y + box.bias)
                close(box.mean, 0.0 if box.rms else x.mean())
                close(box.deviation, np.sqrt(((x - box.mean) ** 2).mean()))
            case SumBox():
                factors = box.factors or (1.0,) * len(box.reads)
                assert len(box.reads) >= 2
                close(
                    box.after,
                    sum(f * given[place].astype(np.float64) for f, place in zip(factors, box.reads, strict=True)),
                )
            case HeadsBox():
                close(box.norms, np.linalg.norm(box.after.reshape(box.heads, -1), axis=1))
                close(box.weights.sum(axis=1), np.ones(box.heads)) if "Oss" not in box.kind else None
            case OutputBox():
                assert box.before is not None
                close(box.before, given[box.reads[0]])
            case FeedForwardBox() if box.neurons:
                assert box.before is not None
                close(box.before, given[box.reads[0]])
                writes = [neuron.write_norm for neuron in box.neurons]
                assert writes == sorted(writes, reverse=True)
    close(view.after, view.boxes[-1].after)
    assert view.remainder < 1e-5 * max(1.0, float(np.linalg.norm(view.after)))


def request(stack: str, layer: int, position: int, target: int | None = None) -> BlockRequest:
    return BlockRequest(run=1, stack=stack, layer=layer, position=position, target=target)
