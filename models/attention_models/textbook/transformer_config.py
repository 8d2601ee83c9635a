"""The switches of the textbook transformer, checked where they are set: an impossible pair gets a sentence."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from attention_models.textbook.typed_numbers import typed_number

MODEL_TYPE = "explorer-transformer"

Shape = Literal["encoder-decoder", "encoder", "decoder"]
NormKind = Literal["layer", "rms"]
NormPlace = Literal["post", "pre"]
PositionKind = Literal["none", "sinusoidal", "appended", "concatenated", "learned", "rope", "alibi", "t5"]
ScoreKind = Literal["scaled", "dot", "additive"]
FeedForwardKind = Literal["relu", "gelu", "swiglu", "none"]

CHOICES: dict[str, tuple[str, ...]] = {
    "shape": get_args(Shape),
    "norm": get_args(NormKind),
    "norm_place": get_args(NormPlace),
    "positions": get_args(PositionKind),
    "score": get_args(ScoreKind),
    "feed_forward": get_args(FeedForwardKind),
}
"""The switches that choose one word of several."""

_FLAGS = ("residual", "causal_mask", "tied", "bias", "scaled_embedding")
_COUNTS = ("vocabulary", "width", "layers", "heads", "context")
_OTHER_COUNTS = ("key_heads", "inner", "buckets", "farthest")
_NUMBERS = ("dropout", "label_smoothing", "epsilon")
_MOST = 1 << 20  # of any of them: a config is read from a file, and a file may say anything


@strict
class TransformerConfig(PreTrainedConfig):
    """Raises ValueError, in a sentence that names the switch, for what no model can be made of."""

    model_type = MODEL_TYPE
    attribute_map: ClassVar = {  # what transformers calls them
        "vocab_size": "vocabulary",
        "hidden_size": "width",
        "num_hidden_layers": "layers",
        "encoder_layers": "layers",
        "decoder_layers": "layers",
        "num_attention_heads": "heads",
        "encoder_attention_heads": "heads",
        "decoder_attention_heads": "heads",
        "num_key_value_heads": "key_heads",
        "intermediate_size": "inner",
        "max_position_embeddings": "context",
        "tie_word_embeddings": "tied",
    }

    vocabulary: int = 32
    shape: str = "encoder-decoder"
    width: int = 64  # of the residual stream: d_model
    layers: int = 2  # of each stack: N
    heads: int = 4  # h
    key_heads: int = 0  # heads of keys and values, shared by groups of query heads; 0: as many as heads
    inner: int = 0  # neurons of a feed-forward network: d_ff; 0: four times the width
    norm: str = "layer"
    norm_place: str = "post"
    epsilon: float = 1e-5  # of the norms
    positions: str = "sinusoidal"  # appended: after the embedding; concatenated: so, and mapped back to the width
    score: str = "scaled"
    feed_forward: str = "relu"
    residual: bool = True
    causal_mask: bool = True  # of a decoder: no token attends to a later one
    tied: bool = True  # one matrix embeds both texts and gives the logits; off where positions are appended
    bias: bool = True  # of the linear maps
    scaled_embedding: bool = True  # embeddings are multiplied by sqrt(width)
    dropout: float = 0.1
    label_smoothing: float = 0.1
    context: int = 128  # tokens
    buckets: int = 32  # of T5's bias: how many distances it tells apart
    farthest: int = 128  # and the distance from which on all are alike
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        self._check_each()
        self.key_heads = self.key_heads or self.heads
        self.inner = self.inner or 4 * self.width
        self._check_together()
        self.tied = self.tied and self.token_width == self.width  # the matrix of the logits reads the whole width
        self.is_encoder_decoder = self.shape == "encoder-decoder"
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    @property
    def token_width(self) -> int:
        """Dimensions of a token's embedding: the width, or what appended positions leave of it."""
        return self.width - self.width // 2 if self.positions == "appended" else self.width

    @property
    def position_width(self) -> int:
        """Dimensions of a position's vector: the width, or half of it where positions are appended."""
        return self.width // 2 if self.positions == "appended" else self.width

    @property
    def predicting_stack(self) -> str:
        """The stack whose last states give the logits."""
        return "encoder" if self.shape == "encoder" else "decoder"

    @property
    def is_decoder(self) -> bool:
        """As transformers calls a stack that continues a text."""
        return self.shape == "decoder"

    @property
    def alibi(self) -> bool:
        """As some families of transformers have it."""
        return self.positions == "alibi"

    @property
    def decoder_start_token_id(self) -> int | None:
        return self.bos_token_id

    def _check_each(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is “{getattr(self, name)}”, and has to be one of {', '.join(known)}")
        for name in _FLAGS:  # a file's null or "no" would count as off or on
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}, and has to be true or false")
        for name in _NUMBERS:
            if isinstance(getattr(self, name), bool) or not isinstance(getattr(self, name), int | float):
                raise ValueError(f"{name} is {getattr(self, name)!r}, and has to be a number")
        for name in _COUNTS:
            _check_whole(name, getattr(self, name), 1)
        for name in ("key_heads", "inner"):
            _check_whole(name, getattr(self, name), 0)
        for name in ("buckets", "farthest"):
            _check_whole(name, getattr(self, name), 4)
        for name in ("dropout", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, and has to be at least 0 and less than 1")
        if not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon is {self.epsilon}, and has to lie between 0 and 1")

    def _check_together(self) -> None:
        width, heads = self.width, self.heads
        if width % heads:
            raise ValueError(f"heads is {heads}, which does not divide the width of {width}: each gets an equal part")
        if heads % self.key_heads:
            raise ValueError(f"key_heads is {self.key_heads}, which does not divide the {heads} heads that share them")
        if self.positions == "rope" and self.head_dim % 2:
            raise ValueError(
                f"positions=rope turns the dimensions of a head in pairs, and {heads} heads of a width of {width} have "
                f"{self.head_dim} each, an odd number"
            )
        if self.positions == "appended" and width < 2:
            raise ValueError(
                "positions=appended divides the width between embedding and position: it has to be 2 or more"
            )
        if self.score == "additive" and self.positions in ("rope", "alibi", "t5"):
            raise ValueError(
                f"positions={self.positions} changes the product of a query and a key, and score=additive has none. "
                "Take none, sinusoidal, appended, concatenated or learned"
            )
        if self.positions == "t5" and self.farthest <= self.buckets // (2 if self.shape == "decoder" else 4):
            raise ValueError(
                f"farthest is {self.farthest}, and the {self.buckets} buckets tell nearer distances apart one by one: "
                "it has to be larger"
            )
        if self.shape == "encoder" and not self.causal_mask:
            raise ValueError("causal_mask is of a decoder, and shape=encoder has none: an encoder masks no later token")
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            _check_whole(name, getattr(self, name), 0, self.vocabulary - 1)


def as_switch(name: str, text: str) -> Any:
    """What `--set name=text` means, in the type of the switch.

    Raises:
        ValueError: no such switch, or nothing that it can be set to.
    """
    if name in CHOICES:
        return text
    if name in _FLAGS:
        if text.lower() not in ("true", "false", "on", "off", "yes", "no"):
            raise ValueError(f"{name} is on or off, not “{text}”")
        return text.lower() in ("true", "on", "yes")
    if name in _NUMBERS:
        return typed_number(name, text, float)
    if name in (*_COUNTS[1:], *_OTHER_COUNTS):
        return typed_number(name, text, int)
    raise ValueError(f"there is no switch “{name}”. There are {', '.join(sorted(SWITCHES))}")


SWITCHES = (
    *CHOICES,
    *_FLAGS,
    *_COUNTS[1:],
    *_OTHER_COUNTS,
    *_NUMBERS,
)
"""All that can be set of a model by name; the vocabulary comes of the texts that it reads."""


def _check_whole(name: str, value: object, least: int, most: int = _MOST) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, and has to be a whole number from {least} to {most:,}")
