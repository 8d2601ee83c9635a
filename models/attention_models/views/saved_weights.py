"""Reads back what `save_weights` wrote. The file may be anybody's: no pickle is read, and everything is checked."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.values import Token
from attention_models.views.export_facts import FORMAT, interventions_of, tokens_of


@dataclass(frozen=True, slots=True)
class SavedWeights:
    """The weights of one run, in a file. The arrays stay there until they are asked for."""

    path: Path
    tokens: tuple[Token, ...]
    source: tuple[Token, ...]  # of the encoder, in an encoder-decoder model; else empty
    segment_ids: tuple[int, ...]  # of the tokens that are read; empty where the model knows none
    interventions: tuple[Intervention, ...]
    sites: Mapping[str, tuple[int, int, int]]  # "decoder.0": (heads, queries, keys)
    meta: Mapping[str, Any]  # all that the file says of itself

    @property
    def text(self) -> str | None:
        """What the tokens' offsets are of; None where ids or a picture were given."""
        given = self.meta["input"]
        return None if given is None else given["text"]

    @property
    def second(self) -> str | None:
        """Of a pair of texts: what the offsets of tokens of segment 1 are of."""
        given = self.meta["input"]
        return None if given is None else given["second"]

    @property
    def by_word(self) -> bool:
        """Whether queries and keys are words: a token and those after it which `continues` says go on with it."""
        return self.meta.get("words") is not None

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(token.id for token in self.tokens)

    def weights(self, stack: str, layer: int) -> np.ndarray:
        """Attention weights of a site, (heads, queries, keys) float32.

        Raises:
            KeyError: there is no such site.
            ExplorerError: the file is no longer what it was.
        """
        name = f"{stack}.{layer}"
        if name not in self.sites:
            raise KeyError(f"{self.path.name} has no {name}; it has {', '.join(self.sites)}.")
        array = _opened(self.path)(name)
        if array.dtype != np.float32 or array.shape != self.sites[name]:
            raise ExplorerError(f"{self.path.name} is damaged: {name} is not as its description says.")
        return array


def load_weights(path: str | Path) -> SavedWeights:
    """What is in a file that `save_weights` wrote, .npz or .safetensors.

    Raises:
        ExplorerError: no such file, another kind of file, or one of a later version of this program.
    """
    path = Path(path)
    try:
        meta = json.loads(_opened(path)("meta").item())
        if not isinstance(meta, dict) or not isinstance(meta.get("format"), int):
            raise ValueError("it does not describe itself")
        if meta["format"] > FORMAT:
            raise ExplorerError(
                f"{path.name} has format {meta['format']}, which is newer than this program: it reads up to {FORMAT}."
            )
        tokens, source = tokens_of(meta["tokens"]), tokens_of(meta["source_tokens"])
        read = meta["source_tokens"] or meta["tokens"]
        return SavedWeights(
            path=path,
            tokens=tokens,
            source=source,
            segment_ids=tuple(item["segment_id"] for item in read if item["segment_id"] is not None),
            interventions=interventions_of(meta["interventions"]),
            sites={site["name"]: (site["heads"], site["queries"], site["keys"]) for site in meta["sites"]},
            meta=meta,
        )
    except FileNotFoundError as cause:
        raise ExplorerError(f"There is no file {path}.") from cause
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as cause:
        raise ExplorerError(
            f"{path.name} does not hold weights that this program wrote. Save them again, or choose another file."
        ) from cause


def _opened(path: Path) -> Callable[[str], np.ndarray]:
    """What gives the arrays of a file by their names."""
    return _from_safetensors(path) if path.suffix.lower() == ".safetensors" else _from_npz(path)


def _from_npz(path: Path) -> Callable[[str], np.ndarray]:
    def read(name: str) -> np.ndarray:
        with open(path, "rb") as file:  # NumPy leaves one open that it cannot read
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            array: np.ndarray = found[name]
            return array

    return read


def _from_safetensors(path: Path) -> Callable[[str], np.ndarray]:
    from safetensors import SafetensorError, safe_open

    def read(name: str) -> np.ndarray:
        try:
            with safe_open(path, framework="numpy") as found:
                if name == "meta":
                    return np.array((found.metadata() or {})["meta"])
                array: np.ndarray = found.get_tensor(name)
                return array
        except SafetensorError as cause:
            raise ValueError(str(cause)) from cause

    return read
