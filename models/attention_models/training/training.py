"""One training of a textbook model: a step at a time, watched from outside, stopped and taken up again.

Nothing here knows a window. `Training.run` asks between two steps whether to go on, and tells what happened; nothing is
computed for a curve that a bare loop would not compute, but for the lengths of gradients now and then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_models.forward.capture import IMPLEMENTATION
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.pretrained import TextbookModel, made
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from attention_models.textbook.tokenizer import START_ID
from attention_models.textbook.transformer import IGNORE, loss
from attention_models.textbook.transformer_config import TransformerConfig
from attention_models.training.gradients import AND_HEAD, NORMS_EVERY, EncoderPass, HeadPass, gradient_norms, tied_head
from attention_models.training.loss_watch import LossWatch
from attention_models.training.rows import Batch, Rows
from attention_models.training.settings import Settings
from attention_models.training.snapshots import MOST_BYTES, Snapshots, moments_of, take_moments
from attention_models.training.training_loop import Diverged, HeldOut, Point, TrainingLoop, finite

BETAS, EPSILON = (0.9, 0.98), 1e-9
"""Adam's, as section 5.3 has them."""

MEASURED_TOGETHER = 250
"""Held-out rows that are one batch."""


class Training(TrainingLoop):
    """A model, its optimiser, and how far it has come. Raises ValueError where the rows do not fit the context."""

    def __init__(
        self,
        config: TransformerConfig | RecurrentConfig,
        rows: Rows,
        settings: Settings | None = None,
        folder: Path | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Snapshots go into `folder`; there are none where it is left out."""
        self.config, self.rows, self.settings = config, rows, settings or Settings()
        check_context(config, rows)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.settings.seed)
            self.model = model_of(config)
        self.model.train()
        self._smoothing = config.label_smoothing if isinstance(config, TransformerConfig) else 0.0
        super().__init__(Snapshots(folder, most_bytes) if folder is not None else None)
        self._named = dict(self.model.named_parameters())
        self._tied_head = tied_head(self.model) if isinstance(self.model, TextbookModel) else None
        self._parts = _parts(self._named, tied=self._tied_head is not None)
        self._optimizer = torch.optim.Adam(self._named.values(), lr=0.0, betas=BETAS, eps=EPSILON, fused=True)
        self._held_rows: Batch | None = None
        self._watch = LossWatch()

    @property
    def snapshot_every(self) -> int:
        return self.settings.snapshot_every

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    @property
    def dropout(self) -> float:
        return self.config.dropout

    @property
    def smoothing(self) -> float:
        return self._smoothing

    # ------------------------------------------------------------------ one step

    def next_batch(self) -> tuple[Batch, int]:
        """What the next step learns from, and its number, counted from 1."""
        return self.rows.batch(self.step_number, self.settings.batch), self.step_number + 1

    def logits(self, model: nn.Module, batch: Batch, number: int) -> Tensor:
        """What `model`, this training's or a copy of it, says in step `number`: (rows, tokens, vocabulary)."""
        with torch.random.fork_rng(devices=[]):  # dropout depends on seed and step alone
            torch.manual_seed(self.settings.seed * 1_000_003 + number)
            logits: Tensor = model(**batch.inputs).logits
        return logits

    def moments(self, name: str) -> tuple[Tensor, Tensor]:
        """Adam's running means of a parameter's gradient and of its square, now; 0 before the first step."""
        parameter = self._named[name]
        kept = self._optimizer.state.get(parameter, {})
        first, second = (kept.get(key) for key in ("exp_avg", "exp_avg_sq"))
        return (
            torch.zeros_like(parameter) if first is None else first.clone(),
            torch.zeros_like(parameter) if second is None else second.clone(),
        )

    @property
    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of each part of the model: "decoder block 1", "head"."""
        return self._parts

    def step(self, cooling: float = 1.0) -> Point:
        """Learn from one batch. `cooling` multiplies the schedule's rate.

        Raises:
            Diverged: the loss or the gradient is no number, or the loss has stayed far above the first one. Nothing
                was changed by this step.
        """
        begun = time.perf_counter()
        batch, number = self.next_batch()
        rate = cooling * self.settings.learning_rate(number, self.config.width)
        is_measured = number % NORMS_EVERY == 0 or number == 1
        with self._watched() if is_measured else nullcontext() as watched:
            logits = self.logits(self.model, batch, number)  # (rows, tokens, vocabulary)
        value = loss(logits, batch.labels, self._smoothing)
        value.backward()
        norms = self._norms(watched) if is_measured else ()
        states = watched.gradients() if isinstance(watched, EncoderPass) else ()
        length = nn.utils.clip_grad_norm_(self._named.values(), self.settings.clip)
        if fault := self._watch.fault(float(value.detach()), float(length)):
            self._optimizer.zero_grad(set_to_none=True)
            raise Diverged(number, f"At step {number:,} the loss {fault}. {likely_switch(self.config, self.settings)}")
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.step_number = number
        tokens = batch.tokens
        right = int((logits.detach().argmax(-1) == batch.labels).sum())
        seconds = time.perf_counter() - begun
        point = Point(number, float(value.detach()), right / max(tokens, 1), rate, tokens / seconds, norms, states)
        self._note(point)
        return point

    def _watched(self) -> HeadPass | EncoderPass | AbstractContextManager[None]:
        """What a pass is watched by, where some of its gradients would be lost or added up."""
        if isinstance(self.model, RecurrentSeq2Seq):
            return EncoderPass(self.model.encoder)
        return nullcontext() if self._tied_head is None else HeadPass(self._tied_head)

    def _norms(self, watched: HeadPass | EncoderPass | None) -> tuple[tuple[str, float], ...]:
        return gradient_norms(self._parts, watched.tied if isinstance(watched, HeadPass) else None)

    # ------------------------------------------------------------------ held-out rows

    @torch.no_grad()
    def measure(self, most: int | None = None) -> HeldOut:
        """What the model makes of the held-out rows now, or of the first `most` of them, without dropout."""
        if self._held_rows is None:
            self._held_rows = self.rows.held_out(self.settings.held_out)
        batch, every = self._held_rows, len(self._held_rows.labels)
        rows = every if most is None else min(most, every)
        model = self.model
        model.eval()
        value, tokens, right, whole = 0.0, 0, 0, 0
        for start in range(0, rows, MEASURED_TOGETHER):
            part = slice(start, min(start + MEASURED_TOGETHER, rows))
            inputs, labels = {name: t[part] for name, t in batch.inputs.items()}, batch.labels[part]
            logits, counted = model(**inputs).logits, labels != IGNORE
            value += float(loss(logits, labels)) * int(counted.sum())
            hits = (logits.argmax(-1) == labels) | ~counted  # (rows, tokens)
            tokens, right = tokens + int(counted.sum()), right + int((hits & counted).sum())
            if isinstance(model, TextbookModel) and reads_ahead(model.config):
                whole += written_right(model, inputs, labels)
            else:
                whole += int(hits.all(1).sum())
        learned = self.rows.batch(max(0, self.step_number - 1), self.settings.batch)
        of_learned = finite(float(loss(model(**learned.inputs).logits, learned.labels)))
        model.train()
        found = HeldOut(self.step_number, value / tokens, right / tokens, whole / rows, rows, of_learned)
        self.held_out.append(found)
        return found

    # ------------------------------------------------------------------ snapshots

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Steps may be taken inside; afterwards all is, bit for bit, as it was before."""
        state = {name: t.clone() for name, t in self._state().items()}
        number, points, held_out = self.step_number, self.points.copy(), [*self.held_out]
        try:
            yield
        finally:
            self._optimizer.zero_grad(set_to_none=True)
            self._take(state, number)
            self.points, self.held_out = points, held_out

    @torch.no_grad()
    def _state(self) -> dict[str, Tensor]:
        weights = {f"model.{name}": p.detach() for name, p in self._named.items()}
        watched = torch.tensor([self._watch.first, float(self._watch.risen)], dtype=torch.float64)
        return {**weights, **moments_of(self._optimizer, self._named), "first": watched}

    @torch.no_grad()
    def _take(self, state: dict[str, Tensor], step: int) -> None:
        for name, p in self._named.items():
            p.copy_(state[f"model.{name}"])
        take_moments(self._optimizer, self._named, state, step)
        self._watch = LossWatch(float(state["first"][0]), int(state["first"][1]))
        self._stand_at(step)


def check_context(config: TransformerConfig | RecurrentConfig, rows: Rows) -> None:
    """Raises ValueError where the rows do not fit the context."""
    if isinstance(config, TransformerConfig) and rows.context > config.context:
        raise ValueError(
            f"context is {config.context}, and rows of this task take {rows.context} tokens: set it to that or more"
        )


def model_of(config: TransformerConfig | RecurrentConfig) -> TextbookModel | RecurrentSeq2Seq:
    """A model of random weights, as torch's generator gives them."""
    if isinstance(config, RecurrentConfig):
        return RecurrentSeq2Seq(config)
    model = made(config)
    model.set_attn_implementation(IMPLEMENTATION)
    return model


def reads_ahead(config: TransformerConfig | RecurrentConfig) -> bool:
    """Whether what is said beside true tokens is not what would be written after them: later ones are visible."""
    return isinstance(config, TransformerConfig) and config.shape != "encoder" and not config.causal_mask


def likely_switch(config: TransformerConfig | RecurrentConfig, settings: Settings) -> str:
    """Which choice is the likeliest reason for a loss that diverges, as a sentence."""
    if settings.rate > 2:
        return f"Likely because of rate={settings.rate:g}: try 0.5."
    if isinstance(config, RecurrentConfig):
        return _rate_or_warm_up(settings)
    if config.norm_place == "post" and config.layers > 4 and settings.warmup < 100:
        return f"Likely because of norm_place=post at {config.layers} layers with warmup={settings.warmup}: try pre."
    if config.score == "dot" and config.positions != "t5":
        return f"Likely because of score=dot: products of {config.head_dim} dimensions are large. Try scaled."
    if not config.residual:
        return "Likely because of residual=off: nothing else brings gradients to the first layers."
    return _rate_or_warm_up(settings)


def _rate_or_warm_up(settings: Settings) -> str:
    return f"Likely because of rate={settings.rate:g}: try a lower one, or a longer warmup than {settings.warmup}."


@torch.no_grad()
def written_right(model: TextbookModel, inputs: dict[str, Tensor], labels: Tensor) -> int:
    """How many rows a decoder writes right by itself, the likeliest token each time and all of the text read again."""
    is_decoder = model.config.shape == "decoder"
    right = 0
    for row in range(len(labels)):
        wanted = labels[row][labels[row] != IGNORE]
        if is_decoder:
            start = int((labels[row] != IGNORE).nonzero()[0]) + 1
            given: dict[str, Tensor] = {}
            ids = inputs["input_ids"][row : row + 1, :start]
        else:
            given = {name: t[row : row + 1] for name, t in inputs.items() if not name.startswith("decoder_")}
            ids = torch.tensor([[START_ID]])
        for token in wanted:
            here = {"input_ids": ids} if is_decoder else {**given, "decoder_input_ids": ids}
            said = model(**here).logits[:, -1].argmax(-1)
            if int(said) != int(token):
                break
            ids = torch.cat([ids, said[:, None]], dim=1)
        else:
            right += 1
    return right


def _parts(named: dict[str, nn.Parameter], tied: bool) -> dict[str, list[nn.Parameter]]:
    """Parameters by the part of the model that they belong to: "encoder embedding", "decoder block 1", "head".

    Where they are tied, the matrix that embeds and gives the logits is "embedding and head".
    """
    found: dict[str, list[nn.Parameter]] = {}
    for name, parameter in named.items():
        words = name.split(".")
        if words[0] != "model":
            part = "head" if words[0] == "lm_head" else words[0].replace("_", " ")  # a recurrent model's own names
        elif tied and words[2] == "embedding":
            part = f"embedding{AND_HEAD}"
        elif words[2] == "layers":
            part = f"{words[1]} block {words[3]}"
        else:
            part = f"{words[1]} {'norm' if words[2] == 'norm' else 'embedding'}"
        found.setdefault(part, []).append(parameter)
    return found
