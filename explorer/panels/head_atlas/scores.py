"""What the atlas can be coloured by: the choices, and what is said of each. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from explorer.paths import resource
from models.protocol.roles import MEASURES, PATTERNS, ROLE_NAMES, ROLES, HeadQuestion, RolesView
from models.protocol.values import SiteRef

WEIGHTS = "weights"
ROLE = "role:"

_SURE = 0.4  # a share of attention from which on it is a head's role
_LIFT = 1.5  # times what an even head scores
_RESTS, _RESTING = ("first", "special"), 0.75


def choices() -> list[tuple[str, str]]:
    """(what is chosen, what the list calls it); of a heading nothing is chosen."""
    listed = [(WEIGHTS, "Weights"), ("", "On this text: attends to")]
    listed += [(role.name, role.title) for role in PATTERNS]
    listed += [("", "Over many texts: attends to")]
    listed += [(f"{ROLE}{role.name}", role.title) for role in PATTERNS]
    listed += [("", "Over many texts")]
    listed += [(f"{ROLE}{role.name}", role.title) for role in MEASURES]
    listed += [("", "Over many texts: by grammar")]
    listed += [(f"{ROLE}{role.name}", role.title) for role in ROLES if role.kind == "relation"]
    return listed


def title_of(question: HeadQuestion, query: str, key: str) -> str:
    """What every head is asked, as a clause: "attends to the token before"."""
    if question.is_pattern:
        return f"attends to {ROLE_NAMES[question.kind].title}"
    return {
        "cell": f"from “{query}” to “{key}”",
        "row": f"attends from “{query}” as head {question.site.layer if question.site else 0}.{question.head} does",
        "column": f"attends to “{key}”",
        "painted": "attends to the painted cells",
    }[question.kind]


@lru_cache(maxsize=64)
def page_of(role: str) -> str:
    """The page of a role: what it says, its formula and source, and what it does not show."""
    name = "relation" if ROLE_NAMES[role].kind == "relation" else role
    page: Mapping[str, str] = tomllib.loads(resource(f"roles/{name}.toml").read_text(encoding="utf-8"))
    return (
        f"{page['says']}\n\nFormula: {page['formula']}\n\nSource: {page['source']}\n\n"
        f"What it does not show: {page['limits']}"
    )


def badges_of(view: RolesView) -> dict[tuple[SiteRef, int], str]:
    """The role of each head that plainly has one: a pattern or relation far beyond what even attention gives.

    Resting on the first token, or on punctuation, is a head's role where it has no other.
    """
    found: dict[tuple[SiteRef, int], str] = {}
    for i, site in enumerate(view.sites):
        for head in range(view.scores.shape[2]):
            best = {True: (0.0, ""), False: (0.0, "")}  # whether it is a place to rest on
            for place, name in enumerate(view.roles):
                role, score, even = ROLE_NAMES[name], view.scores[place, i, head], view.even[place, i]
                if role.kind == "measure" or np.isnan(score):
                    continue
                rests = name in _RESTS
                if score >= max(_RESTING if rests else _SURE, _LIFT * even):
                    best[rests] = max(best[rests], (float(score), role.badge))
            badge = best[False][1] or best[True][1]
            if badge:
                found[site, head] = badge
    return found
