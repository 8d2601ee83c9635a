"""The script of the trust strip: the model as transformers opens it gives the logits and weights on screen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attention_models import Scale
from attention_models.engine.engine import Engine
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.trust import TrustRequest
from tests.models import textbook_folders, tiny
from tests.models.asking import ask, failure_of, opened
from tests.models.scripts.running import check_lines, few_first, printed, script
from tests.models.tiny import TinyFolder

TOLERANCE = 1e-6  # of the largest number that a script prints
check = partial(check_lines, tolerance=TOLERANCE)
KINDS = [
    *("gpt2", "llama", "gemma2", "gpt_neox", "gpt_oss", "bloom", "bert", "distilbert", "deberta_v2"),
    *("t5", "bart", "marian", "bert2bert", "t5_encoder", "bert_classifier"),
]


def script_of(engine: Engine, prompt: Any = tiny.SENTENCE, **inputs: Any) -> str:
    model = engine.workspace.model
    assert model is not None
    if model.seq2seq:
        inputs = {"target": "to the park", **inputs}
    ask(engine, ForwardRequest(inputs=RunInputs(prompt, **inputs), ticket=2))
    return script(engine, TrustRequest(run=2))


@few_first(KINDS, "gpt2", "gemma2", "bart", "t5_encoder")
def test_every_family(tiny_folder: TinyFolder, tmp_path: Path, kinds: Sequence[str]) -> None:
    scripts = {kind: script_of(opened(str(tiny_folder(kind)))) for kind in kinds}
    found = printed(scripts, tmp_path)
    check(found)
    assert all(code.count("from models") == 0 for code in scripts.values())
    if "gpt2" in kinds:
        assert sum(line.name.startswith("logit of") for line in found["gpt2"]) == 5
        assert any(line.name.startswith("weight of") for line in found["t5_encoder"])


@pytest.mark.full
def test_shipped_checkpoints(tmp_path: Path) -> None:
    scripts = {name: script_of(opened(name)) for name in ("story-gpt", "story-bert", "en-es")}
    scripts["picture"] = script_of(opened("vit-cifar10"), picture="sample:chelsea")
    check(printed(scripts, tmp_path))
    assert all(code.count("from models") == 0 for code in scripts.values())


@pytest.mark.full
def test_pairs_batches_and_the_textbook_transformer(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    scripts = {"pair": script_of(opened(str(tiny_folder("bert"))), Pair("Tom went.", "Anna gave the ball."))}
    for side in ("left", "right"):
        batch = Batch(("Tom went to the park.", "Anna gave", tiny.SENTENCE), side, shown=1)
        scripts[side] = script_of(opened(str(tiny_folder("llama"))), batch)
    for name in ("decoder", "llama-like"):
        folder = textbook_folders.write_folder(tmp_path / name, **textbook_folders.KINDS[name])
        scripts[name] = script_of(opened(str(folder)), textbook_folders.TEXT)
    check(printed(scripts, tmp_path, own_classes=True))


@pytest.mark.full
def test_interventions_are_left_out_as_in_what_the_strip_says(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    engine = opened(str(tiny_folder("gpt2")))
    code = script_of(engine, interventions=(Scale(0.25),))
    assert "# as it is, without your interventions" in code
    check(printed({"edited": code}, tmp_path))
    plain = script_of(engine)
    assert [line.split("on screen")[-1] for line in code.split("\n") if "on screen:" in line] == [
        line.split("on screen")[-1] for line in plain.split("\n") if "on screen:" in line
    ]


def test_what_transformers_does_not_open_is_said() -> None:
    engine = opened("dates-bahdanau")
    ask(engine, ForwardRequest(inputs=RunInputs("3 May 2001"), ticket=2))
    sentence = failure_of(engine, ScriptRequest(of=TrustRequest(run=2))).sentence
    assert "no such recurrent model" in sentence
