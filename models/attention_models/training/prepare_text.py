"""English text to the tokenizers and token arrays of story-gpt and story-bert.

    python -m attention_models.training.prepare_text --text english-text.json.xz --out prepared

The text is a JSON object of named parts, each `[training texts, held-out texts]`, packed by xz. Only `wiki` differs:
its second list is single sentences, for training too. Written: `gpt_tokenizer.json` and `gpt.npz` (`train`, `held_out`:
streams of token ids), `bert_tokenizer.json` and `bert.npz` (`train`, `held_out`: rows of 128 ids).
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

Texts = list[str]
Parts = dict[str, tuple[Texts, Texts]]
Ids = NDArray[np.uint16]  # so a vocabulary has at most 65,536 pieces

PARTS = ("smol", "tiny", "books", "story", "tat", "wiki")
END_OF_TEXT = "<|endoftext|>"
PAD, UNKNOWN, CLS, SEP, MASK = BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROW = 128
"""Tokens in a row of story-bert's data, `[CLS]` and `[SEP]` among them."""

SHORTEST = 6
"""A piece of text with fewer tokens makes no row of its own."""


def read_parts(path: Path) -> Parts:
    """The parts of the text. Raises ValueError where one is missing."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        content = json.load(file)
    missing = [name for name in PARTS if name not in content]
    if missing:
        raise ValueError(f"{path} lacks the parts {', '.join(missing)}")
    return {name: (content[name][0], content[name][1]) for name in PARTS}


def gpt_texts(parts: Parts, rng: random.Random) -> Texts:
    """story-gpt's documents in random order; the plainest stories come several times."""
    train = {name: part[0] for name, part in parts.items()}
    documents = train["smol"] + 4 * train["tiny"] + 3 * train["story"] + train["books"] + 2 * train["tat"]
    rng.shuffle(documents)
    return documents


def bert_texts(parts: Parts, rng: random.Random) -> tuple[Texts, Texts]:
    """story-bert's documents, and single sentences, which make short rows."""
    train = {name: part[0] for name, part in parts.items()}
    documents = train["smol"] + 2 * train["tiny"] + train["books"] + train["story"] + train["wiki"]
    picked = sentences(sample(train["smol"], 6_000, rng) + sample(train["books"], 4_000, rng))
    return documents, train["tat"] + parts["wiki"][1] + sample(picked, 60_000, rng)


def held_out_texts(parts: Parts) -> Texts:
    """Texts neither model was trained on. Those of Tatoeba are many and short: a few hundred do."""
    return [text for name in ("smol", "tiny", "books") for text in parts[name][1]] + parts["tat"][1][:500]


def sample(texts: Sequence[str], count: int, rng: random.Random) -> Texts:
    """`count` different texts, or all of them in random order where there are fewer."""
    return rng.sample(list(texts), min(count, len(texts)))


def sentences(texts: Iterable[str]) -> Texts:
    """The sentences of `texts` that are neither very short nor very long."""
    return [s for text in texts for s in re.split(r"(?<=[.!?])\s+", text) if 20 < len(s) < 200]


def train_gpt_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Byte-level BPE: every text can be written in its pieces. `<|endoftext|>` is id 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def train_bert_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Uncased WordPiece. The special tokens are the ids 0 to 4, and it adds `[CLS]` and `[SEP]` itself."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=list(BERT_SPECIAL), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}",
        pair=f"{CLS} $A {SEP} $B:1 {SEP}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (CLS, SEP)],
    )
    return tokenizer


def encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[list[int]]:
    """The ids of each text, without special tokens."""
    for first in range(0, len(texts), 5_000):  # a slice at a time, to bound memory
        for encoding in tokenizer.encode_batch(texts[first : first + 5_000], add_special_tokens=False):
            yield encoding.ids


def token_stream(tokenizer: Tokenizer, texts: Sequence[str]) -> Ids:
    """All texts one after another, each begun by `<|endoftext|>`. (tokens,)"""
    begin = tokenizer.token_to_id(END_OF_TEXT)
    return np.concatenate([np.array([begin, *ids], dtype=np.uint16) for ids in encoded(tokenizer, texts)])


def token_rows(tokenizer: Tokenizer, texts: Sequence[str]) -> Ids:
    """Rows `[CLS] piece [SEP] [PAD]...`; a long text makes several. (rows, ROW)"""
    pad, cls, sep = (tokenizer.token_to_id(token) for token in (PAD, CLS, SEP))
    rows = []
    for ids in encoded(tokenizer, texts):
        for first in range(0, len(ids), ROW - 2):
            piece = ids[first : first + ROW - 2]
            if len(piece) >= SHORTEST:
                rows.append(np.array([cls, *piece, sep] + [pad] * (ROW - 2 - len(piece)), dtype=np.uint16))
    return np.stack(rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Prepare English text for story-gpt and story-bert.")
    parser.add_argument("--text", type=Path, required=True, help="the parts of the text, JSON packed by xz")
    parser.add_argument("--out", type=Path, required=True, help="folder for tokenizers and token arrays")
    parser.add_argument("--vocabulary", type=int, default=8192, help="pieces a tokenizer; default %(default)s")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    parts, rng = read_parts(options.text), random.Random(2)

    documents = gpt_texts(parts, rng)
    tokenizer = train_gpt_tokenizer(documents, options.vocabulary)
    tokenizer.save(str(options.out / "gpt_tokenizer.json"))
    held_out = token_stream(tokenizer, held_out_texts(parts) + parts["story"][1])
    np.savez(options.out / "gpt.npz", train=token_stream(tokenizer, documents), held_out=held_out)

    documents, short = bert_texts(parts, rng)
    tokenizer = train_bert_tokenizer(documents + short, options.vocabulary)
    tokenizer.save(str(options.out / "bert_tokenizer.json"))
    rows = token_rows(tokenizer, documents + short)
    np.savez(options.out / "bert.npz", train=rows, held_out=token_rows(tokenizer, held_out_texts(parts)))


if __name__ == "__main__":
    main()
