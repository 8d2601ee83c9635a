"""Greedy decoding beside transformers' own cached `generate`: seconds for 200 tokens of story-gpt, and their ratio.

python -m tests.benchmarks.decoding            # the ratio; at most 1.15 is wanted
python -m tests.benchmarks.decoding --same     # how many of 50 texts come out alike, for every beam setting
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from attention_models import decode, open_checkpoint
from attention_models.decoding.choosing import end_ids
from attention_models.forward.model import Model
from tests.models.sentences import ENGLISH, STORIES

TOKENS = 200
ROUNDS = 5


def seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def generate(model: Model, text: str, **settings: Any) -> list[int]:
    """What transformers writes, cut after its first end."""
    encoded = model.encode(text)
    inputs = {key: value for key, value in encoded.inputs.items() if not key.startswith("decoder_")}
    out = model.module.generate(**inputs, do_sample=False, pad_token_id=0, **settings)[0].tolist()  # type: ignore[operator]
    written: list[int] = out[1:] if model.seq2seq else out[len(encoded.tokens) :]
    ends = [i for i, id_ in enumerate(written) if id_ in end_ids(model)]
    return written[: ends[0] + 1] if ends else written


def ratio() -> None:
    model = open_checkpoint("story-gpt")
    model.module.generation_config.eos_token_id = None  # type: ignore[union-attr]
    model.config.eos_token_id = None
    text = STORIES[0]
    ours, theirs = [], []
    for _ in range(ROUNDS + 1):
        theirs.append(seconds(lambda: generate(model, text, max_new_tokens=TOKENS)))
        ours.append(seconds(lambda: list(decode(model, text, TOKENS))))
    ours, theirs = ours[1:], theirs[1:]  # the first round warms up
    both = median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"{TOKENS} tokens, {torch.get_num_threads()} threads, median of {ROUNDS}")
    print(f"  decode    {median(ours):7.3f} s")
    print(f"  generate  {median(theirs):7.3f} s")
    print(f"  ratio     {both:7.3f}")


def same() -> None:
    for name, texts in (("story-gpt", STORIES), ("en-es", ENGLISH)):
        model = open_checkpoint(name)
        for width in (1, 2, 4):
            for penalty in (0.0, 1.0, 2.0) if width > 1 else (1.0,):
                mine: dict[str, Any] = {"strategy": "beam", "beams": width, "length_penalty": penalty}
                alike = sum(
                    list(list(decode(model, text, 12, **(mine if width > 1 else {})))[-1].ids)
                    == generate(model, text, max_new_tokens=12, num_beams=width, length_penalty=penalty)
                    for text in texts
                )
                print(
                    f"{name}: {width} beams, length penalty {penalty}: {alike} of {len(texts)} texts alike", flush=True
                )


if __name__ == "__main__":
    torch.set_num_threads(1)
    same() if "--same" in sys.argv else ratio()
