"""How a checkpoint of sentence-transformers makes one vector of its tokens, read from the files beside it.

Its `modules.json` lists what follows the transformer: a pooling, whose settings lie in a folder of its own, mostly a
normalisation, at times a further layer. Reimers and Gurevych 2019, "Sentence-BERT".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PoolingMode = Literal["first", "max", "mean", "mean_sqrt", "weighted", "last"]

# in the order in which several are joined
_MODES: dict[str, PoolingMode] = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt",
    "weightedmean": "weighted",
    "lasttoken": "last",
}
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_BYTES = 64 * 1024
_DEFAULT_FOLDER = "1_Pooling"


@dataclass(frozen=True, slots=True)
class OwnPooling:
    modes: tuple[PoolingMode, ...]  # of which the results are joined end to end
    normalized: bool  # the vector is brought to length 1
    left_out: tuple[str, ...] = ()  # layers that follow and have weights of their own: "Dense"


def own_pooling(folder: Path) -> OwnPooling | None:
    """The pooling that the files in `folder` describe; None where they describe none. Never raises."""
    listed = _read(folder / "modules.json")
    modules = [module for module in listed if isinstance(module, dict)] if isinstance(listed, list) else []
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if modules and "Pooling" not in kinds:
        return None
    place = str(modules[kinds.index("Pooling")].get("path", "")) if modules else _DEFAULT_FOLDER
    if not re.fullmatch(r"\w+", place):  # a name within the folder, and no path that leads out of it
        return None
    settings = _read(folder / place / "config.json")
    modes = _modes(settings) if isinstance(settings, dict) else ()
    if not modes:
        return None
    after = kinds[kinds.index("Pooling") + 1 :] if "Pooling" in kinds else []
    return OwnPooling(modes, "Normalize" in after, tuple(kind for kind in after if kind != "Normalize"))


def _modes(settings: dict[str, Any]) -> tuple[PoolingMode, ...]:
    named = settings.get("pooling_mode")  # newer files name it, older ones have a flag for each
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    names = names or [name for flag, name in _FLAGS.items() if settings.get(flag) is True]
    return tuple(mode for name, mode in _MODES.items() if name in names)


def _read(path: Path) -> Any:
    try:
        if path.is_file() and path.stat().st_size <= _BYTES:
            return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        pass
    return None
