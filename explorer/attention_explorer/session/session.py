"""`Session`: holds the state, and is the only object that replaces it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import attrgetter, is_

from PySide6.QtCore import QObject, Signal

from attention_explorer.session.corpus import corpus_view
from attention_explorer.session.intents import Arrived, Busy, GoToStep, Intent, RestoreDocument
from attention_explorer.session.live import Live
from attention_explorer.session.reduce import reduce
from attention_explorer.session.state import Document, State
from attention_explorer.session.stepping_rules import at_the_step_of, same_but_for_the_step
from attention_explorer.session.writing_rules import written
from attention_models.protocol.corpus import CorpusRequest
from attention_models.protocol.decoding import DecodeSamplesView, DecodeStepView
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.quality import QualityView
from attention_models.protocol.request import Failure, Lane, Request
from attention_models.protocol.running import ForwardRequest, Ran, RerunRequest, RunInputs
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.two_runs import DropOtherRequest
from attention_models.protocol.values import TrainingSteps

MERGE_SECONDS = 1.0
STEPS = 500
CHARACTERS = 8_000_000
NODES = 2_000_000  # of trees of branches: references, since trees share their nodes


@dataclass(slots=True)
class _Step:
    document: Document  # before it
    passage: int = 0


class History:
    """Past and future of one document. The present one is the caller's.

    Steps with the same `merge` key, each within `MERGE_SECONDS` of the one before, are taken back together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._past: deque[_Step] = deque(maxlen=STEPS)
        self._future: list[Document] = []
        self._merge = ""
        self._recorded_at = 0.0

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        return bool(self._future)

    def record(self, before: Document, merge: str = "") -> None:
        """A step was made from `before`; what had been undone is forgotten. An empty `merge` joins no other step."""
        now = self._clock()
        joins = bool(merge) and merge == self._merge and now - self._recorded_at <= MERGE_SECONDS
        self._merge, self._recorded_at = merge, now
        self._future.clear()
        if not joins:
            self._past.append(_Step(before))
            self._forget_beyond_limit()

    def record_passage(self, before: Document, passage: int, again: Callable[[Document], Document]) -> None:
        """A step was made that belongs to `passage`, all of which is taken back at once, however long it takes.

        What was done between two steps of a passage stays a step of its own: `again` does to the documents in between
        what was done to the present one, so that taking back what came between leaves the passage whole.
        """
        self._merge = ""
        self._future.clear()
        place = next((i for i, step in enumerate(self._past) if step.passage == passage), None)
        if place is None:
            self._past.append(_Step(before, passage))
            self._forget_beyond_limit()
            return
        for i in range(place + 1, len(self._past)):
            self._past[i].document = again(self._past[i].document)

    def amend(self, again: Callable[[Document], Document]) -> None:
        """Do to every document what was done to the present one, so that no step leads back to what was refused."""
        for step in self._past:
            step.document = again(step.document)
        self._future = [again(document) for document in self._future]

    def settle(self, present: Document, seen: Callable[[Document], Document] = lambda document: document) -> None:
        """The present changed without a step, or a step led back: drop steps that would now lead nowhere.

        `seen` leaves out of a document what is none of undo's business.
        """
        while self._past and seen(self._past[-1].document) == seen(present):
            self._past.pop()
            self._merge = ""
        while self._future and seen(self._future[-1]) == seen(present):
            self._future.pop()

    def undo(self, present: Document) -> Document | None:
        """The document before the last step, None where there is none."""
        if not self._past:
            return None
        self._merge = ""
        self._future.append(present)
        return self._past.pop().document

    def redo(self, present: Document) -> Document | None:
        """The document that the last undo left, None where there is none."""
        if not self._future:
            return None
        self._merge = ""
        self._past.append(_Step(present))
        return self._future.pop()

    def _forget_beyond_limit(self) -> None:
        # Steps that leave the text alone share one string, which costs its memory once.
        while self._past and (self._characters() > CHARACTERS or self._nodes() > NODES):
            self._past.popleft()

    def _characters(self) -> int:
        documents = (document for step in self._past for document in _with_b(step.document))
        texts = (text for document in documents for text in _texts(document))
        return sum({id(text): len(text) for text in texts}.values())

    def _nodes(self) -> int:
        documents = (document for step in self._past for document in _with_b(step.document))
        trees = (writing.branches.nodes for document in documents for writing in document.writings)
        return sum({id(nodes): len(nodes) for nodes in trees}.values())


def _with_b(document: Document) -> tuple[Document, ...]:
    return (document,) if document.compared is None else (document, document.compared.document)


def _texts(document: Document) -> Iterator[str]:
    yield document.text
    for turn in document.turns:
        yield turn.text
    for other in (*document.before, *document.after):
        yield from (text for text in (other.text, other.second, other.target) if text)


# Which requests follow from a change of state. Pure; panels ask for their own pictures, the session for these.
# - A checkpoint was chosen: load it. - Another step of its training was chosen: its weights, and the run with them, in
# one. - The text, or what is changed while it runs, is not what ran, and the checkpoint it is meant for is open: run
# it.   While another one loads nothing runs, since the text may be meant for a model that is not there yet. - More or
# less was written after the text than what ran, and the window follows: run it with that. - A step of decoding was
# asked for, by the player or into the input: write it. - A checkpoint, or another step of its training, ran for the
# first time: check it against its own attention. If the   text changes before the answer, the next run is checked
# instead. A long text is checked when somebody asks: it takes   as long as running it did. - A file of texts is being
# read: its next texts; anew where what is looked for, or changed while the model runs, is   other than it was. - B was
# let go: the engine lets go of its run and its model. - A measurement is under way: its next batch, and after a load,
# which called it off, the same one again. Stopped by a   person, the engine is told so, and lets go of its models.


def initial_requests(state: State) -> tuple[Request, ...]:
    """What to ask for when the window opens."""
    return (LoadRequest(reference=state.document.checkpoint, placement=state.placement),)


def effects(old: State, new: State) -> tuple[Request, ...]:
    """What to ask for now that `old` became `new`."""
    requests: list[Request] = []
    if new.loading is not None and (new.loading, new.placement) != (old.loading, old.placement):
        requests.append(LoadRequest(reference=new.loading, placement=new.placement))
    if new.stepping is not None and new.stepping is not old.stepping:
        requests.append(new.stepping)
    if new.pending_step is not None and new.pending_step is not old.pending_step:
        requests.append(new.pending_step.request)
    forward = _wanted_forward(new)
    is_new_model = new.results.loaded is not old.results.loaded
    if forward is not None and (is_new_model or forward != _wanted_forward(old)):
        edits_alone = (
            not is_new_model and new.ran is not None and _unedited(new.ran.inputs) == _unedited(forward.inputs)
        )
        requests.append(RerunRequest(inputs=forward.inputs) if edits_alone else forward)
    ran = new.ran if new.ran is not old.ran else None
    is_unmeasured = old.ran is None or is_new_model or TrustRequest.lane in old.live.busy
    if ran is not None and is_unmeasured and not _is_long(ran):
        requests.append(TrustRequest(run=ran.run))
    if old.document.compared is not None and new.document.compared is None:
        requests.append(DropOtherRequest())
    requests += _measuring(old, new, called_off=bool(requests) and isinstance(requests[0], LoadRequest))
    texts = _wanted_texts(new)
    if texts is not None and texts != _wanted_texts(old):
        requests.append(texts)
    return tuple(requests)


def _measuring(old: State, new: State, called_off: bool) -> list[Request]:
    if new.measuring is not None:
        return [new.measuring] if called_off or new.measuring != old.measuring else []
    if old.measuring is None or new.results.of(QualityView) is not old.results.of(
        QualityView
    ):  # the last answer ends it too
        return []
    return [replace(old.measuring, stop=True)]


def _wanted_texts(state: State) -> CorpusRequest | None:
    """The next texts of the file that is being read."""
    if not state.reading or state.results.loaded is None or state.loading is not None:
        return None
    view = corpus_view(state)
    return replace(state.document.corpus_request, have=0 if view is None else view.answers)


def _is_long(ran: Ran) -> bool:
    return any(site.is_long for site in ran.sites)


def _unedited(inputs: RunInputs) -> RunInputs:
    return replace(inputs, interventions=())


def _wanted_forward(state: State) -> ForwardRequest | None:
    inputs = state.inputs
    if state.results.loaded is None or state.loading is not None or state.caught_up or inputs == state.refused:
        return None
    return ForwardRequest(inputs=inputs)


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
