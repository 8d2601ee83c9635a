"""Trains the recurrent models on a CPU: dates, or English to Spanish in sentences of up to ten words.

    python -m attention_models.training.recurrent --task dates --score bahdanau --out dates-bahdanau --seconds 600
    python -m attention_models.training.recurrent --task en-es --score none --pairs eng-spa.tsv.xz --out en-es \\
        --seconds 2400

Dates are made by `attention_models.textbook.tasks` from a seed, 30,000 to train on and 2,000 held out. Sentence pairs
are held out by the rule of `prepare_translation`; pairs of more than ten words on a side are left out of the training.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor

from attention_models.length.held_out import split
from attention_models.length.pairs import Pair, read_pairs
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from attention_models.textbook.tasks import date_pairs
from attention_models.textbook.tokenizer import one_a_character
from attention_models.training.common import IGNORE, Batch, Budget, Recipe, train

PAD, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
PAD_ID, START_ID, END_ID = range(3)  # both tokenizers number the special tokens first
WORDS = 10
DATES, DATES_HELD_OUT = 30_000, 2_000
HELD_OUT_ROWS = 1_024  # for the figures printed on the way


def character_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """One token a character: dates."""
    return one_a_character((char for text in texts for char in text), SPECIAL)


def word_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Pieces of words, in lower case, shared by both languages."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(SPECIAL), min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def short(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of at most ten words on each side."""
    return [pair for pair in pairs if all(len(side.split()) <= WORDS for side in pair)]


def batch_of(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Batch:
    """Padded ids: source `tokens </s>`, target `<s> tokens`, labels `tokens </s>`."""
    source = [[*encoding.ids, END_ID] for encoding in tokenizer.encode_batch([pair[0] for pair in pairs])]
    target = [encoding.ids for encoding in tokenizer.encode_batch([pair[1] for pair in pairs])]
    inputs = {"source": _padded(source, PAD_ID), "target": _padded([[START_ID, *ids] for ids in target], PAD_ID)}
    return Batch(inputs, _padded([[*ids, END_ID] for ids in target], IGNORE))


def _padded(rows: list[list[int]], value: int) -> Tensor:
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def batches(tokenizer: Tokenizer, pairs: list[Pair], size: int, seed: int) -> Iterator[Batch]:
    """Endless; pairs of like length side by side, so that little is padding."""
    rng = random.Random(seed)
    while True:
        rng.shuffle(pairs)
        for start in range(0, len(pairs), size * 50):
            pool = sorted(pairs[start : start + size * 50], key=lambda pair: len(pair[1]))
            parts = [pool[i : i + size] for i in range(0, len(pool), size)]
            rng.shuffle(parts)
            for part in parts:
                yield batch_of(tokenizer, part)


def save(model: RecurrentSeq2Seq, tokenizer: Tokenizer, folder: Path) -> None:
    """config.json, model.safetensors in half precision, tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config.to_dict(), indent=2) + "\n", encoding="utf-8")
    save_file({name: t.half().contiguous() for name, t in model.state_dict().items()}, folder / "model.safetensors")
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, END_ID)])
    tokenizer.save(str(folder / "tokenizer.json"))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train a recurrent sequence-to-sequence model on a CPU.")
    parser.add_argument("--task", choices=("dates", "en-es"), required=True)
    parser.add_argument("--pairs", type=Path, help="the sentence pairs (en-es)")
    parser.add_argument("--score", default="bahdanau", help="none, bahdanau, dot, general or concat")
    parser.add_argument("--scope", default="global", help="global, monotonic or predictive")
    parser.add_argument("--cell", default="gru", help="gru or lstm")
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--embedding", type=int)
    parser.add_argument("--vocabulary", type=int, default=3_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--peak", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--seconds", type=float)
    budget.add_argument("--steps", type=int)
    options = parser.parse_args(argv)
    torch.manual_seed(options.seed)
    dates = options.task == "dates"
    if dates:
        pairs = date_pairs(DATES + DATES_HELD_OUT, options.seed)
        training, held_out = pairs[DATES_HELD_OUT:], pairs[:DATES_HELD_OUT]
        tokenizer = character_tokenizer(text for pair in pairs for text in pair)
    else:
        if options.pairs is None:
            parser.error("--pairs is needed for en-es")
        training, held_out = (short(part) for part in split(read_pairs(options.pairs)))
        tokenizer = word_tokenizer((text for pair in training for text in pair), options.vocabulary)
    size = tokenizer.get_vocab_size()
    config = RecurrentConfig(
        vocabulary=size,
        target_vocabulary=size,
        score=options.score,
        scope=options.scope,
        cell=options.cell,
        embedding=options.embedding or (32 if dates else 96),
        hidden=options.hidden or (96 if dates else 192),
        dropout=0.1 if dates else 0.2,
        pad=PAD_ID,
        start=START_ID,
        end=END_ID,
        most_words=WORDS,
    )
    model = RecurrentSeq2Seq(config)
    held = [batch_of(tokenizer, held_out[i : i + 256]) for i in range(0, min(len(held_out), HELD_OUT_ROWS), 256)]
    recipe = Recipe(
        model=model,
        batches=batches(tokenizer, training, options.batch, options.seed),
        held_out=lambda: held,
        peak=options.peak,
        decay=0.01,
        half=False,
    )
    train(recipe, Budget(options.seconds, options.steps), torch.device("cpu"), report_every=30.0)
    save(model, tokenizer, options.out)


if __name__ == "__main__":
    main()
