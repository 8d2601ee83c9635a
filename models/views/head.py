"""One head's weights, whole or one row of them."""

from __future__ import annotations

from models.forward.context import Context
from models.protocol.arrays import read_only
from models.protocol.head import HeadRequest, HeadView, RowRequest, RowView


def answer(request: HeadRequest, context: Context) -> HeadView:
    trace = context.run(request.run).trace
    masked = trace.masked(request.site, request.head)
    return HeadView(
        request=request,
        weights=read_only(trace.weights(request.site, request.head)),
        masked=None if masked is None else read_only(masked),
    )


def answer_row(request: RowRequest, context: Context) -> RowView:
    trace = context.run(request.run).trace
    masked = trace.masked(request.site, request.head, [request.query])
    return RowView(
        request=request,
        weights=read_only(trace.weights(request.site, request.head, [request.query])[0]),
        masked=None if masked is None else read_only(masked[0]),
    )
