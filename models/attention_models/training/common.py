"""What the five trainings share: how long, how fast, the loop, the figures and the command line.

A training is a `Recipe`: a model, an endless stream of batches, held-out batches and three numbers. All five minimise
the cross-entropy of the labels, so one loop serves them all.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

IGNORE = -100
"""The label of a position where nothing is to be predicted."""

WARM_UP = 0.07
"""Part of the training in which the rate climbs to its peak."""

FLOOR = 0.02
"""Part of the peak rate that is left at the end."""


class Batch(NamedTuple):
    """One step's data. Logits of shape (..., classes) meet labels of shape (...)."""

    inputs: dict[str, Any]  # the model's keyword arguments
    labels: Tensor  # (batch,) or (batch, positions), IGNORE where nothing is to be predicted


@dataclass(frozen=True, slots=True)
class Recipe:
    """What differs between the trainings."""

    model: nn.Module  # called with a batch's inputs, it gives something with `logits`
    batches: Iterator[Batch]  # endless
    held_out: Callable[[], Iterable[Batch]]  # the same batches at every call
    peak: float  # the highest learning rate
    decay: float  # weight decay of matrices; vectors (biases, norms) have none
    half: bool = True  # forward passes in bfloat16 autocast
    smoothing: float = 0.0  # label smoothing in training; the held-out figures have none


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to train: `seconds` by the clock or `steps`, exactly one of them. Raises ValueError otherwise."""

    seconds: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        given = [limit for limit in (self.seconds, self.steps) if limit is not None]
        if len(given) != 1 or given[0] <= 0:
            raise ValueError(f"give a positive number of seconds or of steps, not both; got {self}")

    def fraction(self, step: int, elapsed: float) -> float:
        """How much of the training is done after `step` steps and `elapsed` seconds; 1 and more is the end."""
        if self.steps is not None:
            return step / self.steps
        assert self.seconds is not None
        return elapsed / self.seconds


@dataclass(frozen=True, slots=True)
class Report:
    """Where a training stands. Figures are of the held-out batches."""

    seconds: float
    step: int
    seen: int  # labels so far: tokens, or pictures
    cross_entropy: float  # nats a label
    accuracy: float  # part of the labels that were the model's first choice


def learning_rate(fraction: float, peak: float) -> float:
    """The rate at `fraction` of the training: a linear climb to `peak`, then half a cosine down to its floor."""
    if fraction < WARM_UP:
        return peak * max(fraction / WARM_UP, 0.01)
    descent = min(1.0, (fraction - WARM_UP) / (1 - WARM_UP))
    return peak * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * descent)))


def adamw(model: nn.Module, decay: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW whose weight decay spares everything that is not a matrix."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=device.type == "cuda")


def cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy in nats over the labels that are not IGNORE. logits (..., classes), labels (...)."""
    return nn.functional.cross_entropy(
        logits.float().flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=smoothing
    )


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[Batch]) -> tuple[float, float]:
    """Cross-entropy (nats a label) and accuracy over all labels of `batches`, without dropout.

    Raises ValueError where there is no label to predict.
    """
    model.eval()
    loss, right, count = 0.0, 0, 0
    for inputs, labels in batches:
        logits = model(**inputs).logits  # (..., classes)
        counted = int((labels != IGNORE).sum())
        loss += float(cross_entropy(logits, labels)) * counted if counted else 0.0
        right += int((logits.argmax(-1) == labels).sum())
        count += counted
    model.train()
    if not count:
        raise ValueError("the held-out batches hold no label to predict")
    return loss / count, right / count


def train(recipe: Recipe, budget: Budget, device: torch.device, report_every: float = 40.0) -> Report:
    """Train `recipe.model`, in place, until the budget is spent; print a report every `report_every` seconds.

    Returns the last report. Held-out figures are computed in float32.
    """
    model = recipe.model
    model.to(device).train()
    forward = torch.compile(model, dynamic=False) if device.type == "cuda" else model
    optimizer = adamw(model, recipe.decay, device)

    def loss_of(batch: Batch) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=recipe.half):
            logits = forward(**batch.inputs).logits
        return cross_entropy(logits, batch.labels, recipe.smoothing)

    if device.type == "cuda":  # compiling takes about a minute, which the budget is not for
        loss_of(next(recipe.batches)).backward()
        optimizer.zero_grad(set_to_none=True)

    step, seen = 0, 0
    start = reported = time.monotonic()

    def report() -> Report:
        entropy, accuracy = evaluate(model, recipe.held_out())
        now = Report(round(time.monotonic() - start, 1), step, seen, round(entropy, 4), round(accuracy, 4))
        print(json.dumps(asdict(now)), flush=True)
        return now

    while (fraction := budget.fraction(step, time.monotonic() - start)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(fraction, recipe.peak)
        batch = next(recipe.batches)
        loss_of(batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        seen += batch.labels.numel()
        if time.monotonic() - reported > report_every:
            report()
            reported = time.monotonic()
    return report()


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write the model in Hugging Face format and half precision. The model itself is turned to half precision too."""
    module: nn.Module = model  # transformers' own `to` hides the types of torch's
    module.to("cpu", torch.float16)
    model.eval().save_pretrained(folder)


def command_line(description: str, *, layers: int, heads: int, width: int, batch: int) -> argparse.ArgumentParser:
    """The options all trainings have; the numbers are the defaults, those of the shipped weights."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder with the prepared data")
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--seconds", type=float, help="train for so long by the clock")
    budget.add_argument("--steps", type=int, help="train for so many steps")
    parser.add_argument("--layers", type=int, default=layers, help="layers (of each stack); default %(default)s")
    parser.add_argument("--heads", type=int, default=heads, help="heads a layer; default %(default)s")
    parser.add_argument("--width", type=int, default=width, help="width of the residual stream; default %(default)s")
    parser.add_argument("--batch", type=int, default=batch, help="examples a step; default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and dropout; default %(default)s")
    return parser


def start(options: argparse.Namespace) -> tuple[Budget, torch.device]:
    """Seed torch and choose the device; the budget the options ask for."""
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    return Budget(options.seconds, options.steps), torch.device("cuda" if torch.cuda.is_available() else "cpu")
