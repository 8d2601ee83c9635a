"""Gives a lesson in the real window: puts each step on screen, says it in the model's own figures, and asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import Theme
from attention_explorer.panels.base import Place
from attention_explorer.session.goals import goal_at
from attention_explorer.session.kept import KeptState
from attention_explorer.session.lessons import Answer, Ask, OpenLesson, Step, score
from attention_explorer.session.placed import Placed
from attention_explorer.session.scenes import with_comforts_of
from attention_explorer.session.state import Selection, State
from attention_explorer.session.statements import Value
from attention_explorer.window.contents import Contents
from attention_explorer.window.lesson.column import LessonColumn
from attention_explorer.window.lesson.covers import Covers
from attention_explorer.window.lesson.making import StepFigures, has_run
from attention_explorer.window.tour.pointing import Ring, in_sight, place_of, reveal
from attention_models.protocol.facts import SHARES, places_in
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import site_tokens

_FOLLOW = 80
"""ms between two looks at where a thing is that is pointed at."""

_END = """
**{right} of {asked}** answers were right.

*Lessons > Save the answers* writes them to a table; *End the lesson* leaves what is on screen as it is.
"""
_END_UNASKED = "*End the lesson* leaves what is on screen as it is."


class Shows(Protocol):
    """What puts a state on screen: the sessions of a window."""

    def show(self, state: KeptState, place: Placed | None, arrived: Callable[[], None]) -> None: ...
    def present(self) -> KeptState: ...


class LessonGuide(QObject):
    """One lesson in one window."""

    moved = Signal()
    """Another step is on screen, its notes have other figures, a question was answered, or the lesson ended."""
    ended = Signal()

    def __init__(
        self,
        opened: OpenLesson,
        contents: Contents,
        shows: Shows,
        column: LessonColumn,
        window: QWidget,
        set_text_size: Callable[[float], None],
    ) -> None:
        super().__init__(window)
        self.opened = opened
        self.column = column
        self.covers = Covers(contents)
        self.ring = Ring(window)
        self.at = 0
        """The step on screen, from 0; as many as there are at the end."""
        self.answers: dict[int, Answer] = {}
        self.notes = ""
        """For the teacher, of the step on screen, with its figures as far as they have been computed."""
        self.figures: dict[str, Value] = {}
        """Of the step on screen, as far as they have been computed."""
        self._contents, self._shows, self._set_text_size = contents, shows, set_text_size
        self._left: dict[int, KeptState] = {}  # what was on screen when a step was left for the next
        self._inputs: RunInputs | None = None  # what the step's figures are of; None before its run is there
        self._selection = Selection()  # the place that the step is about
        self._is_arriving = False
        self._known = StepFigures(contents.session)
        self._revealed: QWidget | None = None  # what was scrolled to
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW)
        self._timer.timeout.connect(self._point)
        self._keys = [
            QShortcut(QKeySequence(Qt.Key.Key_PageDown), window, self.go_on),
            QShortcut(QKeySequence(Qt.Key.Key_PageUp), window, self.back),
        ]
        for key in self._keys:
            key.setContext(Qt.ShortcutContext.ApplicationShortcut)
        column.moved.connect(self._on_moved)
        column.chosen.connect(self.go_to)
        column.closed.connect(self.leave)
        column.returned.connect(lambda: self._enter(self.at))
        column.question.answered.connect(self._on_answer)
        self.covers.chosen.connect(self._on_key)
        self.covers.taken.connect(column.question.take_keys)
        self.covers.entered.connect(column.question.answer)
        contents.session.changed.connect(self._on_changed)
        column.show_lesson(opened.lesson)

    # what a person does

    def begin(self, at: int = 0) -> None:
        self._timer.start()
        if not self._contents.one_panel.alone:
            self.column.next.setFocus()
        self._enter(at)

    def leave(self) -> None:
        """End it; what is on screen stays."""
        self._timer.stop()
        self.covers.lift()
        self.ring.point(None, QRect())
        self._contents.session.changed.disconnect(self._on_changed)
        for key in self._keys:
            key.setEnabled(False)
            key.deleteLater()
        self._set_text_size(1.0)
        self.ended.emit()

    def go_on(self) -> None:
        if self.at >= len(self.steps):
            self.leave()
        else:
            self.go_to(self.at + 1)

    def back(self) -> None:
        """The step before, as it was left: what was done in this one is taken back."""
        if self.at > 0:
            self._enter(self.at - 1, self._left.get(self.at - 1))

    def go_to(self, step: int) -> None:
        if 0 <= step <= len(self.steps) and step != self.at:
            if self.at < len(self.steps):
                self._left[self.at] = self._shows.present()
            self._enter(step)

    def _on_moved(self, by: int) -> None:
        if by > 0:
            self.go_on()
        else:
            self.back()

    # where it is

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.opened.lesson.step

    @property
    def step(self) -> Step | None:
        """That on screen; None at the end."""
        return self.steps[self.at] if self.at < len(self.steps) else None

    @property
    def is_settled(self) -> bool:
        """Whether the step is on screen and all of its figures are known."""
        step = self.step
        return step is None or (not self._is_arriving and len(self.figures) == len(step.figures))

    def _enter(self, at: int, as_left: KeptState | None = None) -> None:
        self.at = at
        self.figures, self._inputs, self._revealed = {}, None, None
        self._known.forget()
        self.covers.lift()
        self.ring.point(None, QRect())
        step = self.step
        self.column.show_step(at, len(self.steps), "Well done" if step is None else step.title)
        if step is None:
            right, asked = score(self.answers.values())
            self.column.text.say(_END.format(right=right, asked=asked) if asked else _END_UNASKED)
            self.column.question.hide()
            self._note("")
            self.column.away.hide()
            self.moved.emit()
            return
        self._ask(step)
        self._say(step)
        self._show(step, as_left)
        self.moved.emit()

    def _show(self, step: Step, as_left: KeptState | None) -> None:
        state, place = as_left, None
        scene = step.show
        if state is None and scene is not None:
            state, place = scene.kept(self._contents.session.state.document.view), scene
        elif state is None and step.state is not None:
            state = with_comforts_of(self._contents.session.state.document.view, self.opened.states[step.state - 1])
        self._set_text_size(step.size)
        if state is None:
            self._follow(self._contents.session.state)
            return
        self._is_arriving = True
        self._shows.show(state, place, self._on_arrived)

    def _on_arrived(self) -> None:
        self._is_arriving = False
        self._cover()
        self._follow(self._contents.session.state)

    @property
    def _asks(self) -> bool:
        """Whether the step has a question that is not answered yet."""
        return self.step is not None and self.step.ask is not None and self.at not in self.answers

    def take_keyboard(self) -> None:
        """Bring the keyboard to where the question of the step is answered; where there is none, to the way on."""
        target: QWidget = self.column.next
        if self._asks:
            target = self.covers.guessed or self.column.question.first_answer
        target.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if self.column.area.isAncestorOf(target):
            self.column.area.ensureWidgetVisible(target)

    def _cover(self) -> None:
        """Hide what is asked for, until it is answered."""
        step = self.step
        if step is not None and step.ask is not None and self._asks:
            ask = step.ask
            self.covers.hide(step.hides, asks_cells=ask.cells is not None, clicks=ask.click is not None)
            if not self._contents.one_panel.alone:  # else keys are the presenter's, until Ctrl+G
                self.take_keyboard()

    # what it says

    def _on_changed(self, _old: State, new: State) -> None:
        self._follow(new)

    def _follow(self, state: State) -> None:
        step = self.step
        if step is None or self._is_arriving:
            return
        is_here = has_run(state)
        if is_here and not state.restored and self._inputs is None:
            self._inputs, self._selection = state.document.inputs, state.selection
            self._cover()
        self.column.away.setVisible(self._inputs is not None and not self._is_of_step(state))
        if step.figures and is_here and self._is_of_step(state):
            self.figures = self._known.of(step.figures, self._selection, state) or self.figures
        self._say(step)

    def _is_of_step(self, state: State) -> bool:
        """Whether what is on screen reads what the step shows, whatever was changed in the model since."""
        own, now = self._inputs, state.document.inputs
        return own is not None and (own.prompt, own.target, own.picture) == (now.prompt, now.target, now.picture)

    def _note(self, notes: str) -> None:
        self.notes = notes
        self.column.show_notes(notes)

    def _say(self, step: Step) -> None:
        self.column.text.say(step.said(step.say, self.figures))
        if step.ask is not None:
            self.column.question.say(step.said(step.ask.question, self.figures))
        self.column.question.set_ready(self.is_settled)
        right, asked = score(self.answers.values())
        self.column.score.setText(f"{right} of {asked} right" if asked else "")
        notes = step.noted(self.figures)
        if notes != self.notes:
            self._note(notes)
            self.moved.emit()

    # questions

    def _ask(self, step: Step) -> None:
        ask, answer = step.ask, self.answers.get(self.at)
        self.column.question.setVisible(ask is not None)
        if ask is None:
            return
        is_share = ask.number is not None and step.figures[ask.number].kind in SHARES
        masks = {i: mask for i, option in enumerate(ask.options) if (mask := step.mask_of(option))}
        self.column.question.show_question(ask, is_share, masks)
        if answer is not None:  # gone back to
            self.column.question.show_verdict(answer.right, (), f"You said: {answer.given}. The model: {answer.truth}.")

    def _on_answer(self, given: Value) -> None:
        step = self.step
        if step is None or step.ask is None or not self.is_settled:
            return
        ask = step.ask
        right, truth = ask.is_right(given, self.figures), self._truth(step, ask)
        question, text = step.said(ask.question, self.figures), self.column.question.given_text
        self.answers[self.at] = Answer(self.at, question, text, truth, right)
        self.covers.lift()
        reveal = step.said(ask.reveal, self.figures) or truth
        site = self._contents.session.state.site
        if ask.cells is not None and site is not None:
            wrong = len(places_in(str(given)) ^ places_in(truth))
            reveal = f"{site.keys - wrong:,} of {site.keys:,} cells are right.\n\n{reveal}"
        self.column.question.show_verdict(right, ask.right_options(self.figures), reveal)
        self.take_keyboard()
        self._say(step)
        self.moved.emit()

    def _truth(self, step: Step, ask: Ask) -> str:
        """What the model says, in a few words."""
        if ask.options:
            return "; ".join(ask.options[i].say for i in ask.right_options(self.figures))
        name = ask.meant or ""
        return step.figures[name].text_of(self.figures[name])

    def _on_key(self, key: int) -> None:
        state = self._contents.session.state
        if state.ran is not None and state.site is not None:
            self.column.question.take_token(site_tokens(state.ran, state.site)[1][key].word)

    # what it points at

    def set_theme(self, theme: Theme) -> None:
        self.ring.set_theme(theme)
        self.covers.set_theme(theme)

    def place(self) -> Place | None:
        """What the step points at, where that is on screen."""
        step = self.step
        if step is None or step.point is None or not self.is_settled:
            return None
        state, goal = self._contents.session.state, step.goal
        if goal is None and step.state is not None:
            goal = goal_at(self.opened.states[step.state - 1].document, state)
        return None if goal is None else place_of(self._contents, step.point, goal, state)

    def _point(self) -> None:
        place = self.place()
        if place is not None and not self.covers.is_on:
            if self._revealed is not place[0]:  # once: whoever scrolls on is left alone
                self._revealed = place[0]
                reveal(*place)
            place = in_sight(*place)
        self.ring.point(*(place or (None, QRect())))
