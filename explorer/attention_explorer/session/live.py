"""What is under way beside the document: requests, their progress, and what learns. Undo and files pass it by."""

from __future__ import annotations

from dataclasses import dataclass

from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.training import TrainingState
from attention_models.protocol.request import Lane, Progress


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """It changes many times a second, and few panels show any of it: so the session has a signal for it alone."""

    busy: frozenset[Lane] = frozenset()  # lanes with unanswered requests
    progress: tuple[Progress, ...] = ()  # work that takes longer than a moment, newest last
    learning: TrainingState | None = None  # the training that was begun last
    experiment: ExperimentState | None = None  # that was run last

    @property
    def is_learning(self) -> bool:
        """Whether a model learns in this window."""
        return self.learning is not None and self.learning.is_under_way
