"""How long the numbers of the Flow panel take, beside those of the Cell panel and beside the model itself.

    python -m tests.benchmarks.flow [checkpoint]

Prints medians: another position of a block beside another cell, another block beside that block's own forward pass,
and all blocks of a run beside that run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

from models.engine.engine import Engine
from models.protocol.cell import CellRequest
from models.protocol.flow import BlockRequest, FlowRequest
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest, Ran
from models.protocol.values import SiteRef
from tests.models.asking import ask, forward, opened

SENTENCE = "Tom and Anna went to the park. Anna gave the ball to"
REPEATS = 60
LAYER = 5


def main() -> None:
    engine = opened(sys.argv[1] if len(sys.argv) > 1 else "story-gpt")
    for ticket, text in enumerate((SENTENCE, ((SENTENCE + " Tom. ") * 34).strip()), start=2):
        report(engine, text, ticket)


def report(engine: Engine, text: str, ticket: int) -> None:
    ran = forward(engine, text, ticket)
    tokens, site = len(ran.tokens), SiteRef(ran.sites[0].stack, LAYER)
    cell = median(lambda i: ask(engine, cell_at(ran, site, i)))
    first = timed(lambda: ask(engine, FlowRequest(run=ran.run)))
    again = timed(lambda: ask(engine, ForwardRequest(inputs=RunInputs(text), ticket=ticket)))
    ask(engine, FlowRequest(run=ran.run))
    ask(engine, BlockRequest(run=ran.run, stack=site.stack, layer=LAYER, position=0))
    block = median(lambda i: ask(engine, block_at(ran, site.stack, LAYER, i)))
    other = median(lambda i: ask(engine, block_at(ran, site.stack, LAYER - i % 2, i)), 20)
    alone = median(lambda _: own_block(engine), 20)
    print(
        f"{tokens:4d} tokens: another position {1e3 * block:.2f} ms, {block / cell:.2f} of a cell's {1e3 * cell:.2f}; "
        f"another block {1e3 * other:.1f} ms, {other / alone:.1f} of its forward pass of {1e3 * alone:.1f}; "
        f"all blocks {1e3 * first:.0f} ms, {first / again:.1f} of the run's {1e3 * again:.0f}"
    )


def cell_at(ran: Ran, site: SiteRef, i: int) -> CellRequest:
    last = len(ran.tokens) - 1
    return CellRequest(run=ran.run, site=site, head=1, query=last - i % 5, key=i % 5)


def block_at(ran: Ran, stack: str, layer: int, i: int) -> BlockRequest:
    return BlockRequest(run=ran.run, stack=stack, layer=layer, position=len(ran.tokens) - 1 - i % 5)


@torch.no_grad()
def own_block(engine: Engine) -> None:
    """The block's module alone, on what it read in the run."""
    model, run = engine.workspace.model, engine.workspace.run
    assert model is not None
    assert run is not None
    stack, block = model.blocks[LAYER]
    block(run.trace.residual[stack][LAYER][None])


def median(work: Callable[[int], object], repeats: int = REPEATS) -> float:
    took = [timed(lambda i=i: work(i)) for i in range(repeats + 5)]  # type: ignore[misc]
    return statistics.median(took[5:])


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
