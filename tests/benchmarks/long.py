"""A long text: what a run keeps, and how soon tiles and thumbnails are there.

    python -m tests.benchmarks.long                                                # 4,096 tokens of GPT-2 small's shape
    python -m tests.benchmarks.long --device cuda --tokens 32768 --heads 270       # of SmolLM2's, on one GPU

Weights are random: times and bytes depend on shapes alone. On the CPU a window is opened too, without a display, and
the time from a pan or a zoom to the sharp picture is measured in it. Times are wall-clock: run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, from a checkout
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import torch
import transformers

from attention_models import open_checkpoint, run
from attention_models.attention.atlas import IncrementalAtlas
from attention_models.attention.tiles import HeadTiles
from attention_models.files.devices import label_of
from attention_models.forward.capture import IMPLEMENTATION, Recorder, recording
from attention_models.forward.current_run import WORK_PER_ANSWER, WORK_PER_ANSWER_ON_DEVICE
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import TILE, Tile, top_level
from tests.benchmarks.checkpoints import gpt2_small, llama, text_of
from tests.benchmarks.forward import machine

THUMBNAIL = 48
ON_THE_CPU = (1.05, 50.0, 6.0, 700e6)  # forward's ratio, tile in ms, atlas in s, the Trace in bytes
ON_A_GPU = (1.05, 10.0, 3.0, 3.2e9)
FIRST_PICTURE = 0.5  # s, after the forward's end


def main() -> None:
    arguments = parsed()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    on_gpu = arguments.device != "cpu"
    print(machine() + (f"; {label_of(torch.device(arguments.device))}" if on_gpu else ""))
    dtype = arguments.dtype or ("bfloat16" if on_gpu else "float32")
    targets = ON_A_GPU if on_gpu else ON_THE_CPU
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "random"
        shape = llama(folder, arguments.tokens, arguments.heads, arguments.sees) if arguments.heads else None
        folder = shape or gpt2_small(folder, arguments.tokens)
        model = open_checkpoint(folder, device=arguments.device, dtype=dtype)
        text = text_of(model.tokenizer, arguments.tokens)
        trace = measured_forward(model, text, arguments.runs, targets)
        measured_tiles(trace, arguments.runs, targets[1])
        measured_atlas(trace, targets[2])
        del model, trace
        if not on_gpu and not arguments.no_window:  # the window opens it in float32
            from tests.benchmarks.long_window import measured_window

            measured_window(folder, text, targets[1], FIRST_PICTURE, targets[2])


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, xpu ...")
    parser.add_argument("--dtype", help="float32 unless said otherwise, on a GPU bfloat16")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--heads", type=int, help="of the shape of SmolLM2, 9 a layer; without it that of GPT-2 small")
    parser.add_argument("--sees", type=int, help="with --heads: keys back that each layer's sliding window reaches")
    parser.add_argument("--runs", type=int, default=3, help="how often each thing is timed")
    parser.add_argument("--no-window", action="store_true", help="leave out what needs a window")
    arguments = parser.parse_args()
    if arguments.sees and not arguments.heads:
        parser.error("--sees needs --heads: GPT-2 has no sliding window.")
    return arguments


def say(what: str, figure: str, target: str) -> None:
    print(f"{what:<66}{figure:>20}   aimed at {target}", flush=True)


def timed(model: Model | Trace, work: Callable[[], Any]) -> float:
    """Seconds until `work` is done, on the device too."""
    device = model.device if isinstance(model, Model) else model.inputs[0].query.device
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    started = time.perf_counter()
    work()
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter() - started


@torch.no_grad()
def measured_forward(model: Model, text: str, runs: int, targets: tuple[float, float, float, float]) -> Trace:
    """Both ways compute the last position's logits alone, take turns, and are given the same weights."""
    encoded = model.encode(text)
    last = {"logits_to_keep": torch.tensor([-1], device=model.device)}
    module: Any = model.module

    def once(implementation: str) -> None:
        module.set_attn_implementation(implementation)
        if implementation != IMPLEMENTATION:
            model.forward({**encoded.inputs, **last})
            return
        with recording(Recorder(model.module_names, model.seq2seq)):
            model.forward({**encoded.inputs, **last})

    times: dict[str, list[float]] = {"sdpa": [], IMPLEMENTATION: []}
    for turn in range(runs + 1):
        for implementation, taken in times.items():
            seconds = timed(model, partial(once, implementation))
            if turn:
                taken.append(seconds)
    ratio = statistics.median(ours / plain for plain, ours in zip(*times.values(), strict=True))
    plain = statistics.median(times["sdpa"])
    size = f"{model.info.parameters / 1e6:.0f} M parameters"
    print(f"{len(encoded.tokens):,} tokens, {size}, {model.dtype}, plain SDPA {plain:.2f} s")
    say("forward that keeps its attention, beside plain SDPA", f"{ratio:.3f}", f"{targets[0]}")
    trace = run(model, text)
    count, heads = len(trace.tokens), sum(site.heads for site in trace.sites)
    say("kept by the run", f"{trace.nbytes / 1e6:,.0f} MB", f"{targets[3] / 1e6:,.0f} MB")
    weights, logits = heads * count * count, count * model.info.vocabulary
    each = model.dtype.itemsize / 1e9
    print(f"  (all weights would take {weights * each:,.1f} GB, all logits {logits * each:,.1f} GB)")
    return trace


def measured_tiles(trace: Trace, runs: int, target: float) -> None:
    """At every level of one head three tiles that reach far back, with the sums of their rows known and not."""
    site = trace.sites[-1]
    worst, first = 0.0, 0.0
    for level in range(top_level(site.queries, site.keys) + 1):
        last = (site.queries - 1) // (TILE << level)
        for tile in (Tile(level, last, 0), Tile(level, last, last // 2), Tile(level, last // 2, 0)):
            heads = [HeadTiles(trace.at(site, 0), 0) for _ in range(runs)]
            first = max(first, statistics.median(timed(trace, partial(head.tile, tile)) for head in heads))
            again = statistics.median(timed(trace, partial(heads[0].tile, tile)) for _ in range(runs))
            worst = max(worst, again)
    say("any tile of a head, its slowest", f"{1e3 * worst:.1f} ms", f"{target:g} ms")
    say("the same where the sums of its rows are not known yet", f"{1e3 * first:.1f} ms", f"{target:g} ms")


def measured_atlas(trace: Trace, target: float) -> None:
    heads = sum(site.heads for site in trace.sites)
    moment = WORK_PER_ANSWER.get(trace.inputs[0].query.device.type, WORK_PER_ANSWER_ON_DEVICE)
    IncrementalAtlas(trace.inputs[:1], THUMBNAIL).advance()  # memory of the blocks
    parts = IncrementalAtlas(trace.inputs, THUMBNAIL)
    first = timed(trace, lambda: parts.advance(moment))
    whole = first + timed(trace, parts.advance)
    say(f"atlas of {heads} heads, its first part computed", f"{first:.2f} s", f"{FIRST_PICTURE:g} s")
    say(f"atlas of {heads} heads, all computed", f"{whole:.2f} s", f"{target:g} s")


if __name__ == "__main__":
    main()
