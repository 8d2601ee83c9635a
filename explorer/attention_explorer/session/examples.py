"""The examples of a shipped checkpoint: texts or pictures with a place to look, from `resources/examples/`.

Tokens are named by their words, so that a file can be read; a test holds every claim against the weights.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Annotated, Literal

import msgspec

from attention_explorer import json_files
from attention_explorer.paths import resource
from attention_explorer.session.figures import Because, Figures, check_reasons
from attention_explorer.session.named_tokens import Count, Word
from attention_models.files.catalogue import SHIPPED
from attention_models.files.toml_files import decode_toml
from attention_models.protocol.interventions import Intervention, Mask, Positions
from attention_models.protocol.values import SiteRef

_BYTES = 64 * 1024
"""A file of examples is not larger."""

_Text = Annotated[str, msgspec.Meta(max_length=1000)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

log = logging.getLogger(__name__)


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is so of an example. Nothing of it is drawn: a test checks it by running the model."""

    weight: _Share | None = None  # the selected cell's weight is at least this much
    largest: bool = False  # no other key of its row has more
    over: Word | None = None  # a key of the same row that has less than half as much
    next: Word | None = None  # the likeliest token or class, where the model says one
    probability: _Share = 0.0  # of `next`, at least
    most: _Share = 1.0  # of `next`, at most
    otherwise: Word | None = None  # the likeliest one where nothing is changed
    otherwise_probability: _Share = 0.0
    writes: _Text | None = None  # all that an encoder-decoder model writes


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text, a pair or a picture, what is changed in the run, and where to look. `say` is said once it is shown."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    say: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    text: _Text = ""
    second: _Text | None = None
    picture: _Text = ""
    stack: Literal["decoder", "encoder", "cross"] | None = None  # None for a model without attention
    layer: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    head: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    query: Word | None = None  # a token's word, and which of those alike
    query_place: Count = 1
    key: Word | None = None
    key_place: Count = 1
    blocks: bool = False  # the selected cell is masked at the selected head
    mask: str | None = None  # a kind of mask at every head, with its number
    window: Count | None = None
    positions: Literal["off"] | None = None
    panel: str = "map"  # comes to the front
    claim: Claim
    figures: Figures = {}  # of `because` alone
    because: Annotated[tuple[Because, ...], msgspec.Meta(max_length=20)] = ()  # what shows the causes that `say` names

    def __post_init__(self) -> None:
        changed = self.blocks or bool(self.everywhere)
        check_reasons(self.because, (self.say,), self.figures, changed=changed)

    @property
    def site(self) -> SiteRef | None:
        return None if self.stack is None else SiteRef(self.stack, self.layer)

    @property
    def everywhere(self) -> tuple[Intervention, ...]:
        """What is changed at every head alike, for which no token needs to be known.

        Raises:
            ValueError: there is no such mask, or it takes another number.
        """
        mask = () if self.mask is None else (Mask(self.mask, window=self.window),)
        positions = () if self.positions is None else (Positions(self.positions),)
        return (*mask, *positions)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    example: Annotated[tuple[Example, ...], msgspec.Meta(min_length=1, max_length=50)]


def decode(content: bytes) -> tuple[Example, ...]:
    """The examples that a file spells in TOML.

    Raises:
        ValueError: it spells none, or names a mask that there is not; what is wrong and where.
    """
    return msgspec.convert(decode_toml(content.decode()), type=_File).example


@cache
def examples_of(reference: str) -> tuple[Example, ...]:
    """Those of the checkpoint that is opened under this name: none unless it ships with the program."""
    if reference not in SHIPPED:
        return ()
    try:
        return decode(json_files.read(resource(f"examples/{reference}.toml"), _BYTES))
    except (OSError, ValueError):
        log.exception("The examples of %s cannot be read.", reference)
        return ()
