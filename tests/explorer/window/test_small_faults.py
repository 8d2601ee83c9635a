"""Small faults, of which each stands for its kind: what is said twice, cut off, or out of view."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
import transformers
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.session.intents import SelectHead
from attention_models.files.catalogue import folder_of
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import opened_window, panel_of, settle
from tests.models import tiny_vision


def with_tokenizer_of(name: str, module: transformers.PreTrainedModel, folder: Path) -> str:
    module.save_pretrained(folder)
    for file in folder_of(name).glob("tokenizer*"):
        shutil.copy(file, folder)
    return str(folder)


def laid_out() -> None:
    for _ in range(5):
        QApplication.processEvents()


@pytest.fixture
def encoder(tmp_path: Path) -> str:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=8192
    )
    return with_tokenizer_of("story-bert", transformers.BertModel(config), tmp_path / "encoder")


@pytest.mark.full
def test_what_writes_nothing_is_not_told_to_step(qapp, encoder: str) -> None:
    with opened_window(encoder, "Tom went home.") as window:
        panel = panel_of(window, DecodingPanel)
        window.dock_host.docks["decoding"].raise_()
        settle(window)
        assert "it has nothing to write" in panel.view.status.text()
        painted = [getattr(child, "empty_text", "") for child in panel.findChildren(QWidget)]
        assert not any("Press Step" in text for text in painted if isinstance(text, str))


@pytest.mark.full
@pytest.mark.parametrize("kind", ["words", "picture"])
def test_a_model_of_vectors_says_so_in_masks_in_whole_lines(qapp, encoder: str, tmp_path: Path, kind: str) -> None:
    reference = encoder if kind == "words" else str(tiny_vision.save("vit_bare", tmp_path / "vit"))
    with opened_window(reference, "Tom went home.") as window:
        panel = panel_of(window, MaskScalePanel)
        window.dock_host.docks["masks"].raise_()
        settle(window)
        laid_out()
        label = panel.effect.wordless
        assert label.isVisible()
        assert not panel.effect.bars.isVisible()
        assert "words" not in label.text()  # a picture has none
        assert label.height() >= label.heightForWidth(label.width())


@pytest.mark.full
def test_the_selected_head_of_thirty_layers_is_in_view(qapp, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=36,
        intermediate_size=32,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=8192,
        head_dim=4,
    )
    deep = with_tokenizer_of("story-gpt", transformers.LlamaForCausalLM(config), tmp_path / "deep")
    with opened_window(deep, "Tom went home.") as window:
        panel = panel_of(window, HeadAtlasPanel)
        for layer in (29, 0, 17):
            window.session.dispatch(SelectHead(SiteRef("decoder", layer), 2))
            settle(window)
            laid_out()
            rect = panel.atlas.cell_rect(layer, 2).toAlignedRect().translated(panel.atlas.pos())
            assert panel.area.viewport().rect().contains(rect), layer
        facts = window.top_bar.facts
        for width in (1280, 1281, 1300, 1366, 1280):  # the name of the checkpoint gives way to the count of tokens
            window.resize(width, 800)
            laid_out()
            assert facts.fontMetrics().horizontalAdvance(facts.text()) <= facts.width(), (width, facts.text())
