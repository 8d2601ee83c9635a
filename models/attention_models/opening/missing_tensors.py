"""Which tensors of a model are not in its files, or are others, told from the names and shapes in their headers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

Shape = tuple[int, ...]
Misshapen = tuple[str, Shape, Shape]
"""A parameter, the shape that its tensor has in the file, and the one that the config says."""


def missing_tensors(empty: PreTrainedModel, in_files: Collection[str]) -> tuple[str, ...]:
    """The parameters of `empty`, on the meta device, that no tensor of the files becomes when transformers reads them.

    Where its way of renaming cannot be followed nothing is said: loading finds out all the same.
    """
    try:
        there = _as_read(empty, in_files)
    except Exception:  # the mapping is transformers' own affair, and may move
        return ()
    aliases: dict[int, list[str]] = {}
    for name, parameter in empty.named_parameters(remove_duplicate=False):
        aliases.setdefault(id(parameter), []).append(name)  # tied ones need to be there once
    ignored = empty._keys_to_ignore_on_load_missing or ()
    missing = [names[0] for names in aliases.values() if not there.intersection(names)]
    return tuple(name for name in missing if not any(re.search(pattern, name) for pattern in ignored))


def is_of_head(empty: PreTrainedModel, name: str) -> bool:
    """Whether a parameter belongs to what stands on top of the layers, a pooler included."""
    prefix = empty.base_model_prefix
    if not prefix or not hasattr(empty, prefix):
        return False
    return not name.startswith(f"{prefix}.") or name.startswith(f"{prefix}.pooler.")


def misshapen_tensors(empty: PreTrainedModel, in_files: Mapping[str, Shape]) -> tuple[Misshapen, ...]:
    """The tensors of the files that have another shape than the parameter of `empty` which they become.

    Those that are put together or taken apart on the way are left for loading to check.
    """
    try:
        renamings, converters = _mapping(empty)
        prefix, state = empty.base_model_prefix, empty.state_dict()
        targets = {name: rename_source_key(name, renamings, converters, prefix, state) for name in in_files}
    except Exception:  # as above
        return ()
    plain = {name: target for name, (target, converter) in targets.items() if converter is None and target in state}
    pairs = [(target, in_files[name], tuple(state[target].shape)) for name, target in plain.items()]
    return tuple(sorted(pair for pair in pairs if pair[1] != pair[2]))


def _as_read(empty: PreTrainedModel, in_files: Collection[str]) -> set[str]:
    renamings, converters = _mapping(empty)
    if any(len(converter.target_patterns) > 1 for converter in converters):
        raise ValueError("a tensor becomes several, of which only one would be told")
    prefix, state = empty.base_model_prefix, empty.state_dict()
    renamed = {rename_source_key(name, renamings, converters, prefix, state)[0] for name in in_files}
    # a name that the model has is kept by transformers where a renaming leads nowhere
    return renamed | {rename_source_key(name, [], [], prefix, state)[0] for name in in_files}


def _mapping(empty: PreTrainedModel) -> tuple[list[WeightRenaming], list[WeightConverter]]:
    mapping = get_model_conversion_mapping(empty)
    return (
        [entry for entry in mapping if isinstance(entry, WeightRenaming)],
        [entry for entry in mapping if isinstance(entry, WeightConverter)],
    )
