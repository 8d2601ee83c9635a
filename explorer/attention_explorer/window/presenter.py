"""One panel with the tokens fills the screen, in letters that the last row can read: F5, and Esc to come back."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QDockWidget,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)
from shiboken6 import isValid

from attention_explorer.panels.base import HEAD
from attention_explorer.widgets.screens import fill_screen
from attention_explorer.window.audience.tools import KEYS as TOOL_KEYS
from attention_explorer.window.audience.tools import PresenterTools
from attention_explorer.window.contents import Contents
from attention_explorer.window.short_texts import CodeSheet

CAP_HEIGHT = 0.021
"""Of the screen's height: how high a capital letter is. At 2 % the last row of a class still reads it."""

_MEASURED = 200.0  # points
_BOUNDLESS = 16_777_215
_LESSON = 0.3
"""Of the width: what the column of a lesson gets."""

_CTRL = Qt.KeyboardModifier.ControlModifier
_ZOOMS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1, Qt.Key.Key_0: 0}
_PAGES = {Qt.Key.Key_PageDown: 1, Qt.Key.Key_PageUp: -1}
_STEP, _LEAST_ZOOM, _MOST_ZOOM = 1.125, 0.7, 1.6
"""Of text that is made larger or smaller while a panel is presented."""

_LAID_OUT = 250
"""ms: by then a window manager has given the window its size."""


def points_for(height: int, font: QFont) -> float:
    """The size of text whose capital letters have their share of a screen of `height`, in points."""
    large = QFont(font)
    large.setPointSizeF(_MEASURED)  # small capitals are rounded to pixels: the answer would depend on today's size
    return _MEASURED * CAP_HEIGHT * height / QFontMetricsF(large).capHeight()


class Presenter(QObject):
    """Presents the panels of one window. `set_points` gives all text a size, and its own again with 0."""

    changed = Signal()
    """It began, or ended."""

    def __init__(self, window: QMainWindow, contents: Contents, set_points: Callable[[float], None]) -> None:
        super().__init__(window)
        self.is_on = False
        self._window, self._contents, self._docks = window, contents, contents.one_panel
        self._set_points = set_points
        self._docks.alone_changed.connect(lambda name: contents.input.set_over_map(name == HEAD))
        self._was_full_screen = False
        self._size = QSize()
        self._hidden: list[QWidget] = []
        self._focus: QWidget | None = None
        self._sides: list[tuple[QDockWidget, int]] = []  # docks of the window itself, and their widths
        self._fits = QTimer(self)
        self._fits.setSingleShot(True)
        self._fits.setInterval(0)
        self._fits.timeout.connect(lambda: self._fit(window.height()))
        self._returns = QTimer(self)
        self._returns.setSingleShot(True)
        self._returns.setInterval(_LAID_OUT)
        self._returns.timeout.connect(self._put_back)
        self.tools = PresenterTools(window, contents)
        self.tools.text_size_asked.connect(self.zoom_text)
        self.fills_screen: Callable[[], bool] = lambda: True
        """Whether the window is alone on its screen while it presents."""
        self.keeps_pages: Callable[[], bool] = lambda: False
        """Whether PgUp and PgDown are a lesson's."""
        self.walk_states: Callable[[int], bool] = lambda _: False
        """Goes to the state kept after this one (1) or before (-1); False where none is kept."""
        self._zoom = 1.0  # of the text

    def toggle(self) -> None:
        if self.is_on:
            self.end()
        else:
            self.begin()

    def begin(self) -> None:
        """Present the panel that has the keyboard, else the one that was brought to the front last."""
        name = self._contents.panel_in_front()
        if self.is_on or not name:
            return
        if self._returns.isActive():  # it is on its way back
            self._returns.stop()
            self._put_back()
        self.is_on = True
        window, contents = self._window, self._contents
        self._was_full_screen, self._size = window.isFullScreen(), window.size()
        self._focus = window.focusWidget()
        sides = window.findChildren(QDockWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        below = Qt.DockWidgetArea.BottomDockWidgetArea
        beside = [dock for dock in sides if dock.isVisible() and window.dockWidgetArea(dock) != below]
        self._sides = [(dock, dock.width()) for dock in beside]
        self._hidden = [part for part in contents.chrome if not part.isHidden()]
        for part in self._hidden:
            part.hide()
        window.menuBar().setFixedHeight(0)  # the keys of a hidden one would not work
        contents.input.show_strip_alone(True)
        self._docks.show_alone(name)
        fills = self.fills_screen()
        if fills:
            fill_screen(window, True)
        app = QApplication.instance()
        assert app is not None
        app.installEventFilter(self)
        self._zoom = 1.0
        # styled once: by the screen, and not by the window's old size and again when it has its new one
        self._fit(window.screen().size().height() if fills else window.height())
        self._docks.go_to(name)
        self.tools.begin()
        self.changed.emit()

    def end(self) -> None:
        """Put everything back as it was."""
        if not self.is_on:
            return
        self.is_on = False
        app, window = QApplication.instance(), self._window
        assert app is not None
        app.removeEventFilter(self)
        self._fits.stop()
        self.tools.end()
        self._set_points(0.0)
        self._contents.input.show_strip_alone(False)
        for part in self._hidden:
            part.show()
        menu_bar = window.menuBar()
        menu_bar.setMinimumHeight(0)
        menu_bar.setMaximumHeight(_BOUNDLESS)
        if not self._was_full_screen:
            fill_screen(window, False)
        if self._size == window.size():
            QTimer.singleShot(0, self, self._put_back)
        self._returns.start()
        self.changed.emit()

    def zoom_text(self, by: int) -> None:
        """Larger (1) or smaller (-1) text, or (0) as high as its share of the screen."""
        self._zoom = min(_MOST_ZOOM, max(_LEAST_ZOOM, self._zoom * _STEP**by)) if by else 1.0
        self._fits.start()

    def _put_back(self) -> None:
        """Once the window has its size again: panels are as wide as they were."""
        self._returns.stop()
        if self.is_on or not self._docks.alone:
            return
        if self._sides:
            docks, widths = zip(*self._sides, strict=True)
            self._window.resizeDocks(list(docks), list(widths), Qt.Orientation.Horizontal)
        layout = self._window.layout()
        if layout is not None:
            layout.activate()
        self._docks.show_all()
        if self._focus is not None and isValid(self._focus) and self._focus.isVisible():  # steps and rows may be new
            self._focus.setFocus(Qt.FocusReason.OtherFocusReason)
        self._focus = None

    def _fit(self, height: int) -> None:
        """Text by the `height` of what is presented on; a lesson's column by the window's width."""
        self._set_points(self._zoom * points_for(height, QApplication.font()))
        shown = [dock for dock, _ in self._sides]
        if shown:
            wide = round(_LESSON * self._window.width() / len(shown))
            self._window.resizeDocks(shown, [wide] * len(shown), Qt.Orientation.Horizontal)

    # keys

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() == QEvent.Type.Resize:
            self._fits.start()
        elif (
            isinstance(event, QKeyEvent)
            and event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
            and self._is_here(watched)
            and self._takes(event)
        ):
            if event.type() == QEvent.Type.KeyPress:
                self._do(event)
            event.accept()
            return True
        if isinstance(event, QWheelEvent) and self._is_here(watched) and event.modifiers() & _CTRL:
            turned = event.angleDelta().y()
            if turned:
                self.zoom_text(1 if turned > 0 else -1)
            return True
        return super().eventFilter(watched, event)

    def take(self, event: QKeyEvent) -> None:
        """A key that the audience's window got; while nothing is presented a black screen and freezing work too."""
        key = Qt.Key(event.key())
        if self.is_on and self._takes(event):
            self._do(event)
        elif TOOL_KEYS.get(key) in ("black", "freeze"):
            self.tools.do(TOOL_KEYS[key])

    def _is_here(self, watched: QObject) -> bool:
        """Whether a key is for this window, and for no list or dialog that is open over it."""
        is_over = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        return isinstance(watched, QWidget) and watched.window() is self._window and not is_over

    def _takes(self, event: QKeyEvent) -> bool:
        keys = event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier)
        key = Qt.Key(event.key())
        if keys == _CTRL:
            return key in _ZOOMS
        if keys != Qt.KeyboardModifier.NoModifier:
            return False
        if isinstance(self._window.focusWidget(), CodeSheet):
            return False  # its own Esc puts it away
        if key == Qt.Key.Key_Escape:
            return self._contents.session.state.document.view.painting == "off"  # else it puts the brush away
        if _is_field(self._window.focusWidget()):
            return False
        if key in _PAGES:
            return not self.keeps_pages()
        if self.tools.marks.tool == "magnifier" and key in _ZOOMS:
            return True
        is_panel = key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab) or Qt.Key.Key_1 <= key <= Qt.Key.Key_9
        return is_panel or key in TOOL_KEYS

    def _do(self, event: QKeyEvent) -> None:
        key, names = Qt.Key(event.key()), self._docks.open_panels()
        if event.modifiers() & _CTRL:
            self.zoom_text(_ZOOMS[key])
        elif key in _ZOOMS:
            self.tools.magnify(_ZOOMS[key])
        elif key in TOOL_KEYS:
            self.tools.do(TOOL_KEYS[key])
        elif key in _PAGES:
            if not self.walk_states(_PAGES[key]):
                self._go_round(_PAGES[key])
        elif key == Qt.Key.Key_Escape and self.tools.escape():
            return
        elif key == Qt.Key.Key_Escape:
            focus: QWidget | None = self._window.focusWidget()
            if focus is not None and _is_field(focus):
                self._docks.go_to(self._docks.alone)  # the next one ends it
                if focus.hasFocus():
                    focus.clearFocus()
            else:
                self.end()
        elif key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            by = -1 if key == Qt.Key.Key_Backtab or event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
            self._go_round(by)
        elif key - Qt.Key.Key_1 < len(names):
            self._docks.go_to(names[key - Qt.Key.Key_1])

    def _go_round(self, by: int) -> None:
        names = self._docks.open_panels()
        self._docks.go_to(names[(names.index(self._docks.alone) + by) % len(names)])


def _is_field(widget: QWidget | None) -> bool:
    """Whether keys are typed into it."""
    if isinstance(widget, (QLineEdit, QPlainTextEdit, QTextEdit)):
        return not widget.isReadOnly()
    return isinstance(widget, QAbstractSpinBox)
