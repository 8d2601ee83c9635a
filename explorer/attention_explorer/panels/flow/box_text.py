"""What stands in each box of a block, and what is said of it when it is pointed at. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from attention_explorer.widgets.number_text import counted, signed, value_text
from attention_models.protocol.flow import (
    Box,
    FeedForwardBox,
    HeadsBox,
    ModuleBox,
    Neuron,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)

_MADE = {"q": "Q", "k": "K", "v": "V", "qkv": "Q, K, V", "kv": "K, V", "qk": "Q, K"}
_MADE_OF = {
    "q": "queries",
    "k": "keys",
    "v": "values",
    "qkv": "queries, keys and values",
    "kv": "keys and values",
    "qk": "queries and keys",
}

PLACEMENTS = {
    "pre": "pre-norm, read from the model",
    "post": "post-norm, read from the model",
    "both": "norms before and after, read from the model",
    "write": "norms on what is written, read from the model",
    "none": "without normalisation",
    "unknown": "",
}


@dataclass(frozen=True, slots=True)
class Around:
    """What the block's boxes do not say themselves: the token's word, and what FlowView knows of its writes."""

    word: str
    target: str = ""  # the chosen next token
    written: tuple[tuple[str, float], ...] = ()  # of each part, the norm of what it wrote at the position

    def wrote(self, part: str) -> float | None:
        return next((norm for name, norm in self.written if name == part), None)


def title(box: Box) -> str:
    match box:
        case NormBox(rms=rms):
            return "RMS norm" if rms else "Layer norm"
        case ProjectionBox(makes=makes):
            return _MADE.get(makes, makes)
        case HeadsBox(heads=heads, head_dim=dim):
            return f"{counted(heads, 'head')}, {dim} dimensions each"
        case OutputBox():
            return "Concatenate, × W_O"
        case FeedForwardBox(expert_count=experts):
            return f"Mixture of {experts} experts" if experts else "Feed-forward network"
        case SumBox():
            return "Sum"
    return box.kind or short_name(box.module)


def is_off(box: Box) -> bool:
    """Whether an intervention has switched all of it off."""
    match box:
        case HeadsBox(off=heads):
            return len(heads) == box.heads
        case NormBox() | OutputBox() | FeedForwardBox():
            return box.off
    return False


def said(box: Box, around: Around) -> str:
    """What is said of a box beside or below its title."""
    return ways_to_say(box, around)[0]


def ways_to_say(box: Box, around: Around) -> tuple[str, ...]:
    """What is said of a box, and then ever shorter, for where there is less room."""
    match box:
        case NormBox():
            return _of_norm(box)
        case ProjectionBox(rows=rows, columns=columns, bias=bias, reads=reads):
            sizes = f"{rows:,} × {columns:,}"
            full = sizes + (f" + {columns:,}" if bias else "")
            if reads:
                return full, sizes
            return (
                f"{full}, of the encoder's tokens",
                f"{sizes}, of the encoder",
                "of the encoder's tokens",
                "of encoder",
            )
        case HeadsBox(heads=heads, key_heads=key_heads):
            if is_off(box):
                return f"weights for “{around.word}”, switched off: nothing of them is written", "switched off"
            shared = f"; {counted(key_heads, 'key head')}" if key_heads < heads else ""
            full = f"each head's row of weights for “{around.word}”{shared}"
            if box.off:
                which = ", ".join(map(str, box.off))
                heads_off = f"{'heads' if len(box.off) > 1 else 'head'} {which} switched off"
                return f"{full}; {heads_off}", heads_off
            return full, f"the rows of weights for “{around.word}”", f"weights for “{around.word}”"
        case OutputBox(rows=rows, columns=columns):
            sizes = f"{rows:,} → {columns:,}"
            writes = "switched off" if box.off else _writes(around.wrote(box.part))
            return "; ".join(filter(None, (sizes, writes))), writes or sizes
        case FeedForwardBox():
            return _of_network(box, around)
        case ModuleBox():
            return (f"{short_name(box.module)}: {through(box)}", through(box))
    return ("",)


def through(box: ModuleBox) -> str:
    """What is known of a module: what went in and what came out."""
    if box.norm_after is None:
        return "gives no vector of a single token"
    into = f"norm {value_text(box.norm_before)} in, " if box.norm_before is not None else ""
    return f"{into}norm {value_text(box.norm_after)} out"


def neuron_name(neuron: Neuron) -> str:
    """Its number; of an expert after that of the expert: "3:17"."""
    return str(neuron.number) if neuron.expert is None else f"{neuron.expert}:{neuron.number}"


def _writes(norm: float | None) -> str:
    return f"writes norm {value_text(norm)}" if norm is not None else ""


def _of_norm(box: NormBox) -> tuple[str, ...]:
    mean = "" if box.rms else f"mean {value_text(box.mean)}, "
    spread = f"{'root mean square' if box.rms else 'deviation'} {value_text(box.deviation)}"
    learned = [name for name, numbers in (("gain", box.gain), ("bias", box.bias)) if numbers is not None]
    if box.off:
        return f"{mean}{spread}, switched off", "switched off"
    then = f", then {' and '.join(learned)}" if learned else ""
    return f"{mean}{spread}{then}", f"{mean}{spread}", spread


def _of_network(box: FeedForwardBox, around: Around) -> tuple[str, ...]:
    width = len(box.after)
    sizes = f"{width:,} → {box.hidden:,} → {width:,}" if box.hidden else ""
    built = ", ".join(part for part in (sizes, box.activation, "gated" if box.gated else "") if part)
    wrote = "switched off" if box.off else _writes(around.wrote(box.part))
    above = f"{counted(box.positive, 'neuron')} above 0" if box.positive is not None else ""
    chosen = ", ".join(f"{e.index} ({100 * e.share:.0f} %)" for e in box.experts)
    experts = f"experts {chosen}" if chosen else ""
    ways = ((built, wrote, above, experts), (built, wrote, experts), (built, experts or wrote), (built,), (sizes,))
    return tuple("; ".join(filter(None, parts)) for parts in ways)


def fitting(ways: Iterable[str], room: float, width_of: Callable[[str], float]) -> str:
    """The first of `ways` that is no wider than `room`; "" where none is, which a tooltip says all the same."""
    return next((words for words in ways if width_of(words) <= room), "")


def tooltip(box: Box, around: Around) -> str:
    """Digits, and the module's own name."""
    lines = [f"{title(box)}: {said(box, around)}" if said(box, around) else title(box)]
    match box:
        case NormBox(eps=eps):
            lines.append(f"eps {eps:g}")
        case ProjectionBox(makes=makes):
            lines.append(f"makes {_MADE_OF.get(makes, makes)}")
        case SumBox(factors=factors) if factors and any(factor != 1 for factor in factors):
            lines.append("each times " + ", ".join(value_text(factor) for factor in factors))
        case FeedForwardBox(neurons=neurons) if neurons:
            lines.append(
                f"the {len(neurons)} neurons that write most are drawn, as high as the norm of what they write"
            )
    if box.module:
        numbers = f", {box.parameters:,} numbers" if box.parameters else ""
        lines.append(f"{box.module}{numbers}")
    return "\n".join(lines)


def head_tooltip(box: HeadsBox, output: OutputBox | None, head: int, words: Sequence[str]) -> str:
    """Where a head attends to most, and how much it gives."""
    row = box.weights[head]
    best = int(row.argmax())
    word = f"“{words[best]}”" if best < len(words) else f"position {best}"
    lines = [f"head {head}: most on {word}, {value_text(float(row[best]))}"]
    lines.append(f"output of norm {value_text(float(box.norms[head]))}")
    if head in box.off:
        lines.append("switched off: nothing of it is written")
    elif output is not None and output.norms is not None and head < len(output.norms):
        lines.append(f"through W_O it writes {value_text(float(output.norms[head]))}")
    return "\n".join(lines)


def neuron_tooltip(neuron: Neuron, target: str) -> str:
    of = f" of expert {neuron.expert}" if neuron.expert is not None else ""
    lines = [f"neuron {neuron.number}{of}: {value_text(neuron.activation)}"]
    lines.append(f"writes a vector of norm {value_text(neuron.write_norm)}")
    if neuron.effect is not None and target:
        lines.append(f"which adds {signed(neuron.effect)} to the logit of “{target}”, directly")
    return "\n".join(lines)


def stripe_tooltip(box: NormBox, dimension: int) -> str:
    """One dimension of a norm, as it is computed."""
    if box.before is None:
        return f"dimension {dimension}: {value_text(float(box.after[dimension]))}"
    return f"dimension {dimension}: {norm_terms(box, dimension)} = {value_text(float(box.after[dimension]))}"


def norm_terms(box: NormBox, dimension: int) -> str:
    """(x − mean) ÷ √(deviation² + eps) × gain + bias, in numbers."""
    assert box.before is not None
    x = value_text(float(box.before[dimension]))
    inner = x if box.rms else f"({x} − {bracketed(box.mean)})"
    gain = "" if box.gain is None or box.off else f" × {bracketed(float(box.gain[dimension]))}"
    bias = "" if box.bias is None or box.off else f" + {bracketed(float(box.bias[dimension]))}"
    return f"{inner} ÷ √({value_text(box.deviation)}² + {box.eps:g}){gain}{bias}"


def bracketed(value: float) -> str:
    text = value_text(value)
    return text if value >= 0 else f"({text})"


def short_name(module: str) -> str:
    """The last part of a module's name."""
    return module.rpartition(".")[2] or module
