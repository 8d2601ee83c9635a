"""transformers: every family, with its source, which its lazy loading reads to know what each module holds.

Left out: sources that its files were generated from (`modular_*`, never imported), its command line, exporters, and
what prepares sound and films, or several kinds of input at once: the program gives models text, or a picture.
"""

from PyInstaller.utils.hooks import collect_submodules

_OTHER_INPUTS = ("processing_", "feature_extraction_", "video_processing_")


def _prepares_other_inputs(name: str) -> bool:
    """Whether it is such a file of a family; transformers itself imports those of `auto`."""
    parts = name.split(".")
    return len(parts) == 4 and parts[1] == "models" and parts[2] != "auto" and parts[3].startswith(_OTHER_INPUTS)


def _is_used(name: str) -> bool:
    parts = name.split(".")
    return not parts[-1].startswith(("modular_", "convert_")) and parts[1:2] not in (["cli"], ["exporters"])


_found = collect_submodules("transformers", filter=_is_used)
excludedimports = [name for name in _found if _prepares_other_inputs(name)]  # a family's __init__ imports all its files
hiddenimports = [name for name in _found if name not in excludedimports]
module_collection_mode = "pyz+py"
