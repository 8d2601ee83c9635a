"""How a loaded model tells positions apart, read from the model itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from models.files.devices import apply, weight_of
from models.forward.context import Context
from models.forward.model import Model
from models.forward.position_edits import position_tables, table_rows, why_not_off, why_not_shifted
from models.forward.trace import Trace
from models.protocol.interventions import Positions
from models.protocol.positions import PositionScheme, PositionsRequest, PositionsView, RotationView
from models.protocol.values import Site
from models.views import waves
from models.views.rotation import frequencies, rope_settings, rotary_module, rotation_view

LARGEST_IMAGE = 512  # rows of the table that are compared with each other; beyond, every second (third, ...) one
FARTHEST = 160  # distances over which biases are listed: T5 tells none apart beyond 128

_SLOPES_ARE_ALWAYS_ON = ("bloom", "mpt")


@torch.no_grad()
def describe_positions(model: Model, site: Site | None = None) -> PositionScheme:
    """Which scheme `model` has, with its table, frequencies or biases.

    Args:
        site: where to look, for models whose stacks or layers differ; the first stack's table if None.
    """
    scheme = _found(model, site)
    return replace(scheme, off_note=why_not_off(model), shift_note=why_not_shifted(model))


def _found(model: Model, site: Site | None) -> PositionScheme:
    if model.info.textbook:
        return PositionScheme(
            kind="none",
            title="No positions, and none needed",
            words="A recurrent model reads its text one token after the other, and makes each state out of the one "
            "before: the order of the words is in the states themselves. Attention gave that up, so transformers "
            "had to be told positions.",
        )
    table = _table_of(model, site)
    if table is not None:
        return _table_scheme(model, table)
    if rotary_module(model) is not None and site is not None:
        return _rope_scheme(model, site)
    biased = _biased_attention(model, site)
    if biased is not None:
        return _t5_scheme(model, biased)
    if _has_slopes(model):
        return _alibi_scheme(model)
    if site is not None and site.stack == "cross":
        return PositionScheme(
            kind="none",
            title="No positions here",
            words="Cross-attention looks from one text at another: this model tells it nothing of distances. "
            "Choose a head of the encoder or the decoder.",
        )
    return PositionScheme(
        kind="none",
        title="No positions",
        words="No table, rotation or bias was found in this model: it tells words apart, but not their order, "
        "unless it does so in a way that this program does not know.",
    )


def answer(request: PositionsRequest, context: Context) -> PositionsView:
    run = context.run(request.run)
    return positions_view(request, run.model, run.trace)


@torch.no_grad()
def positions_view(request: PositionsRequest, model: Model, trace: Trace) -> PositionsView:
    """The scheme at the site of one cell, with what the positions of its query and key did there.

    Raises:
        IndexError: no such site, head, query or key.
    """
    site = trace.sites[trace.index(request.site)]
    head, query, key = request.head, request.query, request.key
    if not (0 <= head < site.heads and 0 <= query < site.queries and 0 <= key < site.keys):
        raise IndexError(f"There is no cell ({query}, {key}) of head {head}: the map is {site.queries} x {site.keys}.")
    scheme = describe_positions(model, site)
    looking = trace.source if site.stack == "encoder" and trace.source else trace.tokens
    looked_at = trace.source if site.stack in ("encoder", "cross") and trace.source else trace.tokens
    added = _sum(model, site, trace, looking[query].id, query)
    rotation: RotationView | None = None
    note = ""
    if scheme.kind == "rope":
        rotation, note = rotation_view(model, trace, site, head, query, key)
    return PositionsView(
        request=request,
        scheme=scheme,
        embedding=added.embedding,
        position=added.position,
        total=added.total,
        sum_note=added.note,
        query_word=looking[query].word,
        key_word=looked_at[key].word,
        rotation=rotation,
        rotation_note=note,
    )


# --------------------------------------------------------------------------- tables


class _Statistics(NamedTuple):
    table: np.ndarray  # (positions, width) float32
    alike: np.ndarray  # (rows, rows) float32
    step: int
    components: np.ndarray  # (3, positions) float32
    shares: np.ndarray  # (3,) float32


_statistics: WeakKeyDictionary[nn.Module, _Statistics] = WeakKeyDictionary()


def _table_of(model: Model, site: Site | None) -> nn.Module | None:
    """The table of the stack that `site` is in; the first one for models with one stack."""
    tables = position_tables(model)
    stack = "" if site is None else "decoder" if site.stack == "cross" else site.stack
    own = (table for name, table in tables.items() if stack in name.split("."))
    return next(own, next(iter(tables.values()), None))


def _statistics_of(table: nn.Module) -> _Statistics:
    if table not in _statistics:
        rows = table_rows(table).detach().float().cpu().numpy().copy()
        step = -(-len(rows) // LARGEST_IMAGE)
        components, shares = waves.principal_components(rows)
        _statistics[table] = _Statistics(
            _frozen(rows), _frozen(waves.cosines(rows[::step])), step, _frozen(components), _frozen(shares)
        )
    return _statistics[table]


def _table_scheme(model: Model, table: nn.Module) -> PositionScheme:
    found = _statistics_of(table)
    positions, width = found.table.shape
    layout = _sinusoidal_layout(found.table, table)
    if layout is None:
        kind, title = "learned", "Learned positions"
        words = (
            f"A table of {positions:,} vectors, one a position, trained like every other weight and added to the "
            f"token's embedding before the first layer. There is none for position {positions:,}: longer texts "
            "do not fit."
        )
    else:
        kind, title = "sinusoidal", "Sinusoidal positions"
        words = (
            f"Nothing is learned: the {width} numbers that are added to a token's embedding are waves of its position "
            f"(Vaswani et al. 2017, section 3.5), {layout}."
        )
    return PositionScheme(
        kind=kind,
        title=title,
        words=words,
        table=found.table,
        alike=found.alike,
        step=found.step,
        components=found.components,
        shares=found.shares,
    )


def _sinusoidal_layout(rows: np.ndarray, table: nn.Module) -> str | None:
    """How the waves lie in the dimensions, None for a table that is no waves. Judged by the numbers."""
    layouts: tuple[tuple[waves.Layout, str], ...] = (
        ("interleaved", "a sine and a cosine in turn"),
        ("halves", "all sines in the first half of the dimensions, all cosines in the second"),
    )
    for layout, words in layouts:
        if np.abs(rows - waves.sinusoidal(len(rows), rows.shape[1], layout=layout)).max() < 1e-3:
            return words
    return "in an order of this family's own" if "Sinusoidal" in type(table).__name__ else None


class _Sum(NamedTuple):
    embedding: np.ndarray | None
    position: np.ndarray | None
    total: np.ndarray | None
    note: str


def _sum(model: Model, site: Site, trace: Trace, token: int, place: int) -> _Sum:
    """Token embedding, position vector and their sum, as they were in this run."""
    table = _table_of(model, site)
    if table is None:
        return _Sum(None, None, None, "Nothing is added to the token's embedding: positions come in at each layer.")
    embed = _embedding(model, table)
    if embed is None:
        return _Sum(None, None, None, "The table of this model's tokens was not found.")
    embedding = apply(embed, torch.tensor([token]))[0].float()
    parent: Any = _parent(model, table)
    if not hasattr(embed, "embed_scale"):
        embedding = embedding * float(getattr(parent, "embed_scale", 1.0))
    rows = table_rows(table)
    mode = next((item for item in trace.interventions if isinstance(item, Positions)), None)
    by = mode.by if mode is not None else 0
    position = torch.zeros_like(rows[0]) if mode is not None and mode.mode == "off" else rows[place + by]
    position = position.float().cpu()
    if embedding.shape != position.shape:
        return _Sum(None, None, None, "Embedding and position are of different width here, and are not simply added.")
    extra = []
    if hasattr(parent, "token_type_embeddings"):
        extra.append("a token-type vector is added")
    if any(hasattr(parent, name) for name in ("LayerNorm", "layernorm_embedding", "layer_norm_embedding")):
        extra.append("the sum is normalised")
    note = f"Before the first layer {' and '.join(extra)} as well." if extra else ""
    return _Sum(_numpy(embedding), _numpy(position), _numpy(embedding + position), note)


def _embedding(model: Model, positions: nn.Module) -> nn.Module | None:
    """The table of the tokens' vectors."""
    get = getattr(model.module, "get_input_embeddings", None)
    if get is not None:
        found: nn.Module | None = get()
        return found
    tables = (child for child in model.module.modules() if isinstance(child, nn.Embedding) and child is not positions)
    return next((table for table in tables if table.num_embeddings == model.info.vocabulary), None)


def _parent(model: Model, module: nn.Module) -> nn.Module | None:
    parent = model.module_names[module].rpartition(".")[0]
    return next((m for m, name in model.module_names.items() if name == parent), None)


# --------------------------------------------------------------------------- rotations and biases


def _rope_scheme(model: Model, site: Site) -> PositionScheme:
    found, settings = frequencies(model, site), rope_settings(model, site)
    turned, kind = 2 * len(found.inverse), settings.get("rope_type", "default")
    scaling = "" if kind == "default" else f" Scaling “{kind}”" + _listed(settings) + "."
    part = f"all {turned}" if turned == site.head_dim else f"{turned} of {site.head_dim}"
    base = settings.get("rope_theta")
    return PositionScheme(
        kind="rope",
        title="Rotary positions (RoPE)",
        words="Nothing is added to the embedding. In every layer the dimensions of q and k are turned in pairs, by an "
        "angle that grows with the position, each pair at a speed of its own: q · k then depends on the distance of "
        f"the two tokens alone (Su et al. 2021). Turned: {part} dimensions of a head."
        + (f" Base {base:,.0f}." if isinstance(base, (int, float)) else "")
        + scaling,
        frequencies=_frozen(found.inverse),
        gain=found.gain,
    )


def _listed(settings: dict[str, Any]) -> str:
    named = {
        name: value for name, value in settings.items() if isinstance(value, (int, float)) and name != "rope_theta"
    }
    return "".join(f", {name.replace('_', ' ')} {value:,g}" for name, value in named.items())


def _biased_attention(model: Model, site: Site | None) -> Any:
    """The attention module whose learned bias by distance is added at `site` (T5 keeps one for the whole stack)."""
    biased = {
        name: module
        for module, name in model.module_names.items()
        if hasattr(module, "relative_attention_bias") and hasattr(module, "relative_attention_num_buckets")
    }
    if site is None:
        return next(iter(biased.values()), None)
    if site.stack == "cross":
        return None
    if site.module in biased:
        return biased[site.module]
    return next((module for name, module in biased.items() if site.stack in name.split(".")), None)


def _t5_scheme(model: Model, attention: Any) -> PositionScheme:
    both = not attention.is_decoder
    buckets, farthest = attention.relative_attention_num_buckets, attention.relative_attention_max_distance
    apart = np.arange(-FARTHEST, (FARTHEST if both else 0) + 1)
    learned = weight_of(attention.relative_attention_bias).float().cpu().numpy()  # (buckets, heads)
    chosen = waves.t5_buckets(apart, both, buckets, farthest)
    return PositionScheme(
        kind="t5",
        title="A learned bias by distance (T5)",
        words="Nothing is added to the embedding. Each head has learned what to add to its scores by how far the key "
        f"stands from the query: {buckets} numbers a head, one for each near distance and one for ever wider ranges "
        f"of far ones, up to {farthest} (Raffel et al. 2020, section 2.1).",
        distances=_frozen_ints(apart),
        bias=_frozen(learned[chosen].T),
    )


def _has_slopes(model: Model) -> bool:
    config = model.config
    return getattr(config, "model_type", "") in _SLOPES_ARE_ALWAYS_ON or bool(getattr(config, "alibi", False))


def _alibi_scheme(model: Model) -> PositionScheme:
    heads = next(
        int(value) for name in ("num_attention_heads", "n_heads", "n_head") if (value := getattr(model.config, name, 0))
    )
    slopes = waves.mpt_slopes(heads) if model.config.model_type == "mpt" else waves.alibi_slopes(heads)
    apart = np.arange(-FARTHEST, 1)
    return PositionScheme(
        kind="alibi",
        title="Slopes (ALiBi)",
        words="Nothing is added to the embedding and nothing is learned. From each score a little is taken for every "
        "token of distance, in each head at a slope of its own: steep heads look near, flat ones far "
        "(Press et al. 2022).",
        distances=_frozen_ints(apart),
        bias=_frozen(slopes[:, None] * apart),
    )


def _numpy(t: Tensor) -> np.ndarray:
    return _frozen(t.detach().float().cpu().numpy())


def _frozen(array: np.ndarray) -> np.ndarray:
    narrow = array.astype(np.float32)
    narrow.flags.writeable = False
    return narrow


def _frozen_ints(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
