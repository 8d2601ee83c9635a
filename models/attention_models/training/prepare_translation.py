"""Sentence pairs to the tokenizer and token arrays of en-es.

    python -m attention_models.training.prepare_translation --pairs eng-spa.tsv.xz --out prepared

The pairs are lines `English<tab>Spanish`, packed by xz. Held out are English sentences, with all their translations:
1,500, or a tenth where the data is small. Written: `translation_tokenizer.json` and `translation.npz` (`train`,
`held_out`: pairs of rows of 40 ids, English first).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from attention_models.length.held_out import split
from attention_models.length.pairs import Pair, read_pairs

PAD, UNKNOWN, BEGIN, END = SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
ROW = 40
"""Tokens in a row, `</s>` among them; a pair with a longer side is left out."""


def train_tokenizer(pairs: Sequence[Pair], vocabulary: int) -> Tokenizer:
    """One BPE for both languages: `▁` for the space before a word, punctuation apart. It ends a text with `</s>`."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(SPECIAL), min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator((sentence for pair in pairs for sentence in pair), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}",
        pair=f"$A {END} $B {END}",
        special_tokens=[(END, tokenizer.token_to_id(END))],
    )
    return tokenizer


def token_rows(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> NDArray[np.uint16]:
    """Rows `tokens </s> <pad>...` of both sides. (pairs, 2, ROW); pairs that do not fit are left out."""
    pad = tokenizer.token_to_id(PAD)
    sides = [tokenizer.encode_batch([pair[side] for pair in pairs]) for side in (0, 1)]
    rows = [
        [side.ids + [pad] * (ROW - len(side.ids)) for side in both]
        for both in zip(*sides, strict=True)
        if all(len(side.ids) <= ROW for side in both)
    ]
    return np.array(rows, dtype=np.uint16).reshape(-1, 2, ROW)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Prepare sentence pairs for en-es.")
    parser.add_argument("--pairs", type=Path, required=True, help="lines English<tab>Spanish, packed by xz")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tokenizer and the token arrays")
    parser.add_argument("--vocabulary", type=int, default=8000, help="pieces of the tokenizer; default %(default)s")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    train, held_out = split(read_pairs(options.pairs))
    tokenizer = train_tokenizer(train, options.vocabulary)
    tokenizer.save(str(options.out / "translation_tokenizer.json"))
    np.savez(
        options.out / "translation.npz", train=token_rows(tokenizer, train), held_out=token_rows(tokenizer, held_out)
    )


if __name__ == "__main__":
    main()
