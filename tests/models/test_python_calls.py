"""What a person's own program gives to the functions of `models`, and what they show of themselves there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attention_models as models
from attention_models import compare_runs, decode, logit_lens, open_checkpoint, patch, run
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.scripts.loading import load, load_tokenizer
from attention_models.scripts.script_text import Script
from tests.models import tiny
from tests.models.tiny import TinyFolder, TinyModel

TEXTS = ["Tom and Anna went to the park.", "The cat is on the table."]


@pytest.mark.parametrize(
    "ask",
    [
        *(lambda m, t, name=name: getattr(models, name)(m, t) for name in ("head_effects", "logit_attribution")),
        *(lambda m, t, name=name: getattr(models, name)(m, t) for name in ("explanations", "logit_lens")),
        lambda m, t: models.adversarial_attention(m, t, ("decoder", 0), 0),
        lambda m, t: patch(m, t, TEXTS[0]),
        lambda m, t: patch(m, TEXTS[0], t),
        lambda m, t: list(decode(m, t, 2)),
        lambda m, t: compare_runs(m, t),
        lambda m, t: compare_runs(m, TEXTS[0], t),
        lambda m, t: models.word_in_context(m, t, TEXTS[0], "Tom"),
    ],
)
def test_a_list_of_texts_where_one_is_looked_at(tiny_model: TinyModel, ask: Any) -> None:
    model = tiny_model("gpt2")
    for given in (TEXTS, [("Tom", "Anna"), ("the", "cat")], [[{"role": "user", "content": "Tom"}]]):
        with pytest.raises(InputError, match=rf"one text at a time, and was given a list of {len(given)}\. Call it"):
            ask(model, given)


IDS = [20, 31, 44, 25, 60]


@pytest.mark.parametrize(
    "given",
    [np.array(IDS), np.array([IDS], np.int32), torch.tensor(IDS), torch.tensor([IDS]), np.array(IDS, np.uint16)],
)
def test_an_array_of_ids_runs_as_a_list_of_them(tiny_model: TinyModel, given: Any) -> None:
    model = tiny_model("gpt2")
    np.testing.assert_array_equal(run(model, given).logits, run(model, IDS).logits)
    np.testing.assert_array_equal(logit_lens(model, given).best, logit_lens(model, IDS).best)
    assert next(decode(model, given, 1)).chosen == next(decode(model, IDS, 1)).chosen


@pytest.mark.parametrize("given", [np.zeros((4, 4, 3), np.uint8), np.array([1.5, 2.0]), torch.zeros(2, 3).long()])
def test_another_array_is_refused_by_what_it_is(tiny_model: TinyModel, given: Any) -> None:
    with pytest.raises(InputError, match=r"one row of whole numbers. This array is \(\d"):
        run(tiny_model("gpt2"), given)


def test_a_script_names_a_checkpoint_wherever_it_runs(
    tiny_folder: TinyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder("gpt2")
    monkeypatch.chdir(folder.parent)
    model = open_checkpoint(folder.name)
    monkeypatch.chdir(tmp_path)
    assert Path(model.info.folder) == folder
    script = Script("")
    load(script, model)
    load_tokenizer(script, model)
    assert script.code().count(repr(str(folder))) == 2


def test_an_encoder_says_where_its_numbers_are(tiny_model: TinyModel) -> None:
    trace = run(tiny_model("bert_bare"), tiny.SENTENCE)
    with pytest.raises(ValueError, match=r"gives no logits. What it gives at each token is `last_hidden`\."):
        _ = trace.logits
    assert trace.last_hidden is not None
    assert trace.last_hidden.shape[0] == len(trace.tokens)


def test_a_trace_says_in_a_line_what_it_is(story_gpt: Model, tiny_model: TinyModel) -> None:
    trace = run(story_gpt, TEXTS[0])
    assert repr(trace) == "<Trace of story-gpt: 9 tokens, 8 attention sites, with logits>"
    assert "tokens read, " in repr(run(tiny_model("t5"), TEXTS[0]))
    assert "no logits" in repr(run(tiny_model("bert_bare"), TEXTS[0]))
