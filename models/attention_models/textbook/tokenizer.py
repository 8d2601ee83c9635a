"""One token a character, or a word: the tokenizer of models that learn the generated tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

PAD, START, END, UNKNOWN, MASK = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
PAD_ID, START_ID, END_ID, UNKNOWN_ID, MASK_ID = range(5)

SPECIAL_IDS = {"pad_token_id": PAD_ID, "bos_token_id": START_ID, "eos_token_id": END_ID}
"""As configs call them."""

_AROUND = {"encoder-decoder": f"$A {END}", "decoder": f"{START} $A", "encoder": f"{START} $A {END}"}
"""What stands around a text that a model of each shape reads. A decoder's end is the model's to write."""


def tokenizer_of(tokens: Sequence[str], shape: str, context: int) -> PreTrainedTokenizerFast:
    """That of a textbook transformer: `SPECIAL` and `tokens`, with what stands around a text for its shape.

    Where all of `tokens` are single characters each is a token; otherwise they are words, with spaces between them.
    """
    of_words = any(len(token) > 1 for token in tokens)
    tokenizer = one_a_word(tokens, SPECIAL) if of_words else one_a_character(tokens, SPECIAL)
    special = [(token, i) for i, token in enumerate(SPECIAL)]
    tokenizer.post_processor = processors.TemplateProcessing(single=_AROUND[shape], special_tokens=special)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        mask_token=MASK,
        model_max_length=context,
    )


def one_a_character(characters: Iterable[str], special: Sequence[str]) -> Tokenizer:
    """The `special` tokens first, UNKNOWN among them, then each of `characters` in the order of their code points."""
    tokenizer = _word_level(characters, special)
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def one_a_word(words: Iterable[str], special: Sequence[str]) -> Tokenizer:
    """As `one_a_character`, of words between spaces; written out they have spaces between them again."""
    tokenizer = _word_level(words, special)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def _word_level(tokens: Iterable[str], special: Sequence[str]) -> Tokenizer:
    vocabulary = {token: i for i, token in enumerate([*special, *sorted(set(tokens))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.add_special_tokens(list(special))
    return tokenizer
