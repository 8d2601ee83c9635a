"""A titled surface that holds one panel's content."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from attention_explorer.look.text_size import is_read_from_afar
from attention_explorer.look.theme import Theme
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.screens import is_low

_LEAST_TITLE = 60  # pixels
_SPACING, _CLOSE = 10, 5  # pixels between what is in the title's line; where it has little room


class Card(QFrame):
    """A bold title with a dim subtitle, small controls at the right, and the content below.

    Its own colours come from the application's style sheet.
    """

    mark_pressed = Signal()

    def __init__(self, title: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ElidedLabel()
        self._title.setMinimumWidth(_LEAST_TITLE)  # gives way to the controls where all have too little room
        self._title.elide_mode = Qt.TextElideMode.ElideMiddle  # what tells heads apart is at the end
        self._title.setProperty("role", "title")
        self._subtitle = ElidedLabel()
        self._subtitle.setProperty("role", "dim")
        self._subtitle.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._mark = QPushButton()
        self._mark.setProperty("role", "mark")
        self._mark.clicked.connect(lambda: self.mark_pressed.emit())
        self._mark.hide()
        for label in (self._title, self._subtitle):
            label.setTextFormat(Qt.TextFormat.PlainText)  # a token may look like mark-up
        self._marks = ("", "")  # whole, and shorter
        self._listed_controls: list[QWidget] = []
        self._has_info = False
        self._controls = QHBoxLayout()
        self._controls.setSpacing(6)
        self._head = QWidget()
        self._head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)  # its buttons are never cut
        head = QHBoxLayout(self._head)
        head.setContentsMargins(0, 0, 0, 0)
        head.setSpacing(_SPACING)
        head.addWidget(self._title)
        head.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self._subtitle, 1)
        head.addLayout(self._controls)
        self._line = head
        self._content: QWidget | None = None
        self._path: QWidget | None = None
        self._refusal = wrapped(role="dim")
        self._refusal.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._refusal.hide()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(14, 10, 14, 12)
        self._column.setSpacing(8)
        self._column.addWidget(self._head)
        self._column.addWidget(self._refusal, 1)
        self.set_title(title)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_window()
        self._fit_mark()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit_window()

    def _fit_window(self) -> None:
        if self._path is not None:
            self._path.setVisible(not (is_low(self) or is_read_from_afar()))

    def set_theme(self, theme: Theme) -> None:
        """Hand the theme to every child that paints itself."""
        for child in self.findChildren(QWidget):
            take = getattr(child, "set_theme", None)
            if callable(take):
                take(theme)

    def set_title(self, title: str, more: str = "") -> None:
        """The bold title, which also names the card to a screen reader; `more` is said with it on hover.

        Without title and controls there is no head.
        """
        self._title.setText(title)
        self._title.setToolTip(f"{title}\n{more}" if more else title)
        self.setAccessibleName(title)
        self._fit_mark()
        self._show_head()

    def set_subtitle(self, subtitle: str) -> None:
        """The dim text beside the title. It is cut where there is no room for it, and whole in its tooltip."""
        self._subtitle.setText(subtitle)
        self._subtitle.setToolTip(subtitle)

    def set_path(self, path: QWidget) -> None:
        """Put a line above the title that says where this is; a low window has no room for it."""
        self._path = path
        margins = self._column.contentsMargins()
        self._column.setContentsMargins(margins.left(), 4, margins.right(), margins.bottom())
        self._column.insertWidget(0, path)

    def set_mark(self, text: str, tooltip: str = "", shorter: str = "") -> None:
        """A short warning in a frame beside the title, which can be pressed; "" takes it away.

        A `shorter` one stands where the title would be cut for the whole.
        """
        self._marks = text, shorter or text
        self._mark.setAccessibleName(text)
        self._mark.setToolTip(tooltip)
        self._mark.setVisible(bool(text))
        self._fit_mark()
        self._show_head()

    def _fit_mark(self) -> None:
        margins, metrics = self._column.contentsMargins(), self._mark.fontMetrics()
        room = self.width() - margins.left() - margins.right()
        self._line.setSpacing(_SPACING)
        beside = self._line.sizeHint().width() - metrics.horizontalAdvance(self._mark.text())
        whole, shorter = self._marks
        fits = beside + metrics.horizontalAdvance(whole) <= room
        self._mark.setText(whole if fits else shorter)
        self._line.setSpacing(_SPACING if fits else _CLOSE)

    def add_control(self, widget: QWidget) -> None:
        """Put a small control at the right end of the title line."""
        self._controls.addWidget(widget)
        self._listed_controls.append(widget)
        self._show_head()

    def set_info(self, button: QWidget) -> None:
        """Put a button at the very end of the title line, after all controls."""
        self._line.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._has_info = True
        self._show_head()

    def set_content(self, widget: QWidget) -> None:
        """Show a widget below the title; the one before is deleted."""
        if self._content is not None:
            self._column.removeWidget(self._content)
            self._content.deleteLater()
        self._content = widget
        self._column.addWidget(widget, 1)
        widget.setVisible(not self.refusal)

    @property
    def content(self) -> QWidget | None:
        """What is shown below the title."""
        return self._content

    @property
    def telling(self) -> tuple[QWidget, ...]:
        """What tells something of the run: the content, and the dim text beside the title where there is one."""
        said = (self._subtitle,) if self._subtitle.text() else ()
        return (*said, self._content) if self._content is not None else said

    @property
    def refusal(self) -> str:
        """What stands in the place of the content; "" where the content does."""
        return self._refusal.text()

    def set_refusal(self, sentence: str) -> None:
        """Say in the place of content and controls why they have nothing to show; "" brings them back."""
        if sentence == self.refusal:
            return
        self._refusal.setText(sentence)
        self._refusal.setVisible(bool(sentence))
        for control in self._listed_controls:
            control.setVisible(not sentence)
        if self._content is not None:
            self._content.setVisible(not sentence)

    def _show_head(self) -> None:
        said = bool(self._title.text() or self._mark.text())
        self._head.setVisible(said or self._has_info or self._controls.count() > 0)
