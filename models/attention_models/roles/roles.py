"""The roles of every head over a set of texts: what it attends to, how broadly, and whether it copies.

from attention_models import head_roles, open_checkpoint

found = head_roles(open_checkpoint("story-gpt"))
found.ranked("next")[:3]      # [(SiteRef("decoder", 5), 0, 0.23), ...]: heads that find the word that comes next
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attention_models.files.fingerprint import content_hash, fingerprint
from attention_models.files.own_cache import keep_arrays, kept_arrays
from attention_models.files.training_steps import weights_place
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.request import Report, ShouldStop, never, silent
from attention_models.protocol.roles import ROLES, RolesRequest, RolesView
from attention_models.protocol.values import SiteRef, read_only
from attention_models.roles.finding import Finding
from attention_models.roles.probe import Probe, our_probe, read_probe

# Roles that were found before, kept on disk under the hash of all that they follow from.


_VERSION = 2
"""Of what is computed: it rises when the same files give other scores."""


def kept_view(key: str) -> RolesView | None:
    """What was found before under the hash `key`; None where that is nothing, or damaged."""
    kept = kept_arrays("roles", key) if key else None
    try:
        return None if kept is None else _from_arrays(kept)
    except (KeyError, ValueError, TypeError, IndexError):
        return None


def keep_view(key: str, view: RolesView) -> None:
    """Keep what was found under the hash `key`, if it is one."""
    if key:
        keep_arrays("roles", key, _to_arrays(view))


def key_of(model: Model, probe: Probe, should_stop: ShouldStop) -> str:
    """The hash of all that the scores follow from; "" where the model is no file."""
    info = model.info
    if info.borrowed:
        return ""
    try:
        files = fingerprint(weights_place(info), should_stop)
        if model.adapter is not None:  # which may lie elsewhere
            files = {**files, **content_hash(info, should_stop)}
    except OSError:
        return ""
    adapter = None if model.adapter is None else model.adapter.is_off
    facts = [_VERSION, files, probe.digest, probe.ours, probe.name, model.dtype_name, adapter, info.reference]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _to_arrays(view: RolesView) -> dict[str, np.ndarray]:
    said = {
        "sites": [[site.stack, site.layer] for site in view.sites],
        "roles": view.roles,
        "why": view.why,
        "texts": view.texts,
        "tokens": view.tokens,
        "left_out": view.left_out,
        "probe": view.request.probe,
    }
    return {"scores": view.scores, "even": view.even, "counts": view.counts, "said": np.array(json.dumps(said))}


def _from_arrays(arrays: dict[str, np.ndarray]) -> RolesView:
    said = json.loads(str(arrays["said"]))
    view = RolesView(
        request=RolesRequest(probe=said["probe"]),
        sites=tuple(SiteRef(stack, layer) for stack, layer in said["sites"]),
        roles=tuple(said["roles"]),
        scores=read_only(arrays["scores"]),
        even=read_only(arrays["even"]),
        counts=read_only(arrays["counts"]),
        why=tuple((role, stack, sentence) for role, stack, sentence in said["why"]),
        texts=said["texts"],
        tokens=said["tokens"],
        left_out=tuple(said["left_out"]),
    )
    if view.scores.shape[:2] != (len(view.roles), len(view.sites)) or view.roles != tuple(role.name for role in ROLES):
        raise ValueError("it is of another version")
    return view


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
