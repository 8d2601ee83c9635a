"""What a head can be found to do, by name: what it attends to, what is measured of it over texts. No torch.

The formula, the source and the limits of each stand in `resources/roles/`, the computing in `attention_models.roles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from attention_models.protocol.request import Lane, Request, Result, RunRequest
from attention_models.protocol.values import CheckpointInfo, SiteRef

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Role:
    """One thing that heads do."""

    name: str  # in files, on the command line and in Python
    title: str  # after "attends to" of a pattern; of a measure and a relation as it stands
    badge: str  # in a few letters, on a thumbnail
    kind: Literal["pattern", "measure", "relation"]


PATTERNS = (
    Role("previous", "the token before", "before", "pattern"),
    Role("self", "itself", "itself", "pattern"),
    Role("first", "the first token", "first", "pattern"),
    Role("special", "punctuation and special tokens", "punct.", "pattern"),
    Role("copy", "an earlier copy of itself", "copy", "pattern"),
    Role("induction", "what followed an earlier copy", "induct.", "pattern"),
    Role("next", "a copy of the word that comes next", "next", "pattern"),
    Role("rare", "rare words", "rare", "pattern"),
)
"""What a query's keys can be told apart by."""

MEASURES = (
    Role("ov-copying", "writes what it reads (OV copying)", "OV copy", "measure"),
    Role("positional", "explained by distance", "distance", "measure"),
    Role("breadth", "attends broadly", "broad", "measure"),
)

RELATIONS = {  # of Universal Dependencies, and what its two ends are called
    "nsubj": ("subject", "verb"),
    "obj": ("object", "verb"),
    "det": ("determiner", "noun"),
    "amod": ("adjective", "noun"),
    "poss": ("possessor", "noun"),
    "case": ("preposition", "noun"),
    "aux": ("auxiliary", "verb"),
    "advmod": ("adverb", "what it modifies"),
    "conj": ("second of a list", "first"),
}


def _both_ways() -> tuple[Role, ...]:
    found = []
    for name, (dependent, head) in RELATIONS.items():
        found.append(Role(f"{name}-to-head", f"{dependent} → {head}", f"{name}→", "relation"))
        found.append(Role(f"{name}-to-dependent", f"{head} → {dependent}", f"→{name}", "relation"))
    return tuple(found)


ROLES = (*PATTERNS, *MEASURES, *_both_ways())
ROLE_NAMES = {role.name: role for role in ROLES}

_ACROSS = {
    "previous": "have no token before one in common",
    "self": "never are one token",
    "copy": "come in no common order, so none is earlier",
    "induction": "come in no common order, so none is earlier",
}
_OF_PATCHES = {
    "previous": "lie in two dimensions: what is before one is told by distance (positional)",
    "special": "are no punctuation",
    "copy": "are never copies of each other",
    "induction": "are never copies of each other",
    "next": "do not come one after the other",
    "rare": "are no words",
}


def why_not(role: str, info: CheckpointInfo, stack: str) -> str:
    """Why heads of `stack` cannot have this role in a model of this kind, as a sentence; "" where they can."""
    kind = ROLE_NAMES[role].kind
    if info.family == "vision":
        if kind == "relation":
            return "Patches of a picture have no grammar."
        if role in _OF_PATCHES:
            return f"Patches of a picture {_OF_PATCHES[role]}."
    if role == "ov-copying":
        if info.family != "causal" or stack != "decoder":
            return "Copying is seen where one matrix leads from a token's embedding to its logit: in causal models."
        return info.weights_only
    if stack == "cross":
        if kind == "relation":
            return "Grammatical relations hold within one text, and cross-attention looks from one text at another."
        if role in _ACROSS:
            return f"In cross-attention queries and keys are tokens of two texts: they {_ACROSS[role]}."
    if role == "next" and stack == "encoder":
        return "In an encoder the word that comes next is there to be seen, so nothing has to be copied."
    if kind == "relation" and stack == "decoder" and info.family == "seq2seq":
        return "Whose relations are known are the texts that are read; the decoder attends to what it writes."
    return ""


@dataclass(frozen=True, slots=True)
class HeadQuestion:
    """What is asked of every head of a run: how much it does something.

    `kind` is the name of a pattern, or
        "cell": the weight of query and key;
        "row": what the row of `query` has in common with that of `head` of `site`, the sum of the lesser weights;
        "column": the mean weight to the key, over the queries to which it is visible;
        "painted": the weight on cells that a person painted, the mean over the queries that have some.

    All but the patterns are about the heads of one stack, that of `site`.
    """

    kind: str
    site: SiteRef | None = None
    head: int = 0
    query: int = 0
    key: int = 0
    cells: tuple[tuple[int, int], ...] = ()  # (query, key)

    def __post_init__(self) -> None:
        if self.kind in ("cell", "row", "column", "painted"):
            if self.site is None:
                raise ValueError(f"A question about a {self.kind} names the site whose map it is of.")
        elif self.kind not in ROLE_NAMES or ROLE_NAMES[self.kind].kind != "pattern":
            names = ", ".join(role.name for role in PATTERNS)
            raise ValueError(f"There is no question “{self.kind}”: it is cell, row, column, painted, {names}.")

    @property
    def is_pattern(self) -> bool:
        return self.kind in ROLE_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichHeadsRequest(RunRequest):
    """How much each head of run `run` does what `question` says. Answered by `WhichHeadsView`.

    Of a long text an answer holds what could be computed in a moment; asked again with `have` set to the share that is
    there, the engine goes on from it.
    """

    lane: ClassVar[Lane] = Lane("view:which heads")
    activity: ClassVar[str] = "asking every head"
    answered_by: ClassVar[str] = "attention_models.roles.which_heads:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.which_heads:write"
    question: HeadQuestion
    have: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WhichHeadsView(Result):
    request: WhichHeadsRequest
    scores: np.ndarray  # (sites, heads) float64, 0 to 1; NaN where a site cannot be asked or has fewer heads
    even: np.ndarray  # (sites,) float64: what a head would score that attends evenly to all it can see
    queries: np.ndarray  # (sites,) int: how many queries were counted
    why: tuple[str, ...]  # of each site a sentence where it cannot be asked, else ""
    done: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesRequest(Request):
    """The roles of every head of the open model over the probe texts. Answered by `RolesView`.

    It is found by many of these, each with the `have` of the answer before it, so that everything else is served in
    between; only the last answer has scores.
    """

    lane: ClassVar[Lane] = Lane("roles")
    activity: ClassVar[str] = "finding the roles of all heads"
    answered_by: ClassVar[str] = "attention_models.roles.roles:answer"
    probe: str = ""  # a file of texts: lines, or CoNLL-U with gold edges; "" for the texts that come along
    have: float = 0.0
    stop: bool = False  # forget what was found so far


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRequest(RolesRequest):
    """The scores of one role, to be written as a script: answered, all roles are found."""

    activity: ClassVar[str] = "asking every head for one role"
    printed_by: ClassVar[str] = "attention_models.scripts.role:write"
    role: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RolesView(Result):
    request: RolesRequest
    sites: tuple[SiteRef, ...]
    roles: tuple[str, ...]
    scores: np.ndarray  # (roles, sites, heads) float64; NaN where there is none
    even: np.ndarray  # (roles, sites) float64: the score of a head that attends evenly; of a relation of the best
    # fixed distance, where that is more; NaN of measures
    counts: np.ndarray  # (roles, sites) int: queries (of relations words, of the rest rows) that were counted
    why: tuple[tuple[str, str, str], ...]  # (role, stack, sentence) where a stack has none
    texts: int
    tokens: int
    left_out: tuple[str, ...] = ()  # sentences about texts that could not be run
    done: float = 1.0  # the share of the texts that was run; below 1 there are no scores yet
    seconds: float = 0.0

    def of(self, site: SiteRef, head: int) -> dict[str, float]:
        """Every score of one head, by role."""
        place = self.sites.index(site)
        return {role: float(self.scores[i, place, head]) for i, role in enumerate(self.roles)}

    def ranked(self, role: str, most: int = 10) -> list[tuple[SiteRef, int, float]]:
        """The heads with the highest score in a role, that first. ValueError where there is no such role."""
        if role not in self.roles:
            raise ValueError(f"There is no role “{role}”: there are {', '.join(self.roles)}.")
        return ranked_heads(self.scores[self.roles.index(role)], self.sites, most)


def ranked_heads(scores: np.ndarray, sites: Sequence[SiteRef], most: int) -> list[tuple[SiteRef, int, float]]:
    """Of scores (sites, heads) the `most` highest, that first; NaN is none."""
    import numpy as np

    order = np.argsort(np.where(np.isnan(scores), -np.inf, scores), axis=None, kind="stable")[::-1]
    places = [divmod(int(place), scores.shape[1]) for place in order[: min(most, np.count_nonzero(~np.isnan(scores)))]]
    return [(sites[site], head, float(scores[site, head])) for site, head in places]


_SURE = 0.4  # a share of attention from which on it is a head's role
_LIFT = 1.5  # times what an even head scores
_RESTS, _RESTING = ("first", "special"), 0.75


def plain_roles(view: RolesView) -> dict[tuple[SiteRef, int], Role]:
    """The role of each head that plainly has one: a pattern or relation far beyond what even attention gives.

    Resting on the first token, or on punctuation, is a head's role where it has no other.
    """
    import numpy as np

    found: dict[tuple[SiteRef, int], Role] = {}
    for i, site in enumerate(view.sites):
        for head in range(view.scores.shape[2]):
            best: dict[bool, tuple[float, Role | None]] = {True: (0.0, None), False: (0.0, None)}  # rests, or not
            for place, name in enumerate(view.roles):
                role, score, even = ROLE_NAMES[name], view.scores[place, i, head], view.even[place, i]
                if role.kind == "measure" or np.isnan(score):
                    continue
                rests = name in _RESTS
                if score >= max(_RESTING if rests else _SURE, _LIFT * even):
                    best[rests] = max(best[rests], (float(score), role), key=lambda one: one[0])
            chosen = best[False][1] or best[True][1]
            if chosen is not None:
                found[site, head] = chosen
    return found
