"""A QR code as large as the window: black on white in every theme, for that is what cameras read."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.theme import LIGHT, Theme

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
