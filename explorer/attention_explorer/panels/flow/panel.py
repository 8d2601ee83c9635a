"""Flow: the open model in one picture, and one block of it box by box, with the numbers of this run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QStyle, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import EDITED, MASKS, Panel
from attention_explorer.panels.base import Place as Where
from attention_explorer.panels.flow.body import FlowBody
from attention_explorer.panels.flow.box_text import PLACEMENTS
from attention_explorer.panels.flow.flow_sentences import (
    block_sentence,
    input_sentence,
    output_sentence,
    recurrent_sentence,
)
from attention_explorer.panels.flow.model_scene import NOWHERE, Marks, ModelScene, OutputGroup, Place, RecurrentScene
from attention_explorer.panels.flow.player import Player, PlayStep, play_steps, recurrent_steps
from attention_explorer.panels.flow.shown import (
    arc_row,
    arcs_of,
    around_of,
    effect_of,
    effect_text,
    ends_of,
    flow_shown,
    is_of_site,
    keys_of,
    outputs_of,
    recurrent_scene,
    scene_of,
    selected_key,
    selected_place,
    site_at,
)
from attention_explorer.panels.path import PathEnd
from attention_explorer.panels.predicted import wanted_prediction
from attention_explorer.panels.selected_head import (
    NO_HEADS,
    site_words,
    wanted_comparison,
    wanted_head,
    wanted_matrices,
    why_no_matrices,
)
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import (
    Intent,
    PutIntervention,
    SelectCell,
    SelectHead,
    SelectKey,
    SelectQuery,
    SetView,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.session.view_options import Distance
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.number_text import counted, value_text
from attention_explorer.widgets.token_text import isolated
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.flow import (
    BlockRequest,
    BlockView,
    Box,
    FeedForwardBox,
    FlowRequest,
    FlowView,
    HeadsBox,
    NormBox,
    OutputBox,
)
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.matrices import MatricesRequest, MatricesView
from attention_models.protocol.prediction import ClassesView, PredictionView
from attention_models.protocol.request import Request
from attention_models.protocol.sentence import SentenceView
from attention_models.protocol.values import SiteRef

# What the (i) of the picture of the model says. Pure.


_WHAT = (
    "The whole model in one picture: each lane is the residual stream of one token, as wide as its norm; each "
    "bar is what a part of a block wrote into it."
)
_BLOCK = "One block, box by box: every module that ran for the selected token, and what it made of its vector."
_MATRICES = "One head as matrices: queries times keys, scaled, masked, softmax, times values."
_TIME = "A recurrent model in time: the encoder reads token after token into a state, the decoder writes from it."
_BEFORE = "It appears when the model has run, from what the model reads, at the bottom, to what it says at the top."
_TRY = "Try: press Play, or click a block to select it, again to open it; there a box has its numbers. Esc goes out."
_TRY_BLOCK = "Try: click a box to read its numbers, and Switch off to see what the model says without it; Esc goes out."
_TRY_MATRICES = (
    "Try: click a cell of the weights: its query's row and its key's column light up in every matrix. Esc goes out."
)
_TRY_TIME = (
    "Try: press Play, and watch the state go from token to token; with attention, arcs go back to every source token."
)


def waiting() -> About:
    return About((_WHAT, _BEFORE), _TRY)


def of_time(scene: RecurrentScene, step: int) -> About:
    """Of a recurrent model, at a step of its decoder."""
    counts = (
        f"Here {counted(len(scene.source), 'token')} of the source are read, one after the other, and "
        f"{counted(len(scene.target), 'step')} of the target follow."
    )
    return About(
        (_TIME, counts, recurrent_sentence(scene, len(scene.source) + min(step, len(scene.target) - 1))), _TRY_TIME
    )


def of_model(scene: ModelScene, at: Place, outputs: Sequence[OutputGroup], distance: Distance) -> About:
    """Of the selected block and token."""
    stack = scene.stacks[at.stack]
    what, to_try = (_BLOCK, _TRY_BLOCK) if distance == "block" else (_WHAT, _TRY)
    blocks = sum(len(each.flow.blocks) for each in scene.stacks)
    begins = f"{counted(blocks, 'block')}. {input_sentence(stack, at.position)}" if distance == "model" else ""
    said = block_sentence(stack, at) if at.block >= 0 else ""
    output = next((output_sentence(group) for group in outputs if group.rows), "")
    return About.of((what, begins, said, output), to_try)


def of_matrices(view: MatricesView | None, query: str, key: str, at: tuple[int, int]) -> About:
    """Of the selected cell, whose tokens are called `query` and `key`."""
    if view is None:
        return About((_MATRICES, "The matrices appear when they are computed."), _TRY_MATRICES)
    row, column = at[0] - view.request.first_query, at[1] - view.request.first_key
    sizes = (
        f"Q is {view.queries} × {view.q.shape[1]}, K {view.keys} × {view.k.shape[1]} and V {view.keys} × "
        f"{view.v.shape[1]}: a row a token."
    )
    if not (0 <= row < len(view.weights) and 0 <= column < view.weights.shape[1]):
        return About((_MATRICES, sizes), _TRY_MATRICES)
    cell = (
        f"“{query}” and “{key}”: q · k is {value_text(float(view.raw[row, column]))}, the score "
        f"{value_text(float(view.scores[row, column]))}, the weight "
        f"{value_text(float(view.weights[row, column]))}."
    )
    return About((_MATRICES, sizes, cell), _TRY_MATRICES)


# Which boxes of a block can be switched off, and which intervention that is. Pure.


_PARTS = {"attention": "attention", "cross": "cross", "feed_forward": "mlp"}


def skips_of(view: BlockView) -> dict[int, Ablation]:
    """Of each box that can be switched off what takes it away: sublayers once, norms where they learned a gain."""
    skips: dict[int, Ablation] = {}
    block = SiteRef(view.request.stack, view.request.layer)
    norms = 0
    for number, box in enumerate(view.boxes):
        if isinstance(box, NormBox):
            norms += 1
            if box.gain is not None or box.off:
                skips[number] = Ablation(f"norm{norms}", block)
        elif _closes(view.boxes, number) and box.part in _PARTS:
            skips[number] = Ablation(_PARTS[box.part], block)
    return skips


def _closes(boxes: tuple[Box, ...], number: int) -> bool:
    """Whether a box is the last one of its sublayer that stands for the sublayer as a whole."""
    box = boxes[number]
    if isinstance(box, (FeedForwardBox, OutputBox)):
        return True
    has_output = any(isinstance(each, OutputBox) and each.part == box.part for each in boxes)
    return isinstance(box, HeadsBox) and not has_output


def labels_of(skips: dict[int, Ablation], on: Iterable[Intervention]) -> dict[int, str]:
    """What the switches say, while the interventions `on` act."""
    off = {(skip.part, skip.site) for skip in on if isinstance(skip, Ablation) and not skip.on}
    return {number: "Switch on" if (skip.part, skip.site) in off else "Switch off" for number, skip in skips.items()}


_DISTANCES: tuple[Distance, ...] = ("model", "block", "attention")
_WAITING = "The model appears here, from what it reads to what it says, when it has run."
_NOTHING = "Of this model no block can be read."
_HINT = "Press Play to follow “{}” through the model, or click a block to select it, again to open it."
_HINT_BLOCK = "Press Play to follow “{}” through the model, or click a box to see its formula and numbers."


class FlowPanel(Panel):
    api_version = 1
    name = "flow"
    title = "Flow"
    hint = "The whole model in one picture: what each block writes into the stream of every token, down to one number."
    draws = (FlowRequest, BlockRequest, MatricesRequest)
    shows = WEIGHTS | {"next", "gradient", "score", "value", "width", "size"}
    reads = (
        "document.edits",
        "document.view",
        "selection",
        "site",
        FlowView,
        BlockView,
        CompareView,
        MatricesView,
        PredictionView,
        ClassesView,
        SentenceView,
        HeadView,
        RowView,
    )

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._scene = ModelScene()
        self._scene_of: FlowView | None = None
        self._steps: tuple[PlayStep, ...] = ()
        self._skips: dict[int, Ablation] = {}
        self.body = FlowBody(self.show_path("model"))
        self.player = Player(self)
        self.player.changed.connect(self._render_play)
        self._connect()
        card = Card()
        card.setAccessibleName(self.title)
        card.set_content(self.body)
        self.body.set_info(self.code_button)
        self.body.set_info(self.info)
        self.fill(card)

    def _connect(self) -> None:
        model, block, play = self.body.model, self.body.block, self.body.play
        model.chosen.connect(self._choose)
        model.key_chosen.connect(self._choose_key)
        model.entered.connect(lambda _: self._go_to("block"))
        model.hovered.connect(self._on_hovered)
        model.zoomed.connect(self._zoom)
        block.zoomed.connect(self._zoom)
        block.head_chosen.connect(lambda _, head: self._choose_head(head))
        block.head_entered.connect(lambda *_: self._go_to("attention"))
        self.body.matrices.cell_selected.connect(lambda query, key: self.dispatch(SelectCell(query, key)))
        self.body.matrices.hovered.connect(
            lambda query, key: self.hover.point(Pointed(query=query, key=key) if query >= 0 else NOTHING)
        )
        block.box_chosen.connect(self._show_numbers)
        block.switched.connect(self._switch)
        block.moved.connect(self._move)
        self.body.recurrent.step_chosen.connect(lambda step: self.dispatch(SelectQuery(step)))
        self.body.recurrent.key_chosen.connect(lambda key: self.dispatch(SelectKey(key)))
        self.body.mark.clicked.connect(lambda: self.front_wanted.emit(MASKS))
        play.toggled.connect(self._play_or_pause)
        play.back.connect(lambda: self.player.step(-1))
        play.step.connect(lambda: self.player.step(1))
        play.paced.connect(lambda ms: setattr(self.player, "halt_ms", ms))
        self.player.halt_ms = play.halt_ms

    # what it asks for

    def wants(self, state: State) -> Request | None:
        """What every block wrote, then what the block, the model and the selected head say."""
        ran = state.ran
        if ran is None:
            return None
        flow = flow_shown(state)
        if flow is None:
            return FlowRequest(run=ran.run)
        asked: tuple[Request | None, ...] = (
            self._wanted_block(state, flow),
            self._wanted_prediction(state),
            wanted_head(state),
        )
        compared = wanted_comparison(state) if ran.inputs.interventions else None
        if state.document.view.distance == "attention" and not self._why_no_matrices(state):
            asked = (wanted_matrices(state), *asked)
        return next((r for r in (*asked, compared) if r is not None and not state.results.has_answer_to(r)), None)

    def wants_along(self, state: State) -> tuple[Request, ...]:
        """What stands above, along and beside the blocks, so that a text that is being written is followed whole."""
        if state.ran is None:
            return ()
        block = None
        if self._scene_of is not None and (state.document.view.distance != "model" or self.body.shows_both):
            block = self._wanted_block(state, self._scene_of)
        asked = (self._wanted_prediction(state), wanted_head(state), block)
        return tuple(request for request in asked if request is not None)

    def figures(self) -> Iterable[QWidget]:
        """All but the player and the buttons."""
        return (self.body.path, self.body.effect, self.body.pages, self.body.sentence)

    def prints(self, state: State) -> Request | None:
        flow = flow_shown(state)
        return None if flow is None else self._wanted_block(state, flow)

    def _wanted_block(self, state: State, flow: FlowView) -> BlockRequest | None:
        ran = state.ran
        if ran is None or flow.recurrent is not None or not flow.stacks:
            return None
        scene = self._scene if flow is self._scene_of else scene_of(ran, flow)
        at = selected_place(state, scene)
        if at.block < 0:
            return None
        block = scene.stacks[at.stack].flow.blocks[at.block]
        # of the run on screen: the picture may be of the one before, which is of the same model
        position = state.selection.query if flow is self._scene_of else at.position
        return BlockRequest(run=ran.run, stack=block.ref.stack, layer=block.ref.layer, position=position)

    @staticmethod
    def _why_no_matrices(state: State) -> str:
        loaded = state.results.loaded
        return why_no_matrices(loaded.info) if loaded is not None else ""

    @staticmethod
    def _wanted_prediction(state: State) -> Request | None:
        vector = state.results.of(SentenceView)
        if vector is not None and state.ran is not None and vector.request.run == state.ran.run:
            return None  # pooled in whichever way: the panel of the next token lets one choose
        return wanted_prediction(state)

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Where]:
        """The pictures, with what is said of them, and the change of the answer; not the way there and back."""
        body, state = self.body, self.session.state
        near = state.document.view.distance
        if state.ran is not None and not state.ran.sites:
            hidden = hidden - WEIGHTS - {"gradient"}  # it attends to nothing, and no gradient is guessed from that
        kept = {"model": {"score", "value", "width"}, "block": {"score"}, "attention": {"next", "size"}}
        if not hidden & self.shows - (kept[near] if not body.is_of_time else {"score"}):
            return ()
        return [(part, part.rect()) for part in (body.pages, body.sentence, body.effect)]

    # what it shows

    def path_end(self) -> PathEnd:
        step = self._step_now()
        if step is not None:
            return "block" if step.kind == "box" else "model"
        return self.session.state.document.view.distance

    def render_state(self, state: State, old: State | None) -> None:
        flow, ran = flow_shown(state), state.ran
        if flow is None or ran is None:
            if ran is None or (old is not None and old.results.loaded is not state.results.loaded):
                self._forget()
            return  # the last picture stays until the new one is here
        if old is not None and old.results.loaded is not state.results.loaded:
            self.player.stop()
        if flow is not self._scene_of:
            self._scene, self._scene_of = scene_of(ran, flow), flow
            self.body.model.set_scene(self._scene)
        self.player.jumps = self._reduces_motion(state)
        if flow.recurrent is not None:
            self._render_recurrent(state, flow)
        elif not flow.stacks:
            self.body.show_reason(_NOTHING)
        else:
            self._render_model(state)
            self._render_block(state)
            self._render_matrices(state)
        self._make_steps(state)
        self._render_play()

    def _forget(self) -> None:
        self.player.stop()
        self._scene, self._scene_of, self._steps = ModelScene(), None, ()
        self.body.model.set_scene(self._scene)
        self.body.show_reason(_WAITING)
        self.body.say("")

    def _reduces_motion(self, state: State) -> bool:
        """As a person chose it here, or in the desktop."""
        still = self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration, None, self) == 0
        return state.document.view.reduce_motion or still

    def _render_model(self, state: State) -> None:
        model, effect = self.body.model, effect_of(state)
        at = selected_place(state, self._scene)
        model.set_outputs(outputs_of(state, self._scene, effect))
        self._mark_places(state)
        model.set_arcs(arcs_of(state, self._scene) if at.block >= 0 else None, arc_row(state, self._scene, at))
        said = effect_text(effect, state.document.view.unit)
        self.body.effect.setText(said)
        self.body.effect.setVisible(bool(said))

    def _mark_places(self, state: State) -> None:
        step = self._step_now()
        at = selected_place(state, self._scene)
        pointed = self.hover.pointed
        hovered = (at.stack, pointed.query) if pointed.query >= 0 else (-1, -1)
        playing = step.place if step is not None and step.kind != "output" else None
        self.body.model.set_marks(Marks(at, selected_key(state, self._scene), hovered, playing))

    def _render_block(self, state: State) -> None:
        view, block = self._block_shown(state), self.body.block
        at = selected_place(state, self._scene)
        if view is None or at.block < 0:
            if at.block < 0:
                block.set_block(None, None, ("", ""), {}, {})
                block.set_empty_text("This model has no blocks to go into.")
                self.body.numbers.follow(None, {})
            return  # the last block stays until the new one is here
        self._skips = skips_of(view)
        keys = keys_of(state, view)
        ends = ends_of(self._scene, at)
        labels = labels_of(self._skips, state.document.edits)
        block.set_block(view, around_of(self._scene, at, view), ends, keys, labels)
        self.body.numbers.follow(view, block.keys)
        word = self._scene.stacks[at.stack].labels[at.position].word
        layer = self._scene.stacks[at.stack].flow.blocks[at.block].ref.layer
        block.set_heading(isolated(f"Block {layer}, for “{word}”"), PLACEMENTS.get(view.placement, ""))
        is_cross = state.selection.site is not None and state.selection.site.stack == "cross"
        block.set_head(state.selection.head if is_of_site(state, view) else -1, "cross" if is_cross else "attention")

    def _block_shown(self, state: State) -> BlockView | None:
        """The block of the run on screen that is here, where it is the selected one."""
        view, flow = state.results.of(BlockView), flow_shown(state)
        wanted = self._wanted_block(state, flow) if flow is not None else None
        return view if view is not None and wanted is not None and view.request == wanted else None

    def _render_recurrent(self, state: State, flow: FlowView) -> None:
        scene = recurrent_scene(state, flow, self._scene)
        self.body.recurrent.set_scene(scene, state.selection.query, state.selection.key)
        self.body.show_recurrent()

    def _render_matrices(self, state: State) -> None:
        page, view, why = self.body.matrices, self._matrices_shown(state), self._why_no_matrices(state)
        if why or state.site is None or state.ran is None:
            page.show_reason(why or NO_HEADS)
        elif view is not None:
            page.show_view(view, *site_words(state.ran, state.site), state.document.view.colour_map)
            page.set_selection(state.selection.query, state.selection.key)

    def about(self, state: State) -> About:
        flow, recurrent, distance = self._scene_of, self.body.recurrent.scene, state.document.view.distance
        if flow is None or flow_shown(state) is not flow:
            return waiting()
        if flow.recurrent is not None:
            return of_time(recurrent, state.selection.query) if recurrent is not None else waiting()
        at = selected_place(state, self._scene)
        if at.stack < 0:
            return About((_NOTHING,))
        if distance == "attention" and state.ran is not None and state.site is not None:
            queries, keys = site_words(state.ran, state.site)
            chosen, view = state.selection, self._matrices_shown(state)
            return of_matrices(view, queries[chosen.query], keys[chosen.key], (chosen.query, chosen.key))
        return of_model(self._scene, at, self.body.model.outputs, distance)

    @staticmethod
    def _matrices_shown(state: State) -> MatricesView | None:
        """Those of the selected site; the last head's stay until the selected one's are here."""
        view, ran, site = state.results.of(MatricesView), state.ran, state.site
        if view is None or ran is None or site is None:
            return None
        return view if (view.request.run, view.request.site) == (ran.run, site.ref) else None

    def render_hover(self, pointed: Pointed) -> None:
        self.body.matrices.set_hover(pointed.query, pointed.key)
        if self._scene_of is not None and self._scene_of.recurrent is None:
            self._mark_places(self.session.state)

    def _mark_edited(self, state: State) -> None:
        """The card has no title: the mark stands beside the path."""
        count = len(state.ran.inputs.interventions) if state.ran is not None else 0
        self.body.mark.setText(f"edited × {count}")
        self.body.mark.setToolTip(EDITED)
        self.body.mark.setVisible(count > 0)

    # Play

    def _make_steps(self, state: State) -> None:
        flow, recurrent = self._scene_of, self.body.recurrent.scene
        if flow is not None and flow.recurrent is not None and recurrent is not None:
            self._steps = recurrent_steps(recurrent)
        else:
            at, view = selected_place(state, self._scene), self._block_shown(state)
            others = [min(state.selection.key, len(stack.labels) - 1) for stack in self._scene.stacks]
            keys, block = keys_of(state, view), self.body.block
            outputs, around, head = self.body.model.outputs, block.around, (block.head, block.head_part)
            self._steps = (
                play_steps(self._scene, at, others, view, around, outputs, keys, *head) if at.stack >= 0 else ()
            )
        self.player.set_count(len(self._steps))

    def _step_now(self) -> PlayStep | None:
        return self._steps[self.player.at] if 0 <= self.player.at < len(self._steps) else None

    def _render_play(self) -> None:
        step = self._step_now()
        self.body.show_step(self.player, step, self._hint())
        self._render_path(self.session.state)
        if self._scene_of is None or self._scene_of.recurrent is not None or not self._scene_of.stacks:
            return
        self._mark_places(self.session.state)
        if step is None:
            self.body.show_distance(self.session.state.document.view.distance)
        else:
            self.body.show_distance("block" if step.kind == "box" else "model")

    def _hint(self) -> str:
        if self.session.state.document.view.distance == "attention":
            return ""  # the matrices say themselves what is pointed at
        at = selected_place(self.session.state, self._scene)
        if at == NOWHERE or (self._scene_of is not None and self._scene_of.recurrent is not None):
            return "Press Play to see it read and write, step by step."
        hint = _HINT_BLOCK if self.session.state.document.view.distance == "block" else _HINT
        return hint.format(self._scene.stacks[at.stack].labels[at.position].word)

    def _play_or_pause(self) -> None:
        if self.player.playing:
            self.player.pause()
        else:
            self.player.play()

    # what a person does

    def _choose(self, place: Place) -> None:
        """Select a block, a token, or both."""
        self.player.stop()
        state = self.session.state
        stack = self._scene.stacks[place.stack]
        blocks = stack.flow.blocks
        at = selected_place(state, self._scene)
        if place.block < 0 and place.stack != at.stack and place.stack == selected_key(state, self._scene)[0]:
            self.dispatch(SelectKey(place.position))
            return
        if place.block >= 0 or place.stack != at.stack:
            block = place.block if place.block >= 0 else min(max(at.block, 0), len(blocks) - 1)
            site = site_at(state, self._scene, Place(place.stack, block, place.position))
            if site is not None and site != state.selection.site:
                ran_site = state.ran.site(site) if state.ran is not None else None
                heads = ran_site.heads if ran_site is not None else 1
                self.dispatch(SelectHead(site, min(state.selection.head, heads - 1)))
        if place.position >= 0:
            self.dispatch(SelectQuery(place.position))

    def _choose_key(self, stack: int, position: int) -> None:
        if stack == selected_key(self.session.state, self._scene)[0]:
            self.dispatch(SelectKey(position))

    def _choose_head(self, head: int) -> None:
        view = self.body.block.view
        boxes = view.boxes if view is not None else ()
        chosen = self.body.block.current
        heads = [b for i, b in enumerate(boxes) if isinstance(b, HeadsBox) and i == chosen]
        if heads:
            self.dispatch(SelectHead(heads[0].site, head))

    def _move(self, by: int) -> None:
        self.dispatch(SelectQuery(max(0, self.session.state.selection.query + by)))

    def _switch(self, box: int) -> None:
        skip = self._skips.get(box)
        if skip is not None:
            is_off = self.body.block.switches.get(box) == "Switch on"
            intent: Intent = PutIntervention(Ablation(skip.part, skip.site, on=is_off))
            self.dispatch(intent)

    def _show_numbers(self, box: int) -> None:
        view = self.body.block.view
        if view is not None:
            self.body.numbers.show_box(view, box, self.body.block.keys)

    def _go_to(self, distance: Distance) -> None:
        self.player.stop()
        if distance != self.session.state.document.view.distance:
            self.dispatch(SetView("distance", distance))

    def _zoom(self, by: int) -> None:
        """In or out by one distance; from the matrices on to the cell."""
        place = _DISTANCES.index(self.session.state.document.view.distance) + by
        if place >= len(_DISTANCES):
            self.front_wanted.emit("cell")
        elif place >= 0:
            self._go_to(_DISTANCES[place])

    def _on_hovered(self, stack: int, position: int) -> None:
        state = self.session.state
        if position < 0:
            self.hover.point(NOTHING)
        elif stack == selected_place(state, self._scene).stack:
            self.hover.point(Pointed(query=position))
        elif stack == selected_key(state, self._scene)[0]:
            self.hover.point(Pointed(key=position))

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous() and self.player.playing:
            self.player.pause()  # nobody sees it: it goes on when it is asked to

    def wheelEvent(self, event: QWheelEvent) -> None:
        """What nothing scrolls by: in and out."""
        if event.angleDelta().y() and self._scene_of is not None and self._scene_of.recurrent is None:
            self._zoom(1 if event.angleDelta().y() > 0 else -1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What no picture took: Esc goes out, P plays, S steps."""
        key, shifted = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key == Qt.Key.Key_Escape and self.body.numbers.isVisible():
            self.body.numbers.hide()
        elif key == Qt.Key.Key_Escape and self.player.at >= 0:
            self.player.stop()
        elif key == Qt.Key.Key_Escape:
            self._zoom(-1)
        elif key == Qt.Key.Key_P and shifted:
            self.player.step(-1)
        elif key == Qt.Key.Key_P:
            self._play_or_pause()
        elif key == Qt.Key.Key_S:
            self.player.step(1)
        else:
            event.ignore()
