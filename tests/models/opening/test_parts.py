"""Parts of models of pictures and texts that transformers opens by their own class alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from models import open_checkpoint, run
from models.opening import examined
from models.protocol.errors import CheckpointError
from tests.models import tiny


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


def test_a_part_that_no_class_opens_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with its numbers, and another copy would be no different."""
    folder = save_text_model(tmp_path / "siglip")
    monkeypatch.setattr(examined, "auto_class", lambda info, config: (None, {}))
    with pytest.raises(CheckpointError, match=r"opens only as a whole\. Open the whole model\.") as refused:
        open_checkpoint(folder)
    assert "siglip_text_model" in str(refused.value)
    assert "numbers" not in str(refused.value)
