"""A prompt and what the model wrote after it, run as one text."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.forward.current_run import ReadAlong
from attention_models.forward.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class ContinuationRun:
    """Such a run, with what its decoder was given (None where there is no decoder beside the stack that reads)."""

    trace: Trace
    target: list[int] | None
    read: ReadAlong
