"""What is on screen as a line of text: copied, opened, or shown as a QR code."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.session.intents import Show
from attention_explorer.session.state import Notice
from attention_explorer.widgets import dialogs
from attention_explorer.window.contents import Contents
from attention_explorer.window.sessions import Sessions

QUIET = 4
"""Modules of white around a code: what the standard asks for."""

_SAID = "Open it with File > Open a short text, or “attention-explorer open TEXT”. Esc or a click puts it away."


class CodeSheet(QWidget):
    """Lies over all of a widget. A click and Esc put it away."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self._over = over
        self._theme = LIGHT
        self.text = ""
        """What the code says."""
        self._code = QImage()  # a pixel a module, with the quiet zone
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("The state as a QR code")
        over.installEventFilter(self)
        self.hide()

    def show_code(self, text: str, theme: Theme) -> None:
        import segno

        self.text, self._theme = text, theme
        rows = tuple(segno.make_qr(text, error="l", boost_error=True).matrix_iter(border=QUIET))
        grey = bytes(0 if is_black else 255 for row in rows for is_black in row)
        self._code = QImage(grey, len(rows), len(rows), len(rows), QImage.Format.Format_Grayscale8).copy()
        self.setAccessibleDescription(text)
        self._follow()
        self.show()
        self.raise_()
        self.setFocus()

    def code_rect(self) -> QRect:
        """Where the code is with its quiet zone: whole pixels a module, as large as there is room."""
        count = max(1, self._code.width())
        room = min(self.width(), self.height() - 2 * self._line)
        side = max(1, room // count) * count
        return QRect((self.width() - side) // 2, (self.height() - self._line - side) // 2, side, side)

    @property
    def _line(self) -> int:
        return 2 * self.fontMetrics().height()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self.isVisible() and event.type() == QEvent.Type.Resize:
            self._follow()
        return False

    def _follow(self) -> None:
        self.setGeometry(self._over.rect())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.close()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.window))
        code = self.code_rect()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)  # at any scale edges stay sharp
        painter.drawImage(code, self._code)
        painter.setPen(QColor(self._theme.text))
        below = QRect(0, code.bottom(), self.width(), self.height() - code.bottom())
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, _SAID)


class ShortTexts(QObject):
    """Lives in the GUI thread."""

    def __init__(self, window: QMainWindow, contents: Contents, sessions: Sessions) -> None:
        super().__init__(window)
        self._window, self._contents, self._sessions = window, contents, sessions
        self.sheet = CodeSheet(contents)

    def copy(self) -> None:
        """Put the state on the clipboard."""
        text = self._text()
        if text:
            QApplication.clipboard().setText(text)
            self._say(
                Notice("info", f"Copied: {len(text)} characters that “File > Open a short text” takes on any computer.")
            )

    def ask(self) -> None:
        """Let the person type or paste one; what is on the clipboard stands there already."""
        from attention_explorer.session.kept import is_short_text

        there = QApplication.clipboard().text()
        label = "A state that somebody copied as a short text: it begins with “attn1.”"
        text = dialogs.line(self._window, "Open a short text", label, there.strip() if is_short_text(there) else "")
        if text:
            self.open(text)

    def open(self, text: str, failed: Callable[[], object] | None = None) -> None:
        """Put the state of a short text on screen. One that is none changes nothing, and a sentence says why."""
        from attention_explorer.session import short_texts

        try:
            state = short_texts.decode(text)
        except ValueError as error:
            if failed is not None:
                failed()
            self._say(Notice("error", str(error)))
            return
        state = short_texts.for_this_window(state, self._sessions.session.state.document.view)
        self._sessions.show(state, None, lambda: None)

    def show_code(self) -> None:
        """Show the state as a QR code over all panels, or put it away."""
        if self.sheet.isVisible():
            self.sheet.close()
            return
        text = self._text()
        if text:
            self.sheet.show_code(text, self._contents.theme)

    def _text(self) -> str:
        """The state on screen; "" where it cannot be one, which is said."""
        from attention_explorer.session import short_texts

        try:
            return short_texts.encode(self._sessions.present())
        except ValueError as error:
            self._say(Notice("error", str(error)))
            return ""

    def _say(self, notice: Notice) -> None:
        self._sessions.session.dispatch(Show(notice))
