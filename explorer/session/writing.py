"""What the model writes after a text: the tree that is kept of it, and the step that is under way. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.session.branches import Branches
from models.decode_requests import DecodeStepRequest, DecodeStepView

TEXTS_KEPT = 8
"""Trees of other texts that are there again when one comes back to the text."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The tree of what one checkpoint wrote after one text."""

    checkpoint: str
    text: str
    target: str | None  # of an encoder-decoder model, as in `Document`
    branches: Branches

    @property
    def origin(self) -> tuple[str, str, str | None]:
        return self.checkpoint, self.text, self.target


@dataclass(frozen=True, slots=True)
class Asked:
    """The step of decoding that was asked for and is not answered yet."""

    request: DecodeStepRequest  # without a ticket
    parent: int  # the node that it goes on from
    looked_at: int  # when it was asked for

    @property
    def grows(self) -> bool:
        """Whether the answer is a token for the tree: a beam search has a tree of its own."""
        return self.request.settings.strategy != "beam"

    def grown(self, branches: Branches, view: DecodeStepView) -> Branches:
        """The tree with the token that `view` chose. Who has looked elsewhere meanwhile still does so."""
        if view.chosen is None or self.parent not in branches:
            return branches
        settings, forced = self.request.settings, self.request.forced is not None
        over = view.ending in ("model", "context", "masks")
        grown = branches.go(self.parent).grow(
            view.chosen.id, view.chosen.label, view.log_probability, over, settings, forced
        )
        return grown if branches.current == self.looked_at else grown.go(branches.current)


def with_tree(writings: tuple[Writing, ...], new: Writing) -> tuple[Writing, ...]:
    """`writings` with `new` in the place of the tree of the same origin; the oldest beyond `TEXTS_KEPT` go."""
    others = tuple(writing for writing in writings if writing.origin != new.origin)
    kept = (*others, new) if new.branches != Branches() else others
    return kept[-TEXTS_KEPT:]
