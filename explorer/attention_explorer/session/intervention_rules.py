"""What is changed while the model runs: how an intent changes the list of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from attention_explorer.session.intents import (
    BlockCell,
    ClearInterventions,
    PaintCells,
    PutIntervention,
    RemoveIntervention,
    SwitchIntervention,
)
from attention_explorer.session.rules import another_text, rule
from attention_explorer.session.state import InterventionItem, State
from attention_models.protocol.interventions import Intervention, Mask, is_neutral, same_slot
from attention_models.protocol.values import SiteRef


@rule.register
def _(intent: PutIntervention, state: State) -> State:
    return _put(state, intent.value)


@rule.register
def _(intent: PaintCells, state: State) -> State:
    return _painted(state, *state.edit_scope, dict.fromkeys(intent.cells, intent.allow)) if intent.cells else state


@rule.register
def _(intent: BlockCell, state: State) -> State:
    site, chosen = state.site, state.selection
    if site is None:
        raise ValueError("There is no cell to block: no head is selected.")
    cell = chosen.query, chosen.key
    return _painted(state, site.ref, chosen.head, {cell: False if intent.blocked else None})


def _painted(
    state: State, site: SiteRef | None, head: int | None, changes: Mapping[tuple[int, int], bool | None]
) -> State:
    """With cells (query, key) allowed, blocked, or (None) as the model has them, beside those painted there before."""
    stroke = Mask("painted", cells=tuple((*cell, bool(allow)) for cell, allow in changes.items()), site=site, head=head)
    listed = state.document.interventions
    before = [item.value for item in listed if same_slot(item.value, stroke)]
    cells = {(q, k): allow for mask in before if isinstance(mask, Mask) for q, k, allow in mask.cells or ()}
    left = tuple((*cell, allow) for cell, allow in sorted({**cells, **changes}.items()) if allow is not None)
    if not left:
        return _with_interventions(state, tuple(item for item in listed if not same_slot(item.value, stroke)))
    return _put(state, replace(stroke, cells=left))


def _put(state: State, value: Intervention) -> State:
    """`value` in the place of the first intervention with its slot, and of any others with it; else at the end."""
    listed = state.document.interventions
    place = next((i for i, other in enumerate(listed) if same_slot(other.value, value)), len(listed))
    others = tuple(other for other in listed[place:] if not same_slot(other.value, value))
    new = () if is_neutral(value) else (InterventionItem(value),)
    return _with_interventions(state, (*listed[:place], *new, *others))


@rule.register
def _(intent: SwitchIntervention, state: State) -> State:
    listed = _checked(state, intent.index)
    changed = replace(listed[intent.index], on=intent.on)
    return _with_interventions(state, (*listed[: intent.index], changed, *listed[intent.index + 1 :]))


@rule.register
def _(intent: RemoveIntervention, state: State) -> State:
    listed = _checked(state, intent.index)
    return _with_interventions(state, (*listed[: intent.index], *listed[intent.index + 1 :]))


@rule.register
def _(intent: ClearInterventions, state: State) -> State:
    return _with_interventions(state, ())


def _with_interventions(state: State, listed: tuple[InterventionItem, ...]) -> State:
    if listed == state.document.interventions:
        return state
    return replace(another_text(state.with_document(interventions=listed)), restored=False)


def _checked(state: State, index: int) -> tuple[InterventionItem, ...]:
    listed = state.document.interventions
    if not 0 <= index < len(listed):
        raise ValueError(f"There is no intervention {index}: the list has {len(listed)}.")
    return listed
