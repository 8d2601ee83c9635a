"""The switches of the textbook models and of their training, as the form shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Model = Literal["transformer", "recurrent"]


@dataclass(frozen=True, slots=True)
class Choose:
    """One word of several, each with what it is called here; the first is the default."""

    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Flag:
    on: bool


@dataclass(frozen=True, slots=True)
class Whole:
    default: int
    least: int
    most: int
    zero: str = ""  # what 0 stands for


@dataclass(frozen=True, slots=True)
class Real:
    default: float
    least: float
    most: float
    decimals: int
    step: float


@dataclass(frozen=True, slots=True)
class Switch:
    """`name` is what `--set` calls it."""

    name: str
    label: str
    tip: str
    kind: Choose | Flag | Whole | Real
    model: Model | None = None  # the only one that has it; None: both have
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()  # other switches of that model, and words one of which each has

    def applies(self, model: Model, words: Mapping[str, str]) -> bool:
        """Whether it changes anything in `model`, whose lists are at `words`, by the name of their switch."""
        return self.model in (None, model) and all(words[name] in allowed for name, allowed in self.needs)


_TRANSFORMER: tuple[tuple[str, tuple[Switch, ...]], ...] = (
    (
        "Shape and size",
        (
            Switch(
                "shape",
                "Shape",
                "An encoder reads and a decoder writes, or either alone",
                Choose(
                    (
                        ("encoder-decoder", "Encoder and decoder"),
                        ("decoder", "Decoder alone"),
                        ("encoder", "Encoder alone"),
                    )
                ),
            ),
            Switch("width", "Width", "Dimensions of the residual stream, d_model", Whole(64, 2, 512)),
            Switch("layers", "Layers", "Blocks of each stack", Whole(2, 1, 24)),
            Switch(
                "inner",
                "Inner width",
                "Neurons of the feed-forward networks",
                Whole(0, 0, 2048, "4 × width"),
                needs=(("feed_forward", ("relu", "gelu", "swiglu")),),
            ),
            Switch("context", "Context", "The most tokens that it can read", Whole(0, 0, 2048, "twice the rows")),
        ),
    ),
    (
        "Positions",
        (
            Switch(
                "positions",
                "Positions",
                "How it is told where a token stands. Concatenated, embedding and position get half of the width each; "
                "mapped back to the width, they are added, each through a matrix of its own",
                Choose(
                    (
                        ("sinusoidal", "Sinusoids, added"),
                        ("appended", "Sinusoids, concatenated"),
                        ("concatenated", "Sinusoids, concatenated and mapped"),
                        ("learned", "Learned"),
                        ("rope", "RoPE"),
                        ("alibi", "ALiBi"),
                        ("t5", "T5 bias"),
                        ("none", "None"),
                    )
                ),
            ),
            Switch(
                "buckets",
                "T5 buckets",
                "How many distances T5's bias tells apart",
                Whole(32, 4, 512),
                needs=(("positions", ("t5",)),),
            ),
            Switch(
                "farthest",
                "T5 farthest",
                "The distance from which on all are alike to T5's bias",
                Whole(128, 4, 4096),
                needs=(("positions", ("t5",)),),
            ),
        ),
    ),
    (
        "Attention",
        (
            Switch("heads", "Heads", "Of each attention layer; each gets an equal part of the width", Whole(4, 1, 64)),
            Switch(
                "key_heads",
                "Key heads",
                "Heads of keys and values, shared by groups of heads",
                Whole(0, 0, 64, "as heads"),
            ),
            Switch(
                "score",
                "Score",
                "How a query and a key are compared",
                Choose((("scaled", "Dot product / √d"), ("dot", "Dot product"), ("additive", "Additive"))),
            ),
            Switch(
                "causal_mask",
                "Causal mask",
                "No token of a decoder attends to a later one",
                Flag(True),
                needs=(("shape", ("encoder-decoder", "decoder")),),
            ),
        ),
    ),
    (
        "Block",
        (
            Switch(
                "norm",
                "Norm",
                "LayerNorm, or RMSNorm, which does not subtract the mean",
                Choose((("layer", "LayerNorm"), ("rms", "RMSNorm"))),
            ),
            Switch(
                "norm_place",
                "Norm place",
                "After each part, as in the paper, or before it",
                Choose((("post", "After (post)"), ("pre", "Before (pre)"))),
            ),
            Switch("epsilon", "Norm ε", "Keeps a norm from dividing by 0", Real(1e-5, 1e-8, 0.1, 8, 1e-5)),
            Switch(
                "feed_forward",
                "Feed-forward",
                "What is between its two linear layers; none leaves it out",
                Choose((("relu", "ReLU"), ("gelu", "GELU"), ("swiglu", "SwiGLU"), ("none", "None"))),
            ),
            Switch("residual", "Residuals", "Each part adds to the stream, and does not replace it", Flag(True)),
            Switch(
                "tied",
                "Tied embeddings",
                "One matrix embeds both texts and gives the logits",
                Flag(True),
                needs=(("positions", ("sinusoidal", "concatenated", "learned", "rope", "alibi", "t5", "none")),),
            ),
            Switch("bias", "Biases", "Of the linear layers", Flag(True)),
            Switch("scaled_embedding", "Scaled embedding", "Embeddings are multiplied by √width", Flag(True)),
        ),
    ),
)

_RECURRENT: tuple[tuple[str, tuple[Switch, ...]], ...] = (
    (
        "Network",
        (
            Switch(
                "cell",
                "Cell",
                "What carries the state from token to token",
                Choose((("gru", "GRU"), ("lstm", "LSTM"))),
            ),
            Switch("hidden", "Hidden", "Dimensions of a state", Whole(64, 1, 512)),
            Switch("embedding", "Embedding", "Dimensions of a token's embedding", Whole(32, 1, 512)),
            Switch("bidirectional", "Both directions", "The encoder reads the text backwards too", Flag(True)),
        ),
    ),
    (
        "Attention",
        (
            Switch(
                "score",
                "Score",
                "How the decoder's state and each of the encoder's are compared. The bottleneck has no attention: the "
                "encoder's last state is all that the decoder gets",
                Choose(
                    (
                        ("bahdanau", "Bahdanau"),
                        ("dot", "Luong, dot"),
                        ("general", "Luong, general"),
                        ("concat", "Luong, concat"),
                        ("none", "None: bottleneck"),
                    )
                ),
            ),
            Switch(
                "scope",
                "Scope",
                "All of the text, or a window that moves with what is written, or to where the model predicts",
                Choose((("global", "Global"), ("monotonic", "Local, monotonic"), ("predictive", "Local, predictive"))),
                needs=(("score", ("dot", "general", "concat")),),
            ),
            Switch(
                "window",
                "Window",
                "Tokens to each side of the place that local attention attends to",
                Whole(3, 1, 128),
                needs=(("score", ("dot", "general", "concat")), ("scope", ("monotonic", "predictive"))),
            ),
        ),
    ),
)

_BOTH: tuple[tuple[str, tuple[Switch, ...]], ...] = (
    (
        "Training",
        (
            Switch("batch", "Rows a batch", "Rows that it learns from in one step", Whole(64, 1, 1024)),
            Switch("rate", "Rate", "What the paper's learning rate is multiplied by", Real(0.5, 0.001, 100.0, 3, 0.1)),
            Switch("warmup", "Warm-up", "Steps in which the learning rate climbs", Whole(200, 1, 100_000)),
            Switch("clip", "Clip", "The most that the gradient's length may be", Real(1.0, 0.001, 1000.0, 3, 0.1)),
            Switch(
                "dropout",
                "Dropout",
                "Part of the activations that are set to 0 at random",
                Real(0.1, 0.0, 0.95, 2, 0.05),
            ),
            Switch(
                "label_smoothing",
                "Label smoothing",
                "Part of the target that is spread over all tokens",
                Real(0.1, 0.0, 0.95, 2, 0.05),
                "transformer",
            ),
            Switch(
                "snapshot_every",
                "Snapshot every",
                "Steps between two snapshots, which the slider goes through",
                Whole(20, 1, 10_000),
            ),
        ),
    ),
)


def _of(model: Model, groups: tuple[tuple[str, tuple[Switch, ...]], ...]) -> tuple[tuple[str, tuple[Switch, ...]], ...]:
    return tuple((title, tuple(replace(switch, model=model) for switch in group)) for title, group in groups)


GROUPS = (*_of("transformer", _TRANSFORMER), *_of("recurrent", _RECURRENT), *_BOTH)
SWITCHES = tuple(switch for _, group in GROUPS for switch in group)
