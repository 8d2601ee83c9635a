"""Writing step by step: back, sideways into other branches, and what the settings do on the way."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.decoding.decode_sentences import ANEW, READY, step_words, uncached_because
from attention_explorer.panels.decoding.player import DecodePlayer
from attention_explorer.panels.decoding.player_view import ATTENTION, BRANCHES, CACHE, PlayerView
from attention_explorer.panels.decoding.situation import Situation, count
from attention_explorer.panels.selected_head import head_name
from attention_explorer.session.comparing import branch_as_b
from attention_explorer.session.hidden import WEIGHTS
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import (
    AskSamples,
    AskStep,
    DeleteBranch,
    GoToNode,
    NameBranch,
    SetDecoding,
    SetStrategy,
    SetView,
    Show,
    ShowBeam,
    UseWritten,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.session.writing import strategy_of
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.number_text import counted, percent_text
from attention_explorer.widgets.token_text import shortened
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo

_WHAT = (
    "The model writes one token a step: it gives every token a probability, the settings cut and reshape "
    "these, and one is taken."
)
_BEFORE = (
    "Nothing is written yet. Greedy takes the likeliest each time, Sample draws by the probabilities, Beam "
    "follows several texts at once."
)
_FILLS = (
    "The model fills one mask a step, the one that it is most certain of: it gives every token a probability there, "
    "the settings cut and reshape these, and one is taken."
)
_BEFORE_FILLING = (
    "Nothing is filled yet. Greedy takes the likeliest each time, Sample draws by the probabilities; Beam is for "
    "models that write from left to right."
)
_TRY = "Try: press Step a few times, then click another candidate than the one that was taken: the text branches there."


def about(step: DecodeStepView | None, silence: str, written: int, said: str, fills: bool = False) -> About:
    """`silence` says why the model writes nothing.

    `written` counts the steps of the text in view, and `said` is the line about the last of them. A masked model
    `fills` masks.
    """
    what = _FILLS if fills else _WHAT
    if silence:
        return About((silence, what), "Try: open a model that writes, as story-gpt or en-es, and press Step.")
    if step is None:
        return About((what, _BEFORE_FILLING if fills else _BEFORE), _TRY)
    return About.of(
        (
            what,
            f"{counted(written, 'step')} of this text {'is' if written == 1 else 'are'} in view. {said}",
            _candidates(step),
            _cut(step),
        ),
        _TRY,
    )


def _candidates(step: DecodeStepView) -> str:
    if not step.candidates:
        count = sum(beam.kept for beam in step.beams)
        return (
            f"Of {counted(len(step.beams), 'continuation')} that this step considered the search goes on from {count}."
            if step.beams
            else ""
        )
    first = max(step.candidates, key=lambda candidate: candidate.probability)
    listed = percent_text(min(1.0, sum(candidate.probability for candidate in step.candidates)))
    return (
        f"The likeliest by the model was “{shortened(first.label)}” with {percent_text(first.probability)}; the "
        f"{len(step.candidates)} candidates that are listed have {listed} together."
    )


def _cut(step: DecodeStepView) -> str:
    cut = sum(stage.tokens for stage in step.stages)
    if not cut:
        return ""
    return (
        f"The filters cut {counted(cut, 'token')}, which the model gave "
        f"{percent_text(sum(stage.probability for stage in step.stages))}."
    )


class DecodingPanel(Panel):
    api_version = 1
    name = "decoding"
    title = "Decode"
    keeps_answers = True
    hint = "Let the model write step by step: what each setting cuts, other branches, attention and the cache."
    shows = WEIGHTS | {"next", "gradient", "width", "size", "cache"}
    reads = (
        "document.origin",
        "document.branches",
        "document.decoding",
        "document.view",
        "selection",
        "site",
        "up_to_date",
        "caught_up",
        "inputs",
        "refused",
        "pending_step",
        "passage",
        "beam",
        "notice",
        DecodeStepView,
        DecodeSamplesView,
        DecodeRowsView,
    )

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return info.family != "vision"

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._situation: tuple[State, Situation] | None = None
        self.player = DecodePlayer(self._now, SessionActions(session), self)
        self.view = PlayerView()
        self.card = Card(self.title)
        self.card.set_subtitle("one token a step")
        self.card.add_control(self.view.follow)
        self.card.add_control(self.view.use)
        self.card.set_content(self.view)
        self.keep("page", self.view.tabs)
        self.fill(self.card)
        self._connect()

    def _connect(self) -> None:
        player, view = self.player, self.view
        player.changed.connect(self._show)
        view.transport.step.connect(lambda: player.step())
        view.transport.play.connect(player.play)
        view.transport.back.connect(player.back)
        view.transport.restart.connect(lambda: player.jump(0))
        view.transport.paced.connect(self._on_pace)
        view.follow.clicked.connect(lambda on: self.dispatch(SetView("follow", on)))
        view.timeline.step_selected.connect(player.jump)
        view.texts.text_picked.connect(player.pick)
        view.candidates.beam_picked.connect(player.pick)
        view.candidates.candidate_chosen.connect(player.branch_off)
        view.branches.node_chosen.connect(player.go)
        view.branches.renamed.connect(player.rename)
        view.branches.deleted.connect(player.delete)
        view.branches.compared.connect(lambda node: self.compare_with(branch_as_b, node))
        view.knobs.changed.connect(self._on_knobs)
        view.page_chosen.connect(self._show)
        view.use.clicked.connect(self._use_text)
        view.again.clicked.connect(self._sample_again)
        self._on_pace()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self.player.playing and not event.spontaneous():
            self.player.play(False)  # nobody sees it; it would go on by itself when one comes back

    def _now(self) -> Situation:
        """What the player goes by now: asked for many times a step, and made once a state."""
        state = self.session.state
        if self._situation is None or self._situation[0] is not state:
            self._situation = state, situation(state)
        return self._situation[1]

    # what it shows

    def figures(self) -> Iterable[QWidget]:
        return ()  # of what was written after the text in the input

    def wants(self, state: State) -> Request | None:
        lacking = self.player.lacking(self._now())
        if lacking is not None:
            return lacking
        request = self._rows_request(state) if self.view.page == ATTENTION else None
        rows = state.results.of(DecodeRowsView)
        return None if rows is not None and rows.request == request else request

    def prints(self, state: State) -> Request | None:
        step = self.player.shown_view()
        return step.request if step is not None and step.chosen is not None else None

    def _rows_request(self, state: State) -> DecodeRowsRequest | None:
        """What asks for where the selected head looked in the text in view; None where there is none."""
        site, step = state.site, self.player.shown_view()
        if site is None or step is None:
            return None
        return DecodeRowsRequest(
            inputs=step.request.inputs,
            ids=self.player.shown_ids(),
            site=site.ref,
            head=state.selection.head,
        )

    def render_state(self, state: State, old: State | None) -> None:
        now, before = situation(state), None if old is None else situation(old)
        self.player.take_up(now, before)
        self._render_knobs(state)
        self.player.receive(now, before)
        self._render(state)

    def about(self, state: State) -> About:
        step = self.player.shown_view()
        said = step_words(step, state.document.branches, state.document.view.unit) if step is not None else ""
        loaded = state.results.loaded
        fills = loaded is not None and loaded.info.family == "masked"
        return about(step, self.player.silence(), self.player.at, said, fills)

    def _render_knobs(self, state: State) -> None:
        loaded, document = state.results.loaded, state.document
        strategy = strategy_of(document.decoding, loaded.info if loaded is not None else None, document.branches)
        self.view.knobs.show_decoding(document.decoding, strategy)
        self._take_knobs()

    def _take_knobs(self) -> None:
        """Let the player go by what the knobs say."""
        knobs = self.view.knobs
        self.player.set_knobs(knobs.settings, knobs.steps, knobs.samples, knobs.problem)

    def _render(self, state: State) -> None:
        self._follow_beam(state)
        player, view, unit = self.player, self.view, state.document.view.unit
        view.follow.setChecked(state.document.view.follow)
        search, step, at = player.work.search, player.shown_view(), player.at
        silent = bool(player.silence())
        view.candidates.set_silent(silent)
        if player.is_beam:
            view.show_search(len(search.views) if search is not None else 0, at)
            view.candidates.show_beams(search.shown if search is not None else (), player.shown_beam, unit)
        else:
            view.show_path(player.tokens(), at)
            view.candidates.show_step(step)
        search_settings = search.settings if player.is_beam and search else None
        view.texts.show_texts(player.side_by_side(), search_settings, unit, player.other_settings())
        why_not = player.why_not()
        can_step = not why_not and player.pending is None and not view.knobs.problem
        view.transport.show_state(player.playing, at > 0, can_step, player.steps)
        view.status.setText(self._status(state, step, why_not))
        view.use.setEnabled(step is not None)
        view.again.setVisible(view.knobs.strategy == "sample")
        view.again.setText("Other samples" if player.count > 1 else "Another sample")
        view.again.setEnabled(player.pending is None and not player.silence())
        if view.page == BRANCHES:
            view.branches.show_branches(state.document.branches, unit)
        if view.page == ATTENTION:
            self._show_rows(state, step)
        if view.page == CACHE:
            view.cache.show_step(step, silent)
        view.settle_on(step)

    def _follow_beam(self, state: State) -> None:
        """Say which beam is in view: a search is in no tree, where the session would find it."""
        ids = self.player.shown_ids() if self.player.is_beam else ()
        if ids != state.beam:
            self.dispatch(ShowBeam(ids))

    def _show_rows(self, state: State, step: DecodeStepView | None) -> None:
        rows, page = state.results.of(DecodeRowsView), self.view.attention
        if state.site is None and state.ran is not None:
            page.show_rows(None, "No head", "This model shows no attention weights.")
        elif step is None:
            empty = "" if self.player.silence() else "Press Step: a row for each token appears here."
            page.show_rows(None, head_name(state), empty)
        elif rows is not None and rows.request == self._rows_request(state):
            beam = self.player.shown_beam if self.player.is_beam else None
            page.show_rows(rows, head_name(state), "", beam)
        else:
            page.map.show()  # its rows are under way

    def _status(self, state: State, step: DecodeStepView | None, why_not: str) -> str:
        player, branches = self.player, state.document.branches
        silence = player.silence()
        if silence:
            return silence
        parts = [player.said] if player.said else []
        if step is not None:
            parts.append(step_words(step, branches, state.document.view.unit))
            if not player.is_beam and player.work.is_astray(branches.path()):
                parts.append("Another version of the model wrote it: this one would not choose it here.")
        elif player.at:
            problem = self._now().problem
            if not problem:
                parts.append(f"Step {player.at} is computed again, to show how it was chosen.")
            elif not player.said:
                parts.append(problem)  # it could not be
        elif not player.said:
            parts.append(READY.format(count(player.steps, "token")))
        if why_not and step is not None:
            parts.append(why_not)
        elif player.begins_anew:
            parts.append(ANEW)
        if step is not None and step.prevents_caching is not None:
            parts.append(uncached_because(step.prevents_caching))
        return " ".join(parts)

    def _show(self) -> None:
        """Draw what the panel itself has changed, and ask for what that needs."""
        if self.isVisible() and self._rendered is not None:
            self._render(self.session.state)
            self._refresh()

    # what a person does

    def _use_text(self) -> None:
        step, ids = self.player.shown_view(), self._ids_written()
        self.dispatch(UseWritten(self.player.shown_whole(), ids))
        if step is not None and step.misread:
            self.dispatch(Show(Notice("warning", f"The text {step.misread}: what is shown is of the tokens it reads.")))

    def _ids_written(self) -> tuple[int, ...]:
        """All tokens of the text in view, the prompt's too, as they were written; empty where masks are filled."""
        state, view, beam = self.session.state, self.player.shown_view(), self.player.shown_beam
        loaded, ran = state.results.loaded, state.ran
        if loaded is None or ran is None or view is None or not state.up_to_date or loaded.info.family == "masked":
            return ()
        written = frozenset(ran.continued)
        given = tuple(t.id for i, t in enumerate(ran.tokens) if not t.padding and i not in written)
        if loaded.info.family == "seq2seq" and ran.inputs.target is None:
            given = given[:1]  # the rest it wrote itself
        is_ended = beam.finished if self.player.is_beam and beam is not None else view.ending == "model"
        ids = self.player.shown_ids()
        return (*given, *(ids[:-1] if is_ended else ids))

    def _sample_again(self) -> None:
        knobs = self.view.knobs
        knobs.set_number("seed", str(knobs.settings.seed + 1))
        self.player.sample_again()

    def _on_knobs(self) -> None:
        """A person has pressed a strategy or typed a number; what cannot be read yet is no part of the document."""
        knobs = self.view.knobs
        self.view.settings_changed(is_newly_wrong=bool(knobs.problem and not self.player.problem))
        self._take_knobs()
        said, decoding = self.session.state.document.decoding, knobs.decoding
        if (decoding.chosen, decoding.settings.strategy) != (said.chosen, said.settings.strategy):
            self.dispatch(SetStrategy(decoding.settings.strategy))
        if decoding != self.session.state.document.decoding:
            self.dispatch(SetDecoding(decoding))
        self._show()

    def _on_pace(self) -> None:
        self.player.pause_ms = self.view.transport.pause_ms


class SessionActions:
    """The player's `Actions`, as intents."""

    def __init__(self, session: Session) -> None:
        self._dispatch = session.dispatch

    def ask_step(self, request: DecodeStepRequest, parent: int, goes_on: bool) -> None:
        self._dispatch(AskStep(request, parent, goes_on))

    def ask_samples(self, request: DecodeSamplesRequest, parents: tuple[int, ...], shown: int, goes_on: bool) -> None:
        self._dispatch(AskSamples(request, parents, shown, goes_on))

    def go_to(self, node: int) -> None:
        self._dispatch(GoToNode(node))

    def name(self, node: int, name: str) -> None:
        self._dispatch(NameBranch(node, name))

    def delete(self, node: int) -> None:
        self._dispatch(DeleteBranch(node))


def situation(state: State) -> Situation:
    """What of `state` the player goes by."""
    document, notice, pending = state.document, state.notice, state.pending_step
    return Situation(
        loaded=state.results.loaded,
        origin=document.origin,
        branches=document.branches,
        site=state.site.ref if state.site is not None else None,
        head=state.selection.head,
        up_to_date=state.up_to_date,
        caught_up=state.caught_up or state.inputs == state.refused,
        answer=state.results.decoded,
        pending=pending.request if pending is not None else None,
        passage=state.passage,
        problem=notice.text if notice is not None and notice.lane == DecodeStepRequest.lane else "",
    )
