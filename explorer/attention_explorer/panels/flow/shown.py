"""What the pictures show of a state: tokens, places, arcs, and what the model says. Pure."""

from __future__ import annotations

from math import isnan

import numpy as np
from PySide6.QtGui import QImage

from attention_explorer.panels.flow.box_text import Around
from attention_explorer.panels.flow.model_scene import (
    NOWHERE,
    Arcs,
    LaneLabel,
    ModelScene,
    OutputGroup,
    OutputRow,
    Place,
    RecurrentScene,
    StackScene,
)
from attention_explorer.panels.predicted import is_masked
from attention_explorer.panels.selected_head import head_shown, row_of, site_words
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_explorer.widgets.token_text import byte_note, piece_note, shortened
from attention_models.protocol.ablation import head_skip
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.flow import BlockView, FlowView, HeadsBox, StackFlow
from attention_models.protocol.head import RowView
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.prediction import ClassesView, PredictionView
from attention_models.protocol.running import Ran
from attention_models.protocol.sentence import SentenceView
from attention_models.protocol.values import Candidate, SiteRef, Token

_ROWS = 4


def flow_shown(state: State) -> FlowView | None:
    """What every block of the run on screen wrote, where that is here."""
    view, ran = state.results.of(FlowView), state.ran
    return view if view is not None and ran is not None and view.request.run == ran.run else None


def scene_of(ran: Ran, flow: FlowView) -> ModelScene:
    several = len(flow.stacks) > 1
    return ModelScene(tuple(_stack(ran, stack, several) for stack in flow.stacks))


def _stack(ran: Ran, stack: StackFlow, several: bool) -> StackScene:
    tokens = ran.source if stack.stack == "encoder" and ran.source else ran.tokens
    labels = [_label(ran, position, token) for position, token in enumerate(tokens)]
    labels += [LaneLabel(str(position)) for position in range(len(labels), len(stack.norms))]
    return StackScene(stack, tuple(labels[: len(stack.norms)]), stack.stack if several else "")


def _label(ran: Ran, position: int, token: Token) -> LaneLabel:
    word = shortened(token.word)
    notes = f"{piece_note(token.piece, token.label)}, id {token.id}, position {position}{byte_note(token.label)}"
    said = f"“{token.piece}”{notes}"
    seen = ran.seen
    at = seen.patch(position) if seen is not None else None
    if seen is None or at is None:
        return LaneLabel(word, said, token.special)
    high, wide = seen.pixels.shape[0] // seen.rows, seen.pixels.shape[1] // seen.columns
    part = np.ascontiguousarray(seen.pixels[at[0] * high : (at[0] + 1) * high, at[1] * wide : (at[1] + 1) * wide])
    image = QImage(part.data, wide, high, 3 * wide, QImage.Format.Format_RGB888).copy()
    return LaneLabel(word, f"patch in row {at[0]}, column {at[1]}, position {position}", patch=image)


# what is selected


def query_stack(state: State, scene: ModelScene) -> int:
    """The place in the scene of the stack whose tokens are the queries of the selected site."""
    wanted = "encoder" if state.site is not None and state.site.stack == "encoder" else "decoder"
    names = [stack.flow.stack for stack in scene.stacks]
    return names.index(wanted) if wanted in names else len(names) - 1


def key_stack(state: State, scene: ModelScene) -> int:
    names = [stack.flow.stack for stack in scene.stacks]
    wanted = "decoder" if state.site is not None and state.site.stack == "decoder" else "encoder"
    return names.index(wanted) if wanted in names else query_stack(state, scene)


def selected_place(state: State, scene: ModelScene) -> Place:
    """The selected block and token. A model without attention modules has no selected layer: its first block."""
    if not scene.stacks:
        return NOWHERE
    stack = query_stack(state, scene)
    blocks, labels = scene.stacks[stack].flow.blocks, scene.stacks[stack].labels
    layer = state.site.layer if state.site is not None else 0
    block = next((i for i, each in enumerate(blocks) if each.ref.layer == layer), -1)
    return Place(stack, block, min(state.selection.query, len(labels) - 1))


def selected_key(state: State, scene: ModelScene) -> tuple[int, int]:
    if state.site is None or not scene.stacks:
        return (-1, -1)
    return key_stack(state, scene), state.selection.key


def arcs_of(state: State, scene: ModelScene) -> Arcs | None:
    """Of the selected head's row, where its weights are here."""
    view, site = head_shown(state), state.site
    if view is None or site is None or view.request.site != site.ref or not scene.stacks:
        return None
    if isinstance(view, RowView) and view.request.query != state.selection.query:
        return None
    loaded, ran = state.results.loaded, state.ran
    if loaded is not None and ran is not None:
        on, predicting = ran.inputs.interventions, loaded.info.predicting_stack
        if head_skip(on, site.ref, state.selection.head, predicting) is not None:
            return None  # of its own weights nothing is carried
    weights, keys = row_of(view, state.selection.query)[0], key_stack(state, scene)
    return Arcs(weights, keys) if len(weights) == len(scene.stacks[keys].labels) else None


def arc_row(state: State, scene: ModelScene, at: Place) -> int:
    """Which of the block's bars is of the selected kind of attention."""
    if at.block < 0 or state.site is None:
        return 0
    part = "cross" if state.site.stack == "cross" else "attention"
    written = scene.stacks[at.stack].flow.blocks[at.block].written
    return next((row for row, each in enumerate(written) if each.part == part), 0)


def site_at(state: State, scene: ModelScene, place: Place) -> SiteRef | None:
    """The attention module of a block: of the kind that is selected now, else its first."""
    sites = scene.stacks[place.stack].flow.blocks[place.block].sites
    chosen = state.site.stack if state.site is not None else ""
    return next((site for site in sites if site.stack == chosen), sites[0] if sites else None)


def keys_of(state: State, view: BlockView | None) -> dict[str, list[str]]:
    """By part: what the keys of its heads are called. Self-attention and cross-attention have tokens of their own."""
    named: dict[str, list[str]] = {}
    for box in view.boxes if view is not None else ():
        site = state.ran.site(box.site) if state.ran is not None and isinstance(box, HeadsBox) else None
        if state.ran is not None and site is not None:
            named[box.part] = site_words(state.ran, site)[1]
    return named


def effect_of(state: State) -> CompareView | None:
    """What the interventions of the run on screen changed, where that is here."""
    view, ran = state.results.of(CompareView), state.ran
    is_of = view is not None and ran is not None and view.request.run == ran.run
    return view if is_of and ran is not None and ran.inputs.interventions else None


def is_of_site(state: State, view: BlockView) -> bool:
    """Whether the selected site's heads are in a block."""
    return any(isinstance(box, HeadsBox) and box.site == state.selection.site for box in view.boxes)


def recurrent_scene(state: State, flow: FlowView, scene: ModelScene) -> RecurrentScene | None:
    """A recurrent model in time; None for any other."""
    if state.ran is None or flow.recurrent is None:
        return None
    source, target = (tuple(token.word for token in side) for side in (state.ran.source, state.ran.tokens))
    view = head_shown(state)
    weights = None if view is None else row_of(view, state.selection.query)[0]
    return RecurrentScene(
        source, target, flow.recurrent, weights if weights is not None and len(weights) == len(source) else None
    )


def around_of(scene: ModelScene, at: Place, view: BlockView) -> Around:
    stack = scene.stacks[at.stack]
    written = stack.flow.blocks[at.block].written if at.block >= 0 else ()
    norms = tuple((each.part, float(each.norms[at.position])) for each in written)
    return Around(stack.labels[at.position].word, view.target_label.lstrip("␣") or view.target_label, norms)


def ends_of(scene: ModelScene, at: Place) -> tuple[str, str]:
    """Where the stream comes from and goes, with its norms."""
    stack = scene.stacks[at.stack]
    blocks = stack.flow.blocks
    before = stack.flow.norms if at.block == 0 else blocks[at.block - 1].norms
    came = "the embedding" if at.block == 0 else f"residual stream after block {blocks[at.block - 1].ref.layer}"
    last = at.block + 1 == len(blocks)
    to = f"to block {blocks[at.block + 1].ref.layer}" if not last else "to what the model says"
    if last and stack.flow.stack == "encoder" and stack.title:
        to = "to the decoder"
    norm, after = float(before[at.position]), float(blocks[at.block].norms[at.position])
    return f"x   {came}, norm {value_text(norm)}", f"{to}, norm {value_text(after)}"


# what the model says


def outputs_of(state: State, scene: ModelScene, effect: CompareView | None) -> tuple[OutputGroup, ...]:
    """Tokens at every mask or after the selected one, classes, or the text's vector; with what was before a change."""
    ran = state.ran
    if ran is None or not scene.stacks:
        return ()
    last = len(scene.stacks) - 1
    run, results = ran.run, state.results
    prediction, classes, vector = results.of(PredictionView), results.of(ClassesView), results.of(SentenceView)
    if classes is not None and classes.request.run == run:
        return (OutputGroup(_class_heading(classes, ran), _rows(classes.classes, effect), last),)
    if vector is not None and vector.request.run == run:
        heading = f"sentence vector, {len(vector.vector):,} numbers, norm {value_text(vector.norm)}"
        return (OutputGroup(heading, (), last, vector=vector.vector),)
    if prediction is None or prediction.request.run != run:
        return ()
    groups = []
    if prediction.pair:
        groups.append(OutputGroup("of the second text", _rows(prediction.pair, None), last))
    for each in prediction.predictions:
        changed = effect if effect is not None and effect.request.position == each.position else None
        at = -1 if ran.seen is not None else each.position
        groups.append(OutputGroup(_heading(state, ran, each.position), _rows(each.candidates, changed), last, at))
    return tuple(groups)


def _heading(state: State, ran: Ran, position: int) -> str:
    if ran.seen is not None:
        return "it sees"
    word = shortened(ran.tokens[position].word)
    return f"at “{word}”, position {position}" if is_masked(state) else f"next, after “{word}”"


def _class_heading(view: ClassesView, ran: Ran) -> str:
    if view.tokens and view.request.position < len(ran.tokens):
        return f"label of “{ran.tokens[view.request.position].word}”"
    if view.starts:
        return "start and end of the answer, here"
    return "class of the text" if not view.is_choice else "which text it chooses"


def _rows(candidates: tuple[Candidate, ...], effect: CompareView | None) -> tuple[OutputRow, ...]:
    if effect is not None and effect.token_changes:
        size = (
            max((max(abs(c.before), abs(c.after)) for c in effect.token_changes if not c.is_share), default=1.0) or 1.0
        )
        return tuple(
            OutputRow(
                _plain(change.label),
                change.after if change.is_share else abs(change.after) / size,
                f"{_share(change.after, change.is_share)}  (was {_share(change.before, change.is_share)})",
                change.before if change.is_share else abs(change.before) / size,
                f"“{change.label}”: {change.before:.6g} before, {change.after:.6g} now",
            )
            for change in effect.token_changes[:_ROWS]
        )
    size = max((abs(c.logit) for c in candidates), default=0.0) or 1.0
    return tuple(
        OutputRow(
            _plain(candidate.label),
            abs(candidate.logit) / size if isnan(candidate.probability) else candidate.probability,
            value_text(candidate.logit) if isnan(candidate.probability) else percent_text(candidate.probability),
            tooltip=f"“{candidate.label}”: probability {candidate.probability:.6g}, logit {candidate.logit:.6g}",
        )
        for candidate in candidates[:_ROWS]
    )


def _share(value: float, is_share: bool) -> str:
    return percent_text(value) if is_share else value_text(value)


def _plain(label: str) -> str:
    return shortened(label.lstrip("␣") or label)


def effect_text(effect: CompareView | None, unit: Unit) -> str:
    """ "loss 3.021 → 3.250 nats"; "" where nothing can be compared."""
    if effect is None or effect.loss_before is None or effect.loss_after is None or isnan(effect.loss_after):
        return ""
    before, after = (from_nats(loss, unit) for loss in (effect.loss_before, effect.loss_after))
    return f"loss {before:.3f} → {after:.3f} {unit}"
