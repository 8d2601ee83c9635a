"""Interventions and sites as files have them. It is untrusted: every value is checked before any is used. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from attention_explorer.session.state import InterventionItem
from attention_models.protocol.ablation import Ablation, Fill
from attention_models.protocol.interventions import Adapter, Intervention, Mask, PositionMode, Positions, Scale
from attention_models.protocol.mask_kinds import Cell
from attention_models.protocol.values import MOST, SiteRef

Place = Annotated[int, Meta(ge=0, lt=MOST)]
Stack = Literal["decoder", "encoder", "cross"]


class SiteRecord(msgspec.Struct, forbid_unknown_fields=True):
    stack: Stack
    layer: Place


class _Scale(msgspec.Struct, tag_field="kind", tag="scale", forbid_unknown_fields=True):
    factor: float
    site: SiteRecord | None = None
    head: Place | None = None
    on: bool = True


class _Mask(msgspec.Struct, tag_field="kind", tag="mask", forbid_unknown_fields=True):
    mask: str  # `Mask` refuses a kind that there is not
    window: int | None = None
    cells: list[tuple[Place, Place, bool]] | None = None
    site: SiteRecord | None = None
    head: Place | None = None
    on: bool = True


class _Positions(msgspec.Struct, tag_field="kind", tag="positions", forbid_unknown_fields=True):
    mode: PositionMode
    by: Place = 0
    on: bool = True


class _Adapter(msgspec.Struct, tag_field="kind", tag="adapter", forbid_unknown_fields=True):
    adapter: bool  # whether it is put on
    on: bool = True


class _Skip(msgspec.Struct, tag_field="kind", tag="skip", forbid_unknown_fields=True, omit_defaults=True):
    part: str  # `Ablation` refuses a part that there is not
    stack: Literal["", "decoder", "encoder", "cross"]
    layer: Place
    on: bool = True
    unit: Place | None = None
    fill: Fill = "zero"
    position: Place | None = None


Change = _Scale | _Mask | _Positions | _Adapter | _Skip
"""An intervention, as files have it."""


def record(listed: InterventionItem) -> Change:
    match listed.value:
        case Scale() as scale:
            return _Scale(scale.factor, site_record(scale.site), scale.head, listed.on)
        case Mask() as mask:
            cells = None if mask.cells is None else list(mask.cells)
            return _Mask(mask.kind, mask.window, cells, site_record(mask.site), mask.head, listed.on)
        case Positions() as positions:
            return _Positions(positions.mode, positions.by, listed.on)
        case Adapter() as adapter:
            return _Adapter(adapter.on, listed.on)
        case Ablation() as skip:
            stack: Any = skip.site.stack
            return _Skip(skip.part, stack, skip.site.layer, listed.on, skip.unit, skip.fill, skip.position)


def intervention(record: Change) -> Intervention:
    """Raises ValueError where the intervention itself refuses what the record says."""
    match record:
        case _Scale():
            return Scale(record.factor, site_of(record.site), record.head)
        case _Mask():
            cells: tuple[Cell, ...] | None = None if record.cells is None else tuple(record.cells)
            return Mask(record.mask, record.window, cells, site_of(record.site), record.head)
        case _Positions():
            return Positions(record.mode, record.by)
        case _Adapter():
            return Adapter(record.adapter)
        case _Skip():
            ref = SiteRef(record.stack, record.layer)
            return Ablation(record.part, ref, record.unit, record.fill, record.position)


def site_record(site: SiteRef | None) -> SiteRecord | None:
    return None if site is None else SiteRecord(site.stack, site.layer)  # type: ignore[arg-type]


def site_of(site: SiteRecord | None) -> SiteRef | None:
    return None if site is None else SiteRef(site.stack, site.layer)
