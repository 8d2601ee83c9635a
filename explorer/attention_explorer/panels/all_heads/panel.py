"""All heads of the model at once, as thumbnails: layers down, heads across."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

import numpy as np
from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.all_heads.atlas import HeadAtlas
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.selected_head import NO_HEADS, padding_of, site_words
from attention_explorer.paths import resource
from attention_explorer.session.corpus import probe_of, roles_view
from attention_explorer.session.hidden import WEIGHTS as OF_WEIGHTS
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import AskHeads, ChooseProbe, ColourByRole, SelectHead, SetAboveEven, SetBadges
from attention_explorer.session.session import Session
from attention_explorer.session.state import HeadsAsked, State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.file_button import FileButton
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_text import counted, value_text
from attention_explorer.widgets.padding_overlay import shares
from attention_explorer.widgets.ranking import Ranking
from attention_explorer.widgets.scroll_areas import scroll_to
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import apart, isolated
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.files.text_stream import CONLLU, SUFFIXES
from attention_models.files.toml_files import decode_toml
from attention_models.protocol.atlas import THUMBNAIL, AtlasRequest, AtlasView
from attention_models.protocol.request import Request
from attention_models.protocol.roles import (
    MEASURES,
    PATTERNS,
    ROLE_NAMES,
    ROLES,
    HeadQuestion,
    Role,
    RoleRequest,
    RolesRequest,
    RolesView,
    WhichHeadsRequest,
    WhichHeadsView,
    plain_roles,
)
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo, Site, SiteRef

# What the atlas can be coloured by: the choices, and what is said of each. Pure.


WEIGHTS = "weights"
ROLE = "role:"


@dataclass(frozen=True)
class Scores:
    """What the heads are coloured by."""

    values: np.ndarray  # (sites, heads) float64
    even: np.ndarray  # (sites,)
    title: str
    why: tuple[str, ...]  # of each site, why it has none
    page: str = ""
    signed: bool = False


def choices() -> list[tuple[str, str]]:
    """(what is chosen, what the list calls it); of a heading nothing is chosen."""
    listed = [(WEIGHTS, "Weights"), ("", "On this text: attends to")]
    listed += [(role.name, role.title) for role in PATTERNS]
    listed += [("", "Over many texts: attends to")]
    listed += [(f"{ROLE}{role.name}", role.title) for role in PATTERNS]
    listed += [("", "Over many texts")]
    listed += [(f"{ROLE}{role.name}", role.title) for role in MEASURES]
    listed += [("", "Over many texts: by grammar")]
    listed += [(f"{ROLE}{role.name}", role.title) for role in ROLES if role.kind == "relation"]
    return listed


def title_of(question: HeadQuestion, query: str, key: str) -> str:
    """What every head is asked, as a clause: "attends to the token before"."""
    if question.is_pattern:
        return f"attends to {ROLE_NAMES[question.kind].title}"
    return {
        "cell": f"from “{query}” to “{key}”",
        "row": f"attends from “{query}” as head {question.site.layer if question.site else 0}.{question.head} does",
        "column": f"attends to “{key}”",
        "painted": "attends to the painted cells",
    }[question.kind]


def clause_of(role: Role) -> str:
    """What a head does that has this role: "attends to the token before"."""
    return {
        "pattern": f"attends to {role.title}",
        "measure": role.title,
        "relation": f"attends by grammar, {role.title}",
    }[role.kind]


def scores_of_role(found: RolesView, role: Role, sites: Sequence[Site]) -> Scores:
    """What was found of a role over many texts, in the order of a run's sites."""
    place = found.roles.index(role.name)
    order = [found.sites.index(site.ref) if site.ref in found.sites else -1 for site in sites]
    values = np.array([found.scores[place, i] if i >= 0 else np.full(found.scores.shape[2], np.nan) for i in order])
    even = np.array([found.even[place, i] if i >= 0 else np.nan for i in order])
    said = {stack: sentence for name, stack, sentence in found.why if name == role.name}
    title = f"{clause_of(role)}, over {found.texts:,} texts of {probe_name(found.request.probe)}"
    why = tuple(said.get(site.stack, "") for site in sites)
    return Scores(values, even, title, why, _left_out(found) + page_of(role.name), role.name == "ov-copying")


def probe_name(path: str) -> str:
    """What the texts are called that roles were found on: "ours" for those that come along, which have no path."""
    return apart(PurePath(path).name) if path else "ours"


def _left_out(found: RolesView) -> str:
    """What was left out of the texts, and why."""
    if not found.left_out:
        return ""
    count = len(found.left_out)
    many = f"{count:,} texts are left out. " if count > 1 else ""
    return f"{many}{found.left_out[0]}\n\n"


def explained(role: Role, probe: str) -> str:
    """What hovering a badge says: the role, what is measured of it, and on which file of texts, if any."""
    over = f", over texts of {probe_name(probe)}" if probe else ""
    return f"“{role.badge}”: {clause_of(role)}{over}.\n{_page(role.name)['says']}\nDouble-click for its page."


@lru_cache(maxsize=64)
def _page(role: str) -> Mapping[str, str]:
    name = "relation" if ROLE_NAMES[role].kind == "relation" else role
    return decode_toml(resource(f"roles/{name}.toml").read_text(encoding="utf-8"))


def page_of(role: str) -> str:
    """The page of a role: what it says, its formula and source, and what it does not show."""
    page = _page(role)
    return (
        f"{page['says']}\n\nFormula: {page['formula']}\n\nSource: {page['source']}\n\n"
        f"What it does not show: {page['limits']}"
    )


@lru_cache(maxsize=2)  # asked for again and again while the (i) is open
def badges_of(view: RolesView) -> Mapping[tuple[SiteRef, int], Role]:
    """The role of each head that plainly has one."""
    return plain_roles(view)


_WHAT = (
    "Every attention head of the model as a small picture: rows are tokens that look, columns those that are looked at."
)
_BEFORE = "When the model has run there is one a head: layers down, heads across, all in one range of colours."
_READ = (
    "A diagonal is a head that looks at a token's own place, a line beside it at a neighbour, a bright first "
    "column at the first token."
)
_READ_ACROSS = (
    "A bright diagonal is a head that goes along source and target in step, a bright column one that looks at the same "
    "token of the source from everywhere."
)
_TRY = (
    "Try: find a head with a bright cell off the diagonal and off the first column, and click it: Head shows it large."
)


_ONE = "Try: click the picture, and Head shows it large."


def about(state: State, stack: str, badges: Iterable[Role] = ()) -> About:
    """`stack` is the one that is shown, `badges` the roles that badges name."""
    ran, view = state.ran, state.results.of(AtlasView)
    if ran is not None and not ran.sites:
        return About((NO_HEADS, _WHAT))
    if ran is None or view is None or view.request.run != ran.run:
        return About((_WHAT, _BEFORE, _READ), _TRY)
    read = _READ_ACROSS if stack == "cross" else _READ
    many = sum(site.heads for site in ran.sites if site.stack == stack) > 1
    return About.of(
        (
            _WHAT,
            _counted(ran, stack),
            _largest(state, ran, view, stack),
            read if many else "",
            _named(badges, probe_name(probe_of(state))),
        ),
        _TRY if many else _ONE,
    )


def _named(badges: Iterable[Role], texts: str) -> str:
    """What the badges that are shown say, each once."""
    roles = sorted(set(badges), key=lambda role: role.badge)
    if not roles:
        return ""
    each = "; ".join(f"“{role.badge}” {clause_of(role)}" for role in roles)
    return (
        f"A badge says what a head plainly does over many texts, {texts}, not on this one alone: {each}. "
        "Double-click one for its page."
    )


def _counted(ran: Ran, stack: str) -> str:
    layers = [site.heads for site in ran.sites if site.stack == stack]
    several = f" ({stack})" if len({site.stack for site in ran.sites}) > 1 else ""
    heads = str(layers[0]) if layers and len(set(layers)) == 1 else f"up to {max(layers, default=0)}"
    return (
        f"{counted(len(layers), 'layer')}{several} down, {heads} across: {counted(sum(layers), 'head')}, each "
        "with one weight for every two tokens."
    )


def _largest(state: State, ran: Ran, view: AtlasView, stack: str) -> str:
    """The largest weight of all, where no square of a picture stands for the mean of many.

    A row with one visible key has 1 there whatever the head does: it is left out, and that is said.
    """
    places = tuple(i for i, site in enumerate(ran.sites) if site.stack == stack)
    if view.request.pooling == "mean" and view.cell > 1:
        return ""
    peaks, leaves_out = _peaks(view, places)
    if not peaks.any():
        return ""
    row, head = divmod(int(peaks.argmax()), peaks.shape[1])
    so_far = "" if view.done == 1 else " so far"
    among = "Among rows with more than one visible key, the" if leaves_out else "The"
    said = (
        f"{among} largest weight{so_far} is {value_text(float(peaks[row, head]))}, in layer "
        f"{ran.sites[places[row]].layer}, head {head}"
    )
    chosen = next((row for row, i in enumerate(places) if ran.sites[i].ref == state.selection.site), -1)
    if chosen < 0 or (chosen, state.selection.head) == (row, head) or not peaks[chosen, state.selection.head]:
        return f"{said}."
    return (
        f"{said}; the selected one, layer {ran.sites[places[chosen]].layer}, head {state.selection.head}, "
        f"reaches {value_text(float(peaks[chosen, state.selection.head]))}."
    )


@lru_cache(maxsize=2)  # asked for again and again while the (i) is open
def _peaks(view: AtlasView, places: tuple[int, ...]) -> tuple[np.ndarray, bool]:
    """The largest weight of each head in a row with a choice, (layers, heads), 0 where it has not come; and whether
    there are rows without one.
    """
    images, masked = view.images[list(places)], view.masked[list(places)]
    if not images.size:
        return np.zeros((0, 0)), False
    weights = np.nan_to_num(images)
    visible = ~(np.isnan(images) | masked)
    count = visible.sum(axis=3, keepdims=True)  # (layers, heads, rows, 1)
    peaks: np.ndarray = np.where(count > 1, weights, 0).max(axis=(2, 3))
    return peaks, bool((count == 1).any())


ASKED = "asked"
"""A cell, a row, a column or painted cells: what was asked at the map, while it is."""
_CUT = 12  # letters


class ChoiceBox(WholeListBox):
    """Room for most of what can be chosen; cut to a few letters before the heads give way to it."""

    chosen = Signal(str)
    """A person chose it, by the name that `choices` gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumContentsLength(16)
        self.setAccessibleName("What the heads are coloured by")
        self.setToolTip("Thumbnails of the weights, or a colour for how much each head does something")
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        for choice, text in choices():
            self.addItem(text, choice)
            model.item(self.count() - 1).setEnabled(bool(choice))  # a heading is not chosen
        self.activated.connect(self._on_activated)

    def offer_asked(self, title: str) -> None:
        """List what was asked at the map, in words; "" for nothing."""
        place = self.findData(ASKED)
        if title and place < 0:
            self.insertItem(1, isolated(title), ASKED)
        elif title:
            self.setItemText(place, isolated(title))
        elif place >= 0:
            self.removeItem(place)

    def show_choice(self, choice: str) -> None:
        """Show what is chosen. Emits nothing."""
        self.setCurrentIndex(self.findData(choice))

    def minimumSizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width() - _CUT * self.fontMetrics().horizontalAdvance("X"), hint.height())

    def _on_activated(self, place: int) -> None:
        choice = self.itemData(place)
        if choice not in (ASKED, ""):
            self.chosen.emit(choice)


STACKS = ("encoder", "decoder", "cross")
_CHOICES = (
    ("Encoder", "Heads that look within the source"),
    ("Decoder", "Heads that look within the target"),
    ("Cross", "Heads that look from the target at the source"),
)


_WAITING = "The heads appear here when the model has run."
_WIDE = 620  # pixels from which on the list has room beside the heads
_ROLES_TIP = (
    "Badges: what each head plainly does over the texts that come along. They are run through the model once.\n"
    "Hovering a badge says what it means; a double click opens its page."
)
_TEXTS_TIP = (
    "Which texts roles are found on: those that come along, or a file of yours.\n"
    "A text a line, .csv, .jsonl; CoNLL-U with dependency edges for what is told by grammar."
)
_PROBES = f"Texts ({' '.join(f'*{ending}' for ending in (*SUFFIXES, *CONLLU))});;All files (*)"
_NAME_LETTERS = 18
_BESIDE_BUTTONS = 5  # pixels above a small button that stands beside higher ones
_ABOVE_TIP = "Only the heads that score more than one that attends evenly to all it sees"


class HeadAtlasPanel(Panel):
    api_version = 1
    name = "heads"
    title = "All heads"
    hint = "Every attention head of the model; click one to look into it."
    shows = OF_WEIGHTS | {"role", "gradient", "size"}
    reads = (
        "document.heads",
        "document.probe",
        "document.view",
        "recent_texts",
        "question",
        "selection",
        AtlasView,
        WhichHeadsView,
        RolesView,
    )

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return bool(info.stacks)  # a model without attention has no heads

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.atlas = HeadAtlas()
        self.atlas.set_empty_text(_WAITING)
        self.atlas.cell_selected.connect(self._on_selected)
        self.atlas.hovered.connect(self._on_hovered)
        self.atlas.menu_wanted.connect(self._on_menu)
        self.atlas.page_wanted.connect(self._open_page)
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.area.setWidget(self.atlas)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.stacks = Segments(_CHOICES, "Stack", wraps=True)
        self.stacks.chosen.connect(lambda index: self.show_stack(STACKS[index]))
        self.stacks.hide()
        self.bar = ColourBar()
        self.ranking = Ranking()
        self.ranking.head_chosen.connect(self._on_selected)
        body = QWidget()
        inner = QVBoxLayout(body)
        inner.setContentsMargins(0, 0, 0, 0)
        chosen, lines = QVBoxLayout(), QVBoxLayout()
        chosen.addWidget(self.stacks)
        lines.addSpacing(_BESIDE_BUTTONS)
        lines.addWidget(self.code_button)  # the title line is full, and what it would take were the map's
        lines.addStretch(1)
        first = QHBoxLayout()
        first.addLayout(chosen, 1)
        first.addLayout(lines)
        inner.addLayout(first)
        self.offers = QWidget()  # what there is for the scores that are shown: its line comes with them
        offered = FlowLayout(self.offers)
        chosen.addWidget(self.offers)
        chosen.addStretch(1)
        coloured = QWidget()
        beside = QHBoxLayout(coloured)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(8)
        beside.addWidget(self.area, 1)
        beside.addWidget(self.bar)
        self.parts = QSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(coloured)
        self.parts.addWidget(self.ranking)
        self.parts.setChildrenCollapsible(False)
        self.parts.setStretchFactor(0, 1)
        self.parts.setSizes([520, 190])
        inner.addWidget(self.parts, 1)
        self.bar.hide()
        self.ranking.hide()
        self.card = Card(self.title)
        self.by = ChoiceBox()
        self.by.chosen.connect(self._choose)
        self.above = QPushButton("Above even")
        self.above.setCheckable(True)
        self.above.setToolTip(_ABOVE_TIP)
        self.above.clicked.connect(lambda on: self.dispatch(SetAboveEven(on)))
        self.above.hide()
        self.roles = QPushButton("Roles")
        self.roles.setCheckable(True)
        self.roles.setToolTip(_ROLES_TIP)
        self.roles.clicked.connect(lambda on: self.dispatch(SetBadges(on)))
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("Stop finding roles")
        self.stop.clicked.connect(self._stop)
        self.stop.hide()
        self.texts = FileButton("Texts", _TEXTS_TIP, "Find roles on a file of texts", _PROBES, "Ours, which come along")
        self.texts.chosen.connect(lambda path: self.dispatch(ChooseProbe(path)))
        self.texts.hide()
        for offer in (self.above, self.texts, self.stop):
            offered.addWidget(offer)
        self.offers.hide()
        for control in (self.roles, self.by):
            self.card.add_control(control)
        self.card.set_content(body)
        self.fill(self.card)
        self._sites: tuple[Site, ...] = ()  # of the stack shown
        self._stack = ""
        self._revealed = (-1, -1, "")  # row, head and stack that were scrolled to

    def place_of(self, part: str, site: SiteRef | None, head: int, query: int, key: int) -> Place | None:
        row = self._row_of(site)
        if part != "head" or row < 0:
            return None
        return self.atlas, self.atlas.cell_rect(row, head).toAlignedRect()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= _WIDE
        self.parts.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)

    def show_stack(self, stack: str) -> None:
        """Show the heads of one stack. The selection stays, and brings its own stack back when it next moves."""
        self._stack = stack
        self._render_images(self.session.state)
        self._render_selection(self.session.state)

    def wants(self, state: State) -> Request | None:
        ran, view, pooling = state.ran, state.results.of(AtlasView), state.document.view.pooling
        if ran is None:
            return None
        is_this = view is not None and (view.request.run, view.request.pooling) == (ran.run, pooling)
        have = view.done if view is not None and is_this else 0.0
        if have < 1:
            return AtlasRequest(run=ran.run, size=THUMBNAIL, pooling=pooling, have=have)
        return self._wanted_scores(state)

    def prints(self, state: State) -> Request | None:
        """What the heads are coloured by: scores of this text, or of many, or the thumbnails."""
        ran, question = state.ran, state.question
        if ran is None or not ran.sites:
            return None
        if question is not None:
            return WhichHeadsRequest(run=ran.run, question=question)
        if state.document.heads.role:
            return RoleRequest(probe=probe_of(state), role=state.document.heads.role)
        return AtlasRequest(run=ran.run, size=THUMBNAIL, pooling=state.document.view.pooling)

    def _wanted_scores(self, state: State) -> Request | None:
        ran, question = state.ran, state.question
        if ran is not None and question is not None:
            answer = self._answer(state)
            if answer is None or answer.done < 1:
                return WhichHeadsRequest(run=ran.run, question=question, have=0.0 if answer is None else answer.done)
        if state.document.heads.role or state.document.heads.badges:
            found = roles_view(state)
            if found is None or found.done < 1:
                return RolesRequest(probe=probe_of(state), have=0.0 if found is None else found.done)
        return None

    def _answer(self, state: State) -> WhichHeadsView | None:
        """What is here of what every head was asked."""
        view, ran = state.results.of(WhichHeadsView), state.ran
        is_this = view is not None and ran is not None and view.request.run == ran.run
        return view if view is not None and is_this and view.request.question == state.question else None

    # what the heads are coloured by

    def _choose(self, choice: str) -> None:
        if choice.startswith(ROLE):
            self.dispatch(ColourByRole(choice.removeprefix(ROLE)))
        else:
            self.dispatch(AskHeads(HeadQuestion(choice) if choice in ROLE_NAMES else None))

    def _stop(self) -> None:
        if self.session.state.document.heads.role:
            self.dispatch(AskHeads(None))
        self.dispatch(SetBadges(False))
        self.session.request(RolesRequest(stop=True))

    def _scores(self, state: State) -> Scores | None:
        """None while the thumbnails are shown, or what is asked for has not come."""
        ran = state.ran
        if ran is not None and state.question is not None:
            view = self._answer(state)
            if view is None or view.scores.shape[0] != len(ran.sites):
                return None
            page = page_of(state.question.kind) if state.question.is_pattern else ""
            return Scores(view.scores, view.even, self._title_of(state, state.question), view.why, page)
        found = roles_view(state)
        role = state.document.heads.role
        if ran is None or not role or found is None or found.done < 1:
            return None
        return scores_of_role(found, ROLE_NAMES[role], ran.sites)

    def _title_of(self, state: State, question: HeadQuestion) -> str:
        """What every head is asked, with the words of the run on screen."""
        ran = state.ran
        site = None if ran is None or question.site is None else ran.site(question.site)
        if ran is None or site is None:
            return title_of(question, "", "")
        queries, keys = site_words(ran, site)
        inside = question.query < len(queries) and question.key < len(keys)
        return title_of(question, *((queries[question.query], keys[question.key]) if inside else ("", "")))

    def _render_choice(self, state: State) -> None:
        """The list of choices, with what was asked at the map."""
        heads = state.document.heads
        question = heads.question
        is_asked = question is not None and not question.is_pattern
        self.by.offer_asked("" if question is None or not is_asked else self._title_of(state, question))
        self.by.show_choice(ASKED if is_asked else coloured_by(heads))
        self.roles.setChecked(heads.badges)
        self.above.setChecked(heads.above_even)

    def about(self, state: State) -> About:
        return about(state, self._stack, tuple(self._roles_shown(state).values()))

    def render_state(self, state: State, old: State | None) -> None:
        chosen = state.selection.site
        follows = chosen is not None and (old is None or chosen != old.selection.site) and chosen.stack != self._stack
        if chosen is not None and follows:
            self._stack = chosen.stack
        if old is None or follows or _drawn_of(state) != _drawn_of(old):
            self._render_images(state)
        self._render_selection(state)

    def _render_selection(self, state: State) -> None:
        row = self._row_of(state.selection.site)
        head = state.selection.head if row >= 0 else -1
        self.atlas.set_selection(row, head)
        self.ranking.mark(row, head)
        if row >= 0 and (row, head, self._stack) != self._revealed:
            self._revealed = (row, head, self._stack)
            QTimer.singleShot(0, self, self._reveal)  # once the heads are laid out

    def _reveal(self) -> None:
        """Scroll to the selected head; whoever scrolls on is left alone until the selection moves."""
        row, head, _ = self._revealed
        if row < len(self._sites):
            rect = self.atlas.cell_rect(row, head).toAlignedRect()
            # the labels of the columns and the caption lie over the edges
            margin = rect.height() + 2 * self.fontMetrics().height()
            scroll_to(self.area, rect.center(), rect.width(), margin)

    def _render_images(self, state: State) -> None:
        no_heads = state.ran is not None and not state.ran.sites
        self.atlas.set_empty_text(NO_HEADS if no_heads else _WAITING)
        self._render_choice(state)
        view, ran = state.results.of(AtlasView), state.ran
        if view is None or ran is None:
            self.atlas.set_images(None, (), (), 1.0)
            self.atlas.set_mean_column(None)
            self.card.set_subtitle("layers down, heads across")
            self.stacks.hide()
            return
        if view.images.shape[0] != len(ran.sites):
            return  # of the model before; the new one's is on its way
        shown = self._choose_stack(ran.sites)
        self._sites = tuple(ran.sites[i] for i in shown)
        self._render_badges(state)
        scores = self._scores(state)
        self.bar.setVisible(scores is not None)
        self.ranking.setVisible(scores is not None)
        self.above.setVisible(scores is not None and not np.isnan(scores.even[shown]).all())
        found = roles_view(state)
        heads = state.document.heads
        finding = (bool(heads.role) or heads.badges) and (found is None or found.done < 1)
        self.stop.setVisible(finding)
        self._render_texts(state)
        self.offers.setVisible(not all(offer.isHidden() for offer in (self.above, self.texts, self.stop)))
        if scores is not None:
            self._render_scores(state, scores, shown)
            return
        self.atlas.set_colour_map(sequential(state.document.view.colour_map))
        images, mean, masked = view.images[shown], view.mean[shown], view.masked[shown]
        if view.done == 1:
            images, mean = without_margin(images, mean)
            masked = masked[:, : images.shape[1], : images.shape[2], : images.shape[3]]
        rows = [str(site.layer) for site in self._sites]
        columns = [str(head) for head in range(images.shape[1])]
        highest = 1.0 if np.isnan(images).all() else float(np.nanmax(images))
        self.atlas.set_images(images, rows, columns, highest if highest > 0 else 1.0, masked=masked)
        self.atlas.set_mean_column(mean if state.document.view.mean_column else None)
        padding = padding_of(ran, self._sites[0]) if self._sites else ((), ())
        self.atlas.set_faded(
            *(shares(part, side * view.cell) for part, side in zip(padding, images.shape[2:], strict=True))
        )
        # what changes comes first: the card may have room for little
        coming = "" if view.done == 1 else f"{view.done:.0%} drawn · "
        if finding:
            on = f" on {probe_name(probe_of(state))}" if probe_of(state) else ""
            coming = f"finding roles{on}: {0 if found is None else found.done:.0%} · "
        pooled = "" if view.cell == 1 else f"{_POOLED[view.request.pooling]} of {view.cell} × {view.cell} a pixel · "
        self.card.set_subtitle(f"{coming}{pooled}layers down, heads across")

    def _render_texts(self, state: State) -> None:
        """Which texts roles are found on, while any are."""
        heads, loaded = state.document.heads, state.results.loaded
        looks = loaded is not None and loaded.info.family == "vision"
        self.texts.setVisible((bool(heads.role) or heads.badges) and not looks)
        probe = probe_of(state)
        self.texts.setText(f"Texts: {_short(probe_name(probe))}")
        self.texts.setToolTip(f"{_TEXTS_TIP}\n{probe}" if probe else _TEXTS_TIP)
        self.texts.show_files(probe, state.recent_texts)

    def _render_scores(self, state: State, scores: Scores, shown: list[int]) -> None:
        """A colour a head in the place of its thumbnail, and the heads in their order."""
        values, even = scores.values[shown], scores.even[shown]
        heads = max((site.heads for site in self._sites), default=0)
        values = values[:, :heads].copy()
        if state.document.heads.above_even and not self.above.isHidden():
            values[values <= even[:, None]] = np.nan
        there = not np.isnan(values).all()
        high = float(np.nanmax(np.abs(values))) if there else 1.0
        low, high = (-1.0, 1.0) if scores.signed else (0.0, high or 1.0)
        table = diverging() if scores.signed else sequential(state.document.view.colour_map)
        rows, columns = [str(site.layer) for site in self._sites], [str(head) for head in range(heads)]
        self.atlas.set_colour_map(table)
        self.atlas.set_images(values[:, :, None, None].astype(np.float32), rows, columns, high, low)
        self.atlas.set_mean_column(None)
        self.bar.set_colour_map(table)
        self.bar.set_range(low, high)
        self.bar.set_label("score")
        evenly = float(np.nanmean(even)) if not np.isnan(even).all() else None
        order = np.argsort(np.where(np.isnan(values), -np.inf, values), axis=None, kind="stable")[::-1]
        places = [divmod(int(place), heads) for place in order]
        ranked = [
            (row, head, f"layer {rows[row]}, head {head}", float(values[row, head]))
            for row, head in places
            if not np.isnan(values[row, head])
        ]
        self.ranking.show_heads(ranked, low, high, evenly)
        why = next((scores.why[i] for i in shown if scores.why[i]), "")
        self.ranking.show_page(scores.page if there else why)
        beside = "" if evenly is None else f" · even attention: {evenly:.3f}"
        self.card.set_subtitle(f"{scores.title}{beside}" if there else why or scores.title)

    def _render_badges(self, state: State) -> None:
        roles = self._roles_shown(state)
        meanings = {head: explained(role, probe_of(state)) for head, role in roles.items()}
        self.atlas.set_badges({head: role.badge for head, role in roles.items()}, meanings)

    def _roles_shown(self, state: State) -> dict[tuple[int, int], Role]:
        """The roles that badges name, by row and head of the stack that is shown."""
        found = roles_view(state)
        roles = badges_of(found) if state.document.heads.badges and found is not None and found.done == 1 else {}
        rows = {site.ref: row for row, site in enumerate(self._sites)}
        return {(rows[ref], head): role for (ref, head), role in roles.items() if ref in rows}

    def _open_page(self, row: int, head: int) -> None:
        """Colour and rank the heads by the role of this one: its page stands below the list."""
        role = self._roles_shown(self.session.state).get((row, head))
        if role is not None:
            self._choose(f"{ROLE}{role.name}")

    def head_menu(self, site: SiteRef, head: int) -> QMenu | None:
        menu = super().head_menu(site, head)
        role = self._roles_shown(self.session.state).get((self._row_of(site), head))
        if menu is not None and role is not None:
            menu.addSeparator()
            menu.addAction(f"What “{role.badge}” means", lambda: self._choose(f"{ROLE}{role.name}"))
        return menu

    def _choose_stack(self, sites: tuple[Site, ...]) -> list[int]:
        """The places of the sites to show; sets the chooser, which a model with one stack does without."""
        there = [stack for stack in STACKS if any(site.stack == stack for site in sites)]
        if there and self._stack not in there:
            self._stack = there[0]
        for index, stack in enumerate(STACKS):
            self.stacks.button(index).setVisible(stack in there)
        if self._stack in STACKS:
            self.stacks.choose(STACKS.index(self._stack))
        self.stacks.setVisible(len(there) > 1)
        return [i for i, site in enumerate(sites) if site.stack == self._stack]

    def _row_of(self, ref: SiteRef | None) -> int:
        """Of the heads of a site; -1 where it is of another stack."""
        return next((row for row, site in enumerate(self._sites) if site.ref == ref), -1)

    def render_hover(self, pointed: Pointed) -> None:
        row = self._row_of(pointed.site)
        self.atlas.set_hover(row, pointed.head if row >= 0 else -1)

    def _on_selected(self, row: int, head: int) -> None:
        if row < len(self._sites) and head < self._sites[row].heads:
            self.dispatch(SelectHead(self._sites[row].ref, head))

    def _on_menu(self, row: int, head: int, where: QPoint) -> None:
        if row < len(self._sites) and head < self._sites[row].heads:
            self.open_head_menu(self._sites[row].ref, head, where)

    def _on_hovered(self, row: int, head: int) -> None:
        inside = 0 <= row < len(self._sites)
        self.hover.point(Pointed(site=self._sites[row].ref, head=head) if inside else NOTHING)


def _drawn_of(state: State) -> tuple[object, ...]:
    """What decides how the heads are drawn, beside the selection and what is chosen here."""
    answers = (state.results.of(kind) for kind in (AtlasView, WhichHeadsView, RolesView))
    document = state.document
    shown = (document.heads, document.probe, document.view.mean_column, document.view.colour_map)
    return *answers, *shown, state.recent_texts


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LETTERS else f"{name[:_NAME_LETTERS]}…"


def coloured_by(heads: HeadsAsked) -> str:
    """As `choices` names it."""
    if heads.role:
        return f"{ROLE}{heads.role}"
    return heads.question.kind if heads.question is not None and heads.question.is_pattern else WEIGHTS


_POOLED = {"max": "largest", "mean": "mean"}


def without_margin(images: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both without the heads, rows and columns that no site of this stack has: those of a longer text are NaN."""
    if not images.size:
        return images, mean
    there = ~np.isnan(images)
    heads, rows, columns = (int(there.any(axis=tuple(d for d in range(4) if d != kept)).sum()) for kept in (1, 2, 3))
    return images[:, :heads, :rows, :columns], mean[:, :rows, :columns]
