"""The help and about windows: Markdown shown by Qt."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton, QTextBrowser, QVBoxLayout, QWidget

from attention_explorer import licences
from attention_explorer.paths import resource
from attention_explorer.version import __version__
from attention_explorer.widgets.small_screens import room_for


def show_help(parent: QWidget) -> None:
    """Open the page that explains the window."""
    _show(parent, "How to read this", resource("help.md").read_text(encoding="utf-8"))


def show_about(parent: QWidget) -> None:
    """Open the page with the version, and the licences of what the program stands on."""
    there = licences.installed(licences.STANDS_ON)
    listed = [f"- {one.name} {one.version}: {one.licence}" for one in licences.distributions(there)]
    head = f"# Attention Explorer {__version__}\n\nSee where a transformer looks, and why. MIT licence."
    page = f"{head}\n\n## Stands on\n\n{licences.QT}\n\n" + "\n".join(listed)
    dialog = _show(parent, "About Attention Explorer", page)
    texts = QPushButton("&Licence texts")
    texts.setAutoDefault(False)
    texts.clicked.connect(lambda: _show(dialog, "Licence texts", licences.document(), is_markdown=False))
    buttons = dialog.findChild(QDialogButtonBox)
    assert isinstance(buttons, QDialogButtonBox)
    buttons.addButton(texts, QDialogButtonBox.ButtonRole.ActionRole)


def _show(parent: QWidget, title: str, text: str, *, is_markdown: bool = True) -> QDialog:
    dialog = QDialog(parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(title)
    page = QTextBrowser()
    if is_markdown:
        page.setMarkdown(text)
    else:
        page.setPlainText(text)
    page.setOpenExternalLinks(True)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.close)
    column = QVBoxLayout(dialog)
    column.addWidget(page)
    column.addWidget(buttons)
    dialog.resize(QSize(720, 620).boundedTo(room_for(dialog)))
    dialog.show()
    return dialog
