"""The tick for the input: red where the ids are not those of the tokenizer's own call, grey where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from attention_models import adopt, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import InputReport, TrustReport, TrustRequest
from attention_models.protocol.values import Token
from attention_models.trust.report import first_difference, report_on_input
from tests.models import talking
from tests.models.asking import ask, opened

TinyFolder = Callable[[str], Path]
TinyModel = Callable[[str], Model]

TEXT = "Tom and Anna went to the park."
KINDS = ["gpt2", "llama", "bert", "roberta", "distilbert", "albert", "t5", "marian", "xlnet"]


def report(
    model: Model, given: Any, change: Callable[[tuple[Token, ...]], tuple[Token, ...]] | None = None
) -> InputReport:
    trace = run(model, given)
    if change is not None:
        if trace.source:
            trace = replace(trace, source=change(trace.source))
        else:
            trace = replace(trace, tokens=change(trace.tokens))
    found = report_on_input(model, given, trace)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokenizers_own_call_is_asked_again(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    found = report(model, TEXT)
    assert (found.equal, found.starts_twice) == (True, False)
    read = model.encode(TEXT).source or model.encode(TEXT).tokens
    assert model.tokenizer(TEXT)["input_ids"] == [token.id for token in read]


@pytest.mark.parametrize("kind", KINDS)
def test_planted_errors_are_red(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    doubled = report(model, TEXT, lambda tokens: (tokens[0], *tokens))
    assert doubled.equal is False
    assert "comes twice" in doubled.story
    wrong = report(model, TEXT, lambda tokens: (*tokens[:3], replace(tokens[3], id=tokens[3].id + 1), *tokens[4:]))
    assert wrong.equal is False
    assert "Token 3 was run as" in wrong.story
    short = report(model, TEXT, lambda tokens: tokens[:-1])
    assert short.equal is False
    assert "tokens were run, and its tokenizer makes" in short.story


def test_segments_are_compared_where_the_model_reads_them(tiny_model: TinyModel) -> None:
    bert, wanted = tiny_model("bert"), {"input_ids": [2, 5, 3, 6, 3], "token_type_ids": [0, 0, 0, 1, 1]}
    found = first_difference(bert, {"input_ids": wanted["input_ids"]}, wanted)
    assert found == "Token 3 was run as of segment 0; its tokenizer puts it in 1."
    assert first_difference(bert, wanted, wanted) == ""
    assert first_difference(tiny_model("distilbert"), {"input_ids": wanted["input_ids"]}, wanted) == ""


def test_ids_as_they_are_have_nothing_to_be_compared_with(tiny_model: TinyModel) -> None:
    found = report(tiny_model("gpt2"), [5, 6, 7])
    assert found.equal is None
    assert "given as they are" in found.story


def test_a_conversation_is_compared_with_what_its_template_writes(tmp_path: Path) -> None:
    model = open_checkpoint(talking.save_talking("chatml", tmp_path / "talking"))
    assert report(model, [{"role": "user", "content": "Good morning."}]).equal is True


@pytest.mark.parametrize("starts", [1, 2])
def test_a_function_has_no_reference(starts: int) -> None:
    torch.manual_seed(0)
    settings: Any = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    letters = " abcdefghijklmnopqrstuvwxyz"
    model = adopt(
        LlamaForCausalLM(LlamaConfig(vocab_size=40, **settings)),
        (
            lambda text: [0] * starts + [1 + letters.index(c) for c in text],
            lambda ids: "".join(letters[i - 1] for i in ids if i),
        ),
    )
    found = report(model, "a cat")
    assert found.equal is None
    assert "cannot be known" in found.story
    assert found.starts_twice == (starts == 2)
    assert report(model, "a cat", lambda tokens: (tokens[0], *tokens)).equal is False


def test_a_tokenizer_handed_over_is_asked_again(tiny_model: TinyModel) -> None:
    tokenizer = tiny_model("bert").tokenizer
    settings: Any = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    for given in (tokenizer, tokenizer.backend_tokenizer):
        model = adopt(BertForMaskedLM(BertConfig(vocab_size=200, **settings)), given)
        assert report(model, TEXT).equal is True
        assert report(model, TEXT, lambda tokens: (tokens[0], *tokens)).equal is False


def test_the_report_of_the_engine_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opened("story-bert")
    ran = ask(engine, ForwardRequest(ticket=2, inputs=RunInputs(TEXT)))
    assert isinstance(ran, Ran)
    good = ask(engine, TrustRequest(run=2))
    assert isinstance(good, TrustReport)
    assert good.input is not None
    assert good.input.equal
    assert good.holds
    tokenized = Model._tokenized

    def doubled(model: Model, *args: Any) -> tuple[tuple[Token, ...], Sequence[int]]:
        tokens, segment_ids = tokenized(model, *args)
        return (tokens[0], *tokens), segment_ids

    monkeypatch.setattr(Model, "_tokenized", doubled)
    ask(engine, ForwardRequest(ticket=3, inputs=RunInputs(TEXT)))
    bad = ask(engine, TrustRequest(run=3))
    assert isinstance(bad, TrustReport)
    assert bad.computes_the_same
    assert not bad.holds
    assert bad.input is not None
    assert "[CLS], comes twice" in bad.input.story


# --------------------------------------------------------------------------- vocabularies that are not there


def test_an_albert_with_only_vocab_txt_is_refused_by_name(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = tmp_path / "albert"
    folder.mkdir()
    for file in tiny_folder("albert").iterdir():
        if "token" not in file.name:
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n")
    with pytest.raises(CheckpointError, match=r"its tokenizer opened with \d tokens, .* spiece.model"):
        open_checkpoint(folder)


def test_unknown_words_are_counted(tiny_folder: TinyFolder) -> None:
    engine = opened(str(tiny_folder("bert")))
    known = ask(engine, ForwardRequest(ticket=2, inputs=RunInputs(TEXT)))
    assert isinstance(known, Ran)
    assert known.unknown == 0
    ran = ask(engine, ForwardRequest(ticket=3, inputs=RunInputs("\u4eca\u65e5\u306f \u6771\u4eac Tom")))
    assert isinstance(ran, Ran)
    unknown = open_checkpoint(tiny_folder("bert")).tokenizer.unk_token_id
    assert ran.unknown == [token.id for token in ran.tokens].count(unknown) > 2
