"""A window that shows what classifiers say, with tiny real models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from explorer.panels.cell.panel import CellPanel
from explorer.panels.decoding.panel import DecodingPanel
from explorer.panels.decoding.sentences import CLASSIFIES
from explorer.panels.mask_scale.panel import MaskScalePanel
from explorer.panels.next_token.panel import NextTokenPanel
from explorer.session.intents import OpenCheckpoint, PutIntervention, SetPair, SetSecond
from explorer.widgets.number_text import value_text
from explorer.window.window import MainWindow
from models import open_checkpoint, run
from models.files.catalogue import WEIGHTS, read_card
from models.protocol.chat import Pair
from models.protocol.interventions import Mask
from tests.explorer.real_window import EXAMPLE, back_to_start, bars, opened_window, panel_of, settle, wait_until
from tests.models import tiny


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("classifiers")


@pytest.fixture(scope="module")
def window(qapp) -> Iterator[MainWindow]:
    with opened_window() as window:
        yield window


def opened(window: MainWindow, folders: Path, kind: str) -> str:
    folder = folders / kind
    if not folder.exists():
        tiny.save(kind, folder)
    window.session.dispatch(OpenCheckpoint(str(folder)))
    wait_until(lambda: _name(window) == kind and window.session.state.ran is not None)
    window.dock_host.raise_panel("next")
    settle(window)
    return str(folder)


def _name(window: MainWindow) -> str:
    loaded = window.session.state.results.loaded
    return "" if loaded is None else Path(loaded.info.folder).name


def title(window: MainWindow) -> str:
    return panel_of(window, NextTokenPanel).card.accessibleName()


def said(panel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if not label.isHidden())


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        ("bert_classifier", "Classes"),
        ("bert_several", "Classes, each for itself"),
        ("gpt2_classifier", "Classes"),
        ("distilbert_classifier", "Classes"),
        ("llama_reward", "Score"),
    ],
)
def test_next_has_a_line_a_class(window: MainWindow, folders: Path, kind: str, heading: str) -> None:
    model = open_checkpoint(opened(window, folders, kind))
    assert title(window) == heading
    shown = bars(window).split(", ")
    labels = model.config.id2label.values()
    assert sorted(line.rsplit(" ", 2)[0] if "%" in line else line.rsplit(" ", 1)[0] for line in shown) == sorted(labels)
    logits = run(model, EXAMPLE).logits[0]
    assert shown[0].startswith(model.config.id2label[int(logits.argmax())])


def test_a_tagger_has_a_line_a_token_and_labels_on_the_strip(window: MainWindow, folders: Path) -> None:
    model = open_checkpoint(opened(window, folders, "bert_tagger"))
    assert title(window) == "Label of each token"
    best = [model.config.id2label[int(i)] for i in run(model, EXAMPLE).logits.argmax(-1)]
    assert [chip.tag for chip in window.input.strip._tokens] == best
    panel = panel_of(window, NextTokenPanel)
    panel.bars.row_activated.emit(len(model.config.id2label) + 2)  # the third token's line
    settle(window)
    assert window.session.state.selection.query == 2


def test_an_answerer_names_start_and_end(window: MainWindow, folders: Path) -> None:
    opened(window, folders, "bert_answerer")
    assert title(window) == "Answer"
    assert "softmax over the tokens" in said(panel_of(window, NextTokenPanel))


def test_a_body_gives_a_vector(window: MainWindow, folders: Path) -> None:
    model = open_checkpoint(opened(window, folders, "bert_bare"))
    assert title(window) == "Sentence vector"
    states = run(model, EXAMPLE).last_hidden
    assert states is not None
    assert bars(window).startswith(f"0 {value_text(float(states.mean(0)[0]))}, ")
    panel = panel_of(window, NextTokenPanel)
    panel.pooling.activated.emit(panel.pooling.findText("First token, [CLS]"))
    settle(window)
    assert bars(window).startswith(f"0 {value_text(float(states[0, 0]))}, ")


def test_masks_and_cell_follow_the_head(window: MainWindow, folders: Path) -> None:
    opened(window, folders, "bert_classifier")
    window.dock_host.raise_panel("masks")
    window.session.dispatch(PutIntervention(Mask("causal")))
    settle(window)
    masks = panel_of(window, MaskScalePanel)
    wait_until(lambda: "LABEL_0" in masks.effect.bars.accessibleDescription())
    assert " to " in masks.effect.bars.accessibleDescription()
    assert masks.effect.next_title.text() == "What it says of the text"
    window.dock_host.raise_panel("decoding")
    settle(window)
    assert CLASSIFIES in said(panel_of(window, DecodingPanel))
    window.dock_host.raise_panel("cell")
    settle(window)
    assert "rescales" in said(panel_of(window, CellPanel))


def test_the_included_one_reads_its_pair(window: MainWindow) -> None:
    back_to_start(window)  # without the mask of another test
    window.session.dispatch(OpenCheckpoint("story-next"))
    wait_until(lambda: _name(window) == "story-next" and window.session.state.ran is not None)
    window.dock_host.raise_panel("next")
    card = read_card(WEIGHTS / "story-next")
    window.session.dispatch(SetPair(Pair(card.example, card.second)))
    settle(window)
    assert title(window) == "Classes"
    assert bars(window).startswith("goes on ")
    window.session.dispatch(SetSecond("A fox slept under the old bridge."))
    settle(window)
    assert bars(window).startswith("another story ")
