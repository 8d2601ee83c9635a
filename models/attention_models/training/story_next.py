"""story-next: tells whether a sentence goes on with the one before, or comes from another story.

python -m attention_models.training.story_next --data english-text.json.xz --out story-next --steps 800

The body is the shipped story-bert, the task that of Devlin et al. 2019, section 3.1: half of the pairs are two
sentences that follow one another in a text, in the other half the second one is of another text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import AutoTokenizer, BertForSequenceClassification, PreTrainedTokenizerBase

from attention_models.files.catalogue import WEIGHTS
from attention_models.training.common import Batch, Recipe, command_line, save, start, train
from attention_models.training.prepare_text import read_parts, sentences

LABELS = ("goes on", "another story")
PARTS = ("smol", "tiny", "story")
MOST_TOKENS = 96  # of a pair; few are longer
HELD_OUT_PAIRS = 1_000
SORTED = 8  # batches drawn at once and sorted by length, so that little is padding


class Pairs(NamedTuple):
    """Texts as lists of sentences: pairs are drawn from them."""

    texts: list[list[str]]

    def draw(self, rng: random.Random) -> tuple[str, str, int]:
        """Two sentences and the number of their label."""
        text = rng.choice(self.texts)
        place = rng.randrange(len(text) - 1)
        if rng.random() < 0.5:
            return text[place], text[place + 1], 0
        other = rng.choice(self.texts)
        while other is text:
            other = rng.choice(self.texts)
        return text[place], rng.choice(other), 1


def read_pairs(path: Path) -> tuple[Pairs, Pairs]:
    """Training and held-out texts, by the split of the file."""
    parts = read_parts(path)
    both = []
    for held_out in (0, 1):
        texts = [sentences([text]) for name in PARTS for text in parts[name][held_out]]
        both.append(Pairs([text for text in texts if len(text) > 1]))
    return both[0], both[1]


def encoded(tokenizer: PreTrainedTokenizerBase, drawn: Sequence[tuple[str, str, int]]) -> Batch:
    """The pairs as the model takes them, padded to the longest."""
    inputs = tokenizer(
        [pair[0] for pair in drawn],
        [pair[1] for pair in drawn],
        truncation="longest_first",
        max_length=MOST_TOKENS,
        padding=True,
        return_tensors="pt",
    )
    return Batch(dict(inputs), torch.tensor([pair[2] for pair in drawn]))


def main(argv: Sequence[str] | None = None) -> None:
    parser = command_line("Train story-next.", layers=6, heads=8, width=256, batch=48)
    options = parser.parse_args(argv)
    budget, device = start(options)
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS / "story-bert")
    training, held_out_texts = read_pairs(options.data)
    rng = random.Random(options.seed)
    picked = random.Random(1)
    held = [held_out_texts.draw(picked) for _ in range(HELD_OUT_PAIRS)]
    held_batches = [moved(encoded(tokenizer, held[i : i + 100]), device) for i in range(0, len(held), 100)]
    model = BertForSequenceClassification.from_pretrained(
        WEIGHTS / "story-bert",
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={name: i for i, name in enumerate(LABELS)},
        dtype=torch.float32,
    )

    def batches() -> Iterator[Batch]:
        while True:
            drawn = [training.draw(rng) for _ in range(options.batch * SORTED)]
            drawn.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
            parts = [drawn[i : i + options.batch] for i in range(0, len(drawn), options.batch)]
            rng.shuffle(parts)
            for part in parts:
                yield moved(encoded(tokenizer, part), device)

    train(Recipe(model, batches(), lambda: held_batches, peak=2e-4, decay=0.01), budget, device, report_every=240)
    save(model, options.out)
    tokenizer.save_pretrained(options.out)


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch on another device."""
    return Batch({name: tensor.to(device) for name, tensor in batch.inputs.items()}, batch.labels.to(device))


if __name__ == "__main__":
    main()
