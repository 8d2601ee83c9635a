"""What a presenter does beside the panels, by key or button: freeze, spotlight, laser, magnify, draw, clear, black."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QCursor, QEnterEvent, QImage, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QFrame, QHBoxLayout, QMainWindow, QToolButton, QWidget

from attention_explorer.look.theme import LIGHT, SMALLEST_FONT, Theme
from attention_explorer.session.hover import NOTHING
from attention_explorer.window.audience.marks import (
    FIRST_ZOOM,
    LEAST_ZOOM,
    MOST_ZOOM,
    ZOOM_STEP,
    Marks,
    Point,
    Stroke,
    dot_radius,
    lens_picture,
    lens_rect,
    paint,
    placed,
    share,
    spot_radius,
)
from attention_explorer.window.audience.stage import part_of
from attention_explorer.window.contents import Contents

# The buttons of the presenter's tools: they come when the mouse nears the lower edge, and go by themselves.


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


# What the teacher points with, drawn over the panels of the window.
# All but the pen and the magnifier let the mouse through: what is pointed at changes, and a lens shows it as it is.


_NOTCH = 120
"""What a wheel with steps turns by in one."""


class Overlay(QWidget):
    """Draws the marks it is given; what the pen does is told by signals, as shares of width and height."""

    pen_down = Signal(object)  # Point
    pen_moved = Signal(object)  # Point
    wheel_turned = Signal(int)
    """Over the magnifier: up (1) or down (-1)."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._theme = LIGHT
        self.marks = Marks()
        self._lens: QImage | None = None
        self._turned = 0  # by the wheel, less than a step
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("overlay")
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def show_marks(self, marks: Marks, lens: QImage | None = None) -> None:
        """`lens` is what the magnifier shows, where it is in the hand."""
        before, self.marks = self.marks, marks
        if lens != self._lens:
            self._lens = lens
            self.update(lens_rect(marks, QRectF(self.rect())).toAlignedRect())
        takes_mouse = marks.tool in ("draw", "magnifier") or marks.is_black
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, not takes_mouse)
        if marks.tool == "draw":
            self.setCursor(Qt.CursorShape.CrossCursor)
        else:
            self.unsetCursor()
        self.setVisible(bool(marks.tool or marks.strokes or marks.is_black))
        if (before.tool, before.strokes, before.is_black) == (marks.tool, marks.strokes, marks.is_black):
            self.update(self._moving(before) | self._moving(marks))  # the panels below are painted there alone
        else:
            self.update()

    def _moving(self, marks: Marks) -> QRect:
        """What follows the mouse, with its rim."""
        if marks.pointer is None:
            return self.rect() if marks.tool == "spotlight" else QRect()
        area = QRectF(self.rect())
        if marks.tool == "magnifier":
            return lens_rect(marks, area).toAlignedRect().adjusted(-8, -8, 8, 8)
        radius = spot_radius(area) if marks.tool == "spotlight" else dot_radius(area)
        centre, reach = placed(marks.pointer, area), QPointF(radius + 8, radius + 8)
        return QRectF(centre - reach, centre + reach).toAlignedRect()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = self._drawn(event)
        if point is not None and event.button() == Qt.MouseButton.LeftButton:
            self.pen_down.emit(point)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = self._drawn(event)
        if point is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self.pen_moved.emit(point)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.marks.tool != "magnifier":
            event.ignore()
            return
        self._turned += event.angleDelta().y()
        steps = int(self._turned / _NOTCH)
        self._turned -= steps * _NOTCH
        for _ in range(abs(steps)):
            self.wheel_turned.emit(1 if steps > 0 else -1)

    def _drawn(self, event: QMouseEvent) -> Point | None:
        return share(event.position(), QRectF(self.rect())) if self.marks.tool == "draw" else None

    def paintEvent(self, event: QPaintEvent) -> None:
        paint(QPainter(self), self.marks, QRectF(self.rect()), self._theme, self._lens)


Act = Literal["freeze", "spotlight", "laser", "magnifier", "draw", "clear", "black"]

KEYS: dict[Qt.Key, Act] = {
    Qt.Key.Key_F: "freeze",
    Qt.Key.Key_O: "spotlight",
    Qt.Key.Key_L: "laser",
    Qt.Key.Key_M: "magnifier",
    Qt.Key.Key_D: "draw",
    Qt.Key.Key_E: "clear",
    Qt.Key.Key_B: "black",
    Qt.Key.Key_Period: "black",
}
"""“.” and B are what a presenter's remote sends for a black screen."""

_MOST_STROKES, _MOST_POINTS = 500, 5000
_NEAR = 0.18
"""Of the height: how near its lower edge the mouse brings the buttons."""


class PresenterTools(QObject):
    """While a panel is presented in `window`. Ink belongs to the panel that it was drawn on."""

    changed = Signal()
    """What is drawn over the panels is another."""
    froze = Signal(bool)
    """The audience is to keep its picture, or to follow again."""
    text_size_asked = Signal(int)
    """Larger (1), smaller (-1), or as it is at first (0)."""

    def __init__(self, window: QMainWindow, contents: Contents) -> None:
        super().__init__(window)
        self._window, self._contents = window, contents
        self.marks = Marks()
        self.is_on = False
        self.is_frozen = False
        self.has_audience = False
        """Whether a second window shows the panels: then the teacher's own goes on while that is frozen or black."""
        self._ink: dict[str, tuple[Stroke, ...]] = {}
        self._place = QRect()
        self._mouse: QPointF | None = None  # where it is in the window; None outside
        self.overlay = Overlay(window)
        self.toolbar = Toolbar(window)
        self.overlay.pen_down.connect(self._on_pen_down)
        self.overlay.pen_moved.connect(self._on_pen_moved)
        self.overlay.wheel_turned.connect(self.magnify)
        self.toolbar.chosen.connect(self.do)
        self.toolbar.text_size_asked.connect(self.text_size_asked)
        contents.one_panel.alone_changed.connect(self._on_panel)

    # what a person does

    def begin(self) -> None:
        self.is_on = True
        handle = self._window.windowHandle()
        if handle is not None:
            handle.installEventFilter(self)  # the mouse, whichever widget it is over
        self._show()
        self.toolbar.come(self._place)

    def end(self) -> None:
        """Put all away. A picture that the audience keeps, and its black screen, stay as long as there is one."""
        self.is_on = False
        handle = self._window.windowHandle()
        if handle is not None:
            handle.removeEventFilter(self)
        self._ink.clear()
        if not self.has_audience:
            self._freeze(False)
        self.marks = Marks(is_black=self.marks.is_black and self.has_audience, zoom=self.marks.zoom)
        self.toolbar.hide()
        self._show()

    def escape(self) -> bool:
        """End what is in the hand; whether there was anything."""
        if self.marks.is_black:
            self.do("black")
        elif self.marks.tool:
            self.do(self.marks.tool)
        else:
            return False
        return True

    def do(self, what: Act) -> None:
        """Take a tool or put it away, freeze or go on, clear, black or not."""
        marks = self.marks
        if what == "freeze":
            self._freeze(not self.is_frozen)
        elif what == "black":
            marks = replace(marks, is_black=not marks.is_black)
        elif what == "clear":
            self._ink.pop(self._panel, None)
            marks = replace(marks, strokes=())
        else:
            marks = replace(marks, tool="" if marks.tool == what else what)
            if self._mouse is None:  # it has not moved yet
                self._mouse = QPointF(self._window.mapFromGlobal(QCursor.pos()))
            if marks.tool == "magnifier":
                self._contents.hover.point(NOTHING)  # a lens shows what is there, and not what it points at
        self._set(self._pointed(marks))

    def magnify(self, by: int) -> None:
        """Let the lens show what is below it larger (1) or smaller (-1), or (0) as at first."""
        zoom = min(MOST_ZOOM, max(LEAST_ZOOM, self.marks.zoom + by * ZOOM_STEP)) if by else FIRST_ZOOM
        self._set(replace(self.marks, zoom=zoom))

    def lose_audience(self) -> None:
        """Its window is closed: nothing is kept from it any more."""
        self._freeze(False)
        self.has_audience = False
        self._set(replace(self.marks, is_black=False))
        self._show()

    def _freeze(self, on: bool) -> None:
        if on != self.is_frozen:
            self.is_frozen = on
            self._contents.hover.hold(on and not self.has_audience)
            self.froze.emit(on)

    # where it is drawn

    def set_place(self, place: QRect) -> None:
        """Where in the window the panels are that the audience sees."""
        if place != self._place:
            self._place = place
            self.marks = self._pointed(self.marks)  # what is laid out anew moves under the mouse
            self._show()

    def set_theme(self, theme: Theme) -> None:
        self.overlay.set_theme(theme)

    @property
    def _panel(self) -> str:
        return self._contents.one_panel.alone

    def _on_panel(self, name: str) -> None:
        self._set(replace(self.marks, strokes=self._ink.get(name, ())))

    def _set(self, marks: Marks) -> None:
        if marks != self.marks:
            self.marks = marks
            self._show()

    def _show(self) -> None:
        marks = self.marks
        if self.has_audience:
            marks = replace(marks, is_black=False)  # that is the other window's
        self.overlay.setGeometry(self._window.rect() if marks.is_black else self._place)
        self.overlay.show_marks(marks, self._lens())
        self.toolbar.raise_()
        self.overlay.stackUnder(self.toolbar)  # raising both in turn would paint all below at every move of the mouse
        if self.is_on:
            self.toolbar.say(self.marks, self.is_frozen, self.has_audience)
            self.toolbar.follow(self._place)
        if marks.is_black:
            self.toolbar.hide()
        self.changed.emit()

    def refresh_lens(self) -> None:
        """What is below it may have changed."""
        if self.marks.tool == "magnifier":
            self.overlay.show_marks(self.overlay.marks, self._lens())

    def _lens(self) -> QImage | None:
        """What the magnifier shows in this window."""
        if self.marks.tool != "magnifier":
            return None
        place = QRectF(self._place)
        docks = self._window.findChildren(QDockWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        shown = [part_of(widget) for widget in (self._contents, *docks) if widget.isVisible() and not widget.isWindow()]
        ratio, theme = self.overlay.devicePixelRatioF(), self._contents.theme
        area = QRectF(QPointF(), place.size())  # the overlay's own coordinates
        return lens_picture(shown, place, self.marks, area, ratio, theme)

    # the mouse

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self.is_on and isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseMove:
            where = event.position()
            self._mouse = where
            self._set(self._pointed(self.marks))
            is_near = where.y() > self._window.height() * (1 - _NEAR) and not event.buttons()
            if is_near and not self.overlay.marks.is_black:
                self.toolbar.come(self._place)
        elif event.type() == QEvent.Type.Leave:
            self._mouse = None
            self._set(replace(self.marks, pointer=None))
        return False

    def _pointed(self, marks: Marks) -> Marks:
        """With the pointer where the mouse is in the place of the panels, while it holds a tool."""
        at = share(self._mouse, QRectF(self._place)) if marks.tool and self._mouse is not None else None
        return replace(marks, pointer=at)

    def _on_pen_down(self, point: Point) -> None:
        self._set(replace(self.marks, strokes=(*self.marks.strokes, (point,))[-_MOST_STROKES:]))
        self._ink[self._panel] = self.marks.strokes

    def _on_pen_moved(self, point: Point) -> None:
        *others, last = self.marks.strokes or ((point,),)
        if len(last) < _MOST_POINTS:
            self._set(replace(self.marks, strokes=(*others, (*last, point))))
            self._ink[self._panel] = self.marks.strokes
