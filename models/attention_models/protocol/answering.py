"""The function that a request names as the one that answers it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from attention_models.protocol.request import Request, Result


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
