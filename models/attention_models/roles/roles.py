"""The roles of every head over a set of texts: what it attends to, how broadly, and whether it copies.

from attention_models import head_roles, open_checkpoint

found = head_roles(open_checkpoint("story-gpt"))
found.ranked("next")[:3]      # [(SiteRef("decoder", 5), 0, 0.23), ...]: heads that find the word that comes next
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.protocol.arrays import read_only
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.roles import RolesRequest, RolesView
from attention_models.protocol.work import Report, ShouldStop, never, silent
from attention_models.roles.finding import Finding
from attention_models.roles.keeping import keep_view, kept_view, key_of
from attention_models.roles.probe import Probe, our_probe, read_probe

_MOMENT = 0.2  # seconds that an answer takes, about


def answer(request: RolesRequest, context: Context) -> RolesView:
    """What was found, or how far it is.

    Raises:
        StaleRunError: it was to be stopped.
    """
    kept = context.kept_of_model
    if request.stop:
        kept.drop(_Begun)
        raise StaleRunError
    begun = kept.get(_Begun)
    if begun is None or begun.probe != request.probe or not request.have:
        texts = _chosen(context.model, request.probe or None)
        key = key_of(context.model, texts, context.should_stop)
        found = kept_view(key)
        if found is not None:
            return replace(found, request=request)
        finding = Finding(context.model, texts, context.should_stop, context.report)
        begun = kept.put(_Begun(request.probe, key, finding, finding.work()))
    begun.finding.serve(context.should_stop, context.report)
    started = time.perf_counter()
    try:
        while (share := next(begun.shares, None)) is not None:
            if time.perf_counter() - started >= _MOMENT:
                return _unfinished(request, share)
        view = begun.finding.view()
    except BaseException:
        kept.drop(_Begun)  # a batch that was broken off is counted in some layers and not in others
        raise
    kept.drop(_Begun)
    keep_view(begun.key, view)
    return replace(view, request=request)


def _unfinished(request: RolesRequest, share: float) -> RolesView:
    nothing = read_only(np.full((0, 0, 0), np.nan))
    return RolesView(
        request=request,
        sites=(),
        roles=(),
        scores=nothing,
        even=read_only(np.full((0, 0), np.nan)),
        counts=read_only(np.zeros((0, 0), int)),
        why=(),
        texts=0,
        tokens=0,
        done=min(max(share, 0.001), 0.999),
    )


def _chosen(model: Model, probe: str | Path | Probe | None) -> Probe:
    """Raises InputError where the file cannot be read, or the model has no heads."""
    if not model.info.stacks and model.info.textbook:
        raise InputError(f"{model.info.name} has no attention, so it has no heads that could have a role.")
    return probe if isinstance(probe, Probe) else our_probe() if probe is None else read_probe(probe)


def head_roles(
    model: Model,
    probe: str | Path | Probe | None = None,
    should_stop: ShouldStop = never,
    report: Report = silent,
    cached: bool = True,
) -> RolesView:
    """Every role of every head of `model`, as it is: interventions of a run play no part.

    Args:
        probe: a file of texts (lines, .csv, .jsonl; CoNLL-U with dependency edges), or the texts that come along:
            sentences for models of text, dates for those of dates, pictures for vision models.
        should_stop: polled between layers and batches.
        report: told what is being done and how far it is.
        cached: take what was found before of the same files and texts, and keep what is found.

    Raises:
        InputError: the file cannot be read, or no text of it fits the model.
        Cancelled: `should_stop()` was true.
    """
    started = time.perf_counter()
    chosen = _chosen(model, probe)
    key = key_of(model, chosen, should_stop) if cached else ""
    found = kept_view(key)
    if found is None:
        finding = Finding(model, chosen, should_stop, report)
        for _ in finding.work():
            pass
        found = finding.view()
        keep_view(key, found)
    return replace(found, seconds=time.perf_counter() - started)


@dataclass(frozen=True, slots=True, eq=False)
class _Begun:
    """What is being found for the window."""

    probe: str
    key: str
    finding: Finding
    shares: Iterator[float]
