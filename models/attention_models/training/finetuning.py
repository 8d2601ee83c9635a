"""Fine-tuning an open checkpoint on a person's own data: all weights, the head alone, or a LoRA adapter by peft."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.files.training_steps import WEIGHTS_PREFIX
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.training_messages import AskedTuning, Tuned
from attention_models.textbook.transformer import IGNORE, loss
from attention_models.training.gradients import NORMS_EVERY, HeadPass, gradient_norms, parts_of, tied_head
from attention_models.training.loss_watch import LossWatch
from attention_models.training.settings import check_seed
from attention_models.training.snapshots import MOST_BYTES, NEWEST, Snapshots, moments_of, take_moments
from attention_models.training.training_loop import Diverged, HeldOut, Point, TrainingLoop, finite
from attention_models.training.tuned_parts import (
    adapter_size,
    check_adapters,
    deltas,
    head_size,
    learnable,
    own_head,
    with_adapter,
)
from attention_models.training.tuning_rows import TuningRows

RATES: dict[Tuned, float] = {"all": 2e-4, "head": 1e-3, "lora": 1e-3}
"""The learning rate where none is set: few weights take larger steps."""

_UNLABELLED = {
    ("token", "softmax"): "labels each token",
    ("token", "sigmoid"): "says of each token whether it was replaced",
    ("span", "softmax"): "marks where an answer stands",
    ("choice", "softmax"): "chooses between texts",
    ("text", "sigmoid"): "lets several of its classes hold at once",
    ("text", "number"): "gives a number",
}  # by what a head says, and how

MEASURED_TOGETHER = 16
"""Held-out rows that are one batch."""

_MOST_RANK = 256
_MOST_BATCH = 1024
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
        check_seed(self.seed)
        if self.tuned == "lora" and not 1 <= self.rank <= _MOST_RANK:
            raise ValueError(f"the rank of an adapter is from 1 to {_MOST_RANK}, and not {self.rank}")
        for name in ("batch", "held_out", "snapshot_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, and has to be at least 1")
        if self.batch > _MOST_BATCH:
            raise ValueError(f"batch is {self.batch:,}, and {_MOST_BATCH:,} rows are learned from at once at most")
        if not (math.isfinite(self.decay) and 0 <= self.decay <= 1):
            raise ValueError(f"decay is {self.decay}, and is from 0 to 1")
        for name in ("rate", "clip"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}, and has to be above 0")

    @property
    def learning_rate(self) -> float:
        return RATES[self.tuned] if self.rate is None else self.rate


_DROPPED = ("dropout", "attention_dropout", "activation_dropout", "dropout_rate")
"""What configurations call the dropout that their models apply without a module of its own."""


class FineTuning(TrainingLoop):
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
        keeps_first: bool = False,
    ) -> None:
        """Snapshots go into `folder`; there are none where it is left out. `as_it_was` needs `keeps_first`."""
        check_trainable(model)
        super().__init__(Snapshots(folder, most_bytes) if folder is not None else None)
        self.model, self.rows, self.settings = model, rows, settings
        self.module: Any = model.module  # what is called: of an adapter peft's model around the checkpoint's
        self.adapted: Any = None
        if settings.tuned == "lora":
            self.module = self.adapted = with_adapter(model, settings.rank, settings.seed)
        else:
            for parameter in own_head(model) if settings.tuned == "head" else learnable(model.module):
                parameter.requires_grad_(True)
        self._named = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        self.learned = [*self._named.values()]
        self._first = [p.detach().clone() for p in self.learned] if keeps_first else []
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

    @property
    def dropout(self) -> float:
        """As its modules have it, or its configuration: some families drop by a function."""
        config = self.model.config.get_text_config()
        told = (float(getattr(config, name, None) or 0) for name in _DROPPED)
        own = (float(part.p) for part in self.module.modules() if isinstance(part, nn.Dropout))
        return max((*told, *own))

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
                logits = self._logits(batch.inputs)
            value = loss(logits, labels)
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        norms = gradient_norms(self._parts, None if head is None else head.tied) if is_measured else ()
        length = nn.utils.clip_grad_norm_(self.learned, self.settings.clip)
        if fault := self._watch.fault(float(value.detach()), float(length)):
            self._optimizer.zero_grad(set_to_none=True)
            raise Diverged(number, f"At step {number:,} the loss {fault}. {self._likely()}")
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self.step_number = number
        right, tokens = int((logits.detach().argmax(-1) == labels).sum()), batch.tokens
        seconds = time.perf_counter() - begun
        point = Point(number, float(value.detach()), right / max(tokens, 1), rate, tokens / seconds, norms)
        self._note(point)
        return point

    def _likely(self) -> str:
        """The likeliest reason for a loss that diverges, and what to try, as a sentence."""
        rate, usual = self.settings.learning_rate, RATES[self.settings.tuned]
        lower = f"{usual:g}, the usual one" if rate > usual else f"{rate / 10:.2g}"
        return f"Likely because of rate={rate:g}: try {lower}."

    @torch.no_grad()
    def measure(self, most: int | None = None) -> HeldOut:
        """What the model makes of the held-out rows now, or of the first `most` of them, without dropout.

        A row counts as right where each token that is to be said is the first choice after the true ones before it.
        """
        self.module.eval()
        held = self.rows.held[: self.settings.held_out if most is None else min(most, self.settings.held_out)]
        total, tokens, right, whole = 0.0, 0, 0, 0
        for start in range(0, len(held), MEASURED_TOGETHER):
            batch = self.rows.encoded(held[start : start + MEASURED_TOGETHER])
            labels = batch.labels.to(self.model.device)
            logits, counted = self._logits(batch.inputs), labels != IGNORE
            total += float(loss(logits, labels)) * batch.tokens
            hits = (logits.argmax(-1) == labels) | ~counted  # (rows, tokens)
            tokens, right = tokens + batch.tokens, right + int((hits & counted).sum())
            whole += int(hits.all(1).sum())
        learned = self.rows.batch(max(0, self.step_number - 1), self.settings.batch)
        of_learned = finite(float(loss(self._logits(learned.inputs), learned.labels.to(self.model.device))))
        found = HeldOut(self.step_number, total / tokens, right / tokens, whole / len(held), len(held), of_learned)
        self.held_out.append(found)
        return found

    def _logits(self, inputs: dict[str, Tensor]) -> Tensor:
        """(rows, tokens, vocabulary); of a classifier (rows, 1, classes)."""
        given = {name: tensor.to(self.model.device) for name, tensor in inputs.items()}
        if self.model.info.class_head is None:
            logits: Tensor = self.module(**given).logits
            return logits
        if self.model.config.get_text_config().pad_token_id is not None:
            classes: Tensor = self.module(**given).logits[:, None]
            return classes
        # without a token for padding a decoder finds the last token of a single row alone
        lengths = given["attention_mask"].sum(1).tolist()
        rows = [{name: t[i : i + 1, :length] for name, t in given.items()} for i, length in enumerate(lengths)]
        return torch.stack([self.module(**row).logits for row in rows])

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
        added = {} if self.adapted is None else deltas(self.model.module)
        apart, found, seen = self.settings.tuned == "head", {}, set()
        for name, tensor in self.model.module.state_dict().items():
            own = name.replace(_BASE, "")
            if _ADAPTER_PART.search(name) or (not apart and tensor.data_ptr() in seen):
                continue
            seen.add(tensor.data_ptr())
            found[own] = tensor + added[own] if own in added else tensor.clone() if apart else tensor
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
            self.snapshots.put_beside(NEWEST, {**state, "numbers": numbers})
        except OSError as error:
            self.notice = f"What the optimiser keeps could not be written ({error.strerror or type(error).__name__})."
            return
        super().snapshot()

    def kept_shapes(self, has_begun: bool) -> dict[str, tuple[int, ...]]:
        """What `restore` needs, by name; `has_begun` where a step was taken."""
        kept = (_LEARNED, "exp_avg.", "exp_avg_sq.") if has_begun else (_LEARNED,)
        shapes = {f"{part}{name}": tuple(p.shape) for part in kept for name, p in self._named.items()}
        return shapes | {"numbers": (3,)}

    @torch.no_grad()
    def restore(self, step: int = 0) -> None:
        """Go on from the newest snapshot, whichever is asked for, bit for bit as if nothing had come between."""
        assert self.snapshots is not None
        self._take(self.snapshots.load_beside(NEWEST), step)

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
    info, head = model.info, model.info.class_head
    if info.textbook:
        raise ExplorerError(f"{info.name} is a recurrent model, and transformers are fine-tuned. Open another one.")
    if head is not None and model.tokenizer is not None:
        if why := _UNLABELLED.get((head.of, head.scale)):
            raise ExplorerError(f"{info.name} {why}, and a label a text does not say that. Open a classifier of texts.")
    elif info.family not in ("causal", "seq2seq", "masked") or model.tokenizer is None:
        raise ExplorerError(
            f"{info.name} writes no text and tells no classes of texts apart: what is fine-tuned is a decoder, an "
            "encoder with a decoder, a masked model or a classifier. Open story-gpt, en-es, story-bert or story-next, "
            "say."
        )
    if info.gguf:
        raise ExplorerError(f"{info.name} is a GGUF file, whose weights are packed. Tune what it was made from.")


def learned_count(model: Model, settings: TuningSettings) -> int:
    """How many numbers would be learned; `model` is left as it is."""
    if settings.tuned == "lora":
        return adapter_size(model, settings.rank)
    if settings.tuned == "head":
        return head_size(model)
    return sum(p.numel() for p in learnable(model.module))
