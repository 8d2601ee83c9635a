"""What functions that answer requests to a hub work with."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.files.hub_cache import HubCache
from attention_models.hub.transfer import Transfer
from attention_models.protocol.request import Report, ShouldStop


@dataclass(frozen=True, slots=True, eq=False)
class HubContext:
    """For one request.

    Attributes:
        endpoint: the hub's address.
        cache: huggingface_hub's own.
        should_stop: to be polled between blocks of work; once true, raise `Cancelled`.
        report: to be told what is being done, and the share that is done (None where that is unknown).
    """

    endpoint: str
    cache: HubCache
    transfer: Transfer
    should_stop: ShouldStop
    report: Report
