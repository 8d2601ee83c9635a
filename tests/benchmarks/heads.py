"""What heads do over texts: how long roles take, and a corpus beside plain batched forward passes of the same texts.

    python -m tests.benchmarks.heads --checkpoint story-gpt --lines 1000

Both ways tokenize, pad and run batches of the same texts; the plain one is transformers' own model with its fused
attention and nothing of ours in it. They take turns; times are of this thread's processor.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, from a checkout

from attention_models import head_roles, open_checkpoint, read_corpus
from attention_models.forward.batches import pad_id
from attention_models.forward.model import Model
from attention_models.roles.probe import our_probe
from attention_models.roles.reading import tokens_at_once
from tests.benchmarks.forward import alone, machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--checkpoint", default="story-gpt", help="a shipped name, a folder or a GGUF file")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    print(machine())
    model = open_checkpoint(arguments.checkpoint)
    started, processor = time.perf_counter(), time.process_time()
    found = head_roles(model, cached=False)
    taken = time.perf_counter() - started, time.process_time() - processor
    print(
        f"{model.info.name}: roles of {sum(site.heads for site in model_sites(model))} heads over {found.texts} texts "
        f"({found.tokens} tokens): {taken[0]:.1f} s, {taken[1]:.1f} s of the processor"
    )
    corpus(model, arguments.lines, arguments.runs)


def model_sites(model: Model) -> Any:
    from attention_models import run

    return run(model, "Tom and Anna").sites


def corpus(model: Model, count: int, runs: int) -> None:
    texts = [str(text.prompt) for text in our_probe().texts]
    lines = [f"{texts[i % len(texts)]} {texts[(i * 7 + i // 32) % len(texts)]}" for i in range(count)]
    plain = None if model.info.gguf else alone(model, "sdpa")
    with tempfile.TemporaryDirectory() as folder:
        path, half = Path(folder) / "lines.txt", Path(folder) / "half.txt"
        path.write_text("\n".join(lines))
        half.write_text("\n".join(lines[: count // 2]))
        read_corpus(model, half)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ratios, ours = [], []
        for _ in range(runs):
            mine = spent(lambda: read_corpus(model, path, attends_to="previous"))
            ours.append(mine)
            if plain is not None:
                ratios.append(spent(lambda: plainly(model, plain, lines)) / mine)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    beside = f"; throughput beside plain batched forward passes: {statistics.median(ratios):.2f}" if ratios else ""
    print(
        f"{count} lines: {statistics.median(ours):.1f} s{beside}; memory grew by {grown / 1024:.0f} MB after the half"
    )


def spent(work: Any) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


@torch.no_grad()
def plainly(model: Model, module: Any, lines: list[str]) -> None:
    ids = sorted(model.tokenizer(lines, verbose=False)["input_ids"], key=len)
    fill, most = pad_id(model), tokens_at_once(model)
    start = 0
    while start < len(ids):
        step = max(1, min(64, most // len(ids[min(start + 63, len(ids) - 1)])))
        batch = ids[start : start + step]
        longest = max(map(len, batch))
        padded = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in batch])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in batch])
        module(input_ids=padded, attention_mask=mask, **model.forward_options)
        start += step


if __name__ == "__main__":
    main()
