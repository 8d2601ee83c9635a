"""What can be changed in a run: values that say it. They are frozen, torch-free and travel in requests.

    run(model, text, interventions=[Scale(0.5), Mask("window", window=8, site=("decoder", 5), head=5)])
    run(model, text, interventions=[Skip("mlp", ("decoder", 5))])

Each applies to every attention site and head unless told otherwise. Scale factors multiply. Masks build on one another,
the wider scope first: everywhere, every layer's head, a layer, one head; of equal scopes in the order given. Painted
cells come last, so that no other mask covers what a person drew.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from models.protocol.mask_kinds import MASK_KINDS, Cell, MaskKind
from models.protocol.values import Site, SiteRef

PositionMode = Literal["off", "shift"]

MOST = 1 << 20
"""No window, block or cell reaches further: more than any text here has tokens."""


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
        kind: one of `models.protocol.mask_kinds.MASK_KINDS`: "trained", "none", "causal", "padding", "window",
            "blocks", "full", "prefix" or "painted".
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
                raise ValueError(
                    f"A “{self.kind}” mask needs a number from 1 to {MOST:,} ({counts}), not {self.window}."
                )
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

    def allows(self, q: Any, k: Any, keys: int) -> Any:
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


MOST_NORMS = 9

SUBLAYERS = {"attention": "attention", "cross": "cross-attention", "mlp": "feed-forward network"}
"""What a block adds to the residual stream, by the name of the part, and in words."""

_NORM = re.compile(f"norm[1-{MOST_NORMS}]")
_SKIP = re.compile(r"(?:(?P<stack>[^.]*)\.)?(?P<layer>\d+)\.(?P<part>[^.]*)")


@dataclass(frozen=True, slots=True)
class Skip:
    """Switches a part of one block off.

    Of "attention", "cross" (cross-attention) and "mlp" (the feed-forward network) nothing is added to the residual
    stream, whether it would have been normalised before or after. Of "norm1", "norm2", ... the learned gain and bias
    are left out; what is normalised stays normalised. Norms count from 1 in the order in which they run in the block.

    Args:
        part: as above.
        site: the block, as (stack, layer); a number alone, or the stack "", is of the stack that predicts.
        on: True leaves the part as it is.

    Raises:
        ValueError: no such part, or a stack that has no blocks.
    """

    part: str
    site: SiteRef
    on: bool = False

    def __post_init__(self) -> None:
        if self.part not in SUBLAYERS and not _NORM.fullmatch(self.part):
            raise ValueError(
                f"A block has no part “{self.part}” that could be switched off: "
                f"choose {', '.join(SUBLAYERS)}, or norm1 to norm{MOST_NORMS}."
            )
        site: Any = self.site
        if isinstance(site, Site):
            site = site.ref
        elif isinstance(site, int):
            site = SiteRef("", site)
        elif isinstance(site, (tuple, list)):
            site = SiteRef(*site)
        if site.stack not in ("", "decoder", "encoder"):
            raise ValueError(
                f"“{site.stack}” is no stack of blocks: choose decoder or encoder. "
                "Cross-attention is a part, “cross”, of the decoder's blocks."
            )
        if not 0 <= site.layer < MOST:
            raise ValueError(f"There is no block {site.layer}: they count from 0.")
        object.__setattr__(self, "site", site)

    @property
    def norm(self) -> int | None:
        """Which norm of the block, counted from 1; None where it is no norm."""
        return None if self.part in SUBLAYERS else int(self.part.removeprefix("norm"))

    def of_stack(self, predicting: str) -> Skip:
        """With its stack named, in a model whose stack that predicts is called `predicting`."""
        return self if self.site.stack else replace(self, site=SiteRef(predicting, self.site.layer))


Intervention = Scale | Mask | Positions | Adapter | Skip


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
        case Skip():
            return _describe_skip(intervention)
    return f"{what}, {scope(intervention)}"


def _describe_skip(skip: Skip) -> str:
    """ "feed-forward network off, decoder layer 5"."""
    what = part_name(skip.part) if skip.norm is None else f"gain of {part_name(skip.part)}"
    return f"{what} {'on' if skip.on else 'off'}, {f'{skip.site.stack} layer {skip.site.layer}'.strip()}"


def part_name(part: str) -> str:
    """A part of a block in words: "feed-forward network", "norm 1"."""
    return SUBLAYERS.get(part) or f"norm {part.removeprefix('norm')}"


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


def skipped_part(interventions: Iterable[Intervention], site: SiteRef, predicting: str) -> Skip | None:
    """What switches the attention module at `site` off; None where nothing does. `predicting` as in `Skip.of_stack`."""
    part, block = ("cross", SiteRef("decoder", site.layer)) if site.stack == "cross" else ("attention", site)
    skips = (item.of_stack(predicting) for item in interventions if isinstance(item, Skip) and not item.on)
    return next((skip for skip in skips if (skip.part, skip.site) == (part, block)), None)


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
    if isinstance(a, Skip) or isinstance(b, Skip):
        return isinstance(a, Skip) and isinstance(b, Skip) and (a.part, a.site) == (b.part, b.site)
    painted = isinstance(a, Mask) and isinstance(b, Mask) and a.paints != b.paints
    return not painted and (a.site, a.head) == (b.site, b.head)


def is_neutral(intervention: Intervention) -> bool:
    """Whether it changes nothing, as a slider set back to the trained value does."""
    match intervention:
        case Scale(factor=factor):
            return factor == 1
        case Mask():
            return not intervention.definition.changes
        case Positions(mode=mode, by=by):
            return mode == "shift" and by == 0
        case Adapter(on=on) | Skip(on=on):
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


def parse_skip(text: str) -> Skip:
    """A part of a block as written on the command line: "5.mlp", "encoder.2.attention", "5.norm1".

    Raises:
        ValueError: not of that form, or no such part.
    """
    found = _SKIP.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"“{text}” names no part of a block: write the layer and the part, as in 5.mlp, 5.attention, "
            "encoder.2.mlp or 5.norm1."
        )
    return Skip(found["part"], SiteRef(found["stack"] or "", int(found["layer"])))


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
    for item in interventions:
        if isinstance(item, (Positions, Adapter, Skip)):
            continue
        if item.site is not None and item.site not in known:
            raise ValueError(f"“{describe(item)}”: this model has no such layer.")
        heads = known[item.site].heads if item.site is not None else most
        if item.head is not None and not 0 <= item.head < heads:
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
