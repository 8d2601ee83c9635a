"""The kinds of masks: each one object that says all that the program knows of it.

A new kind is a class in this file (or in a package of one's own) with `@register` above it. Menus, the command line,
session files, sentences, the attention function and the rule for the key/value cache follow from the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

Cell = tuple[int, int, bool]  # query, key, whether it is visible

Places = Any
"""Places of queries or of keys in the text: an int, or an integer array of numpy or torch that broadcasts."""

Visible = Any
"""bool, or an array of it that broadcasts to the places it was made of."""


class MaskKind:
    """One way to say which keys each query may attend to."""

    name: ClassVar[str]  # in files, on the command line and in `Mask(name)`
    title: ClassVar[str]  # in a menu
    sentence: ClassVar[str]  # what it does, for a person
    counts: ClassVar[str] = ""  # what its number n counts; "" for a kind without one
    example: ClassVar[int] = 4  # an n to show
    replaces: ClassVar[bool] = False  # True: nothing of the mask before it stays; False: it only masks more
    changes: ClassVar[bool] = True  # False: the same as no mask at all
    takes_cells: ClassVar[bool] = False  # its cells are listed one by one, in place of `allows`

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        """Whether the key at place `k` is visible to the query at place `q`, in a text of `keys` keys.

        Of texts of one batch `keys` is an array, of each the keys up to its end.
        """
        raise NotImplementedError

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        """Whether what a token attends to stays the same as more is written after it.

        Only then may its keys and values of deeper layers be kept. The first `prompt` tokens run together. A kind that
        promises nothing is computed from the start at every step: slow, and never wrong.
        """
        return False

    def label(self, n: int | None, cells: Sequence[Cell]) -> str:
        """ "window 8" """
        return self.name if n is None else f"{self.name} {n}"

    def describe(self, n: int | None, cells: Sequence[Cell]) -> str:
        return f"mask: {self.label(n, cells)}"

    @property
    def spelling(self) -> str:
        """How it is written on the command line: "causal", "window:8"; "" where it cannot be."""
        if self.takes_cells:
            return ""
        return f"{self.name}:{self.example}" if self.counts else self.name


MASK_KINDS: dict[str, MaskKind] = {}
"""By name, in the order of the menus."""

_Class = TypeVar("_Class", bound=type[MaskKind])


def register(kind: _Class) -> _Class:
    """Let masks of this kind be made, chosen, written and run."""
    MASK_KINDS[kind.name] = kind()
    return kind


@register
class Trained(MaskKind):
    name, title = "trained", "As trained"
    sentence = "The mask that the model learned with."
    changes = False

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return True

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        return True


@register
class Unmasked(MaskKind):
    name, title = "none", "None"
    sentence = "No mask: every token looks at all tokens, also at later ones."
    replaces = True

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return True


@register
class Causal(MaskKind):
    """Vaswani et al. 2017, section 3.2.3."""

    name, title = "causal", "Causal"
    sentence = "No token looks at a later one, as in GPT."
    replaces = True

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return k <= q

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        return True


@register
class Padding(MaskKind):
    """Counted from the end of the text, which moves as it is written: so nothing can be kept."""

    name, title = "padding", "Padding"
    sentence = "The last n tokens count as padding: nobody looks at them."
    counts, example = "how many tokens at the end count as padding, which nobody looks at", 2

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return k < keys - n


@register
class Window(MaskKind):
    """Beltagy et al. 2020, section 3.1."""

    name, title = "window", "Sliding window"
    sentence = "A token looks at itself and the n − 1 before it, as in Mistral."
    counts, example = "how many tokens back each token may look, itself included", 8

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return (k > q - n) & (k < q + n)

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        return True


@register
class Blocks(MaskKind):
    name, title = "blocks", "Local blocks"
    sentence = "The text is cut into blocks of n tokens; each token looks within its own."
    counts, example = "how many tokens a block has; a token looks within its own block only", 4

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return q // n == k // n

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        return True


@register
class Full(Unmasked):
    """Devlin et al. 2019."""

    name, title = "full", "Full, as BERT"
    sentence = "The whole text in both directions: the same cells as no mask."


@register
class Prefix(MaskKind):
    """Raffel et al. 2020, section 3.2.1."""

    name, title = "prefix", "Prefix"
    sentence = "Causal, but the first n tokens are seen by all, as in a prefix language model."
    counts, example = "how many tokens at the beginning may be looked at by all", 3
    replaces = True

    def allows(self, q: Places, k: Places, n: int, keys: Places) -> Visible:
        return (k <= q) | (k < n)

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        return n <= prompt


@register
class Painted(MaskKind):
    name, title = "painted", "Painted"
    sentence = "Single cells, masked or made visible by hand."
    takes_cells = True

    def allows_cache(self, prompt: int, n: int, cells: Sequence[Cell]) -> bool:
        return not any(visible and key > query and key >= prompt for query, key, visible in cells)

    def describe(self, n: int | None, cells: Sequence[Cell]) -> str:
        return f"{len(cells)} painted cell{'s' if len(cells) != 1 else ''}"
