"""Says at a start that the program fell the last time, and where the file lies that says how."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from attention_explorer import crashes


def tell_of_crashes(window: QWidget) -> QMessageBox | None:
    """Show the dialog where there is something to tell; it holds nothing up."""
    fallen = crashes.left_behind()
    if not fallen:
        return None
    newest, *_ = [crashes.told(path) for path in fallen]
    return _dialog(window, newest)


def _dialog(window: QWidget, path: Path) -> QMessageBox:
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle("The program fell")
    box.setText("Attention Explorer ended unexpectedly the last time.")
    box.setInformativeText(
        f"What it was at stands in {path}. To report it, send that file and what attention-explorer --diagnose prints."
    )
    box.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    show = box.addButton("Show the folder", QMessageBox.ButtonRole.ActionRole)
    box.addButton(QMessageBox.StandardButton.Close)
    show.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent))))
    box.setModal(False)
    box.show()
    return box
