"""A window that shows what classifiers say, with tiny real models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PySide6.QtWidgets import QLabel

from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.decoding.decode_sentences import CLASSIFIES
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import OpenCheckpoint, PutIntervention, SetPair, SetSecond
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint, run
from attention_models.files.catalogue import WEIGHTS, read_card
from attention_models.protocol.chat import Pair
from attention_models.protocol.interventions import Mask
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


@pytest.mark.short("bert_several-Classes, each for itself", "distilbert_classifier-Classes")
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


def test_a_discriminator_says_of_each_token_whether_it_was_replaced(window: MainWindow, folders: Path) -> None:
    model = open_checkpoint(opened(window, folders, "electra_discriminator"))
    assert title(window) == "Each token: replaced or not"
    logits = run(model, EXAMPLE).logits[:, 0]
    assert [chip.tag for chip in window.input.strip._tokens] == ["replaced" if z > 0 else "original" for z in logits]
    selected = window.session.state.selection.query
    assert bars(window).startswith(f"replaced {percent_text(1 / (1 + np.exp(-float(logits[selected]))))}, ")
    window.dock_host.raise_panel("decoding")
    settle(window)
    assert CLASSIFIES in said(panel_of(window, DecodingPanel))


@pytest.mark.full
def test_a_model_that_chooses_takes_the_texts_as_choices(window: MainWindow, folders: Path) -> None:
    model = open_checkpoint(opened(window, folders, "bert_choice"))
    assert title(window) == "Choices"
    assert "“+ Choice” adds another" in window.input.remark.text()
    first, choices = "Tom and Anna went to the park.", ["They ran.", "It was a fish in the sea.", "No."]
    window.session.dispatch(SetPair(Pair(first, choices[0])))
    settle(window)
    assert window.input.batch.add.text() == "+ Choice"
    for choice in choices[1:]:
        window.input.batch.add_text()
        window.input.pair.text.edited.emit(choice)
        settle(window)
    assert window.input.text.text() == first  # each choice begins with the same text

    def shares() -> list[str]:
        logits = run(model, [(window.input.text.text(), choice) for choice in choices])[0].logits[0]
        parts = torch.tensor(logits).double().softmax(-1)
        return [f"{i + 1}: {choices[i]} {percent_text(float(parts[i]))}" for i in np.argsort(-logits)]

    settle(window)
    assert bars(window) == ", ".join(shares())
    window.input.text.edited.emit("Tom sat at home.")  # the first text of all of them
    settle(window)
    assert bars(window) == ", ".join(shares())
    panel = panel_of(window, NextTokenPanel)
    place = next(i for i, line in enumerate(shares()) if line.startswith("2: "))
    panel.bars.row_activated.emit(place)
    settle(window)
    assert window.input.pair.text.text() == choices[1]
    window.dock_host.raise_panel("masks")
    window.session.dispatch(PutIntervention(Mask("causal")))
    settle(window)
    masks = panel_of(window, MaskScalePanel)
    wait_until(lambda: "2: It was a fish" in masks.effect.bars.accessibleDescription())
    assert masks.effect.next_title.text() == "Which text it chooses"
    back_to_start(window)


@pytest.mark.full
def test_next_says_what_a_second_head_makes_of_two_texts(window: MainWindow, folders: Path) -> None:
    model = open_checkpoint(opened(window, folders, "bert_pretrained"))
    assert title(window) == "Masked tokens"
    assert "is next" not in bars(window)  # of one text it says nothing
    pair = Pair("Tom and Anna went to the park.", "They ran.")
    window.session.dispatch(SetPair(pair))
    settle(window)
    logits = run(model, (pair.first, pair.second)).pair_logits
    assert logits is not None
    for label, share in zip(("is next", "is not next"), logits.double().softmax(-1).tolist(), strict=True):
        assert f"{label} {percent_text(share)}" in bars(window)
    text, panel = window.session.state.document.prompt, panel_of(window, NextTokenPanel)
    panel.bars.row_activated.emit(len(panel.bars._rows) - 1)  # a class is not written
    settle(window)
    assert window.session.state.document.prompt == text
    back_to_start(window)


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
