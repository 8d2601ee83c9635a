"""What the atlas can be coloured by: the choices, and what is said of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

import numpy as np

from attention_explorer.paths import resource
from attention_explorer.widgets.token_text import apart
from attention_models.files.toml_files import decode_toml
from attention_models.protocol.roles import (
    MEASURES,
    PATTERNS,
    ROLE_NAMES,
    ROLES,
    HeadQuestion,
    Role,
    RolesView,
    plain_roles,
)
from attention_models.protocol.values import Site, SiteRef

WEIGHTS = "weights"
ROLE = "role:"


@dataclass(frozen=True)
class Scores:
    """What the heads are coloured by."""

    values: np.ndarray  # (sites, heads) float64
    even: np.ndarray  # (sites,)
    title: str
    why: tuple[str, ...]  # of each site, why it has none
    page: str = ""
    signed: bool = False


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


def clause_of(role: Role) -> str:
    """What a head does that has this role: "attends to the token before"."""
    return {
        "pattern": f"attends to {role.title}",
        "measure": role.title,
        "relation": f"attends by grammar, {role.title}",
    }[role.kind]


def scores_of_role(found: RolesView, role: Role, sites: Sequence[Site]) -> Scores:
    """What was found of a role over many texts, in the order of a run's sites."""
    place = found.roles.index(role.name)
    order = [found.sites.index(site.ref) if site.ref in found.sites else -1 for site in sites]
    values = np.array([found.scores[place, i] if i >= 0 else np.full(found.scores.shape[2], np.nan) for i in order])
    even = np.array([found.even[place, i] if i >= 0 else np.nan for i in order])
    said = {stack: sentence for name, stack, sentence in found.why if name == role.name}
    title = f"{clause_of(role)}, over {found.texts:,} texts of {probe_name(found.request.probe)}"
    why = tuple(said.get(site.stack, "") for site in sites)
    return Scores(values, even, title, why, _left_out(found) + page_of(role.name), role.name == "ov-copying")


def probe_name(path: str) -> str:
    """What the texts are called that roles were found on: "ours" for those that come along, which have no path."""
    return apart(PurePath(path).name) if path else "ours"


def _left_out(found: RolesView) -> str:
    """What was left out of the texts, and why."""
    if not found.left_out:
        return ""
    count = len(found.left_out)
    many = f"{count:,} texts are left out. " if count > 1 else ""
    return f"{many}{found.left_out[0]}\n\n"


def explained(role: Role, probe: str) -> str:
    """What hovering a badge says: the role, what is measured of it, and on which file of texts, if any."""
    over = f", over texts of {probe_name(probe)}" if probe else ""
    return f"“{role.badge}”: {clause_of(role)}{over}.\n{_page(role.name)['says']}\nDouble-click for its page."


@lru_cache(maxsize=64)
def _page(role: str) -> Mapping[str, str]:
    name = "relation" if ROLE_NAMES[role].kind == "relation" else role
    return decode_toml(resource(f"roles/{name}.toml").read_text(encoding="utf-8"))


def page_of(role: str) -> str:
    """The page of a role: what it says, its formula and source, and what it does not show."""
    page = _page(role)
    return (
        f"{page['says']}\n\nFormula: {page['formula']}\n\nSource: {page['source']}\n\n"
        f"What it does not show: {page['limits']}"
    )


@lru_cache(maxsize=2)  # asked for again and again while the (i) is open
def badges_of(view: RolesView) -> Mapping[tuple[SiteRef, int], Role]:
    """The role of each head that plainly has one."""
    return plain_roles(view)
