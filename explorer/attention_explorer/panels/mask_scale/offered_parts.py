"""Which parts of which layers of the open model can be switched off, and how many there are of each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from attention_explorer.panels.selected_head import site_words
from attention_models.protocol.ablation import LAYER, SUBLAYERS, part_name
from attention_models.protocol.parts import Block, PartsView
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef

CROSS_HEAD = "cross-attention head"
"""A head of a block's cross-attention; one of its own attention is a "head"."""

NO_NEURONS = "Its neurons cannot be told apart: no single matrix reads them."
NO_HEADS = "Single heads cannot be switched off: this model shows its weights alone."
NO_BLOCKS = "No list of blocks was found in this model: of it only heads can be switched off."


@dataclass(frozen=True, slots=True)
class Part:
    """What can be chosen: a part by its name, of which module, and of heads and neurons how many there are."""

    name: str
    label: str
    ref: SiteRef
    count: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer with its parts and the words at its positions; `why` says what cannot be switched off in it."""

    ref: SiteRef
    label: str
    parts: tuple[Part, ...]
    words: tuple[str, ...]
    why: str = ""


@lru_cache(maxsize=2)  # asked for at each change of the state
def layers_of(view: PartsView, ran: Ran, has_heads: bool) -> tuple[Layer, ...]:
    """Every layer of the model that ran, in the order of its blocks; `has_heads`: whether heads can be reached into."""
    blocks = view.blocks
    if not blocks:
        refs = dict.fromkeys(site.ref.block for site in ran.sites) if has_heads else {}
        blocks = tuple(Block(ref, (), NO_BLOCKS) for ref in refs)
    several = len({block.ref.stack for block in blocks}) > 1
    return tuple(_layer(block, ran, has_heads, several) for block in blocks)


def _layer(block: Block, ran: Ran, has_heads: bool, several: bool) -> Layer:
    ref, parts = block.ref, []
    for name, where in (("head", ref), (CROSS_HEAD, SiteRef("cross", ref.layer))):
        site = ran.site(where)
        if has_heads and site is not None and where.block == ref:
            parts.append(Part(name, name, where, site.heads))
    if block.neurons:
        parts.append(Part("neuron", "neuron", ref, block.neurons))
    whole = [name for name in block.parts if name in SUBLAYERS]
    if not block.why:
        parts += [Part(name, part_name(name), ref) for name in whole]
        if whole:
            parts.append(Part(LAYER, part_name(LAYER), ref))
    parts += [Part(name, f"gain of {part_name(name)}", ref) for name in block.parts if name not in SUBLAYERS]
    site = ran.site(ref)
    words = tuple(site_words(ran, site)[0]) if site is not None else ()
    tokens = ran.source if ran.source and ref.stack == "encoder" else ran.tokens
    label = f"{ref.stack} layer {ref.layer}" if several else f"layer {ref.layer}"
    why = [block.why, "" if block.neurons or not whole or block.why else NO_NEURONS, "" if has_heads else NO_HEADS]
    return Layer(ref, label, tuple(parts), words or tuple(token.word for token in tokens), " ".join(filter(None, why)))
