"""One figure that is asked for, and the run that it is read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.chat import Pair
from attention_models.protocol.facts import Fact
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.named_tokens import Named, position_of
from attention_models.protocol.values import Site, Token, site_tokens

T = TypeVar("T")


@dataclass
class Reading:
    """One fact, and the run that it is read from. `shared` is one dictionary of figures that are asked for together."""

    fact: Fact
    current: CurrentRun
    should_stop: Callable[[], bool]
    shared: dict[Any, Any] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.current.model

    @property
    def prompt(self) -> Any:
        fact = self.fact
        if fact.text is None:
            return self.current.text
        return fact.text if fact.second is None else Pair(fact.text, fact.second)

    @cached_property
    def trace(self) -> Trace:
        fact, own = self.fact, self.current.trace
        if fact.text is None and fact.target is None and not fact.interventions:
            return self.current.untouched(self.should_stop) if fact.unchanged else own
        found: Trace = self.get_or_compute(
            "run",
            lambda: run(
                self.model, self.prompt, target=self.target, interventions=self.changes, should_stop=self.should_stop
            ),
        )
        return found

    @property
    def changes(self) -> tuple[Intervention, ...]:
        """All that is changed in the model for its figure."""
        own = () if self.fact.unchanged else self.current.trace.interventions
        return (*own, *self.fact.interventions)

    def get_or_compute(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` returns, made once for figures in a row that read the same input.

        Nothing is kept of the input before: a run of another text may be large.
        """
        fact, shared = self.fact, self.shared
        read = fact.text, fact.second, fact.target, fact.unchanged, fact.interventions
        if shared.get("input") != read:
            shared.clear()
            shared["input"] = read
        if key not in shared:
            shared[key] = make()
        found: T = shared[key]
        return found

    @property
    def target(self) -> Any:
        """What a decoder beside an encoder is given."""
        fact = self.fact
        return fact.target if fact.text is not None or fact.target is not None else self.current.written

    @property
    def site(self) -> Site:
        fact, trace = self.fact, self.trace
        if fact.site is None:
            raise LookupError("it needs a layer")
        found = next((site for site in trace.sites if site.ref == fact.site), None)
        if found is None or not 0 <= fact.head < found.heads:
            raise LookupError(f"there is no head {fact.head} in layer {fact.site.layer} of the {fact.site.stack}")
        return found

    @property
    def query(self) -> int:
        """Where it is read: among the queries of its site, else among all tokens."""
        tokens = self.trace.tokens if self.fact.site is None else site_tokens(self.trace, self.site)[0]
        return self.place_of(self.fact.query, tokens)

    @property
    def key(self) -> int:
        return self.place_of(self.fact.key, site_tokens(self.trace, self.site)[1])

    @property
    def row(self) -> np.ndarray:
        """The weights of its query, (keys,) float64."""
        row: np.ndarray = self.trace.weights(self.site, self.fact.head, [self.query])[0].astype(np.float64)
        return row

    @property
    def matrix(self) -> np.ndarray:
        """All weights of its head, (queries, keys) float64."""
        if self.site.is_long:
            raise ValueError("the text is too long")
        return self.trace.weights(self.site, self.fact.head).astype(np.float64)

    @staticmethod
    def place_of(token: int | Named, tokens: tuple[Token, ...]) -> int:
        """Where a token stands that is named by its place or its word."""
        if isinstance(token, Named):
            found = position_of(token.word, token.place, tokens)
            if found is None:
                raise LookupError(f"there is no token “{token.word}” ({token.place})")
            return found
        if not 0 <= token < len(tokens):
            raise LookupError(f"there is no token {token}")
        return token
