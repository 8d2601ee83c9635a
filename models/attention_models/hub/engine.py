"""Answers requests to a hub that speaks Hugging Face's language, one at a time. Knows nothing of threads.

The cache, the address (HF_ENDPOINT) and the token are huggingface_hub's own: a token comes from HF_TOKEN or from
`hf auth login`, and is never read, shown or kept here. Only what opening needs is fetched, and never a pickle.
Nothing here imports torch.
"""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import constants

from attention_models.files.hub_cache import HubCache
from attention_models.hub.context import HubContext
from attention_models.hub.transfer import Transfer
from attention_models.protocol.errors import CheckpointError, cause_of
from attention_models.protocol.request import Failure, Report, Request, Result, ShouldStop, answering

TIMEOUT_SECONDS = 10.0  # for an answer to begin, and between two pieces of it


class HubEngine:
    """Answers `LookUpRequest` and `FetchRequest`, by the functions that they name."""

    def __init__(
        self, endpoint: str | None = None, cache: Path | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        """`endpoint` and `cache` are those of huggingface_hub where they are left out; `timeout` is in seconds."""
        self.endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self.cache = HubCache(cache)
        self.timeout = timeout
        self._transfer = Transfer(self.endpoint, self.cache, timeout)

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        """Answer `request`; a hub, a network or a disk that refuses is a `Failure`.

        Raises:
            Cancelled: the work was called off. What was fetched by then stays.
            TypeError: the request names no function.
        """
        try:
            hub = HubContext(self.endpoint, self.cache, self._transfer, should_stop, report)
            return answering(request, "A hub")(request, hub)
        except CheckpointError as error:
            return Failure(request=request, sentence=str(error), cause=cause_of(error))
