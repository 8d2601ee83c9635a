"""The help and about windows: Markdown shown by Qt."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextBrowser, QVBoxLayout, QWidget

from explorer.paths import resource
from explorer.version import __version__
from explorer.widgets.small_screens import room_for

_STANDS_ON = ("PySide6-Essentials", "torch", "transformers", "tokenizers", "safetensors", "numpy", "pyqtgraph")


def show_help(parent: QWidget) -> None:
    """Open the page that explains the window."""
    _show(parent, "How to read this", resource("help.md").read_text(encoding="utf-8"))


def show_about(parent: QWidget) -> None:
    lines = [
        f"# Attention Explorer {__version__}",
        "See where a transformer looks, and why. MIT licence.",
        "## Stands on",
    ]
    _show(
        parent,
        "About Attention Explorer",
        "\n\n".join([*lines, *(f"- {name} {_version(name)}" for name in _STANDS_ON)]),
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def _show(parent: QWidget, title: str, markdown: str) -> None:
    dialog = QDialog(parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(title)
    page = QTextBrowser()
    page.setMarkdown(markdown)
    page.setOpenExternalLinks(True)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.close)
    column = QVBoxLayout(dialog)
    column.addWidget(page)
    column.addWidget(buttons)
    dialog.resize(QSize(720, 620).boundedTo(room_for(dialog)))
    dialog.show()
