"""How models tell positions apart: each scheme one object that says all that the program knows of it.

A new scheme is a class in this file (or in a package of one's own) with `@register` above it: how it is recognised in a
loaded model, what is said and drawn of it, how it is turned off or shifted, and why it cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.files.devices import weight_of
from attention_models.forward.model import Model
from attention_models.forward.position_tables import first_id, numbers_of, position_tables, table_rows, wave_layout
from attention_models.protocol.errors import InputError
from attention_models.protocol.positions import PositionScheme
from attention_models.protocol.values import Site, read_only
from attention_models.textbook import waves
from attention_models.textbook.transformer_config import TransformerConfig

# A loaded model's own rotary module (RoPE: Su et al. 2021): how fast each pair of dimensions turns.


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How fast each pair turns, in radians a position, and what the turned vectors are multiplied by."""

    inverse: np.ndarray  # (pairs,) float64
    gain: float


def rotary_module(model: Model) -> nn.Module | None:
    """The module that gives cosines and sines; None for a model without rotations."""
    return next((m for m in model.module_names if any(n.endswith("inv_freq") for n, _ in _buffers(m))), None)


def frequencies(model: Model, site: Site) -> Frequencies:
    """Of `site`, as the model's rotary module has them for a text of its length (dynamic scaling depends on that)."""
    rotary: Any = rotary_module(model)
    assert rotary is not None
    kind = _layer_type(model, site, rotary)
    places = torch.arange(site.keys, device=model.device)[None]
    # a call brings frequencies that depend on the length up to date
    model.forget_lengths()
    rotary(torch.zeros(1, device=model.device), places, *([kind] if kind else []))
    prefix = f"{kind}_" if kind else ""
    inverse: Tensor = getattr(rotary, f"{prefix}inv_freq")
    gain = getattr(rotary, f"{prefix}attention_scaling", 1.0)
    return Frequencies(inverse.cpu().double().numpy(), float(gain))


def rope_settings(model: Model, site: Site) -> dict[str, Any]:
    """What the config says of the rotations of `site`: rope_type, rope_theta, factor and so on."""
    settings: Any = getattr(model.config, "rope_parameters", None) or {}
    kind = _layer_type(model, site, rotary_module(model))
    nested = settings.get(kind) if kind else None
    return dict(nested if isinstance(nested, dict) else settings)


def _layer_type(model: Model, site: Site, rotary: Any) -> str | None:
    """The name under which the rotary module keeps the frequencies of this layer, where it has several."""
    kinds = getattr(model.config, "layer_types", None)
    if rotary is None or hasattr(rotary, "inv_freq") or not kinds:
        return None
    return str(kinds[site.layer])


def _buffers(module: nn.Module) -> list[tuple[str, Tensor]]:
    return list(module.named_buffers(recurse=False))


FARTHEST = 160  # distances over which biases are listed: T5 tells none apart beyond 128

Inputs = dict[str, Tensor]


class Scheme:
    """A way to tell positions apart, as one model has it. It may hold modules, and is asked with their model."""

    @classmethod
    def of(cls, model: Model) -> Self | None:
        """The scheme of `model`; None for a model that has nothing of the kind."""
        raise NotImplementedError

    def at(self, model: Model, site: Site | None) -> PositionScheme | None:
        """What is said and drawn of it at `site` (None: of the first stack); None where it does not act."""
        raise NotImplementedError

    def table_at(self, site: Site | None) -> nn.Module | None:
        """The module whose vectors are added to the embeddings of the stack of `site`, where there is one."""
        return None

    def why_not_off(self, model: Model) -> str:
        """Why positions cannot be turned off; "" where they can."""
        return f"{model.info.name} has no positions that could be turned off here."

    def why_not_shifted(self, model: Model) -> str:
        """Why positions cannot be counted from elsewhere; "" where they can."""
        return f"{model.info.name} has no positions that could be shifted."

    @contextmanager
    def off(self, inputs: Inputs) -> Iterator[Inputs]:
        """The inputs to run with, while positions are off. A bias is dropped in `attention_models.attention.edits`."""
        yield inputs

    def shifted(self, model: Model, inputs: Inputs, by: int, past: int) -> Inputs:
        """The inputs to run with, their positions counted from `by`; `past` tokens ran before these.

        Raises:
            InputError: there is no position for the last token.
        """
        return _with_positions(inputs, by, 0, past)


SCHEMES: list[type[Scheme]] = []
"""In the order in which they are looked for: the first that a model has is its own."""

_Class = TypeVar("_Class", bound=type[Scheme])


def register(scheme: _Class) -> _Class:
    """Let models with this scheme be recognised."""
    SCHEMES.append(scheme)
    return scheme


def scheme_of(model: Model) -> Scheme:
    """Recognised once a model."""
    if model.position_scheme is None:
        found = (scheme.of(model) for scheme in SCHEMES)
        model.position_scheme = next((scheme for scheme in found if scheme is not None), NoPositions())
    assert isinstance(model.position_scheme, Scheme)
    return model.position_scheme


def _with_positions(inputs: Inputs, by: int, first: int, past: int) -> Inputs:
    """Counted from `by`, where a text's first token has the id `first`; of a padded batch each from its own token."""
    if "position_ids" in inputs:
        return {**inputs, "position_ids": inputs["position_ids"] + by}
    ids, start = inputs["input_ids"], by + first + past
    return {**inputs, "position_ids": torch.arange(start, start + ids.shape[1], device=ids.device)[None]}


def _why_not_counted(model: Model) -> str:
    """Why a model does not take positions from outside; "" where it does."""
    if model.seq2seq or not model.accepts("position_ids"):
        return f"{model.info.name} always counts its positions from 0: they cannot be shifted."
    return ""


class NoPositions(Scheme):
    """Nothing that this program knows of."""

    def at(self, model: Model, site: Site | None) -> PositionScheme:
        if site is not None and site.stack == "cross":
            return PositionScheme(
                kind="none",
                name="none found",
                title="No positions here",
                words="Cross-attention looks from one text at another: this model tells it nothing of distances. "
                "Choose a head of the encoder or the decoder.",
            )
        return PositionScheme(
            kind="none",
            name="none found",
            title="No positions",
            words="No table, rotation or bias was found in this model: it tells words apart, but not their order, "
            "unless it does so in a way that this program does not know.",
        )


@register
class Recurrence(Scheme):
    """A recurrent model's states."""

    @classmethod
    def of(cls, model: Model) -> Self | None:
        return cls() if model.info.textbook else None

    def at(self, model: Model, site: Site | None) -> PositionScheme:
        return PositionScheme(
            kind="none",
            name="none found",
            title="No positions, and none needed",
            words="A recurrent model reads its text one token after the other, and makes each state out of the one "
            "before: the order of the words is in the states themselves. Attention gave that up, so transformers "
            "had to be told positions.",
        )

    def why_not_off(self, model: Model) -> str:
        return f"{model.info.name} has no positions to turn off: it reads word after word."


@register
class Table(Scheme):
    """A vector a position, learned or of waves (Vaswani et al. 2017, section 3.5)."""

    def __init__(self, tables: dict[str, nn.Module]) -> None:
        self.tables = tables

    @classmethod
    def of(cls, model: Model) -> Self | None:
        tables = position_tables(model)
        return cls(tables) if tables else None

    def table_at(self, site: Site | None) -> nn.Module:
        stack = "" if site is None else site.ref.block.stack
        own = (table for name, table in self.tables.items() if stack in name.split("."))
        return next(own, next(iter(self.tables.values())))

    def at(self, model: Model, site: Site | None) -> PositionScheme:
        table = self.table_at(site)
        found = numbers_of(table)
        positions, width = found.table.shape
        layout = wave_layout(found.table, table)
        concatenated = getattr(model.config, "positions", "") in ("appended", "concatenated")
        added = "concatenated to" if concatenated else "added to"
        if layout is None:
            kind, name, title = "learned", "learned table", "Learned positions"
            words = (
                f"A table of {positions:,} vectors, one a position, trained like every other weight and added to the "
                f"token's embedding before the first layer. There is none for position {positions:,}: longer texts "
                "do not fit."
            )
        else:
            kind, name, title = "sinusoidal", "sinusoids", "Sinusoidal positions"
            words = (
                f"Nothing is learned: the {width} numbers that are {added} a token's embedding are waves of its "
                f"position (Vaswani et al. 2017, section 3.5), {layout}."
            )
        return PositionScheme(kind=kind, name=name, title=title, words=words, **found._asdict())

    def why_not_off(self, model: Model) -> str:
        return ""

    def why_not_shifted(self, model: Model) -> str:
        return _why_not_counted(model)

    @contextmanager
    def off(self, inputs: Inputs) -> Iterator[Inputs]:
        handles = [table.register_forward_hook(_nothing) for table in self.tables.values()]
        try:
            yield inputs
        finally:
            for handle in handles:
                handle.remove()

    def shifted(self, model: Model, inputs: Inputs, by: int, past: int) -> Inputs:
        count = past + inputs["input_ids"].shape[1]
        size = min(len(table_rows(table)) for table in self.tables.values())
        if by + count > size:
            raise InputError(
                f"Position {by + count - 1:,} is past the end of {model.info.name}'s table, which holds {size:,}: "
                f"with {count} tokens, positions can be shifted by up to {size - count:,}."
            )
        return _with_positions(inputs, by, first_id(next(iter(self.tables.values()))), past)


def _nothing(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
    return torch.zeros_like(out)


@register
class Rotation(Scheme):
    """Queries and keys are turned by their positions: Su et al. 2021."""

    @classmethod
    def of(cls, model: Model) -> Self | None:
        return cls() if rotary_module(model) is not None else None

    def at(self, model: Model, site: Site | None) -> PositionScheme | None:
        if site is None:
            return None
        found, settings = frequencies(model, site), rope_settings(model, site)
        turned, kind = 2 * len(found.inverse), settings.get("rope_type", "default")
        scaling = "" if kind == "default" else f" Scaling “{kind}”" + _listed(settings) + "."
        part = f"all {turned}" if turned == site.head_dim else f"{turned} of {site.head_dim}"
        base = settings.get("rope_theta")
        return PositionScheme(
            kind="rope",
            name="rotary",
            title="Rotary positions (RoPE)",
            words="Nothing is added to the embedding. In every layer the dimensions of q and k are turned in pairs, by "
            "an angle that grows with the position, each pair at a speed of its own: q · k then depends on the "
            f"distance of the two tokens alone (Su et al. 2021). Turned: {part} dimensions of a head."
            + (f" Base {base:,.0f}." if isinstance(base, (int, float)) else "")
            + scaling,
            frequencies=read_only(found.inverse.astype(np.float32)),
            gain=found.gain,
        )

    def why_not_off(self, model: Model) -> str:
        takes = model.accepts("position_ids") and not model.seq2seq
        return "" if takes else f"{model.info.name} counts its own positions: they cannot be taken from outside."

    def why_not_shifted(self, model: Model) -> str:
        return _why_not_counted(model)

    @contextmanager
    def off(self, inputs: Inputs) -> Iterator[Inputs]:
        yield {**inputs, "position_ids": torch.zeros_like(inputs["input_ids"])}  # every token turned by nothing


def _listed(settings: dict[str, Any]) -> str:
    named = {
        name: value for name, value in settings.items() if isinstance(value, (int, float)) and name != "rope_theta"
    }
    return "".join(f", {name.replace('_', ' ')} {value:,g}" for name, value in named.items())


@register
class DistanceBias(Scheme):
    """A learned bias by distance: Raffel et al. 2020 (T5), section 2.1. One attention keeps it for its whole stack."""

    def __init__(self, attentions: dict[str, Any]) -> None:
        self.attentions = attentions

    @classmethod
    def of(cls, model: Model) -> Self | None:
        if not any(name.endswith("relative_attention_bias") for name in model.module_names.values()):
            return None
        return cls(
            {
                name: module
                for module, name in model.module_names.items()
                if hasattr(module, "relative_attention_bias") and hasattr(module, "relative_attention_num_buckets")
            }
        )

    def at(self, model: Model, site: Site | None) -> PositionScheme | None:
        attention = self.attention_at(site)
        if attention is None:
            return None
        both = not attention.is_decoder
        buckets, farthest = attention.relative_attention_num_buckets, attention.relative_attention_max_distance
        apart = np.arange(-FARTHEST, (FARTHEST if both else 0) + 1)
        learned = weight_of(attention.relative_attention_bias).float().cpu().numpy()  # (buckets, heads)
        chosen = waves.t5_buckets(apart, both, buckets, farthest)
        return PositionScheme(
            kind="t5",
            name="bias by distance",
            title="A learned bias by distance (T5)",
            words="Nothing is added to the embedding. Each head has learned what to add to its scores by how far the "
            f"key stands from the query: {buckets} numbers a head, one for each near distance and one for ever wider "
            f"ranges of far ones, up to {farthest} (Raffel et al. 2020, section 2.1).",
            distances=read_only(apart),
            bias=read_only(learned[chosen].T.astype(np.float32)),
        )

    def attention_at(self, site: Site | None) -> Any:
        """The attention module whose bias is added at `site`; None where none is."""
        if site is None:
            return next(iter(self.attentions.values()), None)
        if site.stack == "cross":
            return None
        if site.module in self.attentions:
            return self.attentions[site.module]
        return next((module for name, module in self.attentions.items() if site.stack in name.split(".")), None)

    def why_not_off(self, model: Model) -> str:
        return ""

    def why_not_shifted(self, model: Model) -> str:
        return f"{model.info.name} looks at distances only: a shift of all positions leaves them as they are."


@register
class Slopes(Scheme):
    """Scores that fall with distance, in each head at a slope of its own: Press et al. 2022 (ALiBi)."""

    @classmethod
    def of(cls, model: Model) -> Self | None:
        config = model.config
        always = getattr(config, "model_type", "") in ("bloom", "mpt")
        return cls() if always or bool(getattr(config, "alibi", False)) else None

    def at(self, model: Model, site: Site | None) -> PositionScheme | None:
        if site is not None and site.stack == "cross":
            return None
        names = ("num_attention_heads", "n_heads", "n_head")
        heads = next(int(value) for name in names if (value := getattr(model.config, name, 0)))
        slopes = waves.mpt_slopes(heads) if model.config.model_type == "mpt" else waves.alibi_slopes(heads)
        both = isinstance(model.config, TransformerConfig) and site is not None and not site.causal
        apart = np.arange(-FARTHEST, (FARTHEST if both else 0) + 1)
        return PositionScheme(
            kind="alibi",
            name="slopes",
            title="Slopes (ALiBi)",
            words="Nothing is added to the embedding and nothing is learned. From each score a little is taken for "
            "every token of distance, in each head at a slope of its own: steep heads look near, flat ones far "
            "(Press et al. 2022).",
            distances=read_only(apart),
            bias=read_only((-slopes[:, None] * np.abs(apart)).astype(np.float32)),
        )

    def why_not_off(self, model: Model) -> str:
        # other families put their slopes into the mask, or keep them to themselves
        return "" if isinstance(model.config, TransformerConfig) else super().why_not_off(model)

    def why_not_shifted(self, model: Model) -> str:
        return f"{model.info.name} looks at distances only: a shift of all positions leaves them as they are."
