"""Writes what is on screen as PyTorch: each kind of request names the function that does (`Request.printed_by`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.forward.trace import SiteLike, Trace
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Request
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.scripts.cell import cell_script
from attention_models.scripts.head import head_script
from attention_models.scripts.next_token import next_token_script
from attention_models.scripts.script_text import Script

Writer = Callable[[Request, Context], Script]


def answer(request: ScriptRequest, context: Context) -> ScriptView:
    """Raises InputError where it cannot be written; the sentence says why."""
    if not request.of.printed_by:
        raise InputError("What is on screen has no lines of PyTorch of its own.")
    module, _, name = request.of.printed_by.partition(":")
    writer: Writer = getattr(import_module(module), name)
    script = writer(request.of, context)
    return ScriptView(request=request, title=script.title, code=script.code())


def as_pytorch(
    model: Model,
    trace: Trace,
    site: SiteLike | None = None,
    head: int = 0,
    query: int | None = None,
    key: int | None = None,
) -> str:
    """A script that computes a part of `trace`, a run of `model`, and prints it beside what the program shows.

    With `site`, `head`, `query` and `key` it is one cell, from q and k on; without a `key` all weights of the head;
    without a `site` what the model says at `query`, or at the last token.

    Args:
        site: a `Site` of the trace, its index, or (stack, layer).

    Raises:
        IndexError: no such site, head, query or key.
        InputError: the model shows its weights alone, or the script would be too long to be read.
    """
    if site is None:
        return next_token_script(model, trace, answering_position(model, trace) if query is None else query).code()
    ref = trace.sites[trace.index(site)].ref
    if query is None or key is None:
        return head_script(model, trace, ref, head).code()
    return cell_script(CellRequest(run=0, site=ref, head=head, query=query, key=key), model, trace).code()
