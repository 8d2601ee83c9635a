"""The lessons of a window: beginning one, its column at the side, and the answers that were given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow

from attention_explorer.compute.background import Background
from attention_explorer.look.theme import Theme
from attention_explorer.panels.registry import TITLES
from attention_explorer.session.intents import Show
from attention_explorer.session.lesson_files import OPENED
from attention_explorer.session.lessons import Answer, as_csv
from attention_explorer.session.state import Notice
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.dialogs import Kind, ask_where_to_save
from attention_explorer.window.contents import Contents
from attention_explorer.window.lesson.column import SideDock
from attention_explorer.window.lesson.making import WatchedFile
from attention_explorer.window.sessions import Sessions
from attention_models.files.safe_files import not_written, write_whole

if TYPE_CHECKING:  # needed with the first lesson, and not for the window to come up
    from attention_explorer.session.kept_drafts import KeptDraft
    from attention_explorer.session.lessons import Guess, OpenLesson
    from attention_explorer.window.lesson.column import LessonColumn
    from attention_explorer.window.lesson.guide import LessonGuide
    from attention_explorer.window.lesson.making import Making

TABLE = Kind("Table", ".csv")


class Lessons(QObject):
    """Lives in the GUI thread. At most one lesson is given at a time."""

    changed = Signal()
    """A lesson began or ended, or an answer was given."""
    draft_changed = Signal()
    """The lesson that is made is another, or is saved, or let go."""
    text_size_asked = Signal(float)
    """How many times as large as the person likes it text is to be; 1 sets it back."""

    def __init__(self, window: QMainWindow, contents: Contents, sessions: Sessions) -> None:
        super().__init__(window)
        self._window, self._contents, self._sessions = window, contents, sessions
        self.guide: LessonGuide | None = None
        self.path: Path | None = None
        self._dock: SideDock | None = None
        self._answers: tuple[str, tuple[Answer, ...]] = ("", ())  # the title of the lesson that they are of
        self._text_size = 1.0
        self._making: Making | None = None
        self._work = Background("lessons", self)
        self._file = WatchedFile(self)
        self._file.changed.connect(self._on_file_changed)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Those of the lesson that is given, or was given last."""
        return self._answers[1]

    def open(self) -> None:
        """Let the person choose a lesson."""
        path = dialogs.file_to_open(self._window, "Open a lesson", "", OPENED)
        if path:
            self.begin(Path(path))

    def begin(self, path: Path, at: int = 0) -> None:
        """Give the lesson in a file. One that is none changes nothing; a sentence says what is wrong with it."""

        def begun(opened: OpenLesson) -> None:
            self.give(opened, at)
            self.path = path
            self._file.watch(path)

        self.read(path, begun)

    def read(self, path: Path, then: Callable[[OpenLesson], object]) -> None:
        """Read a lesson in a thread, and do `then` with it here. Where it is none, what is wrong is said."""
        names = tuple(panel.name for panel in self._contents.panels) or tuple(TITLES)

        def load() -> OpenLesson:
            from attention_explorer.session import lesson_files

            return lesson_files.load(path, names)

        def done(outcome: OpenLesson | Exception) -> None:
            if isinstance(outcome, Exception):
                self._say("error", str(outcome))
            else:
                then(outcome)

        self._work.run(load, done)

    def stop(self, patience: float) -> bool:
        """End the thread; whether it ended within `patience` seconds."""
        return self._work.stop(patience)

    def give(self, opened: OpenLesson, at: int = 0, answers: Mapping[int, Answer] | None = None) -> None:
        """Give a lesson from its first step on, or another. `answers` are those that were given to it already."""
        from attention_explorer.window.lesson.column import LessonColumn
        from attention_explorer.window.lesson.guide import LessonGuide

        self.end()
        if self._making is not None:
            self._making.step_aside()
        column = LessonColumn()
        self._put_at_side(column)
        guide = LessonGuide(opened, self._contents, self._sessions, column, self._window, self.set_text_size)
        guide.answers.update(answers or {})
        guide.set_theme(self._contents.theme)
        guide.moved.connect(self._on_moved)
        guide.ended.connect(self._on_ended)
        self.guide = guide
        self._say(None)
        guide.begin(min(at, len(opened.lesson.step) - 1))
        self.changed.emit()

    def predict(self, hide: Guess) -> None:
        """Cover something of what is on screen, and ask for it."""
        from attention_explorer.session.lessons import prediction

        if hide != "next":
            self._contents.dock_host.raise_panel("map")
        self.give(prediction(hide))

    def end(self) -> None:
        """End the lesson that is given."""
        if self.guide is not None:
            self.guide.leave()

    def guess(self) -> None:
        """Bring the keyboard to the question of the step."""
        if self.guide is not None:
            self.guide.take_keyboard()

    # making one

    @property
    def making(self) -> Making:
        """Where a lesson is made; the column comes with the first."""
        if self._making is None:
            from attention_explorer.window.lesson.making import Making

            self._making = Making(self._window, self._contents, self._sessions, self)
            self._making.changed.connect(self.changed)
            self._making.edited.connect(self.draft_changed)
        return self._making

    @property
    def is_making(self) -> bool:
        return self._making is not None and self._making.is_on

    @property
    def unsaved(self) -> KeptDraft | None:
        """What is made and not saved."""
        making = self._making
        if making is None or making.is_saved:
            return None
        from attention_explorer.session.kept_drafts import KeptDraft

        return KeptDraft(making.draft, making.at, "" if making.path is None else str(making.path))

    def resume(self, kept: KeptDraft) -> None:
        """Go on with a lesson that was made in a window that has ended."""
        self.end()
        self.making.resume(kept.draft, Path(kept.path) if kept.path else None, kept.at)

    @property
    def is_giving(self) -> bool:
        return self.guide is not None

    @property
    def text_size(self) -> float:
        """How many times as large as the person likes it text is now."""
        return self._text_size

    def set_text_size(self, size: float) -> None:
        self._text_size = size
        self.text_size_asked.emit(size)

    def new(self) -> None:
        """Begin to make a lesson."""
        self.end()
        self.making.begin()

    def add_step(self) -> None:
        """What is on screen becomes a step of the lesson that is made."""
        self.making.add()

    def edit(self) -> None:
        """Let the person choose a lesson to change."""
        self.making.open()

    def edit_given(self) -> None:
        """Change the lesson that is given."""
        if self.guide is not None:
            opened, path, at = self.guide.opened, self.path, self.guide.at
            self.end()
            self.making.begin(opened, path, at)

    def save_made(self) -> None:
        self.making.save()

    def save_made_as(self) -> None:
        self.making.save_as()

    def may_close(self, close: Callable[[], object]) -> bool:
        """Whether the window can close. Where it cannot yet, the person is asked, and `close` is called once it can."""
        if self._making is None or self._making.is_saved:
            return True
        self._making.once_let_go(close)
        return False

    # answers

    def save_answers(self) -> None:
        """Let the person choose a file for the answers."""
        path = ask_where_to_save(self._window, "Save the answers", "answers.csv", (TABLE,))
        if path is None:
            return
        try:
            write_whole(path, as_csv(*self._answers).encode())
        except OSError as cause:
            self._say("error", not_written("The table", path, cause))
            return
        self._say("info", f"The answers are saved: {path}.")

    def set_theme(self, theme: Theme) -> None:
        if self.guide is not None:
            self.guide.set_theme(theme)
        for dock in (self._dock, None if self._making is None else self._making.dock):
            if dock is not None:
                dock.set_theme(theme)

    def _put_at_side(self, column: LessonColumn) -> None:
        if self._dock is None:
            self._dock = SideDock("Lesson", self._window)
            self._dock.set_theme(self._contents.theme)
        self._dock.setWidget(column)
        self._dock.show()

    def _on_moved(self) -> None:
        if self.guide is not None:
            answers = tuple(self.guide.answers[at] for at in sorted(self.guide.answers))
            self._answers = (self.guide.opened.lesson.title, answers)
            self.changed.emit()

    def _on_ended(self) -> None:
        guide, self.guide = self.guide, None
        if guide is not None:
            for part in (guide, guide.column, guide.covers, guide.ring):  # they would pile up, lesson by lesson
                part.deleteLater()
        self._file.watch(None)
        self.path = None
        if self._dock is not None:
            self._dock.hide()
        if self._making is not None:
            self._making.come_back()
        self.changed.emit()

    def _on_file_changed(self) -> None:
        """Somebody writes the lesson beside the window: it goes on at the same step, as it is written now."""
        guide, path = self.guide, self.path
        if guide is None or path is None:
            return

        def read(opened: OpenLesson) -> None:
            if self.guide is not guide or self.path != path:
                return  # another has begun meanwhile
            was, now = guide.steps, opened.lesson.step
            answers = {at: a for at, a in guide.answers.items() if at < len(now) and now[at].ask == was[at].ask}
            self.give(opened, guide.at, answers)
            self.path = path
            self._file.watch(path)

        self.read(path, read)  # where something is wrong the lesson goes on as it was

    def _say(self, kind: Literal["info", "error"] | None, sentence: str = "") -> None:
        notice = None if kind is None else Notice(kind, sentence)
        self._sessions.session.dispatch(Show(notice))
