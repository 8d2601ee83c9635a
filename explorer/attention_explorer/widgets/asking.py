"""What a person is asked before anything else: for a file, a folder, or a line of text.

As the functions of the same kind in `QFileDialog` and `QInputDialog`, in dialogs that let the program be closed.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from attention_explorer.widgets.in_front import answer_of


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
