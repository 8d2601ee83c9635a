"""Change the mask or the scale of a head, a layer or the whole model, and see what the model answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.text_size import is_read_from_afar
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.masks.effect import EffectView, loss_text, prediction_title
from attention_explorer.panels.masks.log_slider import LogSlider, SliderMark
from attention_explorer.panels.masks.part_chooser import PartChooser, column, flow, heading, layers_of, plain
from attention_explorer.panels.predicted import is_masked
from attention_explorer.panels.selected_head import head_name, selected_cell_request, site_words, wanted_comparison
from attention_explorer.session.comparing import before_as_b
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import (
    ClearInterventions,
    PutIntervention,
    RemoveIntervention,
    SelectCell,
    SetView,
    Show,
    SwitchIntervention,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_field import RealBox, WholeBox
from attention_explorer.widgets.number_text import counted, entropy_text, percent_text, value_text
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.together import Together
from attention_explorer.widgets.token_text import apart, isolated
from attention_models.protocol.ablation import SUBLAYERS, Ablation, Block, PartsRequest, PartsView, part_name
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.interventions import (
    Adapter,
    Intervention,
    Mask,
    Scale,
    applies,
    describe,
    effective_masks,
    factor_at,
    same_slot,
)
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import MOST, CheckpointInfo, SiteRef

# What is changed in the model now: a list with a switch and a way out for each.


@dataclass(frozen=True)
class ListedText:
    """What one line says, and whether it is switched on."""

    text: str
    on: bool


class InterventionList(QWidget):
    """One line for each intervention, with a check box and a button that removes it; below them, clear all.

    Delete or Backspace on a line removes it. Signals carry the place in the list.
    """

    switched = Signal(int, bool)
    removed = Signal(int)
    cleared = Signal()
    compared = Signal()
    """The model before all these is to be laid beside what they made of it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Interventions")
        self.empty = SaidLabel()
        self.empty.setProperty("role", "dim")
        self.empty.setWordWrap(True)
        self.clear_button = QPushButton("Clear all")
        self.clear_button.setToolTip("Take every intervention away: the model as it is")
        self.clear_button.clicked.connect(self.cleared)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self._column.addWidget(self.empty)
        self.compare_button = QPushButton("Before these as B")
        self.compare_button.setToolTip("Lay the run without these interventions beside this one, in Compare")
        self.compare_button.clicked.connect(self.compared)
        buttons = FlowLayout(gap=6)
        for button in (self.compare_button, self.clear_button):
            buttons.addWidget(button)
        self._column.addLayout(buttons)
        self.lines: list[_Line] = []
        self.set_rows(())

    def set_empty_text(self, text: str) -> None:
        """What stands here while nothing is changed."""
        self.empty.setText(text)

    def set_rows(self, rows: Sequence[ListedText]) -> None:
        """Show `rows`. Lines that stay keep the keyboard; when the last one goes, the one before it takes it."""
        had_focus = any(line.holds_focus() for line in self.lines)
        while len(self.lines) > len(rows):
            line = self.lines.pop()
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        while len(self.lines) < len(rows):
            self._add_line()
        for line, row in zip(self.lines, rows, strict=True):
            line.show_row(row)
        self.empty.setVisible(not rows)
        self.clear_button.setVisible(len(rows) > 1)
        self.compare_button.setVisible(any(row.on for row in rows))
        if had_focus and self.lines and not any(line.holds_focus() for line in self.lines):
            self.lines[-1].box.setFocus(Qt.FocusReason.TabFocusReason)

    def _add_line(self) -> None:
        index = len(self.lines)
        line = _Line()
        line.box.clicked.connect(lambda on: self.switched.emit(index, on))
        line.remove.clicked.connect(lambda: self.removed.emit(index))
        self.lines.append(line)
        self._column.insertWidget(index + 1, line)


class _Line(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._text = self._shown = ""
        self.box = QCheckBox()
        self.box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.remove = QToolButton()
        self.remove.setText("Remove")
        self.remove.setProperty("role", "flat")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.box, 1)
        row.addWidget(self.remove)

    def show_row(self, row: ListedText) -> None:
        self._text = isolated(row.text)
        self._fit()
        self.box.setAccessibleName(row.text)
        self.box.setChecked(row.on)
        self.box.setToolTip(f"{self._text}: {'on' if row.on else 'off, and changes nothing'}")
        self.remove.setAccessibleName(f"Remove {row.text}")
        self.remove.setToolTip(f"Take this off the list: {self._text}")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """As much of the text as there is room for; the tooltip has all of it."""
        room = self.box.width() - self.box.sizeHint().width() + self.box.fontMetrics().horizontalAdvance(self._shown)
        self._shown = self.box.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideMiddle, room)
        self.box.setText(self._shown.replace("&", "&&"))  # a single one would mark a key

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.remove.click()
        else:
            super().keyPressEvent(event)

    def holds_focus(self) -> bool:
        return self.box.hasFocus() or self.remove.hasFocus()


_DEEPEST = 2.0  # the axis ends at this total scale, or at this many times the trained one


class ScaleKnobs(QWidget):
    """The factor on the scores: slider, exact number, and both ways out."""

    chosen = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.slider = LogSlider("Scale of the scores")
        self.slider.setToolTip("How much a score counts. Double click the handle, or press 0, for the trained scale.")
        self.slider.value_changed.connect(self._on_slider)
        self.factor = RealBox()
        self.factor.setAccessibleName("Factor on the scores")
        self.factor.setToolTip("What the trained scale is multiplied by")
        self.factor.setPrefix("× ")
        self.factor.setDecimals(3)
        self.factor.setRange(0.0, 1000.0)
        self.factor.setSingleStep(0.1)
        self.factor.setKeyboardTracking(False)
        self.factor.valueChanged.connect(self.chosen)
        self.even = QPushButton("Even (0)")
        self.even.setToolTip("Factor 0: all scores alike, so every key gets the same weight")
        self.even.clicked.connect(lambda: self._turn_to(0.0))
        self.home = QPushButton("As trained")
        self.home.setToolTip("Factor 1, the trained scale (key 0 on the slider)")
        self.home.clicked.connect(lambda: self._turn_to(1.0))
        self.scale_text, self.temperature_text = plain(""), plain()
        lines = column(self)
        lines.addLayout(flow(heading("Scale"), self.factor, self.even, self.home))
        lines.addWidget(self.slider)
        lines.addWidget(self.scale_text)
        lines.addWidget(self.temperature_text)
        self._trained, self._others = 1 / math.sqrt(32), 1.0
        self.show_trained(self._trained, 32)
        self.show_factor(1.0)

    @property
    def is_dragging(self) -> bool:
        return self.slider.is_dragging

    def show_trained(self, scale: float, head_dim: int) -> None:
        """The axis: from 1/d through the trained scale to 1 and beyond, as factors on the trained scale."""
        self._trained = scale
        root = 1 / math.sqrt(head_dim)
        marks = {1 / head_dim: "1/d", root: "1/√d", 1.0: "1"}
        trained = next((total for total in marks if math.isclose(total, scale, rel_tol=1e-4)), scale)
        marks[trained] = f"{marks.get(trained, value_text(scale))} (trained)"
        low, high = min(1 / head_dim, scale / 4) / scale, max(_DEEPEST, _DEEPEST * scale) / scale
        listed = [
            SliderMark(1.0 if total == trained else total / scale, text, total == trained)
            for total, text in sorted(marks.items())
        ]
        self.slider.set_scale(low, high, listed)

    def show_factor(self, factor: float, others: float = 1.0) -> None:
        """The factor of this scope, and what the selected head gets from `others`."""
        self._others = others
        self.slider.set_value(factor)
        with QSignalBlocker(self.factor):
            self.factor.setValue(factor)
        whole = factor * others
        how = "as trained" if whole == 1 else "sharper than trained" if whole > 1 else "softer than trained"
        how = how if whole else "every key alike"
        elsewhere = f" × {others:.3g} (other scopes)" if others != 1 else ""
        total = f"{value_text(whole * self._trained)} = {factor:.3g}{elsewhere} × {value_text(self._trained)}"
        self.scale_text.setText(f"Scale {total}: {how}")
        temperature = f"{1 / whole:.3g}" if whole else "∞"
        self.temperature_text.setText(f"Temperature {temperature} = 1 / factor: the same knob")

    def _on_slider(self, factor: float) -> None:
        self.show_factor(factor, self._others)  # at once, also where the model answers later
        self.chosen.emit(factor)

    def _turn_to(self, factor: float) -> None:
        self.show_factor(factor, self._others)
        self.chosen.emit(factor)


# What the (i) of masks and scales says, with the numbers before and after. Pure.


_WHAT = (
    "Change what tokens may look at, how sharply, or which parts of a block work: the live model answers, in "
    "every panel."
)
_AS_TRAINED = "Nothing is changed now: this is the model as it was trained."
_TEXTBOOK_SCALE = (
    "Masks and scales are for transformers: a recurrent model looks at the whole source, and its scores are not scaled."
)
_TRY = (
    "Try: choose Sliding window and a small n, or drag the scale to 0, where all keys weigh the same; Ctrl+Z "
    "takes it back."
)
_TRY_BACK = "Try: switch one entry of the list off and on, and watch what the model says; Clear takes all back."


def about(state: State) -> About:
    loaded, ran, site = state.results.loaded, state.ran, state.site
    if loaded is not None and loaded.info.textbook:
        return About((_TEXTBOOK_SCALE, _WHAT), "Try: open story-gpt and change what one of its heads may look at.")
    view = state.results.of(CompareView)
    chosen = state.selection
    if (
        ran is None
        or site is None
        or view is None
        or (view.request.run, view.request.site, view.request.head) != (ran.run, site.ref, chosen.head)
    ):
        return About(
            (
                _WHAT,
                "When the model has run, the numbers of the selected head stand below: before, and after the change.",
            ),
            _TRY,
        )
    queries, keys = site_words(ran, site)
    query = min(chosen.query, len(view.top_key_after) - 1)
    count = len(ran.inputs.interventions)
    if not count:
        row = _row(view, state, query, keys, after=True)
        return About.of(
            (_WHAT, f"{_AS_TRAINED} {head_name(state)}: the row of “{queries[query]}” has {row}.", _loss(view, state)),
            _TRY,
        )
    before, after = (_row(view, state, query, keys, after=side) for side in (False, True))
    return About.of(
        (
            f"{_WHAT} Now {counted(count, 'change')} {'acts' if count == 1 else 'act'}.",
            f"{head_name(state)}, the row of “{queries[query]}”: before, {before}; now, {after}.",
            _loss(view, state),
            _token(view),
        ),
        _TRY_BACK,
    )


def _row(view: CompareView, state: State, query: int, keys: list[str], *, after: bool) -> str:
    weights, places, entropies = (
        (view.top_after, view.top_key_after, view.entropy_after)
        if after
        else (view.top_before, view.top_key_before, view.entropy_before)
    )
    if after and query in view.dead_rows:
        return "no key to look at, and no weight"
    bits = entropy_text(float(entropies[query]), state.document.view.unit)
    return f"{value_text(float(weights[query]))} on “{keys[int(places[query])]}” at most and an entropy of {bits}"


def _loss(view: CompareView, state: State) -> str:
    if view.loss_after is None or view.loss_before is None or view.done < 1:
        return ""
    unit = state.document.view.unit
    what = "The loss on this text, how badly each next token is foreseen,"
    before, after = loss_text(view.loss_before, unit), loss_text(view.loss_after, unit)
    return f"{what} is {after}." if before == after else f"{what} was {before} and is {after}."


def _token(view: CompareView) -> str:
    if not view.token_changes:
        return ""
    first = view.token_changes[0]
    before, after = (percent_text(v) if first.is_share else value_text(v) for v in (first.before, first.after))
    return f"“{first.label.lstrip('␣') or first.label}” had {before} and has {after}."


_FIRST_WINDOW = 4


class MaskKnobs(QWidget):
    """Which mask, its number where it needs one, and the brush."""

    chosen = Signal(str, object)  # kind, window or None
    brush_chosen = Signal(str)  # "off", "block", "allow"

    def __init__(self) -> None:
        super().__init__()
        self.kind = QComboBox()
        self.kind.setAccessibleName("Mask")
        self.kind.setToolTip("Which tokens may be looked at")
        for kind in MASK_KINDS.values():
            if not kind.takes_cells:  # those are what the brush is for
                self.kind.addItem(kind.title, kind.name)
                self.kind.setItemData(self.kind.count() - 1, kind.sentence, Qt.ItemDataRole.ToolTipRole)
        self.kind.activated.connect(self._on_kind)
        self.number = WholeBox()
        self.number.setAccessibleName("n, the mask's number")
        self.number.setRange(0, MOST)
        self.number.setPrefix("n = ")
        self.number.setValue(_FIRST_WINDOW)
        self.number.setKeyboardTracking(False)  # 12 is not 1 on the way
        self.number.valueChanged.connect(self._on_number)
        self.explanation = plain()
        self.brushes: dict[str, QPushButton] = {}
        for brush, text in (("block", "Block cells"), ("allow", "Allow cells")):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setToolTip(f"{text} by dragging over the head map; Esc or a second press ends it")
            button.clicked.connect(lambda on, brush=brush: self.brush_chosen.emit(brush if on else "off"))
            self.brushes[brush] = button
        self.brush_hint = plain(wraps=False)
        lines = column(self)
        lines.addLayout(flow(heading("Mask"), self.kind, self.number))
        lines.addWidget(self.explanation)
        lines.addLayout(flow(heading("Paint"), *self.brushes.values(), self.brush_hint))

    def show_mask(self, mask: Mask | None, painting: str, elsewhere: tuple[str, ...]) -> None:
        """The mask of this scope, the brush, and what other scopes' masks do here."""
        kind = MASK_KINDS["trained" if mask is None else mask.kind]
        self.kind.setCurrentIndex(self.kind.findData(kind.name))
        if mask is not None and mask.window is not None:
            with QSignalBlocker(self.number):
                self.number.setValue(mask.window)
        self.number.setVisible(bool(kind.counts))
        self.number.setToolTip(kind.counts)
        text = kind.sentence
        if elsewhere:
            text += f" Also on here: {'; '.join(elsewhere)}."
        self.explanation.setText(text)
        for brush, button in self.brushes.items():
            button.setChecked(brush == painting)
        self.brush_hint.setText("then drag over the head map" if painting == "off" else "now drag over the head map")

    def _on_kind(self, index: int) -> None:
        kind = MASK_KINDS[self.kind.itemData(index)]
        self.chosen.emit(kind.name, self.number.value() if kind.counts else None)

    def _on_number(self, number: int) -> None:
        self.chosen.emit(self.kind.currentData(), number)


_MEANINGS = {
    "attention": "All heads of this layer then write 0 into the residual stream",
    "cross": "This layer then looks at nothing of the source: its cross-attention writes 0 into the residual stream",
    "mlp": "Its feed-forward network then writes 0 into the residual stream",
}
_NORM = "What this normalisation learned is left out then: it multiplies by 1 and adds 0"


class PartSwitches(QWidget):
    """One button for each part of a block; pressed in, the part is off."""

    switched = Signal(str, bool)  # the part, and whether it is off

    def __init__(self) -> None:
        super().__init__()
        self.title = heading("Switch off")
        self.why = plain()
        self.buttons: dict[str, QPushButton] = {}
        self._row = flow(self.title)
        lines = column(self)
        lines.addLayout(self._row)
        lines.addWidget(self.why)
        self.hide()

    def show_block(self, block: Block | None, where: str, off: Collection[str]) -> None:
        """Offer the parts of `block`, called `where`; those in `off` are switched off."""
        self.setVisible(block is not None)
        if block is None:
            return
        self.title.setText(f"Switch off in {where}")
        self.why.setText(block.why)
        self.why.setVisible(bool(block.why))
        for part in block.parts:
            if part not in self.buttons:
                self._add(part)
        for part, button in self.buttons.items():
            button.setVisible(part in block.parts)
            button.setChecked(part in off)

    def _add(self, part: str) -> None:
        name = part_name(part)
        button = QPushButton(f"{name[0].upper()}{name[1:]}" if part in SUBLAYERS else f"Gain of {name}")
        button.setCheckable(True)
        button.setToolTip(f"{_MEANINGS.get(part, _NORM)}. A second press puts it back.")
        button.clicked.connect(lambda off: self.switched.emit(part, off))
        self.buttons[part] = button
        self._row.addWidget(button)


_SCOPES = {"head": "This head", "layer": "This layer", "everywhere": "Everywhere"}


class ScopeChooser(QWidget):
    """This head, this layer or everywhere: what all knobs below are for."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        label = heading("Apply to")
        row = FlowLayout(self)
        row.addWidget(label)
        group = QButtonGroup(self)
        self.buttons: dict[str, QPushButton] = {}
        for scope, text in _SCOPES.items():
            button = QPushButton(text)
            button.setCheckable(True)
            button.setToolTip(f"What you change below changes {text.lower()}")
            button.clicked.connect(lambda _on=False, scope=scope: self.chosen.emit(scope))
            group.addButton(button)
            row.addWidget(button)
            self.buttons[scope] = button
        label.setBuddy(self.buttons["head"])

    def show_scope(self, scope: str) -> None:
        self.buttons[scope].setChecked(True)


_UNCHANGED = (
    "Nothing is changed: this is the model as trained. Choose a mask, paint cells, drag the scale or switch a part off."
)
_NO_KNOBS = "So no mask and no scale can be put on them; parts of its blocks can be switched off."
_TEXTBOOK = (
    "Masks and scales are for transformers. A recurrent model looks at the whole source, or through a window of its "
    "own, and its scores are not scaled. Open story\N{NON-BREAKING HYPHEN}gpt to change what a head may look at."
)


_LEAST_BAR = 2
"""The row of the last bar that is to be seen with the slider at least."""


class MaskScalePanel(Panel):
    api_version = 1
    name = "masks"
    title = "Masks"
    hint = "Change what tokens may look at, or how sharply, and see the weights and what the model says change."
    shows = WEIGHTS | {"next", "gradient", "score"}
    reads = ("document.interventions", "document.view", "edit_scope", "selection", "site", CompareView, PartsView)

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return not info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.scope_chooser = ScopeChooser()
        self.scope_chooser.chosen.connect(lambda scope: self.dispatch(SetView("edit_scope", scope)))
        self.mask_knobs = MaskKnobs()
        self.mask_knobs.chosen.connect(self._put_mask)
        self.mask_knobs.brush_chosen.connect(lambda brush: self.dispatch(SetView("painting", brush)))
        self.brush_ends = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self._lay_down_brush)
        self.brush_ends.setContext(Qt.ShortcutContext.ApplicationShortcut)  # wherever the keyboard is by then
        self.brush_ends.setEnabled(False)
        self.unseen = wrapped(role="dim")
        self.unseen.hide()
        self.scale_knobs = ScaleKnobs()
        self.scale_knobs.chosen.connect(self._put_scale)
        self.part_switches = PartSwitches()
        self.part_switches.switched.connect(self._switch_part)
        self.part_chooser = PartChooser()
        self.part_chooser.chosen.connect(lambda skip: self.dispatch(PutIntervention(skip)))
        self.adapter = QCheckBox("Adapter")
        self.adapter.setAccessibleName("Adapter")
        self.adapter.clicked.connect(lambda on: self.dispatch(PutIntervention(Adapter(on))))
        self.list = InterventionList()
        self.list.set_empty_text(_UNCHANGED)
        self.list.switched.connect(lambda index, on: self.dispatch(SwitchIntervention(index, on)))
        self.list.removed.connect(lambda index: self.dispatch(RemoveIntervention(index)))
        self.list.cleared.connect(lambda: self.dispatch(ClearInterventions()))
        self.list.compared.connect(lambda: self.compare_with(before_as_b))
        self.effect = EffectView()
        self.effect.change.map.cell_selected.connect(lambda query, key: self.dispatch(SelectCell(query, key)))
        self.effect.change.map.hovered.connect(
            lambda query, key: self.hover.point(Pointed(query=query, key=key) if query >= 0 else NOTHING)
        )
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(10)
        for part in (
            self.unseen,
            self.scope_chooser,
            self.mask_knobs,
            self.scale_knobs,
            self.part_chooser,
            self.part_switches,
            self.adapter,
            heading("Interventions"),
            self.list,
            self.effect,
        ):
            column.addWidget(part)
        column.addStretch(1)
        self._column, self._effect_place = column, column.indexOf(self.effect)
        together = Together(self.scale_knobs.slider, self.effect.bars, lambda: self.effect.bars.down_to(_LEAST_BAR))
        self.scale_knobs.chosen.connect(together.moved)
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.area.setWidget(body)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.card = Card("Mask and scale")
        self.refusal = wrapped(_TEXTBOOK, "dim")
        self.refusal.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.area)
        self.pages.addWidget(self.refusal)
        self.card.set_content(self.pages)
        self.card.set_path(self.show_path("head"))
        self.fill(self.card)
        self.keep("map", self.effect.change.choice)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._place_effect()

    def _place_effect(self) -> None:
        """While it is presented what the slider changes stands right below it, so that both are in sight."""
        place = self._column.indexOf(self.scale_knobs) + 1 if is_read_from_afar() else self._effect_place
        if self._column.indexOf(self.effect) != place:
            self._column.removeWidget(self.effect)
            self._column.insertWidget(place, self.effect)

    def wants(self, state: State) -> Request | None:
        return wanted_comparison(state) or _wanted_parts(state)

    def figures(self) -> Iterable[QWidget]:
        return (self.effect,)

    def prints(self, state: State) -> Request | None:
        return selected_cell_request(state)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():  # the window is not merely minimised
            self._lay_down_brush()

    def _lay_down_brush(self) -> None:
        """Painting ends with the panel that has its buttons: elsewhere a click selects."""
        if self.session.state.document.view.painting in ("block", "allow"):
            self.dispatch(SetView("painting", "off"))

    # what the knobs do

    def _put_mask(self, kind: str, window: int | None) -> None:
        site, head = self.session.state.edit_scope
        try:
            value = Mask(kind, window=window, site=site, head=head)
        except ValueError as error:
            self.dispatch(Show(Notice("warning", str(error))))
            self._render_knobs(self.session.state)  # back to the mask that is on
            return
        self.dispatch(PutIntervention(value))

    def _put_scale(self, factor: float) -> None:
        site, head = self.session.state.edit_scope
        self.dispatch(PutIntervention(Scale(factor, site=site, head=head)))

    def _switch_part(self, part: str, off: bool) -> None:
        block = _block(self.session.state)
        if block is not None:
            self.dispatch(PutIntervention(Ablation(part, block, on=not off)))

    # what it shows

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """All of it where a mask is asked for; else what an intervention has changed, and the scaling of scores."""
        if "mask" in hidden:
            return super().answering(hidden)
        parts = (self.scale_knobs,) if "score" in hidden else (self.effect,) if hidden & self.shows else ()
        return [(part, part.rect()) for part in parts]

    def about(self, state: State) -> About:
        return about(state)

    def render_state(self, state: State, old: State | None) -> None:
        loaded = state.results.loaded
        self.pages.setCurrentIndex(1 if loaded is not None and loaded.info.textbook else 0)
        self._render_unseen("" if loaded is None else loaded.info.weights_only)
        self.card.set_subtitle("" if state.site is None else head_name(state))
        self.scale_knobs.setVisible(loaded is None or not (loaded.info.weights_only or loaded.info.additive))
        self._render_knobs(state)
        self._render_parts(state)
        self._render_adapter(state)
        if old is None or state.document.interventions != old.document.interventions:
            self.list.set_rows([ListedText(describe(i.value), i.on) for i in state.document.interventions])
        self._render_effect(state)

    def _render_unseen(self, why: str) -> None:
        """In the place of masks and scales why there are none; parts of blocks can be switched off all the same."""
        self.unseen.setText(f"{why} {_NO_KNOBS}" if why else "")
        self.unseen.setVisible(bool(why))
        for knobs in (self.scope_chooser, self.mask_knobs):
            knobs.setVisible(not why)

    def _render_knobs(self, state: State) -> None:
        view = state.document.view
        site, head = state.edit_scope
        self.scope_chooser.show_scope(view.edit_scope)
        self.brush_ends.setEnabled(view.painting in ("block", "allow"))
        mask = _in_slot(state, Mask("trained", site=site, head=head))
        scale = _in_slot(state, Scale(1, site=site, head=head))
        self.mask_knobs.show_mask(mask if isinstance(mask, Mask) else None, view.painting, _elsewhere(state))
        comparison = state.results.of(CompareView)
        if (
            comparison is not None
            and comparison.request.site == state.selection.site
            and comparison.scale
            and comparison.head_dim
        ):
            self.scale_knobs.show_trained(comparison.scale, comparison.head_dim)
        if not self.scale_knobs.is_dragging:
            self.scale_knobs.show_factor(scale.factor if isinstance(scale, Scale) else 1.0, _factor_elsewhere(state))

    def _render_parts(self, state: State) -> None:
        view, ref = state.results.of(PartsView), _block(state)
        block = None if view is None or ref is None else view.at(ref)
        several = state.ran is not None and len({site.stack for site in state.ran.sites}) > 1
        where = "" if ref is None else f"{ref.stack} layer {ref.layer}" if several else f"layer {ref.layer}"
        skips = [i.value for i in state.document.interventions if i.on and isinstance(i.value, Ablation)]
        off = {skip.part for skip in skips if skip.site == ref and skip.fill == "zero"}
        self.part_switches.show_block(block, where, off)
        loaded = state.results.loaded
        if state.ran is None or loaded is None or loaded.info.textbook or view is None:
            return
        self.part_chooser.show_layers(layers_of(view, state.ran, not loaded.info.weights_only), skips)
        self.part_chooser.follow(state.selection.site, state.selection.head)

    def _render_adapter(self, state: State) -> None:
        loaded = state.results.loaded
        adapter = loaded.info.put_on if loaded is not None else None
        self.adapter.setVisible(adapter is not None)
        if adapter is not None:
            self.adapter.setText(f"Adapter {apart(adapter.name)} ({adapter.scale_words})".replace("&", "&&"))
            self.adapter.setToolTip(f"{adapter.words}. Off, the model is the one that it was made for.")
        self.adapter.setChecked(_in_slot(state, Adapter()) is None)

    def _render_effect(self, state: State) -> None:
        view, ran, site, selection = state.results.of(CompareView), state.ran, state.site, state.selection
        if view is None or ran is None or site is None:
            self.effect.clear()
            return
        asked = view.request
        if (asked.run, asked.site, asked.head) != (ran.run, selection.site, selection.head):
            return  # the last numbers stay until the new ones are here
        self.effect.show_comparison(
            view,
            site_words(ran, site),
            selection.query,
            selection.key,
            state.document.view.colour_map,
            _prediction_title(state, ran, view),
            state.document.view.unit,
            edited=bool(ran.inputs.interventions),
        )

    def render_hover(self, pointed: Pointed) -> None:
        self.effect.show_hover(pointed.query, pointed.key)


def _block(state: State) -> SiteRef | None:
    """The block that the selected head is in."""
    ref = state.selection.site
    return None if ref is None else ref.block


def _wanted_parts(state: State) -> PartsRequest | None:
    """The parts of the blocks, which are those of the model, whatever ran."""
    return None if state.ran is None or state.results.of(PartsView) is not None else PartsRequest(run=state.ran.run)


def _in_slot(state: State, probe: Intervention) -> Intervention | None:
    """The intervention that is on where `probe` would go."""
    values = [i.value for i in state.document.interventions if i.on and same_slot(i.value, probe)]
    return values[-1] if values else None


def _factor_elsewhere(state: State) -> float:
    """What the scales of other scopes multiply the selected head's scores by."""
    if state.site is None:
        return 1.0
    values = [i.value for i in state.document.interventions if i.on and isinstance(i.value, Scale)]
    others = [value for value in values if (value.site, value.head) != state.edit_scope]
    return factor_at(others, state.site, state.selection.head)


def _elsewhere(state: State) -> tuple[str, ...]:
    """The masks of other scopes that act at the selected head too."""
    site, head, scope = state.site, state.selection.head, state.edit_scope
    if site is None:
        return ()
    masks = [i.value for i in state.document.interventions if i.on and isinstance(i.value, Mask)]
    here = effective_masks(mask for mask in masks if applies(mask, site) and mask.head in (None, head))
    return tuple(describe(mask) for mask in here if (mask.site, mask.head) != scope)


def _prediction_title(state: State, ran: Ran, view: CompareView) -> str:
    loaded = state.results.loaded
    head = loaded.info.class_head if loaded is not None else None
    return prediction_title(ran, view.request.position, head, fills_in=is_masked(state))
