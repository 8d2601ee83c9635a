"""Quality against length: its measures against figures found in other ways, and a measurement asked for in batches."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu

from attention_models import decode, open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.files.catalogue import RECURRENT_TRANSLATORS
from attention_models.length import measurement as quality
from attention_models.length.held_out import split
from attention_models.length.measurement import DATES, Measurement, Sentence, grouped, measure, reference_streams
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.quality import QualityRequest, QualityScore, QualityView
from attention_models.protocol.request import Cancelled
from attention_models.textbook.tasks import date_pairs
from tests.models import recurrents
from tests.models.asking import ask, failure_of, never, opened, silent

SHIPPED = Path(__file__).parents[3] / "resources" / "quality" / "en-es.tsv"
PAIRS = [
    ("Hello Tom.", "Hola, Tom."),
    ("Good morning.", "Buenos días."),
    ("Good morning.", "Buen día."),
    ("I have a dog.", "Tengo un perro."),
    ("The cat is black.", "El gato es negro."),
    ("He lives in a big house.", "Él vive en una casa grande."),
    ("My brother works in a big hospital.", "Mi hermano trabaja en un gran hospital."),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[str, str]:
    """Two small models with random weights: with attention, and without."""
    home = tmp_path_factory.mktemp("models")
    kinds = ("bahdanau", "none")
    return tuple(str(recurrents.saved(home / kind, kind, seed=i)) for i, kind in enumerate(kinds))  # type: ignore[return-value]


def list_of(folder: Path, pairs: list[tuple[str, str]]) -> str:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


@pytest.fixture
def pairs(tmp_path) -> str:
    return list_of(tmp_path, PAIRS)


# --------------------------------------------------------------------------- the figures


def test_bins_hold_the_sentences_of_their_lengths(pairs):
    view = measure(["en-es"], pairs)
    assert [(b.first, b.last, b.name, b.sentences) for b in view.bins] == [
        (1, 2, "1 to 2", 2),
        (3, 4, "3 to 4", 2),
        (5, 6, "5 to 6", 1),
        (7, 8, "7 to 8", 1),
    ]
    assert view.planned == ((1, 2, 2), (3, 4, 2), (5, 6, 1), (7, 8, 1))
    assert view.bins[0].examples[0].references == ("Buenos días.", "Buen día.")
    assert (view.sentences, view.left_out, view.sampled, view.unit) == (6, 0, False, "words")
    assert (view.done, view.total, view.ended) == (6, 6, True)


@pytest.mark.full
def test_bleu_is_sacrebleus(pairs):
    view = measure(["en-es"], pairs)
    sentences = grouped(PAIRS)
    all_written, all_references = [], []
    for bin_ in view.bins:
        texts = [s.source for s in sentences if bin_.first <= len(s.source.split()) <= bin_.last]
        written = [list(decode(open_checkpoint("en-es"), text, 40))[-1].text for text in sorted(texts, key=len)]
        by_source = dict(zip(sorted(texts, key=len), written, strict=True))
        assert {e.source: e.written[0] for e in bin_.examples} == by_source
        ordered = [e.source for e in bin_.examples]
        references = [next(s.references for s in sentences if s.source == text) for text in ordered]
        streams = [[r[i] if i < len(r) else None for r in references] for i in range(max(map(len, references)))]
        wanted = sacrebleu.corpus_bleu(
            [by_source[text] for text in ordered],
            streams,  # type: ignore[arg-type]
            lowercase=True,
            use_effective_order=True,
        )
        assert bin_.scores[0].bleu == pytest.approx(wanted.score, abs=1e-9)
        all_written += [by_source[text] for text in ordered]
        all_references += references
    streams = [[r[i] if i < len(r) else None for r in all_references] for i in range(2)]
    whole = sacrebleu.corpus_bleu(all_written, streams, lowercase=True, use_effective_order=True)  # type: ignore[arg-type]
    assert view.parts[0].scores[0].bleu == pytest.approx(whole.score, abs=1e-9)
    assert 20 < whole.score < 100
    assert view.signature.startswith("nrefs:var|case:lc|eff:yes|tok:13a|smooth:exp|version:")


def test_short_bins_are_scored_by_the_n_grams_they_have(tmp_path):
    written = list(decode(open_checkpoint("en-es"), "I sing.", 40))[-1].text
    assert len(re.findall(r"\w+|\S", written)) <= 3  # without a fourth token BLEU would be 0
    view = measure(["en-es"], list_of(tmp_path, [("I sing.", written)]))
    (only,) = view.bins
    assert only.examples[0].exact == (True,)
    assert only.scores[0].bleu == pytest.approx(100)


def test_letter_case_and_spaces_make_no_difference_to_equality():
    sentence = Sentence("Hello.", ("¡Hola!", "Buenas tardes."), 1)
    assert quality._is_exact("¡hola!", sentence)
    assert quality._is_exact(" buenas  Tardes. ", sentence)
    assert not quality._is_exact("hola", sentence)


@pytest.mark.full
def test_the_log_probability_is_the_mean_over_all_tokens_of_all_references(pairs):
    view, model = measure(["en-es"], pairs), open_checkpoint("en-es")
    total, tokens = 0.0, 0
    for source, reference in PAIRS:
        encoded = model.encode(source, reference)
        log_p = model.forward(encoded.inputs).logits[0].double().log_softmax(-1)  # (steps, vocabulary)
        wanted = [*(token.id for token in encoded.tokens[1:]), 3]
        total += float(log_p[range(len(wanted)), wanted].sum())
        tokens += len(wanted)
    assert view.parts[0].scores[0].log_probability == pytest.approx(total / tokens, abs=1e-5)


@pytest.mark.full
def test_dates_are_the_ones_that_were_held_out():
    view = measure(["dates-bottleneck"])
    assert (view.unit, view.sentences, view.trained_to, view.signature) == ("characters", DATES, (None,), "")
    assert view.parts[0].scores[0].exact == 1_998  # as its card says
    assert view.parts[0].scores[0].bleu is None
    held_out = dict(date_pairs(DATES, seed=0))
    assert {e.source: e.references[0] for b in view.bins for e in b.examples} == held_out
    for bin_ in view.bins:
        assert all(bin_.first <= len(e.source) <= bin_.last for e in bin_.examples)
        assert bin_.scores[0].exact == sum(e.written[0] == held_out[e.source] for e in bin_.examples)


def test_models_stand_side_by_side(pairs, folders):
    view = measure([*folders, "en-es"], pairs)
    assert view.models == ("bahdanau", "none", "en-es")
    assert view.trained_to == (10, 10, None)
    alone = measure([folders[1]], pairs)
    assert [b.scores[1] for b in view.bins] == [b.scores[0] for b in alone.bins]
    assert {len(e.written) for b in view.bins for e in b.examples} == {3}


@pytest.mark.full
def test_lengths_beyond_the_training_are_scored_together(tmp_path, folders):
    long = ("My brother " + "and my sister " * 5, "Mi hermano y mi hermana."), ("The cat " + "is old " * 6, "El gato.")
    view = measure(folders, list_of(tmp_path, [*PAIRS, *long]))
    assert [(part.name, part.sentences) for part in view.parts] == [("all", 8), ("up to 10 words", 6), ("longer", 2)]
    alone = tmp_path / "alone"
    alone.mkdir()
    assert view.parts[2].scores == measure(folders, list_of(alone, list(long))).parts[0].scores
    assert len(measure(["en-es"], list_of(tmp_path, [*PAIRS, *long])).parts) == 1


def test_measured_twice_it_is_the_same(pairs, folders):
    get_or_compute, again = measure(folders, pairs), measure(folders, pairs)
    assert get_or_compute.bins == again.bins
    assert get_or_compute.parts == again.parts


# --------------------------------------------------------------------------- the sentences


def test_only_what_the_recipe_held_out(tmp_path, folders):
    every = [(f"The house has {n} doors.", f"La casa tiene {n} puertas.") for n in range(60)]
    view = measure(folders[:1], list_of(tmp_path, every), held_out=True)
    assert {e.source for b in view.bins for e in b.examples} == {source for source, _ in split(every)[1]}
    assert view.sentences == 6


def test_a_list_too_short_to_hold_any_out(pairs, folders):
    with pytest.raises(InputError, match="too few sentences to hold any out"):
        measure(folders, pairs, held_out=True)


def test_what_a_model_can_not_take_is_left_out_and_counted(tmp_path, folders):
    long = [("The cat. " * 80, "Corto."), ("Short.", "El gato. " * 80), ("", "Nada."), ("Nothing", "")]
    view = measure(folders, list_of(tmp_path, [*PAIRS, *long]))
    assert (view.sentences, view.left_out) == (6, 2)
    with pytest.raises(InputError, match="None of these sentences fits"):
        measure(folders, list_of(tmp_path, long[:2]))


def test_of_very_many_sentences_a_sample_is_taken(tmp_path, folders, monkeypatch):
    monkeypatch.setattr(quality, "MOST_IN_BIN", 5)
    every = [(f"The cat {n}.", f"El gato {n}.") for n in range(40)] + [("The dog is very old.", "El perro es viejo.")]
    view = measure(folders, list_of(tmp_path, every))
    assert [b.sentences for b in view.bins] == [5, 1]
    assert (view.sampled, view.sentences, view.left_out) == (True, 6, 0)
    assert measure(folders, list_of(tmp_path, every)).bins == view.bins


def test_a_model_that_does_not_translate_is_refused(pairs):
    with pytest.raises(InputError, match="story-gpt does not translate"):
        measure(["story-gpt"], pairs)
    with pytest.raises(CheckpointError, match="no-such-model"):
        measure(["no-such-model"], pairs)


def test_references_by_number():
    assert reference_streams([("a", "b"), ("c",)]) == [["a", "c"], ["b", None]]


def test_the_shipped_sentences_cover_the_lengths():
    first, *lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    assert "MIT licence" in first
    assert all(len(line.split("\t")) == 2 for line in lines)
    sentences = grouped([(line.split("\t")[0], line.split("\t")[1]) for line in lines])
    assert len(sentences) == len(lines) >= 320
    per_bin = [sum((s.length - 1) // 2 == half for s in sentences) for half in range(15)]
    assert min(per_bin) >= 12, per_bin


# --------------------------------------------------------------------------- the textbook's point


def bleu_of(score: QualityScore) -> float:
    assert score.bleu is not None
    return score.bleu


@pytest.mark.full
def test_the_bottleneck_is_worse_than_attention_and_the_more_so_on_long_sentences():
    """Cho et al. 2014, figure 4, and Bahdanau et al. 2015, figure 2, on sentences that neither model was trained on."""
    view = measure(RECURRENT_TRANSLATORS, str(SHIPPED))
    _, short, long = view.parts
    assert (short.name, long.name) == ("up to 10 words", "longer")
    attention, bottleneck = ([part.scores[model] for part in (short, long)] for model in (0, 1))
    figures = "; ".join(
        f"{part.name} ({part.sentences} sentences): BLEU {bleu_of(a):.1f} with attention, {bleu_of(b):.1f} without; "
        f"log p {a.log_probability:.3f}, {b.log_probability:.3f}"
        for part, a, b in zip((short, long), attention, bottleneck, strict=True)
    )
    assert min(short.sentences, long.sentences) > 100, figures
    assert bottleneck[1].log_probability < attention[1].log_probability, figures
    assert bleu_of(bottleneck[1]) < 0.5 * bleu_of(attention[1]), figures
    kept = [bleu_of(scores[1]) / bleu_of(scores[0]) for scores in (attention, bottleneck)]  # of the short ones' quality
    assert kept[1] < 0.75 * kept[0], figures
    beyond = [bin_ for bin_ in view.bins if bin_.first > 10]
    assert len(beyond) >= 10
    assert all(bleu_of(b.scores[1]) < bleu_of(b.scores[0]) for b in beyond), [(b.name, b.scores) for b in beyond]


# --------------------------------------------------------------------------- asked by the window


def walk(engine: Engine, request: QualityRequest) -> list[QualityView]:
    """The answers up to the last one, each asked for as the window asks."""
    views: list[QualityView] = []
    while not views or not views[-1].ended:
        view = ask(engine, request)
        assert isinstance(view, QualityView), view
        views.append(view)
        request = replace(request, done=view.done)
    return views


@pytest.fixture
def request_(pairs, folders, monkeypatch) -> QualityRequest:
    monkeypatch.setattr(quality, "BATCH", 1)
    return QualityRequest(references=folders, pairs=pairs)


def test_a_batch_a_request_and_a_bin_when_every_model_is_through_it(request_):
    views = walk(Engine(), request_)
    assert [view.done for view in views] == list(range(1, 13))
    assert [len(view.bins) for view in views] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4]
    assert all(not view.parts for view in views[:-1])
    assert views[-1].bins == measure(request_.references, request_.pairs).bins
    assert views[4].bins[0] is views[3].bins[0]


def test_the_open_model_is_left_alone(request_):
    engine = opened("dates-luong")
    model = engine.workspace.model
    walk(engine, request_)
    assert engine.workspace.model is model


def test_an_answer_that_was_lost_is_given_again(request_):
    engine = Engine()
    ask(engine, request_)
    second = replace(request_, done=1)
    assert [getattr(ask(engine, second), "done", None) for _ in range(3)] == [2, 2, 2]
    assert walk(engine, replace(request_, done=2))[-1].ended


def stops_after(polls: int) -> Callable[[], bool]:
    count = iter(range(polls))
    return lambda: next(count, None) is None


def called_off(engine: Engine, request: QualityRequest, polls: int) -> QualityRequest:
    """Ask for batch after batch until one takes more than so many polls; the request that was called off."""
    for _ in range(12):
        try:
            view = engine.run(request, stops_after(polls), silent)
        except Cancelled:
            return request
        assert isinstance(view, QualityView)
        request = replace(request, done=view.done)
    pytest.fail("no batch polled so often")


@pytest.mark.full
@pytest.mark.parametrize("polls", [0, 1, 4, 9])
def test_called_off_anywhere_it_goes_on_as_if_it_had_not_been(request_, polls):
    engine = Engine()
    ask(engine, request_)
    following = called_off(engine, replace(request_, done=1), polls)
    assert walk(engine, following)[-1].bins == measure(request_.references, request_.pairs).bins


def test_called_off_while_it_opens_nothing_is_held(request_):
    engine = Engine()
    with pytest.raises(Cancelled):
        engine.run(request_, lambda: True, silent)
    assert failure_of(engine, replace(request_, done=3)).stale


def test_stopped_it_tells_what_it_has_and_lets_go_of_it(request_):
    engine = Engine()
    for done in range(5):
        ask(engine, replace(request_, done=done))
    stopped = ask(engine, replace(request_, done=5, stop=True))
    assert isinstance(stopped, QualityView)
    assert (stopped.done, len(stopped.bins), stopped.ended) == (5, 1, False)
    assert failure_of(engine, replace(request_, done=5)).stale
    assert failure_of(engine, replace(request_, stop=True)).stale


def test_another_request_begins_anew(request_):
    engine = Engine()
    walk(engine, request_)
    other = ask(engine, replace(request_, references=request_.references[:1]))
    assert isinstance(other, QualityView)
    assert (other.models, other.done) == (("bahdanau",), 1)


def test_a_broken_file_is_a_failure_with_its_sentence(tmp_path, folders):
    path = tmp_path / "notes.txt"
    path.write_text("no pairs here\n")
    failure = failure_of(Engine(), QualityRequest(references=folders, pairs=str(path)))
    assert failure.sentence.startswith("notes.txt is no list of pairs")


def test_the_models_go_with_the_last_batch(request_):
    measurement = Measurement(request_, never, silent)
    while measurement.done < measurement.total:
        assert len(measurement._models) == 2
        measurement.advance(never)
    assert measurement._models == []
    assert math.isfinite(measurement.view(request_).parts[0].scores[0].log_probability)
