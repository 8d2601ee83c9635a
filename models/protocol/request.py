"""What every request to the engine and every answer of it has in common: frozen values, no torch.

The engine may answer from a thread, another process or another machine. A `Request` names its lane; within a lane the
newest request wins (see `explorer.compute.mailbox`). A request stands beside its answer in the module of its subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.protocol.values import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`ticket` is set by the mailbox; a result whose ticket is no longer its lane's newest is dropped."""

    lane: ClassVar[str]
    ticket: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure(Result):
    """`sentence` is for the person: what was wrong, where, what to do. `cause` is for the log."""

    sentence: str
    cause: str = ""
    cut_to: int | None = None  # a text too long for the model: how many of its characters fit
    of_target: bool = False  # that text is the target, not the source
    stale: bool = False  # asked about a run that is gone: nobody needs to hear of it
    no_room: Placement | None = None  # where memory ran out: another device or number format may do


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(Result):
    """Work that takes longer than a moment says what it is doing; `fraction` is None where that is unknown."""

    label: str
    fraction: float | None = None
