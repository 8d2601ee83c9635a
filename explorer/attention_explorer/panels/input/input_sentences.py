"""What the input panel says of its text and of single tokens, and which of them make up a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attention_explorer.language import foreign_remark
from attention_explorer.panels.input.chip_pictures import Chip
from attention_explorer.panels.input.turn_mark import FIRST, SECOND
from attention_explorer.widgets.token_text import byte_note, piece_note, shortened
from attention_models.protocol.prompt import Prompt, plain_text
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo, Token
from attention_models.protocol.word_spans import MERGED, Words, word_label


def word_span(tokens: tuple[Token, ...], position: int) -> tuple[int, int]:
    """First and last character of the word that the token at `position` belongs to, leading white space left out.

    A word is a run of tokens that touch, none but the first beginning with white space; (0, 0) for special tokens.
    """
    if not 0 <= position < len(tokens) or tokens[position].start == tokens[position].end:
        return 0, 0
    first = last = position
    while first > 0 and _continues(tokens[first - 1], tokens[first]):
        first -= 1
    while last + 1 < len(tokens) and _continues(tokens[last], tokens[last + 1]):
        last += 1
    start = tokens[first].start + len(tokens[first].text) - len(tokens[first].text.lstrip())
    return start, tokens[last].end


def _continues(before: Token, token: Token) -> bool:
    letters = before.text[-1:].isalnum() and token.text[:1].isalnum()
    return before.start < before.end and before.end >= token.start and letters


def chip(token: Token, position: int, in_chat: bool = False, tag: str = "", in_pair: bool = False) -> Chip:
    """A token as the strip shows it; `tag` is the label that the model gives it, one that labels tokens."""
    texts = {0: (FIRST, "A"), 1: (SECOND, "B")} if in_pair else {}
    side, text = texts.get(token.segment, ("", ""))
    covers = f"; covers “{shortened(token.text)}”" if token.text else "; covers no text" if token.special else ""
    part = f", piece {token.part[0]} of {token.part[1]} of it" if token.part[1] > 1 else ""
    whose = f"; said by the {token.role}" if token.role else "; written by the template" if in_chat else ""
    whose += "; fills this text up to the longest of the batch, masked for all of its tokens" if token.padding else ""
    whose += f"; {'of text' if token.text else 'in the segment of text'} {text}" if text else ""
    return Chip(
        label=token.label,
        tooltip=f"position {position}: “{token.piece}” in the vocabulary{piece_note(token.piece, token.label)}, id "
        f"{token.id}{covers}{part}{whose}" + (f"; labelled {tag}" if tag else "") + byte_note(token.label),
        special=token.special,
        turn=token.role or side,
        tag=tag,
    )


def word_chip(
    pieces: tuple[Token, ...], position: int, in_chat: bool = False, tag: str = "", in_pair: bool = False
) -> Chip:
    """A word as a chip, one of a single piece as that piece's own. `position` and `tag` are its first piece's."""
    first = chip(pieces[0], position, in_chat, tag, in_pair)
    if len(pieces) == 1:
        return first
    listed = ", ".join(f"“{shortened(piece.piece)}”{piece_note(piece.piece, piece.label)}" for piece in pieces)
    tooltip = f"positions {position} to {position + len(pieces) - 1}: the pieces {listed} in the vocabulary; {MERGED}"
    return replace(first, label=word_label(pieces), tooltip=tooltip)


def chips_of(
    tokens: tuple[Token, ...], words: Words, tags: tuple[str, ...], written: frozenset[int] = frozenset()
) -> list[Chip]:
    """The words of a strip as chips; `tags` are of tokens, empty where the model labels none.

    Those of the positions `written` have a line along their foot: the model wrote them.
    """
    in_chat, in_pair = any(token.role for token in tokens), any(token.segment for token in tokens)
    chips = [
        word_chip(
            tokens[pieces.start : pieces.stop], pieces.start, in_chat, tags[pieces.start] if tags else "", in_pair
        )
        for pieces in map(words.tokens, range(len(words)))
    ]
    if not written:
        return chips
    return [
        replace(chip, role="ok", tooltip=f"{chip.tooltip}; the model wrote it") if words.starts[i] in written else chip
        for i, chip in enumerate(chips)
    ]


def language_remark(prompt: Prompt, info: CheckpointInfo) -> str:
    """Says so where the text is plainly in a language that the model does not read; "" where all is well."""
    return foreign_remark(plain_text(prompt), info)


_SEPARATORS = ("[SEP]", "</s>", "<sep>")
_PADDING = ("[PAD]", "<pad>")


def typed(tokens: Sequence[Token], pieces: Sequence[str]) -> list[int]:
    """The places of tokens of these spellings that a person typed: those that a template added cover no text."""
    return [i for i, token in enumerate(tokens) if token.piece in pieces and token.start < token.end]


def typed_separators(tokens: Sequence[Token], info: CheckpointInfo) -> list[int]:
    """Of a single text for a model that reads pairs: where somebody typed what stands between two texts."""
    alone = not any(token.segment for token in tokens)
    return typed(tokens, _SEPARATORS) if info.pairs and alone else []


def typed_padding(tokens: Sequence[Token]) -> list[int]:
    return typed(tokens, _PADDING)


def separator_remark(tokens: Sequence[Token], info: CheckpointInfo) -> str:
    """Says so where a separator was typed in the place of a second text; "" where none was."""
    found = typed_separators(tokens, info)
    if not found:
        return ""
    return (
        f"“{tokens[found[0]].text.strip()}” was typed, which makes no second text of what follows: {info.name} is told "
        "of two texts in other ways too."
    )


def padding_remark(tokens: Sequence[Token]) -> str:
    """Says so where padding was typed, which is masked in a batch; "" where none was."""
    found = typed_padding(tokens)
    if not found:
        return ""
    return f"“{tokens[found[0]].text.strip()}” was typed, and is read like a word: in a batch, padding is masked."


def template_remark(tokens: tuple[Token, ...]) -> str:
    """Says so where a turn holds what the model takes for the template's own; "" where none does."""
    found = next((token for token in tokens if token.role and token.special), None)
    if found is None:
        return ""
    return f"“{found.text.strip()}” in the {found.role}'s turn is read as the template's own mark."


def unknown_remark(ran: Ran, info: CheckpointInfo) -> str:
    """Says so where the vocabulary knows less than half of the text's tokens or characters; "" where it does."""
    read = [token for token in ran.source or ran.tokens if not token.special]
    characters = sum(token.end - token.start for token in read)
    if 2 * ran.unknown > len(read):
        what = f"{ran.unknown} of {len(read)} tokens are"
    elif 2 * ran.unknown_characters > characters:  # one long word that is none
        what = f"{ran.unknown_characters} of {characters} characters stand in words that are"
    else:
        return ""
    return (
        f"{what} unknown to {info.name}'s vocabulary, so it reads hardly any of this. "
        "The usual reason is a tokenizer that lower-cases every text (do_lower_case) for a vocabulary of cased words, "
        "or the other way about; else the text is in another script, or without the spaces that this vocabulary needs."
    )


def step_tooltip(info: CheckpointInfo | None, is_made_to_say: bool) -> str:
    """What Step does with this model; `is_made_to_say`: its target is given, and not written by the model."""
    if info is not None and info.mask_token is not None:
        return f"Fill the {info.mask_token} that the model is most certain of (Ctrl+Enter)"
    if info is None or info.family != "seq2seq":
        return "Append the model's likeliest next token (Ctrl+Enter)"
    if not is_made_to_say:
        return "The model has written its whole answer. Empty the target, or begin it yourself, to go step by step."
    return "Append the model's likeliest next token to the target (Ctrl+Enter)"


def can_step(info: CheckpointInfo | None, is_made_to_say: bool) -> bool:
    """Whether this model writes a token more, or fills a mask."""
    if info is not None and info.family == "seq2seq":
        return is_made_to_say
    return info is not None and info.family in ("causal", "masked")
