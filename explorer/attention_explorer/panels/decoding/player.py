"""What comes next after a text, and what the engine said of each step. Draws nothing; the tree is the document's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from attention_explorer.panels.decoding.answers import Answers
from attention_explorer.panels.decoding.in_view import InView, samples_request, step_request
from attention_explorer.panels.decoding.side_by_side import SampleSet
from attention_explorer.panels.decoding.situation import Actions, Situation
from attention_explorer.session.branches import ROOT, Branches
from attention_explorer.session.writing import TEXTS_KEPT, Origin
from attention_models.protocol.decoding import (
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
)


class DecodePlayer(InView):
    """Asks the engine for one step at a time, and keeps what came back. `pause_ms` is what the speed says."""

    changed = Signal()  # by itself, or by what a person did: never while `take_up` or `receive` run

    def __init__(self, now: Callable[[], Situation], actions: Actions, parent: QObject | None = None) -> None:
        super().__init__(now, parent)
        self._actions = actions
        self.pause_ms = 0
        self.pending: DecodeStepRequest | DecodeSamplesRequest | None = None
        self.playing = False
        self._awaits_window = False
        self.said = ""  # what went wrong with the last step, or became of a branch
        self._works: OrderedDict[Origin, Answers] = OrderedDict()
        self._drawing = -1  # the place among the sets of the one whose step is under way
        self._taken: DecodeStepView | DecodeSamplesView | None = None  # the last answer that was seen
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(lambda: self._play_on())

    # what comes from the session

    def take_up(self, now: Situation, before: Situation | None) -> None:
        """Another text: what was written after it before is there again. Another model: all is forgotten."""
        if before is not None and before.loaded is now.loaded and before.origin == now.origin:
            return
        if before is None or before.loaded is not now.loaded:
            self._works.clear()
        self._pause()
        self.pending = None
        self.said = ""
        if before is not None and self.work.is_empty:
            self._works.pop(before.origin, None)  # a slider that is dragged passes through many
        self.work = self._works.setdefault(now.origin, Answers())
        if self.is_beam:
            self.work.show_search_with(self.settings, self.steps)
        self._works.move_to_end(now.origin)
        while len(self._works) > TEXTS_KEPT:
            self._works.popitem(last=False)

    def receive(self, now: Situation, before: Situation | None) -> None:
        """Keep the step that has arrived, and go on with what waited for it."""
        if before is not None and before.branches != now.branches:
            self.said = ""  # it was said of another place in the tree
        view, pending, was_taken = now.answer, self.pending, self._taken
        self._taken = view
        is_new = view is not None and view is not was_taken
        if view is not None and is_new and view.request.inputs == now.inputs:
            for step in view.steps if isinstance(view, DecodeSamplesView) else (view,):
                self.work.keep(step)
        if pending is not None and now.pending != pending:
            self.pending = None
            if view is not None and is_new and now.passage and view.request == pending:
                self._go_on(view)
            else:
                self._fail(now)
        if before is not None and before.passage and not now.passage:
            self._pause()  # an undo, say, has broken it off
        if self._awaits_window and now.caught_up:
            self._awaits_window = False
            self._timer.start(0)  # behind what the panels have asked for by then

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

    def _fail(self, now: Situation) -> None:
        """It could not be done, and the notice says why; or it was broken off."""
        self._pause()
        self.said = now.problem or self.said

    # what a person does

    def set_knobs(self, settings: DecodeSettings, steps: int, samples: int, problem: str) -> None:
        """Another strategy or other numbers: from the next step on. What was made with others can still be shown."""
        if (settings, steps, samples, problem) == (self.settings, self.steps, self.samples, self.problem):
            return
        self.settings, self.steps, self.samples, self.problem = settings, steps, samples, problem
        self._found_in = [], Branches(), None  # another set may come first now
        if self.is_beam:
            self.work.show_search_with(settings, steps)
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
        start = ROOT if self.begins_anew else self.branches.current
        if found is not None and self.is_as_set(found[1]):
            self._step_samples(*found, goes_on)
        elif self.count > 1:
            self._draw_from(start, goes_on)
        else:
            self._ask(start, goes_on=goes_on)

    def _step_samples(self, place: int, drawn: SampleSet, goes_on: bool) -> None:
        """A token more of each sample, or the step that is known already."""
        if self.branches.current == drawn.nodes[drawn.shown(self.branches) or 0]:
            self._ask_samples(drawn, place, goes_on)
            return
        self.jump(self.at + 1)
        if self.playing:
            self._timer.start(self.pause_ms)

    def _draw_from(self, node: int, goes_on: bool = False) -> None:
        """Let several samples go on from a node."""
        drawn = SampleSet.begin(self.settings, node, self.count)
        self.work.begin_set(drawn)
        self._ask_samples(drawn, len(self.work.sets) - 1, goes_on)

    def _ask_samples(self, drawn: SampleSet, place: int, goes_on: bool) -> None:
        """Let the engine draw a token of each sample that has not ended, of the set at `place`."""
        self._drawing = place
        branches, request = self.branches, samples_request(self.now(), drawn, self.steps)
        self.said = ""
        self.pending = request
        shown, samples = drawn.shown(branches), request.samples
        in_view = (
            samples.index(drawn.preferred if shown is None else shown) if shown is None or shown in samples else -1
        )
        parents = tuple(drawn.nodes[sample] for sample in samples)
        self._actions.ask_samples(request, parents, in_view, goes_on)
        self.changed.emit()

    def _put_set(self, place: int, drawn: SampleSet) -> None:
        sets = self.work.sets
        self.work.sets = [*sets[:place], drawn, *sets[place + 1 :]]

    def _ask(self, parent: int, forced: int | None = None, goes_on: bool = False) -> None:
        """Let the engine do the step after a node, or the next one of the beam search."""
        now = self.now()
        if self.is_beam:
            search = self.work.search_with(self.settings, self.steps)
            number = 1 if search is None else len(search.views) + 1
            request = step_request(now, self.settings, self.steps, number=number)
        else:
            request = step_request(now, self.settings, self.steps, self.branches.ids(parent), forced=forced)
        self.said = ""
        self.pending = request
        self._actions.ask_step(request, parent, goes_on)
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
        if not self.now().caught_up:
            self._awaits_window = True  # each token is seen before the next one is written
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
        self.playing = self._awaits_window = False
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
            path = self.tokens()
            self._actions.go_to(path[step - 1].id if 0 < step <= len(path) else ROOT)
        self.said = ""
        self.changed.emit()

    def pick(self, id_: int) -> None:
        """Show another of the texts that are written side by side: a beam by its node, or a sample."""
        search, found = self.work.search, self._found()
        if self.is_beam and search is not None:
            beams = (beam for view in search.shown for beam in view.beams)
            search.picked = next((beam for beam in beams if beam.node == id_), None)
        elif not self.is_beam and found is not None:
            place, drawn = found
            path = self.branches.path(drawn.nodes[id_])[: self.at]
            self._put_set(place, replace(self.work.sets[place], preferred=id_))
            if path:
                self._actions.go_to(path[-1].id)
        self.said = ""
        self.changed.emit()

    def go(self, node: int) -> None:
        """To a node of the tree."""
        self._pause()
        self._actions.go_to(node)
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
            self._actions.name(node, name)

    def delete(self, node: int) -> None:
        """The branch of `node`, up to where it parts from the others."""
        if node == ROOT:
            return
        self._pause()
        was_written = self.pending is not None
        self._actions.delete(node)
        broken_off = was_written and self.now().pending is None
        self.said = f"Deleted{', while its next token was computed' if broken_off else ''}. Ctrl+Z brings it back."
        self.changed.emit()
