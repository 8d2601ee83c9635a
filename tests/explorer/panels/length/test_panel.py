"""The panel of quality and length, driven by mouse and keys, with a measurement made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollArea, QWidget

from attention_explorer.panels.length.panel import DATES, FILE, OURS, TRANSLATION, QualityPanel
from attention_explorer.panels.length.quality_sentences import (
    BLEU,
    EXACT,
    LOG_P,
    account,
    conclusion,
    progress_text,
    table,
)
from attention_explorer.session.intents import SetView
from attention_explorer.session.state import Document, State
from attention_explorer.widgets import dialogs
from attention_models.protocol.loading import Loaded
from attention_models.protocol.quality import (
    QualityBin,
    QualityExample,
    QualityPart,
    QualityRequest,
    QualityScore,
    QualityView,
)
from attention_models.protocol.request import Progress, Request
from tests.explorer.answering import answering, pressing
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

RECURRENT = ("recurrent-en-es-bahdanau", "recurrent-en-es-bottleneck")
REQUEST = QualityRequest(references=RECURRENT, pairs="")
SCORES = (
    (QualityScore(41.2, 1, -0.8), QualityScore(33.0, 1, -1.1)),
    (QualityScore(30.0, 1, -1.0), QualityScore(9.5, 0, -2.4)),
)
PARTS = (
    QualityPart("all", 4, (QualityScore(35.0, 2, -0.9), QualityScore(20.0, 1, -1.7))),
    QualityPart("up to 10 words", 2, SCORES[0]),
    QualityPart("longer", 2, SCORES[1]),
)
EXAMPLES = (
    (
        QualityExample("Hello.", ("Hola.",), ("hola.", "hola."), (True, True)),
        QualityExample("Good bye.", ("Adiós.", "Hasta luego."), ("buenos días.", ""), (False, False)),
    ),
    (
        QualityExample("A long sentence.", ("Una frase larga.",), ("una larga.", "la la."), (False, False)),
        QualityExample("A longer sentence.", ("Una más larga.",), ("una más larga.", "la la la."), (True, False)),
    ),
)
BINS = (QualityBin(9, 10, SCORES[0], EXAMPLES[0]), QualityBin(11, 12, SCORES[1], EXAMPLES[1]))


def view(request: QualityRequest, measured: int = 2, **changes: object) -> QualityView:
    made = QualityView(
        request=request,
        models=request.references[:2],
        trained_to=(10, 10),
        unit="words",
        bins=BINS[:measured],
        parts=PARTS if measured == 2 else (),
        planned=((9, 10, 2), (11, 12, 2)),
        sentences=4,
        left_out=0,
        sampled=False,
        done=4 * measured,
        total=8,
        signature="nrefs:1|case:lc",
        seconds=2.5,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def loaded(reference: str, textbook: bool = True, shipped: bool = True) -> Loaded:
    result = answers.loaded(reference)
    info = replace(result.info, textbook=textbook, family="seq2seq", shipped=shipped)
    return replace(result, info=info)


def asked(session: SilentSession) -> list[Request]:
    return [request for request in session.asked if isinstance(request, QualityRequest)]


def begun(session: SilentSession) -> QualityRequest:
    request = asked(session)[-1]
    assert isinstance(request, QualityRequest)
    return request


@pytest.fixture
def session() -> SilentSession:
    reference = "recurrent-en-es-bahdanau"
    return SilentSession(answers.after(State(Document(reference)), loaded(reference)))


@pytest.fixture
def panel(qtbot, session) -> QualityPanel:
    panel = shown(qtbot, QualityPanel, session)
    panel.resize(600, 900)
    return panel


def press(widget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def measured(panel: QualityPanel, session: SilentSession) -> None:
    press(panel.run)
    session.arrive(view(begun(session)))


def at(panel: QualityPanel, bin_: int) -> QPoint:
    """The first model's point of a bin."""
    series = panel.plot.figure.series[0]
    return panel.plot.point(series.x[bin_], series.y[bin_]).toPoint()


def test_it_suits_the_recurrent_models_and_the_translator():
    suits = {
        name: QualityPanel.suits(loaded(name, textbook).info)
        for name, textbook in (("dates-luong", True), ("mine", True), ("en-es", False), ("story-gpt", False))
    }
    assert suits == {"dates-luong": True, "mine": True, "en-es": True, "story-gpt": False}


def test_before_anything_was_measured_it_says_what_to_press(panel, session):
    assert asked(session) == []
    assert len(panel.plot.places) == 0
    assert panel.run.isEnabled()
    assert not panel.stop.isEnabled()
    assert not panel.save.isEnabled()
    assert not panel.progress.isVisible()
    assert not panel.examples.isVisible()
    assert not panel.is_waiting()


def test_run_asks_for_both_translators_on_our_sentences(panel, session):
    press(panel.run)
    request = begun(session)
    assert request.references == RECURRENT
    assert Path(request.pairs).is_file()
    assert not request.held_out
    assert not panel.run.isEnabled()
    assert panel.stop.isEnabled()
    assert panel.progress.isVisible()


def test_the_plot_grows_and_the_next_batch_is_asked_for(panel, session):
    press(panel.run)
    session.arrive(Progress(request=begun(session), label="Opening a"))
    assert panel.status.text() == "Opening a …"
    session.arrive(view(begun(session), measured=1))
    assert begun(session).done == 4
    assert panel.status.text() == "Measuring: 4 of 8"
    assert panel.progress.value() / panel.progress.maximum() == 0.5
    assert len(panel.plot.places) == 1
    assert not panel.conclusion.isVisible()
    session.arrive(view(begun(session)))
    assert len(panel.plot.places) == 2
    assert [series.name for series in panel.plot.figure.series] == ["attention", "bottleneck"]
    assert panel.plot.figure.series[1].y.tolist() == [33.0, 9.5]
    assert panel.status.text() == "4 sentences, 2 models: 2.5 s of work."
    assert panel.conclusion.text() == (
        "Up to 10 words, BLEU: attention 41.2, bottleneck 33.0. Longer, BLEU: attention 30.0, bottleneck 9.5."
    )
    assert "written for this program" in panel.account.text()
    assert "nrefs:1|case:lc" in panel.account.text()
    assert panel.run.isEnabled()
    assert not panel.progress.isVisible()


def test_how_bleu_was_computed_is_said_once_it_is_known(panel, session):
    press(panel.run)
    request = begun(session)
    assert "by sacrebleu (nrefs:1|case:lc)." in account(view(request), BLEU)
    assert "by sacrebleu. " in account(view(request, measured=0, signature=""), BLEU)


def test_stop_keeps_what_was_measured(panel, session):
    press(panel.run)
    session.arrive(view(begun(session), measured=1))
    press(panel.stop)
    assert begun(session).stop
    assert panel.status.text() == "Stopped at 4 of 8; what was measured stays."
    assert len(panel.plot.places) == 1
    assert panel.run.isEnabled()
    assert not panel.stop.isEnabled()
    press(panel.run)
    assert (begun(session).done, begun(session).stop) == (0, False)
    assert len(panel.plot.places) == 0


def test_measuring_goes_on_behind_another_tab(panel, session):
    press(panel.run)
    panel.hide()
    session.arrive(view(begun(session), measured=1))
    assert begun(session).done == 4
    session.arrive(view(begun(session)))
    panel.show()
    assert len(panel.plot.places) == 2


@pytest.mark.parametrize(
    ("measure", "unit", "values", "texts", "said"),
    [
        (EXACT, "bits", (50.0, 0.0), ("50.0 %", "0 %"), "Right"),
        (LOG_P, "nats", (-1.1, -2.4), ("−1.100", "−2.400"), "true ones before it"),
        (LOG_P, "bits", (-1.1 / math.log(2), -2.4 / math.log(2)), ("−1.587", "−3.462"), "true ones before it"),
    ],
)
def test_other_measures(panel, session, measure, unit, values, texts, said):
    measured(panel, session)
    session.dispatch(SetView("unit", unit))
    press(panel.measure.button(measure))
    worse = panel.plot.figure.series[1]
    assert tuple(worse.y) == pytest.approx(values, rel=1e-12)
    assert tuple(map(panel.plot.figure.value_text, worse.y)) == texts
    assert said in panel.account.text()
    assert texts[1] in panel.conclusion.text()
    if measure == LOG_P:
        assert panel.plot.figure.y.title == f"log p a token, {unit}"
        assert f"log p ({unit}): " in panel.conclusion.text()


def test_a_point_shows_sentences_and_what_each_model_wrote(panel, session, qtbot):
    measured(panel, session)
    assert panel.how.isVisible()
    panel.plot.setFocus()
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, pos=at(panel, 1))
    examples = panel.examples
    assert examples.isVisible()
    assert not panel.how.isVisible()
    assert examples.source.text() == "A longer sentence."  # the first that tells the models apart
    assert examples.place.text() == "11 to 12 words: 2 of 2"
    labels = [examples.written.itemAt(i).widget().text() for i in range(examples.written.count())]
    assert labels == ["attention ✓: una más larga.", "bottleneck: la la la."]
    press(examples.next)
    assert examples.source.text() == "A long sentence."
    press(examples.back)
    assert examples.source.text() == "A longer sentence."
    QTest.keyClick(panel.plot, Qt.Key.Key_Left)
    assert examples.source.text() == "Hello."
    press(examples.next)
    assert examples.reference.text() == "Adiós.  |  Hasta luego."
    assert examples.written.itemAt(1).widget().text() == "bottleneck: nothing"
    press(examples.use)
    assert session.state.document.text == "Good bye."


def test_where_there_is_little_room_the_sentences_are_scrolled_into_sight(panel, session, qtbot):
    panel.resize(440, 440)
    measured(panel, session)
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, pos=at(panel, 0))

    def is_seen(widget: QWidget) -> bool:
        seen: QRect = widget.visibleRegion().boundingRect()
        return seen == widget.rect() and seen.height() > 8

    last = panel.examples.written.count() - 1
    qtbot.waitUntil(lambda: is_seen(panel.examples) and is_seen(panel.examples.written.itemAt(last).widget()))
    area = panel.findChild(QScrollArea).viewport()
    assert area.rect().intersects(QRect(panel.plot.mapTo(area, QPoint()), panel.plot.size()))


def test_a_sentence_that_was_chosen_stays_while_the_plot_grows(panel, session):
    press(panel.run)
    session.arrive(view(begun(session), measured=1))
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, pos=at(panel, 0))
    press(panel.examples.next)
    session.arrive(view(begun(session)))
    assert panel.examples.source.text() == "Good bye."


def test_dates_have_no_bleu_and_need_no_file(panel, session):
    press(panel.choices.task.button(DATES))
    assert not panel.measure.button(BLEU).isEnabled()
    assert panel.measure.current == EXACT
    assert not panel.choices.sentences.isVisible()
    press(panel.run)
    request = begun(session)
    assert (request.pairs, request.references) == ("", ("dates-bahdanau", "dates-luong", "dates-bottleneck"))
    bins = tuple(replace(b, scores=tuple(replace(s, bleu=None) for s in b.scores)) for b in BINS)
    two = replace(request, references=request.references[:2])
    session.arrive(view(two, unit="characters", bins=bins, trained_to=(None, None)))
    assert "dates that were made for this" in panel.account.text()
    press(panel.choices.task.button(TRANSLATION))
    assert len(panel.plot.places) == 0  # the measurement is of another task
    press(panel.choices.task.button(DATES))
    assert len(panel.plot.places) == 2


def test_a_date_model_begins_with_dates(qtbot):
    session = SilentSession(answers.after(State(Document("dates-luong")), loaded("dates-luong")))
    panel = shown(qtbot, QualityPanel, session)
    assert panel.choices.task.current == DATES
    session.arrive(loaded("dates-luong"))
    assert panel.choices.task.current == DATES


def test_the_transformer_can_join_in(panel, session):
    press(panel.choices.transformer)
    press(panel.run)
    assert begun(session).references == (*RECURRENT, "en-es")


def test_a_recurrent_model_of_ones_own_joins_in(qtbot):
    mine = loaded("/models/mine", shipped=False)
    session = SilentSession(answers.after(State(Document("/models/mine")), mine))
    panel = shown(qtbot, QualityPanel, session)
    press(panel.run)
    assert begun(session).references == (*RECURRENT, "/models/mine")


def test_a_file_of_pairs_of_ones_own(panel, session, monkeypatch):
    chosen = ["/texts/spa-eng.zip"]
    monkeypatch.setattr(dialogs, "file_to_open", lambda *args: chosen[0])
    assert not panel.choices.held_out.isVisible()
    press(panel.choices.sentences.button(FILE))
    assert panel.choices.file_name.text() == "spa-eng.zip"
    press(panel.choices.held_out)
    press(panel.run)
    assert (begun(session).pairs, begun(session).held_out) == ("/texts/spa-eng.zip", True)
    session.arrive(view(begun(session)))
    assert "of spa-eng.zip: those that the recipe held out" in panel.account.text()
    chosen[0] = ""  # the dialog is closed without a choice
    press(panel.choices.sentences.button(FILE))
    assert panel.choices.sentences.current == FILE
    press(panel.choices.sentences.button(OURS))
    assert not panel.choices.held_out.isVisible()
    press(panel.choices.sentences.button(FILE))
    assert panel.choices.sentences.current == OURS
    press(panel.run)
    assert (Path(begun(session).pairs).name, begun(session).held_out) == ("en-es.tsv", False)


def test_a_failure_leaves_it_ready_to_run(panel, session):
    press(panel.run)
    session.arrive(answers.failure(begun(session)))
    assert session.state.notice is not None
    assert panel.run.isEnabled()
    assert panel.status.text() == ""


def test_a_file_that_cannot_be_read_stays_named_nowhere(panel, session, monkeypatch):
    monkeypatch.setattr(dialogs, "file_to_open", lambda *args: "/texts/broken.zip")
    press(panel.choices.sentences.button(FILE))
    press(panel.run)
    session.arrive(answers.failure(begun(session)))
    assert panel.choices.sentences.current == OURS
    assert not panel.choices.file_name.isVisible()
    press(panel.run)
    assert Path(begun(session).pairs).name == "en-es.tsv"


def test_a_curve_never_stands_below_the_name_of_other_sentences(panel, session, monkeypatch):
    measured(panel, session)
    assert len(panel.plot.places) == 2
    monkeypatch.setattr(dialogs, "file_to_open", lambda *args: "/texts/spa-eng.zip")
    press(panel.choices.sentences.button(FILE))
    assert len(panel.plot.places) == 0
    assert panel.account.text() == ""
    assert not panel.save.isEnabled()
    press(panel.choices.sentences.button(OURS))
    assert len(panel.plot.places) == 2


def test_the_table_is_saved_as_csv(panel, session, monkeypatch, tmp_path):
    measured(panel, session)
    path = tmp_path / "quality.csv"
    monkeypatch.setattr(dialogs, "file_to_save", lambda *args: (str(path), ""))
    press(panel.save)
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["model", "from_words", "to_words", "sentences", "bleu", "exact", "log_probability_bits"]
    assert rows[4] == ["recurrent-en-es-bottleneck", "11", "12", "2", "9.5000", "0", f"{-2.4 / math.log(2):.6f}"]
    assert len(rows) == 5
    assert "is saved" in session.state.notice.text
    monkeypatch.setattr(dialogs, "file_to_save", lambda *args: (str(tmp_path / "no" / "where.csv"), ""))
    press(panel.save)
    assert "could not be written" in session.state.notice.text


@pytest.mark.parametrize(
    ("broken", "words"), [("full", "the disk is full"), ("read only", "the disk can only be read")]
)
def test_a_disk_that_refuses_keeps_the_older_table(panel, session, monkeypatch, small_disk, broken, words):
    measured(panel, session)
    path = small_disk.folder / "quality.csv"
    path.write_text("older")
    if broken == "full":
        small_disk.fill()
    else:
        small_disk.forbid_writing()
    monkeypatch.setattr(dialogs, "file_to_save", lambda *args: (str(path), ""))
    with answering(pressing("Replace")):
        press(panel.save)
    assert words in session.state.notice.text
    assert path.read_text() == "older"
    assert small_disk.names() == {"quality.csv"}


def test_words():
    whole = view(replace(REQUEST, pairs="x.tsv"), left_out=3, sampled=True)
    assert (
        conclusion(replace(whole, parts=PARTS[:1]), EXACT, "bits") == "All, right: attention 50.0 %, bottleneck 25.0 %."
    )
    assert progress_text(None, False, "") == ""
    assert progress_text(None, True, "") == "Starting …"
    dates = tuple(replace(b, scores=tuple(replace(s, bleu=None) for s in b.scores)) for b in BINS)
    assert table(replace(whole, bins=dates), "nats").splitlines()[1].split(",")[4] == ""
