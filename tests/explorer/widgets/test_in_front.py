"""A dialog that is answered first: what is behind takes no input while it is open, but can be closed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QPushButton, QVBoxLayout, QWidget

from attention_explorer.widgets.dialogs import answer_of, open_in_front

pytestmark = pytest.mark.x


class Behind(QWidget):
    """A window that counts what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.setAcceptDrops(True)
        self.button, self.text = QPushButton("Press"), QLineEdit()
        self.button.clicked.connect(lambda: self.told.append("click"))
        self.text.textEdited.connect(lambda _text: self.told.append("key"))
        QShortcut("Ctrl+S", self, lambda: self.told.append("shortcut"))
        column = QVBoxLayout(self)
        column.addWidget(self.button)
        column.addWidget(self.text)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self.told.append("drag")
        event.acceptProposedAction()

    def try_all(self) -> list[str]:
        """What comes of a click, a key, a shortcut and a drop, as the window system sends them."""
        self.told.clear()
        handle = self.windowHandle()
        self.text.setFocus()
        centre = self.button.mapTo(self, self.button.rect().center())
        QTest.mouseClick(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, centre)
        self.text.setFocus()
        QTest.keyClick(handle, Qt.Key.Key_A)
        QTest.keyClick(handle, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
        actions, button, keys = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        content = QMimeData()
        content.setText("x")
        QApplication.sendEvent(handle, QDragEnterEvent(QPoint(5, 5), actions, content, button, keys))
        QApplication.sendEvent(handle, QDropEvent(QPointF(5, 5), actions, content, button, keys))
        QApplication.processEvents()
        return list(self.told)


@pytest.fixture
def behind(qtbot) -> Behind:
    window = Behind()
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


@pytest.fixture
def dialog(behind: Behind) -> QDialog:
    return QDialog(behind)


def test_what_is_behind_takes_no_input_until_it_is_closed(behind, dialog, qtbot):
    everything = behind.try_all()
    assert everything == ["click", "key", "shortcut", "drag"]
    open_in_front(dialog)
    behind.activateWindow()
    assert behind.try_all() == []
    dialog.reject()
    behind.activateWindow()
    qtbot.waitUntil(behind.isActiveWindow)
    assert behind.try_all() == everything


def test_it_takes_input_itself(dialog):
    button, pressed = QPushButton("OK", dialog), []
    button.clicked.connect(lambda: pressed.append(True))
    open_in_front(dialog)
    handle = dialog.windowHandle()
    QTest.mouseClick(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, button.geometry().center())
    assert pressed
    dialog.reject()


def test_it_comes_back_to_the_front(behind, dialog, qtbot):
    open_in_front(dialog)
    qtbot.waitUntil(dialog.isActiveWindow)
    behind.activateWindow()
    qtbot.waitUntil(lambda: behind.isActiveWindow() or dialog.isActiveWindow())
    qtbot.waitUntil(dialog.isActiveWindow)
    dialog.reject()


@pytest.mark.parametrize(
    ("ends", "result"),
    [
        (QDialog.accept, QDialog.DialogCode.Accepted),
        (QDialog.reject, QDialog.DialogCode.Rejected),
        (QDialog.close, QDialog.DialogCode.Rejected),
        (lambda dialog: dialog.parentWidget().windowHandle().close(), QDialog.DialogCode.Rejected),
    ],
    ids=["accepted", "rejected", "closed", "the window behind is closed"],
)
def test_its_answer_is_waited_for(dialog: QDialog, ends: Callable[[QDialog], object], result: QDialog.DialogCode):
    QTimer.singleShot(50, lambda: ends(dialog))
    assert answer_of(dialog) == result.value


def test_one_over_another_holds_both_windows(behind, dialog):
    button, pressed = QPushButton("OK", dialog), []
    button.clicked.connect(lambda: pressed.append(True))
    open_in_front(dialog)
    second = QDialog(dialog)
    open_in_front(second)
    handle = dialog.windowHandle()
    QTest.mouseClick(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, button.geometry().center())
    assert not pressed
    assert behind.try_all() == []
    handle.close()
    assert not second.isVisible()
    assert not dialog.isVisible()
    assert behind.try_all() != []
