"""An engine asked directly, without a worker."""

from __future__ import annotations

from collections.abc import Callable

from attention_models.engine.engine import Engine
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Failure, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef

SITE = SiteRef("decoder", 3)


def never() -> bool:
    return False


def silent(_label: str, _fraction: float | None) -> None:
    pass


def ask(engine: Engine, request: Request, should_stop: Callable[[], bool] = never) -> Result:
    result = engine.run(request, should_stop, silent)
    assert result.request is request
    return result


def opened(reference: str) -> Engine:
    engine = Engine()
    assert isinstance(ask(engine, LoadRequest(ticket=1, reference=reference)), Loaded)
    return engine


def forward(engine: Engine, text: str, ticket: int = 2) -> Ran:
    ran = ask(engine, ForwardRequest(inputs=RunInputs(text), ticket=ticket))
    assert isinstance(ran, Ran), ran
    return ran


def failure_of(engine: Engine, request: Request) -> Failure:
    failure = ask(engine, request)
    assert isinstance(failure, Failure)
    return failure


def still_holds(engine: Engine, run_ticket: int) -> bool:
    return isinstance(ask(engine, HeadRequest(run=run_ticket, site=SITE, head=0)), HeadView)
