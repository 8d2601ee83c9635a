"""Walks through a tour in the real window: says each step, points, and waits until what it asks for is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from PySide6.QtCore import QObject, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import Theme
from attention_explorer.panels.base import Place
from attention_explorer.panels.first_token import attention_sink
from attention_explorer.panels.predicted import wanted_prediction
from attention_explorer.panels.selected_head import head_shown, row_of, site_words, words_written
from attention_explorer.session.goals import Goal
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.session.tours import Tour, figures_in
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.window.tour.bar import Button, TourBar
from attention_explorer.window.tour.pointing import Pointed, Ring, in_sight, place_of, reveal
from attention_models.protocol.head import RowView
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.request import Request
from attention_models.protocol.values import Candidate, Prediction

# The words and numbers in a step's sentence, from the run on screen. Pure.


COMING = "…"
"""Stands for a figure that is being computed."""


def said(sentence: str, state: State) -> str:
    """`sentence` with its figures."""
    return sentence.format_map({name: _FIGURES[name](state) or COMING for name in figures_in(sentence)})


def wanted(sentence: str, state: State) -> Request | None:
    """What the engine has to answer for its figures, unless it is here; the weights of a head are always asked for."""
    if not any(name.startswith(("next", "key_")) for name in figures_in(sentence)):
        return None
    request = wanted_prediction(state)
    return None if request is None or state.results.has_answer_to(request) else request


def _prediction(state: State) -> Prediction | None:
    """What is expected at the selected token."""
    view, ran = state.results.of(PredictionView), state.ran
    if view is None or ran is None or view.request.run != ran.run or view.request != wanted_prediction(state):
        return None
    return view.predictions[0] if view.predictions else None


def _next(state: State) -> str:
    prediction = _prediction(state)
    return "" if prediction is None else _word(prediction.candidates[0])


def _next_share(state: State) -> str:
    prediction = _prediction(state)
    return "" if prediction is None else percent_text(prediction.candidates[0].probability)


def _key_candidate(state: State) -> Candidate | None:
    """The selected key's word, as what comes next."""
    prediction = _prediction(state)
    listed = () if prediction is None else prediction.candidates
    return next((candidate for candidate in listed if _word(candidate) == _key(state)), None)


def _key_share(state: State) -> str:
    candidate = _key_candidate(state)
    return "" if candidate is None else percent_text(candidate.probability)


def _key_before(state: State) -> str:
    candidate = _key_candidate(state)
    return "" if candidate is None or candidate.before is None else percent_text(candidate.before)


def _word(candidate: Candidate) -> str:
    return candidate.label.lstrip("␣") or candidate.label


def _query(state: State) -> str:
    if state.ran is None or state.site is None:
        return ""
    return site_words(state.ran, state.site)[0][state.selection.query]


def _key(state: State) -> str:
    if state.ran is None or state.site is None:
        return ""
    return site_words(state.ran, state.site)[1][state.selection.key]


def _wrote(state: State) -> str:
    ran, site = state.ran, state.site
    return "" if ran is None or site is None or site.stack != "cross" else words_written(ran)[state.selection.query]


def _weight(state: State) -> str:
    view, site, chosen = head_shown(state), state.site, state.selection
    if view is None or site is None or (view.request.site, view.request.head) != (site.ref, chosen.head):
        return ""
    if isinstance(view, RowView) and view.request.query != chosen.query:
        return ""
    return percent_text(float(row_of(view, chosen.query)[0][chosen.key]))


def _rests(state: State) -> str:
    place = attention_sink(state)
    return "" if place is None else place.sentence


def _heads(state: State) -> str:
    return "" if state.ran is None else f"{sum(site.heads for site in state.ran.sites):,}"


def _layers(state: State) -> str:
    return "" if state.ran is None else f"{len(state.ran.sites):,}"


_FIGURES: dict[str, Callable[[State], str]] = {
    "heads": _heads,
    "layers": _layers,
    "query": _query,
    "key": _key,
    "wrote": _wrote,
    "weight": _weight,
    "rests": _rests,
    "next": _next,
    "next_share": _next_share,
    "key_share": _key_share,
    "key_before": _key_before,
}


_FOLLOW = 80
"""ms between two looks at where a thing is that is pointed at: docks, text and windows move without a word."""


_ELSEWHERE = "This step is about another text or model, or about the model unchanged. Undo brings back what you had."


class Shown(Pointed, Protocol):
    """The contents of a window, which the tour is about."""

    session: Session


class TourGuide(QObject):
    """One tour in one window. It asks for nothing of the engine and draws nothing while it is not on."""

    moved = Signal()
    """Another step, an offer answered, or the end: what is remembered may be another thing now."""

    def __init__(self, tour: Tour, contents: Shown, bar: TourBar, window: QWidget) -> None:
        super().__init__(window)
        self.tour = tour
        self.bar = bar
        self.ring = Ring(window)
        self.is_on = False
        self.at = 0
        """The step that one is at, or would go on with; as many as there are at the end."""
        self.answer: Literal["", "later", "never", "done"] = ""
        """What became of the offer; "" while nothing did."""
        self._contents = contents
        self._doing: Goal | None = None  # what “Show me” brings about, as soon as its tokens are known
        self._asked: Request | None = None
        self._said = ""  # which step the bar says
        self._revealed: tuple[int, QWidget | None] = (-1, None)  # the step whose place was scrolled to, and in what
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW)
        self._timer.timeout.connect(self._point)
        self._settled = QTimer(self)  # what the bar's coming moved is in its place
        self._settled.setSingleShot(True)
        self._settled.setInterval(3 * _FOLLOW)
        self._settled.timeout.connect(self._reveal)
        self._keys = [
            QShortcut(QKeySequence("Alt+PgDown"), window, self.go_on),
            QShortcut(QKeySequence("Alt+PgUp"), window, self.back),
        ]
        for key in self._keys:
            key.setContext(Qt.ShortcutContext.ApplicationShortcut)
            key.setEnabled(False)
        bar.pressed.connect(self._on_pressed)
        contents.session.changed.connect(lambda _old, new: self._follow(new))
        contents.dock_host.front_changed.connect(lambda: self._follow(contents.session.state))

    # what a person does

    def offer(self) -> None:
        """Ask, without being in the way, whether somebody wants it."""
        if self.is_on:
            return
        count = len(self.tour.step)
        if 0 < self.at < count:
            text, go = f"You were at step {self.at + 1} of {count}.", "Go on"
        else:
            text, go = "Small steps in this window, each with the model’s own numbers.", "Show me around"
        self.bar.say("", self.tour.title, text, {"next": go, "later": "Not now", "never": "Never"}, "next")
        self.bar.show()

    def begin(self) -> None:
        """Begin, or go on where it was left; from the start once it has ended."""
        if self.at >= len(self.tour.step):
            self.at = 0
        self.is_on = True
        for key in self._keys:
            key.setEnabled(True)
        self._timer.start()
        self._enter(self.at)

    def leave(self, answer: Literal["later", "never", "done"]) -> None:
        """Close it; what it was at stays known."""
        self.answer = answer
        self.is_on = False
        self._said = ""
        self._doing = None
        for key in self._keys:
            key.setEnabled(False)
        self._timer.stop()
        self.ring.point(None, QRect())
        self.bar.hide()
        self.moved.emit()

    def back(self) -> None:
        """The step before."""
        if self.is_on and self.at > 0:
            self._enter(self.at - 1)

    def go_on(self) -> None:
        """The next step once this one is done; else do it."""
        if not self.is_on:
            return
        if self.at >= len(self.tour.step):
            self.leave("done")
        elif self.is_done(self._state):
            self._enter(self.at + 1)
        else:
            self.show_me()

    def show_me(self) -> None:
        """Do what the step asks for, or go back to what it needs, by the intents that a person's act would be."""
        self._doing = self.tour.step[self.at].act if self._is_here(self._state) else self._needed
        self._do(self._state)

    def _on_pressed(self, button: Button) -> None:
        if button == "later" or button == "never":
            self.leave("done" if self.is_on and self.at >= len(self.tour.step) else button)
        elif not self.is_on:
            self.begin()
        elif button == "back":
            self.back()
        else:
            self.go_on()

    # where it is

    @property
    def _state(self) -> State:
        return self._contents.session.state

    @property
    def _needed(self) -> Goal:
        return self.tour.needed(self.tour.step[self.at])

    def _is_here(self, state: State) -> bool:
        """Whether what is on screen is what the step is about; it may be on its way."""
        return self._needed.holds(state, self._contents.dock_host.front_panels())

    def is_done(self, state: State) -> bool:
        """Whether what the step asks for is on screen."""
        front = self._contents.dock_host.front_panels()
        return self._is_here(state) and self.tour.step[self.at].act.holds(state, front)

    def _enter(self, step: int) -> None:
        self.at = step
        self._doing = None
        self._revealed = (-1, None)
        if step >= len(self.tour.step):
            self.answer = "done"
        self._follow(self._state)
        self.moved.emit()

    def _follow(self, state: State) -> None:
        if not self.is_on:
            return
        self._do(state)
        state = self._state
        count = len(self.tour.step)
        if self.at >= count:
            self.bar.say("", "The end", self.tour.end, {"back": "Back", "next": "Close"}, "next")
        else:
            self._say_step(state, count)
        self.bar.show()
        self._point()

    def _say_step(self, state: State, count: int) -> None:
        step, number = self.tour.step[self.at], f"{self.at + 1} of {count}"
        if number == self._said and self._is_coming(state):
            return  # for a moment: what is said stays
        self._said = number
        buttons: dict[Button, str] = {"back": "Back"} if self.at else {}
        if self.is_done(state):
            self._ask(step.done, state)
            buttons |= {"next": "Go on", "later": "Later"}  # a panel is called Next
            self.bar.say(number, step.title, said(step.done, state), buttons, "next")
            return
        is_here = self._is_here(state) or self._is_coming(state)
        buttons |= {"show": "Show me" if is_here else "Go there", "later": "Later"}
        self.bar.say(number, step.title, step.say if is_here else _ELSEWHERE, buttons, "show")

    def _is_coming(self, state: State) -> bool:
        """Whether what the step needs has been asked for and is not here yet."""
        return not self._needed.intents(state) and (state.loading is not None or not state.up_to_date)

    def _do(self, state: State) -> None:
        """Go on with what “Show me” began: after a model has opened, say, its tokens are known."""
        goal = self._doing
        if goal is None:
            return
        intents = goal.intents(state)
        if state.up_to_date and state.loading is None and goal.checkpoint in (None, state.document.checkpoint):
            self._doing = None
            if goal.panel in self._contents.dock_host.docks:
                self._contents.dock_host.raise_panel(str(goal.panel))
        for intent in intents:
            self._contents.session.dispatch(intent)

    def _ask(self, sentence: str, state: State) -> None:
        request, asked = wanted(sentence, state), self._asked
        self._asked = request
        if request is not None and request != asked:
            self._contents.session.request(request)

    # what it points at

    def set_theme(self, theme: Theme) -> None:
        self.ring.set_theme(theme)

    def _place(self) -> Place | None:
        state = self._state
        if self.is_on and self.at < len(self.tour.step) and self._is_here(state) and not self.is_done(state):
            step = self.tour.step[self.at]
            return place_of(self._contents, step.point, step.act, state)
        return None

    def _reveal(self) -> None:
        place = self._place()
        if place is not None:
            reveal(*place)

    def _point(self) -> None:
        place = self._place()
        if place is not None:
            if self._revealed != (self.at, place[0]):  # once: whoever scrolls on is left alone
                self._revealed = (self.at, place[0])
                self._settled.start()
            place = in_sight(*place)
        self.ring.point(*(place or (None, QRect())))
