"""The audience's window and what the teacher has beside it: opened, kept up to date, frozen, closed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QScreen
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from attention_explorer.look.theme import Theme
from attention_explorer.widgets.screens import fill_screen
from attention_explorer.window.audience.marks import Marks
from attention_explorer.window.audience.stage import Part, area_of, part_of, parts_of
from attention_explorer.window.contents import Contents
from attention_explorer.window.docks import Grip
from attention_explorer.window.lesson.lessons import Lessons
from attention_explorer.window.presenter import Presenter
from attention_explorer.window.sessions import Sessions

if TYPE_CHECKING:  # needed with the first audience
    from attention_explorer.window.audience.audience_window import AudienceWindow
    from attention_explorer.window.audience.teacher_notes import TeacherNotes

SOONEST, LATEST = 40, 600
"""ms between a change and its picture."""
_SHARE = 4
"""After a picture the window has this many times as long for all else: mirroring takes a fifth of it, but where one
picture takes a sixth of a second. Measured at 1920 x 1080: 2 to 30 ms, by panel."""

_MOVED = 500
"""ms: by then the windows of a screen that was unplugged are on another."""

_NOTES = 0.2
"""Of the window's height: what notes get at first."""

_FROZEN, _BLACK = "Frozen (F)", "Black screen (B)"


class Audience(QObject):
    """Lives in the GUI thread. What the audience sees changes when the teacher's window is painted anew."""

    changed = Signal()
    """The window was opened or closed."""
    left_out_changed = Signal()
    """Other panels are for the audience."""

    def __init__(
        self,
        window: QMainWindow,
        contents: Contents,
        presenter: Presenter,
        lessons: Lessons,
        sessions: Sessions,
        sheet: QWidget,
    ) -> None:
        super().__init__(window)
        self._window, self._contents, self._presenter = window, contents, presenter
        self._lessons, self._sessions, self._sheet = lessons, sessions, sheet
        self.tools = presenter.tools
        self.window: AudienceWindow | None = None
        self.left_out: set[str] = set()
        """Names of panels that are not for the audience."""
        self._dock: QDockWidget | None = None
        self.notes: TeacherNotes | None = None
        self._frozen_marks: Marks | None = None
        self._picture = QTimer(self)
        self._picture.setSingleShot(True)
        self._picture.setInterval(SOONEST)
        self._picture.timeout.connect(self._take_picture)
        presenter.fills_screen = lambda: self.window is None or self.window.screen() is not window.screen()
        presenter.keeps_pages = lambda: lessons.guide is not None
        presenter.walk_states = self._walk_states
        presenter.changed.connect(self._on_presenting)
        self.tools.changed.connect(self._show_marks)
        self.tools.froze.connect(self._on_froze)
        lessons.changed.connect(self._say)
        sessions.states.changed.connect(self._say)
        window.installEventFilter(self)
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        self._moves = QTimer(self)
        self._moves.setSingleShot(True)
        self._moves.setInterval(_MOVED)
        self._moves.timeout.connect(self._uncover)
        app.screenRemoved.connect(self._on_screen_removed)  # not a lambda: it would be called after this has gone

    @property
    def is_open(self) -> bool:
        return self.window is not None

    def toggle(self) -> None:
        if self.is_open:
            self.close()
        else:
            self.open()

    def open(self) -> None:
        """Show the audience's window on another screen where there is one, and present."""
        from attention_explorer.window.audience.audience_window import AudienceWindow

        self.window = shown = AudienceWindow()
        shown.key_pressed.connect(self._on_key)
        shown.closed.connect(self._on_closed)
        shown.resized.connect(self._picture.start)
        self.tools.has_audience = True
        self._show_notes()
        other = other_screen(self._window.screen(), QGuiApplication.screens())
        if other is None:
            shown.resize(shown.sizeHint())
            shown.show()
        else:
            shown.setGeometry(other.geometry())
            fill_screen(shown, True)
            shown.show()
        self._presenter.begin()
        self._window.activateWindow()
        self._picture.start(0)
        self.changed.emit()

    def _on_screen_removed(self) -> None:
        self._moves.start()

    def _uncover(self) -> None:
        """The projector is gone, and what was on it covers the teacher's window: it becomes one beside it."""
        if self.window is not None and self.window.isFullScreen() and self.window.screen() is self._window.screen():
            fill_screen(self.window, False)
            self.window.resize(self.window.sizeHint())
            self._window.activateWindow()

    def close(self) -> None:
        if self.window is not None:
            self.window.close()

    def set_shown(self, panel: str, is_shown: bool) -> None:
        """Say whether a panel is for the audience. While none that is stands in front, it keeps the picture it has."""
        (self.left_out.discard if is_shown else self.left_out.add)(panel)
        self.left_out_changed.emit()
        self._picture.start()

    def set_theme(self, theme: Theme) -> None:
        """It comes with the size of the application's text."""
        self.tools.set_theme(theme)
        self.tools.toolbar.fit_font()
        if self.notes is not None:
            self.notes.fit_font()
        self._picture.start()

    # what the audience sees

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt asks the window to update itself whenever anything in it is to be painted: then the picture is old."""
        is_wanted = self._presenter.is_on or self.window is not None
        if is_wanted and event.type() == QEvent.Type.UpdateRequest and not self._picture.isActive():
            cost = 0.0 if self.window is None else self.window.cost
            self._picture.start(min(LATEST, max(SOONEST, round(_SHARE * cost * 1000))))
        return False

    def _parts(self) -> list[Part]:
        if self._sheet.isVisible():
            return [part_of(self._sheet)]
        guide = self._lessons.guide
        parts = parts_of(self._contents, self.left_out, None if guide is None else guide.column)
        if guide is not None and parts and guide.ring.isVisible() and guide.ring.window() is self._window:
            parts.append(part_of(guide.ring, area_of(parts)))
        return parts

    def _take_picture(self) -> None:
        parts = self._parts()
        if self._presenter.is_on:
            self.tools.set_place(area_of(parts))
            self.tools.refresh_lens()
        if self.window is not None and parts and not self.tools.is_frozen:
            self.window.take_picture(parts, self._contents.theme)
            self.window.take_lens(parts, self.tools.marks)

    def _show_marks(self) -> None:
        if self.window is None:
            return
        marks = self.tools.marks
        if self._frozen_marks is not None:
            marks = replace(self._frozen_marks, is_black=marks.is_black)
        else:
            self.window.take_lens(self._parts() if marks.tool == "magnifier" else [], marks)
        self.window.show_marks(marks)
        self._say()

    def _on_froze(self, frozen: bool) -> None:
        parts = self._parts()
        if frozen and self.window is not None and parts:
            self.window.take_picture(parts, self._contents.theme)  # as it is now, and not a moment ago
            self.window.take_lens(parts, self.tools.marks)
        marks = self.tools.marks
        if marks.tool != "magnifier":  # what is enlarged is a part of the picture
            marks = replace(marks, tool="", pointer=None)
        self._frozen_marks = marks if frozen else None
        self._show_marks()
        self._picture.start()

    # the teacher's side

    def _show_notes(self) -> None:
        from attention_explorer.window.audience.teacher_notes import TeacherNotes

        if self._dock is None:
            self.notes = TeacherNotes()
            self._dock = QDockWidget("Notes for the teacher", self._window)
            self._dock.setObjectName("teacher_notes")
            self._dock.setTitleBarWidget(Grip("Notes for the teacher"))
            self._dock.setFeatures(QDockWidget.DockWidgetFeature.NoDockWidgetFeatures)
            self._dock.setWidget(self.notes)
            self._window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, self._dock)
        assert self.notes is not None
        self.notes.fit_font()
        self.notes.restart()
        self._dock.show()
        high = round(_NOTES * self._window.height())
        self._window.resizeDocks([self._dock], [high], Qt.Orientation.Vertical)
        self._say()

    def _say(self) -> None:
        """The step's notes and what comes next; without a lesson those of the session, and the next state kept."""
        guide, states = self._lessons.guide, self._sessions.states
        if guide is not None:
            guide.column.keep_notes_elsewhere(self.is_open)
        if self.notes is None or self.window is None:
            return
        if guide is not None:
            steps, notes = guide.steps, guide.notes or "*No notes for this step.*"
            following = steps[guide.at + 1].title if guide.at + 1 < len(steps) else "the end"
        else:
            kept, at = states.kept.states, states.current
            notes = states.kept.notes or "*No notes in this session.*"
            following = kept[at + 1].name if at + 1 < len(kept) else ""
        frozen = _FROZEN if self.tools.is_frozen else ""
        self.notes.say(notes, following, _BLACK if self.tools.marks.is_black else frozen)

    def _walk_states(self, by: int) -> bool:
        if not self._sessions.states.kept.states:
            return False
        self._sessions.walk(by)
        return True

    def _on_presenting(self) -> None:
        self._picture.start(0)

    def _on_key(self, event: QKeyEvent) -> None:
        """A remote's keys go to whichever window has the keyboard; they are for the teacher's."""
        if event.key() == Qt.Key.Key_F5:
            self._presenter.toggle()
        elif event.key() == Qt.Key.Key_Escape and not self._presenter.is_on:
            self.close()
        else:
            self._presenter.take(event)

    def _on_closed(self) -> None:
        window, self.window = self.window, None
        if window is not None:
            window.deleteLater()
        self.tools.lose_audience()
        if self._dock is not None:
            self._dock.hide()
        if self.notes is not None:
            self.notes.stop()
        self._say()
        self.changed.emit()


def other_screen(own: QScreen, screens: list[QScreen]) -> QScreen | None:
    """The one that the teacher's window is not on; None where there is one alone, or both show the same."""
    return next((screen for screen in screens if screen is not own and screen.geometry() != own.geometry()), None)
