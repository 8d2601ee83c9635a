"""One token a character: the tokenizer of models that learn the generated tasks."""

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


def character_tokenizer(characters: Iterable[str], shape: str, context: int) -> PreTrainedTokenizerFast:
    """That of a textbook transformer: `SPECIAL` and `characters`, with what stands around a text for its shape."""
    tokenizer = one_a_character(characters, SPECIAL)
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
    vocabulary = {token: i for i, token in enumerate([*special, *sorted(set(characters))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(special))
    return tokenizer
