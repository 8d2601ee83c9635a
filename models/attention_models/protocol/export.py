"""All weights of a run in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest(RunRequest):
    """Write all weights of run `run` to the file `path`; of several texts those of the one that is shown.

    With `every_text` each text that ran with it has a file of its own, path-1 and so on. Answered by `Exported`.
    """

    lane: ClassVar[Lane] = Lane("export")
    activity: ClassVar[str] = "writing the weights"
    answered_by: ClassVar[str] = "attention_models.views.export:answer"
    path: str
    words: bool = False  # weights between words, not tokens
    every_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exported(Result):
    request: ExportRequest
    size: int  # bytes
    paths: tuple[str, ...] = ()  # of each file
