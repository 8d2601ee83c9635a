"""What is said of the picture in words, with the numbers of this run. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_explorer.panels.flow.box_text import Around, is_off, said, short_name, through, title
from attention_explorer.panels.flow.model_scene import OutputGroup, Place, RecurrentScene, StackScene
from attention_explorer.widgets.number_text import added, counted, signed, value_text
from attention_models.protocol.flow import (
    STREAM,
    BlockView,
    FeedForwardBox,
    HeadsBox,
    ModuleBox,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)

WRITERS = {
    "attention": "attention",
    "cross": "cross-attention",
    "feed_forward": "the feed-forward network",
    "other": "another module",
    "tokens": "the token's embedding",
    "positions": "the position's",
    "segments": "the segment's",
}

_MADE = {
    "q": "queries, what a token asks for",
    "k": "keys, what a token can be found by",
    "v": "values, what a token gives",
    "qkv": "queries, keys and values at once",
    "kv": "keys and values at once",
}

# of the model, for tooltips


def crossing_text(stack: StackScene, place: Place) -> str:
    """What a block wrote at a position, in lines. Of a block alone what it is."""
    flow, i = stack.flow, place.position
    if place.block < 0 and i < 0:
        return "What is in the stream before any block: the token's embedding, and its position's where there is one"
    if place.block < 0:
        lines = [f"“{stack.labels[i].word}”: the stream enters block 0 with norm {_at(flow.norms, i)}"]
        return "\n".join([*lines, *(f"{WRITERS[e.part]} embedding: norm {_at(e.norms, i)}" for e in flow.embedding)])
    block = flow.blocks[place.block]
    name = f"block {block.ref.layer}"
    if i < 0:
        shared = f"\nshares the weights of block {block.shared_with}" if block.shared_with is not None else ""
        return f"{name}, {block.module}: click to select it, again to open it{shared}"
    before = _at(_before(stack, place.block), i)
    lines = [f"“{stack.labels[i].word}”, {name}: the stream's norm goes from {before} to {_at(block.norms, i)}"]
    for each in block.written:
        lines.append(f"{WRITERS[each.part]} wrote {_at(each.norms, i)}{', switched off' if each.off else ''}")
    if block.placement == "post":
        lines.append(f"the normalisations changed {_at(block.remainder, i)}")
    return "\n".join(lines)


def _at(norms: np.ndarray, position: int) -> str:
    return value_text(float(norms[position]))


def _before(stack: StackScene, block: int) -> np.ndarray:
    return stack.flow.norms if block == 0 else stack.flow.blocks[block - 1].norms


# of the steps of Play


def input_sentence(stack: StackScene, position: int) -> str:
    """ "“to” becomes a vector: the token's embedding, norm 0.51, …"."""
    flow, word = stack.flow, stack.labels[position].word
    of = f" of the {stack.title}" if stack.title else ""
    parts = " plus ".join(f"{WRITERS[each.part]}, norm {_at(each.norms, position)}" for each in flow.embedding)
    made = f": {parts}" if parts else ""
    return f"“{word}” becomes a vector{made}. The residual stream{of} begins with norm {_at(flow.norms, position)}."


def block_sentence(stack: StackScene, place: Place) -> str:
    """What a whole block did at one position."""
    block, i = stack.flow.blocks[place.block], place.position
    wrote = ", ".join(
        f"{WRITERS[each.part]} is switched off" if each.off else f"{WRITERS[each.part]} writes {_at(each.norms, i)}"
        for each in block.written
    )
    of = f"{stack.title} " if stack.title else ""
    name = f"{of}block {block.ref.layer}"
    begins = f"{name[0].upper()}{name[1:]}"
    goes = (
        f"the norm of “{stack.labels[i].word}” goes from {_at(_before(stack, place.block), i)} to {_at(block.norms, i)}"
    )
    return f"{begins}: {wrote}; {goes}." if wrote else f"{begins}: {goes}."


def box_sentence(view: BlockView, number: int, around: Around, keys: Sequence[str], head: int) -> str:
    """What one box did to the selected token."""
    box = view.boxes[number]
    match box:
        case NormBox():
            return _of_norm(box)
        case ProjectionBox(makes=makes, rows=rows, columns=columns):
            what = _MADE.get(makes, makes)
            sizes = f"a matrix of {rows:,} × {columns:,}"
            word = f"“{around.word}”" if box.reads else "every token of the encoder"
            return f"{title(box)}: {sizes} makes {what}: {columns:,} numbers for {word}."
        case HeadsBox():
            return _of_heads(box, around, keys, head)
        case OutputBox(off=True):
            return "Attention is switched off: W_O adds nothing to the residual stream."
        case OutputBox(rows=rows, columns=columns):
            wrote = around.wrote(box.part)
            norm = f", a vector of norm {value_text(wrote)}" if wrote is not None else ""
            return f"The heads' outputs, side by side, times W_O ({rows:,} × {columns:,}): what attention writes{norm}."
        case FeedForwardBox():
            return _of_network(box, around)
        case SumBox():
            return _of_sum(view, box)
        case ModuleBox():
            return f"{title(box)} ({short_name(box.module)}): {through(box)}."
    return f"{title(box)}: {said(box, around)}."


def _largest(vector: np.ndarray) -> int:
    return int(np.argmax(np.abs(np.nan_to_num(vector))))


def _of_norm(box: NormBox) -> str:
    mean = "" if box.rms else f"mean {value_text(box.mean)}, "
    spread = f"{'root mean square' if box.rms else 'deviation'} {value_text(box.deviation)}"
    begins = f"{title(box)}: {mean}{spread}"
    if box.before is None:
        return f"{begins}."
    d = _largest(box.before)
    off = " Its gain is switched off." if box.off else ""
    x, y = value_text(float(box.before[d])), value_text(float(box.after[d]))
    return f"{begins}, so {x} becomes {y} (dimension {d}).{off}"


def _of_heads(box: HeadsBox, around: Around, keys: Sequence[str], head: int) -> str:
    chosen = head if 0 <= head < box.heads else int(np.argmax(box.norms))
    row = box.weights[chosen]
    best = int(np.argmax(row))
    word = f"“{keys[best]}”" if best < len(keys) else f"position {best}"
    if is_off(box):
        return "Attention is switched off: its heads still have weights, but nothing of them is written."
    many = f"{counted(box.heads, 'head')} mix the values of {counted(len(row), 'token')} for “{around.word}”"
    off = ", but is switched off" if chosen in box.off else ""
    return f"{many}: head {chosen} takes most from {word}, {value_text(float(row[best]))}{off}."


def _of_network(box: FeedForwardBox, around: Around) -> str:
    if box.off:
        return "The feed-forward network is switched off: it adds nothing."
    said_of = []
    if box.experts:
        said_of.append(
            "the router chose " + " and ".join(f"expert {e.index} ({value_text(e.share)})" for e in box.experts)
        )
    if box.positive is not None:
        of = "of their" if box.experts else f"of {box.hidden:,}"
        said_of.append(f"{box.positive:,} {of} neurons are above 0")
    if box.neurons:
        first = box.neurons[0]
        effect = ""
        if first.effect is not None and around.target:
            effect = f", which adds {signed(first.effect)} to the logit of “{around.target}”"
        of = f" of expert {first.expert}" if first.expert is not None else ""
        said_of.append(f"neuron {first.number}{of} writes most, norm {value_text(first.write_norm)}{effect}")
    wrote = around.wrote(box.part)
    if wrote is not None:
        said_of.append(f"together they write norm {value_text(wrote)}")
    return f"Feed-forward network: {'; '.join(said_of)}." if said_of else "The feed-forward network."


def _of_sum(view: BlockView, box: SumBox) -> str:
    parts = [view.before if read == STREAM else view.boxes[read].after for read in box.reads]
    if not parts or any(part.shape != box.after.shape for part in parts):
        return "The sum: what was written joins the residual stream."
    d = _largest(box.after)
    factors = box.factors or (1.0,) * len(parts)
    numbers = [float(part[d]) for part in parts]
    terms = [value_text(numbers[0]) if factors[0] == 1 else f"{value_text(factors[0])} × {value_text(numbers[0])}"]
    for factor, number in zip(factors[1:], numbers[1:], strict=True):
        terms.append(added(number) if factor == 1 else f"+ {value_text(factor)} × {value_text(number)}")
    return (
        f"The sum, dimension {d}: {' '.join(terms)} = {value_text(float(box.after[d]))}. It is the residual stream now."
    )


def output_sentence(group: OutputGroup) -> str:
    """ "It says “Tom”, 67.9 %, before “Ben”, 9.8 %."."""
    if not group.rows:
        return f"{group.heading[:1].upper()}{group.heading[1:]}."
    first = f"“{group.rows[0].label}”, {group.rows[0].text}"
    second = f", before “{group.rows[1].label}”, {group.rows[1].text}" if len(group.rows) > 1 else ""
    return f"{group.heading[:1].upper()}{group.heading[1:]}: {first}{second}."


def recurrent_sentence(scene: RecurrentScene, step: int) -> str:
    """What one step of reading or writing leaves in the state."""
    count, flow = len(scene.source), scene.flow
    if step < count:
        norm = value_text(float(flow.encoder[0][step]))
        told = ""
        if step + 1 == count and flow.bottleneck is not None:
            numbers = f"{len(flow.bottleneck):,} numbers"
            told = f" The decoder is told no more of the {count} tokens than one vector of {numbers}."
        reads = f"The encoder reads “{scene.source[step]}”, token {step + 1} of {count}"
        return f"{reads}: its state has norm {norm} now.{told}"
    place = step - count
    norm = value_text(float(flow.decoder[place]))
    context = ""
    if flow.contexts is not None:
        context = f", attention's context has norm {value_text(float(flow.contexts[place]))}"
    comes = f"“{scene.target[place + 1]}” comes out" if place + 1 < len(scene.target) else "the end"
    return f"“{scene.target[place]}” goes into the decoder{context}; its state has norm {norm} now: {comes}."
