"""Quality against sentence length, as a table for the model cards: what the Length panel measures, without a window.

    python -m tests.benchmarks.quality --pairs eng-spa.tsv.xz        # the 1,500 sentences held out of the training
    python -m tests.benchmarks.quality                               # the sentences that come with the program
    python -m tests.benchmarks.quality --dates

BLEU is sacrebleu's, letter case aside, of greedy translations; "right" counts sentences that equal a reference; "log p"
is the mean log-probability of a reference's token, in nats. The log-probabilities of models with different tokens can
not be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from attention_explorer.paths import resource
from attention_models.files.catalogue import DATE_MODELS, RECURRENT_TRANSLATORS, TRANSFORMER_TRANSLATOR
from attention_models.length.measurement import measure
from attention_models.protocol.quality import QualityScore


def row(name: str, sentences: int, scores: Sequence[QualityScore]) -> str:
    """One line of the table, a group of three figures a model."""
    cells = []
    for score in scores:
        bleu = "" if score.bleu is None else f"{score.bleu:.1f}"
        cells += [bleu, f"{100 * score.exact / sentences:.1f} %", f"{score.log_probability:.3f}"]
    return f"| {name} | {sentences:,} | {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, help="lines of English<tab>Spanish, plain, .xz or .zip")
    parser.add_argument("--all", action="store_true", help="every sentence of --pairs, not only the held-out ones")
    parser.add_argument("--dates", action="store_true", help="the date models, on dates that were held out")
    parser.add_argument("--models", nargs="+", help="checkpoints; default: all that do this task")
    options = parser.parse_args(argv)
    pairs = "" if options.dates else str(options.pairs or resource("quality/en-es.tsv"))
    default = DATE_MODELS if options.dates else (*RECURRENT_TRANSLATORS, TRANSFORMER_TRANSLATOR)
    held_out = options.pairs is not None and not options.all
    view = measure(options.models or default, pairs, held_out)
    print(f"{view.sentences:,} sentences, {view.left_out:,} left out as too long; {view.seconds:.0f} s")
    if view.signature:
        print(f"sacrebleu {view.signature}")
    head = " | ".join(f"{name}: {what}" for name in view.models for what in ("BLEU", "right", "log p"))
    print(f"\n| {view.unit} | n | {head} |\n|{'---|' * (2 + 3 * len(view.models))}")
    for bin_ in view.bins:
        print(row(bin_.name, bin_.sentences, bin_.scores))
    for part in view.parts:
        print(row(part.name, part.sentences, part.scores))


if __name__ == "__main__":
    main()
