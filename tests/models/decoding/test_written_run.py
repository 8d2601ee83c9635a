"""One pass over a text and what was written after it: transformers' own attentions of the same tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from attention_models import decode, load_weights, open_checkpoint, save_weights
from attention_models.decoding.written_run import run_written
from attention_models.files.catalogue import folder_of
from attention_models.forward.model import Model
from attention_models.protocol.chat import Chat
from attention_models.protocol.decoding import DecodeSettings
from attention_models.protocol.interventions import Scale
from tests.models.talking import save_talking

GREEDY = DecodeSettings()


def written(model: Model, text, steps, settings=GREEDY, interventions=()):
    *_, last = decode(
        model,
        text,
        steps,
        strategy=settings.strategy,
        temperature=settings.temperature,
        seed=settings.seed,
        interventions=interventions,
    )
    return last, *run_written(model, text, last, settings, interventions)


@pytest.mark.parametrize("settings", [GREEDY, DecodeSettings(strategy="sample", temperature=3.0, seed=5)])
def test_weights_of_what_was_written_are_those_of_eager(story_gpt: Model, settings: DecodeSettings) -> None:
    text = "Tom and Anna went to the park."
    last, trace, generated = written(story_gpt, text, 5, settings)
    before = [token.id for token in story_gpt.tokenize(text)]
    assert [token.id for token in trace.tokens] == [*before, *last.ids]
    assert generated["first"] == len(before)
    assert generated["ids"] == list(last.ids)
    module = transformers.AutoModelForCausalLM.from_pretrained(
        folder_of("story-gpt"), attn_implementation="eager", dtype="float32"
    )
    with torch.no_grad():
        theirs = module.eval()(torch.tensor([[*before, *last.ids]]), output_attentions=True).attentions
    for site, weights in zip(trace.sites, theirs, strict=True):
        for head in range(site.heads):
            np.testing.assert_allclose(trace.weights(site, head), weights[0, head].numpy(), atol=1e-6)


def test_tokens_are_not_cut_anew(story_gpt: Model) -> None:
    """What is drawn at a high temperature is seldom how the tokenizer would cut the same characters."""
    recut = 0
    for seed in range(12):
        settings = DecodeSettings(strategy="sample", temperature=30.0, seed=seed)
        last, trace, generated = written(story_gpt, "Tom", 6, settings)
        assert [token.id for token in trace.tokens][generated["first"] :] == generated["ids"]
        recut += [t.id for t in story_gpt.tokenize("Tom" + last.text)] != [t.id for t in trace.tokens]
    assert recut > 0


def test_a_translation_leaves_the_end_out(en_es: Model) -> None:
    last, trace, generated = written(en_es, "Good morning.", 20)
    assert last.ended
    assert [token.id for token in trace.tokens[1:]] == generated["ids"] == list(last.ids[:-1])
    assert trace.tokens[0].label == "⟨start⟩"
    assert generated["first"] == 1


def test_filled_masks(story_bert: Model) -> None:
    last, trace, generated = written(story_bert, "Tom [MASK] to the [MASK].", 5)
    assert generated["first"] is None
    assert all(token.piece != "[MASK]" for token in trace.tokens)
    assert generated["text"] == last.text
    assert set(last.ids) <= {token.id for token in trace.tokens}


def test_a_conversation_and_an_edited_run(tmp_path: Path) -> None:
    model = open_checkpoint(save_talking("chatml", tmp_path / "talking"))
    edits = (Scale(0.5),)
    chat = Chat.of([{"role": "user", "content": "Tom went home."}])
    _, trace, generated = written(model, chat, 4, interventions=edits)
    ids = [token.id for token in trace.tokens]
    assert ids[: generated["first"]] == [token.id for token in model.tokenize(chat)]
    assert ids[generated["first"] :] == generated["ids"]
    assert trace.interventions == edits
    save_weights(trace, tmp_path / "a.npz", generated=generated)
    saved = load_weights(tmp_path / "a.npz")
    assert saved.meta["generated"]["ids"] == generated["ids"]
    assert saved.interventions == edits
    assert saved.ids == tuple(ids)
