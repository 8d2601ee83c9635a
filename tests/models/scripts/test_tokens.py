"""The script of the Input panel, run on its own, gives the ids, pieces and patches that the panel shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from PIL import Image
from torch import nn

from attention_models.engine.engine import Engine
from attention_models.files.catalogue import WEIGHTS
from attention_models.forward.adopted import adopt
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair, Turn
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from tests.models import talking, textbook_folders, tiny, tiny_vision
from tests.models.asking import ask, failure_of, opened
from tests.models.gguf_maker import gguf_of
from tests.models.scripts.running import Line, printed

# accents to be composed, an emoji of several bytes, a mask's name, blanks, and what steers how a line is read
ODD = "Tom  he\u0301llo n\u0303 caf\u00e9 \U0001f642 <mask> [MASK]\n\u202eAnna\t\u2581go"
CHAT = Chat((Turn("system", "Be brief."), Turn("user", "Hello: who is Tom?")))


def script_of(engine: Engine, **inputs: Any) -> tuple[str, Ran]:
    request = ForwardRequest(inputs=RunInputs(**inputs), ticket=2)
    ran = ask(engine, request)
    assert isinstance(ran, Ran), ran
    view = ask(engine, ScriptRequest(of=ran.request))
    assert isinstance(view, ScriptView), view
    return view.code, ran


def check(lines: list[Line], ran: Ran) -> None:
    """Each line's number is the one beside it, and all ids of the run are among them, in their order."""
    for line in lines:
        assert line.computed == line.shown, line
    ids = [line.computed for line in lines if line.name.endswith(", id")]
    assert ids == [token.id for token in (*ran.source, *ran.tokens)]


def covers(name: str) -> str:
    """What a line says that its token covers."""
    text: str = eval(name.split(" covers ", 1)[1].removesuffix(", id"))
    return text


@pytest.mark.parametrize("text", [pytest.param(tiny.SENTENCE, marks=pytest.mark.full), ODD])
def test_every_kind_of_tokenizer(tiny_folder, tmp_path: Path, text: str) -> None:
    kinds = ("gpt2", "llama", "bert", "roberta", "modernbert", "deberta_v2", "t5", "bart", "marian", "t5_encoder")
    found = {kind: script_of(opened(str(tiny_folder(kind))), prompt=text, target=_target(kind)) for kind in kinds}
    lines = printed({kind: code for kind, (code, _) in found.items()}, tmp_path)
    for kind, (code, ran) in found.items():
        check(lines[kind], ran)
        read = ran.source or ran.tokens
        said = [covers(line.name) for line in lines[kind] if line.name.endswith(", id")]
        assert said[: len(read)] == [token.text for token in read], kind
        own = transformers.AutoTokenizer.from_pretrained(tiny_folder(kind))(text)["input_ids"]  # an independent call
        assert [token.id for token in read] == own, kind
        assert "tokenizer = " in code


def _target(kind: str) -> str | None:
    return "to the café" if kind in ("t5", "bart", "marian") else None


@pytest.mark.full
def test_shipped_checkpoints_with_what_the_model_wrote(tmp_path: Path) -> None:
    found = {
        "story-gpt": script_of(opened("story-gpt"), prompt=tiny.SENTENCE),
        "story-bert": script_of(opened("story-bert"), prompt="Tom went [MASK] café."),
        "en-es": script_of(opened("en-es"), prompt="The cat sleeps."),
        "dates": script_of(opened("dates-luong"), prompt="3 May 2001"),
    }
    assert "the model wrote them itself" in found["en-es"][0]
    assert "Tokenizer.from_file" in found["dates"][0]
    lines = printed({name: code for name, (code, _) in found.items()}, tmp_path)
    for name, (_, ran) in found.items():
        check(lines[name], ran)
        if ran.source:
            said = next(line for line in lines[name] if line.name == "letters of the text that they make")
            assert said.computed == len(ran.written)


@pytest.mark.full
def test_a_blank_that_was_put_after_an_added_token(tmp_path: Path) -> None:
    folder = tiny.save("roberta", tmp_path / "roberta")
    tiny.first_space().save_pretrained(folder)
    code, ran = script_of(opened(str(folder)), prompt="<mask>the park")
    assert [token.text for token in ran.tokens[1:3]] == ["<mask>", "the"]
    lines = printed({"roberta": code}, tmp_path)["roberta"]
    check(lines, ran)
    said = [covers(line.name) for line in lines if line.name.endswith(", id")]
    assert said == [token.text for token in ran.tokens]


@pytest.mark.full
def test_pairs_batches_and_conversations(tiny_folder, tmp_path: Path) -> None:
    gpt, bert, marian = (opened(str(tiny_folder(kind))) for kind in ("gpt2", "bert", "marian"))
    texts = ("Tom went to the park.", "Anna", "The black cat is sleeping on the table")
    talks, llama = (opened(str(talking.save_talking(kind, tmp_path / kind))) for kind in ("chatml", "llama-2"))
    half = Chat((*CHAT.turns, Turn("assistant", "Tom is a")))
    found = {
        "pair": script_of(bert, prompt=Pair("Tom went to the park.", "Anna gave the café\u0301")),
        "left": script_of(gpt, prompt=Batch(texts, padding="left", shown=1)),
        "right": script_of(bert, prompt=Batch(texts, shown=0)),
        "pairs": script_of(bert, prompt=Batch((Pair("Tom", "Anna gave"), Pair("The cat", "is")), shown=1)),
        "targets": script_of(marian, prompt=Batch(texts, shown=1, targets=("La casa tiene", "El", "El gato"))),
    }
    found["chat"] = script_of(talks, prompt=CHAT)
    found["half"] = script_of(talks, prompt=half)
    found["llama"] = script_of(llama, prompt=half)
    assert "add_generation_prompt=True" in found["chat"][0]
    assert "'Tom is a'" in found["half"][0].split("the computation")[1]
    assert "tokenizer(first, second" in found["pair"][0]
    assert "padding + ids" in found["left"][0]
    lines = printed({name: code for name, (code, _) in found.items()}, tmp_path)
    for name, (_, ran) in found.items():
        check(lines[name], ran)
    segment = next(line for line in lines["pair"] if line.name == "tokens of segment 1")
    assert segment.computed == sum(token.segment for token in found["pair"][1].tokens)


@pytest.mark.full
def test_a_tokenizer_in_a_gguf_file(tiny_folder, tmp_path: Path) -> None:
    code, ran = script_of(opened(str(gguf_of(tiny_folder("llama"), tmp_path / "tiny.gguf"))), prompt=tiny.SENTENCE)
    assert "gguf_file='tiny.gguf'" in code
    check(printed({"gguf": code}, tmp_path)["gguf"], ran)


@pytest.mark.full
def test_textbook_tokenizers(tmp_path: Path) -> None:
    found = {}
    for name in ("encoder-decoder", "decoder", "encoder"):
        folder = textbook_folders.write_folder(tmp_path / name, **textbook_folders.KINDS[name])
        target = "abc" if name == "encoder-decoder" else None
        found[name] = script_of(opened(str(folder)), prompt=textbook_folders.text_for(name), target=target)
        assert "attention_models/textbook/tokenizer.py" in found[name][0]
    lines = printed({name: code for name, (code, _) in found.items()}, tmp_path)
    for name, (_, ran) in found.items():
        check(lines[name], ran)


@pytest.mark.full
def test_pictures(tmp_path: Path) -> None:
    colours = np.random.default_rng(1).integers(0, 255, (37, 51, 3), dtype=np.uint8)
    Image.fromarray(colours).save(tmp_path / "colours.png")
    Image.fromarray(colours[..., 0].astype(np.uint16) * 200).save(tmp_path / "deep.png")
    found = {}
    for kind, picture in (("vit", "colours"), ("vit", "deep"), ("vit_grey", "colours"), ("vit_grey", "deep")):
        folder = tiny_vision.save(kind, tmp_path / kind)
        name = f"{kind} {picture}"
        found[name] = script_of(opened(str(folder)), picture=str(tmp_path / f"{picture}.png"))
    found["sample"] = script_of(opened("vit-quickdraw"), picture="sample:fish-1")
    lines = printed({name: code for name, (code, _) in found.items()}, tmp_path)
    for name, (_, ran) in found.items():
        assert ran.seen is not None
        said = {line.name: line for line in lines[name]}
        assert said["tokens"].computed == len(ran.tokens)
        assert said["rows of patches"].computed == ran.seen.rows
        for line in lines[name]:
            assert line.computed == pytest.approx(line.shown, abs=1e-4), (name, line)  # a mean of bytes, in float32
        assert sum("of patch" in line.name for line in lines[name]) >= 3


def test_a_tokenizer_of_another_program_is_said(tiny_folder) -> None:
    folder = tiny_folder("gpt2")
    module: nn.Module = transformers.AutoModelForCausalLM.from_pretrained(folder)
    adopted = adopt(module, transformers.AutoTokenizer.from_pretrained(folder))
    engine = Engine()
    engine.workspace.open(adopted)
    request = ForwardRequest(inputs=RunInputs(tiny.SENTENCE), ticket=2)
    assert isinstance(ask(engine, request), Ran)
    sentence = failure_of(engine, ScriptRequest(of=request)).sentence
    assert "is an object of another program, which no script can open" in sentence
    adopted.release()


@pytest.mark.full
def test_a_long_text_is_told_in_lines_that_can_be_read(tmp_path: Path) -> None:
    text = " ".join([tiny.SENTENCE] * 4)
    code, ran = script_of(opened("story-gpt"), prompt=text)
    assert max(map(len, code.replace(str(WEIGHTS), "").split("\n"))) <= 130  # but for the place of this checkout
    check(printed({"long": code}, tmp_path)["long"], ran)
