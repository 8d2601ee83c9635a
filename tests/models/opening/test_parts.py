"""Parts of models of pictures and texts that transformers opens by their own class alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from attention_models import open_checkpoint, run
from attention_models.files.names import whole_of
from attention_models.opening import inspection
from attention_models.protocol.errors import CheckpointError, ExplorerError
from attention_models.training.finetuning import check_trainable
from tests.models import tiny, tiny_vision


def save_text_model(folder: Path) -> Path:
    tokenizer = tiny.word_piece()
    torch.manual_seed(0)
    config = transformers.SiglipTextConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, projection_size=32, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    transformers.SiglipTextModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_siglip_text_model(tmp_path: Path) -> None:
    folder = save_text_model(tmp_path / "siglip")
    model = open_checkpoint(folder)
    assert (model.info.family, model.info.wordless) == ("encoder", "")
    trace = run(model, tiny.SENTENCE)
    theirs = transformers.SiglipTextModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        out = theirs(model.encode(tiny.SENTENCE).inputs["input_ids"], output_attentions=True)
    for site in trace.sites:
        for head in range(site.heads):
            own = out.attentions[site.layer][0, head].numpy()
            np.testing.assert_allclose(trace.weights(site, head), own, atol=1e-6)
    assert trace.last_hidden is not None
    torch.testing.assert_close(trace.last_hidden, out.last_hidden_state[0], atol=1e-6, rtol=0)


TEXTS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
WHOLE: dict[str, tuple[type, type, dict[str, Any], type, type]] = {
    "clip": (
        *(transformers.CLIPModel, transformers.CLIPConfig, {"projection_dim": 16}),
        *(transformers.CLIPTextModel, transformers.CLIPVisionModel),
    ),
    "siglip": (
        *(transformers.SiglipModel, transformers.SiglipConfig, {}),
        *(transformers.SiglipTextModel, transformers.SiglipVisionModel),
    ),
}


def save_whole(kind: str, folder: Path) -> Path:
    """Random weights of both halves, far enough from 0 that heads differ."""
    whole, config, more, *_ = WHOLE[kind]
    tokenizer = tiny.word_piece()
    text = {**TEXTS, "vocab_size": len(tokenizer), "max_position_embeddings": 32}
    text |= {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
    vision = tiny_vision.KINDS["clip_vision"][2]
    torch.manual_seed(0)
    module: Any = whole(config(text_config=text, vision_config=vision, **more))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    side = vision["image_size"]
    transformers.ViTImageProcessorPil(size={"height": side, "width": side}).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", WHOLE)
def test_the_text_half_of_a_whole_checkpoint(tmp_path: Path, kind: str) -> None:
    folder = save_whole(kind, tmp_path / kind)
    *_, text_class, vision_class = WHOLE[kind]
    seeing = open_checkpoint(folder)
    assert (seeing.info.architecture, seeing.info.text_part) == (vision_class.__name__, f"{folder}#text")
    model = open_checkpoint(seeing.info.text_part)
    info = model.info
    assert (info.name, info.family, info.architecture) == (f"{kind}, text half", "encoder", text_class.__name__)
    assert (info.reference, info.folder, info.text_part) == (f"{folder}#text", str(folder), "")
    theirs: Any = text_class.from_pretrained(folder, attn_implementation="eager").eval()  # type: ignore[attr-defined]
    trace = run(model, tiny.SENTENCE)
    with torch.no_grad():
        out = theirs(model.encode(tiny.SENTENCE).inputs["input_ids"], output_attentions=True)
    apart = 0.0
    for site in trace.sites:
        for head in range(site.heads):
            own = out.attentions[site.layer][0, head].numpy()
            np.testing.assert_allclose(trace.weights(site, head), own, atol=1e-6)
            apart = max(apart, float(np.abs(own - out.attentions[site.layer][0, 0].numpy()).max()))
    assert apart > 0.05
    assert trace.last_hidden is not None
    torch.testing.assert_close(trace.last_hidden, out.last_hidden_state[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", WHOLE)
def test_the_count_of_a_half_is_of_what_is_open(tmp_path: Path, kind: str) -> None:
    folder = save_whole(kind, tmp_path / kind)
    both = sum(tensor.numel() for tensor in load_file(folder / "model.safetensors").values())
    for reference in (str(folder), f"{folder}#text"):
        model = open_checkpoint(reference)
        assert model.info.parameters == sum(p.numel() for p in model.module.parameters())
        assert model.info.parameters < both


def test_a_text_half_is_not_fine_tuned(tmp_path: Path) -> None:
    """It says no words: no adapter is ever saved that would have to name it."""
    folder = save_whole("clip", tmp_path / "clip")
    with pytest.raises(ExplorerError, match="writes no text"):
        check_trainable(open_checkpoint(f"{folder}#text"))


def test_what_has_no_text_half_says_so(tmp_path: Path) -> None:
    folder = save_text_model(tmp_path / "siglip")
    with pytest.raises(CheckpointError, match=r"siglip has no text half of its own\. Open .*siglip, without #text\."):
        open_checkpoint(f"{folder}#text")


def test_a_folder_of_this_very_name_comes_first(tmp_path: Path) -> None:
    save_whole("clip", tmp_path / "clip")
    folder = save_text_model(tmp_path / "clip#text")
    assert open_checkpoint(folder).info.architecture == "SiglipTextModel"
    assert whole_of(str(folder)) is None
    assert whole_of("hf://owner/name@v1#text") == "hf://owner/name@v1"


def test_a_part_that_no_class_opens_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with its numbers, and another copy would be no different."""
    folder = save_text_model(tmp_path / "siglip")
    monkeypatch.setattr(inspection, "auto_class", lambda info, config: (None, {}))
    with pytest.raises(CheckpointError, match=r"opens only as a whole\. Open the whole model\.") as refused:
        open_checkpoint(folder)
    assert "siglip_text_model" in str(refused.value)
    assert "numbers" not in str(refused.value)
