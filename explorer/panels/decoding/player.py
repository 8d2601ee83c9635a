"""What comes next after a text, and what the engine said of each step. Draws nothing; the tree is the document's."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from explorer.panels.decoding.asking import samples_request, step_request
from explorer.panels.decoding.side_by_side import Drawn, SideText, beam_texts
from explorer.panels.decoding.work import (
    SILENT,
    BeamSearch,
    Work,
    made_with,
    search_is_over,
    text_is_over,
    token_is_over,
)
from explorer.session.branches import MOST_NODES, ROOT, Branches, Node
from explorer.session.intents import AskSamples, AskStep, DeleteBranch, GoToNode, NameBranch
from explorer.session.session import Session
from explorer.session.state import State
from explorer.session.writing import TEXTS_KEPT, Origin
from models.chat import Prompt, with_other_end
from models.decode_requests import Beam, DecodeSamplesRequest, DecodeSamplesView, DecodeStepRequest, DecodeStepView
from models.decode_settings import DecodeSettings
from models.interventions import Intervention

_FULL = f"The branches of this text hold {MOST_NODES:,} tokens, the most that are kept. Delete one to go on."


class DecodePlayer(QObject):
    """Asks the engine for one step at a time, and keeps what came back.

    `settings`, `steps`, `samples` and `problem` are what the knobs say, `pause_ms` what the speed does.
    """

    changed = Signal()  # by itself, or by what a person did: never while `take_up` or `receive` run

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.settings, self.steps, self.samples, self.problem = DecodeSettings(), 20, 1, ""
        self.pause_ms = 0
        self.work = Work()
        self.pending: DecodeStepRequest | DecodeSamplesRequest | None = None
        self.playing = False
        self.said = ""  # what went wrong with the last step, or became of a branch
        self._works: OrderedDict[Origin, Work] = OrderedDict()
        # sets of samples, a tree, and what that has of these: looked up many times a step
        self._drawn: tuple[list[Drawn], Branches, tuple[int, Drawn] | None] = [], Branches(), None
        self._drawing = -1  # the place among the sets of the one whose step is under way
        self._taken: DecodeStepView | DecodeSamplesView | None = None  # the last answer that was seen
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
        search = self.work.search
        return (search.at if search is not None else 0) if self.is_beam else len(self.branches.path())

    @property
    def count(self) -> int:
        """How many texts a step draws."""
        return self.samples if self.settings.draws else 1

    @property
    def drawn(self) -> Drawn | None:
        """The samples side by side, while one of them is looked at."""
        found = self._found()
        return None if found is None else found[1]

    def _found(self) -> tuple[int, Drawn] | None:
        """The set of samples of which one is looked at, as far as the tree has it, and its place among the sets.

        Where there are several, that which is made as the knobs say comes first, then the one that was begun last.
        """
        branches, sets = self.branches, self.work.sets
        if self._drawn[0] is not sets or self._drawn[1] is not branches:
            cut = [(place, drawn.within(branches)) for place, drawn in enumerate(sets)]
            there = [
                (place, drawn)
                for place, drawn in cut
                if drawn is not None and drawn.is_begun and drawn.shown(branches) is not None
            ]
            there.sort(key=lambda found: (self.is_as_set(found[1]), found[0]))
            self._drawn = sets, branches, there[-1] if there else None
        return self._drawn[2]

    def is_as_set(self, made: BeamSearch | Drawn) -> bool:
        """Whether the knobs say what it was made with, so that it goes on with the next step."""
        if isinstance(made, BeamSearch):
            return (made.settings, made.steps) == (self.settings, self.steps)
        return (made.settings, len(made.ways)) == (self.settings, self.count)

    def other_settings(self) -> str:
        """What is looked at was made with, where the knobs say something else; "" where they do not."""
        if self.is_beam:
            search = self.work.search
            return made_with(search.settings, search.steps) if search and not self.is_as_set(search) else ""
        drawn = self.drawn
        if drawn is None or self.is_as_set(drawn):
            return ""
        return made_with(drawn.settings, samples=len(drawn.ways))

    def way(self) -> tuple[Node, ...]:
        """The tokens of the text that is looked at, those after the step that is looked at included."""
        drawn, branches = self.drawn, self.branches
        sample = drawn.shown(branches) if drawn is not None else None
        return branches.furthest() if drawn is None or sample is None else branches.path(drawn.nodes[sample])

    def shown_view(self) -> DecodeStepView | None:
        work, branches, drawn = self.work, self.branches, self.drawn
        if self.is_beam:
            return work.search.shown[-1] if work.search is not None and work.search.shown else None
        sample = drawn.shown(branches) if drawn is not None else None
        settings = None if drawn is None or sample is None else replace(drawn.settings, sample=sample)
        return work.view_of(branches.path(), settings)

    @property
    def shown_beam(self) -> Beam | None:
        """The hypothesis of the search that is looked at."""
        return self.work.search.shown_beam if self.work.search is not None else None

    def shown_ids(self) -> tuple[int, ...]:
        """What was written up to the shown step, by the picked beam in a search."""
        view, beam = self.shown_view(), self.shown_beam
        if view is None:
            return ()
        return beam.ids if self.is_beam and beam is not None else view.ids

    def shown_whole(self) -> Prompt:
        """The same with what it follows on: what "use this text" puts into the input."""
        view, beam = self.shown_view(), self.shown_beam
        if view is None or not self.is_beam or beam is None:
            return view.whole if view is not None else ""
        return with_other_end(view.whole, view.text, beam.text)

    def side_by_side(self) -> list[SideText]:
        """The texts that are written at once, if there are several."""
        if self.is_beam:
            return beam_texts(self.work.search.shown, self.shown_beam) if self.work.search is not None else []
        if self.drawn is None:
            return []
        loaded = self.session.state.results.loaded
        fills = loaded is not None and loaded.info.family == "masked"  # its words do not stand side by side
        return self.drawn.texts(self.branches, ", " if fills else "")

    def lacking(self, state: State) -> DecodeStepRequest | None:
        """The step that is looked at, where it came from a file, say, and has to be computed again."""
        branches = state.document.branches
        if self.is_beam or branches.current == ROOT or state.asked is not None or not state.up_to_date:
            return None
        like = step_request(state, self.settings, self.steps)
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
            search = self.work.search
            return search_is_over(search) if search is not None and self.is_as_set(search) else ""
        if not self.branches.has_room(self.count):
            return _FULL
        if self.drawn is not None and self.is_as_set(self.drawn):
            return self._why_no_sample(self.drawn)
        path = self.branches.path()
        if view is None:
            return token_is_over(path[-1], len(path), self.steps) if path else ""
        return text_is_over(view, self.steps)

    def _why_no_sample(self, drawn: Drawn) -> str:
        branches = self.branches
        if branches.current != drawn.nodes[drawn.shown(branches) or 0]:
            return ""  # what follows is known
        writing = drawn.writing(branches)
        if not writing:
            return "All samples have ended."
        return token_is_over(None, len(branches.path(drawn.nodes[writing[0]])), self.steps)

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
        if old is not None and self.work.is_empty:
            self._works.pop(_key(old), None)  # a slider that is dragged passes through many
        self.work = self._works.setdefault(_key(state), Work())
        if self.is_beam:
            self.work.look_at_search_with(self.settings, self.steps)
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
        if view is not None and is_new and _origin(view.request) == _key(state)[1:]:
            for step in view.steps if isinstance(view, DecodeSamplesView) else (view,):
                self.work.keep(step)
        if pending is not None and (state.asked is None or state.asked.request != pending):
            self.pending = None
            if view is not None and is_new and state.passage and replace(view.request, ticket=0) == pending:
                self._go_on(view)
            else:
                self._fail(state, pending)
        if old is not None and old.passage and not state.passage:
            self._pause()  # an undo, say, has broken it off

    def _go_on(self, view: DecodeStepView | DecodeSamplesView) -> None:
        """The step that was waited for is done."""
        if isinstance(view, DecodeSamplesView):
            drawn = self.work.sets[self._drawing].within(self.branches)
            if drawn is not None:
                self._put_set(self._drawing, drawn.grown(self.branches, view))
        elif view.request.settings.strategy == "beam":
            self.work.keep_beams(view)
        self.said = ""
        if self.playing and not self.why_not():
            self._timer.start(self.pause_ms)
        else:
            self.playing = False

    def _fail(self, state: State, pending: DecodeStepRequest | DecodeSamplesRequest) -> None:
        """It could not be done, and the notice says why; or it was broken off."""
        self._pause()
        notice = state.notice
        if notice is not None and notice.lane == pending.lane:
            self.said = notice.text

    # what a person does

    def set_knobs(self, settings: DecodeSettings, steps: int, samples: int, problem: str) -> None:
        """Another strategy or other numbers: from the next step on. What was made with others stays to be looked at."""
        if (settings, steps, samples, problem) == (self.settings, self.steps, self.samples, self.problem):
            return
        self.settings, self.steps, self.samples, self.problem = settings, steps, samples, problem
        self._drawn = [], Branches(), None  # another set may come first now
        if self.is_beam:
            self.work.look_at_search_with(settings, steps)
        pending = self.pending.settings.strategy if self.pending is not None else settings.strategy
        if problem or self.is_beam != (pending == "beam"):
            self._pause()
        self.said = ""

    def step(self, goes_on: bool = False) -> None:
        """One token more, or the step of the search that is known already."""
        search, found = self.work.search, self._found()
        if self.pending is not None or self.problem or self.why_not():
            return
        if self.is_beam and search is not None and self.is_as_set(search) and search.at < len(search.views):
            self.jump(search.at + 1)
            if self.playing:
                self._timer.start(self.pause_ms)
            return
        if found is not None and self.is_as_set(found[1]):
            self._step_samples(*found, goes_on)
        elif self.count > 1:
            self._draw_from(self.branches.current, goes_on)
        else:
            self._ask(self.branches.current, goes_on=goes_on)

    def _step_samples(self, place: int, drawn: Drawn, goes_on: bool) -> None:
        """A token more of each sample, or the step that is known already."""
        if self.branches.current == drawn.nodes[drawn.shown(self.branches) or 0]:
            self._ask_samples(drawn, place, goes_on)
            return
        self.jump(self.at + 1)
        if self.playing:
            self._timer.start(self.pause_ms)

    def _draw_from(self, node: int, goes_on: bool = False) -> None:
        """Let several samples go on from a node."""
        drawn = Drawn.begin(self.settings, node, self.count)
        self.work.begin_set(drawn)
        self._ask_samples(drawn, len(self.work.sets) - 1, goes_on)

    def _ask_samples(self, drawn: Drawn, place: int, goes_on: bool) -> None:
        """Let the engine draw a token of each sample that has not ended, of the set at `place`."""
        self._drawing = place
        branches, request = self.branches, samples_request(self.session.state, drawn, self.steps)
        self.said = ""
        self.pending = request
        shown, samples = drawn.shown(branches), request.samples
        looked_at = (
            samples.index(drawn.preferred if shown is None else shown) if shown is None or shown in samples else -1
        )
        parents = tuple(drawn.nodes[sample] for sample in samples)
        self.session.dispatch(AskSamples(request, parents, looked_at, goes_on))
        self.changed.emit()

    def _put_set(self, place: int, drawn: Drawn) -> None:
        sets = self.work.sets
        self.work.sets = [*sets[:place], drawn, *sets[place + 1 :]]

    def _ask(self, parent: int, forced: int | None = None, goes_on: bool = False) -> None:
        """Let the engine do the step after a node, or the next one of the beam search."""
        state = self.session.state
        if self.is_beam:
            search = self.work.search_with(self.settings, self.steps)
            number = 1 if search is None else len(search.views) + 1
            request = step_request(state, self.settings, self.steps, number=number)
        else:
            request = step_request(state, self.settings, self.steps, self.branches.ids(parent), forced=forced)
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
        if self.pending is None and self.branches.has_room(self.count) and not self.problem:
            self.playing = True
            if self.count > 1:
                self._draw_from(ROOT)
            else:
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
        search = self.work.search
        if self.is_beam and search is not None:
            search.go_to(step)
        elif not self.is_beam:
            path = self.way()
            self.session.dispatch(GoToNode(path[step - 1].id if 0 < step <= len(path) else ROOT))
        self.said = ""
        self.changed.emit()

    def pick(self, id_: int) -> None:
        """Look at another of the texts that are written side by side: a beam by its node, or a sample."""
        search, found = self.work.search, self._found()
        if self.is_beam and search is not None:
            beams = (beam for view in search.shown for beam in view.beams)
            search.picked = next((beam for beam in beams if beam.node == id_), None)
        elif not self.is_beam and found is not None:
            place, drawn = found
            path = self.branches.path(drawn.nodes[id_])[: self.at]
            self._put_set(place, replace(self.work.sets[place], preferred=id_))
            if path:
                self.session.dispatch(GoToNode(path[-1].id))
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
        elif branches.has_room():
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


def _key(state: State) -> Origin:
    return state.document.origin


def _origin(asked: DecodeStepRequest | DecodeSamplesRequest) -> tuple[Prompt, str | None, tuple[Intervention, ...]]:
    """What of an origin a request says."""
    return asked.text, asked.target, asked.interventions
