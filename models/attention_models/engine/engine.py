"""Answers requests, one at a time, for one open model. Runs in a worker thread, but knows nothing of threads."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace

from transformers.utils import logging as transformers_logging

from attention_models.files import devices
from attention_models.forward.context import Context, Workspace
from attention_models.forward.model import Model
from attention_models.opening.load import placement_of
from attention_models.protocol.errors import (
    ExplorerError,
    InputError,
    NoRoomError,
    NotFiniteError,
    StaleRunError,
    cause_of,
)
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Cancelled, Failure, Report, Request, Result, ShouldStop, answering
from attention_models.protocol.values import AUTO, Placement


class Engine:
    """Holds the open model and its last run. A checkpoint, a text or a shortage of memory that fails is a `Failure`.

    A load that fails leaves the open model as it was; so does a text that the model cannot take. What a request does
    stands in the function that it names (`Request.answered_by`).
    """

    def __init__(self, adopted: Sequence[Model] = ()) -> None:
        """`adopted` are models that were handed over; they are opened by the reference that they have."""
        # both would write to a standard error that a windowed build does not have
        transformers_logging.disable_progress_bar()
        transformers_logging.set_verbosity_error()
        devices.set_threads()
        self.workspace = Workspace({model.info.reference: model for model in adopted})

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        """Answer `request`.

        Args:
            should_stop: polled between blocks of work; when true, `Cancelled` is raised.
            report: told what is being done and how far it is (0 to 1, or None where that is unknown).

        Raises:
            Cancelled: the work was called off.
            TypeError: the request names no function.
            Exception: a fault of the program, or a request for a head or position that the run does not have.
        """
        try:
            return answering(request, "The engine")(request, Context(self.workspace, should_stop, report))
        except Cancelled:
            raise
        except StaleRunError:
            return Failure(request=request, sentence="", stale=True)
        except InputError as error:
            return Failure(
                request=request,
                sentence=str(error),
                cause=cause_of(error),
                cut_to=error.cut_to,
                of_target=error.of_target,
                no_figures=isinstance(error, NotFiniteError),
            )
        except Exception as error:
            if not devices.is_out_of_memory(error):
                if not isinstance(error, ExplorerError):
                    raise
                no_room = self._placement(request) if isinstance(error, NoRoomError) else None
                return Failure(request=request, sentence=str(error), cause=cause_of(error), no_room=no_room)
            cause = "".join(traceback.format_exception(error))
        # here the error is gone, and with it the frames that held what did not fit
        devices.free()
        return Failure(request=request, sentence=self._no_room(request), cause=cause, no_room=self._placement(request))

    def _placement(self, request: Request) -> Placement:
        """Where `request` was worked on."""
        if self.workspace.model is not None and not isinstance(request, LoadRequest):
            return placement_of(self.workspace.model)
        asked = request.placement if isinstance(request, LoadRequest) else Placement()
        device, _ = devices.parse(asked)
        return replace(asked, device=AUTO if device is None else str(device))

    def _no_room(self, request: Request) -> str:
        if not isinstance(request, LoadRequest):
            return request.no_memory
        device = self._placement(request).device
        where = "over all devices" if device == AUTO else f"on {device}"
        what = f"{request.reference} in {request.placement.dtype} does not fit {where}"
        return f"{what}: there is not enough memory. Close other programs, or choose a smaller number format."
