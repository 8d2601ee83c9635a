"""What the (i) of all heads says. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from attention_explorer.panels.about import About
from attention_explorer.panels.head_atlas.scores import clause_of, probe_name
from attention_explorer.panels.selected_head import NO_HEADS
from attention_explorer.session.corpus import probe_of
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import counted, value_text
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.roles import Role
from attention_models.protocol.running import Ran

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
