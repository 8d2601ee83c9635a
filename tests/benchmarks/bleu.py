"""How well en-es translates sentences that training never saw: sacrebleu's BLEU, beam search of width 4.

    python -m tests.benchmarks.bleu --pairs eng-spa.tsv.xz

The first held-out English sentences in the order of the file, which is by length, short ones first; every Spanish
sentence that the file gives for one of them is a reference.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from attention_models import decode, open_checkpoint
from attention_models.length.held_out import split
from attention_models.length.measurement import reference_streams
from attention_models.length.pairs import Pair, read_pairs

SENTENCES = 500
BEAMS = 4
MOST_WRITTEN = 96


def references(pairs: Sequence[Pair], count: int) -> dict[str, list[str]]:
    """The first `count` held-out English sentences, each with all its translations."""
    held_out: dict[str, list[str]] = {}
    for english, spanish in split(pairs)[1]:
        held_out.setdefault(english, []).append(spanish)
    return dict(list(held_out.items())[:count])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="lines of English<tab>Spanish, packed by xz")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help=f"how many, {SENTENCES} if left out")
    args = parser.parse_args()
    found = references(read_pairs(args.pairs), args.sentences)
    model = open_checkpoint("en-es")
    written = []
    for number, english in enumerate(found, start=1):
        text = ""
        for step in decode(model, english, MOST_WRITTEN, strategy="beam", beams=BEAMS):
            text = step.text
        written.append(text)
        if number % 100 == 0:
            print(f"{number} sentences translated, the last: {english} -> {text}", flush=True)
    bleu = BLEU()
    print(bleu.corpus_score(written, reference_streams(list(found.values()))))
    print(bleu.get_signature())


if __name__ == "__main__":
    main()
