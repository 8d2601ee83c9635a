"""What can be changed in a run: values that say it. They are frozen, torch-free and travel in requests.

    run(model, text, interventions=[Scale(0.5), Mask("window", window=8, site=("decoder", 5), head=5)])
    run(model, text, interventions=[Ablation("mlp", ("decoder", 5)), Ablation("head", ("decoder", 3), 2, fill="mean")])

Each applies to every attention site and head unless told otherwise. Scale factors multiply. Masks build on one another,
the wider scope first: everywhere, every layer's head, a layer, one head; of equal scopes in the order given. Painted
cells come last, so that no other mask covers what a person drew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from attention_models.protocol.ablation import Ablation, describe_ablation
from attention_models.protocol.mask_kinds import MASK_KINDS, Cell, MaskKind
from attention_models.protocol.values import MOST, Site, SiteRef

PositionMode = Literal["off", "shift"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Multiplies the scaled scores: `factor` 1 is as trained, below 1 softens, above 1 sharpens, 0 makes rows even.

    The same knob as a softmax temperature of 1 / factor.

    Raises:
        ValueError: a factor that is negative or no number.
    """

    factor: float
    site: SiteRef | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.factor):
            raise ValueError(f"A scale factor of {self.factor} is no number to multiply by: give 0 or more.")
        if self.factor < 0:
            raise ValueError(
                f"A scale factor of {self.factor} would make the worst fit the best: give 0 (all keys alike) or more."
            )
        _settle_scope(self)


@dataclass(frozen=True, slots=True)
class Mask:
    """Another mask in place of the trained one.

    Args:
        kind: one of `attention_models.protocol.mask_kinds.MASK_KINDS`: "trained", "none", "causal", "padding",
            "window", "blocks", "full", "prefix" or "painted".
        window: the number n of the kinds that count something.
        cells: of a painted mask: (query, key) pairs to mask, or (query, key, visible).
        site: the attention module, as (stack, layer); all self-attention if None.
        head: counts from 0; all heads if None.

    Raises:
        ValueError: no such kind, a window below 1 or beyond `MOST`, a cell beyond it, or painted without cells.
    """

    kind: str
    window: int | None = None
    cells: tuple[Cell, ...] | None = None
    site: SiteRef | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in MASK_KINDS:
            raise ValueError(f"There is no mask “{self.kind}”: choose one of {', '.join(MASK_KINDS)}.")
        counts = self.definition.counts
        if counts:
            if self.window is None or not 1 <= self.window <= MOST:
                given = "" if self.window is None else f", not {self.window}"
                raise ValueError(f"A “{self.kind}” mask needs a number from 1 to {MOST:,} ({counts}){given}.")
        elif self.window is not None:
            raise ValueError(f"A “{self.kind}” mask takes no number.")
        if self.definition.takes_cells != bool(self.cells):
            raise ValueError("Cells go with a painted mask, and a painted mask needs cells.")
        if self.cells is not None:
            object.__setattr__(self, "cells", tuple(_cell(cell) for cell in self.cells))
        _settle_scope(self)

    @property
    def definition(self) -> MaskKind:
        """What there is to know of its kind."""
        return MASK_KINDS[self.kind]

    @property
    def label(self) -> str:
        """ "window 8" """
        return self.definition.label(self.window, self.cells or ())

    @property
    def replaces(self) -> bool:
        """Whether nothing of the masks before it stays."""
        return self.definition.replaces

    @property
    def paints(self) -> bool:
        """Whether it lists single cells."""
        return bool(self.cells)

    def allows(self, q: Any, k: Any, keys: Any) -> Any:
        """Whether key `k` is visible to query `q` of `keys` keys: see `MaskKind.allows`. Not of a painted mask."""
        return self.definition.allows(q, k, self.window or 0, keys)

    def allows_cache(self, prompt: int) -> bool:
        """Whether keys and values may be kept while text is written after `prompt` tokens."""
        return self.definition.allows_cache(prompt, self.window or 0, self.cells or ())


@dataclass(frozen=True, slots=True)
class Positions:
    """Takes the model's sense of order away ("off"), or counts positions from `by` instead of 0 ("shift").

    Raises:
        ValueError: no such mode, or a negative shift.
    """

    mode: PositionMode
    by: int = 0

    def __post_init__(self) -> None:
        if self.mode not in get_args(PositionMode):
            raise ValueError(f"Positions can be off or shifted, not “{self.mode}”.")
        if self.by < 0:
            raise ValueError(f"Positions can be shifted by 0 or more, not by {self.by}: none is negative.")


@dataclass(frozen=True, slots=True)
class Adapter:
    """Takes the LoRA adapter that the model was opened with out of its weights: the model before it was tuned."""

    on: bool = False


Intervention = Scale | Mask | Positions | Adapter | Ablation


def describe(intervention: Intervention) -> str:
    """What it does, in a few words: "scores x 0.5 in decoder layer 5, head 5"."""
    match intervention:
        case Scale(factor=factor):
            what = f"scores × {factor:.3g}"
        case Mask(window=window, cells=cells):
            what = intervention.definition.describe(window, cells or ())
        case Adapter(on=on):
            return f"adapter {'on' if on else 'off'}"
        case Positions(mode="off"):
            return "positions off"
        case Positions(by=by):
            return f"positions from {by}"
        case Ablation():
            return describe_ablation(intervention)
    return f"{what}, {scope(intervention)}"


def scope(intervention: Scale | Mask) -> str:
    if intervention.site is None:
        return "everywhere" if intervention.head is None else f"head {intervention.head} of every layer"
    where = f"{intervention.site.stack} layer {intervention.site.layer}"
    return where if intervention.head is None else f"{where}, head {intervention.head}"


def applies(intervention: Scale | Mask, site: Site) -> bool:
    """Whether it changes anything at `site`. Masks that count places are for self-attention, unless told otherwise."""
    if intervention.site is not None:
        return intervention.site == site.ref
    return not (isinstance(intervention, Mask) and site.stack == "cross")


def precedence(mask: Mask) -> tuple[bool, bool, bool]:
    """Sorts masks into the order in which they build on one another: wide scopes first, painted cells last."""
    return mask.paints, mask.site is not None, mask.head is not None


def factor_at(interventions: Iterable[Intervention], site: Site, head: int) -> float:
    """What the scores of one head are multiplied by: the product of every scale that applies to it."""
    scales = [i for i in interventions if isinstance(i, Scale) and applies(i, site) and i.head in (None, head)]
    return math.prod(scale.factor for scale in scales)


def effective_masks(masks: Iterable[Mask]) -> list[Mask]:
    """Of the masks that apply to one head, those that still say something, in the order in which they build.

    What comes before a mask that replaces it says nothing any more.
    """
    ordered = sorted(masks, key=precedence)
    start = max((i for i, mask in enumerate(ordered) if mask.replaces), default=0)
    return ordered[start:]


def same_slot(a: Intervention, b: Intervention) -> bool:
    """Whether one replaces the other in a list: the same knob turned further."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (Positions, Adapter)) or isinstance(b, (Positions, Adapter)):
        return True
    if isinstance(a, Ablation) or isinstance(b, Ablation):
        return (
            isinstance(a, Ablation) and isinstance(b, Ablation) and (a.part, a.site, a.unit) == (b.part, b.site, b.unit)
        )
    painted = isinstance(a, Mask) and isinstance(b, Mask) and a.paints != b.paints
    return not painted and (a.site, a.head) == (b.site, b.head)


def acts_outside_of_attention(intervention: Intervention) -> bool:
    """Whether it can be done in a model whose attention cannot be reached into."""
    if isinstance(intervention, Ablation):
        return intervention.part != "head"
    return isinstance(intervention, (Positions, Adapter))


def is_neutral(intervention: Intervention) -> bool:
    """Whether it changes nothing, as a slider set back to the trained value does."""
    match intervention:
        case Scale(factor=factor):
            return factor == 1
        case Mask():
            return not intervention.definition.changes
        case Positions(mode=mode, by=by):
            return mode == "shift" and by == 0
        case Adapter(on=on) | Ablation(on=on):
            return on


def parse_mask(text: str) -> Mask:
    """A mask as written on the command line: "causal", "window:8".

    Raises:
        ValueError: not of that form, or not a mask.
    """
    kind, _, number = text.partition(":")
    try:
        window = int(number) if number else None
    except ValueError as cause:
        raise ValueError(f"“{text}” is no mask: after the colon comes a number, as in window:8.") from cause
    if kind in MASK_KINDS and not MASK_KINDS[kind].spelling:
        raise ValueError(f"A {kind} mask cannot be written here; choose another kind.")
    return Mask(kind, window=window)


def mask_spellings() -> tuple[str, ...]:
    """Every mask that `parse_mask` reads and that changes something, with an example of its number."""
    return tuple(kind.spelling for kind in MASK_KINDS.values() if kind.changes and kind.spelling)


def check(interventions: Iterable[Intervention], sites: Iterable[Site]) -> None:
    """Refuse what names a site or a head that did not run.

    Raises:
        ValueError: the sentence names it.
    """
    known = {site.ref: site for site in sites}
    most = max((site.heads for site in known.values()), default=0)
    predicting = "decoder" if any(ref.stack == "decoder" for ref in known) else "encoder"
    for item in interventions:
        if isinstance(item, (Positions, Adapter)) or (isinstance(item, Ablation) and item.part != "head"):
            continue
        if isinstance(item, Ablation):
            item = item.of_stack(predicting)
        head = item.unit if isinstance(item, Ablation) else item.head
        if item.site is not None and item.site not in known:
            raise ValueError(f"“{describe(item)}”: this model has no such layer.")
        heads = known[item.site].heads if item.site is not None else most
        if head is not None and not 0 <= head < heads:
            raise ValueError(f"“{describe(item)}”: there are only heads 0 to {heads - 1}.")


def _settle_scope(intervention: Scale | Mask) -> None:
    """Accept a `Site` or a plain (stack, layer) for `site`."""
    site: Any = intervention.site
    if isinstance(site, Site):
        object.__setattr__(intervention, "site", site.ref)
    elif isinstance(site, (tuple, list)):
        object.__setattr__(intervention, "site", SiteRef(*site))


def _cell(cell: Any) -> Cell:
    query, key, *rest = cell
    if not (0 <= query < MOST and 0 <= key < MOST):
        raise ValueError(f"There is no cell ({query}, {key}): tokens count from 0 to {MOST - 1:,} at most.")
    return int(query), int(key), bool(rest[0]) if rest else False
