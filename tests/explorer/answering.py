"""Real dialogs, answered while they are open: by clicks and keys, as a person does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QMessageBox, QWidget

DialogT = TypeVar("DialogT", bound=QWidget)

MOST_LOOKS = 2000


def open_dialogs() -> list[QDialog]:
    return [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QDialog) and widget.isVisible()]


@contextmanager
def answering(*answers: Callable[[QWidget], None]) -> Iterator[list[str]]:
    """Give one answer after another to the dialogs that come up; what each of them said, once it is answered.

    All of them have to come up.
    """
    waiting, said, looks = list(answers), list[str](), 0
    answered: list[QWidget] = []

    def look() -> None:
        nonlocal looks
        looks += 1
        dialog = next((dialog for dialog in open_dialogs() if dialog not in answered), None)
        if dialog is not None and waiting:
            answered.append(dialog)
            said.append(dialog.text() if isinstance(dialog, QMessageBox) else dialog.windowTitle())
            waiting.pop(0)(dialog)
        elif looks > MOST_LOOKS:
            for dialog in open_dialogs():
                dialog.reject()  # nobody answers it: the test fails below instead of waiting for ever

    timer = QTimer()
    timer.timeout.connect(look)
    timer.start(5)
    try:
        yield said
    finally:
        timer.stop()
    assert not waiting, f"of {len(answers)} dialogs {len(waiting)} did not come up; these did: {said}"


def typing(name: str) -> Callable[[QWidget], None]:
    """In a dialog of files: type a name and press Enter."""

    def type_it(dialog: QWidget) -> None:
        assert isinstance(dialog, QFileDialog)
        field = dialog.findChild(QLineEdit)
        assert field is not None
        field.selectAll()
        QTest.keyClicks(field, name)
        QTest.keyClick(field, Qt.Key.Key_Return)

    return type_it


def leave(dialog: QWidget) -> None:
    """Press Escape."""
    QTest.keyClick(dialog, Qt.Key.Key_Escape)


def pressing(label: str) -> Callable[[QWidget], None]:
    """In a question: click the button that says `label`."""

    def press_it(dialog: QWidget) -> None:
        assert isinstance(dialog, QMessageBox)
        button = next(button for button in dialog.buttons() if button.text().replace("&", "") == label)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    return press_it
