"""Asking where to save: the ending is put to the name first, and then asked whether what has that name may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QEventLoop, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QInputDialog, QMessageBox, QWidget

# Dialogs that are answered before anything else in the program, and that do not keep it from being closed.
# Qt's modal dialogs do: a window manager that asks a window behind one to close is not heard, and nothing tells of it.


_INPUT = frozenset(
    {
        *(QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease, QEvent.Type.MouseButtonDblClick),
        *(QEvent.Type.MouseMove, QEvent.Type.Enter, QEvent.Type.Wheel, QEvent.Type.ContextMenu),
        *(QEvent.Type.KeyPress, QEvent.Type.KeyRelease, QEvent.Type.ShortcutOverride),
        *(QEvent.Type.TouchBegin, QEvent.Type.TouchUpdate, QEvent.Type.TouchEnd, QEvent.Type.NativeGesture),
        *(QEvent.Type.TabletPress, QEvent.Type.TabletMove, QEvent.Type.TabletRelease),
        *(QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop),
    }
)
_REFUSED = frozenset({QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop})


def open_in_front(dialog: QDialog) -> None:
    """Show `dialog`. Until it is closed no other window of the program takes input; closing one of them cancels it."""
    dialog.setWindowModality(Qt.WindowModality.NonModal)
    front = _Front(dialog)
    dialog.show()
    front.come_forward()


def answer_of(dialog: QDialog) -> int:
    """As `open_in_front`, and wait until it is closed, as `QDialog.exec` does; its result.

    It is deleted once the caller is back in the event loop.
    """
    loop, results = QEventLoop(), list[int]()
    dialog.finished.connect(results.append)
    for over in (dialog.finished, dialog.destroyed):
        over.connect(lambda *_: loop.quit())
    dialog.finished.connect(dialog.deleteLater)
    open_in_front(dialog)
    loop.exec()
    return results[0] if results else QDialog.DialogCode.Rejected.value  # it went with its parent


class _Front(QObject):
    """Takes the input of the windows that are open when `dialog` opens, as long as it is."""

    def __init__(self, dialog: QDialog) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self._is_over = False
        for window in QGuiApplication.topLevelWindows():
            if window is not dialog.windowHandle():
                window.installEventFilter(self)
        dialog.finished.connect(self._end)

    def _end(self) -> None:
        self._is_over = True
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._is_over:
            return False
        kind = event.type()
        if kind in _INPUT:
            event.setAccepted(kind not in _REFUSED)  # a key that is taken here is no shortcut of the window behind
            if kind == QEvent.Type.MouseButtonPress:
                self.come_forward()
            return True
        if kind == QEvent.Type.FocusIn:
            QTimer.singleShot(0, self, self.come_forward)
        elif kind == QEvent.Type.Close:
            self._dialog.reject()
        return False

    def come_forward(self) -> None:
        self._dialog.raise_()
        self._dialog.activateWindow()


# What a person is asked before anything else: for a file, a folder, or a line of text.
# As the functions of the same kind in `QFileDialog` and `QInputDialog`, in dialogs that let the program be closed.


def file_to_open(parent: QWidget | None, title: str, at: str, kinds: str) -> str:
    """The path of a file that is there; "" where the person leaves the dialog.

    Args:
        at: the folder to begin in, or a file in it; the current folder where it is empty.
        kinds: what files are listed, as Qt's name filters say it: "Text (*.txt);;All files (*)".
    """
    dialog = _files(parent, title, at, kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    return _chosen(dialog)


def folder(parent: QWidget | None, title: str, at: str) -> str:
    """The path of a folder; "" where the person leaves the dialog."""
    dialog = _files(parent, title, at, "")
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    return _chosen(dialog)


def file_to_save(parent: QWidget, title: str, suggested: str, kinds: str, kind: str) -> tuple[str, str]:
    """The path that was typed, and the kind that was chosen of `kinds`; "" as path where the person leaves the dialog.

    Nothing is asked about a file that is there.
    """
    dialog = _files(parent, title, suggested, kinds)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setFileMode(QFileDialog.FileMode.AnyFile)
    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite)
    dialog.selectNameFilter(kind)
    path = _chosen(dialog)
    return path, dialog.selectedNameFilter() if path else ""


def line(parent: QWidget, title: str, label: str, text: str) -> str | None:
    """A line of text, `text` to begin with; None where the person leaves the dialog."""
    dialog = QInputDialog(parent)
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setTextValue(text)
    return dialog.textValue() if answer_of(dialog) else None


def _files(parent: QWidget | None, title: str, at: str, kinds: str) -> QFileDialog:
    dialog = QFileDialog(parent, title, at, kinds)
    if at and not Path(at).is_dir():
        dialog.selectFile(at)
    return dialog


def _chosen(dialog: QFileDialog) -> str:
    return dialog.selectedFiles()[0] if answer_of(dialog) else ""


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
        typed, shown = file_to_save(parent, title, suggested, ";;".join(filters), chosen.filter)
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
