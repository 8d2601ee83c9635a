"""transformers: every family, with its source, which its lazy loading reads to know what each module holds.

Left out: sources that its files were generated from (`modular_*`, never imported), its command line, exporters, and
what prepares sound and films, or several kinds of input at once: the program gives models text, or a picture.
"""

import json
from pathlib import Path

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

# Of most families only the source: compiled besides, all of them take 14 MB that hardly compress. It is compiled when a
# checkpoint of the family is opened, in some tenths of a second; the families that are shipped come compiled.
_COMPILED_WHEN_USED = ("modeling_", "image_processing_", "generation_")


def _families_shipped() -> set[str]:
    configs = Path(__file__).resolve().parents[2].glob("models/attention_models/weights/*/config.json")
    return {json.loads(path.read_text(encoding="utf-8"))["model_type"] for path in configs}


_compiled = {"auto", *_families_shipped()}


def _is_source_alone(name: str) -> bool:
    parts = name.split(".")
    is_of_family = len(parts) == 4 and parts[1] == "models" and parts[2] not in _compiled
    return is_of_family and parts[3].startswith(_COMPILED_WHEN_USED)


module_collection_mode = {
    "transformers": "pyz+py",
    **{name: "py" for name in hiddenimports if _is_source_alone(name)},
}
