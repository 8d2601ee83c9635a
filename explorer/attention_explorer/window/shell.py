"""The window itself: its place on the screen, its look, its first paint, and the keys pressed before it has contents.

It is on screen before what is in it has been imported: of ours it needs the settings and the theme, and no numpy.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QByteArray, QCoreApplication, QSize, QTimer
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from attention_explorer.look import theme as themes
from attention_explorer.look.text_size import set_least_points
from attention_explorer.look.theme import ThemeName
from attention_explorer.settings import Settings
from attention_explorer.widgets.screens import room_for

UNSEEN = 1000  # ms: a window that is not painted by then, because it is covered, goes on all the same
SMALLEST = QSize(960, 600)
FIRST = QSize(1440, 900)


class Shell(QMainWindow):
    """A window that remembers its place and takes its colours and its text size from the settings."""

    def __init__(self, settings: Settings, theme_now: ThemeName | None = None) -> None:
        base_points = QApplication.font().pointSizeF()
        _set_font(base_points, settings.text_scale)  # before there are widgets, which else start with another one
        super().__init__()
        self._base_points = base_points
        self._once_painted: list[Callable[[], None]] = []
        self._early_keys: list[QKeyEvent] = []
        self.settings = settings
        self.theme_name: ThemeName = theme_now or settings.theme  # `theme_now` is for this start alone
        self.theme = themes.LIGHT
        self.text_factor = 1.0
        """How much larger than in the settings text is for now."""
        self.presented_points = 0.0
        """The size of text while a panel is presented; 0 otherwise."""
        self.setWindowTitle("Attention Explorer")
        room = room_for(self)
        self.setMinimumSize(SMALLEST.boundedTo(room))
        self.resize(FIRST.boundedTo(room))  # a laptop's screen may be smaller
        if settings.geometry:
            self.restoreGeometry(QByteArray(settings.geometry))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_desktop_scheme)
        self.apply_theme()

    def once_painted(self, action: Callable[[], None]) -> None:
        """Call `action` when what is in the window now has reached the screen, or where it stays covered a while."""
        self._once_painted.append(action)
        QTimer.singleShot(UNSEEN, self._go_on)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._once_painted:
            QTimer.singleShot(0, self._go_on)  # when this has reached the screen

    def _go_on(self) -> None:
        actions, self._once_painted = self._once_painted, []
        for action in actions:
            action()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._once_painted.clear()
        super().closeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Nothing in the window has taken the key. It is kept while there is nothing that could."""
        super().keyPressEvent(event)
        if self.centralWidget() is None:
            text, repeats, count = event.text(), event.isAutoRepeat(), event.count()
            self._early_keys.append(QKeyEvent(event.type(), event.key(), event.modifiers(), text, repeats, count))

    def hand_on_keys(self, taker: QWidget | None) -> None:
        """Give `taker` the keys that were pressed while the window was empty."""
        keys, self._early_keys = self._early_keys, []
        if taker is not None:
            for key in keys:
                QCoreApplication.sendEvent(taker, key)

    def apply_theme(self) -> None:
        """Put on the theme and the text size that are chosen now."""
        is_dark = self.theme_name == "dark" or (self.theme_name == "system" and _desktop_is_dark())
        self.theme = themes.DARK if is_dark else themes.LIGHT
        app = QApplication.instance()
        if isinstance(app, QApplication):
            set_least_points(self.presented_points)
            if self.presented_points:
                self.theme = themes.for_projector(self.theme)
                _set_font(self.presented_points, 1.0)
            else:
                _set_font(self._base_points, self.settings.text_scale * self.text_factor)
            themes.apply(app, self.theme)

    def _on_desktop_scheme(self) -> None:
        self.apply_theme()


def _desktop_is_dark() -> bool:
    from PySide6.QtCore import Qt  # here, for its ninety enumerations are made when it is imported

    return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark


def _set_font(base_points: float, scale: float) -> None:
    font = QApplication.font()
    font.setPointSizeF(max(themes.SMALLEST_FONT, base_points) * scale)
    QApplication.setFont(font)
