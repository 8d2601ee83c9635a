"""What a file of weights says of itself: which checkpoint and input, what was changed, and by what it was computed."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attention_models.files.fingerprint import content_hash, revision_of
from attention_models.forward.origin import Origin
from attention_models.forward.trace import Trace
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.interventions import Adapter, Intervention, Mask, Positions, Scale
from attention_models.protocol.request import never
from attention_models.protocol.values import SeenPicture, Site, SiteRef, Token
from attention_models.protocol.word_spans import site_words

FORMAT = 1
"""Raised when a reader of the last format would misread a file."""

_PACKAGES = ("attention-explorer", "torch", "transformers", "tokenizers", "numpy")
_INTERVENTIONS: dict[str, type[Intervention]] = {
    "scale": Scale,
    "mask": Mask,
    "positions": Positions,
    "adapter": Adapter,
    "skip": Ablation,
}


def facts(
    trace: Trace,
    generated: Mapping[str, Any] | None = None,
    should_stop: Callable[[], bool] = never,
    words: bool = False,
) -> dict[str, Any]:
    """As JSON has it.

    Args:
        generated: of tokens that the model wrote itself: `first`, the position of the first of them, and how.
        should_stop: polled while the checkpoint's files are hashed.
        words: whether the arrays are of words, each a token and those after it that `continues` says go on with it.

    Raises:
        Cancelled: `should_stop` said so.
    """
    origin = trace.origin
    segment_ids = () if origin is None else origin.segment_ids
    return {
        "format": FORMAT,
        "checkpoint": None if origin is None else _checkpoint(origin, should_stop),
        "input": None if origin is None else _input(origin, trace.picture),
        "tokens": _tokens(trace.tokens, () if trace.source else segment_ids),
        "source_tokens": _tokens(trace.source, segment_ids if trace.source else ()),
        "sites": [
            {
                "name": site_name(site.ref),
                **{name: getattr(site, name) for name in ("stack", "layer", "module", "heads")},
                **dict(zip(("queries", "keys"), _sizes(trace, site, words), strict=True)),
            }
            for site in trace.sites
        ],
        "words": {"from": "mean", "to": "sum", **({"cross_rows": "written"} if trace.source else {})}
        if words
        else None,
        "interventions": [_as_json(item) for item in trace.interventions],
        "generated": None if generated is None else dict(generated),
        "device": None if origin is None else origin.device,
        "dtype": None if origin is None else origin.dtype,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
    }


def _sizes(trace: Trace, site: Site, words: bool) -> tuple[int, int]:
    """How many queries and keys the site's array has."""
    if not words:
        return site.queries, site.keys
    queries, keys = site_words(trace, site)
    return len(queries), len(keys)


def site_name(site: SiteRef) -> str:
    """ "decoder.0": what its array is called."""
    return f"{site.stack}.{site.layer}"


def tokens_of(listed: Sequence[Mapping[str, Any]]) -> tuple[Token, ...]:
    """What `facts` wrote of tokens, as tokens again."""
    return tuple(
        Token(**{**{k: v for k, v in item.items() if k != "segment_id"}, "part": tuple(item["part"])})
        for item in listed
    )


def interventions_of(listed: Sequence[Mapping[str, Any]]) -> tuple[Intervention, ...]:
    """What `facts` wrote of interventions, as interventions again.

    Raises:
        KeyError, TypeError, ValueError: there is none such.
    """
    found = []
    for item in listed:
        fields = {name: value for name, value in item.items() if name != "is"}
        if fields.get("site") is not None:
            fields["site"] = SiteRef(**fields["site"])
        if fields.get("cells") is not None:
            fields["cells"] = tuple(tuple(cell) for cell in fields["cells"])
        found.append(_INTERVENTIONS[item["is"]](**fields))
    return tuple(found)


def _checkpoint(origin: Origin, should_stop: Callable[[], bool]) -> dict[str, Any]:
    info = origin.info
    return {
        **{name: getattr(info, name) for name in ("reference", "name", "model_type", "architecture", "family")},
        "adapter": None if info.adapter is None else asdict(info.adapter),
        "revision": revision_of(info),
        "sha256": content_hash(info, should_stop),
    }


def _input(origin: Origin, seen: SeenPicture | None) -> dict[str, Any]:
    return {
        "text": origin.text,
        "second": origin.second,
        "turns": [asdict(turn) for turn in origin.turns],
        "target": origin.target,
        "picture": origin.picture,
        "batch": None if origin.batch is None else asdict(origin.batch),
        "changes": list(seen.changes) if seen is not None else [],
    }


def _tokens(tokens: Sequence[Token], segment_ids: Sequence[int]) -> list[dict[str, Any]]:
    given: Sequence[int | None] = segment_ids or [None] * len(tokens)
    return [{**asdict(token), "segment_id": segment_id} for token, segment_id in zip(tokens, given, strict=True)]


def _as_json(item: Intervention) -> dict[str, Any]:
    return {"is": type(item).__name__.lower(), **asdict(item)}


def _version(package: str) -> str | None:
    """None for one that is not installed, as this program where it runs from its source."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
