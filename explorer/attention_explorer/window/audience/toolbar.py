"""The buttons of the presenter's tools: they come when the mouse nears the lower edge, and go by themselves."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QToolButton, QWidget

from attention_explorer.theme import SMALLEST_FONT
from attention_explorer.window.audience.marks import Marks

STAYS = 3000
"""ms: how long they stay once the mouse has left."""

_BUTTONS = (
    ("freeze", "Freeze", "F", "What the mouse points at stays while you go on"),
    ("spotlight", "Spotlight", "O", "Dim all but a circle about the mouse"),
    ("laser", "Laser", "L", "A red dot that follows the mouse"),
    ("magnifier", "Magnify", "M", "Magnify around the pointer; scroll, or press + and −, to zoom"),
    ("draw", "Draw", "D", "Draw over the panel with the mouse"),
    ("clear", "Clear", "E", "Take away what was drawn on this panel"),
    ("black", "Black", "B or .", "A black screen, until it is pressed again"),
)


_SMALLER = 0.7
"""Of the size that text for the last row has; it is read from the lectern."""


def smaller_text(also: str = "") -> str:
    """A style sheet for text that is smaller than what is presented; `also` may have $large, for a larger one.

    A font that is set goes with the next change of the application's style.
    """
    points = max(SMALLEST_FONT, _SMALLER * QApplication.font().pointSizeF())
    return f"* {{ font-size: {points:.1f}pt }} {also.replace('$large', f'{1.7 * points:.1f}pt')}"


class Toolbar(QFrame):
    """Shows what is told; what is pressed is said by signals."""

    chosen = Signal(str)
    text_size_asked = Signal(int)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("presenter_tools")
        self.setAccessibleName("Presenter's tools")
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 4, 6, 4)
        row.setSpacing(4)
        self.buttons: dict[str, QToolButton] = {}
        for name, text, key, tip in _BUTTONS:
            button = self._button(f"{text}  {key}", f"{tip} ({key})")
            button.setCheckable(name != "clear")
            button.clicked.connect(lambda _=False, name=name: self.chosen.emit(name))
            self.buttons[name] = button
            row.addWidget(button)
        for name, text, by, tip in (
            ("smaller", "A −", -1, "Smaller text (Ctrl+−, Ctrl and the wheel)"),
            ("larger", "A +", 1, "Larger text (Ctrl++, Ctrl and the wheel)"),
        ):
            button = self._button(text, tip)
            button.clicked.connect(lambda _=False, by=by: self.text_size_asked.emit(by))
            self.buttons[name] = button
            row.addWidget(button)
        self._goes = QTimer(self)
        self._goes.setSingleShot(True)
        self._goes.setInterval(STAYS)
        self._goes.timeout.connect(self.hide)
        self.fit_font()
        self.hide()

    def fit_font(self) -> None:
        """The application's text has another size."""
        self.setStyleSheet(smaller_text())

    def _button(self, text: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keys stay with the panel
        return button

    def say(self, marks: Marks, is_frozen: bool, has_audience: bool) -> None:
        for name, is_on in (("freeze", is_frozen), ("black", marks.is_black)):
            self.buttons[name].setChecked(is_on)
        for name in ("spotlight", "laser", "magnifier", "draw"):
            self.buttons[name].setChecked(marks.tool == name)
        self.buttons["clear"].setEnabled(bool(marks.strokes))
        held = "The audience keeps its picture" if has_audience else "What the mouse points at stays"
        self.buttons["freeze"].setToolTip(f"{held} while you go on (F)")

    def come(self, place: QRect) -> None:
        """Be there for a while."""
        self.follow(place)
        self.show()
        self.raise_()
        self._goes.start()

    def follow(self, place: QRect) -> None:
        """Stand at the lower edge of `place`, in the middle."""
        self.adjustSize()
        self.move(place.center().x() - self.width() // 2, place.bottom() - self.height() - 4)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._goes.stop()

    def leaveEvent(self, event: QEvent) -> None:
        self._goes.start()
