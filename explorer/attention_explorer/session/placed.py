"""What examples and steps of lessons say of a place: a head, and tokens by their words."""

from __future__ import annotations

from typing import Protocol

from attention_models.protocol.interventions import Intervention
from attention_models.protocol.values import SiteRef


class Placed(Protocol):
    """A cell of a head, for whichever run is on screen when its tokens are known."""

    @property
    def site(self) -> SiteRef | None: ...
    @property
    def head(self) -> int: ...
    @property
    def query(self) -> str | None: ...
    @property
    def query_place(self) -> int: ...  # which of those alike, from 1
    @property
    def key(self) -> str | None: ...
    @property
    def key_place(self) -> int: ...
    @property
    def blocks(self) -> bool: ...  # the cell is masked at its head
    @property
    def everywhere(self) -> tuple[Intervention, ...]: ...  # what is changed for which no token needs to be known
