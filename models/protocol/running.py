"""Running the open model on a text, a conversation or a picture: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.protocol.chat import Prompt
from models.protocol.interventions import Intervention
from models.protocol.request import Lane, Request, Result
from models.protocol.values import SeenPicture, Site, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRequest(Request):
    """Run the open model on a text or a conversation, with what is to be changed. Answered by `Ran`."""

    lane: ClassVar[Lane] = Lane("forward", order=1)
    activity: ClassVar[str] = "running the model on the text"
    answered_by: ClassVar[str] = "models.engine.running:answer"
    text: Prompt
    interventions: tuple[Intervention, ...] = ()
    target: str | None = None  # for the decoder of an encoder-decoder model; None lets it write by beam search
    picture: str = ""  # what a vision model looks at, in place of the text: a path, or "sample:NAME"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ran(Result):
    """A forward pass that ended: `run` names it in every later request."""

    request: ForwardRequest
    text: Prompt
    tokens: tuple[Token, ...]
    sites: tuple[Site, ...]
    masks: tuple[int, ...]  # positions of mask tokens, empty for models without them
    interventions: tuple[Intervention, ...] = ()  # what was changed in this run
    target: str | None = None  # as asked for
    source: tuple[Token, ...] = ()  # of the encoder, in an encoder-decoder model
    picture: str = ""  # as asked for
    seen: SeenPicture | None = None  # what a vision model saw
    written: str = ""  # what its decoder said: `target`, or what it wrote itself
    seconds: float
    trace_bytes: int

    @property
    def run(self) -> int:
        return self.request.ticket
