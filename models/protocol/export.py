"""All weights of a run in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.protocol.request import Request, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest(Request):
    """Write all weights of run `run` to the .npz file `path`. Answered by `Exported`."""

    lane: ClassVar[str] = "export"
    run: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exported(Result):
    run: int
    path: str
    size: int  # bytes
