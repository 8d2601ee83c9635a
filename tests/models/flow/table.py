"""Which boxes the blocks of each family fill, as a table for docs/flow.md.

python -m tests.models.flow.table
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import transformers

from attention_models import open_checkpoint
from attention_models.flow.block import answer
from attention_models.flow.model import watched_run
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.flow import (
    BlockView,
    Box,
    FeedForwardBox,
    HeadsBox,
    ModuleBox,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)
from attention_models.protocol.request import never
from tests.models import tiny, tiny_vision
from tests.models.flow.blocks import context_of, request

_NORMS = {
    "pre": "before",
    "post": "after the sum",
    "both": "before, and on what is written",
    "write": "on what is written",
    "none": "nowhere",
    "unknown": "not found",
}


def words(view: BlockView) -> tuple[str, str]:
    """Where normalisations stand, and the boxes in the order in which they ran."""
    norms = _NORMS[view.placement] + (", parallel" if view.parallel else "")
    return norms, " · ".join(_shortened([_word(box) for box in view.boxes]))


def _word(box: Box) -> str:
    match box:
        case NormBox():
            return "RMS norm" if box.rms else "norm"
        case ProjectionBox():
            return box.makes
        case HeadsBox():
            return "heads" if box.part == "attention" else "heads of the source"
        case OutputBox():
            return "W_O"
        case FeedForwardBox():
            network = "gated network" if box.gated else "network"
            return f"experts ({network}s)" if box.expert_count else network
        case SumBox():
            return "sum"
        case ModuleBox():
            return f"[{box.kind}]"
    return ""


def _shortened(names: list[str]) -> Iterator[str]:
    """q, k and v side by side are one word."""
    i = 0
    while i < len(names):
        if names[i : i + 3] == ["q", "k", "v"]:
            yield "q, k, v"
            i += 3
        else:
            yield names[i]
            i += 1


def rows(models: Iterator[tuple[str, Model]]) -> Iterator[tuple[str, str, str]]:
    """Family, norms and boxes of the last block of each stack."""
    for kind, model in models:
        context = context_of(model, "sample:chelsea" if model.info.family == "vision" else tiny.SENTENCE)
        for stack in watched_run(context.run(1), never, context.report).stacks:
            view = answer(request(stack.stack, len(stack.blocks) - 1, 1), context)
            name = f"{kind} ({stack.stack})" if model.seq2seq else kind
            yield (name, *words(view))


def table(models: Iterator[tuple[str, Model]]) -> list[str]:
    """As Markdown; families whose blocks are alike share a row."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, norms, boxes in rows(models):
        alike.setdefault((norms, boxes), []).append(name)
    lines = ["| families | norms | boxes, in the order in which they run |", "|---|---|---|"]
    return lines + [f"| {', '.join(names)} | {norms} | {boxes} |" for (norms, boxes), names in alike.items()]


def every_model(folder: Path) -> Iterator[tuple[str, Model]]:
    """A checkpoint of random weights of every family that opens."""
    for save, kinds in ((tiny.save, tiny.KINDS), (tiny_vision.save, tiny_vision.KINDS)):
        for kind in kinds:
            try:
                yield kind, open_checkpoint(save(kind, folder / kind))
            except ExplorerError:
                continue


if __name__ == "__main__":
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as kept:
        print("\n".join(table(every_model(Path(kept)))))
