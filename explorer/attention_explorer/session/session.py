"""`Session`: holds the state, and is the only object that replaces it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter, is_

from PySide6.QtCore import QObject, Signal

from attention_explorer.session.effects import effects, initial_requests
from attention_explorer.session.history import History
from attention_explorer.session.intents import Arrived, Busy, GoToStep, Intent, RestoreDocument
from attention_explorer.session.live import Live
from attention_explorer.session.reduce import reduce
from attention_explorer.session.state import Document, State
from attention_explorer.session.stepping_rules import at_the_step_of, same_but_for_the_step
from attention_explorer.session.writing_rules import written
from attention_models.protocol.decoding import DecodeSamplesView, DecodeStepView
from attention_models.protocol.loading import Loaded
from attention_models.protocol.request import Failure, Lane, Request
from attention_models.protocol.values import TrainingSteps

_all_but_live = attrgetter(*(field.name for field in fields(State) if field.name != "live"))


def is_same_but_for_live(one: State, other: State) -> bool:
    """Whether two states differ at most in what is under way."""
    return all(map(is_, _all_but_live(one), _all_but_live(other)))


class Session(QObject):
    """One session with one model. Lives in the GUI thread; every method is called there."""

    changed = Signal(object, object)
    """(old state, new state), after each intent that changed more than what is under way."""
    live_changed = Signal(object, object)
    """(old, new) `Live`: what is under way. It comes after `changed` where an intent changed both."""
    requested = Signal(object)
    """A `Request` to post to the engine."""
    called_off = Signal(object)
    """The `Lane` whose work nobody waits for any longer."""
    history_changed = Signal()
    """`can_undo` or `can_redo` is another one now."""

    def __init__(
        self,
        state: State | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        """Begin with `state`. `clock`, in seconds, decides which steps undo takes back together."""
        super().__init__(parent)
        self._state = state or State()
        self._history = History(clock)
        self._known_history = (False, False)
        self._queue: deque[Intent | Callable[[], None]] = deque()
        self._draining = False
        self.steps = 0
        """How often the document was changed by what a person did, undone or redone: what would be lost if it was."""

    @property
    def state(self) -> State:
        return self._state

    @property
    def live(self) -> Live:
        """What is under way now."""
        return self._state.live

    @property
    def can_undo(self) -> bool:
        return self._history.can_undo

    @property
    def can_redo(self) -> bool:
        return self._history.can_redo

    def start(self) -> None:
        """Ask for the checkpoint of the document. Called once, when the bridge is connected."""
        for request in initial_requests(self._state):
            self.request(request)

    def request(self, request: Request) -> None:
        """Ask the engine on behalf of whoever shows the answer: it comes back as a change of state."""
        self.requested.emit(request)

    def call_off(self, lane: Lane) -> None:
        """Let the engine drop what it was asked for in `lane`."""
        self.called_off.emit(lane)

    def dispatch(self, intent: Intent) -> None:
        """Let `intent` change the state. From within a `changed` slot it waits for its turn.

        Raises:
            TypeError, ValueError: from `reduce`; the state stays as it was. An intent that had to wait raises from
                the outermost call, after everything else that waited.
        """
        if isinstance(intent, Busy) and self._queue and isinstance(self._queue[-1], Busy):
            self._queue.pop()  # nobody has seen it: each says all lanes
        self._in_turn(intent)

    def undo(self) -> None:
        """Go back one step; nothing happens where there is none."""
        self._in_turn(lambda: self._restore(self._history.undo))

    def redo(self) -> None:
        """Take back the last undo; nothing happens where there is none."""
        self._in_turn(lambda: self._restore(self._history.redo))

    def _in_turn(self, item: Intent | Callable[[], None]) -> None:
        self._queue.append(item)
        if self._draining:
            return
        self._draining = True
        refused: Exception | None = None
        try:
            while self._queue:
                item = self._queue.popleft()
                try:
                    if isinstance(item, Intent):
                        self._apply(item)
                    else:
                        item()
                except (TypeError, ValueError) as error:
                    refused = refused or error
        finally:
            self._draining = False
        if refused is not None:
            raise refused

    def _apply(self, intent: Intent) -> None:
        old, new = self._state, reduce(self._state, intent)
        seen = partial(_seen_by_undo, training=old.training)
        if seen(new.document) != seen(old.document):
            self._record(intent, old, without_brush(old.document))
            self._put_back_picture(intent, old.document.picture, new.document.picture)
            self._history.settle(without_brush(new.document), seen)
        elif isinstance(intent, GoToStep) and new.document != old.document:
            self.steps += 1  # a session file keeps it
        self._replace(new)

    def _record(self, intent: Intent, old: State, before: Document) -> None:
        result = intent.result if isinstance(intent, Arrived) else None
        pending = old.pending_step
        if isinstance(result, (DecodeStepView, DecodeSamplesView)) and pending is not None:
            self._history.record_passage(before, old.passage, lambda document: written(document, pending, result))
        elif result is None:  # what a person did
            self._history.record(before, intent.merge)
        elif isinstance(result, Loaded) and old.opening is not None and old.loading == _open_checkpoint(old):
            self._history.record(before)  # else choosing its checkpoint was recorded
        else:
            return
        self.steps += 1

    def _put_back_picture(self, intent: Intent, refused: str, kept: str) -> None:
        """No step leads back to a picture that could not be read: what is done while it is being read is a step too."""
        if isinstance(intent, Arrived) and isinstance(intent.result, Failure) and refused != kept:
            self._history.amend(
                lambda document: replace(document, picture=kept) if document.picture == refused else document
            )

    def _restore(self, walk: Callable[[Document], Document | None]) -> None:
        present = self._state.document
        document = walk(without_brush(present))
        if document is None:
            return
        training = self._state.training
        document = at_the_step_of(document, present, training)
        self._history.settle(document, partial(_seen_by_undo, training=training))
        document = replace(document, view=replace(document.view, painting=present.view.painting))
        self.steps += 1
        self._replace(reduce(self._state, RestoreDocument(document)))

    def _replace(self, new: State) -> None:
        old = self._state
        if new is old:
            return
        self._state = new
        if not is_same_but_for_live(old, new):
            self.changed.emit(old, new)
        if new.live is not old.live:
            self.live_changed.emit(old.live, new.live)
        for request in effects(old, new):
            self.request(request)
        history = (self.can_undo, self.can_redo)
        if history != self._known_history:
            self._known_history = history
            self.history_changed.emit()


def without_brush(document: Document) -> Document:
    """What undo goes back to: a brush is picked up and put down by hand alone."""
    if document.view.painting == "off":
        return document
    return replace(document, view=replace(document.view, painting="off"))


def _seen_by_undo(document: Document, training: TrainingSteps | None) -> Document:
    """What of a document undo goes back to."""
    return same_but_for_the_step(without_brush(document), training)


def _open_checkpoint(state: State) -> str:
    return "" if state.results.loaded is None else state.results.loaded.info.reference
