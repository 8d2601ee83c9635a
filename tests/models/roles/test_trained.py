"""Induction rises as a model of two layers learns to go on with what came before (Olsson et al. 2022)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from attention_models import head_roles, open_checkpoint
from attention_models.protocol.roles import RolesView
from tests.models import tiny

_HALF = 12


def scores(module: transformers.LlamaForCausalLM, folder: Path) -> RolesView:
    module.save_pretrained(folder)
    tiny.byte_level().save_pretrained(folder)
    return head_roles(open_checkpoint(folder), cached=False)


@pytest.mark.full
def test_induction_rises_with_training(tmp_path):
    torch.manual_seed(0)
    vocabulary = 330  # of the tokenizer
    config = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2 * _HALF,
        bos_token_id=0,
        eos_token_id=0,
    )
    module = transformers.LlamaForCausalLM(config)
    before = scores(module, tmp_path / "before")
    optimiser = torch.optim.AdamW(module.parameters(), lr=5e-3, weight_decay=0.0)
    for _ in range(300):
        half = torch.stack([torch.randperm(vocabulary)[:_HALF] for _ in range(32)])
        ids = torch.cat([half, half], dim=1)  # (texts, tokens)
        logits = module(input_ids=ids).logits[:, _HALF - 1 : -1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, _HALF:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.1:
            break
    after = scores(module, tmp_path / "after")
    assert before.ranked("induction")[0][2] < 0.15
    site, _, score = after.ranked("induction")[0]
    assert score > 0.6
    assert site.layer == 1  # the first layer tells the second what came before
    assert after.ranked("previous")[0][0].layer == 0
