"""The scripts of quality against length, run in a fresh process: what models write, and every score of a length."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention_models.forward.context import Context, Workspace
from attention_models.length.measurement import measure
from attention_models.protocol.quality import QualityView, ShownQuality
from attention_models.protocol.request import Cancelled
from attention_models.scripts import quality as module
from attention_models.scripts.quality import write
from tests.models import translators
from tests.models.scripts.running import Line, printed

TOLERANCE = 1e-6  # of the largest number that a script prints
RECURRENT = ("recurrent-en-es-bahdanau", "recurrent-en-es-bottleneck")
PAIRS = [
    ("The cat is sleeping.", ["El gato duerme.", "El gato está durmiendo."]),
    ("I am tired.", ["Estoy cansado.", "Estoy cansada."]),
    ("He reads a book.", ["Lee un libro.", 'Él lee un "libro".']),
    ("My brother wants to buy a new house near the river before the winter.", ["Mi hermano quiere comprar una casa."]),
]


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(f"{source}\t{one}" for source, given in PAIRS for one in given), encoding="utf-8")
    return str(path)


def context() -> Context:
    return Context(Workspace(), lambda: False, lambda _label, _share: None)


def code_of(view: QualityView, place: int, example: int = 0) -> str:
    shown = view.bins[place]
    has_bleu = bool(view.request.pairs)
    request = ShownQuality(references=view.request.references, bin=shown, example=example, has_bleu=has_bleu)
    return write(request, context()).code()


def said(code: str, folder: Path) -> dict[str, Line]:
    lines = printed({"quality": code}, folder, own_classes=True)["quality"]
    largest = max(1.0, *(abs(line.shown) for line in lines))
    for line in lines:
        assert line.computed == pytest.approx(line.shown, abs=TOLERANCE * largest), line
    return {line.name: line for line in lines}


@pytest.mark.full
def test_every_score_of_a_length_by_every_model(pairs: str, tmp_path: Path) -> None:
    view = measure([*RECURRENT, "en-es"], pairs)
    for place, bin_ in enumerate(view.bins):
        code = code_of(view, place)
        assert "MarianMTModel.from_pretrained(" in code  # transformers alone, where it can
        assert code.count("= ax.open_checkpoint(") == 2
        lines = said(code, tmp_path)
        for name, score in zip(view.models, bin_.scores, strict=True):
            assert lines[f"{name}, right, of {bin_.sentences}"].shown == score.exact
            assert lines[f"{name}, BLEU"].shown == score.bleu
            assert lines[f"{name}, log p a token, nats"].shown == score.log_probability
    exact = [score.exact for bin_ in view.bins for score in bin_.scores]
    assert 0 < sum(exact) < 4 * len(view.models)  # some are right and some are not


@pytest.mark.full
def test_a_decoder_with_more_layers_than_its_encoder(pairs: str, tmp_path: Path) -> None:
    """For whose cache transformers' own generate makes too little room."""
    model = translators.opened(tmp_path, "t5")
    view = measure([model.info.reference], pairs)
    lines = said(code_of(view, 0), tmp_path)
    score = view.bins[0].scores[0]
    assert lines[f"{view.models[0]}, log p a token, nats"].shown == score.log_probability


def test_dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_models.length.measurement.DATES", 40)
    view = measure(["dates-luong", "dates-bottleneck"])
    lines = said(code_of(view, 1), tmp_path)
    assert not any("BLEU" in name for name in lines)
    assert lines[f"{view.models[0]}, right, of {view.bins[1].sentences}"].shown == view.bins[1].scores[0].exact


@pytest.mark.full
def test_of_too_many_sentences_the_one_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_models.length.measurement.DATES", 40)
    view = measure(["dates-luong"])
    monkeypatch.setattr(module, "MOST", 1)
    place = next(i for i, bin_ in enumerate(view.bins) if bin_.sentences > 2)
    code = code_of(view, place, example=2)
    assert code.count("    ('") + code.count('    ("') == 1
    assert view.bins[place].examples[2].source in code
    lines = said(code, tmp_path)
    assert [line.shown for line in lines.values()] == [float(view.bins[place].examples[2].exact[0])]


def test_called_off_between_two_models(pairs: str) -> None:
    view = measure(RECURRENT[:1], pairs)
    request = ShownQuality(references=RECURRENT, bin=view.bins[0], example=0, has_bleu=True)
    with pytest.raises(Cancelled):
        write(request, Context(Workspace(), lambda: True, lambda _label, _share: None))
