"""Answers what a checkpoint is beside the engine, which may be at something that cannot be interrupted.

Nothing of a checkpoint is read here: a process of its own does that, also for those that ship with the program. Two
threads that build models at the same time would take torch's default number format from each other.
"""

from __future__ import annotations

from attention_models.opening.describe import described_elsewhere
from attention_models.protocol.errors import ExplorerError, cause_of
from attention_models.protocol.loading import DescribeRequest
from attention_models.protocol.request import Failure, Report, Request, Result, ShouldStop


class DescribingEngine:
    """Answers `DescribeRequest`, in a thread beside the engine's."""

    def run(self, request: Request, should_stop: ShouldStop, _report: Report) -> Result:
        """Answer `request`; a checkpoint that takes too much to read is a `Failure`.

        Raises:
            Cancelled: the work was called off.
        """
        if not isinstance(request, DescribeRequest):
            raise TypeError(f"{type(request).__name__} asks for no description.")
        try:
            return described_elsewhere(request, should_stop)
        except ExplorerError as error:
            return Failure(request=request, sentence=str(error), cause=cause_of(error))
