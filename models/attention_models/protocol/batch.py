"""Several texts that a model runs at once, made equally long by padding, and which of them is shown. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import InputError

PaddingSide = Literal["right", "left"]

MOST_TEXTS = 256


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of one run; each may be a pair of texts or a conversation.

    Raises:
        InputError: no text, more than `MOST_TEXTS`, padding on a side that there is not, or targets for other than all.
        IndexError: there is no text `shown`.
    """

    texts: tuple[str | Pair | Chat, ...]
    padding: PaddingSide = "right"
    shown: int = 0  # which of them is shown, from 0
    targets: tuple[str | None, ...] = ()  # what the decoder is made to say for each; none typed for any where empty

    def __post_init__(self) -> None:
        if not self.texts:
            raise InputError("There are no texts to run. Give at least one.")
        if len(self.texts) > MOST_TEXTS:
            raise InputError(f"These are {len(self.texts):,} texts; {MOST_TEXTS} are run at once at most.")
        if self.padding not in get_args(PaddingSide):
            raise InputError(f"Padding goes to the right or to the left, not “{self.padding}”.")
        if len(self.targets) not in (0, len(self.texts)):
            raise InputError(f"There are {len(self.targets)} targets for {len(self.texts)} texts. Give one for each.")
        if not 0 <= self.shown < len(self.texts):
            raise IndexError(f"There is no text {self.shown}: these are {len(self.texts)}, counted from 0.")

    @classmethod
    def of(cls, texts: Sequence[object], padding: PaddingSide = "right") -> Batch:
        """From a list of texts, of pairs ("first", "second"), or of conversations as `Chat.of` takes them.

        Raises:
            InputError: something else is among them.
        """
        return cls(tuple(_one(place, text) for place, text in enumerate(texts, start=1)), padding)

    @property
    def prompt(self) -> str | Pair | Chat:
        """The one that is shown."""
        return self.texts[self.shown]

    @property
    def plain(self) -> str:
        """As of the other kinds of prompts: the text that is shown."""
        prompt = self.prompt
        return prompt if isinstance(prompt, str) else prompt.plain

    def showing(self, index: int) -> Batch:
        """The same texts, with another one shown."""
        return replace(self, shown=index)

    def with_prompt(self, prompt: str | Pair | Chat) -> Batch:
        """`prompt` in the place of the one that is shown."""
        return replace(self, texts=(*self.texts[: self.shown], prompt, *self.texts[self.shown + 1 :]))


def is_batch(given: object) -> bool:
    """Whether `given`, as in `ax.run`, is a list of texts, pairs or conversations, and not one of them or ids."""
    return isinstance(given, list) and bool(given) and isinstance(given[0], (str, tuple, Pair, Chat, list))


def check_one_text(given: object) -> None:
    """Raises InputError where `given` is a list of texts: what is asked is of one."""
    if is_batch(given):
        count = len(given)  # type: ignore[arg-type]
        raise InputError(
            f"This looks at one text at a time, and was given a list of {count:,}. Call it for each of them; "
            "only `run` takes them together."
        )


def _one(place: int, text: object) -> str | Pair | Chat:
    if isinstance(text, (str, Pair, Chat)):
        return text
    try:
        if isinstance(text, tuple):
            return Pair.of(text)
        if isinstance(text, list):
            if text and isinstance(text[0], int):
                raise InputError("it is a list of token ids, which is run alone. Give words.")
            return Chat.of(text)
    except InputError as error:
        raise InputError(f"Text {place}: {error}") from error
    raise InputError(
        f"Text {place} of the list is no text ({type(text).__name__}). Give texts, pairs of texts or conversations."
    )
