"""What a classifier says: its classes, each token's label, or where an answer starts and ends."""

from __future__ import annotations

from attention_models.forward.classes import best_of_tokens, classes_at, ends_of_span, head_of
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.prediction import ClassesRequest, ClassesView


def answer(request: ClassesRequest, context: Context) -> ClassesView:
    run = context.run(request.run)
    return classes_view(request, run.model, run.trace)


def classes_view(request: ClassesRequest, model: Model, trace: Trace) -> ClassesView:
    """Raises IndexError where there is no such position, ExplorerError where the model tells no classes apart."""
    if not 0 <= request.position < len(trace.tokens):
        raise IndexError(f"Position {request.position} does not exist: the run has {len(trace.tokens)} tokens.")
    of = head_of(model).of
    starts, ends = ends_of_span(model, trace, request.top) if of == "span" else ((), ())
    return ClassesView(
        request=request,
        classes=classes_at(model, trace, request.position),
        tokens=best_of_tokens(model, trace),
        starts=starts,
        ends=ends,
        is_choice=of == "choice",
    )
