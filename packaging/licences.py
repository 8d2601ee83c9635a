"""The licences of everything in the bundle, collected from what its packages say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution

NAME = "THIRD-PARTY-LICENCES.md"
_TEXTS = ("licen", "copying", "notice", "copyright")

HEAD = """# Licences of what comes along

Qt and PySide6 are used under the GNU Lesser General Public License, version 3. In the folder of the installed program
they lie as libraries of their own (`_internal/PySide6`, `_internal/shiboken6`), and may be replaced there by other
builds of the same version: nothing of the program is linked to them otherwise. Their source: https://code.qt.io.
"""


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
            path = found.locate_file(file)
            yield path.read_text(encoding="utf-8", errors="replace").strip()  # type: ignore[attr-defined]


def collected(names: Iterable[str]) -> str:
    """One document: a list of all, then the texts, each once."""
    found = list(distributions(names))
    lines = [HEAD, *(f"- {one.name} {one.version}: {one.licence}" for one in found), ""]
    texts: dict[str, list[str]] = {}
    for one in found:
        for text in one.texts:
            texts.setdefault(text, []).append(one.name)
    for text, users in texts.items():
        fenced = text.replace("```", "'''")
        lines += [f"## {', '.join(dict.fromkeys(users))}", "", "```", fenced, "```", ""]
    return "\n".join(lines)
