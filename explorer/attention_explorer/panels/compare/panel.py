"""Two columns, A and B: what is open beside another state, their maps, the difference, the heads that changed most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.compare.chooser import BChooser, Given
from attention_explorer.panels.compare.compare_sentences import change_name, largest, said, share
from attention_explorer.panels.compare.places import NO_PLACE, Place, cell_at_place, place_of_cell
from attention_explorer.panels.compare.two_runs_page import MATCHINGS, TwoRunsPage, base
from attention_explorer.panels.selected_head import predicting_position
from attention_explorer.session.comparing import as_b, name_of, typed_as_b, typed_text
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import CompareWith, SelectCell, SelectHead, SelectHeadOfB, Show, SwapStates
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import number_choice
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.page import PageOrInvitation, scrolling, wrapped
from attention_models.files.sample_pictures import samples, title_of_picture
from attention_models.protocol.request import Progress, Request
from attention_models.protocol.two_runs import OtherRun, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import SiteRef

_PATIENCE = 300  # ms: what is done sooner is not announced


class WorkLine(QWidget):
    """Hidden while nothing is done, and for the first moments of what is."""

    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.doing, self.bar = wrapped(role="dim"), QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Do not run B; A stays as it is")
        self.cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.doing, 1)
        row.addWidget(self.bar, 1)
        row.addWidget(self.cancel)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(_PATIENCE)
        self._patience.timeout.connect(self.show)
        self.hide()

    def show_work(self, busy: bool, progress: Progress | None) -> None:
        """Say what is under way; `progress` where the engine has said how far it is."""
        self.doing.setText(f"{progress.label} …" if progress is not None else "B is being run …")
        fraction = None if progress is None else progress.fraction
        self.bar.setRange(0, 0 if fraction is None else 1000)
        if fraction is not None:
            self.bar.setValue(round(1000 * fraction))
        if not busy:
            self._patience.stop()
            self.hide()
        elif self.isHidden() and not self._patience.isActive():
            self._patience.start()


# What the (i) of Compare says, with the numbers of the two states. Pure.


_WHAT = "A is what is open, B another state that is run beside it: a text, a checkpoint, a change, a branch, a head."
_BEFORE = (
    "Their maps stand side by side over the same tokens, and their difference A − B in two colours: red where A "
    "attends more, blue where B does, pale where both attend alike."
)
_TRY_FIRST = "Try: press “Use as B”, then put another name in the text above."
_TRY = "Try: click the first head of the list: it is shown in both, and in Head."


def about(state: State, view: TwoRunsView | None) -> About:
    if state.document.compared is None or view is None or state.ran is None or view.request.run != state.ran.run:
        return About((_WHAT, _BEFORE), _TRY_FIRST if state.document.compared is None else _TRY)
    a, b = (f"“{said(side)}” {share(side)}".strip() for side in (view.a, view.b))
    sentences = [_WHAT, _BEFORE, f"A says {a}, B {b}."]
    number, where = largest(view)
    if where:
        place = where.removeprefix("largest: ")
        sentences.append(f"The largest difference is {number}, {place}." if number != "0" else "No weight differs.")
    changes = view.changed_most
    if changes:
        most = changes[0]
        sentences.append(f"The head that changed most is {change_name(most, view)}, by {value_text(most.change)}.")
    return About.of(tuple(sentences), _TRY)


INVITATION = (
    "Compare this state (A) with another (B): another text, another checkpoint, the model before a change, another "
    "branch, another head.\n\nPress the button and change A; or type a text for B above."
)
_KEEP = "Use as B · Ctrl+B"


class ComparePanel(Panel):
    api_version = 1
    name = "compare"
    title = "Compare"
    hint = "What is open beside another state: two texts, two checkpoints, before and after a change, two heads."
    reads = ("document", "selection", "site", "continuation", "notice", TwoRunsView)

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._failed: tuple[OtherRun, str] | None = None  # a B that could not be had, and why
        self._called_off: OtherRun | None = None
        self._only_b: tuple[Place, State] | None = None  # a place chosen here for which A has no token
        self.chooser = BChooser()
        self.chooser.given.connect(self._on_given)
        self.chooser.typing.connect(self._on_typing)
        self.chooser.kept.connect(self._keep)
        self.chooser.swapped.connect(lambda: self._try(SwapStates()))
        self.chooser.let_go.connect(self._let_go)
        self.work = WorkLine()
        self.work.cancelled.connect(self._on_cancelled)
        self.page = TwoRunsPage()
        self.page.place_selected.connect(self._on_place)
        self.page.place_hovered.connect(self._on_hovered)
        self.page.part_changed.connect(self._on_part)
        self.page.head_chosen.connect(self._on_ranked)
        self.page.head_of_b_chosen.connect(self._on_head_of_b)
        self.page.matching_chosen.connect(self._ask_again)
        area = scrolling(self.page)
        self.pages = PageOrInvitation(area, _KEEP, scrolls=False)
        self.pages.asked.connect(self._on_invitation)
        scrolled = area.verticalScrollBar()
        scrolled.rangeChanged.connect(lambda _low, high: self.page.linked.set_wheel_zooms(high == 0))
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for part, takes in ((self.chooser, 0), (self.work, 0), (self.pages, 1)):
            column.addWidget(part, takes)
        self.card = Card(self.title)
        self.card.add_control(self.page.shown)
        self.card.set_content(body)
        self.fill(self.card)
        self.keep("maps", self.page.shown)
        self.keep("matching", number_choice(lambda: self.page.wished, self._wish, range(len(MATCHINGS))))

    def first_focus(self) -> QWidget | None:
        """The first map that is seen; the field of B's text while there is none."""
        maps = self.page.linked.maps if self.pages.currentIndex() else ()
        return next((one for one in maps if one.isVisibleTo(self)), self.chooser.text)

    def is_behind(self, state: State) -> bool:
        """Also while another text for B is being typed: what is shown is not of that one."""
        return super().is_behind(state) or (state.document.compared is not None and self.chooser.is_typing)

    def figures(self) -> Iterable[QWidget]:
        return (self.pages,)

    # ----------------------------------------------------------------- what it asks for

    def wants(self, state: State) -> Request | None:
        wanted, view = self._request(state), state.results.of(TwoRunsView)
        if wanted is None or (self._failed is not None and self._failed[0] == wanted.other):
            return None
        is_off, is_there = self._called_off == wanted.other, view is not None and view.request.other == wanted.other
        if is_off and not is_there:
            return None
        if view is None or base(view.request) != wanted:
            return wanted
        missing = self.page.linked.missing()[:1]
        if missing and view.maps is not None and view.maps.tile is not None:
            return replace(wanted, tile=missing[0], have=view.done)
        return None if view.done >= 1 or is_off else replace(wanted, tile=view.request.tile, have=view.done)

    def _request(self, state: State) -> TwoRunsRequest | None:
        """What is compared now; None without B, or before A has run."""
        b, ran, site = state.document.compared, state.ran, state.site
        if b is None or ran is None:
            return None
        other = OtherRun(inputs=b.inputs, reference=b.document.checkpoint)
        own = (b.document.selection.site, b.document.selection.head) if b.own_head else _only_head(state, other)
        return TwoRunsRequest(
            run=ran.run,
            site=None if site is None else site.ref,
            head=state.selection.head,
            other=other,
            other_site=None if own is None else own[0],
            other_head=None if own is None else own[1],
            matching=MATCHINGS[self.page.wished][0],
            position=None if ran.masks or ran.seen is not None else predicting_position(state, ran),
        )

    def prints(self, state: State) -> Request | None:
        wanted, view = self._request(state), state.results.of(TwoRunsView)
        return view.request if view is not None and base(view.request) == wanted else None

    # ----------------------------------------------------------------- what it shows

    def about(self, state: State) -> About:
        return about(state, state.results.of(TwoRunsView))

    def render_state(self, state: State, old: State | None) -> None:
        wanted, b, view = self._request(state), state.document.compared, state.results.of(TwoRunsView)
        self._note_failure(state, wanted, old)
        self._render_chooser(state)
        self._show_work()
        self.card.set_subtitle("" if b is None else f"with {name_of(b, state)}")
        if b is None:
            self._invite(INVITATION, _KEEP, can_open=state.ran is not None)
        elif wanted is None:
            self._invite("A has not run yet.", "", can_open=False)
        elif self._failed is not None and self._failed[0] == wanted.other:
            self._invite(self._failed[1], "Try again")
        elif view is None or view.request.other != wanted.other:
            is_off = wanted.other == self._called_off
            self._invite("B was not run." if is_off else "B is being run …", "Run B", can_open=is_off)
        else:
            self.pages.show_page()
            self.page.show_view(view, state.document.view, b.own_head)
            self.page.set_place(self._place(state, view))

    def render_live(self, live: Live, old: Live | None) -> None:
        self._show_work()

    def _show_work(self) -> None:
        live, lane = self.session.live, TwoRunsRequest.lane
        progress = next((one for one in live.progress if one.request.lane == lane), None)
        self.work.show_work(lane in live.busy and self.session.state.document.compared is not None, progress)

    def _invite(self, reason: str, button: str, *, can_open: bool = True) -> None:
        self.pages.button.setText(button)
        self.pages.invite(reason, can_open=can_open)

    def _render_chooser(self, state: State) -> None:
        b, loaded = state.document.compared or as_b(state), state.results.loaded
        pictures: list[tuple[str, str]] = []
        if loaded is not None and loaded.info.family == "vision":
            pictures = [(one.reference, one.title) for one in samples(loaded.info.channels)]
            known = {reference for reference, _ in pictures}
            own = dict.fromkeys((b.document.picture, state.document.picture))
            pictures += [(one, title_of_picture(one)) for one in own if one and one not in known]
        given = Given(typed_text(b.document), b.document.picture, b.document.checkpoint)
        others = (state.document.checkpoint, b.document.checkpoint)
        self.chooser.show_given(given, others, pictures, exists=state.document.compared is not None)

    def _place(self, state: State, view: TwoRunsView) -> Place:
        """Where the selected cell is; a place of B alone as long as nothing else is selected."""
        if self._only_b is not None and self._only_b[1].selection == state.selection:
            return self._only_b[0]
        self._only_b = None
        return place_of_cell(view, state.selection.query, state.selection.key)

    def render_hover(self, pointed: Pointed) -> None:
        self.page.set_hover(place_of_cell(self._view(), pointed.query, pointed.key))

    def _view(self) -> TwoRunsView | None:
        state = self.session.state
        return state.results.of(TwoRunsView) if state.document.compared is not None else None

    # ----------------------------------------------------------------- what runs

    def _note_failure(self, state: State, wanted: TwoRunsRequest | None, old: State | None) -> None:
        """Keep why B could not be had, and say it here: a sentence at the top goes when the person goes on."""
        notice, other = state.notice, None if wanted is None else wanted.other
        if notice is not None and notice.lane == TwoRunsRequest.lane and other is not None:
            self._failed = (other, notice.text)
            self.dispatch(Show(None))
        elif self._failed is not None and (self._failed[0] != other or _has_opened(old, state)):
            self._failed = None  # beside another model it may be had
        if self._called_off != other:
            self._called_off = None

    def _on_cancelled(self) -> None:
        wanted = self._request(self.session.state)
        self._called_off = None if wanted is None else wanted.other
        self.session.call_off(TwoRunsRequest.lane)
        self._draw_and_ask()

    def _ask_again(self) -> None:
        """For what could not be had or was called off too."""
        self._failed = self._called_off = self._asked = None
        self._draw_and_ask()

    def _draw_and_ask(self) -> None:
        """What is chosen here is no part of the state."""
        self._rendered = None
        self.attempt(self._refresh)

    def _on_part(self) -> None:
        if self.page.linked.is_tiled and self.isVisible():
            self.attempt(self._refresh)  # the view may lack tiles now

    # ----------------------------------------------------------------- what a person does

    def _try(self, intent: CompareWith | SwapStates | SelectHeadOfB) -> None:
        """Dispatch; what is refused is said."""
        try:
            self.dispatch(intent)
        except ValueError as error:
            self.dispatch(Show(Notice("warning", _sentence(str(error)))))
            self._draw_and_ask()

    def _wish(self, matching: int) -> None:
        self.page.wish(matching)
        self._ask_again()

    def _on_invitation(self) -> None:
        if self.session.state.document.compared is None:
            self._keep()
            return
        self._ask_again()

    def _keep(self) -> None:
        self._try(CompareWith(as_b(self.session.state)))

    def _let_go(self) -> None:
        self.session.call_off(TwoRunsRequest.lane)
        self.dispatch(CompareWith(None))

    def _on_typing(self) -> None:
        self.page.set_typing(self.chooser.is_typing)
        if self.isVisible():
            self.attempt(self._refresh)

    def _on_given(self, given: Given) -> None:
        state = self.session.state
        loaded = state.results.loaded
        picture = given.picture if loaded is not None and loaded.info.family == "vision" else None
        self._try(CompareWith(typed_as_b(state, given.text, given.checkpoint, picture)))

    def _on_head_of_b(self, chosen: tuple[SiteRef, int] | None) -> None:
        self._try(SelectHeadOfB(None) if chosen is None else SelectHeadOfB(*chosen))

    def _on_ranked(self, row: int, head: int) -> None:
        view, b = self._view(), self.session.state.document.compared
        if view is None or b is None:
            return
        self.dispatch(SelectHead(view.a.sites[row].ref, head))
        if b.own_head:
            self.dispatch(SelectHeadOfB(None))

    def _on_place(self, query: int, key: int) -> None:
        view, state = self._view(), self.session.state
        if view is None:
            return
        cell = cell_at_place(view, (query, key), state.selection.query, state.selection.key)
        self._only_b = ((query, key), state) if cell is None else None
        self.page.strip.set_current(key)
        if cell is not None:
            self.dispatch(SelectCell(*cell))

    def _on_hovered(self, query: int, key: int) -> None:
        view, place = self._view(), (query, key)
        cell = None if view is None or place == NO_PLACE else cell_at_place(view, place, -1, -1)
        self.hover.point(NOTHING if cell is None else Pointed(query=cell[0], key=cell[1]))
        self.page.set_hover(place)  # also where A has no token, which no other panel is told of


def _has_opened(old: State | None, new: State) -> bool:
    """Whether A is another model now."""
    return old is not None and old.results.loaded is not new.results.loaded


def _only_head(state: State, other: OtherRun) -> tuple[SiteRef, int] | None:
    """The head of B where it has one of the kind that is selected: it is shown beside any, matched or not."""
    view, site = state.results.of(TwoRunsView), state.site
    if view is None or site is None or view.request.other != other or view.same_checkpoint:
        return None
    heads = [(one.ref, head) for one in view.b.sites if one.stack == site.stack for head in range(one.heads)]
    return heads[0] if len(heads) == 1 else None


def _sentence(clause: str) -> str:
    whole = clause[:1].upper() + clause[1:]
    return whole if whole.endswith(".") else f"{whole}."
