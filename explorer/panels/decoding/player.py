"""What was written after each text, which step of it is looked at, and what comes next. Draws nothing."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from explorer.panels.decoding.work import SILENT, Work, search_is_over, text_is_over
from explorer.session.branches import ROOT
from explorer.session.session import Session
from explorer.session.state import State
from models.decode_requests import DecodeStepRequest, DecodeStepView
from models.decode_settings import DecodeSettings

_TEXTS_KEPT = 8  # whose branches are there again when one comes back to the text


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
        self.said = ""  # what went wrong with the last step
        self._works: OrderedDict[tuple[str, str, str | None], Work] = OrderedDict()
        self._pending_at = (self.work, ROOT)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._play_on)

    # what is the case

    @property
    def is_beam(self) -> bool:
        return self.settings.strategy == "beam"

    @property
    def at(self) -> int:
        """The step that is looked at; 0 is the prompt."""
        return self.work.beam if self.is_beam else len(self.work.branches.path())

    def shown_view(self) -> DecodeStepView | None:
        work = self.work
        if self.is_beam:
            return work.beams[work.beam - 1] if 0 < work.beam <= len(work.beams) else None
        return work.views.get(work.branches.current)

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
        if view is None:
            return ""
        return search_is_over(view, self.work, self.steps) if self.is_beam else text_is_over(view, self.steps)

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
        while len(self._works) > _TEXTS_KEPT:
            self._works.popitem(last=False)

    def receive(self, state: State, old: State | None) -> None:
        """Take what was asked for, if it is here or has failed."""
        arrived = state.results.decoded
        if arrived is not None and self.pending is not None and replace(arrived.request, ticket=0) == self.pending:
            self.pending = None
            self._take(arrived)
        elif self.pending is not None and old is not None and self.pending.lane in old.busy - state.busy:
            self.pending = None  # it failed: the notice says why
            self.playing = False
            self.said = state.notice.text if state.notice is not None else ""

    def _take(self, view: DecodeStepView) -> None:
        """A step has been done."""
        work, parent = self._pending_at
        if view.request.settings.strategy == "beam":
            work.beams.append(view)
            work.beam = len(work.beams)
        else:
            known = parent == ROOT or any(node.id == parent for node in work.branches.nodes)
            if not known or view.chosen is None:
                self._pause()  # the branch was deleted meanwhile
                return
            looked_at = work.branches.current
            over = view.ending in ("model", "context", "masks")
            grown = work.branches.go(parent).grow(view.chosen.id, view.chosen.label, view.log_probability, ended=over)
            work.views[grown.current] = view
            work.branches = grown if looked_at == parent else grown.go(looked_at)
        self.said = ""
        if self.playing and not self.why_not():
            self._timer.start(self.pause_ms)
        else:
            self.playing = False

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

    def step(self, forced: int | None = None) -> None:
        """One token more, or the step of the search that is known already."""
        state, work = self.session.state, self.work
        if self.pending is not None or self.problem or (forced is None and self.why_not()):
            return
        if self.is_beam and work.beam < len(work.beams):
            self.jump(work.beam + 1)
            if self.playing:
                self._timer.start(self.pause_ms)
            return
        site, beam = state.site, self.is_beam
        request = DecodeStepRequest(
            text=state.document.text,
            target=state.document.target,
            settings=self.settings,
            steps=self.steps,
            number=len(work.beams) + 1 if beam else self.at + 1,
            ids=() if beam else work.branches.ids(),
            forced=None if beam else forced,
            site=site.ref if site is not None else None,
            head=state.selection.head,
        )
        work.searched = (self.settings, self.steps) if beam else work.searched
        self.said = ""
        self.pending, self._pending_at = request, (work, work.branches.current)
        self.session.request(request)
        self.changed.emit()

    def play(self, on: bool) -> None:
        self.playing = on
        if on:
            self._play_on()
        else:
            self._pause()
        self.changed.emit()

    def _play_on(self) -> None:
        if not self.playing:
            return
        if self.why_not() or self.problem:
            self._pause()
            self.changed.emit()
        else:
            self.step()

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
            path = work.branches.furthest()
            work.branches = work.branches.go(path[step - 1].id if 0 < step <= len(path) else ROOT)
        self.said = ""
        self.changed.emit()

    def go(self, node: int) -> None:
        """To a node of the tree."""
        self._pause()
        self.work.branches = self.work.branches.go(node)
        self.said = ""
        self.changed.emit()

    def branch_off(self, token: int) -> None:
        """Take `token` in the place of what the shown step chose."""
        work = self.work
        path = work.branches.path()
        if not path or self.pending is not None or path[-1].token == token:
            return
        self._pause()
        parent = path[-1].parent
        known = next((child for child in work.branches.children(parent) if child.token == token), None)
        if known is not None:
            self.go(known.id)
            return
        work.branches = work.branches.go(parent)
        self.step(forced=token)

    def rename(self, node: int, name: str) -> None:
        if node != ROOT:
            self.work.branches = self.work.branches.named(node, name)
            self.changed.emit()

    def delete(self, node: int) -> None:
        """The branch of `node`, up to where it parts from the others."""
        if node == ROOT:
            return
        self._pause()
        work = self.work
        work.deleted.append(work.branches)
        work.branches = work.branches.without(work.branches.branch_start(node))
        self.changed.emit()

    def bring_back(self) -> None:
        """What was deleted last."""
        work = self.work
        if work.deleted:
            earlier, made = work.deleted.pop(), work.branches.made
            # what was chosen since the deletion is not in the earlier tree: nothing may get its ids
            work.branches = replace(earlier, made=max(made, earlier.made))
            self.changed.emit()


def _key(state: State) -> tuple[str, str, str | None]:
    return state.document.checkpoint, state.document.text, state.document.target
