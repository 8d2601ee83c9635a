"""The licences of what the program stands on, collected from what the installed packages say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from attention_explorer.paths import resource

NAME = "THIRD-PARTY-LICENCES.md"
STANDS_ON = (
    *("PySide6-Essentials", "torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "httpx2"),
    *("numpy", "pyqtgraph", "pillow", "platformdirs", "msgspec", "filelock", "packaging", "psutil"),
    *("sacrebleu", "segno"),
)
"""The dependencies in pyproject.toml."""

QT = (
    "Qt and PySide6 are used under the GNU Lesser General Public License, version 3. They are libraries of their own, "
    "in the folders PySide6 and shiboken6 (of an installed program inside `_internal`), and may be replaced there by "
    "other builds of the same version: nothing of the program is linked to them otherwise. "
    "Their source: https://code.qt.io."
)
_HEAD = f"# Licences of what comes along\n\n{QT}\n"
_TEXTS = ("licen", "copying", "notice", "copyright")


@dataclass(frozen=True)
class Found:
    name: str
    version: str
    licence: str
    texts: tuple[str, ...]


def distributions(names: Iterable[str]) -> Iterator[Found]:
    """What installed distributions say of their licences."""
    for name in names:
        found = distribution(name)
        yield Found(found.metadata["Name"], found.version, licence_of(found), tuple(_texts(found)))


def licence_of(found: Distribution) -> str:
    """In a few words: its expression, else its classifiers, else what its first line says."""
    metadata = found.metadata
    if expression := metadata["License-Expression"]:
        return str(expression)
    listed = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License ::")
    ]
    said = (metadata["License"] or "").strip().splitlines()
    return " or ".join(listed) or (said[0] if said else "not stated")


def _texts(found: Distribution) -> Iterator[str]:
    for file in found.files or ():
        if ".dist-info" in str(file) and any(word in file.name.lower() for word in _TEXTS):
            path = Path(str(found.locate_file(file)))
            yield path.read_text(encoding="utf-8", errors="replace").strip()


def document() -> str:
    """All licences with their texts: of a bundle what was collected when it was built, else of what is installed."""
    try:
        return resource(NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return collected(installed(STANDS_ON))


def installed(requirements: Iterable[str]) -> list[str]:
    """Normalized names of the `requirements` that are installed, with all that they require, sorted."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    def applying(lines: Iterable[str], extras: Iterable[str] = ()) -> list[Requirement]:
        wanted = map(Requirement, lines)
        here = [{"extra": extra} for extra in ("", *extras)]
        return [one for one in wanted if one.marker is None or any(map(one.marker.evaluate, here))]

    found: set[str] = set()
    waiting = applying(requirements)
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found:
            continue
        try:
            required = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.add(name)
        waiting += applying(required, wanted.extras)
    return sorted(found)


def collected(names: Iterable[str]) -> str:
    """One document: a list of all, then the texts, each once."""
    found = list(distributions(names))
    lines = [_HEAD, *(f"- {one.name} {one.version}: {one.licence}" for one in found), ""]
    texts: dict[str, list[str]] = {}
    for one in found:
        for text in one.texts:
            texts.setdefault(text, []).append(one.name)
    for text, users in texts.items():
        lines += chapter(", ".join(dict.fromkeys(users)), text)
    return "\n".join(lines)


def chapter(whose: str, text: str) -> list[str]:
    """Lines of Markdown that show a licence as it is."""
    return [f"## {whose}", "", "```", text.replace("```", "'''"), "```", ""]
