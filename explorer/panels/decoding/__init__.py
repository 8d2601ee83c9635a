"""A player for generation: step by step, back, sideways into other branches, with what the settings do on the way."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from explorer.panels.base import Panel, head_name, shortened
from explorer.panels.decoding.knobs import DecodeKnobs
from explorer.panels.decoding.pages import AttentionPage, BranchesPage, CachePage, CandidatesPage
from explorer.panels.decoding.transport import Transport
from explorer.panels.decoding.work import READY, SILENT, Work, percent_of, search_is_over, step_words, text_is_over
from explorer.session.branches import ROOT
from explorer.session.hover import Hover
from explorer.session.intents import SetTarget, SetText
from explorer.session.session import Session
from explorer.session.state import State
from explorer.widgets.card import Card
from explorer.widgets.page import scrolling, wrapped
from explorer.widgets.segments import Segments
from explorer.widgets.step_timeline import StepTimeline, TimelineStep
from models.decode_requests import DecodeRowsRequest, DecodeStepRequest, DecodeStepView
from models.requests import Request

CANDIDATES, BRANCHES, ATTENTION, CACHE = range(4)
_TEXTS_KEPT = 8  # whose branches are there again when one comes back to the text


class DecodingPanel(Panel):
    name = "decoding"
    title = "Decode"
    hint = "Let the model write step by step: what each setting cuts, other branches, attention and the cache."

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._works: OrderedDict[tuple[str, str, str | None], Work] = OrderedDict()
        self._work = Work()
        self._pending: DecodeStepRequest | None = None
        self._pending_at = (self._work, ROOT)
        self._playing = False
        self._said = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._play_on)

        self.transport = Transport()
        self.knobs = DecodeKnobs()
        self.status = wrapped()
        self.timeline = StepTimeline()
        self.use = QPushButton("Use this text")
        self.use.setToolTip("Put what was written into the input, so that every panel shows it")
        self.again = QPushButton("Another sample")
        self.again.setToolTip("Write once more from the prompt with the next seed; this text stays as a branch")
        self.candidates, self.branches = CandidatesPage(), BranchesPage()
        self.attention, self.cache = AttentionPage(), CachePage()
        self.tabs = Segments(
            (
                ("Candidates", "What the step chose from, and what the settings cut"),
                ("Branches", "Every way that was gone"),
                ("Attention", "Where the selected head looked, a row a step"),
                ("Cache", "Keys and values: stored, reused, computed"),
            ),
            "What to look at",
            wraps=True,
        )
        self.pages = (self.candidates, self.branches, self.attention, self.cache)
        self._build()
        self._connect()

    def _build(self) -> None:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        for widget in (self.transport, self.status, self.timeline):
            column.addWidget(widget)
        column.addWidget(self.knobs)
        column.addWidget(self.tabs)
        for index, each in enumerate(self.pages):
            each.setVisible(index == CANDIDATES)
            column.addWidget(each, 1)
        column.addStretch(0)
        self.card = Card(self.title)
        self.card.set_subtitle("one token a step")
        self.card.add_control(self.again)
        self.card.add_control(self.use)
        self.card.set_content(scrolling(page))
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.card)

    def _connect(self) -> None:
        self.transport.step.connect(lambda: self._step())
        self.transport.play.connect(self._play)
        self.transport.back.connect(self._back)
        self.transport.restart.connect(lambda: self._jump(0))
        self.timeline.step_selected.connect(self._jump)
        self.knobs.changed.connect(self._on_knobs)
        self.tabs.chosen.connect(self._show_page)
        self.candidates.candidate_chosen.connect(self._branch_off)
        self.branches.node_chosen.connect(self._go)
        self.branches.renamed.connect(self._rename)
        self.branches.deleted.connect(self._delete)
        self.branches.undone.connect(self._bring_back)
        self.use.clicked.connect(self._use_text)
        self.again.clicked.connect(self._sample_again)

    # what it shows

    def wants(self, state: State) -> Request | None:
        site, view = state.site, self._shown_view()
        if site is None or view is None or self.tabs.current != ATTENTION:
            return None
        asked = view.request
        request = DecodeRowsRequest(
            text=asked.text, target=asked.target, ids=view.ids, site=site.ref, head=state.selection.head
        )
        rows = state.results.decoded_rows
        return None if rows is not None and replace(rows.request, ticket=0) == request else request

    def render_state(self, state: State, old: State | None) -> None:
        document = state.document
        if old is None or old.results.loaded is not state.results.loaded or _key(old) != _key(state):
            self._take_up(state, same_model=old is not None and old.results.loaded is state.results.loaded)
        arrived = state.results.decoded
        if arrived is not None and self._pending is not None and replace(arrived.request, ticket=0) == self._pending:
            self._pending = None
            self._take(arrived)
        elif self._pending is not None and old is not None and self._pending.lane in old.busy - state.busy:
            self._pending = None  # it failed: the notice says why
            self._playing = False
            self._said = state.notice.text if state.notice is not None else ""
        self.again.setVisible(self.knobs.strategy == "sample" and document.text != "")
        self._render(state)

    def _mark_edited(self, state: State) -> None:
        """The player runs the model as it is: its card has no mark."""

    def _take_up(self, state: State, same_model: bool) -> None:
        """Another text or another model: what was written after it before is there again."""
        if not same_model:
            self._works.clear()
        self._pause()
        self._pending = None
        self._said = ""
        self._work = self._works.setdefault(_key(state), Work())
        self._works.move_to_end(_key(state))
        while len(self._works) > _TEXTS_KEPT:
            self._works.popitem(last=False)

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
        self._said = ""
        if self._playing and not self._why_not():
            self._timer.start(self.transport.pause_ms)
        else:
            self._playing = False

    def _render(self, state: State) -> None:
        work, beam, view = self._work, self._is_beam, self._shown_view()
        path = work.branches.furthest()
        at = work.beam if beam else len(work.branches.path())
        if beam:
            best = work.beams[-1] if work.beams else None
            steps = [TimelineStep(f"step {i + 1}", 0.0) for i in range(len(work.beams))] if best else []
        else:
            steps = [
                TimelineStep(shortened(node.label), percent_of(work.views[node.id]), f"Step {i + 1}: “{node.label}”")
                for i, node in enumerate(path)
            ]
        self.timeline.set_steps(steps, at)
        why_not = self._why_not()
        self.transport.show_state(
            self._playing, at > 0, not why_not and self._pending is None and not self.knobs.problem
        )
        self.status.setText(self._status(state, view, why_not))
        self.use.setEnabled(view is not None)
        self.again.setVisible(self.knobs.strategy == "sample")
        self.again.setEnabled(self._pending is None and not self._silence(state))
        if beam:
            self.candidates.show_beams(work.beams[: work.beam], self.knobs.settings.beams)
        else:
            self.candidates.show_step(view)
        if self.tabs.current == BRANCHES:
            self.branches.show_branches(work.branches, bool(work.deleted))
        if self.tabs.current == ATTENTION:
            self._show_rows(state, view)
        if self.tabs.current == CACHE:
            masked = view is not None and not view.cache_bytes
            empty = "A masked model keeps nothing: each word that comes in changes every other." if masked else ""
            self.cache.show_step(view, empty)

    def _show_rows(self, state: State, view: DecodeStepView | None) -> None:
        rows = state.results.decoded_rows
        if state.site is None and state.ran is not None:
            self.attention.show_rows(None, "No head", "This model shows no attention weights.")
        elif view is None:
            self.attention.show_rows(None, head_name(state), "Press Step: a row for each token appears here.")
        elif rows is not None and rows.request.text == view.request.text:
            self.attention.show_rows(rows, head_name(state), "")

    def _status(self, state: State, view: DecodeStepView | None, why_not: str) -> str:
        silence = self._silence(state)
        if silence:
            return silence
        parts = [self._said] if self._said else []
        if view is not None:
            parts.append(step_words(view, self._work.branches))
        elif not self._said:
            parts.append(READY)
        if why_not and view is not None:
            parts.append(why_not)
        if state.ran is not None and state.ran.interventions:
            parts.append("Interventions are left out here: the model writes as it is.")
        return " ".join(parts)

    # what is the case

    @property
    def _is_beam(self) -> bool:
        return self.knobs.strategy == "beam"

    def _shown_view(self) -> DecodeStepView | None:
        work = self._work
        if self._is_beam:
            return work.beams[work.beam - 1] if 0 < work.beam <= len(work.beams) else None
        return work.views.get(work.branches.current)

    def _silence(self, state: State) -> str:
        loaded = state.results.loaded
        return SILENT.get(loaded.info.family, "") if loaded is not None else "No model is open yet."

    def _why_not(self) -> str:
        """Why no step follows on what is looked at; "" where one can."""
        silence = self._silence(self.session.state)
        if silence:
            return silence
        view = self._shown_view()
        if view is None:
            return ""
        if self._is_beam:
            return search_is_over(view, self._work, self.knobs.steps)
        return text_is_over(view, self.knobs.steps)

    # what a person does

    def _step(self, forced: int | None = None) -> None:
        state, work = self.session.state, self._work
        if self._pending is not None or self.knobs.problem or (forced is None and self._why_not()):
            return
        if self._is_beam and work.beam < len(work.beams):
            self._jump(work.beam + 1)  # this step of the search is known
            if self._playing:
                self._timer.start(self.transport.pause_ms)
            return
        site, beam = state.site, self._is_beam
        path = work.branches.path()
        request = DecodeStepRequest(
            text=state.document.text,
            target=state.document.target,
            settings=self.knobs.settings,
            steps=self.knobs.steps,
            number=len(work.beams) + 1 if beam else len(path) + 1,
            ids=() if beam else work.branches.ids(),
            forced=None if beam else forced,
            site=site.ref if site is not None else None,
            head=state.selection.head,
        )
        work.searched = (self.knobs.settings, self.knobs.steps) if beam else work.searched
        self._said = ""
        self._pending, self._pending_at = request, (work, work.branches.current)
        self.session.request(request)
        self._show()

    def _play(self, on: bool) -> None:
        self._playing = on
        if on:
            self._play_on()
        else:
            self._pause()
        self._show()

    def _play_on(self) -> None:
        if not self._playing:
            return
        if self._why_not() or self.knobs.problem:
            self._pause()
            self._show()
        else:
            self._step()

    def _pause(self) -> None:
        self._playing = False
        self._timer.stop()

    def _back(self) -> None:
        self._pause()
        self._jump((self._work.beam if self._is_beam else len(self._work.branches.path())) - 1)

    def _jump(self, step: int) -> None:
        """To a step of what the timeline shows; 0 is the prompt."""
        work = self._work
        if self._is_beam:
            work.beam = min(max(step, 0), len(work.beams))
        else:
            path = work.branches.furthest()
            work.branches = work.branches.go(path[step - 1].id if 0 < step <= len(path) else ROOT)
        self._said = ""
        self._show()

    def _go(self, node: int) -> None:
        self._pause()
        self._work.branches = self._work.branches.go(node)
        self._said = ""
        self._show()

    def _branch_off(self, token: int) -> None:
        """Take `token` in the place of what the shown step chose."""
        work = self._work
        path = work.branches.path()
        if not path or self._pending is not None or path[-1].token == token:
            return
        self._pause()
        parent = path[-1].parent
        known = next((child for child in work.branches.children(parent) if child.token == token), None)
        if known is not None:
            self._go(known.id)
            return
        work.branches = work.branches.go(parent)
        self._step(forced=token)

    def _rename(self, node: int, name: str) -> None:
        if node != ROOT:
            self._work.branches = self._work.branches.named(node, name)
            self._show()

    def _delete(self, node: int) -> None:
        """The branch of `node`, up to where it parts from the others."""
        if node == ROOT:
            return
        self._pause()
        work = self._work
        work.deleted.append(work.branches)
        work.branches = work.branches.without(work.branches.branch_start(node))
        self._show()

    def _bring_back(self) -> None:
        if self._work.deleted:
            earlier, made = self._work.deleted.pop(), self._work.branches.made
            # what was chosen since the deletion is not in the earlier tree: nothing may get its ids
            self._work.branches = replace(earlier, made=max(made, earlier.made))
            self._show()

    def _use_text(self) -> None:
        view, loaded = self._shown_view(), self.session.state.results.loaded
        if view is None or loaded is None:
            return
        self.dispatch(SetTarget(view.whole) if loaded.info.family == "seq2seq" else SetText(view.whole))

    def _sample_again(self) -> None:
        seed = self.knobs.settings.seed + 1
        self.knobs.set_number("seed", str(seed))
        self._jump(0)
        self._play(True)

    def _on_knobs(self) -> None:
        work = self._work
        if self._is_beam and work.searched != (self.knobs.settings, self.knobs.steps):
            work.beams, work.beam, work.searched = [], 0, None
        if self.knobs.problem or self._is_beam != (self._pending_strategy() == "beam"):
            self._pause()
        self._said = ""
        self._show()

    def _pending_strategy(self) -> str:
        return self._pending.settings.strategy if self._pending is not None else self.knobs.strategy

    def _show_page(self, index: int) -> None:
        for place, each in enumerate(self.pages):
            each.setVisible(place == index)
        self._show()

    def _show(self) -> None:
        """Draw what the panel itself has changed, and ask for what that needs."""
        if self.isVisible() and self._rendered is not None:
            self._render(self.session.state)
            self._refresh()


def _key(state: State) -> tuple[str, str, str | None]:
    return state.document.checkpoint, state.document.text, state.document.target
