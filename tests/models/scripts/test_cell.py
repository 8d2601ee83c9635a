"""Every cell's script, run on its own, prints what Cell shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from attention_models import as_pytorch, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.scripts.as_pytorch import answer
from attention_models.views.cell import cell_view
from tests.models import textbook_folders, tiny
from tests.models.asking import ask, failure_of, forward
from tests.models.scripts.running import Line, few_first, printed

TOLERANCE = 1e-6  # of the largest number of a script: the same float32 numbers, added in another order

FAMILIES = [
    *("gpt2", "llama", "mistral", "qwen3", "gemma2", "gemma3", "phi3", "gpt_neox", "opt", "gpt_oss", "llama4"),
    *("bert", "albert", "distilbert", "roberta", "modernbert"),
    *("t5", "bart", "marian", "bert2bert", "bert_classifier", "gpt2_bare", "t5_encoder"),
]
SHIPPED = [
    *("story-gpt", "story-bert", "en-es", "dates-bahdanau", "dates-luong", "recurrent-en-es-bahdanau"),
]

Scripts = dict[str, str]
Shown = dict[str, dict[str, float]]
"""Of each script what Cell shows."""


def scripts_of(model: Model, name: str, *edits: Intervention) -> tuple[Scripts, Shown]:
    """The scripts of a few cells of each stack, and what Cell shows of them."""
    trace = run(model, tiny.SENTENCE, target="to the park" if model.seq2seq else None, interventions=edits)
    scripts: Scripts = {}
    shown: Shown = {}
    for site in {(site.stack, site.layer % 2): site for site in trace.sites}.values():
        head = site.heads - 1
        for query, key in {(site.queries - 1, 1), (1, min(2, site.keys - 1))}:
            called = f"{name} {site.stack} {site.layer} {query} {key}"
            view = cell_view(CellRequest(run=1, site=site.ref, head=head, query=query, key=key), model, trace)
            scripts[called] = as_pytorch(model, trace, site, head, query, key)
            shown[called] = {"weight": view.weight, "score": view.score, "length of weight * v": view.mixed_norm}
    return scripts, shown


def check(found: dict[str, list[Line]], shown: Shown) -> None:
    for name, lines in found.items():
        largest = max(1.0, *(abs(line.shown) for line in lines))
        said = {line.name: line for line in lines}
        for what, wanted in shown[name].items():
            if what == "score" and what not in said:  # of the textbook's lines only the weight comes out
                continue
            assert said[what].shown == wanted, (name, what)
        for line in lines:
            assert line.computed == pytest.approx(line.shown, abs=TOLERANCE * largest), (name, line)


@few_first(FAMILIES, "gpt2", "gemma2", "gpt_oss", "bert", "t5")
def test_every_family(tiny_model, tmp_path: Path, kinds) -> None:
    scripts: Scripts = {}
    shown: Shown = {}
    for kind in kinds:
        more, wanted = scripts_of(tiny_model(kind), kind)
        scripts |= more
        shown |= wanted
    check(printed(scripts, tmp_path), shown)
    assert len(scripts) > 2 * len(kinds)


@pytest.mark.full
def test_shipped_checkpoints(tmp_path: Path) -> None:
    scripts: Scripts = {}
    shown: Shown = {}
    for reference in SHIPPED:
        more, wanted = scripts_of(open_checkpoint(reference), reference)
        scripts |= more
        shown |= wanted
    found = printed(scripts, tmp_path)
    check(found, shown)
    written = [name for name, lines in found.items() if lines[-1].name == "length of the write"]
    assert {name.split()[0] for name in written} == {"story-gpt", "story-bert", "en-es"}  # W_O is loaded


@pytest.mark.full
def test_the_textbook_transformer_is_computed_by_its_own_lines(tmp_path: Path) -> None:
    scripts: Scripts = {}
    shown: Shown = {}
    for name, switches in textbook_folders.KINDS.items():
        model = open_checkpoint(textbook_folders.write_folder(tmp_path / name, **switches))
        text = textbook_folders.text_for(switches.get("shape", "encoder-decoder"))
        trace = run(model, text, target="abc" if model.seq2seq else None)
        for site in trace.sites[:: max(1, len(trace.sites) - 1)]:
            called = f"{name} {site.stack} {site.layer}"
            request = CellRequest(run=1, site=site.ref, head=1, query=site.queries - 1, key=1)
            scripts[called] = as_pytorch(model, trace, site, 1, site.queries - 1, 1)
            shown[called] = {"weight": cell_view(request, model, trace).weight}
            assert "def eager_attention_forward(" in scripts[called]
    assert "torch.tanh(query" in scripts["additive encoder 0"]
    check(printed(scripts, tmp_path), shown)


@pytest.mark.full
def test_interventions_are_in_the_script(tiny_model, tmp_path: Path) -> None:
    model = tiny_model("llama")
    scripts, shown = scripts_of(model, "edited", Scale(0.5), Mask("window", window=3))
    assert all("an intervention of yours" in code for code in scripts.values())
    check(printed(scripts, tmp_path), shown)


@pytest.mark.full
def test_of_a_long_row_the_other_keys_are_one_number(tiny_model, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("attention_models.scripts.cell.MOST_KEYS", 0)
    scripts: Scripts = {}
    shown: Shown = {}
    for kind in ("gpt2", "gemma2", "gpt_oss", "t5"):
        more, wanted = scripts_of(tiny_model(kind), kind)
        scripts |= more
        shown |= wanted
    assert all("others =" in code and "K =" not in code for code in scripts.values())
    check(printed(scripts, tmp_path), shown)


def test_the_engine_answers(gpt) -> None:
    ran = forward(gpt, tiny.SENTENCE)
    request = CellRequest(run=2, site=ran.sites[5].ref, head=5, query=13, key=1)
    view = ask(gpt, ScriptRequest(of=request))
    assert isinstance(view, ScriptView)
    assert view.code.startswith("# story-gpt, decoder layer 5, head 5: how much “to” (13) attends to “Tom” (1)\n")
    stale = failure_of(gpt, ScriptRequest(of=replace(request, run=1)))
    assert stale.stale


@pytest.mark.full
def test_of_a_long_row_of_additive_scores_too(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("attention_models.scripts.cell.MOST_KEYS", 0)
    switches = textbook_folders.KINDS["additive"]
    model = open_checkpoint(textbook_folders.write_folder(tmp_path / "additive", **switches))
    trace = run(model, textbook_folders.TEXT, target="abc")
    view = cell_view(CellRequest(run=1, site=trace.sites[0].ref, head=1, query=5, key=2), model, trace)
    scripts = {"additive": as_pytorch(model, trace, trace.sites[0], 1, 5, 2)}
    check(printed(scripts, tmp_path), {"additive": {"weight": view.weight, "score": view.score}})


def test_a_request_without_lines_and_weights_alone_are_said(tiny_model) -> None:
    class Nothing:
        printed_by = ""

    with pytest.raises(InputError, match="no lines of PyTorch"):
        answer(ScriptRequest(of=Nothing()), None)  # type: ignore[arg-type]
    model = tiny_model("deberta_v2")
    trace = run(model, tiny.SENTENCE)
    with pytest.raises(InputError):
        as_pytorch(model, trace, trace.sites[0], 0, 1, 1)
