"""Two texts read together: the tokenizer's own call with both, and the weights of transformers on what it gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from attention_models import Pair, adopt, decode, load_weights, open_checkpoint, run, save_weights
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.opening.describe import capabilities
from attention_models.protocol.errors import InputError
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.trust.report import report_on_input
from tests.models import tiny
from tests.models.asking import ask, opened
from tests.models.eager import TARGET, attentions
from tests.models.room import room_of_recomputing
from tests.models.tiny import TinyFolder, TinyModel

FIRST, SECOND = "Tom and Anna went to the park.", "Anna gave the ball to Tom"

SEGMENTED = [  # their embeddings tell segments apart, or they compare segments
    *("bert", "bert_pretrained", "bert_classifier", "bert_tagger", "bert_bare", "bert2bert", "albert", "electra"),
    *("electra_discriminator", "deberta_v2", "xlnet"),
]
SEPARATED = ["distilbert", "roberta", "xlm_roberta", "modernbert", "t5", "t5_encoder", "mt5", "bart"]
SINGLE = ["gpt2", "llama", "bert_decoder", "bart_decoder", "marian", "mbart"]


def called(model: Model, kind: str) -> dict[str, torch.Tensor]:
    """What the checkpoint's own tokenizer gives of both."""
    inputs = dict(model.tokenizer(FIRST, SECOND, return_tensors="pt", return_token_type_ids=True))
    if kind not in SEGMENTED:
        del inputs["token_type_ids"]
    return inputs


@pytest.mark.short("bert", "xlnet", "t5", "bart", "roberta")
@pytest.mark.parametrize("kind", SEGMENTED + SEPARATED)
def test_every_family_computes_as_transformers_does(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    target = TARGET if model.seq2seq else None
    trace = run(model, (FIRST, SECOND), target=target)
    assert_as_eager(model, trace, called(model, kind), target)


def assert_as_eager(model: Model, trace: Trace, inputs: dict[str, torch.Tensor], target: str | None = None) -> None:
    read = trace.source or trace.tokens
    assert [token.id for token in read] == inputs["input_ids"][0].tolist()
    if target is not None:
        inputs = {**inputs, "decoder_input_ids": torch.tensor([[token.id for token in trace.tokens]])}
    with torch.no_grad():
        out = tiny.eager(model)(**inputs, output_attentions=True)
    theirs = attentions(out, model)
    assert {site.ref for site in trace.sites} == set(theirs)
    for site in trace.sites:
        for head in range(site.heads):
            np.testing.assert_allclose(trace.weights(site, head), theirs[site.ref][head], atol=1e-6)
    if trace.has_logits and getattr(out, "logits", None) is not None and out.logits.dim() == 3:
        np.testing.assert_allclose(trace.logits, out.logits[0].numpy(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in SEGMENTED if kind not in ("deberta_v2", "bert2bert")])
def test_segments_matter_to_them(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace, flat = run(model, (FIRST, SECOND)), run(model, model.tokenizer(FIRST, SECOND)["input_ids"])
    apart = max(float(np.abs(trace.weights(site, 0) - flat.weights(site, 0)).max()) for site in trace.sites)
    assert apart > 1e-3


@pytest.mark.parametrize("name", ["story-bert", "en-es"])
def test_shipped_models_that_read_pairs(name: str) -> None:
    model = open_checkpoint(name)
    target = "El gato." if model.seq2seq else None
    trace = run(model, (FIRST, SECOND), target=target)
    inputs = dict(model.tokenizer(FIRST, SECOND, return_tensors="pt", return_token_type_ids=not model.seq2seq))
    assert_as_eager(model, trace, inputs, target)


@pytest.mark.parametrize("kind", SEGMENTED + SEPARATED)
def test_each_token_knows_its_text_and_its_characters_there(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace = run(model, (FIRST, SECOND), target=TARGET if model.seq2seq else None)
    encoding = model.tokenizer(FIRST, SECOND, return_token_type_ids=True)
    texts = (FIRST, SECOND)
    for token, text in zip(trace.source or trace.tokens, encoding.sequence_ids(0), strict=True):
        if text is None:
            assert (token.special, token.start, token.end) == (True, 0, 0)
        else:
            assert token.segment == text
            assert token.text == texts[text][token.start : token.end]
    read = "".join(token.text for token in trace.source or trace.tokens)
    assert read.replace(" ", "") == (FIRST + SECOND).replace(" ", "")
    if any(encoding["token_type_ids"]):
        assert [token.segment for token in trace.source or trace.tokens] == encoding["token_type_ids"]


def test_separators_without_segments_belong_to_the_text_before_them(tiny_model: TinyModel) -> None:
    tokens = run(tiny_model("roberta"), ("Tom", "Anna")).tokens
    assert [(token.segment, token.piece) for token in tokens if token.special] == [
        (0, "<s>"),
        (0, "</s>"),
        (0, "</s>"),
        (1, "</s>"),
    ]


@pytest.mark.parametrize("kind", SINGLE)
def test_models_of_one_text_say_so(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    assert not model.info.pairs
    assert "Pairs of texts" not in [line.name for line in capabilities(model.info)]
    with pytest.raises(InputError, match=r"reads no pairs of texts: .* Give it one text"):
        run(model, (FIRST, SECOND))


def test_what_can_be_read_is_said(tiny_model: TinyModel) -> None:
    for kind in (*SEGMENTED, *SEPARATED):
        assert tiny_model(kind).info.pairs, kind
    assert "Pairs of texts" in [line.name for line in capabilities(tiny_model("bert").info)]


@pytest.mark.parametrize("kind", ["bert", "albert", "xlnet"])
def test_a_single_text_is_run_as_before(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    assert "token_type_ids" not in model.encode(FIRST).inputs
    assert {token.segment for token in run(model, FIRST).tokens} == {0}


def test_segments_that_the_tokenizer_gives_of_one_text_are_run(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("xlnet"))
    model.tokenizer = tokenizer = type(model.tokenizer)(
        tokenizer_object=model.tokenizer.backend_tokenizer, model_input_names=["input_ids", "token_type_ids"]
    )
    assert model.encode("Tom").inputs["token_type_ids"][0].tolist() == tokenizer("Tom")["token_type_ids"]
    assert model.encode("Tom").inputs["token_type_ids"][0, -1] == 2


@pytest.mark.parametrize("texts", [("", "Tom"), ("Tom", " ")])
def test_an_empty_text_of_a_pair_is_named(tiny_model: TinyModel, texts: tuple[str, str]) -> None:
    which = "first" if not texts[0] else "second"
    with pytest.raises(InputError, match=f"The {which} text of the pair is empty"):
        run(tiny_model("bert"), texts)


def test_two_texts_that_are_too_long_are_counted_together(tiny_model: TinyModel) -> None:
    with pytest.raises(InputError, match=r"These two texts are \d\d tokens long together; bert takes 60\."):
        run(tiny_model("bert"), (FIRST * 4, SECOND * 4))


@pytest.mark.parametrize("texts", [("Tom",), ("Tom", "Anna", "Ben"), ("Tom", 5)])
def test_other_tuples_are_refused(tiny_model: TinyModel, texts: Any) -> None:
    with pytest.raises(InputError, match="A pair is two texts"):
        run(tiny_model("bert"), texts)


@pytest.mark.parametrize("odd", ["half\ud83d pair", "\U0001f642 \u2764\ufe0f", "e\u0301te\u0301"])
def test_odd_characters_keep_their_places(tiny_model: TinyModel, odd: str) -> None:
    for kind in ("bert", "roberta"):
        for token in run(tiny_model(kind), (odd, f"Tom {odd}")).tokens:
            assert token.text == (odd, f"Tom {odd}")[token.segment][token.start : token.end]


def test_the_case_that_was_reported() -> None:
    tokenizer = tiny.word_piece()
    torch.manual_seed(0)
    settings: Any = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    module = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), initializer_range=1.0, **settings)).eval()
    adopted = adopt(module, tokenizer)
    trace = run(adopted, (FIRST, SECOND))
    ours = [trace.weights(trace.sites[0], head) for head in range(2)]
    adopted.release()
    module.set_attn_implementation("eager")
    with torch.no_grad():
        wanted = module(**called(adopted, "bert"), output_attentions=True).attentions[0][0].numpy()
    np.testing.assert_allclose(np.stack(ours), wanted, atol=min(max(1e-6, room_of_recomputing(trace)), 5e-6))


# --------------------------------------------------------------------------- the strip's tick


@pytest.mark.parametrize("kind", SEGMENTED + SEPARATED)
def test_the_tokenizers_own_call_with_both_is_asked_again(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    pair = Pair(FIRST, SECOND)
    found = report_on_input(model, pair, run(model, pair, target=TARGET if model.seq2seq else None))
    assert found is not None
    assert found.equal
    assert "given both texts" in found.story


@pytest.mark.parametrize("kind", SEGMENTED)
def test_wrong_segments_are_red(tiny_model: TinyModel, kind: str) -> None:
    model, pair = tiny_model(kind), Pair(FIRST, SECOND)
    trace = run(model, pair, target=TARGET if model.seq2seq else None)
    assert trace.origin is not None
    for wrong in ((), (*trace.origin.segment_ids[:-1], 1 - trace.origin.segment_ids[-1])):
        found = report_on_input(model, pair, replace(trace, origin=replace(trace.origin, segment_ids=wrong)))
        assert found is not None
        assert found.equal is False
        assert "was run as of segment" in found.story


def test_a_run_without_its_segments_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opened("story-bert")
    inputs = RunInputs(Pair(FIRST, SECOND))
    good = ask(engine, ForwardRequest(ticket=2, inputs=inputs))
    assert isinstance(good, Ran)
    report = ask(engine, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert report.holds
    monkeypatch.setattr(Model, "takes_segments", lambda *_: False)  # a typed [SEP] was run in this way
    ask(engine, ForwardRequest(ticket=3, inputs=inputs))
    monkeypatch.undo()
    report = ask(engine, TrustRequest(run=3))
    assert isinstance(report, TrustReport)
    assert not report.has_own_ids
    assert not report.computes_the_same


# --------------------------------------------------------------------------- what else is done with a run


def test_masks_are_filled_in_the_text_that_they_are_of(story_bert: Model) -> None:
    pair = ("Tom has a [MASK].", "The [MASK] is red.")
    *_, last = decode(story_bert, pair, 5)
    assert isinstance(last.whole, Pair)
    assert (last.whole.first[:10], last.whole.second[:4]) == ("Tom has a ", "The ")
    assert last.whole.second.endswith(" is red.")
    assert "[MASK]" not in last.text
    assert last.text == f"{last.whole.first}\n{last.whole.second}"


def test_an_encoder_decoder_model_writes_after_a_pair(tiny_model: TinyModel) -> None:
    model = tiny_model("bart")
    *_, last = decode(model, (FIRST, SECOND), 4)
    with torch.no_grad():
        ids = tiny.eager(model).generate(**called(model, "bart"), max_new_tokens=4, do_sample=False, num_beams=1)
    assert list(last.ids) == ids[0, 1:].tolist()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_file_of_weights_holds_both_texts(tiny_model: TinyModel, tmp_path: Path, kind: str, ending: str) -> None:
    model = tiny_model(kind)
    trace = run(model, (FIRST, SECOND))
    save_weights(trace, tmp_path / f"a.{ending}")
    saved = load_weights(tmp_path / f"a.{ending}")
    assert (saved.text, saved.second) == (FIRST, SECOND)
    assert saved.tokens == trace.tokens
    types = model.tokenizer(FIRST, SECOND, return_token_type_ids=True)["token_type_ids"]
    assert list(saved.segment_ids) == types
