"""What answers, losses and layers are called in Effects. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from attention_explorer.panels.selected_head import name_of_head
from attention_models.protocol.effects import EffectsView, MetricValue, MetricView, SiteEffects
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.patching import PatchView
from attention_models.protocol.values import SiteRef

_STACKS = {"encoder": "enc", "decoder": "dec", "cross": "cross"}

Told = TypeVar("Told", EffectsView, PatchView)


def site_labels(sites: Sequence[SiteRef]) -> tuple[str, ...]:
    """ "5", or "enc 5" where a model has several stacks."""
    several = len({site.stack for site in sites}) > 1
    return tuple(f"{_STACKS[site.stack]} {site.layer}" if several else str(site.layer) for site in sites)


def layer_name(site: SiteRef, sites: Sequence[SiteRef]) -> str:
    """ "layer 5" within a sentence; of `sites` of several stacks "decoder layer 5"."""
    return name_of_head(site, 0, sites).rpartition(",")[0]


def in_unit(view: Told, unit: Unit) -> Told:
    """`view`, all losses in it in `unit`; an answer has them in nats."""
    if isinstance(view, PatchView):
        if view.aim.measure != "loss":
            return view
        aim = replace(view.aim, value=from_nats(view.aim.value, unit))
        return replace(
            view, aim=aim, other_value=from_nats(view.other_value, unit), values=view.values * from_nats(1, unit)
        )
    measure = view.aim.measure
    now, before = (None if said is None else _said(said, measure, unit) for said in (view.now, view.before))
    assert now is not None
    if measure != "loss":
        return replace(view, now=now, before=before)
    sites = tuple(SiteEffects(at.site, at.heads * from_nats(1, unit)) for at in view.sites)
    return replace(
        view, aim=replace(view.aim, value=from_nats(view.aim.value, unit)), now=now, before=before, sites=sites
    )


def _said(said: MetricValue, measure: str, unit: Unit) -> MetricValue:
    loss = None if said.loss is None else from_nats(said.loss, unit)
    return replace(said, value=from_nats(said.value, unit) if measure == "loss" else said.value, loss=loss)


def aim_words(aim: MetricView, unit: Unit = "nats") -> str:
    """ "the logit of “Tom”", "“Tom” less “Anna”", "the loss in nats"."""
    if aim.measure == "loss":
        return f"the loss in {unit}"
    target, against = plain(aim.target_label), plain(aim.against_label)
    return f"the logit of “{target}”" if aim.measure == "logit" else f"“{target}” less “{against}”"


def plain(label: str) -> str:
    return label.lstrip("␣") or label
