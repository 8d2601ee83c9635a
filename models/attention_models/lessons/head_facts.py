"""What can be said of a whole head: which mask it has, which keys a row of it sees, and its role."""

from __future__ import annotations

import numpy as np

from attention_models.lessons.reading import Reading
from attention_models.protocol.facts import NO_ROLE, OTHER_MASK, spans
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.roles import RolesView, plain_roles
from attention_models.roles.roles import head_roles

_COUNTED = ("padding", "window", "blocks", "prefix")
"""Kinds with a number, which the first row, the last one or the first column tells."""


def visible_keys(r: Reading) -> str:
    """Places of the keys that the query can attend to: "0–4, 7"."""
    return spans(np.flatnonzero(_visible(r, [r.query])[0]).tolist())


def mask(r: Reading) -> str:
    """The name of the kind of mask that leaves just these cells visible, by itself or along with the causal mask."""
    visible = _visible(r)
    if visible.all():
        return "none"
    rows, keys = visible.shape
    if rows != keys:
        return OTHER_MASK
    q, k = np.arange(rows)[:, None], np.arange(keys)
    causal = k <= q
    if np.array_equal(visible, causal):
        return "causal"
    first, last, seeing_first = int(visible[0].sum()), int(visible[-1].sum()), int(visible[:, 0].sum())
    numbers = {"padding": keys - last, "window": max(first, last), "blocks": max(1, seeing_first), "prefix": first}
    for name in _COUNTED:
        cells = np.broadcast_to(MASK_KINDS[name].allows(q, k, numbers[name], keys), visible.shape)
        if np.array_equal(visible, cells) or np.array_equal(visible, cells & causal):
            return name
    return OTHER_MASK


def role(r: Reading) -> str:
    """The name of the role that the badge of All heads shows of this head; `NO_ROLE` where it has none."""
    found = plain_roles(_roles(r)).get((r.site.ref, r.fact.head))
    return NO_ROLE if found is None else found.name


def role_score(r: Reading) -> float:
    """How much the head has the role `word`, over the texts that come along."""
    return _of_role(r, _roles(r).of(r.site.ref, r.fact.head)[r.fact.word])


def even_role_score(r: Reading) -> float:
    """What a head would score in the role `word` that attends evenly to all it sees."""
    found = _roles(r)
    return _of_role(r, float(found.even[found.roles.index(r.fact.word), found.sites.index(r.site.ref)]))


def _of_role(r: Reading, score: float) -> float:
    if np.isnan(score):
        raise LookupError(f"heads of this stack have no score as “{r.fact.word}”")
    return score


def _roles(r: Reading) -> RolesView:
    """Of the model as it is, without interventions."""
    return head_roles(r.model, should_stop=r.should_stop)


def _visible(r: Reading, rows: list[int] | None = None) -> np.ndarray:
    """(rows, keys) bool."""
    if rows is None and r.site.is_long:
        raise ValueError("the text is too long")
    masked = r.trace.masked(r.site, r.fact.head, rows)
    count = r.site.queries if rows is None else len(rows)
    return np.ones((count, r.site.keys), bool) if masked is None else ~masked
