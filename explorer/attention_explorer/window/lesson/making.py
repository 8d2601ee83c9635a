"""Making a lesson in the window: taking what is on screen as its steps, and its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from PySide6.QtCore import QFileSystemWatcher, QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QMainWindow, QMessageBox

from attention_explorer.session import lesson_files
from attention_explorer.session.figures import Figure
from attention_explorer.session.intents import Show
from attention_explorer.session.kept import KeptState
from attention_explorer.session.lesson_drafts import Draft, Drafting, DraftStep, captured, is_of_step
from attention_explorer.session.lesson_files import ENDING, OPENED, LessonError
from attention_explorer.session.lessons import OpenLesson, said_with
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, Selection, State
from attention_explorer.session.statements import Value
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.dialogs import Kind, ask_where_to_save, open_in_front
from attention_explorer.window.contents import Contents
from attention_explorer.window.lesson.column import SideDock
from attention_explorer.window.lesson.editor import EditorColumn
from attention_explorer.window.sessions import Sessions
from attention_models.protocol.facts import MOST_FACTS, FactsRequest, FactsView

# The figures of a step, of what is on screen: the engine is asked for those that are not known, once.


def has_run(state: State) -> bool:
    """Whether what is on screen was computed, and nothing is on its way that would change it."""
    return state.ran is not None and state.up_to_date and state.loading is None and state.example is None


class StepFigures:
    """Of one step at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked: FactsRequest | None = None

    def forget(self) -> None:
        """Ask again, also for what was asked for last: it may have been for others since."""
        self._asked = None

    def of(self, figures: Mapping[str, Figure], selection: Selection, state: State) -> dict[str, Value] | None:
        """Of the run of `state`, with this cell selected; None until they are computed."""
        assert state.ran is not None
        facts = tuple(figure.fact(selection) for figure in figures.values())
        request = FactsRequest(run=state.ran.run, facts=facts)
        view = state.results.of(FactsView)
        if view is not None and view.request == request:
            return dict(zip(figures, view.values, strict=True))
        if request != self._asked:
            self._asked = request
            self._session.request(request)
        return None


_PATIENCE = 150
"""ms: editors write a file in several steps, or write another one and give it the name."""

Stamp = tuple[int, int, int] | None


class WatchedFile(QObject):
    """Says when the content of one file may be another."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.path: Path | None = None
        self._stamp: Stamp = None
        self._watcher = QFileSystemWatcher(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PATIENCE)
        self._timer.timeout.connect(self._look)
        self._watcher.fileChanged.connect(lambda _: self._timer.start())
        self._watcher.directoryChanged.connect(lambda _: self._timer.start())

    def watch(self, path: Path | None) -> None:
        """Watch this file, as it is now; None for none."""
        self._timer.stop()
        watched = [*self._watcher.files(), *self._watcher.directories()]
        if watched:
            self._watcher.removePaths(watched)
        self.path, self._stamp = path, None if path is None else _stamp(path)
        if path is not None:
            # with its folder: a file that is replaced by another of its name is no longer watched
            self._watcher.addPaths([str(path), str(path.absolute().parent)])

    def _look(self) -> None:
        if self.path is None:
            return
        stamp = _stamp(self.path)
        if stamp is not None and str(self.path) not in self._watcher.files():
            self._watcher.addPath(str(self.path))
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            self.changed.emit()


def _stamp(path: Path) -> Stamp:
    """What is another where the file was written; None where it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


LESSON = Kind("Lesson", ENDING)
_CHECKED = 300
"""ms after the last key until what was written is checked."""


class Gives(Protocol):
    """What gives a lesson to a class, with text as large as a step asks for."""

    @property
    def text_size(self) -> float: ...
    @property
    def is_giving(self) -> bool: ...
    def set_text_size(self, size: float) -> None: ...
    def read(self, path: Path, then: Callable[[OpenLesson], object]) -> None: ...
    def give(self, opened: OpenLesson, at: int = 0) -> None: ...


class Making(QObject):
    """Lives in the GUI thread. At most one lesson is made at a time."""

    changed = Signal()
    """A lesson is made or no longer made, or another one."""
    edited = Signal()
    """What is made is another, or is saved, or let go."""

    def __init__(self, window: QMainWindow, contents: Contents, sessions: Sessions, gives: Gives) -> None:
        super().__init__(window)
        self._window, self._contents, self._sessions, self._gives = window, contents, sessions, gives
        self._session = sessions.session
        self.is_on = False
        self.at = -1
        """The chosen step, from 0; -1 where there is none."""
        self.path: Path | None = None
        """The file that Save writes to."""
        self._drafting = Drafting(Draft())
        self._saved = Draft()
        self._known = StepFigures(self._session)
        self._question: QMessageBox | None = None
        self.column = EditorColumn()
        self.dock = SideDock("Lesson editor", window)
        self.dock.setWidget(self.column)
        self.dock.set_theme(contents.theme)
        contents.one_panel.alone_changed.connect(self._on_presented)
        self._checks = QTimer(self)
        self._checks.setSingleShot(True)
        self._checks.setInterval(_CHECKED)
        self._checks.timeout.connect(self._check)
        self._file = WatchedFile(self)
        self._file.changed.connect(self._on_file_changed)
        self._session.changed.connect(lambda _old, new: self._follow(new))
        column = self.column
        column.added.connect(lambda: self.add(names_it=True))
        column.taken.connect(self.take_again)
        column.shown.connect(self.show_step)
        column.chosen.connect(self.choose)
        column.moved.connect(self.move)
        column.deleted.connect(self.delete)
        column.lesson_edited.connect(self._on_lesson_edited)
        column.step_edited.connect(self._on_step_edited)
        column.text_size_chosen.connect(gives.set_text_size)
        column.undone.connect(lambda: self._walk(self._drafting.undo))
        column.redone.connect(lambda: self._walk(self._drafting.redo))
        column.saved.connect(self.save)
        column.saved_as.connect(self.save_as)
        column.tried.connect(self.try_it)
        column.closed.connect(self.close)
        column.refused.connect(lambda sentence: self._say("warning", sentence))

    @property
    def draft(self) -> Draft:
        return self._drafting.draft

    @property
    def step(self) -> DraftStep | None:
        """The chosen one."""
        return self.draft.steps[self.at] if 0 <= self.at < len(self.draft.steps) else None

    @property
    def is_saved(self) -> bool:
        """Whether nothing was done since the file was saved or opened."""
        return not self.is_on or self.draft == self._saved

    # beginning and ending

    def begin(self, opened: OpenLesson | None = None, path: Path | None = None, at: int = 0) -> None:
        """Make a new lesson, or go on with one of a file, at a step. What is not saved of another is asked about."""
        self.once_let_go(lambda: self._open(opened, path, at))

    def open(self) -> None:
        """Let the person choose a lesson to go on with."""
        at = "" if self.path is None else str(self.path.parent)
        path = dialogs.file_to_open(self._window, "Edit a lesson", at, OPENED)
        if path:
            self.open_path(Path(path))

    def open_path(self, path: Path) -> None:
        """Go on with the lesson in a file. One that is none changes nothing: what is wrong is said, and where."""
        self._gives.read(path, lambda opened: self.begin(opened, path))

    def close(self) -> None:
        """Make it no longer. What is not saved is asked about."""
        self.once_let_go(self._close)

    def once_let_go(self, then: Callable[[], object]) -> None:
        """Do it at once where all is saved; else ask first, and do it unless the person wants to stay."""
        if self.is_saved:
            then()
            return
        if self._question is not None:
            self._question.raise_()
            return
        title = self.draft.title or "Without a title"
        box = QMessageBox(QMessageBox.Icon.Question, "The lesson is not saved", f"“{title}” is not saved.")
        box.setParent(self._window, box.windowFlags())
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        save = box.addButton("Save", QMessageBox.ButtonRole.AcceptRole)
        leave = box.addButton("Do not save", QMessageBox.ButtonRole.DestructiveRole)
        box.setEscapeButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.setDefaultButton(save)

        def answered() -> None:
            self._question = None
            clicked = box.clickedButton()
            if clicked is leave or (clicked is save and self.save()):
                self._saved = self.draft
                self.edited.emit()
                then()

        self._question = box
        box.finished.connect(lambda _: answered())
        open_in_front(box)

    def _open(self, opened: OpenLesson | None = None, path: Path | None = None, at: int = 0) -> None:
        draft = Draft() if opened is None else Draft.of(opened)
        self._take_up(draft, draft, path, at)

    def resume(self, draft: Draft, path: Path | None, at: int) -> None:
        """Go on with what an ended window had not saved; `path` is where it would have been."""
        self._take_up(draft, Draft(steps=()), path, at)

    def _take_up(self, draft: Draft, saved: Draft, path: Path | None, at: int) -> None:
        self._drafting = Drafting(draft)
        self._saved, self.is_on = saved, True
        self._set_path(path if path is not None and lesson_files.is_packed(path) else None)
        self.at = min(at, len(draft.steps) - 1)
        self._show_column(True)
        self._render()
        self.changed.emit()
        self.edited.emit()

    def _close(self) -> None:
        self.is_on = False
        self._checks.stop()
        self._set_path(None)
        self._show_column(False)
        self._gives.set_text_size(1.0)
        self.changed.emit()
        self.edited.emit()

    def _show_column(self, on: bool) -> None:
        self.dock.setVisible(on)
        if on:
            self.column.list.setFocus()

    def step_aside(self) -> None:
        """A lesson is given: the column makes room."""
        self.dock.hide()

    def _on_presented(self, panel: str) -> None:
        """A class sees no column in which a lesson is written."""
        if panel:
            self.step_aside()
        elif not self._gives.is_giving:
            self.come_back()

    def come_back(self) -> None:
        """The lesson that was given is over."""
        if self.is_on:
            self._known.forget()
            self._show_column(True)
            self._render()

    # steps

    def add(self, names_it: bool = False) -> None:
        """Take what is on screen as a step, after the chosen one; of a new lesson where none is made yet.

        With `names_it` its title is what is written next.
        """
        found = self._captured()
        if found is None:
            return
        if not self.is_on:
            self._open()
        step = DraftStep(title=f"Step {len(self.draft.steps) + 1}").with_screen(*found)
        try:
            draft = self.draft.added(self.at + 1, step)
        except ValueError as error:
            self._say("warning", str(error))
            return
        self.at += 1
        self._change(draft)
        if names_it:
            self.column.step_title.setFocus()
            self.column.step_title.selectAll()

    def take_again(self) -> None:
        """Take what is on screen for the chosen step."""
        step, found = self.step, self._captured()
        if step is not None and found is not None:
            self._change(self.draft.with_step(self.at, step.with_screen(*found)))

    def show_step(self) -> None:
        """Put on screen what the chosen step shows."""
        step = self.step
        if step is None:
            return
        state, place = step.state, None
        scene = None if step.was is None else step.was.show
        if state is None and scene is not None:
            state, place = scene.kept(self._session.state.document.view), scene
        if state is not None:
            self._gives.set_text_size(step.text_size or 1.0)
            self._sessions.show(state, place, self._render)

    def choose(self, at: int) -> None:
        self.at = at
        self._render()

    def move(self, at: int, to: int) -> None:
        if 0 <= at < len(self.draft.steps) and 0 <= to < len(self.draft.steps):
            self.at = to
            self._change(self.draft.moved(at, to))

    def delete(self) -> None:
        if self.step is not None:
            draft = self.draft.without(self.at)
            self.at = min(self.at, len(draft.steps) - 1)
            self._change(draft)

    def _captured(self) -> tuple[KeptState, float | None] | None:
        """What is on screen, and how large its text is. None where it cannot be a step, and a sentence says why."""
        try:
            present, loaded = self._sessions.present(), self._session.state.results.loaded
            is_open = loaded is not None and loaded.info.reference == present.document.checkpoint
            state = captured(present, loaded.info.family if loaded is not None and is_open else "")
        except ValueError as error:
            self._say("warning", f"What is on screen cannot be a step: {str(error).rstrip('.')}.")
            return None
        size = self._gives.text_size
        return state, None if size == 1.0 else size

    def _on_lesson_edited(self, draft: Draft, part: str) -> None:
        self._change(draft, part)

    def _on_step_edited(self, step: DraftStep, part: str) -> None:
        self._change(self.draft.with_step(self.at, step), part and f"{part} {self.at}")

    def _walk(self, walk: Callable[[], None]) -> None:
        walk()
        self.at = min(max(self.at, 0), len(self.draft.steps) - 1)
        self._render()
        self._checks.start()
        self.edited.emit()

    def _change(self, draft: Draft, merge: str = "") -> None:
        self._drafting.change(draft, merge)
        self._render()
        self._checks.start()
        self.edited.emit()

    # its file

    def save(self) -> bool:
        """Write to the file that is open; where there is none, let the person choose one. Whether it is written."""
        return self.save_as() if self.path is None else self.write(self.path)

    def save_as(self) -> bool:
        """Let the person choose a file. Whether it is written."""
        if self._complete() is None:
            return False
        suggested = str(self.path) if self.path is not None else f"{_file_name(self.draft.title)}{ENDING}"
        path = ask_where_to_save(self._window, "Save the lesson", suggested, (LESSON,))
        return path is not None and self.write(path)

    def write(self, path: Path) -> bool:
        """Write to this file, which Save writes to from now on. Whether it is written."""
        opened = self._complete()
        if opened is None:
            return False
        try:
            lesson_files.save(opened, path)
        except ValueError as error:
            self._say("error", str(error))
            return False
        self._saved = self.draft
        self._set_path(path)
        self._say("info", f"The lesson is saved: {path}.")
        self._render()
        self.changed.emit()
        self.edited.emit()
        return True

    def try_it(self) -> None:
        """Give the lesson from the chosen step on, as it is now."""
        opened = self._complete()
        if opened is not None:
            self._gives.give(opened, max(self.at, 0))

    def _complete(self) -> OpenLesson | None:
        """The lesson; None where something is missing, which is said then, with its step chosen."""
        try:
            return self.draft.opened()
        except LessonError as error:
            if error.step:
                self.at = error.step - 1
            self._render()
            self._show_fault(str(error))
        return None

    def _check(self) -> None:
        if not self.is_on or not self.draft.steps:
            self._show_fault("")
            return
        try:
            self.draft.opened()
        except ValueError as error:
            self._show_fault(str(error))
        else:
            self._show_fault("")

    def _set_path(self, path: Path | None) -> None:
        self.path = path
        self._file.watch(path)

    def _on_file_changed(self) -> None:
        """Another program has written it."""
        path = self.path
        if path is None or not self.is_on:
            return
        if not self.is_saved:
            self._say("warning", f"{path.name} was written by another program. Save as… keeps what is written here.")
            return

        def read(opened: OpenLesson) -> None:
            if self.is_on and self.is_saved and self.path == path:  # nothing was done meanwhile
                self._open(opened, path, max(self.at, 0))

        self._gives.read(path, read)

    # what it shows

    def _render(self) -> None:
        self.column.show_draft(self.draft, self.at)
        name = "No file yet" if self.path is None else self.path.name
        self.column.said.setText(name if self.is_saved else f"{name}: not saved")
        self._follow(self._session.state)

    def _follow(self, state: State) -> None:
        """Show the text with its figures, where what is on screen is of the chosen step."""
        step = self.step
        if not self.is_on or self._gives.is_giving or step is None:
            return
        figures: dict[str, Value] = {}
        wanted = {name: figure for name, figure in step.figures.items() if name in step.names}
        if step.ask is not None and state.site is not None:
            wanted.setdefault("peak", Figure(kind="peak"))  # to begin a statement from
        if wanted and has_run(state) and not state.restored and is_of_step(step, state, self._front()):
            wanted = dict(list(wanted.items())[:MOST_FACTS])
            figures = self._known.of(wanted, state.selection, state) or {}
        self.column.show_figures(figures, said_with(step.say, step.figures, figures))

    def _front(self) -> tuple[str, ...]:
        return self._contents.dock_host.front_panels()

    def _show_fault(self, clause: str) -> None:
        self.column.show_fault(f"{clause[:1].upper()}{clause[1:].rstrip('.')}." if clause else "")

    def _say(self, kind: Literal["info", "warning", "error"], sentence: str) -> None:
        self._session.dispatch(Show(Notice(kind, sentence)))


def _file_name(title: str) -> str:
    """The title as a file may be called."""
    words = re.findall(r"\w+", title.lower())
    return "-".join(words)[:60] or "lesson"
