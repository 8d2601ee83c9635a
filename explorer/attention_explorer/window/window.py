"""The main window: contents around one session, menus, theme and what is remembered between starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QMenu

from attention_explorer import settings as remembered
from attention_explorer.look.theme import ThemeName
from attention_explorer.settings import LARGEST_TEXT, LAYOUT_VERSION, SMALLEST_TEXT, Settings
from attention_explorer.window.ending import close_dialogs
from attention_explorer.window.shell import SMALLEST, Shell

if TYPE_CHECKING:
    # imported by `fill`, once the window has been painted
    from attention_explorer.chooser.chooser import Chooser
    from attention_explorer.compute.background import Background
    from attention_explorer.compute.bridge import Bridge
    from attention_explorer.compute.worker import EngineLike
    from attention_explorer.panels.base import Panel
    from attention_explorer.panels.input.panel import InputPanel
    from attention_explorer.session.hover import Hover
    from attention_explorer.session.session import Session
    from attention_explorer.session.state import State
    from attention_explorer.widgets.notice_bar import NoticeBar
    from attention_explorer.widgets.page import WheelScrolls
    from attention_explorer.window.audience.audience import Audience
    from attention_explorer.window.comparing import Comparing
    from attention_explorer.window.contents import Contents
    from attention_explorer.window.dialogs import FileDialogs
    from attention_explorer.window.docks import DockHost
    from attention_explorer.window.glossary import Explaining, GlossaryWindow
    from attention_explorer.window.lesson.kept_draft import DraftAutosave
    from attention_explorer.window.lesson.lessons import Lessons
    from attention_explorer.window.notes import NotesWindow, StatesMenu
    from attention_explorer.window.presenter import Presenter
    from attention_explorer.window.recovery import Autosave
    from attention_explorer.window.script import ScriptWindow
    from attention_explorer.window.sessions import Sessions
    from attention_explorer.window.short_texts import ShortTexts
    from attention_explorer.window.top_bar import TopBar
    from attention_explorer.window.tour.tour import TourGuide
    from attention_models.protocol.request import Request

STOP_SECONDS = 3.0
"""How long a closed window waits for its threads: an import of torch cannot be called off."""


WRITE_SECONDS = 1.0
"""How long it waits for a session that is being saved."""


class MainWindow(Shell):
    """Everything that one session shows. `start` sets the engine going once what is in the window has been painted.

    Without a state it is empty until `fill`: what it shows can be imported after the window is on screen.
    """

    closed = Signal()
    """The window was closed, and its engine's thread has ended or was left to itself (`stopped`)."""

    first_session: Path | None = None
    """The session file to begin with."""
    first_text = ""
    """The state to begin with, as a short text."""

    _is_filled = False
    _has_said_settings = False
    _asks_at_close = True
    contents: Contents
    session: Session
    hover: Hover
    bridge: Bridge
    top_bar: TopBar
    notice_bar: NoticeBar
    panel_bar: NoticeBar
    input: InputPanel
    dock_host: DockHost
    dialogs: FileDialogs
    panel_menus: tuple[QMenu, QMenu]
    sessions: Sessions
    short_texts: ShortTexts
    recent_menu: QMenu
    states_menu: StatesMenu
    comparing: Comparing
    lessons: Lessons
    presenter: Presenter
    audience: Audience
    _explaining: Explaining
    _wheel: WheelScrolls

    def __init__(
        self,
        state: State | None,
        settings: Settings | None = None,
        engine_factory: Callable[[], EngineLike] | None = None,
        remembers: bool = True,
        theme_now: ThemeName | None = None,
    ) -> None:
        super().__init__(settings or Settings(), theme_now)
        self._engine_factory = engine_factory
        self._remembers = remembers
        self._remembered = remembered.copy_of(self.settings)
        """The settings as they were read or written last."""
        self.autosave: Autosave | None = None
        self.drafts: DraftAutosave | None = None
        self._notes: NotesWindow | None = None
        self._glossary: GlossaryWindow | None = None
        self._script: ScriptWindow | None = None
        self._tour: TourGuide | None = None
        self._disk: Background | None = None  # writes settings, once there is something in the window
        self.stopped = False
        """Whether the window was closed and its engine's thread has ended."""
        self.menus: dict[str, QAction] = {}
        self._chooser: Chooser | None = None
        self._scaling = QTimer(self)
        self._scaling.setSingleShot(True)
        self._scaling.timeout.connect(self._apply_scale)
        self.setAcceptDrops(True)
        if state is not None:
            self.fill(state)

    def fill(self, state: State) -> None:
        """Put a session into the empty window, and into its input the keys that were pressed meanwhile."""
        from attention_explorer.compute.background import Background
        from attention_explorer.compute.worker import open_engine
        from attention_explorer.widgets.page import WheelScrolls
        from attention_explorer.widgets.screens import fitted
        from attention_explorer.window.audience.audience import Audience
        from attention_explorer.window.comparing import Comparing
        from attention_explorer.window.contents import Contents
        from attention_explorer.window.dialogs import FileDialogs
        from attention_explorer.window.glossary import Explaining
        from attention_explorer.window.lesson.lessons import Lessons
        from attention_explorer.window.menus import build_menus, fill_panel_menus
        from attention_explorer.window.notes import StatesMenu
        from attention_explorer.window.presenter import Presenter
        from attention_explorer.window.sessions import Sessions
        from attention_explorer.window.short_texts import ShortTexts

        state = replace(state, recent_texts=tuple(self.settings.recent_texts))
        self.contents = contents = Contents(state, self.theme, self._engine_factory or open_engine)
        self.session, self.hover, self.bridge = contents.session, contents.hover, contents.bridge
        self.top_bar, self.input, self.dock_host = contents.top_bar, contents.input, contents.dock_host
        self.notice_bar, self.panel_bar = contents.notice_bar, contents.panel_bar
        self.dialogs = FileDialogs(self, self.session)
        self.sessions = Sessions(self, contents)
        self.sessions.changed.connect(self._show_title)
        self.sessions.used.connect(self._on_session_used)
        self.short_texts = ShortTexts(self, contents, self.sessions)
        self.panel_menus = QMenu(self), QMenu(self)
        self.recent_menu = QMenu(self)
        self.recent_menu.aboutToShow.connect(self._fill_recent)
        self.states_menu = StatesMenu(self, self.sessions)
        self.comparing = Comparing(self.session, self.sessions, self.dock_host)
        self.lessons = Lessons(self, contents, self.sessions)
        self.lessons.text_size_asked.connect(self._scale_for_lesson)
        self.lessons.changed.connect(self._put_off_tour)
        self.lessons.changed.connect(self.hover.end)
        self.presenter = Presenter(self, contents, self._set_presented_points)
        sheet = self.short_texts.sheet
        self.audience = Audience(self, contents, self.presenter, self.lessons, self.sessions, sheet)
        self.audience.left_out = set(self.settings.not_for_audience)
        self.audience.left_out_changed.connect(self._on_audience_chosen)
        self.top_bar.open_asked.connect(self.choose_checkpoint)
        self.input.picture_asked.connect(self.dialogs.open_picture)
        self.input.texts_asked.connect(self.dialogs.open_texts)
        self.menus = build_menus(self)
        contents.script_wanted.connect(self.show_script)
        contents.panel_put_away.connect(self._on_panel_put_away)
        contents.panels_opened.connect(lambda: fill_panel_menus(self, self.menus))
        self.session.changed.connect(self._on_changed)
        self.top_bar.set_recent(self.settings.recent)
        self.setCentralWidget(fitted(contents, SMALLEST - QSize(0, self.menuBar().sizeHint().height()), self))
        contents.arrange(self.settings)
        if self._remembers:
            self._disk = Background("settings", self)
            self._keep_what_is_done()
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self._explaining, self._wheel = Explaining(app, self), WheelScrolls(app, self)
        self._is_filled = True
        if self.isVisible():
            contents.show()  # now, and not when Qt comes to it: its text is what the next key is for
            self.input.focus_text()
            self.hand_on_keys(self.focusWidget())

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels in the order of their tabs. Those that come after the first paint are made now if need be."""
        return self.contents.panels

    def has_all_panels(self) -> bool:
        """Whether every panel has been made, also those of other packages."""
        return self.contents.has_all_panels()

    def is_settled(self) -> bool:
        """Whether all that is visible shows the text in the input, or a sentence says why it cannot."""
        return self.contents.is_settled()

    @property
    def chooser(self) -> Chooser:
        """The dialog of checkpoints, and what it knows of a hub; made when it is asked for first."""
        if self._chooser is None:
            from attention_explorer.chooser.chooser import Chooser

            self._chooser = Chooser(self.session, self.settings, parent=self)
            self._chooser.recent_changed.connect(lambda: self.top_bar.set_recent(self.settings.recent))
        return self._chooser

    def _keep_what_is_done(self) -> None:
        """Write it to a file beside the settings, and offer what an ended window has left there."""
        from attention_explorer.window.lesson.kept_draft import DraftAutosave
        from attention_explorer.window.recovery import Autosave

        self.autosave = Autosave(self.sessions, self.contents)
        self.drafts = DraftAutosave(self.lessons, self.contents.lesson_bar)
        for kept in (self.autosave, self.drafts):
            kept.failed.connect(partial(self.contents.settings_bar.show_notice, "warning"))

    def start(self) -> None:
        """Begin to load, once what is on screen so far has been painted: the `first_session`, where there is one."""
        self.input.focus_text()
        self.once_painted(self._start)

    def _start(self) -> None:
        from attention_explorer.session.lesson_files import is_lesson
        from attention_models.files.catalogue import FIRST

        session = self.first_session
        lesson = session if session is not None and is_lesson(session.name) else None
        self.contents.start(loads=(session is None and not self.first_text) or lesson is not None)
        if self.first_text:
            self.short_texts.open(self.first_text, failed=self.session.start)
        elif lesson is not None:
            self.lessons.begin(lesson)
        elif session is not None:
            self.sessions.open_path(session, failed=self.session.start)
        for kept in (self.autosave, self.drafts):
            if kept is not None:
                kept.offer()
        if self._remembers:
            self.contents.training.keeps_unsaved = True
            self.contents.training.look_for_left()
        is_first = session is None and not self.first_text and self.session.state.document.checkpoint == FIRST
        if self._remembers and is_first and self.settings.tour in ("new", "later"):
            self.tour.offer()

    def say(self, kind: Literal["info", "warning", "error"], sentence: str) -> None:
        """Put a sentence before the person."""
        from attention_explorer.session.intents import Show
        from attention_explorer.session.state import Notice

        self.session.dispatch(Show(Notice(kind, sentence)))

    # what the menus and buttons do

    def choose_checkpoint(self) -> None:
        """Let the person choose a checkpoint, see what it is, and open it."""
        self.chooser.show(self, self.theme)

    def show_notes(self) -> None:
        """Show the window of states and notes, beside this one."""
        from attention_explorer.window.notes import NotesWindow

        if self._notes is None:
            self._notes = NotesWindow(self.sessions, self)
            self._notes.keep.clicked.connect(self.states_menu.keep)
            self._notes.compared.connect(self.comparing.keep_state)
        self._notes.show()
        self._notes.raise_()
        self._notes.activateWindow()

    def show_glossary(self) -> None:
        """Show what the words mean, in a window beside this one."""
        from attention_explorer.window.glossary import GlossaryWindow

        if self._glossary is None:
            self._glossary = GlossaryWindow(self)
            self._glossary.panel_wanted.connect(self.dock_host.raise_panel)
            self._glossary.finished.connect(lambda _: setattr(self, "_glossary", None))
        self._glossary.show()
        self._glossary.raise_()
        self._glossary.activateWindow()
        self._glossary.field.setFocus()

    def show_script(self, request: Request) -> None:
        """Show as PyTorch what answers `request`, in a window beside this one."""
        from attention_explorer.window.script import ScriptWindow

        if self._script is None:
            self._script = ScriptWindow(self.session, self.theme, self)
            self._script.again.connect(self.contents.show_script)
            self._script.finished.connect(lambda _: setattr(self, "_script", None))
        self._script.show()
        self._script.raise_()
        self._script.activateWindow()
        self._script.ask(request)

    @property
    def tour(self) -> TourGuide:
        """The tour of the window; made when it is asked for first."""
        if self._tour is None:
            from attention_explorer.session.tours import first_tour
            from attention_explorer.window.tour.bar import TourBar
            from attention_explorer.window.tour.tour import TourGuide

            bar = TourBar()
            self.contents.put_below(bar)
            self._tour = TourGuide(first_tour(), self.contents, bar, self)
            self._tour.at = min(self.settings.tour_step, len(self._tour.tour.step))
            self._tour.set_theme(self.theme)
            self._tour.moved.connect(self._keep_tour)
        return self._tour

    def start_tour(self) -> None:
        """Begin the tour, or go on where it was left."""
        self.tour.begin()

    def _put_off_tour(self) -> None:
        """Who gives a lesson has no use for the offer of a tour beside it."""
        if self.lessons.guide is not None and self._tour is not None and not self._tour.bar.isHidden():
            self._tour.leave("later")

    def _keep_tour(self) -> None:
        """Remember where the tour is, and what became of its offer: a “never” stays."""
        at = self.tour.at
        self.settings.tour_step = at if at < len(self.tour.tour.step) else 0
        if self.settings.tour in ("new", "later"):
            self.settings.tour = self.tour.answer or "later"
        self._write_settings()

    def reset_layout(self) -> None:
        self.contents.rearrange(self.settings.text_scale, "flow")

    def heads_side_by_side(self) -> None:
        self.contents.rearrange(self.settings.text_scale, "heads")

    def set_theme_name(self, name: ThemeName) -> None:
        self.settings.theme = self.theme_name = name
        self.apply_theme()
        self._write_settings()

    def scale_text(self, factor: float) -> None:
        """Make all text larger or smaller; 0 sets it back.

        It is laid out anew once no key is waiting: a key that is held down asks for more of it than there is time for.
        """
        scale = 1.0 if factor == 0 else self.settings.text_scale * factor
        scale = min(LARGEST_TEXT, max(SMALLEST_TEXT, scale))
        if scale != self.settings.text_scale:
            self.settings.text_scale = scale
            self._scaling.start()

    def _scale_for_lesson(self, factor: float) -> None:
        """Text `factor` times as large as the person likes it, as long as a lesson asks for it."""
        if factor != self.text_factor:
            self.text_factor = factor
            self._scaling.start()

    def _set_presented_points(self, points: float) -> None:
        """Give all text a size for the screen; 0 gives it its own again."""
        if abs(points - self.presented_points) > 0.1:
            self.presented_points = points
            self.apply_theme()

    def _apply_scale(self) -> None:
        is_shared_out = self.dock_host.is_shared_out()  # asked before text of another size moves the columns
        self.apply_theme()
        self.dock_host.set_text_scale(self.settings.text_scale * self.text_factor, is_shared_out)

    def set_full_screen(self, full: bool) -> None:
        """Fill the screen, or go back to how the window was: maximised, if it was."""
        from attention_explorer.widgets.screens import fill_screen

        fill_screen(self, full)

    # the state, and what is remembered

    def _on_changed(self, old: State, new: State) -> None:
        from attention_explorer.recovery.training_folders import is_private

        if new.recent_texts != old.recent_texts:
            self.settings.recent_texts = list(new.recent_texts)
            self._write_settings()
        loaded = new.results.loaded
        if loaded is not None and loaded is not old.results.loaded:
            self._show_title()
            if not loaded.info.shipped and not loaded.info.borrowed:
                training = loaded.info.training  # of which a folder is remembered, and not each step
                reference = loaded.info.reference if training is None else training.reference
                if self.settings.recent[:1] != [reference] and not is_private(reference):
                    self.settings.recent = remembered.with_recent(self.settings.recent, reference)
                    self.top_bar.set_recent(self.settings.recent)
                    self._write_settings()

    def _show_title(self) -> None:
        from attention_explorer.widgets.token_text import apart

        loaded, name = self.session.state.results.loaded, self.sessions.title
        model = "" if loaded is None else f"{apart(loaded.info.name)} - "
        self.setWindowTitle(f"{f'{apart(name)}[*] - ' if name else ''}{model}Attention Explorer")
        self.setWindowModified(bool(name) and not self.sessions.is_saved)

    def _on_session_used(self, path: str) -> None:
        recent = self.settings.recent_sessions
        self.settings.recent_sessions = remembered.with_recent(recent, str(Path(path).absolute()))
        self._write_settings()

    def _on_audience_chosen(self) -> None:
        self.settings.not_for_audience = sorted(self.audience.left_out)
        self._write_settings()

    def _fill_recent(self) -> None:
        """List the sessions opened lately, and what ended windows have left."""
        from attention_explorer.widgets.token_text import apart

        self.recent_menu.clear()
        for path in self.settings.recent_sessions:
            action = self.recent_menu.addAction(Path(path).name.replace("&", "&&"))
            action.setToolTip(path)
            action.setEnabled(Path(path).is_file())
            action.triggered.connect(partial(self.sessions.open_path, Path(path)))
        keepers = ("Not saved", self.autosave), ("Lesson that was not saved", self.drafts)
        left = [(what, kept, *each) for what, kept in keepers if kept is not None for each in kept.left]
        if left and not self.recent_menu.isEmpty():
            self.recent_menu.addSeparator()
        for what, kept, title, file in left:
            action = self.recent_menu.addAction(f"{what}: {apart(title)}".replace("&", "&&"))
            action.triggered.connect(partial(kept.open_left, file))
        if self.recent_menu.isEmpty():
            self.recent_menu.addAction("No session was opened yet").setEnabled(False)
        self.recent_menu.setToolTipsVisible(True)

    def _on_panel_put_away(self, name: str) -> None:
        if action := self.menus.get(f"show_{name}"):
            action.setVisible(False)

    def apply_theme(self) -> None:
        super().apply_theme()
        if self._is_filled:
            self.contents.set_theme(self.theme)
            self.lessons.set_theme(self.theme)
            self.audience.set_theme(self.theme)
            if self._tour is not None:
                self._tour.set_theme(self.theme)
            if self._chooser is not None:
                self._chooser.set_theme(self.theme)
            if self._script is not None:
                self._script.set_theme(self.theme)

    def _remember(self) -> None:
        self.settings.geometry = bytes(self.saveGeometry().data())
        if self._is_filled:
            layout = self.contents.remembered_layout()
            if layout is not None:
                self.settings.layout, self.settings.layout_version = layout, LAYOUT_VERSION
                self.settings.floated = self.dock_host.floated.remembered()
            self.settings.view = self.session.state.document.view.lasting
        remembered.save(self.settings, self._remembered)

    def _write_settings(self) -> None:
        """Write what this window has changed of the settings."""
        if self._disk is not None:
            now = remembered.copy_of(self.settings)
            self._disk.run(partial(remembered.save, now, self._remembered), partial(self._on_settings_written, now))

    def _on_settings_written(self, written: Settings, sentence: str | Exception) -> None:
        if not sentence:
            self._remembered = written
        elif self._is_filled and not self._has_said_settings:
            self._has_said_settings = True
            self.contents.settings_bar.show_notice("warning", f"{sentence} What you set will be forgotten.")

    def end(self) -> None:
        """Close, without asking about what is not saved."""
        self._asks_at_close = False
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._is_filled and self._asks_at_close and not self.lessons.may_close(self.close):
            event.ignore()
            return
        if self._is_filled:
            self.presenter.end()
            self.audience.close()
        close_dialogs(self)
        if self._disk is not None:
            self._disk.stop(STOP_SECONDS, finish=True)
        if self._remembers:
            self._remember()
        self.hide()  # the threads may need a moment to stop
        self.stopped = self._stop_threads(time.monotonic() + STOP_SECONDS)
        super().closeEvent(event)
        self.closed.emit()

    def _stop_threads(self, deadline: float) -> bool:
        """End the threads of engine, chooser and files; whether all ended by `deadline`, a time of `time.monotonic`."""
        running: list[Contents | Chooser] = [self.contents] if self._is_filled else []
        if self._chooser is not None:
            running.append(self._chooser)
        for one in running:
            one.stop(0)  # all are told before any is waited for
        ended = []
        if self._is_filled:  # these have to write, which takes a moment; a checkpoint that is being read is given up
            ended += [self.sessions.stop(WRITE_SECONDS), self.lessons.stop(WRITE_SECONDS)]
            for kept in (self.autosave, self.drafts):
                if kept is not None:
                    ended.append(kept.stop(max(WRITE_SECONDS, deadline - time.monotonic())))
        ended += [one.stop(max(0.0, deadline - time.monotonic())) for one in running]
        return all(ended)

    # a folder or a file dropped on the window

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        from attention_explorer.chooser.drops import checkpoint_in, session_in

        if self._is_filled and (checkpoint_in(event.mimeData()) or session_in(event.mimeData())):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        from attention_explorer.chooser.drops import checkpoint_in, corpus_in, lesson_in, picture_in, session_in
        from attention_explorer.session.intents import ChooseCorpus, OpenCheckpoint

        picture = picture_in(event.mimeData())
        if picture is not None:
            event.acceptProposedAction()
            self.dialogs.look_at(picture)
            return
        lesson = lesson_in(event.mimeData())
        if lesson is not None:
            event.acceptProposedAction()
            self.lessons.begin(Path(lesson))
            return
        session = session_in(event.mimeData())
        if session is not None:
            event.acceptProposedAction()
            self.sessions.open_path(Path(session))
            return
        texts = corpus_in(event.mimeData())
        if texts is not None:
            event.acceptProposedAction()
            self.dock_host.raise_panel("corpus")  # which says so where this model reads none
            self.session.dispatch(ChooseCorpus(texts))
            return
        reference = checkpoint_in(event.mimeData())
        if reference is not None:
            event.acceptProposedAction()
            self.session.dispatch(OpenCheckpoint(reference))
