"""Asking where to save: the ending is put to the name first, and then asked whether what has that name may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtWidgets import QMessageBox, QWidget

from attention_explorer.widgets import asking
from attention_explorer.widgets.in_front import answer_of


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file that can be saved, like "Table" with ".csv"; `also` are other endings that it may have."""

    name: str
    ending: str
    also: tuple[str, ...] = ()

    @property
    def endings(self) -> tuple[str, ...]:
        return (self.ending, *self.also)

    @property
    def filter(self) -> str:
        return f"{self.name} ({' '.join(f'*{ending}' for ending in self.endings)})"


def with_ending(path: Path, kinds: Sequence[Kind], chosen: Kind) -> Path:
    """`path` as it is saved: with the ending of the `chosen` kind, where its own is that of none."""
    endings = {ending for kind in kinds for ending in kind.endings}
    return path if path.suffix.lower() in endings else path.with_name(f"{path.name}{chosen.ending}")


def ask_where_to_save(
    parent: QWidget,
    title: str,
    suggested: str,
    kinds: Sequence[Kind],
    named: Callable[[Path, Kind], Path] | None = None,
) -> Path | None:
    """Where a person wants a file, with its whole name; None where they leave the dialog.

    The dialog's own question is about what was typed, which may not be what is saved: "mine" is saved as mine.csv. So
    it asks nothing, and we ask about the name that will be there. Who answers no chooses again.

    Args:
        suggested: a name, or a path.
        kinds: what can be saved; the first is the one that the dialog begins with.
        named: what typed names become, instead of `with_ending`.

    Raises:
        ExplorerError: from `named`.
    """
    filters = {kind.filter: kind for kind in kinds}
    chosen = kinds[0]
    while True:
        typed, shown = asking.file_to_save(parent, title, suggested, ";;".join(filters), chosen.filter)
        if not typed:
            return None
        chosen = filters.get(shown, chosen)
        path = named(Path(typed), chosen) if named is not None else with_ending(Path(typed), kinds, chosen)
        if not path.exists() or may_replace(parent, title, path):
            return path
        if not parent.isVisible():  # its window was closed
            return None
        suggested = str(path)


def may_replace(parent: QWidget, title: str, path: Path) -> bool:
    """Whether what is at `path` may go."""
    box = QMessageBox(QMessageBox.Icon.Warning, title, f"{path.name} is there already.", parent=parent)
    box.setInformativeText(f"In {path.parent}. Replacing it overwrites what it holds.")
    replace = box.addButton("Replace", QMessageBox.ButtonRole.DestructiveRole)
    keep = box.addButton("Keep it", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(keep)
    box.setEscapeButton(keep)
    answer_of(box)
    return box.clickedButton() is replace
