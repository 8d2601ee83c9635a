"""Does it matter? Heads ablated, layers read early, a logit as a sum, activations patched, tokens weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from explorer.colour_maps import sequential
from explorer.panels.about import About
from explorer.panels.base import Panel
from explorer.panels.effects.about import about
from explorer.panels.effects.answer_box import AnswerBox
from explorer.panels.effects.pages import LEGENDS, View, grid_of, head_at, place_of, sentences_of
from explorer.panels.effects.value_grid import ValueGrid
from explorer.panels.predicted import is_body
from explorer.panels.selected_head import predicting_position
from explorer.session.hover import NOTHING, Hover, Pointed
from explorer.session.intents import PutIntervention, SelectHead, SelectQuery
from explorer.session.session import Session
from explorer.session.state import State
from explorer.widgets.beside import beside
from explorer.widgets.card import Card
from explorer.widgets.choices_kept import text_choice
from explorer.widgets.flow_layout import FlowLayout
from explorer.widgets.in_sight import scroll_to
from explorer.widgets.page import wrapped
from explorer.widgets.segments import Segments
from explorer.widgets.whole_list_box import WholeListBox
from models.protocol.attribution import AttributionRequest, AttributionView
from models.protocol.effects import Aim, AimView, EffectsRequest, EffectsView
from models.protocol.explanation import ExplanationRequest, ExplanationView
from models.protocol.information import Unit
from models.protocol.lens import LensRequest, LensView
from models.protocol.patching import BY_POSITION, Align, Patched, PatchRequest, PatchView
from models.protocol.request import Request, Result
from models.protocol.skip import Skip, head_skip
from models.protocol.values import COARSE, CheckpointInfo, SiteRef

HEADS, LENS, SUM, PATCH, TOKENS = range(5)
_PAGES = (
    ("Heads", "Zero every head in turn: what changes without it"),
    ("Lens", "What the model would say if it ended after each layer"),
    ("Sum", "The logit as the sum of what every part wrote"),
    ("Patch", "Copy parts of another text's run into this one"),
    ("Tokens", "How much each token matters, by attention and by other accounts"),
)
_KINDS: tuple[tuple[Patched, str], ...] = (
    ("residual", "the stream at a token"),
    ("attention", "what attention adds at a token"),
    ("mlp", "what the network adds at a token"),
    ("head", "the output of a head"),
    ("pattern", "the weights of a head"),
)
_ALIGNS: tuple[tuple[Align, str], ...] = (
    ("same", "same length"),
    ("start", "from the start"),
    ("end", "from the end"),
    ("tokens", "equal tokens"),
)
_WAITING = "What each head does appears here when the model has run."
_NO_HEAD = "This model gives vectors, not words: it has no output head, so nothing it says could change."
_RECURRENT = "A recurrent model has no heads and no residual stream to take parts out of. Open a transformer."
_CHOICE = "This model chooses among the texts that run together, so that no text can be run again by itself."
_NO_GRADIENTS = "Gradients in half precision are rounded too much to be told apart. Open the model in float32."
_ONE_STACK = "Tokens are weighed in models of one stack that read text."
_TYPE = "Type another text above, best one that differs in a single word."


class EffectsPanel(Panel):
    api_version = 1
    name = "effects"
    title = "Effects"
    hint = "What each head, layer and token does to what the model says: taken away, read early, added up, patched."

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return not info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.pages = Segments(_PAGES, "What is shown", wraps=True)
        self.pages.chosen.connect(lambda _page: self._choices_changed())
        self.target = AnswerBox("Which answer is measured", "the likeliest")
        self.against = AnswerBox("Less which other answer", "nothing")
        self.loss = QCheckBox("Loss")
        self.loss.setToolTip("The mean loss over the text's own next tokens, in the place of one logit")
        for box in (self.target, self.against):
            box.changed.connect(self._choices_changed)
        self.loss.toggled.connect(lambda _on: self._choices_changed())
        self.other = QLineEdit()
        self.other.setAccessibleName("The other text")
        self.other.setPlaceholderText("The other text, as long as this one")
        self.other.editingFinished.connect(self._choices_changed)
        self.kind = _choice_box("What is copied", _KINDS)
        self.align = _choice_box("Which token stands for which", _ALIGNS)
        for choice in (self.kind, self.align):
            choice.activated.connect(lambda _index: self._choices_changed())
        self.strongest = QPushButton("Strongest")
        self.strongest.setToolTip("Select the head without which most changes")
        self.strongest.clicked.connect(self._select_strongest)
        self.without = QPushButton("Without this head")
        self.without.setCheckable(True)
        self.without.setToolTip("Set the output of the selected head to 0; again to put it back")
        self.without.clicked.connect(lambda on: self._switch(on))
        self.sentence = wrapped()
        self.change = wrapped(role="dim")
        self.grid = ValueGrid("Effects")
        self.grid.set_empty_text(_WAITING)
        self.grid.cell_selected.connect(self._on_chosen)
        self.grid.hovered.connect(self._on_hovered)
        self.grid.menu_wanted.connect(self._on_menu)
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.area.setWidget(self.grid)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.aim_row = _flowing(QLabel("Of"), self.target, QLabel("less"), self.against, self.loss)
        self.patch_row = _rows(beside(QLabel("From"), self.other), _flowing(QLabel("copy"), self.kind, self.align))
        self.head_row = _flowing(self.strongest, self.without)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for part in (self.pages, self.aim_row, self.patch_row, self.sentence, self.change, self.head_row):
            column.addWidget(part)
        column.addWidget(self.area, 1)
        self.legend = wrapped(role="dim")
        column.addWidget(self.legend)
        self.card = Card("Does it matter?")
        self.card.set_content(body)
        self.fill(self.card)
        self._revealed = (-1, -1)
        self._drawn: tuple[View, Unit, str] | None = None  # what the cells show, and how
        self._aimed_in = ""  # the checkpoint that the two answers were chosen for; "" for the next that is shown
        self.keep("page", self.pages)
        self.keep("loss", self.loss)
        for name, box in (("target", self.target), ("against", self.against)):
            self.keep(name, text_choice(box.currentText, partial(self._choose_token, box)))
        self.keep("other", text_choice(self.other.text, self._choose_other))
        for name, choice, values in (("copied", self.kind, _KINDS), ("aligned", self.align, _ALIGNS)):
            kept = text_choice(choice.currentData, partial(self._choose_of, choice), [value for value, _ in values])
            self.keep(name, kept)

    # ----------------------------------------------------------------- what it asks for

    def wants(self, state: State) -> Request | None:
        ran = state.ran
        if ran is None or self._why_not(state):
            return None
        wanted = self._request(state)
        if wanted is None:
            return None
        view = state.results.of(_VIEWS[self.pages.current])
        if isinstance(wanted, (EffectsRequest, PatchRequest)):
            assert view is None or isinstance(view, (EffectsView, PatchView))
            if view is not None and replace(view.request, have=0.0) == wanted:
                return None if view.done == 1 else replace(wanted, have=view.done)
        return wanted

    def _request(self, state: State) -> Request | None:
        """What the page that is shown asks of the run that is on screen; None where something is still to be typed."""
        assert state.ran is not None
        run, page = state.ran.run, self.pages.current
        aim = self._aim(state)
        if page == HEADS:
            return EffectsRequest(run=run, aim=aim)
        if page == LENS:
            return LensRequest(run=run)
        if page == SUM:
            return AttributionRequest(run=run, aim=aim)
        if page == TOKENS:
            return ExplanationRequest(run=run, aim=aim)
        other = self.other.text()
        if not other.strip():
            return None
        return PatchRequest(run=run, other=other, kind=self.kind.currentData(), align=self.align.currentData(), aim=aim)

    def _aim(self, state: State) -> Aim:
        assert state.ran is not None
        position = predicting_position(state, state.ran)
        if state.ran.seen is not None:
            position = 0  # where the classes are read
        if self.loss.isChecked() and self.pages.current in (HEADS, PATCH) and self._has_loss(state):
            return Aim(measure="loss", position=position)
        target, against = self.target.answer, self.against.answer
        if against is None:
            return Aim(position=position, target=target)
        return Aim(measure="difference", position=position, target=target, against=against)

    def _has_loss(self, state: State) -> bool:
        """Whether the model says how likely it finds the text's own tokens: only one that goes on with a text does."""
        loaded = state.results.loaded
        return loaded is not None and loaded.info.family == "causal" and loaded.info.class_head is None

    def _why_not(self, state: State) -> str:
        """Why the page that is shown has nothing to show of this model; "" where it has."""
        loaded, page = state.results.loaded, self.pages.current
        if loaded is None:
            return _WAITING
        info = loaded.info
        if info.textbook:
            return _RECURRENT
        if is_body(state) or info.wordless:
            return _NO_HEAD
        if info.class_head is not None and info.class_head.of == "choice":
            return _CHOICE
        if info.weights_only and page != LENS:
            return f"{info.weights_only} So no part of it can be changed."
        if page == TOKENS and loaded.placement.dtype in COARSE:
            return _NO_GRADIENTS
        if page in (TOKENS, PATCH) and (info.family == "vision" or (page == TOKENS and info.family == "seq2seq")):
            return _ONE_STACK
        return ""

    # ----------------------------------------------------------------- what it shows

    def about(self, state: State) -> About:
        return about(state)

    def render_state(self, state: State, old: State | None) -> None:
        if state.results.loaded is not None:
            self._forget_answers(state.results.loaded.info.reference)
        page, why = self.pages.current, self._why_not(state)
        self.aim_row.setVisible(page != LENS and not why)
        self.patch_row.setVisible(page == PATCH and not why)
        self.head_row.setVisible(page == HEADS and not why)
        self.loss.setVisible(page in (HEADS, PATCH) and self._has_loss(state))
        effects = state.results.of(EffectsView)
        has_largest = state.ran is not None and effects is not None and effects.largest is not None
        self.strongest.setEnabled(has_largest and effects is not None and self._is_of(state, effects))
        self._render_switch(state)
        view = state.results.of(_VIEWS[page])
        if why or state.ran is None or view is None or not self._is_of(state, view):
            if why or view is None or (page == PATCH and not self.other.text().strip()):
                self._say(why if state.ran is not None else "", "")
                self.grid.set_empty_text(why or (_TYPE if page == PATCH else _WAITING))
                self.grid.show_grid(None)
                self._drawn = None
                self.legend.hide()
            return  # else what is there stays until the new answer comes
        self.legend.setText(LEGENDS[page])
        looks, site = state.document.view, state.selection.site
        cell = None if site is None else (site, state.selection.head)
        self._say(*sentences_of(view, state.ran, looks.unit, cell, predicting_position(state, state.ran)))
        if (view, looks.unit, looks.colour_map) != self._drawn:  # a selection changes no cell
            self._drawn = (view, looks.unit, looks.colour_map)
            self.grid.set_empty_text("")  # the sentence says why there is nothing
            self.grid.show_grid(grid_of(view, state.ran, looks.unit, sequential(looks.colour_map)))
        if not isinstance(view, LensView):
            self._offer(view.aim)
        self.legend.setVisible(self.grid.grid is not None)
        self._render_selection(state)

    def _is_of(self, state: State, view: Result) -> bool:
        """Whether an answer is what the page asks for now, all of it or in part."""
        wanted = self._request(state)
        asked = view.request
        if isinstance(asked, (EffectsRequest, PatchRequest)):
            asked = replace(asked, have=0.0)
        return asked == wanted

    def _render_selection(self, state: State) -> None:
        page, ran = self.pages.current, state.ran
        view = state.results.of(_VIEWS[page])
        if isinstance(view, EffectsView):
            self.grid.set_selection(*place_of(view, state.selection.site, state.selection.head))
        elif isinstance(view, AttributionView):
            rows = [site.site for site in view.sites]
            site = state.selection.site
            self.grid.set_selection(rows.index(site) if site in rows else -1, state.selection.head)
        elif ran is not None and self.grid.grid is not None and page == LENS:
            self.grid.set_selection(0, predicting_position(state, ran))
            if self.grid.selection != self._revealed:
                self._revealed = self.grid.selection
                QTimer.singleShot(0, self, self._reveal)  # once the cells are laid out
        else:
            self.grid.set_selection(-1, -1)

    def _reveal(self) -> None:
        """Scroll to the selected position; whoever scrolls on is left alone until the selection moves."""
        if self.grid.grid is not None:
            cell = self.grid.cell_rect(*self._revealed).center().toPoint()
            scroll_to(self.area, cell, 60, 0)

    def _render_switch(self, state: State) -> None:
        site, loaded = state.selection.site, state.results.loaded
        self.without.setEnabled(site is not None and loaded is not None)
        is_off = False
        if site is not None and loaded is not None:
            on = [item.value for item in state.document.interventions if item.on]
            skip = head_skip(on, site, state.selection.head, loaded.info.predicting_stack)
            is_off = skip is not None and skip.part == "head"
        self.without.setChecked(is_off)

    def _say(self, sentence: str, change: str) -> None:
        self.sentence.setText(sentence)
        self.sentence.setVisible(bool(sentence))
        self.change.setText(change)
        self.change.setVisible(bool(change))

    def _offer(self, aim: AimView) -> None:
        for box in (self.target, self.against):
            box.offer(aim.candidates)

    def render_hover(self, pointed: Pointed) -> None:
        view = self.session.state.results.of(EffectsView)
        if self.pages.current == HEADS and view is not None:
            self.grid.set_hover(*place_of(view, pointed.site, pointed.head))

    # ----------------------------------------------------------------- what is pressed

    def _choices_changed(self) -> None:
        self._rendered = None  # what is chosen here is no part of the state
        self._revealed = (-1, -1)
        self.attempt(self._refresh)

    def _choose_token(self, box: AnswerBox, text: str) -> None:
        box.type_answer(text)
        self._aimed_in = ""
        self._choices_changed()

    def _choose_other(self, text: str) -> None:
        self.other.setText(text)
        self._choices_changed()

    def _choose_of(self, box: QComboBox, value: str) -> None:
        box.setCurrentIndex(box.findData(value))
        self._choices_changed()

    def _forget_answers(self, reference: str) -> None:
        """Answers that were chosen for another checkpoint are words, or ids, of its vocabulary: the likeliest again."""
        chosen_for, self._aimed_in = self._aimed_in, reference
        if chosen_for in ("", reference):
            return
        for box in (self.target, self.against):
            box.forget()

    def _head_of(self, row: int, column: int) -> tuple[SiteRef, int] | None:
        page = self.pages.current
        view = self.session.state.results.of(_VIEWS[page])
        if isinstance(view, EffectsView):
            return head_at(view, row, column)
        if isinstance(view, AttributionView) and row < len(view.sites) and column < len(view.sites[row].heads):
            return view.sites[row].site, column
        if isinstance(view, PatchView) and view.request.kind not in BY_POSITION and row < len(view.rows):
            return view.rows[row], column
        return None

    def _on_chosen(self, row: int, column: int) -> None:
        head = self._head_of(row, column)
        if head is not None:
            self.dispatch(SelectHead(*head))
        elif self.pages.current in (LENS, PATCH, TOKENS):
            self.dispatch(SelectQuery(column))

    def _on_hovered(self, row: int, column: int) -> None:
        head = None if row < 0 else self._head_of(row, column)
        self.hover.point(NOTHING if head is None else Pointed(site=head[0], head=head[1]))

    def _on_menu(self, row: int, column: int, where: QPoint) -> None:
        head = self._head_of(row, column)
        if head is not None:
            self.open_head_menu(*head, where)

    def _select_strongest(self) -> None:
        view = self.session.state.results.of(EffectsView)
        largest = None if view is None else view.largest
        if largest is not None:
            self.dispatch(SelectHead(largest[0], largest[1]))

    def _switch(self, off: bool) -> None:
        site = self.session.state.selection.site
        if site is not None:
            self.dispatch(PutIntervention(Skip("head", site, self.session.state.selection.head, on=not off)))


_VIEWS: tuple[type[View], ...] = (EffectsView, LensView, AttributionView, PatchView, ExplanationView)


def _choice_box(name: str, choices: Sequence[tuple[str, str]]) -> QComboBox:
    """Of (value, what it is called)."""
    box = WholeListBox()
    for value, text in choices:
        box.addItem(text, value)
    box.setMinimumContentsLength(14)
    box.setAccessibleName(name)
    box.setToolTip(name)
    return box


def _rows(*parts: QWidget) -> QWidget:
    rows = QWidget()
    column = QVBoxLayout(rows)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(6)
    for part in parts:
        column.addWidget(part)
    return rows


def _flowing(*parts: QWidget) -> QWidget:
    """Beside each other; what has no room goes to the next line."""
    row = QWidget()
    lines = FlowLayout(row, gap=6)
    for part in parts:
        lines.addWidget(part)
    return row
