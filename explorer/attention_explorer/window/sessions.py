"""The session files of a window: saving, opening, the states kept by name, and going to one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from attention_explorer.compute.background import Background
from attention_explorer.session import session_check
from attention_explorer.session.intents import OpenDocument, Show
from attention_explorer.session.kept import ENDING, Extra, KeptState, Screen, SessionFile
from attention_explorer.session.placed import Placed
from attention_explorer.session.session_check import Checked
from attention_explorer.session.state import Document, Notice, State
from attention_explorer.session.states import States
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.dialogs import Kind, ask_where_to_save, open_in_front
from attention_explorer.widgets.token_text import isolated
from attention_explorer.window.contents import Contents
from attention_explorer.window.screen import screen_of, show_screen
from attention_models.files.names import is_elsewhere
from attention_models.files.safe_files import remove_left_behind
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import BEST, Placement

_TOLD_OF_OPENING = {
    "changed": "Opened anyway, the figures will be those of the checkpoint that is there, and the window will say so.",
    "elsewhere": (
        "Opening a place on another computer can tell it your user name, and help it to guess your password. Open it "
        "only if you know that computer."
    ),
}


class CheckpointQuestion(QMessageBox):
    """Where is it? Nothing waits for the answer but the session that asks. Deleted when it is closed."""

    place_chosen = Signal(str)
    """A folder or a GGUF file, to look there."""
    open_asked = Signal()
    """Open what is there, though it is another one."""
    left = Signal()

    def __init__(self, checked: Checked, parent: QWidget) -> None:
        super().__init__(
            QMessageBox.Icon.Question, "The session's checkpoint", isolated(checked.question), parent=parent
        )
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._checked = checked
        can_choose = not checked.elsewhere or checked.state.document.checkpoint in checked.elsewhere
        role = QMessageBox.ButtonRole.ActionRole
        self._choose = self.addButton("Choose where it is…", role) if can_choose else None
        can_open = checked.found in _TOLD_OF_OPENING
        self._open = self.addButton("Open it anyway", QMessageBox.ButtonRole.AcceptRole) if can_open else None
        cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.setDefaultButton(QMessageBox.StandardButton.Cancel)
        self.setEscapeButton(cancel)
        self.setInformativeText(_TOLD_OF_OPENING.get(checked.found, "Nothing on screen changes before it is found."))
        self.finished.connect(lambda _result: self._on_finished())

    def _on_finished(self) -> None:
        clicked = self.clickedButton()
        if clicked is self._choose and clicked is not None:
            place = self._ask_for_place()
            if place:
                self.place_chosen.emit(place)
            else:
                self.left.emit()
        elif clicked is self._open and clicked is not None:
            self.open_asked.emit()
        else:
            self.left.emit()

    def _ask_for_place(self) -> str:
        reference, parent = self._checked.state.document.checkpoint, self.parentWidget()
        files = self._checked.state.files
        beside = Path(reference).parent
        is_here = not is_elsewhere(reference) and Path(reference).is_absolute() and beside.is_dir()
        folder = str(beside) if is_here else str(Path.home())
        if reference.lower().endswith(".gguf") or any(name.lower().endswith(".gguf") for name in files):
            return dialogs.file_to_open(parent, "Where is the checkpoint?", folder, "GGUF files (*.gguf)")
        return dialogs.folder(parent, "Where is the checkpoint's folder?", folder)


T = TypeVar("T")

SESSION = Kind("Attention Explorer session", ENDING)
OPENED = f"Attention Explorer sessions (*{ENDING} *.json)"
PATIENCE = 500  # ms: reading a checkpoint's files that takes longer is said


@dataclass(frozen=True, slots=True, eq=False)
class _Coming:
    document: Document
    arrived: Callable[[], None]
    failed: Callable[[], None] | None  # where its checkpoint cannot be opened


class Sessions(QObject):
    """Lives in the GUI thread; what takes time is done beside it."""

    changed = Signal()
    """The file, or whether all is saved in it, is another."""
    left = Signal()
    """What was not saved is replaced by a session that is opened."""
    used = Signal(str)
    """A session file was saved or opened: its path."""

    def __init__(self, window: QWidget, contents: Contents) -> None:
        super().__init__(window)
        self._window, self._contents, self.session = window, contents, contents.session
        self.states = States(self)
        self.path: Path | None = None
        """The session file that Save writes to."""
        self._saved_steps = (0, 0)
        self._leaves_work = False  # what is on screen is not saved, and a session is about to replace it
        self._extra: Extra = ()  # what a newer version wrote of what is on screen
        self._work = Background("sessions", self)
        self._coming: _Coming | None = None  # a state whose checkpoint is being opened
        self._warned: Checked | None = None  # what is said of the session on screen
        self._reading = QTimer(self)
        self._reading.setSingleShot(True)
        self._reading.setInterval(PATIENCE)
        self._reading.timeout.connect(self._say_reading)
        self._said_reading = Notice("info", "Reading the checkpoint's files …")
        self.session.changed.connect(self._on_changed)
        self.states.changed.connect(self.changed)

    @property
    def steps(self) -> tuple[int, int]:
        """What a person did, as a count that rises: to tell whether something happened."""
        return self.session.steps, self.states.steps

    @property
    def is_saved(self) -> bool:
        """Whether nothing was done since the file was saved or opened."""
        return self.steps == self._saved_steps

    @property
    def title(self) -> str:
        """The name of the file; "" where there is none."""
        return "" if self.path is None else self.path.name

    def present(self, screen: Screen | None = None) -> KeptState:
        """What is on screen; `screen` where it is known already."""
        state = self.session.state
        loaded = state.results.loaded
        placement = state.placement if loaded is None else loaded.placement
        document = state.document
        if state.opening is not None and loaded is not None:  # whose checkpoint is named already, and may not open
            document = replace(document, checkpoint=loaded.info.reference)
        return KeptState(document, screen=screen or screen_of(self._contents), placement=placement, extra=self._extra)

    def content(self, screen: Screen | None = None) -> SessionFile:
        """All that a session file would hold now."""
        return SessionFile(self.present(screen), self.states.kept)

    def stop(self, patience: float) -> bool:
        """End the thread; whether it ended within `patience` seconds."""
        self._reading.stop()
        return self._work.stop(patience)

    # saving

    def save(self) -> None:
        """Write to the file that is open; where there is none, let the person choose one."""
        if self.path is None:
            self.save_as()
        else:
            self._write(self.path)

    def save_as(self) -> None:
        """Let the person choose a file to save what they chose in, not what was computed."""
        suggested = str(self.path) if self.path is not None else f"attention{ENDING}"
        path = ask_where_to_save(self._window, "Save the session", suggested, (SESSION,), _session_path)
        if path is not None:
            self._write(path)

    def _write(self, path: Path) -> None:
        content, steps = self.content(), self.steps
        self._run(
            partial(session_check.write, content, path, self._work.should_stop),
            lambda written: self._on_written(path, steps, written),
        )

    def _on_written(self, path: Path, steps: tuple[int, int], written: SessionFile) -> None:
        self.path, self._saved_steps = path, steps
        self._say(Notice("info", f"The session is saved: {path}."))
        self.used.emit(str(path))
        self.changed.emit()

    # opening

    def open(self) -> None:
        """Let the person go back to a session that was saved. A file that is no session changes nothing."""
        folder = str(self.path.parent) if self.path is not None else ""
        path = dialogs.file_to_open(self._window, "Open a session", folder, OPENED)
        if path:
            self.open_path(Path(path))

    def open_path(self, path: Path, failed: Callable[[], None] | None = None) -> None:
        """Open a session file; `failed` is called where nothing came of it."""
        self._run(
            lambda: self._read(path),
            lambda read: self._go_on(read[1], lambda: self._on_opened(path, read[0]), failed),
            failed,
        )

    def open_content(self, session: SessionFile, opened: Callable[[], None]) -> None:
        """Put on screen what was kept for a window that was ended. It has no file yet."""

        def take() -> None:
            self._take(None, session)
            self._saved_steps = (-1, -1)
            opened()

        self._check(session.present, None, take)

    def _read(self, path: Path) -> tuple[SessionFile, Checked]:
        from attention_explorer.session import attn

        remove_left_behind(path.resolve().parent)  # by a program that was ended while it saved this session
        session = attn.load(path)
        return session, session_check.checked(session.present, path.resolve().parent, self._work.should_stop)

    def _on_opened(self, path: Path, session: SessionFile) -> None:
        self._take(path if path.suffix.lower() == ENDING else None, session)
        self.used.emit(str(path))

    def _take(self, path: Path | None, session: SessionFile) -> None:
        if self._leaves_work:
            self.left.emit()
        self.path = path
        self._extra = session.present.extra
        self.states.open(session.kept)
        self._saved_steps = self.steps
        self.changed.emit()

    # states kept by name

    def keep(self, name: str) -> None:
        """Keep what is on screen under a name. ValueError, with a sentence, where that cannot be."""
        self.states.keep(replace(self.present(), name=name))

    def renew(self, index: int) -> None:
        """Keep what is on screen in the place of a state that was kept."""
        self.states.renew(index, self.present())

    def go_to(self, index: int) -> None:
        """Put a state on screen that was kept."""
        if not 0 <= index < len(self.states.kept.states):
            return
        state = self.states.kept.states[index]
        if state.document.compared is None:  # so that one can be gone to beside a B
            state = replace(state, document=replace(state.document, compared=self.session.state.document.compared))
        beside = self.path.resolve().parent if self.path is not None else None
        self._check(state, beside, lambda: self.states.go_to(index))

    def walk(self, by: int) -> None:
        """Go to the next state, or to the one before."""
        count, at = len(self.states.kept.states), self.states.current
        if count:
            self.go_to(min(max(at + by, 0), count - 1) if at >= 0 else 0 if by > 0 else count - 1)

    # on the way to the screen

    def _check(self, state: KeptState, beside: Path | None, opened: Callable[[], object]) -> None:
        self._run(
            partial(session_check.checked, state, beside, self._work.should_stop),
            lambda checked: self._go_on(checked, opened, None),
        )

    def _go_on(self, checked: Checked, opened: Callable[[], object], failed: Callable[[], None] | None) -> None:
        """Open what was found, or ask the person about a checkpoint that was not."""
        if checked.found == "same":
            self._show(checked, opened, failed)
            return

        def look_at(state: KeptState, agreed: tuple[str, ...]) -> None:
            self._run(
                partial(session_check.checked, state, None, self._work.should_stop, agreed),
                lambda again: self._go_on(again, opened, failed),
                failed,
            )

        def open_it() -> None:
            if checked.found == "elsewhere":  # nothing of it was looked at yet
                look_at(checked.state, checked.elsewhere)
            else:
                self._show(checked, opened, failed)

        question = CheckpointQuestion(checked, self._window)
        question.open_asked.connect(open_it)
        question.place_chosen.connect(
            lambda place: look_at(session_check.with_checkpoint(checked.state, place), (place,))
        )
        if failed is not None:
            question.left.connect(failed)
        open_in_front(question)

    def show(self, state: KeptState, place: Placed | None, arrived: Callable[[], None]) -> None:
        """Put a state of a lesson on screen, with a cell of it that `place` names by words.

        `arrived` is called once it is there, and where its checkpoint cannot be opened.
        """
        self._show(Checked(state), lambda: None, arrived, place, arrived)

    def _show(
        self,
        checked: Checked,
        opened: Callable[[], object],
        failed: Callable[[], None] | None,
        place: Placed | None = None,
        shown: Callable[[], None] | None = None,
    ) -> None:
        """Put a document on screen once its checkpoint is open, and then the panels as they were."""
        document, now = checked.state.document, self.session.state
        self._leaves_work = not self.is_saved

        def arrived() -> None:
            opened()
            show_screen(self._contents, checked.state.screen)
            self._warn(checked)
            if shown is not None:
                shown()

        device = now.placement.device
        saved = checked.state.placement
        if now.results.loaded is None and device == BEST and saved.device == "cpu":
            device = "cpu"  # as it was saved, to the last bit
        self._say(None)
        self._coming = None
        self.session.dispatch(OpenDocument(document, Placement(device, saved.dtype), place))
        if self.session.state.opening is None:
            arrived()
        else:
            self._coming = _Coming(document, arrived, failed)

    def _warn(self, checked: Checked | None) -> None:
        """Say what is another than when the session was saved, as long as that is on screen."""
        self._warned = checked
        if checked is not None and checked.warning:
            self._contents.session_bar.show_notice("warning", checked.warning)
        else:
            self._contents.session_bar.hide()

    def _warn_no_longer_of(self, old: Document, new: Document) -> None:
        """Leave out what was said of a picture, or of a B, that is another now."""
        assert self._warned is not None
        left = self._warned
        if new.picture != old.picture:
            left = replace(left, picture="")
        if _read_by_b(new) != _read_by_b(old):
            left = replace(left, of_b="")
        if left != self._warned:
            self._warn(left)

    def _on_changed(self, old: State, new: State) -> None:
        coming = self._coming
        if coming is not None and old.opening is coming.document and new.opening is not old.opening:
            self._coming = None
            if new.results.loaded is not old.results.loaded:
                coming.arrived()
            elif coming.failed is not None:
                coming.failed()
        elif _open_checkpoint(new) != _open_checkpoint(old):
            self._warn(None)  # what it says is of the checkpoint before
        elif self._warned is not None:
            self._warn_no_longer_of(old.document, new.document)
        if new.document is not old.document:
            self.changed.emit()

    # doing it beside the window

    def _run(
        self,
        job: Callable[[], T],
        then: Callable[[T], object],
        failed: Callable[[], None] | None = None,
    ) -> None:
        self._reading.start()

        def done(outcome: T | Exception) -> None:
            self._reading.stop()
            if self.session.state.notice == self._said_reading:
                self._say(None)
            if isinstance(outcome, Cancelled):
                return
            if isinstance(outcome, Exception):
                self._say(Notice("error", str(outcome)))
                if failed is not None:
                    failed()
                return
            then(outcome)

        self._work.run(job, done)

    def _say_reading(self) -> None:
        self._say(self._said_reading)

    def _say(self, notice: Notice | None) -> None:
        self.session.dispatch(Show(notice))


def _read_by_b(document: Document) -> tuple[str, str] | None:
    b = document.compared
    return None if b is None else (b.document.checkpoint, b.document.picture)


def _open_checkpoint(state: State) -> str:
    return "" if state.results.loaded is None else state.results.loaded.info.reference


def _session_path(typed: Path, kind: Kind) -> Path:
    """The name that a session is saved under; sessions of earlier versions were called .json."""
    if typed.suffix.lower() == kind.ending:
        return typed
    return typed.with_suffix(kind.ending) if typed.suffix.lower() == ".json" else Path(f"{typed}{kind.ending}")
