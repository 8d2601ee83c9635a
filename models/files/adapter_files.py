"""A LoRA adapter's files (Hu et al. 2021, "LoRA"): what they say, before a tensor of them is read. Never a pickle.

peft writes `adapter_config.json` and `adapter_model.safetensors`: of every matrix W that was tuned two small ones, so
that W + scale * B A is the tuned one. What it tunes is taken from the names of its
tensors; no pattern of the config is matched.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from models.files.catalogue import WEIGHTS, folder_of
from models.files.extras import ADAPTERS, install_command, lacking
from models.files.names import SCHEME, title_of
from models.files.weight_files import file_header, read_json, summary
from models.protocol.errors import CheckpointError
from models.protocol.values import AdapterInfo

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"

_KEY = re.compile(r"base_model\.model\.(?P<module>[\w.]+)\.lora_(?P<part>[AB])\.weight")
_MOST_RANK = 1 << 14
_ABSENT: tuple[Any, ...] = (None, False, [], {}, "none")
_OTHERWISE = {  # settings by which more than the two matrices, or another formula, would make the weights
    "bias": "trains biases too",
    "use_dora": "is a DoRA",
    "lora_bias": "has biases of its own",
    "modules_to_save": "replaces whole modules",
    "trainable_token_indices": "replaces rows of the embeddings",
    "target_parameters": "tunes parameters outside of linear layers",
    "layer_replication": "repeats layers",
    "alora_invocation_tokens": "begins in the middle of a text",
    "rank_pattern": "has a rank of its own for some layers",
    "alpha_pattern": "has a scale of its own for some layers",
    "use_qalora": "is a QALoRA",
    "megatron_config": "was made for Megatron",
}


def has_adapter(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def read_adapter(folder: Path) -> AdapterInfo:
    """What the adapter in `folder` is; `why` says why it cannot be put on its model, "" where it can.

    Raises:
        CheckpointError: files that cannot be read.
    """
    raw = read_json(folder / CONFIG, "")
    kind = str(raw.get("peft_type") or "")[:40]
    rank, alpha = _number(raw.get("r"), 1, _MOST_RANK), _number(raw.get("lora_alpha"), -1e6, 1e6)
    base = raw.get("base_model_name_or_path")
    found = AdapterInfo(
        name=title_of(folder),
        folder=str(folder),
        kind=kind or "adapter",
        base=base if isinstance(base, str) and len(base) < 1000 and base.isprintable() else "",
    )
    why = _unread(folder, raw, kind)
    if why:
        return replace(found, why=why)
    if rank is None or alpha is None or rank != int(rank):
        return replace(found, why=f"{CONFIG} names no rank (r) and scale (lora_alpha)")
    modules = tuple(sorted({match["module"] for match in map(_KEY.fullmatch, file_header(folder / TENSORS)) if match}))
    scale = alpha / (rank**0.5 if raw.get("use_rslora") else rank)
    missing = lacking(ADAPTERS)
    why = f"that needs {missing[0]}: {install_command(missing)}" if missing else ""
    return replace(found, rank=int(rank), alpha=alpha, scale=scale, modules=modules, why=why)


def base_of(adapter: AdapterInfo) -> str | None:
    """The checkpoint that `adapter` was made for, as it is found on this computer; None where it is not."""
    if not adapter.base:
        return None
    try:
        for path in (Path(adapter.folder) / adapter.base, Path(adapter.base)):
            if (path / "config.json").is_file():
                return str(path)
        if Path(adapter.base).name == adapter.base and (WEIGHTS / adapter.base).is_dir():
            return adapter.base
        reference = SCHEME + adapter.base
        return reference if folder_of(reference).is_dir() else None
    except (OSError, ValueError, CheckpointError):
        return None


def without_base(adapter: AdapterInfo) -> CheckpointError:
    of = f"for {adapter.base}, which is not" if adapter.base else "for a model that it does not name, so none is"
    return CheckpointError(
        f"{adapter.name} is an adapter, which is put on another model and is none by itself. It was made {of} on this "
        "computer. Fetch that model, or put this adapter's two files into its folder."
    )


def _unread(folder: Path, raw: dict[str, Any], kind: str) -> str:
    if kind.upper() != "LORA":
        return f"it is of the kind “{kind}”, and LoRA is read here" if kind else f"{CONFIG} does not say its kind"
    if not (folder / TENSORS).is_file():
        pickled = (folder / "adapter_model.bin").is_file()
        return "its tensors lie in a pickle, which is never read here" if pickled else f"{TENSORS} is not there"
    for name, what in _OTHERWISE.items():
        if raw.get(name) not in _ABSENT:
            return f"it {what} ({name}), which is not read here: merge the two with peft's merge_and_unload"
    start = raw.get("init_lora_weights", True)
    if isinstance(start, str) and start.lower() not in ("gaussian", "eva", "orthogonal"):
        began = f"it changed its model's own weights as it began ({start[:40]})"
        return f"{began}: merge the two with peft's merge_and_unload"
    try:
        shapes = file_header(folder / TENSORS)
    except CheckpointError as error:
        return summary(error).rstrip(".")
    strange = next((name for name in shapes if not _KEY.fullmatch(name)), None)
    if strange is not None or not shapes:
        return f"it holds more than LoRA's two matrices ({strange[:80]})" if strange else "it holds no tensors"
    return _misfit(shapes, raw.get("r"))


def _misfit(shapes: dict[str, tuple[int, ...]], rank: Any) -> str:
    for name, shape in shapes.items():
        match = _KEY.fullmatch(name)
        assert match is not None
        other = name.replace(f"lora_{match['part']}", "lora_B" if match["part"] == "A" else "lora_A")
        ranked = shape[0 if match["part"] == "A" else -1] if len(shape) == 2 else None
        if other not in shapes or ranked != rank:
            return f"{name} is not of the rank {rank} that {CONFIG} names"
    return ""


def _number(value: Any, low: float, high: float) -> float | None:
    """`value` where it is a number from `low` to `high`, else None."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    return float(value) if is_number else None
