"""The scripts of two runs side by side, run on their own: heads, their difference, how much they changed, what is said.

Those of transformers alone are the independent computation; the others run in a fresh process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attention_models import Adapter, Mask, Scale, open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.protocol.two_runs import OtherRun, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import SiteRef
from attention_models.scripts.loading import why_not_loaded
from attention_models.scripts.own_functions import FACE
from tests.models import lora, textbook_folders
from tests.models.asking import ask, failure_of, opened
from tests.models.scripts.running import Line, few_first, printed
from tests.models.training_folders import trained

TOLERANCE = 1e-6  # of the largest number that a script prints

HERE = "Tom and Anna went to the park. Anna gave the ball to"
THERE = "Tom and Anna went to the big park. Tom gave the ball to"
KINDS = [
    *("gpt2", "llama", "qwen3", "gemma2", "gpt_neox", "opt", "gpt_oss", "bert", "distilbert", "albert"),
    *("t5", "bart", "marian", "bert2bert", "t5_encoder", "deberta_v2", "bert_classifier"),
]

Compared = tuple[str, TwoRunsView]
"""A script, and what is on screen."""


def compared(engine: Engine, a: RunInputs, other: OtherRun | None, **more: Any) -> Compared:
    """With the head of the last layer whose number is 1, of the first stack."""
    ran = ask(engine, ForwardRequest(inputs=a, ticket=2))
    sites = getattr(ran, "sites", None)
    assert sites is not None, ran
    site = [one for one in sites if one.stack == sites[0].stack][-1].ref if sites else None
    request = TwoRunsRequest(run=2, **{"site": site, "head": 1 if site else 0, "other": other, **more})
    view = ask(engine, request)
    assert isinstance(view, TwoRunsView), view
    while view.done < 1:
        view = ask(engine, request)
        assert isinstance(view, TwoRunsView), view
    script = ask(engine, ScriptRequest(of=request))
    assert isinstance(script, ScriptView), script
    return script.code, view


def check(found: dict[str, list[Line]], views: dict[str, TwoRunsView]) -> None:
    for name, view in views.items():
        lines = {line.name: line for line in found[name]}
        assert lines, name
        largest = max(1.0, *(abs(line.shown) for line in found[name]))
        for line in found[name]:
            assert line.computed == pytest.approx(line.shown, abs=TOLERANCE * largest), (name, line)
        if view.maps is not None:
            assert lines["largest of |A − B|"].shown == view.maps.largest, name
        change = None if view.a.site is None else view.counterpart(view.a.site, view.a.head or 0)
        if change is not None and (change.other_site, change.other_head) == (view.b.site, view.b.head):
            assert lines["how much the head changed"].shown == change.change, name
        shown = {line.shown for line in found[name]}
        for said in view.said[:3]:
            for number, logit in ((said.probability_a, said.logit_a), (said.probability_b, said.logit_b)):
                assert number in shown or logit in shown or number != number, (name, said)


def run_all(both: dict[str, Compared], folder: Path, own_classes: bool) -> None:
    found = printed({name: code for name, (code, _) in both.items()}, folder, own_classes)
    check(found, {name: view for name, (_, view) in both.items()})


@few_first(KINDS, "gpt2", "gemma2", "bart")
def test_two_texts_by_transformers_alone(tiny_folder: Callable[[str], Path], tmp_path: Path, kinds: list[str]) -> None:
    both: dict[str, Compared] = {}
    for kind in kinds:
        engine = opened(str(tiny_folder(kind)))
        model = engine.workspace.model
        assert model is not None
        target = "to the park" if model.seq2seq else None
        other = OtherRun(RunInputs(THERE, target=target and "to the ball"))
        both[kind] = compared(engine, RunInputs(HERE, target=target), other)
        assert "from_pretrained" in both[kind][0]
        assert "from models" not in both[kind][0]
        assert both[kind][1].maps is not None
    run_all(both, tmp_path, own_classes=False)
    changed = [view.changed_most[0].change for _, view in both.values()]
    assert min(changed) > 1e-4


@pytest.mark.full
def test_two_checkpoints(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Other heads, other tokenizers, another kind of attention, another thing that is said."""
    both: dict[str, Compared] = {}
    for a, b in (("gpt2", "llama"), ("bert", "gpt2"), ("gpt2", "bert_classifier"), ("t5", "marian"), ("gemma2", "t5")):
        target = "to the park" if a == "t5" else None
        inputs = RunInputs(HERE, target="to the park" if b in ("t5", "marian") else None)
        engine = opened(str(tiny_folder(a)))
        both[f"{a} {b}"] = compared(engine, RunInputs(HERE, target=target), OtherRun(inputs, str(tiny_folder(b))))
        assert both[f"{a} {b}"][0].count("from_pretrained(") == 2
    assert any("in_places(" in code for code, _ in both.values())
    run_all(both, tmp_path, own_classes=False)


@pytest.mark.full
def test_two_heads_of_one_run_are_run_once(gpt: Engine, tmp_path: Path) -> None:
    both = {"heads": compared(gpt, RunInputs(HERE), None, other_site=SiteRef("decoder", 2), other_head=4)}
    assert both["heads"][0].count("out = model(") == 1
    run_all(both, tmp_path, own_classes=False)


@pytest.mark.full
def test_interventions_are_in_the_script(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Of either run, of any kind; the other is transformers' own."""
    painted = Mask("painted", cells=((3, 1), (5, 2, False)), site=("decoder", 1), head=1)  # type: ignore[arg-type]
    edits: dict[str, tuple[Intervention, ...]] = {
        "scale": (Scale(0.5), Scale(2.0, SiteRef("decoder", 1), 0)),
        "mask": (Mask("window", window=3), painted),
    }
    both: dict[str, Compared] = {}
    for name, interventions in edits.items():
        engine = opened(str(tiny_folder("llama")))
        edited = RunInputs(HERE, interventions=interventions)
        both[f"{name} a"] = compared(engine, edited, OtherRun(RunInputs(HERE)))
        both[f"{name} b"] = compared(engine, RunInputs(THERE), OtherRun(edited))
        both[f"{name} both"] = compared(engine, edited, OtherRun(RunInputs(THERE, interventions=interventions)))
    for name, (code, _) in both.items():
        assert "interventions=(" in code, name
        assert code.count("= ax.open_checkpoint(") == 1, name
    run_all(both, tmp_path, own_classes=True)


@pytest.mark.full
def test_what_transformers_cannot_run_is_run_by_this_program(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    both: dict[str, Compared] = {}
    folder = textbook_folders.write_folder(tmp_path / "textbook", **textbook_folders.KINDS["decoder"])
    text = textbook_folders.text_for("decoder")
    both["textbook"] = compared(opened(str(folder)), RunInputs(text), OtherRun(RunInputs(text[::-1])))
    dates = opened("dates-bahdanau")
    both["recurrent"] = compared(dates, RunInputs("3 May 2001"), OtherRun(RunInputs("4 May 2001")), head=0)
    both["luong"] = compared(dates, RunInputs("3 May 2001"), OtherRun(RunInputs("3 May 2001"), "dates-luong"), head=0)
    pair = Pair("Tom went to the park.", "Anna gave the ball to")
    bert = opened(str(tiny_folder("bert")))
    both["pair"] = compared(bert, RunInputs(pair), OtherRun(RunInputs(Pair("Tom went.", "Anna gave"))))
    for side in ("left", "right"):
        texts: Prompt = Batch(("Tom went to the park.", "Anna gave", HERE), side, shown=1)
        engine = opened(str(tiny_folder("gpt2")))
        both[side] = compared(engine, RunInputs(texts), OtherRun(RunInputs("Anna gave the ball")))
    for name in ("textbook", "recurrent", "luong", "left", "right"):
        assert FACE in both[name][0], name
    assert "from models" not in both["pair"][0]
    run_all(both, tmp_path, own_classes=True)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_with_an_adapter_and_without(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = lora.save("gpt2", tiny_folder("gpt2"), tmp_path / "tuned")
    engine = opened(str(folder))
    off = RunInputs(HERE, interventions=(Adapter(on=False),))
    both = {"adapter": compared(engine, RunInputs(HERE), OtherRun(off))}
    assert both["adapter"][1].maps is not None
    assert both["adapter"][1].maps.largest > 1e-4
    run_all(both, tmp_path, own_classes=True)


@pytest.mark.full
def test_a_long_map_is_compared_where_it_is_in_view(tiny_folder, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("attention_models.protocol.values.LARGEST_WHOLE", 8)
    engine = opened(str(tiny_folder("gpt2")))
    both = {"long": compared(engine, RunInputs(HERE), OtherRun(RunInputs(THERE)))}
    assert both["long"][1].maps is not None
    assert both["long"][1].maps.tile is not None
    run_all(both, tmp_path, own_classes=False)


def test_what_no_script_can_open_is_said(tiny_model: Callable[[str], Model]) -> None:
    model = tiny_model("gpt2")
    kept = model.info
    try:
        model.info = replace(kept, borrowed=True)
        engine = Engine([model])
        engine.workspace.open(model)
        request = TwoRunsRequest(run=2, site=SiteRef("decoder", 0), head=1, other=OtherRun(RunInputs(THERE)))
        ask(engine, ForwardRequest(inputs=RunInputs(HERE), ticket=2))
        assert "object of another program" in failure_of(engine, ScriptRequest(of=request)).sentence
    finally:
        model.info = kept


@pytest.mark.full
def test_a_step_of_a_training_is_not_opened_as_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "trained"
    trained(folder)
    end = open_checkpoint(folder)
    assert end.info.training is not None
    step = end.info.training.steps[0]
    before = open_checkpoint(f"{folder}@{step}")
    assert "a step before" in why_not_loaded(before)
    assert not why_not_loaded(end)
    both = {"steps": compared(opened(f"{folder}@{step}"), RunInputs("abcd"), OtherRun(RunInputs("abcd"), str(folder)))}
    assert both["steps"][1].changed_most[0].change > 1e-4
    run_all(both, tmp_path, own_classes=True)
