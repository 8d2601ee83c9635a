"""Fine-tuning an open checkpoint on a person's own data: all weights, the head alone, or a LoRA adapter by peft."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from models.files.extras import ADAPTERS, install_command, lacking
from models.forward.model import Model
from models.protocol.errors import ExplorerError
from models.textbook.transformer import IGNORE, loss
from models.training.common import Budget
from models.training.loss_watch import LossWatch
from models.training.training import Command
from models.training.tuning_rows import TuningRows

Tuned = Literal["all", "head", "lora"]

RATES: dict[Tuned, float] = {"all": 2e-4, "head": 1e-3, "lora": 1e-3}
"""The learning rate where none is set: few weights take larger steps."""

_ROWS = 16  # that are measured at once
_MOST_RANK = 256


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """Raises ValueError for numbers that make no training. AdamW, Loshchilov and Hutter 2019."""

    tuned: Tuned = "all"
    rank: int = 0  # of a LoRA adapter
    rate: float | None = None  # of `RATES` where it is left out
    batch: int = 8  # rows a step
    decay: float = 0.01
    clip: float = 1.0  # the most that the gradient's length may be
    held_out: int = 200  # rows
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tuned == "lora" and not 1 <= self.rank <= _MOST_RANK:
            raise ValueError(f"the rank of an adapter is from 1 to {_MOST_RANK}, and not {self.rank}")
        for name in ("batch", "held_out"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, and has to be at least 1")
        for name in ("rate", "clip"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}, and has to be above 0")

    @property
    def learning_rate(self) -> float:
        return RATES[self.tuned] if self.rate is None else self.rate


class Diverged(ExplorerError):
    """The loss cannot be followed any further."""


class FineTuning:
    """An open checkpoint that learns. Its module is changed; `model` is not to be run as the checkpoint any more.

    Raises:
        ExplorerError: it is of a kind that cannot be trained so.
    """

    def __init__(self, model: Model, rows: TuningRows, settings: TuningSettings) -> None:
        check_trainable(model)
        self.model, self.rows, self.settings = model, rows, settings
        self.module: Any = model.module  # what is called: of an adapter peft's model around the checkpoint's
        self.adapted: Any = None
        if settings.tuned == "lora":
            self.module = self.adapted = _with_adapter(model, settings)
        else:
            for parameter in [_own_head(model)] if settings.tuned == "head" else _learnable(model.module):
                parameter.requires_grad_(True)
        self.learned = [p for p in self.module.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(self.learned, lr=settings.learning_rate, weight_decay=settings.decay)
        self.step_number = 0
        self._watch = LossWatch()

    @property
    def parameters(self) -> int:
        """How many numbers are learned."""
        return sum(p.numel() for p in self.learned)

    def step(self) -> float:
        """Learn from one batch; its loss in nats a token.

        Raises:
            Diverged: the loss is no number, or has stayed far above the first one. Nothing was changed by this step.
        """
        batch = self.rows.batch(self.step_number, self.settings.batch)
        number = self.step_number + 1
        self.module.train()
        with torch.random.fork_rng(devices=[]):  # dropout depends on seed and step alone
            torch.manual_seed(self.settings.seed * 1_000_003 + number)
            value = loss(self.module(**self._on_device(batch.inputs)).logits, batch.labels.to(self.model.device))
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        length = nn.utils.clip_grad_norm_(self.learned, self.settings.clip)
        if fault := self._watch.fault(float(value.detach()), float(length)):
            self._optimizer.zero_grad(set_to_none=True)
            rate = self.settings.learning_rate
            raise Diverged(
                f"At step {number:,} the loss {fault}, likely because of rate={rate:g}: "
                f"try --set rate={rate / 10:.2g}. Nothing was saved."
            )
        self._optimizer.step()
        self.step_number = number
        return float(value.detach())

    @torch.no_grad()
    def measure(self) -> float:
        """The loss of the held-out rows, the mean in nats over their tokens, without dropout."""
        self.module.eval()
        held = self.rows.held[: self.settings.held_out]
        total, tokens = 0.0, 0
        for start in range(0, len(held), _ROWS):
            batch = self.rows.encoded(held[start : start + _ROWS])
            count = int((batch.labels != IGNORE).sum())
            logits = self.module(**self._on_device(batch.inputs)).logits
            total += float(loss(logits, batch.labels.to(self.model.device))) * count
            tokens += count
        return total / tokens

    def run(
        self,
        budget: Budget,
        command: Callable[[], Command] = lambda: "go",
        told: Callable[[int, float], None] = lambda *_: None,
    ) -> float:
        """Learn until `budget` is spent, or `command` says stop; the seconds that it took. `told` hears step and loss.

        Raises:
            Diverged: as from `step`.
        """
        begun, first = time.perf_counter(), self.step_number
        while budget.fraction(self.step_number - first, time.perf_counter() - begun) < 1 and command() != "stop":
            value = self.step()
            told(self.step_number, value)
        return time.perf_counter() - begun

    def _on_device(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self.model.device) for name, tensor in inputs.items()}


def check_trainable(model: Model) -> None:
    """Raises ExplorerError where fine-tuning is not for models of this kind."""
    info = model.info
    if info.textbook:
        raise ExplorerError(f"{info.name} is a recurrent model, and transformers are fine-tuned. Open another one.")
    if info.family not in ("causal", "seq2seq") or model.tokenizer is None:
        raise ExplorerError(
            f"{info.name} writes no text: what is fine-tuned is a decoder, or an encoder with a decoder. "
            "Open story-gpt or en-es, say."
        )
    if info.gguf:
        raise ExplorerError(f"{info.name} is a GGUF file, whose weights are packed. Tune what it was made from.")
    if model.dtype_name != "float32":
        raise ExplorerError(f"{info.name} is open in {model.dtype_name}, in which small steps are lost. Use float32.")


def _learnable(module: Any) -> list[nn.Parameter]:
    """All but what its class keeps as it is: Marian's sinusoids are parameters, and are not in its files."""
    with torch.device("meta"):
        fixed = {name for name, p in type(module)(module.config).named_parameters() if not p.requires_grad}
    return [p for name, p in module.named_parameters() if name not in fixed]


def _own_head(model: Model) -> nn.Parameter:
    """The matrix that gives the logits, parted from the embedding where the two are one."""
    module: Any = model.module
    head = module.get_output_embeddings()
    if head is None:
        raise ExplorerError(f"{model.info.name} has no head of its own. Tune all of its weights.")
    if sum(p is head.weight for _, p in module.named_parameters(remove_duplicate=False)) > 1:
        head.weight = nn.Parameter(head.weight.detach().clone())
        module.config.tie_word_embeddings = False
    weight: nn.Parameter = head.weight
    return weight


@contextmanager
def peft_unheard() -> Iterator[None]:
    """While it lasts, peft does not warn of what it calls by an older name, or does not find on a hub."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _with_adapter(model: Model, settings: TuningSettings) -> Any:
    missing = lacking(ADAPTERS)
    if missing:
        raise ExplorerError(f"A LoRA adapter needs {missing[0]}: {install_command(missing)}")
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D

    named = dict(model.module.named_modules())
    head = model.module.get_output_embeddings()  # type: ignore[operator]
    linear = [name for name, child in named.items() if isinstance(child, (nn.Linear, Conv1D)) and child is not head]
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        target_modules=linear,
        fan_in_fan_out=any(isinstance(named[name], Conv1D) for name in linear),
    )
    with torch.random.fork_rng(devices=[]), peft_unheard():
        torch.manual_seed(settings.seed)
        return get_peft_model(model.module, config)
