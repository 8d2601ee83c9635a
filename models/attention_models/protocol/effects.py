"""A word in two texts: how alike a model's vectors of it are, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import HeadOfRunRequest, Lane, Request, Result, RunRequest
from attention_models.protocol.values import Candidate, SiteRef, Token

if TYPE_CHECKING:
    import numpy as np


def check_choice(what: str, value: object, literal: Any) -> None:
    """Raises ValueError where `value` is none of the words of a `Literal`."""
    words = get_args(literal)
    if value not in words:
        raise ValueError(f"There is no {what} “{value}”: there are {', '.join(words[:-1])} and {words[-1]}.")


# What every head does to what a model says: the change where it is zeroed.


Measure = Literal["logit", "difference", "loss"]
"""The logit of a token or class; that less another's; the text's mean cross-entropy in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What an effect is measured on.

    Attributes:
        measure: see `Measure`. Of the loss no position and no token is needed.
        position: where the model says it; None for the first mask of a masked model, else for its last token that is
            neither padding nor put around the text by the tokenizer, of other models the last that is no padding.
        target: a vocabulary id, a class, or the words of either as they stand in a text; None for the likeliest.
        against: of a difference the other one; None for the likeliest but for the target.
    """

    measure: Measure = "logit"
    position: int | None = None
    target: int | str | None = None
    against: int | str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_choice("measure", self.measure, Measure)


LIKELIEST = Metric()
"""The logit of what the model says after the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsRequest(RunRequest):
    """The change of `aim` where each head of run `run` is zeroed before W_O. Answered by `EffectsView`.

    An answer holds what could be computed in a moment; `have` is the `done` of the one before.
    """

    lane: ClassVar[Lane] = Lane("view:effects")
    activity: ClassVar[str] = "ablating every head"
    answered_by: ClassVar[str] = "attention_models.effects.sweep:answer"
    aim: Metric = LIKELIEST
    have: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadEffectRequest(EffectsRequest):
    """The same, of which one head is meant: its change alone is written as PyTorch."""

    activity: ClassVar[str] = "ablating one head"
    printed_by: ClassVar[str] = "attention_models.scripts.head_effect:write"
    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True, eq=False)
class SiteEffects:
    """Of the heads of one attention module, (heads,) float64: after less before. NaN of what is not computed yet."""

    site: SiteRef
    heads: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricView:
    """An aim with nothing left open, and what the run itself says."""

    measure: Measure
    position: int
    target: int | None
    against: int | None
    target_label: str
    against_label: str
    value: float  # the logit, the difference or the loss of the run
    candidates: tuple[Candidate, ...]  # the likeliest at the position: what a target may be chosen from

    @property
    def words(self) -> str:
        """ "logit of “ Tom”", "“ Tom” less “ Anna”", "loss"."""
        if self.measure == "loss":
            return "loss"
        if self.measure == "difference":
            return f"“{self.target_label}” less “{self.against_label}”"
        return f"logit of “{self.target_label}”"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """What a run says at the position of an aim."""

    value: float  # the aim's
    best_label: str  # of the likeliest answer
    best_share: float  # its probability; NaN where it is given a plain number
    loss: float | None  # nats; None for a model that has none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectsView(Result):
    request: EffectsRequest
    aim: MetricView
    now: MetricValue
    before: MetricValue | None = None  # the same text without the interventions that are on
    sites: tuple[SiteEffects, ...]  # in the order in which they ran
    done: float = 1.0

    def of(self, site: SiteRef) -> np.ndarray | None:
        """(heads,) of one attention module; None where there is none such."""
        return next((effects.heads for effects in self.sites if effects.site == site), None)

    @property
    def largest(self) -> tuple[SiteRef, int, float] | None:
        """The head whose absence changes most, and by how much; None while nothing is computed."""
        found = [(at.site, head, float(v)) for at in self.sites for head, v in enumerate(at.heads) if v == v]
        return max(found, key=lambda one: abs(one[2]), default=None)


# Which parts of a model wrote a logit: of the stream that the logits are read from, every summand's share of one.


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRequest(RunRequest):
    """What each part of the model adds to `aim`, a logit or a difference of two. Answered by `AttributionView`."""

    lane: ClassVar[Lane] = Lane("view:attribution")
    activity: ClassVar[str] = "attributing the logit"
    answered_by: ClassVar[str] = "attention_models.effects.attribution:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.attribution:write"
    aim: Metric = LIKELIEST


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteAttribution:
    """What one attention module adds: (heads,) float64 of its heads, and the bias of its W_O."""

    site: SiteRef
    heads: np.ndarray
    bias: float

    @property
    def total(self) -> float:
        return float(self.heads.sum()) + self.bias


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttributionView(Result):
    """aim = embedding + every attention module + every feed-forward network + constant + remainder.

    Of each part what it wrote at the position, times the direction in the stream that the logit is read along, with
    the divisor of the last normalisation held at its value in this run (Elhage et al. 2021). `constant` is what the
    last normalisation's bias and the output head's add. Where other norms, activations or a cap stand between a write
    and the logit, `held` says which were held at their factors in this run, and `constant` is of all biases on the way
    (Ali et al. 2022). Where `why` is said there is no such sum.
    """

    request: AttributionRequest
    aim: MetricView
    embedding: float = 0.0
    sites: tuple[SiteAttribution, ...] = ()
    networks: tuple[tuple[SiteRef, float], ...] = ()  # by block
    constant: float = 0.0
    remainder: float = 0.0  # the logit less the sum: rounding
    held: str = ""
    why: str = ""


# What the model would say if it ended after an earlier layer: the logit lens.


@dataclass(frozen=True, slots=True, kw_only=True)
class LensRequest(RunRequest):
    """The stream of run `run` read off by the model's own last norm and head after every layer. Answered by `LensView`.

    `target` is the token whose rank is followed, by its id or as it stands in a text; None for what the model says at
    each position in the end.
    """

    lane: ClassVar[Lane] = Lane("view:lens")
    activity: ClassVar[str] = "reading every layer by the output head"
    answered_by: ClassVar[str] = "attention_models.effects.lens:answer"
    target: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LensAtRequest(LensRequest):
    """The same, of which one position is meant: that of the curve, which is written as PyTorch."""

    activity: ClassVar[str] = "reading every layer at one position"
    printed_by: ClassVar[str] = "attention_models.scripts.lens:write"
    position: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LensView(Result):
    """Row 0 is the embedding, row l + 1 the stream after block l. Where `why` is said there is nothing but the norms.

    nostalgebraist 2020, "interpreting GPT: the logit lens".
    """

    request: LensRequest
    norms: np.ndarray  # (layers + 1, tokens) float32: the length of the stream
    written: np.ndarray  # (layers, tokens) float32: the length of what each block added
    best: np.ndarray | None = None  # (layers + 1, tokens) int: the likeliest id
    best_share: np.ndarray | None = None  # its probability, float32
    entropy: np.ndarray | None = None  # bits, float32
    targets: np.ndarray | None = None  # (tokens,) int: the token that is followed at each position
    target_share: np.ndarray | None = None  # (layers + 1, tokens) float32: its probability
    target_rank: np.ndarray | None = None  # (layers + 1, tokens) int: 1 is the likeliest
    labels: dict[int, str] | None = None  # of every id in `best` and `targets`
    why: str = ""
    position: int = 0  # the one asked for, else where the model is asked for its answer
    deviation: float = 0.0  # of the last row's logits from the run's own, the largest


# How much each token of a text matters to what a model says, by attention and by other accounts of it.


ACCOUNTS = {
    "attention": "attention",
    "rollout": "rollout",
    "flow": "attention flow",
    "gradient": "gradient × input",
    "integrated": "integrated gradients",
    "attention_gradient": "attention × gradient",
    "ablation": "ablation",
}
"""By their names, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRequest(RunRequest):
    """What each token of run `run` has to do with `aim`, a logit or a difference. Answered by `ExplanationView`."""

    lane: ClassVar[Lane] = Lane("view:explanation")
    activity: ClassVar[str] = "weighing the tokens"
    answered_by: ClassVar[str] = "attention_models.effects.explanation:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.explanation:write"
    aim: Metric = LIKELIEST


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """One number a token, (tokens,) float64, with a sign but for attention; None and the reason where there is none."""

    name: str  # one of `ACCOUNTS`
    values: np.ndarray | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplanationView(Result):
    """Attention is the mean over the heads of the last layer, in the row of the position.

    `correlations` are Spearman's, of absolute values, over the tokens that the position may attend to; NaN where an
    account is missing or says the same of all.
    """

    request: ExplanationRequest
    aim: MetricView
    accounts: tuple[Account, ...]
    correlations: np.ndarray  # (accounts, accounts) float64
    reached: (
        np.ndarray
    )  # (tokens,) bool: what the position may attend to, at once or by way of others; elsewhere all is 0
    baseline: float = 0.0  # the aim with all token embeddings 0: integrated gradients sum to its value less this
    gap: float = 0.0  # of that sum, as a share of the difference
    steps: int = 0  # points of the integral

    def of(self, name: str) -> np.ndarray | None:
        return next((account.values for account in self.accounts if account.name == name), None)


# What a run would say if part of another run's activations stood in it: activation patching.


Patched = Literal["residual", "attention", "mlp", "head", "pattern"]
"""The stream as it enters a block, what its attention or its feed-forward network adds, at one position; the output of
a head, or its weights alone, at all."""

Align = Literal["same", "start", "end", "tokens"]
"""Which token stands for which: in texts of one length, counted from the start or the end, or equal ones in order."""

BY_POSITION = ("residual", "attention", "mlp")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRequest(RunRequest):
    """`aim` in run `run` where activations of a run of `other` are copied into it, place by place.

    An answer holds what could be computed in a moment; `have` is the `done` of the one before.
    """

    lane: ClassVar[Lane] = Lane("view:patch")
    activity: ClassVar[str] = "patching activations"
    answered_by: ClassVar[str] = "attention_models.effects.patching:answer"
    other: str
    kind: Patched = "residual"
    align: Align = "same"
    aim: Metric = LIKELIEST
    have: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_choice("kind of activation", self.kind, Patched)
        check_choice("way to align tokens", self.align, Align)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchColumnRequest(PatchRequest):
    """The same, of which one position (or head, of `site`) is meant: it is written as PyTorch.

    Of a position that is every block, so that `site` is None.
    """

    activity: ClassVar[str] = "patching one position or head"
    printed_by: ClassVar[str] = "attention_models.scripts.patching:write"
    site: SiteRef | None = None
    column: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatchView(Result):
    """`values` are (rows, columns) float64, NaN where nothing is computed or no token stands for the column.

    Where `why` is said the texts are of different length and nothing says which token stands for which.

    Rows are blocks, columns positions of the run on screen; of heads and patterns rows are attention modules and
    columns heads.
    """

    request: PatchRequest
    aim: MetricView  # its value is that of the run as it is
    other_value: float  # the same in the other run
    rows: tuple[SiteRef, ...]
    values: np.ndarray
    stands_for: tuple[int | None, ...]  # of each position of this run the one of the other run
    other_labels: tuple[str, ...]  # the other run's tokens
    done: float = 1.0
    why: str = ""

    @property
    def shares(self) -> np.ndarray:
        """How far each patch goes from this run to the other: 0 nothing, 1 all the way. NaN where both say the same."""
        from numpy import full_like, nan

        way = self.other_value - self.aim.value
        return (self.values - self.aim.value) / way if abs(way) > 1e-9 else full_like(self.values, nan)


# Whether other attention weights would give the same answer, and the least change of them that gives another one.


Scope = Literal["head", "layer", "stack"]
"""Whose weights are changed: those of one head, of every head of its layer, or of every head of all layers like it."""

EPSILON = 0.01
"""How far the answer may move, in total variation distance: Jain and Wallace's bound for classifiers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversarialAttentionRequest(HeadOfRunRequest):
    """Other weights for the row that an answer is read at. Answered by `AdversarialAttentionView`.

    An answer holds what could be computed in a moment; `have` is the `done` of the one before.

    Attributes:
        scope: what is changed beside `head` of `site`.
        position: where the answer is read; None as in `attention_models.protocol.effects.Metric`.
        epsilon: the largest total variation distance from the run's own answer that counts as the same.
    """

    lane: ClassVar[Lane] = Lane("view:other-weights")
    activity: ClassVar[str] = "searching for other attention weights"
    answered_by: ClassVar[str] = "attention_models.effects.adversarial_attention:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.adversarial_attention:write"
    scope: Scope = "head"
    position: int | None = None
    epsilon: float = EPSILON
    have: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_choice("scope", self.scope, Scope)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rerun:
    """A run of the model with other weights put into the row, and what it said.

    Attributes:
        weights: (heads, keys) float64, of the heads in the order of `AdversarialAttentionView.heads`.
        divergence: (heads,) float64: Jensen-Shannon's from the observed weights, in nats, at most log 2.
        distance: total variation distance of the run's answer from the answer as it was, 0 to 1.
        best: its likeliest answer.
        former: what was likeliest before, and how likely it is now.
    """

    weights: np.ndarray
    divergence: np.ndarray
    distance: float
    best: Candidate
    former: Candidate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """The least change of one kind that was found, and the run with it.

    Attributes:
        source: the key whose weight was taken.
        target: the key that was given it; None where it was blocked, and the row shared it out.
        mass: how much of the row's weight moved: the mean over the heads that are changed.
        share: of the weight on `source`, how much was taken: 1 is all of it.
    """

    source: int
    target: int | None
    mass: float
    share: float
    rerun: Rerun


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdversarialAttentionView(Result):
    """Every distance and answer in it is that of a run with the weights beside it.

    Attributes:
        heads: which heads are changed, with their sites.
        query: the row that is changed; its keys are those of the sites.
        visible: (heads, keys) bool: what the masks let it attend to.
        observed: (heads, keys) float64: the weights as they are.
        before: the likeliest answer as it is.
        same: the weights found that are furthest from the observed ones and leave the answer within `epsilon`.
        blocked: the key of least weight without which another answer is likeliest; None where there is none, or not
            yet.
        moved: the least weight whose move from one key to another makes another answer likeliest; likewise.
        tried: how many moves from one key to another were tried; `moves` how many there are.
        searched: whether `same` is final; `blocks_done`, `moves_done`: whether the others are.
    """

    request: AdversarialAttentionRequest
    heads: tuple[tuple[SiteRef, int], ...]
    position: int
    query: int
    visible: np.ndarray
    observed: np.ndarray
    before: Candidate
    same: Rerun
    blocked: Moved | None = None
    moved: Moved | None = None
    tried: int = 0
    moves: int = 0
    searched: bool = False
    blocks_done: bool = False
    moves_done: bool = False
    done: float = 1.0

    @property
    def found(self) -> dict[str, Rerun]:
        """What was found so far, by its name: “same”, “blocked”, “moved”."""
        same = {"same": self.same} if float(self.same.divergence.mean()) > 0 else {}
        return same | {name: change.rerun for name, change in self.changes.items()}

    @property
    def changes(self) -> dict[str, Moved]:
        """Those that make another answer likeliest: “blocked”, “moved”."""
        both = {"blocked": self.blocked, "moved": self.moved}
        return {name: change for name, change in both.items() if change is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class InContextRequest(Request):
    """Run two texts, and compare the vectors of a word in each. Answered by `InContextView`.

    Attributes:
        texts: what is run, each by itself.
        words: the word in each, as it stands there.
        starts: at which character each begins; None for its last place.
        stack: whose stream; "" for the encoder's where there is one, else the decoder's.
        interventions: that both are run under.
    """

    lane: ClassVar[Lane] = Lane("view:in-context")
    activity: ClassVar[str] = "comparing a word in two texts"
    answered_by: ClassVar[str] = "attention_models.effects.in_context:answer"
    texts: tuple[str, str]
    words: tuple[str, str]
    starts: tuple[int | None, int | None] = (None, None)
    stack: str = ""
    interventions: tuple[Intervention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InContextAtRequest(InContextRequest):
    """The same, of which one layer is meant, 0 the embedding: its figures are written as PyTorch."""

    activity: ClassVar[str] = "comparing a word in two texts after one layer"
    printed_by: ClassVar[str] = "attention_models.scripts.word_in_context:write"
    layer: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InContextView(Result):
    """Layer 0 is the embedding, layer l + 1 the stream after block l. All float64.

    Attributes:
        stack: whose stream it is.
        tokens: of each text.
        positions: of each text the tokens of the word; several are averaged.
        cosine: (layers + 1,) of the word's vectors in both texts: of the means over its tokens.
        anisotropy: (layers + 1,) the mean cosine of two different tokens of both texts: what any two words have there.
        plane: (layers + 1, tokens of both, 2) the first two principal components of all tokens.
        explained: (layers + 1, 2) the share of the variance along each.
        similarity: (layers + 1, tokens of both, tokens of both) cosines.
        sentences: (layers + 1, 2) cosines of the texts' vectors: of their first tokens, of their means.
    """

    request: InContextRequest
    stack: str
    tokens: tuple[tuple[Token, ...], tuple[Token, ...]]
    positions: tuple[tuple[int, ...], tuple[int, ...]]
    cosine: np.ndarray
    anisotropy: np.ndarray
    plane: np.ndarray
    explained: np.ndarray
    similarity: np.ndarray
    sentences: np.ndarray

    @property
    def layers(self) -> int:
        """With the embedding."""
        return len(self.cosine)


def place_of_word(text: str, word: str, start: int | None = None) -> tuple[int, int] | None:
    """From which character to which `word` stands in `text`; None where it does not.

    At `start` if it does; else its last place as a word of its own, else its last place within another.
    """
    if not word.strip():
        return None
    if start is not None and text.startswith(word, start):
        return start, start + len(word)
    place = found = text.rfind(word)
    while place >= 0:
        around = text[max(0, place - 1) : place], text[place + len(word) : place + len(word) + 1]
        if not any(character.isalnum() for character in around):
            return place, place + len(word)
        place = text.rfind(word, 0, place + len(word) - 1)
    return None if found < 0 else (found, found + len(word))
