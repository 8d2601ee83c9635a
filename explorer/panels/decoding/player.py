"""What comes next after a text, and what the engine said of each step. Draws nothing; the tree is the document's."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from explorer.panels.decoding.work import SILENT, Work, search_is_over, text_is_over, token_is_over
from explorer.session.branches import MOST_NODES, ROOT, Branches
from explorer.session.intents import AskStep, DeleteBranch, GoToNode, NameBranch
from explorer.session.session import Session
from explorer.session.state import State
from explorer.session.writing import TEXTS_KEPT
from models.decode_requests import DecodeStepRequest, DecodeStepView
from models.decode_settings import DecodeSettings

_FULL = f"The branches of this text hold {MOST_NODES:,} tokens, the most that are kept. Delete one to go on."


class DecodePlayer(QObject):
    """Asks the engine for one step at a time, and keeps what came back.

    `settings`, `steps` and `problem` are what the knobs say, `pause_ms` what the speed does.
    """

    changed = Signal()  # by itself, or by what a person did: never while `take_up` or `receive` run

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.settings, self.steps, self.problem = DecodeSettings(), 20, ""
        self.pause_ms = 0
        self.work = Work()
        self.pending: DecodeStepRequest | None = None
        self.playing = False
        self.said = ""  # what went wrong with the last step, or became of a branch
        self._works: OrderedDict[tuple[str, str, str | None], Work] = OrderedDict()
        self._taken: DecodeStepView | None = None  # the last answer that was seen
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(lambda: self._play_on())

    # what is the case

    @property
    def is_beam(self) -> bool:
        return self.settings.strategy == "beam"

    @property
    def branches(self) -> Branches:
        return self.session.state.document.branches

    @property
    def at(self) -> int:
        """The step that is looked at; 0 is the prompt."""
        return self.work.beam if self.is_beam else len(self.branches.path())

    def shown_view(self) -> DecodeStepView | None:
        work = self.work
        if self.is_beam:
            return work.beams[work.beam - 1] if 0 < work.beam <= len(work.beams) else None
        return work.view_of(self.branches.path())

    def lacking(self, state: State) -> DecodeStepRequest | None:
        """The step that is looked at, where it came from a file, say, and has to be computed again."""
        branches, document = state.document.branches, state.document
        if self.is_beam or branches.current == ROOT or state.asked is not None or not state.up_to_date:
            return None
        like = DecodeStepRequest(
            text=document.text, target=document.target, settings=self.settings, steps=self.steps, number=1
        )
        return self.work.missing(branches.path(), self.steps, like)

    def silence(self) -> str:
        """Why the open model writes nothing at all; "" where it does."""
        loaded = self.session.state.results.loaded
        return SILENT.get(loaded.info.family, "") if loaded is not None else "No model is open yet."

    def why_not(self) -> str:
        """Why no step follows on what is looked at; "" where one can."""
        silence = self.silence()
        if silence:
            return silence
        view = self.shown_view()
        if self.is_beam:
            return search_is_over(view, self.work, self.steps) if view is not None else ""
        if self.branches.is_full:
            return _FULL
        path = self.branches.path()
        if view is None:
            return token_is_over(path[-1], len(path), self.steps) if path else ""
        return text_is_over(view, self.steps)

    # what comes from the session

    def take_up(self, state: State, old: State | None) -> None:
        """Another text: what was written after it before is there again. Another model: all is forgotten."""
        if old is not None and old.results.loaded is state.results.loaded and _key(old) == _key(state):
            return
        if old is None or old.results.loaded is not state.results.loaded:
            self._works.clear()
        self._pause()
        self.pending = None
        self.said = ""
        self.work = self._works.setdefault(_key(state), Work())
        self._works.move_to_end(_key(state))
        while len(self._works) > TEXTS_KEPT:
            self._works.popitem(last=False)

    def receive(self, state: State, old: State | None) -> None:
        """Keep the step that has arrived, and go on with what waited for it."""
        if old is not None and old.document.branches != state.document.branches:
            self.said = ""  # it was said of another place in the tree
        view, pending, was_taken = state.results.decoded, self.pending, self._taken
        self._taken = view
        is_new = view is not None and view is not was_taken
        if view is not None and is_new and (view.request.text, view.request.target) == _key(state)[1:]:
            self.work.keep(view)
        if pending is not None and (state.asked is None or state.asked.request != pending):
            self.pending = None
            if view is not None and is_new and state.passage and replace(view.request, ticket=0) == pending:
                self._go_on(view)
            else:
                self._fail(state, pending)
        if old is not None and old.passage and not state.passage:
            self._pause()  # an undo, say, has broken it off

    def _go_on(self, view: DecodeStepView) -> None:
        """The step that was waited for is done."""
        if view.request.settings.strategy == "beam":
            self.work.beams.append(view)
            self.work.beam = len(self.work.beams)
        self.said = ""
        if self.playing and not self.why_not():
            self._timer.start(self.pause_ms)
        else:
            self.playing = False

    def _fail(self, state: State, pending: DecodeStepRequest) -> None:
        """It could not be done, and the notice says why; or it was broken off."""
        self._pause()
        notice = state.notice
        if notice is not None and notice.lane == pending.lane:
            self.said = notice.text

    # what a person does

    def set_knobs(self, settings: DecodeSettings, steps: int, problem: str) -> None:
        """Another strategy or other numbers: from the next step on, and a search begins anew."""
        self.settings, self.steps, self.problem = settings, steps, problem
        work = self.work
        if self.is_beam and work.searched != (settings, steps):
            work.beams, work.beam, work.searched = [], 0, None
        pending = self.pending.settings.strategy if self.pending is not None else settings.strategy
        if problem or self.is_beam != (pending == "beam"):
            self._pause()
        self.said = ""
        self.changed.emit()

    def step(self, goes_on: bool = False) -> None:
        """One token more, or the step of the search that is known already."""
        work = self.work
        if self.pending is not None or self.problem or self.why_not():
            return
        if self.is_beam and work.beam < len(work.beams):
            self.jump(work.beam + 1)
            if self.playing:
                self._timer.start(self.pause_ms)
            return
        self._ask(self.branches.current, goes_on=goes_on)

    def _ask(self, parent: int, forced: int | None = None, goes_on: bool = False) -> None:
        """Let the engine do the step after a node, or the next one of the beam search."""
        state, work, site, beam = self.session.state, self.work, self.session.state.site, self.is_beam
        ids = () if beam else self.branches.ids(parent)
        request = DecodeStepRequest(
            text=state.document.text,
            target=state.document.target,
            settings=self.settings,
            steps=self.steps,
            number=len(work.beams) + 1 if beam else len(ids) + 1,
            ids=ids,
            forced=None if beam else forced,
            site=site.ref if site is not None else None,
            head=state.selection.head,
        )
        work.searched = (self.settings, self.steps) if beam else work.searched
        self.said = ""
        self.pending = request
        self.session.dispatch(AskStep(request, parent, goes_on))
        self.changed.emit()

    def play(self, on: bool) -> None:
        self.playing = on
        if on:
            self._play_on(goes_on=False)
        else:
            self._pause()
        self.changed.emit()

    def _play_on(self, goes_on: bool = True) -> None:
        if not self.playing:
            return
        if self.why_not() or self.problem:
            self._pause()
            self.changed.emit()
        else:
            self.step(goes_on)

    def sample_again(self) -> None:
        """Play from the prompt, by another branch."""
        self._pause()
        if self.pending is None and not self.branches.is_full and not self.problem:
            self.playing = True
            self._ask(ROOT)
        self.changed.emit()

    def _pause(self) -> None:
        self.playing = False
        self._timer.stop()

    def back(self) -> None:
        self._pause()
        self.jump(self.at - 1)

    def jump(self, step: int) -> None:
        """To a step of what the timeline shows; 0 is the prompt."""
        work = self.work
        if self.is_beam:
            work.beam = min(max(step, 0), len(work.beams))
        else:
            path = self.branches.furthest()
            self.session.dispatch(GoToNode(path[step - 1].id if 0 < step <= len(path) else ROOT))
        self.said = ""
        self.changed.emit()

    def go(self, node: int) -> None:
        """To a node of the tree."""
        self._pause()
        self.session.dispatch(GoToNode(node))
        self.said = ""
        self.changed.emit()

    def branch_off(self, token: int) -> None:
        """Take `token` in the place of what the shown step chose."""
        branches = self.branches
        path = branches.path()
        if not path or self.pending is not None or path[-1].token == token:
            return
        self._pause()
        parent = path[-1].parent
        known = next((child for child in branches.children(parent) if child.token == token), None)
        if known is not None:
            self.go(known.id)
        elif not branches.is_full:
            self._ask(parent, forced=token)

    def rename(self, node: int, name: str) -> None:
        if node != ROOT:
            self.session.dispatch(NameBranch(node, name))

    def delete(self, node: int) -> None:
        """The branch of `node`, up to where it parts from the others."""
        if node == ROOT:
            return
        self._pause()
        was_written = self.pending is not None
        self.session.dispatch(DeleteBranch(node))
        broken_off = was_written and self.session.state.asked is None
        self.said = f"Deleted{', while its next token was computed' if broken_off else ''}. Ctrl+Z brings it back."
        self.changed.emit()


def _key(state: State) -> tuple[str, str, str | None]:
    return state.document.origin
