"""Many copies of one run side by side, each changed in its own way: a sweep is a few passes over batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.batches import encode, real_keys
from attention_models.forward.block_hooks import Edits, Entering, hooked
from attention_models.forward.capture import MixEdit, PassingRecorder
from attention_models.forward.class_logits import logits_of
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.intervened import intervened
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Report, ShouldStop, never, silent
from attention_models.protocol.values import Site, SiteRef

UnitT = TypeVar("UnitT")

TOKENS_AT_ONCE = {"cpu": 512}
"""Tokens of all copies together that are run at once: more is no faster there, and less often says how far it is."""

TOKENS_AT_ONCE_ON_DEVICE = 8192

LOGIT_BYTES = 1 << 28
"""Of the logits of all positions of a batch."""


@dataclass(slots=True, eq=False)
class BatchedRuns:
    """What copies of a run are made of: the same inputs under the same interventions.

    `row` is the text of a batch that is copied.
    """

    model: Model
    trace: Trace
    inputs: Mapping[str, Tensor]  # of one text, (1, tokens)
    padded: bool = False  # it has padding, or may have
    _rows: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, trace: Trace, given: Any, target: Any) -> BatchedRuns:
        """Of `trace`, a run of `given`.

        Raises:
            InputError: the model's heads cannot be reached.
        """
        check_reachable(model)
        encoded = encode(model, given, target)
        batch = next(iter(encoded.inputs.values())).shape[0]
        row = slice(encoded.row, encoded.row + 1)
        inputs = {name: t[row] if t.shape[0] == batch else t for name, t in encoded.inputs.items()}
        return cls(model, trace, inputs, batch > 1)

    @classmethod
    def of_run(cls, run: CurrentRun) -> BatchedRuns:
        return cls.of(run.model, run.trace, run.text, run.written)

    @property
    def tokens(self) -> int:
        """Of one copy, the source's counted."""
        return len(self.trace.tokens) + len(self.trace.source)

    @property
    def logit_bytes(self) -> int:
        """Of all positions of one copy."""
        return 4 * len(self.trace.tokens) * self.model.info.vocabulary

    @property
    def at_once(self) -> int:
        """How many copies are run together."""
        tokens = TOKENS_AT_ONCE.get(self.model.device.type, TOKENS_AT_ONCE_ON_DEVICE)
        return max(1, min(tokens // max(1, self.tokens), LOGIT_BYTES // max(1, self.logit_bytes)))

    def run(
        self,
        count: int,
        mix_edits: Iterable[MixEdit] = (),
        edits: Edits | None = None,
        positions: list[int] | None = None,
        should_stop: ShouldStop = never,
        entering: Entering | None = None,
        weighing: Iterable[MixEdit] = (),
    ) -> Tensor:
        """Logits of `count` copies, (count, tokens, vocabulary), or of the positions wanted alone. Gradients pass.

        Args:
            mix_edits: applied to what the heads of each site give, after the run's own interventions.
            weighing: the same before them: in the place of what the attention weights gave.
            edits: applied to what calls within blocks give.
            positions: whose logits are wanted; all if None.
            entering: applied to the stream as it enters each block, (copies, tokens, width).

        Raises:
            Cancelled: `should_stop()` was true between two blocks.
        """
        model = self.model
        inputs = self._copied(count)
        real = real_keys(model, inputs) if self.padded else {}
        recorder = PassingRecorder(model.module_names, model.seq2seq, should_stop, self.trace.interventions, real=real)
        with (
            intervened(model, inputs, recorder) as changed,
            hooked(model, edits or {}, entering=entering),
        ):
            recorder.mix_edits = [*weighing, *recorder.mix_edits, *mix_edits]
            asked: dict[str, Any] = dict(changed)
            if positions is not None and model.accepts("logits_to_keep"):
                asked["logits_to_keep"] = torch.tensor(positions, device=model.device)
            out = model.forward(asked)
        logits = logits_of(out)
        assert logits is not None  # an aim was settled on it
        if positions is None or "logits_to_keep" in asked or logits.dim() == 2:
            return logits
        return logits[:, positions]

    def _copied(self, count: int) -> dict[str, Tensor]:
        if count not in self._rows:
            self._rows = {count: {name: t.expand(count, *t.shape[1:]).contiguous() for name, t in self.inputs.items()}}
        return self._rows[count]


def check_reachable(model: Model) -> None:
    """Raises InputError where no head's output can be changed."""
    if model.info.textbook:
        raise InputError(
            f"{model.info.name} is a recurrent model: it has no residual stream to take parts out of. "
            "Open a transformer."
        )
    if model.info.class_head is not None and model.info.class_head.of == "choice":
        raise InputError(
            f"{model.info.name} chooses among the texts that run together, so that copies of one cannot run beside it. "
            "Open a model that reads each text by itself."
        )
    if model.info.weights_only:
        raise InputError(f"{model.info.weights_only} So the output of a single head cannot be changed.")


def without_heads(units: Sequence[tuple[SiteRef, int]]) -> MixEdit:
    """Of copy i the head `units[i]` gives 0."""
    by_site: dict[SiteRef, list[tuple[int, int]]] = {}
    for row, (site, head) in enumerate(units):
        by_site.setdefault(site, []).append((row, head))

    def edit(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
        here = by_site.get(site.ref)
        if here is None:
            return out
        out = out.clone()  # (copies, heads, queries, value_dim)
        for row, head in here:
            out[row, head] = 0.0
        return out

    return edit


class Sweep(Generic[UnitT]):
    """Copies of a run, each changed for one of `units`, a batch at a time. Subclasses say in `_compute` how.

    `label` is what it is called while it runs.
    """

    label: ClassVar[str]

    def __init__(self, copies: BatchedRuns, units: Sequence[UnitT]) -> None:
        self._copies, self.units = copies, units
        self._did = 0

    @property
    def is_whole(self) -> bool:
        return self._did == len(self.units)

    @property
    def done(self) -> float:
        """The share of the units that were computed."""
        return self._did / max(1, len(self.units))

    def advance(self, should_stop: ShouldStop = never, report: Report = silent) -> None:
        """Run one batch more, if one is left.

        Raises:
            Cancelled: `should_stop()` was true between two blocks; what was done before stays.
        """
        start, units = self._did, self.units[self._did : self._did + self._copies.at_once]
        if not units:
            return
        blocks, asked = max(1, len(self._copies.model.blocks)), 0

        def ask() -> bool:  # after each block
            nonlocal asked
            asked += 1
            report(self.label, (start + min(1.0, asked / blocks) * len(units)) / len(self.units))
            return should_stop()

        self._compute(start, units, ask)
        self._did += len(units)

    def _compute(self, start: int, units: Sequence[UnitT], should_stop: ShouldStop) -> None:
        """Run copies for `units`, which come at `start`, and keep what is found."""
        raise NotImplementedError
