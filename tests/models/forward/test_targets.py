"""What a decoder is made to say: read as the tokenizer's own call reads a target, against transformers on that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import run
from attention_models.decoding.spelling import in_target
from attention_models.forward.model import Model
from attention_models.protocol.errors import CheckpointError
from attention_models.trust.report import report_on_input
from tests.models import tiny
from tests.models.eager import attentions
from tests.models.translators import SOURCE, TARGET, made, opened

WHICH = ("mbart", "mbart50", "bart", "marian", "t5", "bert2bert")


@torch.no_grad()
def theirs(model: Model) -> tuple[list[int], Any]:
    """The decoder's ids as transformers makes them of the tokenizer's own labels, and its own run on them."""
    inputs = model.tokenizer(SOURCE, return_tensors="pt", return_token_type_ids=False)
    labels = model.tokenizer(text_target=TARGET, return_tensors="pt")["input_ids"]
    module = tiny.eager(model)
    if model.config.model_type == "encoder-decoder":
        from transformers.models.encoder_decoder.modeling_encoder_decoder import shift_tokens_right

        decoder = shift_tokens_right(labels, 0, model.config.decoder_start_token_id)
    else:
        decoder = module.prepare_decoder_input_ids_from_labels(labels)
    out = module(**inputs, decoder_input_ids=decoder, output_attentions=True)
    return decoder[0].tolist(), out


@pytest.mark.short("mbart", "bart", "t5")
@pytest.mark.parametrize("which", WHICH)
def test_a_target_is_run_as_transformers_makes_it_of_labels(tmp_path: Path, which: str) -> None:
    model = opened(tmp_path, which)
    trace = run(model, SOURCE, target=TARGET)
    wanted, out = theirs(model)
    ours = [token.id for token in trace.tokens]
    assert ours == wanted[: len(ours)]
    assert len(wanted) - len(ours) <= 1  # mBART's labels end with their language, so that an end stands before it
    assert "".join(token.text for token in trace.tokens).replace(" ", "") == TARGET.replace(" ", "")
    assert [token.id for token in trace.source] == model.tokenizer(SOURCE)["input_ids"]
    for ref, weights in attentions(out, model).items():
        rows = slice(None) if ref.stack == "encoder" else slice(len(ours))
        columns = slice(len(ours)) if ref.stack == "decoder" else slice(None)
        for head, expected in enumerate(weights):
            np.testing.assert_allclose(trace.weights(ref, head), expected[rows, columns], atol=1e-6)
    np.testing.assert_allclose(trace.logits, out.logits[0, : len(ours)].numpy(), atol=1e-5)


@pytest.mark.parametrize("which", WHICH)
def test_the_tick_compares_source_and_target(tmp_path: Path, which: str) -> None:
    model = opened(tmp_path, which)
    trace = run(model, SOURCE, target=TARGET)
    good = report_on_input(model, SOURCE, trace)
    assert good is not None
    assert good.equal is True
    other = replace(trace.tokens[2], id=trace.tokens[2].id + 1)
    wrong = report_on_input(model, SOURCE, replace(trace, tokens=(*trace.tokens[:2], other, *trace.tokens[3:])))
    assert wrong is not None
    assert wrong.equal is False
    assert "of the target was run as" in wrong.story
    short = report_on_input(model, SOURCE, replace(trace, tokens=trace.tokens[:-1]))
    assert short is not None
    assert short.equal is False


@pytest.mark.parametrize("which", ["mbart50", "bart"])
def test_a_target_without_its_start_turns_the_tick_red(tmp_path: Path, which: str) -> None:
    """Planted: as the ids of a source without special tokens, which is how targets were read once."""
    model = opened(tmp_path, which)
    trace = run(model, SOURCE, target=TARGET)
    report = report_on_input(model, SOURCE, replace(trace, tokens=(trace.tokens[0], *trace.tokens[2:])))
    assert report is not None
    assert report.equal is False


def test_a_start_that_was_typed_stands_once(tmp_path: Path) -> None:
    model = opened(tmp_path, "mbart50")
    plain, typed = (run(model, SOURCE, target=target) for target in (TARGET, f"es_XX{TARGET}"))
    assert [token.id for token in typed.tokens] == [token.id for token in plain.tokens]
    report = report_on_input(model, SOURCE, typed)
    assert report is not None
    assert report.equal is True


@pytest.mark.parametrize(("which", "begins"), [("mbart50", ["es_XX"]), ("bart", ["<unk>"]), ("t5", [])])
def test_a_target_of_which_nothing_is_typed_begins_as_one(tmp_path: Path, which: str, begins: list[str]) -> None:
    model = opened(tmp_path, which)
    assert [token.piece for token in run(model, SOURCE, target="").tokens[1:]] == begins
    assert len(run(model, SOURCE).tokens) == 1


def test_what_is_written_after_a_target_is_read_back(tmp_path: Path) -> None:
    model = opened(tmp_path, "mbart50")
    before = [token.id for token in run(model, SOURCE, target=TARGET).tokens[1:]]
    more = model.tokenizer.convert_tokens_to_ids("\u2581Tom")
    spelled = in_target(model, TARGET, before, (more,))
    assert (spelled.whole, spelled.misread) == (f"{TARGET} Tom", "")


@pytest.mark.parametrize(
    "settings", [{"decoder_vocab_size": 90, "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}]
)
def test_a_model_that_writes_in_another_vocabulary_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="writes in a vocabulary of its own"):
        made(tmp_path, "marian", tiny.sentence_piece, **settings)
