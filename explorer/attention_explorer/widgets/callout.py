"""A small round button, and the frame of sentences that it opens beside what they speak of."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from attention_explorer.widgets.page import scrolling, wrapped

_MARGIN = 8
_WIDEST, _NARROWEST = 46, 24
"""Of its width, in letters: beside something that leaves less it stands below, inside."""
_LOW = 0.45
"""The most it takes of the height of what it stands inside of."""


class InfoButton(QToolButton):
    """An "i" that stays pressed while its callout is open."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setText("i")
        self.setProperty("role", "info")
        self.setCheckable(True)
        self.setAccessibleName(f"About {title}")
        self.setToolTip("What this says, with the numbers on screen, and something to try (Ctrl+I)")


class CodeButton(QToolButton):
    """Asks for the lines of PyTorch that compute what stands below."""

    def __init__(self, title: str, key: str = "Ctrl+P") -> None:
        """`key` is "" for what has none: the window's is for the panels below the input."""
        super().__init__()
        self._key = f" ({key})" if key else ""
        self.setText("</>")
        self.setProperty("role", "code")
        self.setAccessibleName(f"{title} as PyTorch")
        self.offer(False)

    def offer(self, can: bool) -> None:
        """Let it be pressed, or say why it cannot."""
        self.setEnabled(can)
        what = "Show as PyTorch: the lines that compute this, with the numbers on screen"
        self.setToolTip(
            what + self._key if can else "Show as PyTorch: no figure is on this page that a few lines would compute"
        )


class Callout(QFrame):
    """Sentences about `owner`, beside it in the same window, and never over it.

    Esc closes it, from anywhere in the window. One is open in a window: another that opens takes its place.
    """

    closed = Signal()

    def __init__(self, owner: QWidget, title: str) -> None:
        super().__init__()
        self.hide()
        self._owner = owner
        self.setAccessibleName(f"About {title}")
        self._title = QLabel(title)
        self._title.setProperty("role", "title")
        self.close_button = QPushButton("×")
        self.close_button.setProperty("role", "flat")
        self.close_button.setAccessibleName("Close")
        self.close_button.setToolTip("Close (Esc)")
        self.close_button.clicked.connect(self.dismiss)
        self._labels: list[QLabel] = []
        self.to_try = wrapped(role="try")
        self._page = QWidget()
        self._text = QVBoxLayout(self._page)
        self._text.setContentsMargins(0, 0, 6, 0)
        self._text.setSpacing(6)
        self._text.addWidget(self.to_try)
        self._text.addStretch(1)
        self._area = scrolling(self._page)
        self._area.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # what does not fit is scrolled with the keyboard
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self.close_button)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(12, 6, 6, 8)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self._area, 1)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it says, without what there is to try."""
        return tuple(label.text() for label in self._labels if not label.isHidden())

    def say(self, sentences: Sequence[str], to_try: str) -> None:
        """Show these in the place of what was there."""
        while len(self._labels) < len(sentences):
            self._labels.append(wrapped())
            self._text.insertWidget(len(self._labels) - 1, self._labels[-1])
        changed = self.to_try.text() != to_try or self.sentences != tuple(sentences)
        for i, label in enumerate(self._labels):
            label.setText(sentences[i] if i < len(sentences) else "")
            label.setVisible(i < len(sentences))
        self.to_try.setText(to_try)
        self.to_try.setVisible(bool(to_try))
        self.setAccessibleDescription(" ".join((*sentences, to_try)))
        if changed and self.isVisible():
            self._place()

    def open(self) -> None:
        """Show it, and close whichever other is open in this window."""
        for other in self._owner.window().findChildren(Callout):
            if other is not self:
                other.dismiss()
        self._place()
        self.show()
        self.raise_()
        self._place()  # a label knows its height once it has its font
        app = QApplication.instance()
        assert app is not None
        app.installEventFilter(self)

    def dismiss(self) -> None:
        """Close it; the keyboard goes back to what it speaks of."""
        if self.isHidden():
            return
        held = self.isAncestorOf(QApplication.focusWidget() or self)
        self.hide()
        app = QApplication.instance()
        if app is not None:
            app.removeEventFilter(self)
        self.closed.emit()
        if held:
            self._owner.setFocus(Qt.FocusReason.OtherFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in (QEvent.Type.Resize, QEvent.Type.Move) and watched in (self._owner, self._owner.window()):
            self._place()
        elif kind in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress) and isinstance(event, QKeyEvent):
            return self._takes(watched, event)
        return False

    def _takes(self, watched: QObject, event: QKeyEvent) -> bool:
        """Esc closes it before it ends anything else; that of a menu, a list of choices or a dialog is theirs."""
        if event.key() != Qt.Key.Key_Escape or not isinstance(watched, QWidget):
            return False
        if watched.window() is not self.window() or QApplication.activePopupWidget() is not None:
            return False
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # no shortcut: the key comes as a key
        else:
            self.dismiss()
        return True

    def _place(self) -> None:
        """Beside the owner where either side of it has room, else below what it shows, which gives way."""
        window, letter = self._owner.window(), self.fontMetrics().averageCharWidth()
        spot = QRect(self._owner.mapTo(window, QPoint(0, 0)), self._owner.size())
        left, right = spot.left() - 2 * _MARGIN, window.width() - spot.right() - 2 * _MARGIN
        width = min(_WIDEST * letter, max(left, right))
        if width < _NARROWEST * letter:
            self._stand_inside()
            return
        layout = self._owner.layout()
        if layout is not None and layout.indexOf(self) >= 0:
            layout.removeWidget(self)
        if self.parentWidget() is not window:
            visible = self.isVisible()
            self.setParent(window)
            self.setVisible(visible)
        self.setMaximumHeight(window.height())
        height = min(self._wanted_height(width), window.height() - 2 * _MARGIN)
        x = spot.right() + 1 + _MARGIN if right >= left else spot.left() - _MARGIN - width
        y = max(_MARGIN, min(spot.top(), window.height() - _MARGIN - height))
        self.setGeometry(x, y, width, height)

    def _stand_inside(self) -> None:
        layout = self._owner.layout()
        if isinstance(layout, QVBoxLayout) and layout.indexOf(self) < 0:
            layout.addWidget(self)
        self.setFixedHeight(min(self._wanted_height(self._owner.width()), round(_LOW * self._owner.height())))

    def _wanted_height(self, width: int) -> int:
        self.setMinimumHeight(0)
        self.ensurePolished()
        margins = self._column.contentsMargins()
        inner = width - margins.left() - margins.right() - 2 * self.frameWidth() - 14  # beside a scrollbar, if any
        shown = [label for label in (*self._labels, self.to_try) if not label.isHidden()]
        text = sum(max(label.heightForWidth(inner), label.sizeHint().height() if inner <= 0 else 0) for label in shown)
        head = max(self._title.sizeHint().height(), self.close_button.sizeHint().height())
        return head + text + 6 * len(shown) + margins.top() + margins.bottom() + 10
