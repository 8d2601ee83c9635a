"""A file of texts in the real window: read, looked at, asked, opened, stopped, saved, and files that are none."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch
import transformers
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton

from attention_explorer.panels.corpus import panel as module
from attention_explorer.panels.corpus.panel import DISTANCE, MAP, PLACES, ROWS, CorpusPanel
from attention_explorer.session import attn
from attention_explorer.session.corpus import corpus_view
from attention_explorer.session.intents import (
    AskCorpus,
    ChooseCorpus,
    ClearInterventions,
    OpenCheckpoint,
    PutIntervention,
    ReadCorpus,
    SelectHead,
    Show,
)
from attention_explorer.session.kept import KeptState, SessionFile
from attention_explorer.session.state import CorpusChoice
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.number_text import value_text
from attention_explorer.window.window import MainWindow
from attention_models.corpus import corpus as reading
from attention_models.files.catalogue import WEIGHTS
from attention_models.protocol.corpus import CorpusQuestion, CorpusView
from attention_models.protocol.head import HeadView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import click, click_head, panel_of, press, settle, wait_until

TEXTS = [
    "Tom and Anna went to the park. Anna gave the ball to Tom.",
    "The dog is playing with a red ball in the garden.",
    "Tom fell.",
    "Lily saw a big dog. The dog ran to Lily.",
    "Once upon a time, there was a girl named Anna. Anna had a red ball.",
]
SITE, HEAD = SiteRef("decoder", 5), 5


@pytest.fixture(scope="module")
def eager() -> list[np.ndarray]:
    """Of each text transformers' own eager weights, (layers, heads, queries, keys), one text at a time."""
    folder = WEIGHTS / "story-gpt"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    found = []
    for text in TEXTS:
        with torch.no_grad():
            ids = tokenizer("<|endoftext|>" + text, return_tensors="pt")  # as its training began every story
            out = model(**ids, output_attentions=True)
        found.append(np.stack([weights[0].double().numpy() for weights in out.attentions]))
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS))
    return path


@pytest.fixture
def panel(window) -> Iterator[CorpusPanel]:
    window.dock_host.raise_panel("corpus")
    settle(window)
    panel = panel_of(window, CorpusPanel)
    push(panel.pages.button(MAP))
    yield panel
    window.session.dispatch(ReadCorpus(False))
    settle(window)


def push(button: QAbstractButton) -> None:
    click(button, QPoint(8, button.height() // 2))


def read(window: MainWindow, path, question: CorpusQuestion | None = None) -> CorpusView:
    """Read a file to its end."""
    window.session.dispatch(ChooseCorpus(str(path)))
    if question is not None:
        window.session.dispatch(AskCorpus(question))
    wait_until(lambda: not window.session.state.reading)
    settle(window)
    return found(window)


def found(window: MainWindow) -> CorpusView:
    view = corpus_view(window.session.state)
    assert view is not None
    return view


def is_open(window: MainWindow, name: str) -> bool:
    loaded = window.session.state.results.loaded
    return loaded is not None and loaded.info.reference == name


def choose_by_dialog(monkeypatch, path) -> None:
    monkeypatch.setattr(dialogs, "file_to_open", lambda *_: str(path))


def test_a_file_is_chosen_and_its_means_are_those_of_eager_weights(window, panel, file, eager, monkeypatch):
    assert "Choose a file of texts" in panel.body.reason.text()
    choose_by_dialog(monkeypatch, file)
    push(panel.body.button)
    wait_until(lambda: corpus_view(window.session.state) is not None and not window.session.state.reading)
    settle(window)
    assert panel.status.text().startswith("texts.txt · 5 texts · ")
    assert "texts a second · read to the end" in panel.status.text()
    rows = max(len(weights[0, 0]) for weights in eager)
    for layer, head in ((5, 5), (4, 6)):
        click_head(window, layer, head)
        settle(window)
        for query, key in ((0, 0), (3, 1), (9, 9), (12, 4), (rows - 1, 2)):
            of_texts = [w[layer, head, query, key] for w in eager if query < w.shape[2]]
            said = panel.map_page.map.readout(query, key)
            texts = f"mean over {len(of_texts)} text{'s' if len(of_texts) > 1 else ''}"
            assert texts in said
            shown = panel.map_page.shown.values[query, key]
            assert shown == pytest.approx(np.mean(of_texts), abs=1e-6)
            assert said.endswith(value_text(float(shown)))
        assert panel.map_page.map.readout(2, 5).endswith("masked")
        push(panel.pages.button(DISTANCE))
        series = panel.plot.figure.series[0]
        for x, y in zip(series.x, series.y, strict=True):
            far = int(x)
            of_cells = [np.diagonal(w[layer, head], -far)[(1 if far == 0 else 0) :] for w in eager if far < w.shape[2]]
            assert y == pytest.approx(np.concatenate(of_cells).mean(), abs=1e-6)
        assert series.name == f"Layer {layer}, head {head}"
        push(panel.pages.button(MAP))


def test_heads_are_ranked_and_a_place_opens_with_the_weight_that_is_listed(window, panel, file, eager):
    view = read(window, file)
    push(panel.pages.button(PLACES))
    assert "Choose above what heads are asked" in panel.places.nothing.text()
    box = panel.question.pattern
    box.setFocus()
    box.setCurrentIndex(box.findData("previous"))
    box.activated.emit(box.currentIndex())
    wait_until(lambda: corpus_view(window.session.state) is not view and not window.session.state.reading)
    settle(window)
    diagonals = [np.diagonal(w, -1, axis1=2, axis2=3) for w in eager]  # (layers, heads, queries - 1)
    mean = np.concatenate(diagonals, axis=2).mean(axis=2)
    best = np.unravel_index(mean.argmax(), mean.shape)
    first = panel.places.ranking.list.item(0).text()
    assert first == f"layer {best[0]}, head {best[1]}   {mean.max():.3f}"
    rows = np.concatenate([np.arange(2, w.shape[2] + 1) for w in eager])
    assert panel.question.even.text() == f"evenly: {np.mean(1 / rows):.3f}"
    click(
        panel.places.ranking.list.viewport(),
        panel.places.ranking.list.visualItemRect(panel.places.ranking.list.item(0)).center(),
    )
    settle(window)
    selection = window.session.state.selection
    assert (selection.site.layer, selection.head) == best
    place = panel.places.hits.visualItemRect(panel.places.hits.item(0)).center()
    hit = panel.places.hits.hits[0]
    before = window.session.state.document
    click(panel.places.hits.viewport(), place)
    settle(window)
    state = window.session.state
    assert state.document.text == hit.text == TEXTS[hit.line - 1]
    assert (state.selection.query, state.selection.key) == (hit.query, hit.key)
    assert state.ran.tokens[hit.query].word == hit.query_word
    weight = float(state.results.of(HeadView).weights[hit.query, hit.key])
    assert weight == pytest.approx(hit.weight, abs=1e-6)
    assert weight == pytest.approx(eager[hit.line - 1][(*best, hit.query, hit.key)], abs=1e-6)
    assert panel.places.hits.item(0).text().endswith(f"{weight:.3f}")
    assert panel.opened.isVisible()
    window.session.undo()
    settle(window)
    assert window.session.state.document == before
    panel.places.hits.setFocus()
    panel.places.hits.setCurrentRow(1)
    press(panel.places.hits, Qt.Key.Key_Down)
    press(panel.places.hits, Qt.Key.Key_Return)
    settle(window)
    assert window.session.state.document.text == panel.places.hits.hits[2].text
    push(panel.opened.back)
    settle(window)
    assert window.session.state.document.text == before.text
    assert not panel.opened.isVisible()


def test_rows_of_a_token_stand_below_each_other_and_open(window, panel, file, eager):
    read(window, file)
    push(panel.pages.button(ROWS))
    assert "Type a token" in panel.rows_page.rows.empty_text
    QTest.keyClicks(panel.question.rows_of, "Anna")
    press(panel.question.rows_of, Qt.Key.Key_Return)
    wait_until(lambda: bool(panel.rows_page.rows.rows))
    settle(window)
    places = [(row.label, row.query) for row in panel.rows_page.rows.rows]
    assert len(places) == 4  # it stands four times in the texts
    assert (
        len(
            {
                round(panel.rows_page.rows.cell_rect(i, row.query).left())
                for i, row in enumerate(panel.rows_page.rows.rows)
            }
        )
        == 1
    )
    for i, row in enumerate(panel.rows_page.rows.rows):
        text = int(row.label.removeprefix("line ")) - 1
        expected = eager[text][5, 5, row.query]
        np.testing.assert_allclose(row.weights[: row.query + 1], expected[: row.query + 1], atol=1e-6)
        assert panel.rows_page.rows.tooltip_of((i, len(row.tokens) - 1)).endswith("masked")
    row = panel.rows_page.rows.rows[1]
    click(panel.rows_page.rows, panel.rows_page.rows.cell_rect(1, row.query - 1).center().toPoint())
    settle(window)
    selection = window.session.state.selection
    assert (selection.query, selection.key) == (row.query, row.query - 1)
    assert window.session.state.document.text == TEXTS[int(row.label.removeprefix("line ")) - 1]


def test_it_stops_and_goes_on_and_the_window_stays_live(window, panel, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MOMENT", 0.0)
    monkeypatch.setattr(reading, "_AT_ONCE", 10)
    path = tmp_path / "many.txt"
    path.write_text("\n".join(TEXTS * 30))
    window.session.dispatch(ChooseCorpus(str(path)))
    wait_until(lambda: (view := corpus_view(window.session.state)) is not None and view.texts > 10)
    assert 0 < found(window).share < 1
    assert panel.read.text() == "Stop"
    window.session.dispatch(SelectHead(SiteRef("decoder", 2), 3))
    assert panel.map_page.shown is not None
    assert panel.map_page.shown.texts.max() > 0
    push(panel.read)
    settle(window)
    stopped = found(window)
    assert 0 < stopped.texts < 150
    assert panel.read.text() == "Go on"
    assert "stopped at" in panel.status.text()
    QTest.qWait(100)
    assert corpus_view(window.session.state) is stopped
    push(panel.read)
    wait_until(lambda: not window.session.state.reading)
    settle(window)
    view = found(window)
    assert (view.texts, view.ended) == (150, True)
    assert panel.read.text() == "Read again"
    monkeypatch.undo()
    whole = read(window, path)
    np.testing.assert_allclose(view.mean, whole.mean, atol=2e-6)


def test_what_is_of_other_changes_or_another_model_is_not_shown(window, panel, file):
    plain = read(window, file)
    window.session.dispatch(PutIntervention(Scale(0.2)))
    settle(window)
    assert panel.map_page.shown is None
    assert "other changes" in panel.status.text()
    push(panel.read)
    wait_until(lambda: not window.session.state.reading)
    settle(window)
    changed = found(window)
    assert np.nanmax(np.abs(changed.mean - plain.mean)) > 1e-2
    window.session.dispatch(ClearInterventions())
    settle(window)
    assert panel.map_page.shown is None
    window.session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(partial(is_open, window, "story-bert"))
    settle(window)
    assert panel.map_page.shown is None
    assert "Not read yet" in panel.status.text()
    assert not window.session.state.reading


def test_a_session_brings_the_question_back_and_reads_when_asked(window, panel, file, tmp_path):
    read(window, file, CorpusQuestion("word:ball", "Anna"))
    push(panel.pages.button(PLACES))
    saved = tmp_path / "corpus.attn"
    attn.save(SessionFile(KeptState(window.session.state.document)), saved)
    window.session.dispatch(AskCorpus(CorpusQuestion()))
    wait_until(lambda: not window.session.state.reading)
    window.sessions.open_path(saved)
    wait_until(
        lambda: window.session.state.document.corpus == CorpusChoice(str(file), CorpusQuestion("word:ball", "Anna"))
    )
    settle(window)
    assert panel.question.word.text() == "ball"
    assert panel.question.rows_of.text() == "Anna"
    assert not window.session.state.reading
    push(panel.read)
    wait_until(lambda: not window.session.state.reading)
    settle(window)
    assert panel.places.hits.hits
    assert all(hit.key_word == "ball" for hit in panel.places.hits.hits)


def test_a_file_dropped_on_the_panel_is_read(window, panel, file):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file))])
    nothing = (Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    enter = QDragEnterEvent(QPoint(20, 20), *nothing)
    enter.ignore()
    panel.dragEnterEvent(enter)
    assert enter.isAccepted()
    panel.dropEvent(QDropEvent(QPointF(20, 20), *nothing))
    wait_until(lambda: corpus_view(window.session.state) is not None and not window.session.state.reading)
    assert window.session.state.document.corpus.path == str(file)
    assert window.settings.recent_texts[0] == str(file)
    other = QMimeData()
    other.setUrls([QUrl.fromLocalFile(str(file.with_suffix(".attn")))])
    enter = QDragEnterEvent(QPoint(20, 20), Qt.DropAction.CopyAction, other, nothing[2], nothing[3])
    enter.ignore()
    panel.dragEnterEvent(enter)
    assert not enter.isAccepted()


def test_a_file_dropped_anywhere_else_comes_to_the_panel(window, panel, file):
    """It was taken for the folder that it lies in, and that for a checkpoint."""
    window.dock_host.raise_panel("next")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file))])
    nothing = (Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    window.dropEvent(QDropEvent(QPointF(20, 20), *nothing))
    wait_until(lambda: corpus_view(window.session.state) is not None and not window.session.state.reading)
    settle(window)
    assert window.session.state.document.corpus.path == str(file)
    assert window.session.state.document.checkpoint == "story-gpt"
    assert panel.isVisible()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "no line that says anything"),
        ("binary.txt", b"\x00\x01\x02", "zero bytes"),
        ("latin.txt", "año\n".encode("latin-1"), "line 1"),
        ("long.txt", b"a" * 500_000, "longer than 100,000 characters"),
        ("too_much.txt", b"Tom " * 700, "701 tokens"),
        ("not.jsonl", b"{text\n", "no JSON"),
        ("quotes.csv", b'text\n"Tom\n', "line"),
    ],
)
def test_a_file_that_is_no_texts_is_a_sentence_and_nothing_is_lost(window, panel, file, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    document, ran = window.session.state.document, window.session.state.ran
    window.session.dispatch(ChooseCorpus(str(path)))
    wait_until(lambda: window.session.state.notice is not None)
    settle(window)
    assert said in window.session.state.notice.text
    assert window.notice_bar.isVisible()
    assert not window.session.state.reading
    assert window.session.state.ran is ran
    assert window.session.state.document.text == document.text
    window.session.dispatch(Show(None))
    settle(window)
    assert said in panel.status.text()  # also when the sentence at the top is gone
    assert read(window, file).texts == 5
    assert said not in panel.status.text()
    assert window.session.state.notice is None


def test_a_file_that_vanished_and_one_that_breaks_off(window, panel, file, tmp_path):
    read(window, file)
    file.unlink()
    push(panel.read)
    wait_until(lambda: window.session.state.notice is not None)
    assert "texts.txt" in window.session.state.notice.text
    settle(window)
    path = tmp_path / "half.txt"
    path.write_bytes("\n".join(TEXTS).encode() + b"\n\xff\xfe\n")
    view = read(window, path)
    assert view.texts == 5
    assert "line 6" in panel.remarks.text()
    assert "line 6" in window.session.state.notice.text
    assert "broken off after line 5" in panel.status.text()


def test_lines_that_do_not_fit_are_counted_and_said(window, panel, tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("\n".join(["Tom " * 700, TEXTS[0], "Tom " * 800]))
    assert read(window, path).texts == 1
    assert panel.remarks.text().startswith("2 left out. Line 1 is left out: This text is 701 tokens long")
    assert "Line 3 is left out" in panel.remarks.toolTip()


def test_other_families(window, panel, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("text,second\nGood morning.,Buenos días.\nThank you.,\n")
    window.session.dispatch(OpenCheckpoint("en-es"))
    wait_until(partial(is_open, window, "en-es"))
    window.dock_host.raise_panel("corpus")
    read(window, pairs, CorpusQuestion("special"))
    assert "1 line has no second text" in panel.remarks.text()
    window.session.dispatch(SelectHead(SiteRef("cross", 2), 1))
    settle(window)
    push(panel.pages.button(PLACES))
    hit = panel.places.hits.hits[0]
    click(panel.places.hits.viewport(), panel.places.hits.visualItemRect(panel.places.hits.item(0)).center())
    settle(window)
    state = window.session.state
    assert (state.document.text, state.document.target) == (hit.text, hit.second)
    assert float(state.results.of(HeadView).weights[hit.query, hit.key]) == pytest.approx(hit.weight, abs=1e-6)
    window.session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(partial(is_open, window, "story-bert"))
    window.dock_host.raise_panel("corpus")
    pairs.write_text("text,second\nTom fell.,He cried for his mom.\n")
    read(window, pairs, CorpusQuestion("special"))
    window.session.dispatch(SelectHead(SiteRef("encoder", 3), 4))
    settle(window)
    hit = panel.places.hits.hits[0]
    click(panel.places.hits.viewport(), panel.places.hits.visualItemRect(panel.places.hits.item(0)).center())
    settle(window)
    state = window.session.state
    assert (state.document.text, state.document.second) == ("Tom fell.", "He cried for his mom.")
    weights = state.results.of(HeadView).weights[hit.query]
    assert float(weights[hit.key]) == pytest.approx(hit.weight, abs=1e-6)
    marks = [i for i, token in enumerate(state.ran.tokens) if token.special or token.word == "."]
    assert float(weights[marks].sum()) == pytest.approx(hit.score, abs=1e-6)
    assert panel.places.hits.item(0).text().endswith(f"{hit.weight:.3f} of {hit.score:.3f}")
    for name, said in (("vit-quickdraw", "looks at pictures"), ("dates-bottleneck", "has no attention")):
        window.session.dispatch(OpenCheckpoint(name))
        wait_until(partial(is_open, window, name))
        settle(window)
        if name == "vit-quickdraw":
            assert window.dock_host.docks["corpus"].isHidden()  # put away; who brings it back is told why
        window.dock_host.raise_panel("corpus")
        settle(window)
        assert said in panel.body.reason.text()
        assert not panel.read.isVisible()
    window.session.dispatch(OpenCheckpoint("dates-bahdanau"))
    wait_until(partial(is_open, window, "dates-bahdanau"))
    window.dock_host.raise_panel("corpus")
    dates = tmp_path / "dates.txt"
    dates.write_text("12 March 1998\n5/7/2001\n")
    assert read(window, dates, CorpusQuestion("next")).texts == 2
    assert panel.places.hits.hits


def test_a_pattern_that_a_family_cannot_have_is_said(window, panel, file):
    window.session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(partial(is_open, window, "story-bert"))
    settle(window)
    read(window, file, CorpusQuestion("next"))
    push(panel.pages.button(PLACES))
    assert "In an encoder the word that comes next" in panel.places.nothing.text()


def test_means_and_places_are_saved(window, panel, file, tmp_path, monkeypatch):
    view = read(window, file, CorpusQuestion("self"))
    for name in ("out.npz", "out.csv"):
        monkeypatch.setattr(module, "ask_where_to_save", lambda *_, name=name: tmp_path / name)
        push(panel.save)
        assert name in window.session.state.notice.text
    with np.load(tmp_path / "out.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["decoder.5"], view.mean[5])
        assert json.loads(str(saved["meta"]))["texts"] == 5
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as table:
        listed = list(csv.DictReader(table))
    assert len(listed) == sum(len(hits) for of_site in view.hits for hits in of_site)
    first = next(row for row in listed if (row["layer"], row["head"], row["rank"]) == ("5", "5", "1"))
    hit = view.hits[5][5][0]
    assert float(first["weight"]) == pytest.approx(hit.weight, rel=1e-6)
    assert (first["text"], int(first["query"]), int(first["key"])) == (hit.text, hit.query, hit.key)
