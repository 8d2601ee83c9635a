"""Writes what is on screen as PyTorch: each kind of request names the function that does (`Request.printed_by`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from models.forward.context import Context
from models.forward.model import Model
from models.forward.trace import Trace
from models.protocol.cell import CellRequest
from models.protocol.errors import InputError
from models.protocol.request import Request
from models.protocol.scripts import ScriptRequest, ScriptView
from models.scripts.cell import cell_script
from models.scripts.writing import Script

Writer = Callable[[Request, Context], Script]


def answer(request: ScriptRequest, context: Context) -> ScriptView:
    """Raises InputError where it cannot be written; the sentence says why."""
    if not request.of.printed_by:
        raise InputError("What is on screen has no lines of PyTorch of its own.")
    module, _, name = request.of.printed_by.partition(":")
    writer: Writer = getattr(import_module(module), name)
    script = writer(request.of, context)
    return ScriptView(request=request, title=script.title, code=script.code())


def as_pytorch(model: Model, trace: Trace, site: object, head: int, query: int, key: int) -> str:
    """A script that computes one cell of `trace`, a run of `model`, from q and k on, and prints it.

    Args:
        site: a `Site` of the trace, or (stack, layer).

    Raises:
        IndexError: no such site, head, query or key.
        InputError: the model shows its weights alone.
    """
    if model.info.weights_only:
        raise InputError(model.info.weights_only)
    ref = trace.sites[trace.index(site)].ref  # type: ignore[arg-type]
    with model.adapter_as(trace.interventions):
        return cell_script(CellRequest(run=0, site=ref, head=head, query=query, key=key), model, trace).code()
