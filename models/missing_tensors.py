"""Which tensors of a model are not in its files, told from the names in their headers."""

from __future__ import annotations

import re
from collections.abc import Collection

from transformers import PreTrainedModel


def missing_tensors(empty: PreTrainedModel, in_files: Collection[str]) -> tuple[str, ...]:
    """The parameters of `empty`, on the meta device, that no tensor of the files becomes when transformers reads them.

    Where its way of renaming can not be followed nothing is said: loading finds out all the same.
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
    """Whether a parameter belongs to what stands on top of the layers."""
    prefix = empty.base_model_prefix
    return bool(prefix) and hasattr(empty, prefix) and not name.startswith(f"{prefix}.")


def _as_read(empty: PreTrainedModel, in_files: Collection[str]) -> set[str]:
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

    mapping = get_model_conversion_mapping(empty)
    renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
    converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
    if any(len(converter.target_patterns) > 1 for converter in converters):
        raise ValueError("a tensor becomes several, of which only one would be told")
    prefix, state = empty.base_model_prefix, empty.state_dict()
    renamed = {rename_source_key(name, renamings, converters, prefix, state)[0] for name in in_files}
    # a name that the model has is kept by transformers where a renaming leads nowhere
    return renamed | {rename_source_key(name, [], [], prefix, state)[0] for name in in_files}
