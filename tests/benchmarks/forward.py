"""What looking costs: a forward pass that keeps its attention, beside the same weights in transformers alone.

    python tests/benchmarks/forward.py --checkpoint story-gpt --tokens 64 256 512 --runs 30

The four ways of running take turns, in another order each time, so that a busy machine and a warm cache favour none;
each figure is a median of processor time of this thread, so that what other programs do counts little.

Up to 512 keys our outputs are computed in the order of eager attention and equal it bit for bit, where plain SDPA is
fused: so both ratios are printed, to the faster one that keeps nothing, and to the one that gives the same weights.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, from a checkout

from attention_models import open_checkpoint, run
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.model import Model

TEXT = "Tom and Anna went to the park. Anna gave the ball to Tom, and they played until it was dark. "
ATLAS_TOKENS, ATLAS_SIZE, HEAD_TOKENS = 256, 48, 512
PLAIN, OURS, EAGER, KEPT = "plain SDPA", "ours, keeping q k v", "eager", "eager, output_attentions"


def main() -> None:
    arguments = parsed()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(machine())
    model = open_checkpoint(arguments.checkpoint)
    sdpa, eager = (alone(model, implementation) for implementation in ("sdpa", "eager"))
    size = f"{model.info.parameters / 1e6:.1f} M parameters"
    print(f"{model.info.name}: {model.info.architecture}, {size}, float32, {arguments.runs} runs each\n")

    print(f"{'tokens':>7}  {'way':<26}{'ms':>9}{'/ plain':>9}{'/ eager, weights':>18}{'kept':>12}")
    for tokens in fitting(model, arguments.tokens):
        ids = ids_of(model, tokens)
        inputs = {**model.encode(ids).inputs, **model.forward_options}
        ways: dict[str, Callable[[], Any]] = {
            PLAIN: partial(sdpa, **inputs),
            OURS: partial(recorded, model, inputs),
            EAGER: partial(eager, **inputs),
            KEPT: partial(eager, **inputs, output_attentions=True),
        }
        times = in_turns(ways, arguments.runs)
        kept = {OURS: run(model, ids).nbytes, KEPT: bytes_of_weights(ways[KEPT]())}
        for way, taken in times.items():
            amount = f"{kept[way] / 1e6:.1f} MB" if way in kept else ""
            beside = f"{ratio(taken, times[PLAIN]):>9.3f}{ratio(taken, times[KEPT]):>18.3f}"
            print(f"{tokens:>7}  {way:<26}{1e3 * statistics.median(taken):>9.2f}{beside}{amount:>12}")
        print()

    (tokens,) = fitting(model, [ATLAS_TOKENS])
    trace = run(model, ids_of(model, tokens))
    taken = in_turns({"atlas": lambda: trace.atlas_view(ATLAS_SIZE)}, arguments.runs)["atlas"]
    heads = sum(site.heads for site in trace.sites)
    print(
        f"all {heads} heads of {tokens} tokens as {ATLAS_SIZE} x {ATLAS_SIZE}: {1e3 * statistics.median(taken):.2f} ms"
    )

    (tokens,) = fitting(model, [HEAD_TOKENS])
    trace = run(model, ids_of(model, tokens))
    taken = in_turns({"head": lambda: trace.weights(len(trace.sites) - 1, 0)}, arguments.runs)["head"]
    print(f"one head of {tokens} tokens, every weight: {1e3 * statistics.median(taken):.2f} ms")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--checkpoint", default="story-gpt", help="a shipped name or a folder")
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 256, 512], help="lengths of the input")
    parser.add_argument("--runs", type=int, default=30, help="how often each way is timed")
    return parser.parse_args()


def machine() -> str:
    """One line: the processor, the threads, the versions."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    processor = names[0] if names else platform.processor() or platform.machine()
    python = platform.python_version()
    return (
        f"{processor}, {torch.get_num_threads()} threads; Python {python}, torch {torch.__version__}, "
        f"transformers {version('transformers')}"
    )


def alone(model: Model, implementation: str) -> Any:
    """The same checkpoint as transformers opens it, with nothing of ours in it."""
    kind: Any = type(model.module)
    return kind.from_pretrained(model.info.folder, attn_implementation=implementation, dtype=torch.float32).eval()


def recorded(model: Model, inputs: dict[str, Any]) -> Recorder:
    with recording(Recorder(model.module_names, model.seq2seq)) as recorder:
        model.module(**inputs)
    return recorder


def fitting(model: Model, lengths: list[int]) -> list[int]:
    """`lengths`, no longer than the model's context."""
    return sorted({min(length, model.info.context or length) for length in lengths})


def ids_of(model: Model, count: int) -> list[int]:
    """A text of `count` tokens."""
    ids: list[int] = model.tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    return (ids * (count // len(ids) + 1))[:count]


@torch.no_grad()
def in_turns(ways: dict[str, Callable[[], Any]], runs: int) -> dict[str, list[float]]:
    """Seconds of this thread's processor time of each run of each way, after two turns that are not counted."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    order, shuffled = list(ways), random.Random(0)
    for turn in range(runs + 2):
        shuffled.shuffle(order)
        for name in order:
            started = time.thread_time()
            ways[name]()
            if turn >= 2:
                times[name].append(time.thread_time() - started)
    return times


def ratio(mine: list[float], theirs: list[float]) -> float:
    """The median over turns, so that what slows one turn slows both sides of its ratio."""
    return statistics.median(m / t for m, t in zip(mine, theirs, strict=True))


def bytes_of_weights(out: Any) -> int:
    """All attention weights that transformers returned."""
    stacks = (
        getattr(out, name, None)
        for name in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    )
    return sum(weights.nbytes for stack in stacks if stack is not None for weights in stack)


if __name__ == "__main__":
    main()
