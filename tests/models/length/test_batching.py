"""Many sentences side by side: the same words as one at a time, and log-probabilities held against float64 NumPy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import decode, open_checkpoint
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.length.batching import log_probabilities, source_ids, target_ids, translate
from attention_models.protocol.request import Cancelled
from tests.models import recurrents, translators
from tests.models.recurrent_by_hand import Hand
from tests.models.sentences import ENGLISH

TEXTS = [*recurrents.SENTENCES, "The cat.", "Books", "The table is black and the cat is old, and my sister reads."]
KINDS: dict[str, dict[str, Any]] = {
    "bahdanau": {},
    "none": {},
    "general": {},
    "dot": {"scope": "monotonic"},
    "concat": {"scope": "predictive"},
}


@pytest.fixture(scope="module", params=KINDS)
def recurrent(request, tmp_path_factory) -> RecurrentModel:
    folder = recurrents.saved(tmp_path_factory.mktemp("model") / "m", request.param, **KINDS[request.param])
    model = open_checkpoint(folder)
    assert isinstance(model, RecurrentModel)
    return model


def one_by_one(model, texts, most):
    return [list(decode(model, text, most))[-1].text for text in texts]


def test_a_recurrent_model_writes_as_one_by_one(recurrent):
    written = translate(recurrent, source_ids(recurrent, TEXTS), 15)
    assert written == one_by_one(recurrent, TEXTS, 15)
    assert len(set(written)) > 1


@pytest.mark.parametrize("name", ["dates-bahdanau", "dates-bottleneck"])
def test_a_trained_one_stops_at_its_end(name):
    model, texts = open_checkpoint(name), ["Thursday, 5 March 1998", "5/3/1998", "the 21st of June, 2007"]
    assert translate(model, source_ids(model, texts), 96) == ["1998-03-05", "1998-03-05", "2007-06-21"]


def test_a_transformer_writes_as_one_by_one(en_es):
    texts = [*ENGLISH[:6], "Good morning.", "My brother wants to buy a new house near the river before the winter."]
    assert translate(en_es, source_ids(en_es, texts), 40) == one_by_one(en_es, texts, 40)


def test_log_probabilities_equal_a_hand_computation(recurrent):
    sources, targets = source_ids(recurrent, TEXTS), target_ids(recurrent, TEXTS[::-1])
    found = log_probabilities(recurrent, sources, targets)
    exact = copy.deepcopy(recurrent.module).double()
    for source, target, value in zip(sources, targets, found.tolist(), strict=True):
        logits = np.stack(Hand(exact).run(source, [recurrent.start_id, *target[:-1]]).logits)
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        assert value / len(target) == pytest.approx(log_p[range(len(target)), target].mean(), abs=1e-5)
        assert target[-1] == recurrent.module.config.end


def test_log_probabilities_of_a_transformer_equal_its_own_loss(en_es):
    texts, wanted = ["Good morning.", "The black cat is sleeping on the table."], ["Buenos días.", "El gato duerme."]
    sources, targets = source_ids(en_es, texts), target_ids(en_es, wanted)
    found = log_probabilities(en_es, sources, targets)
    for source, target, value in zip(sources, targets, found.tolist(), strict=True):
        loss = en_es.module(input_ids=torch.tensor([source]), labels=torch.tensor([target])).loss  # mean over tokens
        assert value / len(target) == pytest.approx(-float(loss), abs=1e-5)


@pytest.mark.parametrize("which", ["mbart", "mbart50", "bart", "marian", "t5"])
def test_targets_are_the_labels_that_the_tokenizer_makes(tmp_path, which):
    model, texts = translators.opened(tmp_path, which), [translators.TARGET, "El gato", translators.SOURCE]
    found = target_ids(model, texts)
    for ids, text in zip(found, texts, strict=True):
        labels = model.tokenizer(text_target=text)["input_ids"]
        assert ids[:-1] == labels[: len(ids) - 1]
        assert ids[-1] == model.config.eos_token_id
        assert len(labels) - len(ids) == (which == "mbart")  # whose labels end with their language, its decoder's start
    assert [row[:-1] for row in found] == [[token.id for token in model.tokenize_target(text)] for text in texts]


@pytest.mark.parametrize("which", ["t5", "bart"])
def test_a_decoder_with_more_layers_than_its_encoder_writes(tmp_path, which):
    """transformers' own generate makes room for as many as T5's encoder has, and fails."""
    model, texts = translators.opened(tmp_path, which), [translators.SOURCE, "The cat."]
    layers = {stack.stack: stack.layers for stack in model.info.stacks}
    assert layers["decoder"] > layers["encoder"]
    assert translate(model, source_ids(model, texts), 12) == one_by_one(model, texts, 12)


def test_it_can_be_called_off_between_steps(en_es, recurrent):
    for model in (en_es, recurrent):
        asked: list[int] = []

        def stop(asked: list[int] = asked) -> bool:
            asked.append(1)
            return len(asked) > 2

        with pytest.raises(Cancelled):
            translate(model, source_ids(model, TEXTS[:2]), 30, stop)
        assert len(asked) == 3
