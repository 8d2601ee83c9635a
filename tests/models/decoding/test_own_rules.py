"""The rules that a checkpoint brings along act as in transformers' `generate`; those that do not are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from attention_models.decoding.choosing import end_ids
from attention_models.decoding.decode import decode
from attention_models.decoding.generation_config import NO_RULES, generation_config_processors
from attention_models.forward.model import Model
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.decoding import DecodeSettings, DecodeStepRequest, DecodeStepView
from attention_models.protocol.running import RunInputs
from tests.models import tiny
from tests.models.asking import ask, opened
from tests.models.sentences import ENGLISH

STEPS = 10
FAMILIES = ["t5", "mbart", "marian", "gpt2"]
RULES: list[dict[str, Any]] = [
    {"forced_bos_token_id": 9},
    {"suppress_tokens": list(range(20, 200))},
    {"begin_suppress_tokens": list(range(3, 150))},
    {"forced_bos_token_id": 9, "begin_suppress_tokens": list(range(3, 150))},
    {"no_repeat_ngram_size": 2},
    {"encoder_no_repeat_ngram_size": 1},
    {"repetition_penalty": 1.7},
    {"bad_words_ids": [[token] for token in range(10, 90)] + [[5, 6]]},
    {"min_length": 8},
    {"min_new_tokens": 6},
    {"forced_bos_token_id": 7, "no_repeat_ngram_size": 2, "min_length": 5, "suppress_tokens": [11, 12, 13]},
]


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("own rules") / request.param
    return open_checkpoint(str(tiny.save(request.param, folder)))


@pytest.fixture(scope="module")
def mbart(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_checkpoint(str(tiny.save("mbart", tmp_path_factory.mktemp("odd rules") / "mbart")))


def with_rules(model: Model, monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any]) -> None:
    for name, value in rules.items():
        monkeypatch.setattr(model.module.generation_config, name, value)


def generated(model: Model, text: str, **settings: Any) -> list[int]:
    encoded = model.encode(text)
    inputs = {name: tensor for name, tensor in encoded.inputs.items() if not name.startswith("decoder_")}
    length = 1 if model.seq2seq else inputs["input_ids"].shape[1]
    module: Any = model.module
    # transformers makes too few layers of a cache for a T5 whose decoder has more than its encoder
    options = {"max_new_tokens": STEPS, "do_sample": False, "pad_token_id": 0, "use_cache": False, **settings}
    out = module.generate(**inputs, **options)[0].tolist()
    written: list[int] = out[length:]
    ends = [place for place, id_ in enumerate(written) if id_ in end_ids(model)]
    return written[: ends[0] + 1] if ends else written


def written(model: Model, text: str, **settings: Any) -> list[int]:
    return list(list(decode(model, text, STEPS, **settings))[-1].ids)


@pytest.mark.short("t5-forced_bos_token_id+no_repeat_ngram_s*", "marian-forced_bos_token_id+no_repeat_ngr*")
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "+".join(rules))
def test_greedy_writes_what_generate_writes(
    model: Model, monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any]
) -> None:
    plain = [written(model, text) for text in ENGLISH[:2]]
    with_rules(model, monkeypatch, rules)
    found = [written(model, text) for text in ENGLISH[:2]]
    assert found == [generated(model, text, num_beams=1) for text in ENGLISH[:2]]
    if set(rules) & {"forced_bos_token_id", "suppress_tokens"} and model.seq2seq:
        assert found != plain or "suppress_tokens" in rules


@pytest.mark.short("*+no_repeat_ngram_size+*")
@pytest.mark.parametrize("rules", [RULES[0], RULES[4], RULES[-1]], ids=lambda rules: "+".join(rules))
def test_beam_search_writes_what_generate_writes(
    model: Model, monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any]
) -> None:
    with_rules(model, monkeypatch, rules)
    text = ENGLISH[1]
    expected = generated(model, text, num_beams=3, length_penalty=1.0, early_stopping=False)
    assert written(model, text, strategy="beam", beams=3) == expected


def test_a_persons_number_counts_in_the_place_of_the_checkpoints(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with_rules(model, monkeypatch, {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2})
    expected = generated(model, ENGLISH[0], num_beams=1, repetition_penalty=1.2, no_repeat_ngram_size=3)
    assert written(model, ENGLISH[0], repetition_penalty=1.2, no_repeat_ngram=3) == expected


def test_decode_panel_and_python_write_the_same_and_each_rule_is_a_stage_with_its_sentence(
    tmp_path: Path,
) -> None:
    folder = tiny.save("mbart", tmp_path / "mbart")
    config = folder / "generation_config.json"
    known = json.loads(config.read_text()) if config.exists() else {}
    config.write_text(
        json.dumps({**known, "forced_bos_token_id": 9, "no_repeat_ngram_size": 2, "forced_eos_token_id": 1})
    )
    model = open_checkpoint(str(folder))
    expected = generated(model, ENGLISH[0], num_beams=1, forced_eos_token_id=None)
    request = DecodeStepRequest(inputs=RunInputs(ENGLISH[0]), settings=DecodeSettings(), steps=STEPS, number=1)
    first = ask(opened(str(folder)), request)
    assert isinstance(first, DecodeStepView)
    assert first.ids == (9,) == tuple(expected[:1])
    assert [stage.filter for stage in first.stages] == ["no repeated n-gram", "first token"]
    assert first.stages[1].meaning == f"The checkpoint's own: a text begins with {model.piece_label(9)}."
    assert first.chosen is not None
    assert first.chosen.kept == 1
    # what the model itself says of it stays on screen
    said = float(model.forward(model.encode(ENGLISH[0]).inputs).logits[0, -1].double().softmax(dim=-1)[9])
    assert first.chosen.probability == pytest.approx(said, abs=1e-6)
    assert first.unapplied == ("forced_eos_token_id",)
    assert written(model, ENGLISH[0]) == expected


@pytest.mark.short(
    *("-5-begin_suppress_tokens", "1000000000-suppress_tokens", "nine-forced_bos_token_id"),
    *("nine-bad_words_ids", "value3-bad_words_ids", "value4-no_repeat_ngram_size", "2.5-begin_suppress_tokens"),
)
@pytest.mark.parametrize(
    "name",
    ["forced_bos_token_id", "suppress_tokens", "begin_suppress_tokens", "no_repeat_ngram_size", "bad_words_ids"],
)
@pytest.mark.parametrize("value", [-5, 10**9, "nine", [10**9], [["nine"]], 2.5])
def test_what_makes_no_sense_is_named_and_nothing_breaks(
    mbart: Model, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    plain = written(mbart, ENGLISH[0])
    with_rules(mbart, monkeypatch, {name: value})
    rules = generation_config_processors(mbart, mbart.encode(ENGLISH[0]))
    assert rules.unapplied == (name,)
    assert rules.rules == ()
    assert written(mbart, ENGLISH[0]) == plain


@torch.no_grad()
def test_our_own_models_have_none(story_gpt: Model, en_es: Model) -> None:
    for model in (story_gpt, en_es):
        assert generation_config_processors(model, model.encode(ENGLISH[0])) == NO_RULES
