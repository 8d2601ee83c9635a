"""The row that switches off any part of any layer: what it offers of each family, and what its press does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox

import attention_models as models
from attention_explorer.panels.masks.part_chooser import NO_HEADS, NO_NEURONS, PartChooser
from attention_explorer.session import files
from attention_explorer.session.intents import PutIntervention, SelectHead
from attention_explorer.session.state import Document, Selection
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.masks_host import Host, opened_host
from tests.explorer.real_window import EXAMPLE, destroy
from tests.models import tiny

SITE = SiteRef("decoder", 5)


@pytest.fixture(scope="module")
def opened(qapp: Any) -> Iterator[Host]:
    with opened_host(Document("story-gpt", EXAMPLE, Selection(SITE, 5, 13, 1))) as host:
        yield host


@pytest.fixture
def host(opened: Host) -> Host:
    while opened.session.can_undo:
        opened.session.undo()
    opened.settle()
    return opened


def entries(box: QComboBox) -> list[str]:
    return [box.itemText(i) for i in range(box.count())]


def pick(box: QComboBox, text: str) -> None:
    """As a person does it in the open list."""
    place = box.findText(text)
    assert place >= 0, (text, entries(box))
    box.setCurrentIndex(place)
    box.activated.emit(place)


def press(host: Host, chooser: PartChooser) -> None:
    host.masks.area.ensureWidgetVisible(chooser)
    QTest.mouseClick(chooser.button, Qt.MouseButton.LeftButton)
    host.settle()


def changes(host: Host) -> list[Any]:
    return [item.value for item in host.state.document.interventions]


def test_it_offers_what_the_model_has_and_no_more(host: Host) -> None:
    chooser, config = host.masks.part_chooser, models.open_checkpoint("story-gpt").config
    assert chooser.isVisible()
    assert entries(chooser.layer) == [f"layer {layer}" for layer in range(config.n_layer)]
    assert entries(chooser.what) == [
        "head",
        "neuron",
        "attention",
        "feed-forward network",
        "whole layer",
        "gain of norm 1",
        "gain of norm 2",
    ]
    assert (chooser.number.minimum(), chooser.number.maximum()) == (0, config.n_head - 1)
    pick(chooser.what, "neuron")
    assert chooser.number.maximum() == (config.n_inner or 4 * config.n_embd) - 1
    pick(chooser.what, "whole layer")
    assert not chooser.number.isVisible()
    assert not chooser.position.isVisible()
    pick(chooser.fill, "its value at position")
    assert chooser.position.maximum() == 13
    assert chooser.word.text() == "“⟨start⟩”"
    pick(chooser.what, "gain of norm 1")  # held at nothing else
    assert not chooser.fill.isEnabled()
    assert not chooser.position.isVisible()
    assert chooser.skip() == Ablation("norm1", SITE)


@pytest.mark.short("head-*")
@pytest.mark.parametrize(
    ("what", "number", "fill", "position", "expected"),
    [
        ("head", 3, "zero", None, Ablation("head", SITE, 3)),
        ("neuron", 17, "its mean", None, Ablation("neuron", SITE, 17, "mean")),
        ("feed-forward network", None, "its value at position", 1, Ablation("mlp", SITE, None, "position", 1)),
        ("whole layer", None, "zero", None, Ablation("layer", SITE)),
        ("gain of norm 2", None, "zero", None, Ablation("norm2", SITE)),
    ],
)
def test_a_press_is_listed_run_undone_and_saved(
    host: Host, what: str, number: int | None, fill: str, position: int | None, expected: Ablation
) -> None:
    chooser = host.masks.part_chooser
    pick(chooser.what, what)
    if number is not None:
        chooser.number.setValue(number)
    if chooser.fill.isEnabled():
        pick(chooser.fill, fill)
    if position is not None:
        chooser.position.setValue(position)
    press(host, chooser)
    assert changes(host) == [expected]
    assert len(host.masks.list.lines) == 1
    ran = host.state.ran
    assert ran is not None
    assert ran.inputs.interventions == (expected,)
    found = host.state.results.of(CompareView)
    trace = models.run(models.open_checkpoint("story-gpt"), EXAMPLE, interventions=[expected])
    assert found is not None
    np.testing.assert_allclose(found.after, trace.weights(SITE, 5), atol=1e-6)
    assert files.decode(files.encode(host.state.document)).interventions == host.state.document.interventions
    assert chooser.button.text() == "Put it back"
    host.session.undo()
    host.settle()
    assert changes(host) == []
    assert chooser.button.text() == "Switch off"
    host.session.redo()
    host.settle()
    press(host, chooser)
    assert changes(host) == []


def test_a_head_taken_out_elsewhere_is_known_here_and_another_value_takes_its_place(host: Host) -> None:
    chooser = host.masks.part_chooser
    host.session.dispatch(SelectHead(SiteRef("decoder", 2), 4))
    pick(chooser.what, "head")
    host.session.dispatch(SelectHead(SITE, 1))
    assert (chooser.layer.currentText(), chooser.number.value()) == ("layer 5", 1)  # it follows the selection
    menu = host.map.head_menu(SITE, 1)
    assert menu is not None
    next(action for action in menu.actions() if action.text() == "Without this head").trigger()
    destroy(menu)
    host.settle()
    pick(chooser.fill, "zero")
    assert chooser.button.text() == "Put it back"
    pick(chooser.fill, "its mean")
    assert chooser.button.text() == "Switch off"
    press(host, chooser)
    assert changes(host) == [Ablation("head", SITE, 1, "mean")]


def test_what_was_chosen_by_hand_stays_until_another_head_is_selected(host: Host) -> None:
    chooser = host.masks.part_chooser
    pick(chooser.layer, "layer 0")
    pick(chooser.what, "attention")
    pick(chooser.fill, "zero")
    press(host, chooser)
    assert changes(host) == [Ablation("attention", SiteRef("decoder", 0))]
    assert chooser.layer.currentText() == "layer 0"
    host.session.dispatch(SelectHead(SiteRef("decoder", 3), 0))
    host.settle()
    assert (chooser.layer.currentText(), chooser.what.currentText()) == ("layer 3", "attention")


def test_both_stacks_and_cross_attention_have_their_own(qapp: Any) -> None:
    document = Document("en-es", "Good morning.", Selection(SiteRef("cross", 1), 0, 0, 0), target="Buenos")
    with opened_host(document) as host:
        chooser, config = host.masks.part_chooser, models.open_checkpoint("en-es").config
        assert entries(chooser.layer) == [
            *(f"encoder layer {i}" for i in range(config.encoder_layers)),
            *(f"decoder layer {i}" for i in range(config.decoder_layers)),
        ]
        assert chooser.layer.currentText() == "decoder layer 1"
        pick(chooser.what, "cross-attention head")
        chooser.number.setValue(config.decoder_attention_heads - 1)
        press(host, chooser)
        assert changes(host) == [Ablation("head", SiteRef("cross", 1), config.decoder_attention_heads - 1)]
        pick(chooser.layer, "encoder layer 0")
        assert "cross-attention" not in entries(chooser.what)
        pick(chooser.fill, "its value at position")
        source = host.state.ran.source if host.state.ran is not None else ()
        assert chooser.position.maximum() == len(source) - 1


@pytest.mark.full
def test_of_a_model_whose_heads_cannot_be_reached_none_is_offered(qapp: Any, tmp_path: Any) -> None:
    with opened_host(Document(str(tiny.save("bloom", tmp_path / "bloom")), tiny.SENTENCE)) as host:
        chooser = host.masks.part_chooser
        assert "head" not in entries(chooser.what)
        assert "feed-forward network" in entries(chooser.what)
        assert NO_HEADS in chooser.why.text()
        pick(chooser.what, "feed-forward network")
        press(host, chooser)
        assert changes(host)[0].part == "mlp"
        assert host.state.notice is None


@pytest.mark.full
def test_of_experts_no_neuron_is_offered_and_a_sentence_says_why(qapp: Any, tmp_path: Any) -> None:
    with opened_host(Document(str(tiny.save("gpt_oss", tmp_path / "gpt_oss")), tiny.SENTENCE)) as host:
        chooser = host.masks.part_chooser
        assert "neuron" not in entries(chooser.what)
        assert NO_NEURONS in chooser.why.text()
        assert "head" in entries(chooser.what)


def test_everything_that_is_offered_runs_in_a_picture_model(qapp: Any) -> None:
    with opened_host(Document("vit-quickdraw", picture="sample:quickdraw-0")) as host:
        chooser = host.masks.part_chooser
        for what in entries(chooser.what):
            for fill in ("zero", "its mean", "its value at position"):
                pick(chooser.what, what)
                if not chooser.fill.isEnabled() and fill != "zero":
                    continue
                pick(chooser.fill, fill)
                press(host, chooser)
                assert host.state.notice is None, (what, fill)
                assert changes(host) == [chooser.skip()], (what, fill)
                host.session.dispatch(PutIntervention(Ablation(**{**as_dict(changes(host)[0]), "on": True})))
                host.settle()


def as_dict(skip: Ablation) -> dict[str, Any]:
    return {name: getattr(skip, name) for name in Ablation.__dataclass_fields__}


def test_what_is_chosen_is_read_whole(host: Host) -> None:
    chooser = host.masks.part_chooser
    for box in (chooser.what, chooser.layer, chooser.fill):
        for text in entries(box):
            pick(box, text)
            option = QStyleOptionComboBox()
            box.initStyleOption(option)
            part = QStyle.SubControl.SC_ComboBoxEditField
            room = box.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, box)
            assert box.fontMetrics().horizontalAdvance(text) <= room.width(), text
