"""A LoRA adapter's files (Hu et al. 2021, "LoRA"): what they say, before a tensor of them is read. Never a pickle.

peft writes `adapter_config.json` and `adapter_model.safetensors`: of every matrix W that was tuned two small ones, so
that W + scale * B A is the tuned one. DoRA (Liu et al. 2024) has a vector m beside them, and the tuned matrix is that
sum with each row made m long. Modules that were trained whole are there whole. What is tuned, and with which rank, is
taken from the names and shapes of the tensors; of patterns in the config only plain names are matched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attention_models.files.catalogue import WEIGHTS, folder_of
from attention_models.files.extras import ADAPTERS, install_command, lacking
from attention_models.files.names import SCHEME, is_elsewhere, title_of
from attention_models.files.weight_files import file_header, read_json, summary
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import ADAPTER, Tensors
from attention_models.protocol.values import AdapterInfo

Shape = tuple[int, ...]

CONFIG, TENSORS = ADAPTER
PICKLE = "adapter_model.bin"  # what older adapters have in the place of the tensors

PREFIX = "base_model.model."
"""What stands before the name of a parameter in the file."""

_KEY = re.compile(r"base_model\.model\.(?P<module>[\w.]+)\.lora_(?P<part>[AB])\.weight")
_MAGNITUDE = re.compile(r"base_model\.model\.(?P<module>[\w.]+)\.lora_magnitude_vector(?:\.weight)?")
_WHOLE = re.compile(r"base_model\.model\.(?P<parameter>[\w.]+)")
_PLAIN = re.compile(r"\^?[\w.]{1,300}")  # an expression of these takes no time to match
_MOST_RANK = 1 << 14
_MOST_PATTERNS = 1 << 12
_MERGE = "merge the two with peft's merge_and_unload"
_ABSENT: tuple[Any, ...] = (None, False, [], {}, "none")
_OTHERWISE = {  # settings by which more than this, or another formula, would make the weights
    "bias": "trains biases too",
    "lora_bias": "has biases of its own",
    "trainable_token_indices": "replaces rows of the embeddings",
    "target_parameters": "tunes parameters outside of linear layers",
    "layer_replication": "repeats layers",
    "alora_invocation_tokens": "begins in the middle of a text",
    "use_qalora": "is a QALoRA",
    "use_bdlora": "is a BD-LoRA",
    "kasa_config": "is a KaSA",
    "velora_config": "is a VeLoRA",
    "monteclora_config": "is a MonteCLoRA",
    "arrow_config": "is an Arrow of several adapters",
    "megatron_config": "was made for Megatron",
    "ensure_weight_tying": "ties what it replaces",
}
_UNDERSTOOD = frozenset(  # what changes no weight, or is read here
    (
        *("alpha_pattern", "auto_mapping", "base_model_name_or_path", "corda_config", "eva_config", "exclude_modules"),
        *("fan_in_fan_out", "inference_mode", "init_lora_weights", "layers_pattern", "layers_to_transform"),
        *("loftq_config", "lora_alpha", "lora_dropout", "lora_ga_config", "megatron_core", "modules_to_save"),
        *("peft_type", "peft_version", "qalora_group_size", "r", "rank_pattern", "revision", "runtime_config"),
        *("target_modules", "task_type", "use_dora", "use_rslora"),
    )
)


def has_adapter(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def is_adapter(folder: Path) -> bool:
    """Whether `folder` holds an adapter alone."""
    return has_adapter(folder) and not (folder / "config.json").is_file()


def headers_of_adapter(folder: Path) -> Tensors:
    """Names and shapes of its tensors. Raises CheckpointError where their file cannot be read."""
    return Tensors(file_header(folder / TENSORS), (folder / TENSORS).stat().st_size)


def read_adapter(folder: Path, shapes: Mapping[str, Shape] | None = None) -> AdapterInfo:
    """What the adapter in `folder` is; `why` says why it cannot be put on its model, "" where it can.

    Args:
        shapes: of its tensors, where their file is still to be fetched.

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
    try:
        _check_kind(folder, raw, kind, shapes is not None)
        shapes = file_header(folder / TENSORS) if shapes is None else shapes
        if rank is None or alpha is None or rank != int(rank):
            raise _Unread(f"{CONFIG} names no rank (r) and scale (lora_alpha)")
        parts = _parts(raw, shapes)
        modules = tuple(sorted(parts.ranks))
        of_modules = _alphas(raw.get("alpha_pattern"), modules, alpha)
        missing = lacking(ADAPTERS)
        if missing:
            raise _Unread(f"that needs {missing[0]}: {install_command(missing)}")
    except _Unread as error:
        return replace(found, why=str(error))
    except CheckpointError as error:
        return replace(found, why=summary(error).rstrip("."))

    def scale_of(alpha: float, rank: float) -> float:
        return alpha / (rank**0.5 if raw.get("use_rslora") else rank)

    return replace(
        found,
        rank=int(rank),
        alpha=alpha,
        scale=scale_of(alpha, rank),
        modules=modules,
        ranks=tuple(parts.ranks[name] for name in modules),
        scales=tuple(scale_of(of_modules[name], parts.ranks[name]) for name in modules),
        dora=bool(raw.get("use_dora")),
        replaced=tuple(sorted(parts.replaced)),
    )


def base_of(adapter: AdapterInfo) -> str | None:
    """The checkpoint that `adapter` was made for, as it is found on this computer; None where it is not."""
    if not adapter.base or is_elsewhere(adapter.base):
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
    if is_elsewhere(adapter.base):
        return CheckpointError(
            f"{adapter.name} is an adapter for {adapter.base}, a place on another computer, which was not touched. Put "
            "the adapter's two files into a copy of that model's folder on this computer, and open that."
        )
    of = f"for {adapter.base}, which is not" if adapter.base else "for a model that it does not name, so none is"
    return CheckpointError(
        f"{adapter.name} is an adapter, which is put on another model and is none by itself. It was made {of} on this "
        "computer. Fetch that model, or put this adapter's two files into its folder."
    )


class _Unread(Exception):
    """Why an adapter is not put on its model. The message is a clause."""


@dataclass(frozen=True, slots=True)
class _Parts:
    ranks: dict[str, int]  # of the modules that it tunes
    replaced: list[str]  # parameters that it has whole


def _check_kind(folder: Path, raw: dict[str, Any], kind: str, is_coming: bool) -> None:
    """Raises _Unread where the config says that something else than what is read here makes the weights."""
    if kind.upper() != "LORA":
        other = f"it is of the kind “{kind}”, and LoRA is read here"
        raise _Unread(other if kind else f"{CONFIG} does not say its kind")
    if not is_coming and not (folder / TENSORS).is_file():
        pickled = (folder / PICKLE).is_file()
        raise _Unread("its tensors lie in a pickle, which is never read here" if pickled else f"{TENSORS} is not there")
    for name, what in _OTHERWISE.items():
        if raw.get(name) not in _ABSENT:
            raise _Unread(f"it {what} ({name}), which is not read here: {_MERGE}")
    strange = next((name for name in raw if name not in _UNDERSTOOD and raw[name] not in _ABSENT), None)
    if strange is not None:
        raise _Unread(f"it sets {strange[:40]}, and what that changes is not known here: {_MERGE}")
    start = raw.get("init_lora_weights", True)
    if isinstance(start, str) and start.lower() not in ("gaussian", "eva", "orthogonal"):
        raise _Unread(f"it changed its model's own weights as it began ({start[:40]}): {_MERGE}")


def _parts(raw: dict[str, Any], shapes: Mapping[str, Shape]) -> _Parts:
    """What its tensors are. Raises _Unread where some of them are something else than the config promises."""
    ranks: dict[str, int] = {}
    magnitudes, replaced = set(), []
    saved = _names(raw.get("modules_to_save"))
    for name, shape in shapes.items():
        match, magnitude, whole = _KEY.fullmatch(name), _MAGNITUDE.fullmatch(name), _WHOLE.fullmatch(name)
        if match is not None:
            other = name.replace(f"lora_{match['part']}", "lora_B" if match["part"] == "A" else "lora_A")
            ranked = shape[0 if match["part"] == "A" else -1] if len(shape) == 2 else 0
            if other not in shapes or not 1 <= ranked <= _MOST_RANK or ranks.get(match["module"], ranked) != ranked:
                raise _Unread(f"{name} is no matrix of a pair of one rank")
            ranks[match["module"]] = ranked
        elif magnitude is not None and raw.get("use_dora"):
            magnitudes.add(magnitude["module"])
        elif whole is not None and any(f".{module}." in f".{whole['parameter']}" for module in saved):
            replaced.append(whole["parameter"])
        else:
            raise _Unread(f"it holds more than LoRA's two matrices ({name[:80]})")
    if not ranks:
        raise _Unread("it holds no tensors")
    if raw.get("use_dora") and magnitudes != set(ranks):
        apart = min(magnitudes ^ set(ranks))
        raise _Unread(f"it is a DoRA, and {apart} has no magnitude, or nothing beside it")
    lost = next((module for module in saved if not any(f".{module}." in f".{name}" for name in replaced)), None)
    if lost is not None:
        raise _Unread(f"it replaces {lost} (modules_to_save), which is not in its file")
    if any(name.rpartition(".")[0] in ranks for name in replaced):
        raise _Unread("it both tunes and replaces a module")
    pattern = raw.get("rank_pattern") or {}
    usual = {rank for rank in ranks.values() if rank != raw.get("r")}
    if not pattern and usual:
        raise _Unread(f"a pair of its matrices is not of the rank {raw.get('r')} that {CONFIG} names")
    return _Parts(ranks, replaced)


def _names(given: Any) -> tuple[str, ...]:
    """The modules that a setting lists. Raises _Unread where it lists something else."""
    if given in _ABSENT:
        return ()
    if not isinstance(given, list) or not all(isinstance(name, str) and _PLAIN.fullmatch(name) for name in given):
        raise _Unread(f"modules_to_save in {CONFIG} is no list of names of modules")
    return tuple(given)


def _alphas(pattern: Any, modules: Sequence[str], alpha: float) -> dict[str, float]:
    """The alpha of each module: that of the first name in `pattern` which its own ends with, as peft takes it."""
    if pattern in _ABSENT:
        return dict.fromkeys(modules, alpha)
    if not isinstance(pattern, dict) or len(pattern) > _MOST_PATTERNS:
        raise _Unread(f"alpha_pattern in {CONFIG} is no table of modules and numbers")
    matched: list[tuple[re.Pattern[str], float]] = []
    for key, value in pattern.items():
        own = _number(value, -1e6, 1e6)
        if own is None:
            raise _Unread(f"alpha_pattern in {CONFIG} names no number for {key[:40]}")
        if not _PLAIN.fullmatch(key):
            raise _Unread(f"alpha_pattern in {CONFIG} has an expression ({key[:40]}), and plain names are matched here")
        matched.append((re.compile(rf"(?:.*\.)?(?:{key})"), own))
    return {name: next((own for key, own in matched if key.fullmatch(name)), alpha) for name in modules}


def _number(value: Any, low: float, high: float) -> float | None:
    """`value` where it is a number from `low` to `high`, else None."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    return float(value) if is_number else None
