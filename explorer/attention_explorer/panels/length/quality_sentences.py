"""How a measurement is drawn and told: a line a model, sentences about it, and its table as a file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.plot.figure import Mark
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.quality import QualityPart, QualityRequest, QualityScore, QualityView

BLEU, EXACT, LOG_P = range(3)
MEASURES = (
    ("BLEU", "How many words and word groups the translations share with the references, 0 to 100"),
    ("Right", "How many sentences are the same as a reference, letter case aside"),
    ("log p", "How likely each model finds the references: mean log-probability of their tokens"),
)

FEW = 10
"""Fewer sentences than this make a hollow point: chance has a large part in it."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a checkpoint's line looks. Mark and dash tell apart what colour alone may not."""

    name: str
    role: str
    mark: Mark
    dashed: bool = False


STYLES = {
    "recurrent-en-es-bahdanau": Style("attention", "bar", "circle"),
    "recurrent-en-es-bottleneck": Style("bottleneck", "warning", "square", dashed=True),
    "en-es": Style("transformer", "ok", "diamond"),
    "dates-bahdanau": Style("Bahdanau attention", "bar", "circle"),
    "dates-luong": Style("Luong attention", "ok", "triangle"),
    "dates-bottleneck": Style("bottleneck", "warning", "square", dashed=True),
}


def styles(view: QualityView) -> tuple[Style, ...]:
    """A style a model; one that a person opened goes by its own name."""
    return tuple(
        STYLES.get(reference, Style(name, "text", "triangle"))
        for reference, name in zip(view.request.references, view.models, strict=True)
    )


def value_of(score: QualityScore, sentences: int, measure: int, unit: Unit) -> float:
    """A score as the plot draws it, a log-probability in `unit`."""
    if measure == BLEU:
        return score.bleu if score.bleu is not None else math.nan
    return 100 * score.exact / sentences if measure == EXACT else from_nats(score.log_probability, unit)


def text_of(score: QualityScore, sentences: int, measure: int, unit: Unit) -> str:
    return text_of_value(value_of(score, sentences, measure, unit), measure)


def text_of_value(value: float, measure: int) -> str:
    """A score as it is written."""
    if measure == BLEU:
        return f"{value:.1f}"
    if measure == EXACT:
        return f"{value:.0f} %" if value in (0, 100) else f"{value:.1f} %"
    return value_text(value)


def noun_of(view: QualityView) -> str:
    """What has a length."""
    return "sentences" if view.unit == "words" else "dates"


def conclusion(view: QualityView, measure: int, unit: Unit) -> str:
    """ "Up to 10 words, BLEU: attention 31.2, bottleneck 24.0. Longer, BLEU: attention 12.0, bottleneck 3.1." """
    parts = view.parts[1:] or view.parts
    return " ".join(_told(part, styles(view), measure, unit) for part in parts)


def _told(part: QualityPart, named: Sequence[Style], measure: int, unit: Unit) -> str:
    figures = ", ".join(
        f"{style.name} {text_of(score, part.sentences, measure, unit)}"
        for style, score in zip(named, part.scores, strict=True)
    )
    name = "All" if part.name == "all" else part.name[0].upper() + part.name[1:]
    what = (
        "right"
        if measure == EXACT
        else f"{MEASURES[measure][0]} ({unit})"
        if measure == LOG_P
        else MEASURES[measure][0]
    )
    return f"{name}, {what}: {figures}."


def account(view: QualityView, measure: int) -> str:
    """Which sentences these are, and what the measure is."""
    request, count = view.request, f"{view.sentences:,}"
    if not request.pairs:
        which = f"{count} dates that were made for this and held out of the training."
    elif is_shipped(request):
        which = f"{count} sentences that were written for this program; none is among the training data."
    else:
        name = Path(request.pairs).name
        which = f"{count} English sentences of {name}."
        if request.held_out:
            which = f"{count} English sentences of {name}: those that the recipe held out of the training."
    said = [which]
    if view.left_out:
        said.append(f"{view.left_out:,} more are longer than a model takes.")
    if view.sampled:
        said.append("Of lengths with very many, 1,000 were drawn.")
    said.append(_explained(view, measure))
    if any(view.trained_to):
        said.append("The recurrent models were trained on sentences up to the dashed line.")
    said.append(f"All write greedily. Hollow points stand on fewer than {FEW} {noun_of(view)}.")
    return " ".join(said)


def _explained(view: QualityView, measure: int) -> str:
    if measure == BLEU:
        how = f" ({view.signature})" if view.signature else ""  # known once a length is measured
        return f"BLEU of all sentences of a length together, by sacrebleu{how}."
    if measure == EXACT:
        return "Right: the same as a reference to the letter, capitals aside."
    several = " Models with other tokens have other figures: compare their shapes." if view.unit == "words" else ""
    return f"Mean log-probability of a reference's token, the true ones before it given.{several}"


def progress_text(view: QualityView | None, is_measuring: bool, label: str) -> str:
    """What is being done, or what became of it."""
    if is_measuring:
        return f"Measuring: {view.done:,} of {view.total:,}" if view is not None else f"{label or 'Starting'} …"
    if view is None:
        return ""
    if not view.ended:
        return f"Stopped at {view.done:,} of {view.total:,}; what was measured stays."
    models = f"{len(view.models)} models" if len(view.models) > 1 else "one model"
    return f"{view.sentences:,} {noun_of(view)}, {models}: {view.seconds:.1f} s of work."


def is_shipped(request: QualityRequest) -> bool:
    """Whether the sentences are the program's own."""
    return Path(request.pairs).parts[-3:] == ("resources", "quality", "en-es.tsv")


def table(view: QualityView, unit: Unit) -> str:
    """Every figure as comma-separated values, log-probabilities in `unit`, which their column names: a row a bin and
    model.
    """
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(
        ["model", f"from_{view.unit}", f"to_{view.unit}", "sentences", "bleu", "exact", f"log_probability_{unit}"]
    )
    for bin_ in view.bins:
        for name, score in zip(view.models, bin_.scores, strict=True):
            bleu = "" if score.bleu is None else f"{score.bleu:.4f}"
            figures = [
                bin_.first,
                bin_.last,
                bin_.sentences,
                bleu,
                score.exact,
                f"{from_nats(score.log_probability, unit):.6f}",
            ]
            writer.writerow([name, *figures])
    return held.getvalue()
