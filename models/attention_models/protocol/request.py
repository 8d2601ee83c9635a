"""How work is called off, and how it says how far it is. No torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from attention_models.protocol.errors import NO_MEMORY
from attention_models.protocol.values import Placement, SiteRef

# What every request to the engine and every answer of it has in common: frozen values, no torch.
# The engine may answer from a thread, another process or another machine. A request stands beside its answer in the
# module of its subject, and says itself in which lane it waits, what to call the work, and which function answers it.


@dataclass(frozen=True, slots=True)
class Lane:
    """Where requests of one kind wait: one at most, and a newer one takes its place. Lanes of one name are the same.

    A newer request calls off the one that runs, unless its lane `finishes`: then that one is answered, and what its
    answer leads others to ask for, before the newest is begun. A load calls off everything.
    """

    name: str
    finishes: bool = field(default=False, compare=False)
    order: int = field(default=2, compare=False)  # those of a lower number are served first


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Two requests are equal where they ask for the same; `ticket`, which the mailbox sets, tells them apart.

    Attributes:
        lane: where it waits, and what a newer one does to it.
        activity: what is being done, as it stands after "while": "computing the weights of the head".
        answered_by: the function that answers it, as "package.module:name". The engine imports it when it is first
            needed and calls it with the request and an `attention_models.forward.context.Context`; it returns a
            `Result`.
        printed_by: the function that writes the answer as a PyTorch script, as "package.module:name", "" where there is
            none. It is called like that of `answered_by` and returns an `attention_models.scripts.script_text.Script`.
        no_memory: what to tell the person where memory runs out.
        outlives_model: whether its answer holds whatever model is open.
    """

    lane: ClassVar[Lane]
    activity: ClassVar[str] = "computing"
    answered_by: ClassVar[str]
    printed_by: ClassVar[str] = ""
    no_memory: ClassVar[str] = NO_MEMORY
    outlives_model: ClassVar[bool] = False
    ticket: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(Request):
    """About the run whose forward request had the ticket `run`. Its answer is shown while that run is."""

    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadOfRunRequest(RunRequest):
    """About one head of that run."""

    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """An answer. It holds what is new: what was asked stands in its `request`."""

    request: Request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure(Result):
    """`sentence` is for the person: what was wrong, where, what to do. `cause` is for the log."""

    sentence: str
    cause: str = ""
    cut_to: int | None = None  # a text too long for the model: how many of its characters fit
    of_target: bool = False  # that text is the target, not the source
    stale: bool = False  # asked about a run that is gone: nobody needs to hear of it
    no_figures: bool = False  # the run overflowed: nothing that is on screen is of what was asked for
    no_room: Placement | None = None  # where memory ran out: another device or number format may do


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(Result):
    """Work that takes longer than a moment says what it is doing; `fraction` is None where that is unknown."""

    label: str
    fraction: float | None = None


def answering(request: Request, engine: str) -> Callable[[Any, Any], Result]:
    """What `request.answered_by` names. It is called with the request and what `engine` works with.

    Raises:
        TypeError: the request names no function.
    """
    named = getattr(request, "answered_by", None)
    if named is None:
        raise TypeError(f"{engine} has no answer to a {type(request).__name__}.")
    return _function(named)


@cache
def _function(named: str) -> Callable[[Any, Any], Result]:
    """The function "package.module:name", imported when the first request comes that names it."""
    module, _, name = named.partition(":")
    function: Callable[[Any, Any], Result] = getattr(import_module(module), name)
    return function


ShouldStop = Callable[[], bool]
"""Asked between blocks of work; once true the work raises `Cancelled`."""


Report = Callable[[str, float | None], None]
"""Told what is being done, and the share that is done (None where that is unknown)."""


def never() -> bool:
    """The `ShouldStop` of work that nobody calls off."""
    return False


def silent(_words: str, _share: float | None) -> None:
    """The `Report` of work that nobody watches."""


class Cancelled(Exception):
    """The work was called off (`should_stop()` was true). Nobody waits for an answer."""
