"""What is asked of a hub, and what it answers: plain values.

`attention_models.hub.engine.HubEngine` answers, in a thread of its own.

The lane is not one of the model's: a download that takes minutes holds up no head that is shown meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from attention_models.protocol.request import Lane, Request, Result

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
"""Any of these files makes a tokenizer."""

ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
"""The two files of an adapter."""


@dataclass(frozen=True, slots=True)
class Tensors:
    """What the headers of all weight files say."""

    shapes: dict[str, tuple[int, ...]]
    file_bytes: int

    @property
    def parameters(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def filled(self) -> dict[str, tuple[int, ...]]:
        """The shapes of those that hold a number."""
        return {name: shape for name, shape in self.shapes.items() if 0 not in shape}


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a checkpoint on a hub."""

    name: str
    size: int  # bytes
    etag: str = ""  # its hash, by which the cache keeps it
    here: int = 0  # bytes of it that were fetched already


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpRequest(Request):
    """What a hub has under the name that a person typed. Answered by `HubListing`.

    Of one GGUF file the header is fetched, so that it can be described before the rest is.
    """

    lane: ClassVar[Lane] = Lane("hub")
    activity: ClassVar[str] = "asking the hub"
    answered_by: ClassVar[str] = "attention_models.hub.look_up:answer"
    text: str
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest(Request):
    """Fetch what is missing of `listing` into huggingface_hub's cache. Answered by `HubFetched`.

    Called off, it keeps what has come; the next one goes on from there.
    """

    lane: ClassVar[Lane] = Lane("hub")
    activity: ClassVar[str] = "fetching the checkpoint"
    answered_by: ClassVar[str] = "attention_models.hub.fetch:answer"
    listing: HubListing
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HubListing(Result):
    """A checkpoint as a hub describes it: only the files that are needed to open it.

    A repository whose only models are GGUF files has no `files` until the name says which of `ggufs` it is.
    """

    request: LookUpRequest
    reference: str  # "hf://owner/name", with "@revision" and ":file.gguf" where they were named
    commit: str
    files: tuple[HubFile, ...]
    folder: str  # in the cache, where config.json lies already
    cache: str  # the cache's own folder
    tensors: Tensors = field(repr=False)  # what the headers of the weight files say
    licence: str = ""
    safetensors: int = 0  # bytes of the weights that the name opens without a file; 0 where there are none
    ggufs: tuple[HubFile, ...] = ()  # that can be opened instead, the smallest first
    parts: int = 0  # GGUF files that cannot be, because a model was split into several
    gguf: str = ""  # the one that was named
    header: bytes = field(default=b"", repr=False)  # its first bytes, where it is not here whole

    @property
    def has_tokenizer(self) -> bool:
        return any(file.name in TOKENIZERS for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def missing(self) -> int:
        """Bytes that are still to be fetched."""
        return sum(file.size - file.here for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HubFetched(Result):
    request: FetchRequest
    reference: str
    folder: str
