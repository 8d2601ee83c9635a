"""A request declares itself: its lane, what is being done, and the function that answers it."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

from attention_models import protocol
from attention_models.engine.engine import Engine
from attention_models.protocol.hub import FetchRequest, LookUpRequest
from attention_models.protocol.request import Lane, Request, Result
from tests.models.asking import ask

MODULES = [import_module(f"{protocol.__name__}.{found.name}") for found in iter_modules(protocol.__path__)]
KINDS = sorted(
    {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Request) and hasattr(value, "lane")
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_function_that_answers_takes_the_request_and_returns_its_answer(kind: type[Request]) -> None:
    module, _, name = kind.answered_by.partition(":")
    function = getattr(import_module(module), name)
    taken, context = list(inspect.signature(function).parameters.values())
    names = {base.__name__ for base in kind.__mro__}
    assert taken.annotation in names
    assert context.annotation == ("HubContext" if kind in (LookUpRequest, FetchRequest) else "Context")
    answer = getattr(import_module(kind.__module__), inspect.signature(function).return_annotation)
    assert issubclass(answer, Result)
    assert answer.__annotations__["request"] == taken.annotation


def test_what_is_being_done_is_said_of_each_in_words_of_its_own() -> None:
    said = [kind.activity for kind in KINDS]
    assert len(set(said)) == len(said) > 20
    assert Request.activity not in said


def test_a_request_that_names_no_function_is_refused() -> None:
    class Unanswered(Request):
        lane = Lane("unanswered")

    with pytest.raises(TypeError, match="no answer to a Unanswered"):
        ask(Engine(), Unanswered())
