"""What is selected, and how it is drawn: how an intent changes it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args, get_origin, get_type_hints

from attention_explorer.session.intents import (
    AskEffects,
    AskHeads,
    ColourByRole,
    SelectCell,
    SelectHead,
    SelectKey,
    SelectQuery,
    SetAboveEven,
    SetBadges,
    SetView,
)
from attention_explorer.session.rules import rule
from attention_explorer.session.state import State, clamped, site_of
from attention_explorer.session.view_options import ViewOptions
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.protocol.values import SiteRef

_VIEW_TYPES = get_type_hints(ViewOptions)


@rule.register
def _(intent: SelectHead, state: State) -> State:
    site = site_of(state.ran, intent.site)
    if site is None:
        raise ValueError(_no_such_site(state, intent.site))
    if not 0 <= intent.head < site.heads:
        raise ValueError(
            f"There is no head {intent.head} in {site.stack} layer {site.layer}: its heads are 0 to {site.heads - 1}."
        )
    return _select(state, site=intent.site, head=intent.head)


@rule.register
def _(intent: SelectQuery, state: State) -> State:
    return _select(state, query=intent.query)


@rule.register
def _(intent: SelectKey, state: State) -> State:
    return _select(state, key=intent.key)


@rule.register
def _(intent: SelectCell, state: State) -> State:
    return _select(state, query=intent.query, key=intent.key)


def _select(state: State, **changes: object) -> State:
    selection = replace(state.of_the_run, chosen=True, **changes)  # type: ignore[arg-type]
    return state.with_document(selection=clamped(selection, state.ran))


def _no_such_site(state: State, ref: SiteRef) -> str:
    if state.ran is None:
        return f"There is no {ref.stack} layer {ref.layer} to select: no text has run yet."
    layers = [site.layer for site in state.ran.sites if site.stack == ref.stack]
    if not layers:
        return f"There is no {ref.stack} layer {ref.layer}: this model has no {ref.stack} attention to look at."
    return f"There is no {ref.stack} layer {ref.layer}: the {ref.stack} layers are {min(layers)} to {max(layers)}."


@rule.register
def _(intent: AskEffects, state: State) -> State:
    return state.with_document(effects=intent.effects)


@rule.register
def _(intent: AskHeads, state: State) -> State:
    return _with_heads(state, question=intent.question, role="")


@rule.register
def _(intent: ColourByRole, state: State) -> State:
    if intent.role not in ROLE_NAMES:
        raise ValueError(f"There is no role “{intent.role}”.")
    return _with_heads(state, question=None, role=intent.role)


@rule.register
def _(intent: SetBadges, state: State) -> State:
    return _with_heads(state, badges=intent.on)


@rule.register
def _(intent: SetAboveEven, state: State) -> State:
    return _with_heads(state, above_even=intent.on)


def _with_heads(state: State, **changes: object) -> State:
    return state.with_document(heads=replace(state.document.heads, **changes))  # type: ignore[arg-type]


@rule.register
def _(intent: SetView, state: State) -> State:
    if intent.option not in _VIEW_TYPES:
        raise ValueError(f"There is no view option {intent.option!r}: there are {', '.join(_VIEW_TYPES)}.")
    _check_view_value(intent.option, intent.value)
    return state.with_document(view=replace(state.document.view, **{intent.option: intent.value}))  # type: ignore[arg-type]


def _check_view_value(option: str, value: object) -> None:
    kind = _VIEW_TYPES[option]
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            choices = ", ".join(map(repr, get_args(kind)))
            raise ValueError(f"The view option {option} cannot be {value!r}: it is one of {choices}.")
    elif type(value) is not kind:  # not isinstance: True is an int
        raise ValueError(f"The view option {option} cannot be {value!r}: it is a {kind.__name__}.")
    elif option == "top" and value < 1:  # type: ignore[operator]
        raise ValueError(f"The view option top cannot be {value!r}: at least one candidate is listed.")
