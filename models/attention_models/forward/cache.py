"""What functions that answer requests keep for the next request: values by their class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from attention_models.protocol.request import Cancelled

T = TypeVar("T")


class Cache:
    """At most one value of a class. Nobody relies on it being there: what is kept only saves time."""

    def __init__(self) -> None:
        self._values: dict[type, Any] = {}

    def get(self, kind: type[T]) -> T | None:
        """The value of this very class, None where there is none."""
        value: T | None = self._values.get(kind)
        return value

    def put(self, value: T) -> T:
        """Keep `value` in the place of any other of its class; returns it."""
        self._values[type(value)] = value
        return value

    def get_or_compute(self, kind: type[T], make: Callable[[], T]) -> T:
        """The value of this class, made where there is none."""
        value = self.get(kind)
        return self.put(make()) if value is None else value

    def drop(self, kind: type) -> None:
        """Keep no value of this class any longer."""
        self._values.pop(kind, None)

    @contextmanager
    def unless_it_fails(self, kind: type) -> Iterator[None]:
        """Around what is computed in parts: one that failed, for want of memory say, would pass for the last."""
        try:
            yield
        except Cancelled:  # between two parts
            raise
        except BaseException:
            self.drop(kind)
            raise
