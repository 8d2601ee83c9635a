"""How a token that a model chose is spelled in its text, so that the tokenizer reads it back as that very token.

What is written becomes the input again, and the tokenizer divides that anew: "bright" and "and" without a space between
them would be read as "bright" "##and", two letters as one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from attention_models.forward.model import Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.prompt import Prompt, plain_text, shown_of, with_more
from attention_models.protocol.values import Token
from attention_models.text.common_start import common_start

Tokenize = Callable[[Any], tuple[Token, ...]]


@dataclass(frozen=True, slots=True)
class Spelled:
    """A text with tokens written into it."""

    whole: Prompt
    misread: str = ""  # what the tokenizer reads instead, as a clause; "" where it reads the tokens that were chosen

    def unwritable(self, label: str) -> str:
        """A sentence for the person, about a token that nothing can follow."""
        return f"{label} cannot be written there: the text then {self.misread}. Choose another token."


def in_place_of(model: Model, text: Prompt, tokens: tuple[Token, ...], place: int, id_: int) -> Spelled:
    """`text`, which was read as `tokens`, with the vocabulary entry `id_` in the place of the mask at `place`."""
    if isinstance(text, Batch):
        shown = in_place_of(model, text.prompt, tokens, place, id_)
        return Spelled(text.with_prompt(shown_of(shown.whole)), shown.misread)
    mask = tokens[place]
    wanted = [id_ if i == place else token.id for i, token in enumerate(tokens) if not token.padding]
    if isinstance(text, Pair):
        spellings = _fillings(model, text.text(mask.segment), mask, id_)
        return _first_read(model, (text.with_text(mask.segment, spelled) for spelled in spellings), wanted)
    return _first_read(model, _fillings(model, plain_text(text), mask, id_), wanted)


def at_the_end(model: Model, text: Prompt, tokens: tuple[Token, ...], ids: tuple[int, ...]) -> Spelled:
    """`text`, which was read as `tokens`, with `ids` after it: before what the tokenizer itself puts at the end."""
    given = [token.id for token in tokens if not token.padding]
    added = [token.special and token.start == token.end for token in tokens if not token.padding]
    end = len(given) - next((i for i, is_added in enumerate(reversed(added)) if not is_added), 0)
    more = _more(model, given[:end], ids)
    ends = dict.fromkeys((more, more.lstrip(), " " + more.lstrip(), decoded(model, ids, special=True)))
    return _first_read(model, (with_more(text, each) for each in ends), [*given[:end], *ids, *given[end:]])


def in_target(model: Model, target: str, given: Sequence[int], ids: tuple[int, ...]) -> Spelled:
    """The target of an encoder-decoder model, which was read as `given`, with `ids` after it."""
    more = _more(model, given, ids)
    ends = dict.fromkeys((more, more.lstrip(), " " + more.lstrip(), decoded(model, ids, special=True)))
    wholes = (decoded(model, [*given, *ids]), *(target + each for each in ends))
    return _first_read(model, dict.fromkeys(wholes), [*given, *ids], model.tokenize_target)


def _more(model: Model, given: Sequence[int], ids: tuple[int, ...]) -> str:
    """What `ids` add to what `given` says."""
    return decoded(model, [*given, *ids])[len(decoded(model, given)) :]


def _first_read(
    model: Model,
    spellings: Iterable[Prompt],
    wanted: list[int],
    tokenize: Tokenize | None = None,
) -> Spelled:
    """The first spelling that is read as `wanted`; where none is, the first of all, with what it is read as."""
    first: Spelled | None = None
    for whole in spellings:
        read = _read(tokenize or model.tokenize, whole)
        if read == wanted:
            return Spelled(whole)
        first = first or Spelled(whole, _misread(model, read, wanted))
    assert first is not None
    return first


def _read(tokenize: Tokenize, whole: Prompt) -> list[int] | None:
    try:
        return [token.id for token in tokenize(whole)]
    except InputError:  # nothing is left of it, or it is too long
        return None


def _fillings(model: Model, text: str, mask: Token, id_: int) -> Iterator[str]:
    """Spellings of `text` with `id_` in the place of `mask`, the likeliest first."""
    piece, said = model.piece(id_), decoded(model, [id_], special=True)
    before, after = text[: mask.start], text[mask.end :]
    if piece.startswith("##"):  # WordPiece goes on with the word before it
        yield from (before.rstrip() + piece.removeprefix("##") + right + after for right in ("", " "))
    # RoBERTa's mask takes the space before it along
    space = mask.text[: len(mask.text) - len(mask.text.lstrip())]
    words = dict.fromkeys((said.strip(), said))
    for word, left, right in product(words, dict.fromkeys((space, " ", "")), ("", " ")):
        yield before + left + word + right + after


def _misread(model: Model, read: list[int] | None, wanted: list[int]) -> str:
    """Where what is read begins to differ from what was chosen, and as what."""
    if read is None:
        return "is not read at all"
    same = common_start(read, wanted)
    tail = common_start(read[same:][::-1], wanted[same:][::-1])
    if min(len(read), len(wanted)) == same + tail:  # one is the other with more: a neighbour says where
        same, tail = (same, tail - 1) if tail else (max(0, same - 1), 0)
    chosen = " ".join(f"“{model.piece_label(id_)}”" for id_ in wanted[same : len(wanted) - tail]) or "nothing"
    got = " ".join(f"“{model.piece_label(id_)}”" for id_ in read[same : len(read) - tail]) or "nothing"
    return f"is read as {got}, not as {chosen}"


def decoded(model: Model, ids: Sequence[int], special: bool = False) -> str:
    """What `ids` say; tokens that stand for no text are left out, or with `special` called by their names."""
    said = [id_ for id_ in ids if special or not model.stands_for_no_text(id_)]  # the mask and unknown words are said
    text: str = model.tokenizer.decode(said, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text
