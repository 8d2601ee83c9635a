"""How long a sweep over all heads takes beside as many batched plain forwards, and the lens of 256 tokens.

    python tests/benchmarks/effects.py

Prints ratios taken in turns in one run: 64 heads of story-gpt at 32 tokens against 64 plain forwards in batches of the
same size, in threads as torch has them. Also how often a sweep says how far it is, and how soon it is called off.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from attention_models import logit_lens, open_checkpoint, run  # noqa: E402
from attention_models.effects.batched_runs import BatchedRuns  # noqa: E402
from attention_models.effects.metric import resolve  # noqa: E402
from attention_models.effects.sweep import HeadSweep  # noqa: E402
from attention_models.forward.model import Model  # noqa: E402
from attention_models.protocol.effects import Metric  # noqa: E402
from attention_models.protocol.request import Cancelled  # noqa: E402
from tests.models.tiny import text_of  # noqa: E402

ROUNDS = 7
MOST_RATIO, LEAST_REPORTS, MOST_WAIT, MOST_LENS = 1.3, 4.0, 0.2, 1.0


def plain(model: Model, ids: torch.Tensor, count: int) -> float:
    """Seconds of 64 forwards of transformers' own module, `count` at once."""
    inputs = {
        "input_ids": ids.expand(count, -1).contiguous(),
        "attention_mask": torch.ones(count, ids.shape[1], dtype=torch.long),
    }
    started = time.perf_counter()
    with torch.no_grad():
        for _ in range(64 // count):
            model.module(**inputs, use_cache=False)
    return time.perf_counter() - started


def sweep_of(model: Model, text: str) -> HeadSweep:
    trace = run(model, text)
    return HeadSweep(BatchedRuns.of(model, trace, text, None), resolve(model, trace, Metric()))


def swept(model: Model, text: str) -> tuple[float, list[float]]:
    """Seconds of a sweep, and when it said how far it was."""
    sweep, told = sweep_of(model, text), []
    started = time.perf_counter()
    while not sweep.is_whole:
        sweep.advance(report=lambda _words, _share: told.append(time.perf_counter() - started))
    return time.perf_counter() - started, told


def waited(model: Model, text: str, after: float) -> float:
    """Seconds from the wish to call it off until it ends."""
    sweep = sweep_of(model, text)
    wished = time.perf_counter() + after
    try:
        while not sweep.is_whole:
            sweep.advance(lambda: time.perf_counter() > wished)
    except Cancelled:
        return time.perf_counter() - wished
    return 0.0


def main() -> int:
    model = open_checkpoint("story-gpt")
    text = text_of(model, 32)
    ids = model.encode(text).inputs["input_ids"]
    count = BatchedRuns.of(model, run(model, text), text, None).at_once
    plain(model, ids, count), swept(model, text)
    pairs = [(plain(model, ids, count), *swept(model, text)) for _ in range(ROUNDS)]
    ratio = sorted(ours / theirs for theirs, ours, _ in pairs)[ROUNDS // 2]
    theirs = min(pair[0] for pair in pairs)
    ours = min(pair[1] for pair in pairs)
    gaps = [b - a for _, _, told in pairs for a, b in zip([0.0, *told], told, strict=False)]
    wait = max(waited(model, text, 0.05 * n) for n in range(1, 8))
    print(f"{ids.shape[1]} tokens, {count} copies at once: 64 plain forwards {theirs:.3f} s, a sweep {ours:.3f} s")
    print(f"ratio (median of {ROUNDS}) {ratio:.2f}, at most {MOST_RATIO}")
    print(f"longest wait between two reports {max(gaps):.3f} s, at most {1 / LEAST_REPORTS:.2f}")
    print(f"called off within {wait:.3f} s, at most {MOST_WAIT}")
    long = text_of(model, 256)
    logit_lens(model, "Tom")
    tokens, seconds = 0, []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        lens = logit_lens(model, long)
        seconds.append(time.perf_counter() - started)
        assert lens.best is not None
        tokens = lens.best.shape[1]
    print(f"lens of {tokens} tokens, the run with it: {min(seconds):.2f} s, at most {MOST_LENS}")
    good = ratio <= MOST_RATIO and max(gaps) <= 1 / LEAST_REPORTS and wait <= MOST_WAIT and min(seconds) <= MOST_LENS
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
