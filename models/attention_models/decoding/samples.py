"""Several texts written side by side after one prompt, each with draws of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from attention_models.decoding.cached_run import Run
from attention_models.decoding.choosing import Choice, choose, end_ids
from attention_models.decoding.generation_config import NO_RULES, GenerationConfigProcessors
from attention_models.forward.current_run import ReadAlong
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.decoding import DecodeSettings


@dataclass(frozen=True, slots=True, eq=False)
class ContinuationRun:
    """Such a run, with what its decoder was given (None where there is no decoder beside the stack that reads)."""

    trace: Trace
    target: list[int] | None
    read: ReadAlong


class Samples:
    """The samples that still write, as sequences of one run. Sample i draws as `DecodeSettings` says of `sample` i."""

    def __init__(
        self,
        model: Model,
        run: Run,
        settings: DecodeSettings,
        numbers: tuple[int, ...],
        own: GenerationConfigProcessors = NO_RULES,
    ) -> None:
        self.model, self.run, self.settings, self.own = model, run, settings, own
        self._ends = end_ids(model)
        self._rows = dict.fromkeys(numbers, 0)  # sample: its sequence; all go on from the first one

    @property
    def writing(self) -> tuple[int, ...]:
        """The samples that have not ended."""
        return tuple(self._rows)

    @torch.no_grad()
    def advance(self, number: int, top: int = 10) -> dict[int, Choice]:
        """The token of step `number` of each sample that still writes.

        Raises:
            InputError: the settings leave one of them no token to choose from.
        """
        logits, ids = self.run.logits().cpu(), self.run.ids.cpu()  # (sequences, vocabulary), (sequences, tokens)
        choices = {
            sample: choose(
                self.model,
                logits[row : row + 1],
                ids[row : row + 1],
                replace(self.settings, sample=sample),
                number,
                top,
                own=self.own,
            )
            for sample, row in self._rows.items()
        }
        self.append({sample: choice.token for sample, choice in choices.items() if choice.token not in self._ends})
        return choices

    def append(self, tokens: dict[int, int]) -> None:
        """Go on with these samples alone, each with its token."""
        sources = [self._rows[sample] for sample in tokens]
        if tokens:
            device = self.run.ids.device
            as_they_are = sources == list(range(len(self.run.ids)))
            self.run.append(
                torch.tensor(list(tokens.values()), device=device),
                None if as_they_are else torch.tensor(sources, device=device),
            )
        self._rows = {sample: row for row, sample in enumerate(tokens)}
