"""Change the mask or the scale of a head, a layer or the whole model, and see what the model answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QCheckBox, QFrame, QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.mask_scale.about import about
from attention_explorer.panels.mask_scale.effect import EffectView
from attention_explorer.panels.mask_scale.effect_sentences import prediction_title
from attention_explorer.panels.mask_scale.intervention_list import InterventionList, ListedText
from attention_explorer.panels.mask_scale.labels import heading
from attention_explorer.panels.mask_scale.mask_knobs import MaskKnobs
from attention_explorer.panels.mask_scale.offered_parts import layers_of
from attention_explorer.panels.mask_scale.part_chooser import PartChooser
from attention_explorer.panels.mask_scale.part_switches import PartSwitches
from attention_explorer.panels.mask_scale.scale_knobs import ScaleKnobs
from attention_explorer.panels.mask_scale.scope_chooser import ScopeChooser
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
from attention_explorer.text_size import is_read_from_afar
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.together import Together
from attention_explorer.widgets.token_text import apart
from attention_models.protocol.ablation import Ablation
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
from attention_models.protocol.parts import PartsRequest, PartsView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo, SiteRef

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
