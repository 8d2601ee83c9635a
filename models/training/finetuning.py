"""Fine-tuning an open checkpoint on a person's own data: all weights, the head alone, or a LoRA adapter by peft."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from models.files.extras import ADAPTERS, install_command, lacking
from models.files.training_steps import WEIGHTS_PREFIX
from models.forward.model import Model
from models.protocol.errors import ExplorerError
from models.protocol.training_messages import AskedTuning, Tuned
from models.textbook.transformer import IGNORE, loss
from models.training.adam_state import moments_of, take_moments
from models.training.course import Course, Diverged, HeldOut, Point
from models.training.gradient_paths import HeadPass, tied_head
from models.training.gradients import NORMS_EVERY, gradient_norms, parts_of
from models.training.loss_watch import LossWatch
from models.training.snapshots import MOST_BYTES, Snapshots
from models.training.tuning_rows import TuningRows

RATES: dict[Tuned, float] = {"all": 2e-4, "head": 1e-3, "lora": 1e-3}
"""The learning rate where none is set: few weights take larger steps."""

_ROWS = 16  # that are measured at once
_MOST_RANK = 256
_OPTIMISER = "newest.safetensors"
_LEARNED = "learned."
_BASE = ".base_layer"  # where peft puts the weights that it adds to
_ADAPTER_PART = re.compile(r"\.lora_")


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
    snapshot_every: int = 20  # steps
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


class FineTuning(Course):
    """An open checkpoint that learns. Its module is changed; `model` is not to be run as the checkpoint any more.

    Raises:
        ExplorerError: it is of a kind that cannot be trained so.
    """

    def __init__(
        self,
        model: Model,
        rows: TuningRows,
        settings: TuningSettings,
        folder: Path | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Snapshots go into `folder`; there are none where it is left out."""
        check_trainable(model)
        super().__init__(Snapshots(folder, most_bytes) if folder is not None else None)
        self.model, self.rows, self.settings = model, rows, settings
        self.module: Any = model.module  # what is called: of an adapter peft's model around the checkpoint's
        self.adapted: Any = None
        if settings.tuned == "lora":
            self.module = self.adapted = _with_adapter(model, settings)
        else:
            for parameter in [_own_head(model)] if settings.tuned == "head" else _learnable(model.module):
                parameter.requires_grad_(True)
        self._named = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        self.learned = [*self._named.values()]
        self._first = [p.detach().clone() for p in self.learned] if folder is not None else []
        self._parts = parts_of(self._named)
        self._tied_head = tied_head(self.module)
        self._optimizer = torch.optim.AdamW(self.learned, lr=settings.learning_rate, weight_decay=settings.decay)
        self._watch = LossWatch()

    @property
    def snapshot_every(self) -> int:
        return self.settings.snapshot_every

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.learned)

    # ------------------------------------------------------------------ one step

    def step(self, cooling: float = 1.0) -> Point:
        """Learn from one batch. `cooling` multiplies the rate.

        Raises:
            Diverged: the loss is no number, or has stayed far above the first one. Nothing was changed by this step.
        """
        begun = time.perf_counter()
        batch = self.rows.batch(self.step_number, self.settings.batch)
        number, rate = self.step_number + 1, cooling * self.settings.learning_rate
        labels = batch.labels.to(self.model.device)
        self.module.train()
        with torch.random.fork_rng(devices=[]):  # dropout depends on seed and step alone
            torch.manual_seed(self.settings.seed * 1_000_003 + number)
            is_measured = number % NORMS_EVERY == 0 or number == 1
            head = HeadPass(self._tied_head) if is_measured and self._tied_head is not None else None
            with head or nullcontext():
                logits = self.module(**self._on_device(batch.inputs)).logits
            value = loss(logits, labels)
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        norms = gradient_norms(self._parts, None if head is None else head.tied) if is_measured else ()
        length = nn.utils.clip_grad_norm_(self.learned, self.settings.clip)
        if fault := self._watch.fault(float(value.detach()), float(length)):
            self._optimizer.zero_grad(set_to_none=True)
            raise Diverged(
                number, f"At step {number:,} the loss {fault}. Likely because of rate={rate:g}: try {rate / 10:.2g}."
            )
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self.step_number = number
        right, tokens = int((logits.detach().argmax(-1) == labels).sum()), batch.tokens
        seconds = time.perf_counter() - begun
        point = Point(number, float(value.detach()), right / max(tokens, 1), rate, tokens / seconds, norms)
        self._note(point)
        return point

    @torch.no_grad()
    def measure(self, most: int | None = None) -> HeldOut:
        """What the model makes of the held-out rows now, or of the first `most` of them, without dropout.

        A row counts as right where each token that is to be said is the first choice after the true ones before it.
        """
        self.module.eval()
        held = self.rows.held[: self.settings.held_out if most is None else min(most, self.settings.held_out)]
        total, tokens, right, whole = 0.0, 0, 0, 0
        for start in range(0, len(held), _ROWS):
            batch = self.rows.encoded(held[start : start + _ROWS])
            labels = batch.labels.to(self.model.device)
            logits, counted = self.module(**self._on_device(batch.inputs)).logits, labels != IGNORE
            total += float(loss(logits, labels)) * batch.tokens
            hits = (logits.argmax(-1) == labels) | ~counted  # (rows, tokens)
            tokens, right = tokens + batch.tokens, right + int((hits & counted).sum())
            whole += int(hits.all(1).sum())
        found = HeldOut(self.step_number, total / tokens, right / tokens, whole / len(held), len(held))
        self.held_out.append(found)
        return found

    def _on_device(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: tensor.to(self.model.device) for name, tensor in inputs.items()}

    # ------------------------------------------------------------------ weights

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """While it lasts, the model is the checkpoint, before it learned anything."""
        now = [p.data for p in self.learned]
        try:
            for p, first in zip(self.learned, self._first, strict=True):
                p.data = first
            yield
        finally:
            for p, tensor in zip(self.learned, now, strict=True):
                p.data = tensor

    @torch.no_grad()
    def weights(self) -> dict[str, Tensor]:
        """All weights now by the names that they have in the checkpoint, an adapter merged into them.

        Each is there once, or under all of its names where the head was parted from the embedding: others were too,
        and each is looked for under its own name. They are copies then, or where they are changed.
        """
        deltas = {} if self.adapted is None else _deltas(self.model.module)
        apart, found, seen = self.settings.tuned == "head", {}, set()
        for name, tensor in self.model.module.state_dict().items():
            own = name.replace(_BASE, "")
            if _ADAPTER_PART.search(name) or (not apart and tensor.data_ptr() in seen):
                continue
            seen.add(tensor.data_ptr())
            found[own] = tensor + deltas[own] if own in deltas else tensor.clone() if apart else tensor
        return found

    def _state(self) -> dict[str, Tensor]:
        return {WEIGHTS_PREFIX + name: tensor for name, tensor in self.weights().items()}

    def snapshot(self) -> None:
        """Keep the weights as they are, and, of the newest step alone, what the optimiser keeps.

        A disk that refuses is told in `notice`.
        """
        assert self.snapshots is not None
        learned = {_LEARNED + name: p.detach() for name, p in self._named.items()}
        state = learned | moments_of(self._optimizer, self._named)
        numbers = torch.tensor([self.step_number, self._watch.first, self._watch.risen], dtype=torch.float64)
        try:
            self.snapshots.put_beside(_OPTIMISER, {**state, "numbers": numbers})
        except OSError as error:
            self.notice = f"What the optimiser keeps could not be written ({error.strerror or type(error).__name__})."
            return
        super().snapshot()

    @torch.no_grad()
    def restore(self, step: int = 0) -> None:
        """Go on from the newest snapshot, whichever is asked for, bit for bit as if nothing had come between."""
        assert self.snapshots is not None
        self._take(self.snapshots.load_beside(_OPTIMISER), step)

    def _take(self, state: dict[str, Tensor], step: int) -> None:
        number, first, risen = state["numbers"].tolist()
        for name, p in self._named.items():
            p.copy_(state[_LEARNED + name])
        take_moments(self._optimizer, self._named, state, int(number))
        self._watch = LossWatch(first, int(risen))
        self._stand_at(int(number))


def settings_of(asked: AskedTuning) -> TuningSettings:
    """Raises ValueError for numbers that make no training, and ExplorerError where it needs what is not installed."""
    if asked.tuned == "lora":
        check_adapters()
    return TuningSettings(tuned=asked.tuned, rank=asked.rank, rate=asked.rate, seed=asked.seed)


def check_trainable(model: Model) -> None:
    """Raises ExplorerError where fine-tuning is not for models of this kind, or not as this one is open."""
    check_kind(model)
    if model.dtype_name != "float32":
        info = model.info
        raise ExplorerError(f"{info.name} is open in {model.dtype_name}, in which small steps are lost. Use float32.")


def check_kind(model: Model) -> None:
    """Raises ExplorerError where fine-tuning is not for models of this kind."""
    info = model.info
    if info.textbook:
        raise ExplorerError(f"{info.name} is a recurrent model, and transformers are fine-tuned. Open another one.")
    if info.family not in ("causal", "seq2seq", "masked") or model.tokenizer is None:
        raise ExplorerError(
            f"{info.name} writes no text: what is fine-tuned is a decoder, an encoder with a decoder, or a masked "
            "model. Open story-gpt, en-es or story-bert, say."
        )
    if info.gguf:
        raise ExplorerError(f"{info.name} is a GGUF file, whose weights are packed. Tune what it was made from.")


def learned_count(model: Model, settings: TuningSettings) -> int:
    """How many numbers would be learned; `model` is left as it is."""
    if settings.tuned == "lora":
        named = dict(model.module.named_modules())
        return sum(settings.rank * sum(named[name].weight.shape) for name in _linear(model))
    if settings.tuned == "head":
        return int(_head(model).weight.numel())
    return sum(p.numel() for p in _learnable(model.module))


def _learnable(module: Any) -> list[nn.Parameter]:
    """All but what its class keeps as it is: Marian's sinusoids are parameters, and are not in its files."""
    with torch.device("meta"):
        fixed = {name for name, p in type(module)(module.config).named_parameters() if not p.requires_grad}
    return [p for name, p in module.named_parameters() if name not in fixed]


def _own_head(model: Model) -> nn.Parameter:
    """The matrix that gives the logits, parted from the embedding where the two are one."""
    module: Any = model.module
    head = _head(model)
    if sum(p is head.weight for _, p in module.named_parameters(remove_duplicate=False)) > 1:
        head.weight = nn.Parameter(head.weight.detach().clone())
        module.config.tie_word_embeddings = False
    weight: nn.Parameter = head.weight
    return weight


def _head(model: Model) -> Any:
    module: Any = model.module
    head = module.get_output_embeddings()
    if head is None:
        raise ExplorerError(f"{model.info.name} has no head of its own. Tune all of its weights.")
    return head


def _linear(model: Model) -> list[str]:
    """The names of the modules that an adapter is put on: all linear ones but the head."""
    from transformers.pytorch_utils import Conv1D

    module: Any = model.module
    head = module.get_output_embeddings()
    return [n for n, child in module.named_modules() if isinstance(child, (nn.Linear, Conv1D)) and child is not head]


def check_adapters() -> None:
    """Raises ExplorerError, which says how to get it, where the package is not installed that makes adapters."""
    missing = lacking(ADAPTERS)
    if missing:
        raise ExplorerError(f"A LoRA adapter needs {missing[0]}: {install_command(missing)}")


@contextmanager
def peft_unheard() -> Iterator[None]:
    """While it lasts, peft does not warn of what it calls by an older name, or does not find on a hub."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _with_adapter(model: Model, settings: TuningSettings) -> Any:
    check_adapters()
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D

    named, linear = dict(model.module.named_modules()), _linear(model)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        target_modules=linear,
        fan_in_fan_out=any(isinstance(named[name], Conv1D) for name in linear),
    )
    with torch.random.fork_rng(devices=[]), peft_unheard():
        torch.manual_seed(settings.seed)
        return get_peft_model(model.module, config)


def _deltas(module: nn.Module) -> dict[str, Tensor]:
    """What an adapter adds to each matrix, by the name of that in the checkpoint."""
    found = {}
    for name, layer in module.named_modules():
        if hasattr(layer, "get_delta_weight"):
            (adapter,) = layer.active_adapters
            found[f"{name}.weight"] = layer.get_delta_weight(adapter)
    return found
