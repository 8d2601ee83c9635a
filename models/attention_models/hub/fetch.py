"""Fetches what is missing of a checkpoint into huggingface_hub's cache."""

from __future__ import annotations

from huggingface_hub import is_offline_mode

from attention_models.files.memory import in_bytes
from attention_models.files.names import parse
from attention_models.hub.context import HubContext
from attention_models.hub.errors import hub_errors_explained
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import FetchRequest, HubFetched, HubFile
from attention_models.protocol.request import Cancelled, Report, ShouldStop


def answer(request: FetchRequest, hub: HubContext) -> HubFetched:
    listing = request.listing
    name = parse(listing.reference)
    if request.offline or is_offline_mode():
        raise CheckpointError(f"The program is offline. Switch “Stay offline” off to fetch {name.repository}.")
    files = [hub.cache.with_bytes_here(name, listing.commit, file) for file in listing.files]
    # an attempt that broke off may have brought some since
    progress = _Progress(name.title, files, hub.should_stop, hub.report)
    with hub_errors_explained(name, hub.endpoint, hub.cache.folder):
        hub.cache.check_room(name, progress.missing)
        for file in sorted(files, key=lambda file: file.size):  # what is wrong shows early
            hub.transfer.fetch(name, listing.commit, file, hub.should_stop, progress)
        hub.cache.remember(name, listing.commit)
    return HubFetched(request=request, reference=listing.reference, folder=listing.folder)


class _Progress:
    """Says how many bytes of some files are here.

    Raises:
        Cancelled: from `has`, when `should_stop` says so.
    """

    def __init__(self, title: str, files: list[HubFile], should_stop: ShouldStop, report: Report) -> None:
        self._title = title
        self._size = sum(file.size for file in files)
        self._here = {file.name: file.here for file in files}
        self._should_stop = should_stop
        self._report = report

    @property
    def missing(self) -> int:
        return self._size - sum(self._here.values())

    def has(self, file: HubFile, count: int) -> None:
        if count == self._here[file.name]:
            return
        self._here[file.name] = count
        if self._should_stop():
            raise Cancelled
        self._say(f"Downloading {self._title}: {in_bytes(self._size - self.missing)} of {in_bytes(self._size)}")

    def waits_for(self, file: HubFile) -> None:
        self._say(f"Another program is fetching {file.name} of {self._title}: waiting for it")

    def _say(self, sentence: str) -> None:
        self._report(sentence, 1 - self.missing / max(1, self._size))
