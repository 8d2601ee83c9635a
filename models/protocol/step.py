"""One more token after a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.protocol.chat import Prompt
from models.protocol.request import Lane, Result, RunRequest
from models.protocol.values import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest(RunRequest):
    """Let the model write one more token after run `run` (or fill its surest mask). Answered by `Stepped`."""

    lane: ClassVar[Lane] = Lane("decode")
    activity: ClassVar[str] = "letting the model write a token"
    answered_by: ClassVar[str] = "models.decoding.next_token:answer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stepped(Result):
    """The text with the model's choice in it; `ended` where the model chose to end the text instead."""

    request: StepRequest
    text: Prompt
    chosen: Candidate
    ended: bool = False
    target: str | None = None  # as in the document, with the token in it where the model writes there
