"""What is measured of a training that is one of several side by side."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.capture import Recorder, recording
from attention_models.roles.counting import Asked, Tally, visible_cells
from attention_models.roles.patterns import CELLS
from attention_models.roles.token_features import TokenFeatures
from attention_models.textbook.tokenizer import PAD_ID, UNKNOWN_ID
from attention_models.textbook.transformer import IGNORE
from attention_models.training.rows import Batch, TextRows
from attention_models.training.training import Training
from attention_models.training.training_loop import HeldOut

LEARNED = 0.9  # of the tokens of a batch are right
LONGER = 3  # times the length that was trained
_SMOOTHED = 10  # steps
_LAST = 20  # steps whose loss is averaged
_MEASURED_ROWS = 200
_BINS = 10


@dataclass(slots=True)
class Learner:
    """A training and what was noted of it step by step."""

    name: str
    training: Training
    losses: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)  # part of a batch's tokens
    seconds: list[float] = field(default_factory=list)  # of processor time
    learned_after: tuple[int, float] | None = None  # steps and seconds
    weight_before: float = math.nan
    stopped: str = ""  # why, where it could not go on

    def note(self, loss: float, right: float, seconds: float) -> None:
        self.losses.append(loss)
        self.right.append(right)
        self.seconds.append(seconds)
        if self.learned_after is None and len(self.right) >= _SMOOTHED and _mean(self.right[-_SMOOTHED:]) >= LEARNED:
            self.learned_after = len(self.right), sum(self.seconds)

    @property
    def held_out(self) -> HeldOut:
        """Measured at the step where it stands."""
        known = self.training.held_out
        if known and known[-1].step == self.training.step_number:
            return known[-1]
        return self.training.measure()


def measure(name: str, learner: Learner) -> float:
    """One of `attention_models.training.prepared.MEASURES`; NaN: not measurable; infinite: never reached."""
    return _MEASURES[name](learner)


# ------------------------------------------------------------------ curves


def _training_loss(learner: Learner) -> float:
    return _mean(learner.losses[-_LAST:])


@torch.no_grad()
def _beside_frequencies(learner: Learner) -> float:
    """Nats a token: 0 where a model has learned how often each token occurs and nothing else, below where more."""
    batch = learner.training.rows.held_out(_MEASURED_ROWS)
    labels = batch.labels[batch.labels != IGNORE]
    loss = torch.nn.functional.cross_entropy(_logits(learner, batch)[batch.labels != IGNORE].double(), labels)
    shares = torch.bincount(labels).double() / len(labels)
    return float(loss - torch.special.entr(shares).sum())


def _steps_to_learn(learner: Learner) -> float:
    return math.inf if learner.learned_after is None else learner.learned_after[0]


def _seconds_to_learn(learner: Learner) -> float:
    return math.inf if learner.learned_after is None else learner.learned_after[1]


def _milliseconds(learner: Learner) -> float:
    return 1000 * statistics.median(learner.seconds) if learner.seconds else math.nan


def _middle_half(learner: Learner) -> float:
    """A curve that climbs evenly takes 0.5 of the steps for it; one that jumps, next to none."""
    right = learner.right
    smooth = [_mean(right[i : i + _SMOOTHED]) for i in range(len(right) - _SMOOTHED + 1)]
    if not smooth or max(smooth) <= min(smooth):
        return math.nan
    least, gained = min(smooth), max(smooth) - min(smooth)
    three_quarters = next(i for i, value in enumerate(smooth) if value >= least + 0.75 * gained)
    below = [i for i in range(three_quarters) if smooth[i] <= least + 0.25 * gained]
    return (three_quarters - below[-1]) / len(right) if below else 0.0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


# ------------------------------------------------------------------ how sure the model is


@torch.no_grad()
def _sure_and_right(learner: Learner) -> tuple[Tensor, Tensor]:
    """Of each held-out token the probability of the model's first choice, and whether that is right: (tokens,) each."""
    batch = learner.training.rows.held_out(_MEASURED_ROWS)
    logits = _logits(learner, batch)
    kept = batch.labels != IGNORE
    sure, chosen = torch.softmax(logits[kept].double(), dim=-1).max(dim=-1)
    return sure, (chosen == batch.labels[kept]).double()


def _overconfidence(learner: Learner) -> float:
    sure, right = _sure_and_right(learner)
    return float((sure - right).mean())


def _calibration_error(learner: Learner) -> float:
    """Guo et al. 2017, section 2: the expected calibration error."""
    return calibration_error(*_sure_and_right(learner))


def calibration_error(sure: Tensor, right: Tensor) -> float:
    """Of probabilities and of 0 or 1, (tokens,) each: |how sure - how often right| of each bin, by its tokens."""
    bins = (sure * _BINS).long().clamp(max=_BINS - 1)
    apart = torch.zeros(_BINS, dtype=torch.float64).index_add_(0, bins, sure - right)
    return float(apart.abs().sum() / len(sure))


@torch.no_grad()
def _logits(learner: Learner, batch: Batch) -> Tensor:
    model = learner.training.model
    model.eval()
    logits: Tensor = model(**batch.inputs).logits
    model.train()
    return logits


# ------------------------------------------------------------------ longer rows


def _at_places(learner: Learner, first: float, last: float) -> float:
    """Nats a token at the places from `first` to `last`, in units of the trained length."""
    rows = learner.training.rows
    if not isinstance(rows, TextRows):
        return math.nan
    trained = rows.window
    batch = rows.longer(LONGER * trained, _MEASURED_ROWS)
    places = slice(int(first * trained), int(last * trained))
    logits = _logits(learner, batch)[:, places]
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels[:, places].flatten()))


# ------------------------------------------------------------------ what heads do


@torch.no_grad()
def _attentions(learner: Learner, batch: Batch) -> Iterator[AttentionInputs]:
    model = learner.training.model
    with recording(Recorder({module: name for name, module in model.named_modules()})) as recorder:
        _logits(learner, batch)
    yield from recorder.inputs


def largest_weight(learner: Learner) -> float:
    """The largest of a query's weights, the mean over queries that see several keys, heads and layers."""
    batch = learner.training.rows.held_out(_LAST)
    found = []
    for x in _attentions(learner, batch):
        weights = attention.weights(x)  # (rows, heads, queries, keys)
        several = visible_cells(x, slice(0, x.queries), slice(0, x.keys)).sum(dim=-1) > 1
        found.append(weights.max(dim=-1).values[several.expand(weights.shape[:3])])
    return float(torch.cat(found).mean())


def _prefix_match(learner: Learner) -> float:
    """The role “induction” of `attention_models.roles`, of the head that has most of it."""
    batch = learner.training.rows.held_out(_MEASURED_ROWS)
    ids = batch.inputs["input_ids"]
    real = ids != PAD_ID
    ids = torch.where(ids > UNKNOWN_ID, ids, -1)  # what stands around a text is no copy of anything
    nothing = torch.zeros_like(real)
    side = TokenFeatures(ids, ids, real, nothing, nothing, real.int().argmax(dim=1))
    best = math.nan
    for x in _attentions(learner, batch):
        rows, keys = slice(0, x.queries), slice(0, x.keys)
        cells = CELLS["induction"](side, side, rows, keys) & (ids >= 0)[:, :, None]
        tally = Tally(1, x.heads)
        tally.add(Asked.of(cells[None], visible_cells(x, rows, keys), real), attention.weights(x))
        best = float(max(best, *tally.scores[0])) if best == best else float(tally.scores[0].max())
    return best


_MEASURES: dict[str, Callable[[Learner], float]] = {
    "sequences right": lambda learner: learner.held_out.sequences_right,
    "tokens right": lambda learner: learner.held_out.tokens_right,
    "held-out loss": lambda learner: learner.held_out.loss,
    "training loss": _training_loss,
    "loss beside frequencies": _beside_frequencies,
    "steps to learn": _steps_to_learn,
    "seconds to learn": _seconds_to_learn,
    "milliseconds a step": _milliseconds,
    "largest weight before training": lambda learner: learner.weight_before,
    "overconfidence": _overconfidence,
    "calibration error": _calibration_error,
    "loss on longer rows": lambda learner: _at_places(learner, 1.0, LONGER),
    "loss at the trained length": lambda learner: _at_places(learner, 0.75, 1.0),
    "times the trained loss": lambda learner: _at_places(learner, 1.0, LONGER) / _at_places(learner, 0.75, 1.0),
    "prefix-match score": _prefix_match,
    "middle half": _middle_half,
}
