"""What is drawn and said of other weights that give the same answer, and of those that give another. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from attention_explorer.panels.effects.questions import same_heads
from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.panels.effects.wording import layer_name, plain
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_models.protocol.adversarial_attention import AdversarialAttentionView, Moved, Rerun
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.values import SiteRef

LIMITS = (
    "Figures are those of runs with these weights in the row. Such weights are searched for, not learned, and of this "
    "text alone; where a head hardly acts, any do (Jain and Wallace 2019, Wiegreffe and Pinter 2019)."
)


def weights_grid(view: AdversarialAttentionView, site: SiteRef, head: int, keys: Sequence[str]) -> Grid:
    """A strip for the weights as they are and one for each that was found, of one head, all in one scale."""
    place = same_heads(view, site, head)
    strips = [("as it is", view.observed[place]), ("same answer", view.same.weights[place])]
    if view.blocked is not None:
        strips.append(("one key blocked", view.blocked.rerun.weights[place]))
    if view.moved is not None:
        strips.append(("least moved", view.moved.rerun.weights[place]))
    values = np.where(view.visible[place], np.stack([row for _, row in strips]), np.nan)
    high = float(np.nanmax(values, initial=0.0)) or 1.0
    return Grid(
        values=values,
        row_labels=tuple(name for name, _ in strips),
        column_labels=tuple(keys),
        low=-high,
        high=high,
        words=tuple(tuple("" if math.isnan(v) else _share(v) for v in row) for row in values.tolist()),
        tips=tuple(
            tuple(f"{name}: {percent_text(v)} on “{key}”" for key, v in zip(keys, row, strict=True))
            for (name, _), row in zip(strips, values.tolist(), strict=True)
        ),
        least_width=34.0,
        has_numbers=True,
    )


def _share(value: float) -> str:
    """ ".31"; "" for what rounds to nothing."""
    text = f"{value:.2f}"
    return "" if text == "0.00" else text.removeprefix("0")


def weights_sentences(
    view: AdversarialAttentionView, keys: Sequence[str], unit: Unit, sites: Sequence[SiteRef]
) -> tuple[str, str]:
    """What was found that leaves the answer, and what changes it; while it is searched how far it is."""
    return same_sentence(view, unit, sites), change_sentence(view, keys)


def same_sentence(view: AdversarialAttentionView, unit: Unit, sites: Sequence[SiteRef]) -> str:
    most, far = from_nats(math.log(2), unit), from_nats(float(view.same.divergence.mean()), unit)
    of = whose(view, sites)
    if far == 0:
        return f"No other weights {of} were found yet." if not view.searched else f"No other weights {of} were found."
    epsilon = f"{view.request.epsilon:g}"
    mean = ", the mean over heads" if len(view.heads) > 1 else ""
    coming = "" if view.searched else " So far."
    return (
        f"Other weights {of}, same answer: Jensen-Shannon divergence {value_text(far)} of at most "
        f"{value_text(most)} {unit}{mean}; the answer moved by {value_text(view.same.distance)} in total variation "
        f"distance, where {epsilon} was allowed: {answers(view, view.same)}.{coming}"
    )


def change_sentence(view: AdversarialAttentionView, keys: Sequence[str]) -> str:
    parts = []
    if view.blocked is not None:
        parts.append(
            f"Without “{keys[view.blocked.source]}” ({percent_text(view.blocked.mass)} of the weight): "
            f"{_changed(view, view.blocked)}."
        )
    elif view.blocks_done:
        parts.append("No key blocked by itself makes another answer likeliest.")
    if view.moved is not None:
        target = view.moved.target
        assert target is not None
        parts.append(
            f"Least move: {percent_text(view.moved.mass)} of the weight from “{keys[view.moved.source]}” to "
            f"“{keys[target]}”: {_changed(view, view.moved)}."
        )
    elif view.moves_done:
        some = f" of {view.moves:,} (those from the keys with the most weight)" if view.tried < view.moves else ""
        also = "Nor does moving" if view.blocked is None else "No other answer comes of moving"
        parts.append(f"{also} one key's weight to another: {view.tried:,} moves{some} were tried.")
    if not view.moves_done and view.searched:
        parts.append(f"{view.done:.0%} done.")
    return " ".join(parts)


def _changed(view: AdversarialAttentionView, change: Moved) -> str:
    best = change.rerun.best
    return f"“{plain(best.label)}” {percent_text(best.probability)} is likeliest, {answers(view, change.rerun)}"


def answers(view: AdversarialAttentionView, rerun: Rerun) -> str:
    """What was likeliest, before and after: "“Tom” 67.9 % → 67.6 %"."""
    before, after = percent_text(view.before.probability), percent_text(rerun.former.probability)
    return f"“{plain(view.before.label)}” {before} → {after}"


def whose(view: AdversarialAttentionView, sites: Sequence[SiteRef]) -> str:
    """ "of layer 5, head 5", "of all 8 heads of layer 5", "of all 64 heads", "of all 32 heads of cross-attention"."""
    site, head = view.heads[0]
    if view.request.scope == "head":
        return f"of {name_of_head(site, head, sites)}"
    of = f" of {layer_name(site, sites)}" if view.request.scope == "layer" else ""
    if view.request.scope == "stack" and len({each.stack for each in sites}) > 1:
        of = " of cross-attention" if site.stack == "cross" else f" of the {site.stack}"
    return f"of all {len(view.heads)} heads{of}"
