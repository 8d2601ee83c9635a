"""A player for generation: step by step, back, sideways into other branches, with what the settings do on the way."""

from __future__ import annotations

import math
from dataclasses import replace

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from explorer.panels.base import Panel
from explorer.panels.decoding.answers import READY, reading_anew, step_words
from explorer.panels.decoding.attention_page import AttentionPage
from explorer.panels.decoding.branches_page import BranchesPage
from explorer.panels.decoding.cache_page import CachePage
from explorer.panels.decoding.candidates_page import CandidatesPage
from explorer.panels.decoding.knobs import DecodeKnobs
from explorer.panels.decoding.player import DecodePlayer
from explorer.panels.decoding.step_timeline import TimelineStep
from explorer.panels.decoding.step_timeline_area import StepTimelineArea
from explorer.panels.decoding.text_list import TextsList
from explorer.panels.decoding.transport import Transport
from explorer.panels.selected_head import head_name
from explorer.session.decoding import strategy_of
from explorer.session.hover import Hover
from explorer.session.intents import SetDecoding, SetStrategy, SetTarget, SetText, SetTurns
from explorer.session.session import Session
from explorer.session.state import State
from explorer.widgets.card import Card
from explorer.widgets.page import bring, scrolling, wrapped
from explorer.widgets.segments import Segments
from explorer.widgets.token_text import byte_note, shortened
from models.protocol.chat import Chat
from models.protocol.decoding import DecodeRowsRequest, DecodeStepRequest, DecodeStepView
from models.protocol.request import Request
from models.protocol.values import CheckpointInfo

CANDIDATES, BRANCHES, ATTENTION, CACHE = range(4)


class DecodingPanel(Panel):
    api_version = 1
    name = "decoding"
    title = "Decode"
    hint = "Let the model write step by step: what each setting cuts, other branches, attention and the cache."

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return info.family != "vision"

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.player = DecodePlayer(session, self)
        self.transport = Transport()
        self.knobs = DecodeKnobs()
        self.status = wrapped()
        self.timeline_area = StepTimelineArea()
        self.timeline = self.timeline_area.timeline
        self.texts = TextsList()
        self.use = QPushButton("Use this text")
        self.use.setToolTip("Put what was written into the input, so that every panel shows it")
        self.again = QPushButton("Another sample")
        self.again.setToolTip("Write once more from the prompt with the next seed; what is here stays as branches")
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
        for widget in (self.knobs, self.status, self.timeline_area, self.texts, self.tabs):
            column.addWidget(widget)
        for index, each in enumerate(self.pages):
            each.setVisible(index == CANDIDATES)
            column.addWidget(each, 1)
        column.addStretch(0)
        self.card = Card(self.title)
        self.card.set_subtitle("one token a step")
        self.card.add_control(self.again)
        self.card.add_control(self.use)
        body = QWidget()  # what stops the player never scrolls away
        whole = QVBoxLayout(body)
        whole.setContentsMargins(0, 2, 0, 0)
        whole.setSpacing(6)
        whole.addWidget(self.transport)
        self._area = scrolling(page)
        whole.addWidget(self._area, 1)
        self._bring = QTimer(self)  # when it has been laid out
        self._bring.setSingleShot(True)
        self._bring.timeout.connect(lambda: bring(self._area, page, *self._wanted_in_sight()))
        self._awaited = False  # whether a step that a person asked for is to be brought into sight
        self._last_view: DecodeStepView | None = None
        self.card.set_content(body)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.card)

    def _connect(self) -> None:
        player = self.player
        player.changed.connect(self._show)
        for pressed in (self.transport.step, self.transport.play, self.transport.back, self.transport.restart):
            pressed.connect(self._await_step)
        self.timeline.step_selected.connect(self._await_step)
        self.transport.step.connect(lambda: player.step())
        self.transport.play.connect(player.play)
        self.transport.back.connect(player.back)
        self.transport.restart.connect(lambda: player.jump(0))
        self.transport.paced.connect(self._on_pace)
        self.timeline.step_selected.connect(player.jump)
        self.texts.text_picked.connect(player.pick)
        self.candidates.beam_picked.connect(player.pick)
        self.knobs.changed.connect(self._on_knobs)
        self.tabs.chosen.connect(self._show_page)
        self.candidates.stages.stage_chosen.connect(lambda: self._bring.start(0))
        self.candidates.candidate_chosen.connect(player.branch_off)
        self.branches.node_chosen.connect(player.go)
        self.branches.renamed.connect(player.rename)
        self.branches.deleted.connect(player.delete)
        self.use.clicked.connect(self._use_text)
        self.again.clicked.connect(self._sample_again)
        self._on_pace()

    # what it shows

    def wants(self, state: State) -> Request | None:
        lacking = self.player.lacking(state)
        if lacking is not None:
            return lacking
        request = self._rows_request(state) if self.tabs.current == ATTENTION else None
        rows = state.results.decoded_rows
        return None if rows is not None and replace(rows.request, ticket=0) == request else request

    def _rows_request(self, state: State) -> DecodeRowsRequest | None:
        """What asks for where the selected head looked in the shown text; None where there is none."""
        site, view = state.site, self.player.shown_view()
        if site is None or view is None:
            return None
        asked = view.request
        return DecodeRowsRequest(
            text=asked.text,
            target=asked.target,
            interventions=asked.interventions,
            ids=self.player.shown_ids(),
            site=site.ref,
            head=state.selection.head,
        )

    def render_state(self, state: State, old: State | None) -> None:
        self.player.take_up(state, old)
        self._render_knobs(state)
        self.player.receive(state, old)
        self._render(state)

    def _render_knobs(self, state: State) -> None:
        loaded, document = state.results.loaded, state.document
        strategy = strategy_of(document.decoding, loaded.info if loaded is not None else None, document.branches)
        self.knobs.show_decoding(document.decoding, strategy)
        self._take_knobs()

    def _take_knobs(self) -> None:
        """Let the player go by what the knobs say."""
        knobs = self.knobs
        self.player.set_knobs(knobs.settings, knobs.steps, knobs.samples, knobs.problem)

    def _render(self, state: State) -> None:
        search, beam, view = self.player.work.search, self.player.is_beam, self.player.shown_view()
        branches, at = state.document.branches, self.player.at
        if beam:
            count = len(search.views) if search is not None else 0
            steps = [TimelineStep(f"step {i + 1}", 0.0) for i in range(count)]
        else:
            steps = [
                TimelineStep(
                    shortened(node.label),
                    math.exp(node.log_probability),
                    f"Step {i + 1}: “{node.label}”{byte_note(node.label)}",
                )
                for i, node in enumerate(self.player.way())
            ]
        self.timeline_area.set_steps(steps, at)
        made_with = self.player.other_settings()
        self.texts.show_texts(self.player.side_by_side(), search.settings if beam and search else None, made_with)
        why_not = self.player.why_not()
        self.transport.show_state(
            self.player.playing, at > 0, not why_not and self.player.pending is None and not self.knobs.problem
        )
        self.status.setText(self._status(state, view, why_not))
        self.use.setEnabled(view is not None)
        self.again.setVisible(self.knobs.strategy == "sample")
        self.again.setText("Other samples" if self.player.count > 1 else "Another sample")
        self.again.setEnabled(self.player.pending is None and not self.player.silence())
        if beam:
            self.candidates.show_beams(search.shown if search is not None else (), self.player.shown_beam)
        else:
            self.candidates.show_step(view)
        if self.tabs.current == BRANCHES:
            self.branches.show_branches(branches)
        if self.tabs.current == ATTENTION:
            self._show_rows(state, view)
        if self.tabs.current == CACHE:
            self.cache.show_step(view)
        if view is not self._last_view:
            self._last_view = view
            if self._awaited and view is not None:
                self._bring.start(0)  # with the first step of many: who scrolls away then is left alone

    def _show_rows(self, state: State, view: DecodeStepView | None) -> None:
        rows = state.results.decoded_rows
        if state.site is None and state.ran is not None:
            self.attention.show_rows(None, "No head", "This model shows no attention weights.")
        elif view is None:
            self.attention.show_rows(None, head_name(state), "Press Step: a row for each token appears here.")
        elif rows is not None and replace(rows.request, ticket=0) == self._rows_request(state):
            beam = self.player.shown_beam if self.player.is_beam else None
            self.attention.show_rows(rows, head_name(state), "", beam)
        else:
            self.attention.map.show()  # its rows are under way

    def _status(self, state: State, view: DecodeStepView | None, why_not: str) -> str:
        silence = self.player.silence()
        if silence:
            return silence
        parts = [self.player.said] if self.player.said else []
        if view is not None:
            parts.append(step_words(view, state.document.branches))
            if not self.player.is_beam and self.player.work.is_astray(state.document.branches.path()):
                parts.append("Another version of the model wrote it: this one would not choose it here.")
        elif self.player.at:
            notice = state.notice
            if notice is None or notice.lane != DecodeStepRequest.lane:
                parts.append(f"Step {self.player.at} is computed again, to show how it was chosen.")
            elif not self.player.said:
                parts.append(notice.text)  # it could not be
        elif not self.player.said:
            parts.append(READY)
        if why_not and view is not None:
            parts.append(why_not)
        if view is not None and view.prevents_caching is not None:
            parts.append(reading_anew(view.prevents_caching))
        return " ".join(parts)

    # what a person does

    def _use_text(self) -> None:
        whole, loaded = self.player.shown_whole(), self.session.state.results.loaded
        if isinstance(whole, Chat):
            self.dispatch(SetTurns(whole.turns))
        elif loaded is not None:
            self.dispatch(SetTarget(whole) if loaded.info.family == "seq2seq" else SetText(whole))

    def _sample_again(self) -> None:
        seed = self.knobs.settings.seed + 1
        self.knobs.set_number("seed", str(seed))
        self.player.sample_again()

    def _await_step(self) -> None:
        self._awaited = True

    def _wanted_in_sight(self) -> tuple[QWidget, QWidget, int | None]:
        """The first and the last of what a person has just asked for, and how much of the last is enough."""
        awaited, self._awaited = self._awaited, False
        if self.knobs.problem:
            return self.knobs.remark, self.knobs.remark, None
        if awaited and self.tabs.current == CANDIDATES:
            return self.timeline_area, self.candidates, self.candidates.head
        return self.tabs, self.pages[self.tabs.current], None

    def _on_knobs(self) -> None:
        """A person has pressed a strategy or typed a number; what cannot be read yet is no part of the document."""
        self._awaited = False
        if self.knobs.problem and not self.player.problem:
            self._bring.start(0)  # to what is wrong
        self._take_knobs()
        said, decoding = self.session.state.document.decoding, self.knobs.decoding
        if (decoding.chosen, decoding.settings.strategy) != (said.chosen, said.settings.strategy):
            self.dispatch(SetStrategy(decoding.settings.strategy))
        if decoding != self.session.state.document.decoding:
            self.dispatch(SetDecoding(decoding))
        self._show()

    def _on_pace(self) -> None:
        self.player.pause_ms = self.transport.pause_ms

    def _show_page(self, index: int) -> None:
        for place, each in enumerate(self.pages):
            each.setVisible(place == index)
        self._show()
        self._bring.start(0)

    def _show(self) -> None:
        """Draw what the panel itself has changed, and ask for what that needs."""
        if self.isVisible() and self._rendered is not None:
            self._render(self.session.state)
            self._refresh()
