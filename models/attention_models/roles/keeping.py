"""Roles that were found before, kept on disk under the hash of all that they follow from."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from attention_models.files.content_hash import content_hash
from attention_models.files.fingerprint import fingerprint
from attention_models.files.own_cache import keep_arrays, kept_arrays
from attention_models.files.training_steps import weights_place
from attention_models.forward.model import Model
from attention_models.protocol.arrays import read_only
from attention_models.protocol.roles import ROLES, RolesRequest, RolesView
from attention_models.protocol.values import SiteRef
from attention_models.protocol.work import ShouldStop
from attention_models.roles.probe import Probe

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
