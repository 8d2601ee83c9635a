"""What scripts say of a head: its place, its words, and the lines of the textbook transformer that compute it."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.model import Model
from attention_models.forward.trace import SiteLike, Trace
from attention_models.protocol.values import Site, Token, site_tokens
from attention_models.scripts.script_text import quoted
from attention_models.textbook.transformer import MultiHeadAttention


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """One head of a run."""

    model: Model
    trace: Trace
    site: Site
    x: AttentionInputs
    head: int

    @classmethod
    def of(cls, model: Model, trace: Trace, site: SiteLike, head: int) -> Head:
        """Raises IndexError where there is no such site or head."""
        place = trace.index(site)
        return cls(model, trace, trace.sites[place], trace.at(place, head), head)

    @property
    def name(self) -> str:
        stack = {"encoder": "encoder layer", "cross": "cross-attention layer"}.get(self.site.stack, "decoder layer")
        return f"{self.model.info.name}, {stack} {self.site.layer}, head {self.head}"

    @property
    def key_head(self) -> int:
        return self.head // self.x.group

    @property
    def textbook(self) -> MultiHeadAttention | None:
        """The module of the textbook transformer that computed it; None in another model."""
        if not self.site.module:
            return None
        found = self.model.module.get_submodule(self.site.module)
        return found if isinstance(found, MultiHeadAttention) else None

    def query_word(self, place: int) -> str:
        return word_of(site_tokens(self.trace, self.site)[0], place)

    def key_word(self, place: int) -> str:
        return word_of(site_tokens(self.trace, self.site)[1], place)


def word_of(tokens: tuple[Token, ...], place: int) -> str:
    """“Anna” (6); without a word where a model has other places than tokens."""
    return f"{quoted(tokens[place].word)} ({place})" if place < len(tokens) else f"({place})"
