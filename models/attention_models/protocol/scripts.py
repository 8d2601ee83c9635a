"""What is on screen as a short PyTorch script that can be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Request, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRequest(Request):
    """The lines that compute the answer to `of`, with the numbers that they start from. Answered by `ScriptView`."""

    lane: ClassVar[Lane] = Lane("view:script")
    activity: ClassVar[str] = "writing it as PyTorch"
    answered_by: ClassVar[str] = "attention_models.scripts.as_pytorch:answer"
    of: Request  # of a kind that names a function in `printed_by`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScriptView(Result):
    request: ScriptRequest
    title: str = ""  # what it computes: "story-gpt, decoder layer 5, head 5: how much …"
    code: str = ""  # Python; it prints what it computed beside what is on screen
    refusal: str = ""  # why there is none, in a sentence
