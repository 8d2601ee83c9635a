"""transformers: every family, with its source, which its lazy loading reads to know what each module holds.

Left out: sources that its files were generated from (`modular_*`, never imported), its command line, and exporters.
"""

from PyInstaller.utils.hooks import collect_submodules


def _is_used(name: str) -> bool:
    parts = name.split(".")
    return not parts[-1].startswith(("modular_", "convert_")) and parts[1:2] not in (["cli"], ["exporters"])


hiddenimports = collect_submodules("transformers", filter=_is_used)
module_collection_mode = "pyz+py"
