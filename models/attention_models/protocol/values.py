"""Plain values that requests and results are made of: tokens, sites, checkpoints, candidates. Numpy, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """`array` itself, which nobody can write into from now on."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the input and the characters it covers.

    `text == input[start:end]` (code points); special tokens that stand for no text have `start == end`. Of a pair the
    input is the text of the token's segment. Of a conversation it is the text that its template made of it, where
    tokens of the template cover their own name. Where one character was split over several tokens (bytes of an emoji),
    all of them cover that character and `part` says which piece of how many this one is, counting from 1.
    """

    id: int
    piece: str  # as in the vocabulary: "Ġcats", "##ing", "▁the"
    text: str
    start: int
    end: int
    special: bool = False
    part: tuple[int, int] = (1, 1)
    label: str = ""  # what to draw: "␣cats", "⟨start⟩", "‹F0·9F›"
    segment: int = 0  # of a pair of texts: 0 for the first, whose characters it covers, 1 for the second
    padding: bool = False  # it fills a text up to the length of the longest of its batch; masked for all others
    role: str = (
        ""  # whose turn of a conversation it is of: "system", "user" or "assistant"; "" for what a template wrote
    )
    continues: bool = False  # goes on with the word of the token before it

    @property
    def word(self) -> str:
        """The label without the marks of leading white space: for axes, where tokens do not run on."""
        return self.label.lstrip("␣") or self.label


Pooling = Literal["max", "mean"]
"""What a pixel shows of the weights that it stands for."""

LARGEST_WHOLE = 1024
"""Tokens up to which a head's weights are handed over whole (4 MB)."""


MOST = 1 << 20
"""No window, block, cell or unit has a higher number: more than any text here has tokens."""


def is_long(queries: int, keys: int) -> bool:
    """Whether a head has so many weights that neither they nor their mask are held at once."""
    return queries * keys > LARGEST_WHOLE**2


@dataclass(frozen=True, slots=True)
class Site:
    """One attention module as it ran: `stack` is "decoder", "encoder" or "cross"; `layer` counts from 0."""

    stack: str
    layer: int
    heads: int
    key_heads: int  # fewer than `heads` where query heads share keys and values (grouped-query attention)
    head_dim: int
    queries: int
    keys: int
    causal: bool = False
    module: str = ""  # its name in the model
    added_keys: int = 0  # the last of `keys`, which are no tokens: nn.MultiheadAttention's bias of k and v, or zeros

    @property
    def ref(self) -> SiteRef:
        return SiteRef(self.stack, self.layer)

    @property
    def is_long(self) -> bool:
        """Whether a head's weights are too many to hold at once: they are shown as tiles and rows."""
        return is_long(self.queries, self.keys)


@dataclass(frozen=True, slots=True, order=True)
class SiteRef:
    stack: str
    layer: int

    @property
    def block(self) -> SiteRef:
        """The block that it is in: of cross-attention one of the decoder."""
        return SiteRef("decoder", self.layer) if self.stack == "cross" else self


class HasTokens(Protocol):
    """A run, as the engine or the window keeps it."""

    @property
    def tokens(self) -> tuple[Token, ...]: ...
    @property
    def source(self) -> tuple[Token, ...]: ...


def site_tokens(run: HasTokens, site: Site) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The tokens that attend at `site` (its queries), and those that are attended to (its keys)."""
    queries = keys = run.tokens
    if run.source:
        queries = run.source if site.stack == "encoder" else run.tokens
        keys = run.tokens if site.stack == "decoder" else run.source
    if site.added_keys:
        keys = (*keys, *(Token(-1, "", "", 0, 0, special=True, label="⟨added⟩") for _ in range(site.added_keys)))
    return queries, keys


TILE = 256
"""Pixels a side of a tile of a head's map."""


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """Part of a head's map: at level L a pixel stands for 2^L x 2^L weights. `row` and `column` count tiles."""

    level: int
    row: int
    column: int

    @property
    def cell(self) -> int:
        """Weights along the side of the square that one pixel stands for."""
        return 1 << self.level

    def rows(self, queries: int) -> slice:
        """The queries it covers."""
        return slice(self.row * TILE * self.cell, min((self.row + 1) * TILE * self.cell, queries))

    def columns(self, keys: int) -> slice:
        """The keys it covers."""
        return slice(self.column * TILE * self.cell, min((self.column + 1) * TILE * self.cell, keys))


def top_level(queries: int, keys: int) -> int:
    """The level at which a whole map is one tile."""
    return max(0, (-(-max(queries, keys) // TILE) - 1).bit_length())


@dataclass(frozen=True, slots=True)
class StackInfo:
    stack: str
    layers: int
    heads: int
    key_heads: int


@dataclass(frozen=True, slots=True)
class ClassHead:
    """An output head that tells classes apart, where others say words.

    `of` is what it says one thing of: the "text" as a whole, each "token", the "span" of tokens that answers a
    question, by a start and an end, or the "choice" between the texts that run together. `scale` is what makes shares
    of its logits: a "softmax" over the classes (of a span over the tokens, of a choice over the texts), a "sigmoid" of
    each where several may hold, nothing where they are plain "number"s.
    """

    of: Literal["text", "token", "span", "choice"]
    scale: Literal["softmax", "sigmoid", "number"]
    labels: tuple[str, ...]  # as `id2label` has them; "start" and "end" of a span; none of a choice: its texts
    otherwise: str = ""  # of one class alone: what a token is where that is not so, "original" beside "replaced"


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """A LoRA adapter beside a checkpoint's weights, or one whose checkpoint was found: Hu et al. 2021."""

    name: str
    folder: str
    kind: str  # "LORA", as its config has it
    base: str = ""  # the checkpoint that it was made for, as its config names it
    rank: int = 0
    alpha: float = 0.0
    scale: float = 0.0  # what the product of its two matrices is multiplied by: alpha / rank, or alpha / sqrt(rank)
    modules: tuple[str, ...] = ()  # whose weights it tunes
    ranks: tuple[int, ...] = ()  # of each of them
    scales: tuple[float, ...] = ()  # of each of them
    dora: bool = False  # it has a magnitude for each row of a tuned matrix too: Liu et al. 2024
    replaced: tuple[str, ...] = ()  # parameters that it has whole, in the place of the model's own
    why: str = ""  # why it is not put on its model; "" where it is

    @property
    def targets(self) -> tuple[str, ...]:
        """What these modules are called in a layer, each once: "c_attn", "q_proj"."""
        return tuple(sorted({module.rpartition(".")[2] for module in self.modules}))

    @property
    def words(self) -> str:
        """ "LoRA of rank 8, alpha 16 (scale 2), on c_attn"; or why it is not put on."""
        if self.why:
            return f"{self.name} is not put on: {self.why}"
        on = f"on {', '.join(self.targets)} ({len(self.modules):,} matrices)"
        if self.replaced:
            whole = sorted({name.rpartition(".")[0] for name in self.replaced})
            on += f"; {', '.join(whole)} replaced"
        return f"{self.method} of {self.amounts}, {on}"

    @property
    def method(self) -> str:
        return "DoRA" if self.dora else "LoRA"

    @property
    def amounts(self) -> str:
        """ "rank 8, alpha 16 (scale 2)"; "ranks 4 to 8, scales 0.5 to 2" where modules have ones of their own."""
        if len(set(self.ranks)) < 2 and set(self.scales) <= {self.scale}:
            return f"rank {self.rank}, alpha {self.alpha:g} ({self.scale_words})"
        low, high = min(self.ranks), max(self.ranks)
        return f"{f'rank {low}' if low == high else f'ranks {low} to {high}'} ({self.scale_words})"

    @property
    def scale_words(self) -> str:
        """ "scale 2", or "scales 0.5 to 2"."""
        low, high = min(self.scales, default=self.scale), max(self.scales, default=self.scale)
        return f"scale {low:.3g}" if low == high else f"scales {low:.3g} to {high:.3g}"


@dataclass(frozen=True, slots=True)
class TrainingSteps:
    """The training that a checkpoint comes from, by the snapshots that are in its folder."""

    reference: str  # what opens its end: the folder, without a step
    steps: tuple[int, ...]  # ascending; of each there is a snapshot
    step: int | None = None  # after which the checkpoint was; None for the end
    settings: str = ""  # SHA-256 of config and tokenizer

    def at(self, step: int | None) -> str:
        """The reference that opens the model as it was after `step`; None for the end."""
        return self.reference if step is None else f"{self.reference}@{step}"


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What can be said of a checkpoint from its config and the headers of its files, before loading it."""

    reference: str  # what was asked for: a shipped name or a folder
    name: str
    folder: str
    family: str  # "causal", "masked", "encoder", "seq2seq", "vision"
    model_type: str
    architecture: str
    stacks: tuple[StackInfo, ...]
    width: int
    context: int | None  # tokens that fit; None where the model states no bound
    vocabulary: int  # tokens; of a vision model the classes that it tells apart, 0 without a head
    parameters: int
    file_bytes: int
    summary: str = ""  # what its card says that it is
    look: str = ""  # what its card says is worth looking at
    example: str = ""
    second: str = ""  # the example's second text, of a model that was made for pairs
    reads: str = ""  # the language of the texts that it was made for, "en"; "" where its card does not say
    prefix: str = ""  # put in front of every text, where training did so and the tokenizer does not
    mask_token: str | None = None
    shipped: bool = False
    channels: int = 0  # of the pictures that a vision model reads: 1 grey, 3 colour; 0 for a model that reads text
    weights_only: str = ""  # why its queries, keys and scores cannot be seen, only its weights; "" where all can
    additive: bool = False  # its scores are v · tanh(q + k), and no products of queries and keys
    borrowed: bool = False  # an object of the person's own program, and no file
    textbook: bool = False  # one of ours, with its own attention module, and not one of transformers'
    head_dim: int = 0
    gguf: str = ""  # the file in `folder` that holds all of it, where it is a GGUF file
    pairs: bool = False  # it reads two texts together: its tokenizer has a template for pairs
    chat: bool = False  # it writes after a conversation too: its tokenizer has a chat template
    wordless: str = ""  # why it says no words, where its class has an output head: a tensor that is not in the file
    adapter: AdapterInfo | None = None  # beside its weights, put on or not
    class_head: ClassHead | None = None  # of a classifier, whose family is then "encoder": it says no words
    pair_head: ClassHead | None = None  # beside a head for masks, what it says of two texts (BertForPreTraining)
    text_part: str = ""  # what the text half is called that its files hold too, where its vision half is shown (CLIP)
    training: TrainingSteps | None = None  # whose snapshots lie beside it; None of all that no training here has saved

    @property
    def put_on(self) -> AdapterInfo | None:
        """The adapter that its weights are changed by; None of one that could not be put on them."""
        return None if self.adapter is None or self.adapter.why else self.adapter

    @property
    def predicting_stack(self) -> str:
        """The stack whose states say what comes: "decoder" where there is one, else "encoder"."""
        is_decoder = self.family in ("causal", "seq2seq") or any(stack.stack == "decoder" for stack in self.stacks)
        return "decoder" if is_decoder else "encoder"


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that a checkpoint can or cannot be used for here. `why` may be a fact where it works."""

    name: str
    works: bool
    why: str = ""


BEST = "best"
"""The first accelerator where there is one, else the CPU."""

AUTO = "auto"
"""The device that is all of them: a model spread over several."""

TOLERANCE = 1e-5
"""The largest difference to a model's own eager attention, computed in float32, that rounding explains."""

UNIT_ROUNDOFFS = {"float32": 2**-24, "bfloat16": 2**-8, "float16": 2**-11}
"""The number formats a model can run in, and by what share of its size rounding to one may move a number."""

COARSE = ("bfloat16", "float16")
"""Formats in which rounding moves a weight by more than `TOLERANCE`."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model runs and in which number format. Plain text, so that it can be remembered."""

    device: str = BEST  # or AUTO, or "cpu", "cuda:0", "mps:0", "xpu:0" as torch has it
    dtype: str = "float32"  # one of `UNIT_ROUNDOFFS`


DEFAULT_PLACEMENT = Placement()


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device that this computer has. Memory in bytes, None where the driver does not say."""

    name: str  # as in `Placement`
    label: str  # for people: "CUDA 0 (NVIDIA H100)"
    free: int | None
    total: int | None


@dataclass(frozen=True, slots=True, eq=False)
class SeenPicture:
    """A picture as a vision model saw it: scaled, cut to its format, and divided into patches."""

    pixels: np.ndarray  # (height, width, 3) uint8
    rows: int  # of patches
    columns: int
    first: int  # the position of the first patch among the tokens; before it stand CLS and its like
    changes: tuple[str, ...] = ()  # what is not as in the file: "512 × 300 squeezed to 224 × 224", "alpha dropped"

    def patch(self, position: int) -> tuple[int, int] | None:
        """Row and column of the patch at a position, None for a token that is no patch."""
        place = position - self.first
        return divmod(place, self.columns) if 0 <= place < self.rows * self.columns else None


@dataclass(frozen=True, slots=True)
class Candidate:
    id: int
    label: str
    piece: str
    probability: float  # NaN of a class that is given a plain number
    logit: float
    rank: int  # 1 is the likeliest
    before: float | None = None  # of an edited run: how likely the model as it is finds it


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says at one position: the next token of a causal model, the token itself of a masked one."""

    position: int
    candidates: tuple[Candidate, ...]
    actual: Candidate | None  # the token that stands there in the text, where there is one
    entropy: float  # bits, of the whole distribution
