"""The scripts of All heads: every thumbnail, and what every head was asked on one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

from attention_models import run
from attention_models.engine.engine import Engine
from attention_models.forward.adopted import adopt
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.request import Result
from attention_models.protocol.roles import PATTERNS, HeadQuestion, WhichHeadsRequest, WhichHeadsView
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.values import SiteRef
from tests.models import textbook_folders, tiny, tiny_vision
from tests.models.asking import ask, failure_of, opened
from tests.models.eager import attentions
from tests.models.scripts.running import Line, few_first, left_by, printed, script
from tests.models.training_folders import trained

TOLERANCE = 1e-6  # float32, added in another order
AGAIN = "Tom and Anna went to the park. Then Tom and Anna went to"

FAMILIES = [
    *("gpt2", "llama", "mistral", "qwen3", "gemma2", "phi3", "gpt_neox", "opt", "gpt_oss", "llama4"),
    *("bert", "albert", "distilbert", "roberta", "modernbert", "deberta_v2"),
    *("t5", "bart", "marian", "t5_encoder", "bert_classifier", "gpt2_bare"),
]


def started(reference: str, **inputs: Any) -> tuple[Engine, Ran]:
    engine = opened(reference)
    ran = ask(engine, ForwardRequest(inputs=RunInputs(**inputs), ticket=2))
    assert isinstance(ran, Ran), ran
    return engine, ran


def model_of(engine: Engine) -> Model:
    assert engine.workspace.model is not None
    return engine.workspace.model


def thumbnails(engine: Engine, request: AtlasRequest) -> AtlasView:
    view = ask(engine, request)
    while isinstance(view, AtlasView) and view.done < 1:
        view = ask(engine, replace(request, have=view.done))
    assert isinstance(view, AtlasView), view
    return view


def check(found: Mapping[str, list[Line]]) -> None:
    for name, lines in found.items():
        assert lines, name
        for line in lines:
            assert line.computed == pytest.approx(line.shown, abs=TOLERANCE), (name, line)


def check_images(code: str, ran: Ran, view: AtlasView) -> None:
    """Every square of every head, and of the mean column."""
    left, places = left_by(code), dict.fromkeys(("encoder", "decoder", "cross"), 0)
    for i, site in enumerate(ran.sites):
        image = left["images"][site.stack][places[site.stack]].numpy()
        mean = left["means"][site.stack][places[site.stack]].numpy()
        places[site.stack] += 1
        heads, rows, columns = image.shape
        assert heads == site.heads
        np.testing.assert_allclose(image, view.images[i, :heads, :rows, :columns], atol=TOLERANCE)
        np.testing.assert_allclose(mean, view.mean[i, :rows, :columns], atol=TOLERANCE)
        assert np.isnan(view.images[i, heads:]).all()
        assert np.isnan(view.images[i, :, rows:]).all()


@few_first(FAMILIES, "gpt2", "gemma2", "bert", "marian")
def test_the_thumbnails_of_every_family(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts = {}
    for kind in kinds:
        target = "to the park" if kind in ("t5", "bart", "marian") else None
        engine, ran = started(str(tiny_folder(kind)), prompt=tiny.SENTENCE, target=target)
        request = AtlasRequest(run=2, size=48)
        scripts[kind] = script(engine, request)
        assert "output_attentions=True" in scripts[kind]
        check_images(scripts[kind], ran, thumbnails(engine, request))
    check(printed(scripts, tmp_path))


def test_they_are_transformers_own_weights(tiny_model, tiny_folder) -> None:
    """Pooled by hand."""
    for kind in ("gpt2", "gemma2", "bert", "marian"):
        model: Model = tiny_model(kind)
        target = "La casa tiene tres puertas" if model.seq2seq else None
        engine, ran = started(str(tiny_folder(kind)), prompt=tiny.SENTENCE, target=target)
        for pooling in ("max", "mean"):
            left = left_by(script(engine, AtlasRequest(run=2, size=5, pooling=pooling)))
            theirs = attentions(tiny.eager_run(model, tiny.SENTENCE, target), model)
            for stack, layers in left["images"].items():
                for layer, image in enumerate(layers):
                    np.testing.assert_allclose(
                        image.numpy(), by_hand(theirs[SiteRef(stack, layer)], 5, pooling), atol=1e-6
                    )
        assert ran.sites


def by_hand(weights: np.ndarray, size: int, pooling: str) -> np.ndarray:
    heads, queries, keys = weights.shape
    cell = -(-max(queries, keys) // size)
    down, across = -(-queries // cell), -(-keys // cell)
    found = np.zeros((heads, down, across))
    for head in range(heads):
        for row in range(down):
            for column in range(across):
                square = weights[head, row * cell : (row + 1) * cell, column * cell : (column + 1) * cell]
                found[head, row, column] = square.max() if pooling == "max" else square.mean()
    return found


@pytest.mark.full
def test_of_a_long_text_the_squares_are_pooled_as_in_the_panel(tmp_path: Path) -> None:
    engine, ran = started("story-gpt", prompt=" ".join([tiny.SENTENCE] * 14))
    scripts = {}
    for pooling in ("max", "mean"):
        request = AtlasRequest(run=2, size=48, pooling=pooling)
        view = thumbnails(engine, request)
        assert view.cell > 3
        scripts[pooling] = script(engine, request)
        check_images(scripts[pooling], ran, view)
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_batches_textbook_recurrent_models_and_pictures(tiny_folder, tmp_path: Path) -> None:
    texts = ("Tom went to the park.", "Anna", "The black cat is sleeping on the table")
    started_with = {
        "left": started(str(tiny_folder("gpt2")), prompt=Batch(texts, padding="left", shown=1)),
        "right": started(str(tiny_folder("bert")), prompt=Batch(texts, shown=1)),
        "translations": started(
            str(tiny_folder("marian")), prompt=Batch(texts, shown=1, targets=("El", "La casa", "a"))
        ),
        "recurrent": started("dates-luong", prompt="3 May 2001", target="2001"),
    }
    for name, switches in textbook_folders.KINDS.items():
        folder = textbook_folders.write_folder(tmp_path / name, **switches)
        shape = switches.get("shape", "encoder-decoder")
        target = "abc" if shape == "encoder-decoder" else None
        started_with[name] = started(str(folder), prompt=textbook_folders.text_for(shape), target=target)
    for kind in ("vit", "dinov2_registers", "clip_vision", "beit"):
        folder = tiny_vision.save(kind, tmp_path / kind)
        started_with[kind] = started(str(folder), picture="sample:chelsea")
    scripts = {}
    first = WhichHeadsRequest(run=2, question=HeadQuestion("first"))
    for name, (engine, ran) in started_with.items():
        request = AtlasRequest(run=2, size=48)
        scripts[name] = script(engine, request)
        check_images(scripts[name], ran, thumbnails(engine, request))
        scripts[f"{name} first"] = script(engine, first)
        check_scores(scripts[f"{name} first"], ran, asked(engine, first))
    assert "w[:, [" in scripts["left"]  # rows of padding that see nothing
    check(printed(scripts, tmp_path, own_classes=True))


EDITS: dict[str, tuple[Intervention, ...]] = {
    "scale": (Scale(2.0),),
    "window": (Mask("window", window=3),),
    "open": (Mask("none"),),
    "blocked": (Mask("painted", cells=((2, 0, False), (2, 1, False), (2, 2, False), (3, 1, False))),),
    "head": (Ablation("head", SiteRef("", 0), 1), Ablation("head", SiteRef("", 1), 0), Scale(0.5)),
}


@pytest.mark.full
def test_interventions_on_attention_are_put_into_the_models_own(tiny_folder, tmp_path: Path) -> None:
    """Of the whole default text, whose queries and keys would be too many to be written out in a larger model."""
    scripts = {}
    ran: Result | None = None
    for kind in ("gpt2", "gemma2", "gpt_oss", "modernbert", "marian", "t5"):
        engine = opened(str(tiny_folder(kind)))
        last = model_of(engine).info.stacks[-1].stack
        of_one_head = (Scale(0.5, head=1, site=SiteRef(last, 0)), Scale(2.0, site=SiteRef(last, 1)))
        for name, edits in {**EDITS, "a head": of_one_head}.items():
            target = "to the park" if kind in ("marian", "t5") else None
            inputs = RunInputs(tiny.SENTENCE, target=target, interventions=edits)
            ran = ask(engine, ForwardRequest(inputs=inputs, ticket=2))
            assert isinstance(ran, Ran), ran
            code = script(engine, AtlasRequest(run=2, size=48))
            assert "from_pretrained" in code
            check_images(code, ran, thumbnails(engine, AtlasRequest(run=2, size=48)))
            if name in ("blocked", "head"):
                scripts[f"{kind} {name}"] = code
        question = WhichHeadsRequest(run=2, question=HeadQuestion("first"))  # of the last edits
        scripts[f"{kind} first"] = script(engine, question)
        assert isinstance(ran, Ran)
        check_scores(scripts[f"{kind} first"], ran, asked(engine, question))
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_interventions_on_a_textbook_transformer(tmp_path: Path) -> None:
    scripts = {}
    for name in ("encoder-decoder", "llama-like", "t5-like"):
        folder = textbook_folders.write_folder(tmp_path / name, **textbook_folders.KINDS[name])
        target = "abc" if name != "llama-like" else None
        engine, ran = started(str(folder), prompt=textbook_folders.TEXT, target=target, interventions=EDITS["head"])
        scripts[name] = script(engine, AtlasRequest(run=2, size=48))
        check_images(scripts[name], ran, thumbnails(engine, AtlasRequest(run=2, size=48)))
    check(printed(scripts, tmp_path, own_classes=True))


@pytest.mark.full
def test_other_edits_are_computed_from_queries_and_keys(tiny_folder, tmp_path: Path) -> None:
    scripts = {}
    first = SiteRef("decoder", 0)
    edits = (Scale(0.5, head=1, site=first), Ablation("mlp", first), Mask("window", window=3))
    for kind in ("gpt2", "llama", "gemma2", "gpt_oss", "t5"):
        inputs = {"prompt": "Tom and Anna went", "target": "to the" if kind == "t5" else None, "interventions": edits}
        engine, ran = started(str(tiny_folder(kind)), **inputs)
        request = AtlasRequest(run=2, size=48)
        scripts[kind] = script(engine, request)
        assert "from_pretrained" not in scripts[kind]
        assert "with your intervention" in scripts[kind]
        check_images(scripts[kind], ran, thumbnails(engine, request))
        column = HeadQuestion("column", site=ran.sites[0].ref, key=1)
        scripts[f"{kind} column"] = script(engine, WhichHeadsRequest(run=2, question=column))
    folder = textbook_folders.write_folder(tmp_path / "additive", **textbook_folders.KINDS["additive"])
    off = (Mask("window", window=2), Ablation("mlp", SiteRef("decoder", 0)))
    engine, ran = started(str(folder), prompt="abc", target="ab", interventions=off)
    scripts["additive"] = script(engine, AtlasRequest(run=2, size=48))
    assert "torch.tanh(Q" in scripts["additive"]
    check_images(scripts["additive"], ran, thumbnails(engine, AtlasRequest(run=2, size=48)))
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_a_step_of_a_training_is_that_step(tmp_path: Path) -> None:
    """Of a textbook transformer, whose folder opens as the end, and of a recurrent model, whose snapshot is read."""
    scripts, images = {}, {}
    trained(tmp_path / "transformer")
    trained(tmp_path / "recurrent", model="recurrent")
    for model in ("transformer", "recurrent"):
        for step in ("@2", ""):
            engine, ran = started(f"{tmp_path / model}{step}", prompt="abca", target="abc")
            name = f"{model}{step}"
            scripts[name] = script(engine, AtlasRequest(run=2, size=48))
            view = thumbnails(engine, AtlasRequest(run=2, size=48))
            check_images(scripts[name], ran, view)
            images[name] = view.images
    assert np.abs(images["recurrent@2"] - images["recurrent"]).max() > 1e-5  # it has learned since
    check(printed(scripts, tmp_path, own_classes=True))


@pytest.mark.full
def test_what_was_written_after_the_text_is_read_along(tiny_folder, tmp_path: Path) -> None:
    scripts = {}
    for kind, prompt in (("gpt2", "Tom and Anna went"), ("bert", "Tom [MASK] to the [MASK].")):
        engine, ran = started(str(tiny_folder(kind)), prompt=prompt, continuation=(40,))
        scripts[kind] = script(engine, AtlasRequest(run=2, size=48))
        check_images(scripts[kind], ran, thumbnails(engine, AtlasRequest(run=2, size=48)))
        scripts[f"{kind} tokens"] = script(engine, ran.request)
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_choices_are_one_question(tiny_folder, tmp_path: Path) -> None:
    choices = Batch((Pair("Tom went", "to the park"), Pair("Tom went", "home")), shown=1)
    engine, ran = started(str(tiny_folder("bert_choice")), prompt=choices)
    code = script(engine, AtlasRequest(run=2, size=48))
    check_images(code, ran, thumbnails(engine, AtlasRequest(run=2, size=48)))
    check(printed({"choice": code}, tmp_path))


@pytest.mark.full
def test_a_model_that_was_handed_over(tiny_folder, tmp_path: Path) -> None:
    folder = tiny_folder("llama")
    module = transformers.AutoModelForCausalLM.from_pretrained(folder)
    adopted = adopt(module, transformers.AutoTokenizer.from_pretrained(folder))
    engine = Engine()
    engine.workspace.open(adopted)
    ran = ask(engine, ForwardRequest(inputs=RunInputs(tiny.SENTENCE), ticket=2))
    assert isinstance(ran, Ran)
    request = AtlasRequest(run=2, size=48)
    code = script(engine, request)
    assert "from_pretrained" not in code
    check_images(code, ran, thumbnails(engine, request))
    check(printed({"adopted": code}, tmp_path))
    adopted.release()


# ------------------------------------------------------------------ what every head was asked


def asked(engine: Engine, request: WhichHeadsRequest) -> WhichHeadsView:
    view = ask(engine, request)
    while isinstance(view, WhichHeadsView) and view.done < 1:
        view = ask(engine, replace(request, have=view.done))
    assert isinstance(view, WhichHeadsView), view
    return view


def check_scores(code: str, ran: Ran, view: WhichHeadsView) -> None:
    """All scores of the stack that is asked last, which is what the script leaves in `scores` and `even`."""
    left = left_by(code)
    last = list({site.stack: None for site in ran.sites if not view.why[ran.sites.index(site)]})[-1]
    rows = [i for i, site in enumerate(ran.sites) if site.stack == last]
    heads = ran.sites[rows[0]].heads
    np.testing.assert_allclose(left["scores"].numpy(), view.scores[rows, :heads], atol=TOLERANCE)
    np.testing.assert_allclose(left["even"].numpy(), view.even[rows], atol=TOLERANCE)


@few_first(("gpt2", "gemma2", "bert", "modernbert", "marian"), "gpt2")
def test_every_pattern(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts = {}
    for kind in kinds:
        target = "to the park, to" if kind == "marian" else None
        engine, ran = started(str(tiny_folder(kind)), prompt=AGAIN, target=target)
        for role in PATTERNS:
            request = WhichHeadsRequest(run=2, question=HeadQuestion(role.name))
            view = asked(engine, request)
            if np.isnan(view.scores).all():
                assert failure_of(engine, ScriptRequest(of=request)).sentence in view.why
                continue
            code = script(engine, request)
            check_scores(code, ran, view)
            if role.name in ("first", "rare", "induction"):
                scripts[f"{kind} {role.name}"] = code
        assert f"{kind} rare" in scripts
    check(printed(scripts, tmp_path))


def test_a_pattern_by_hand(tiny_model, tiny_folder) -> None:
    """The share of attention on an earlier copy, from transformers' own weights, cell by cell."""
    model: Model = tiny_model("gpt2")
    engine, _ = started(str(tiny_folder("gpt2")), prompt=AGAIN)
    left = left_by(script(engine, WhichHeadsRequest(run=2, question=HeadQuestion("copy"))))
    ids = [token.id for token in run(model, AGAIN).tokens]
    theirs = attentions(tiny.eager_run(model, AGAIN, None), model)
    for layer, scores in enumerate(left["scores"]):
        weights = theirs[SiteRef("decoder", layer)]
        shares = []
        for query in range(1, len(ids)):
            earlier = [key for key in range(query) if ids[key] == ids[query]]
            if earlier:
                shares.append(weights[:, query, earlier].sum(axis=-1))
        assert len(shares) > 5
        np.testing.assert_allclose(scores.numpy(), np.mean(shares, axis=0), atol=1e-6)


@pytest.mark.full
def test_cells_rows_columns_and_painted_cells(tiny_folder, tmp_path: Path) -> None:
    scripts = {}
    for kind in ("llama", "mistral", "marian"):
        target = "to the park" if kind == "marian" else None
        engine, ran = started(str(tiny_folder(kind)), prompt=tiny.SENTENCE, target=target)
        site = ran.sites[-1]
        query, key = site.queries - 1, min(3, site.keys - 1)
        for what in ("cell", "row", "column", "painted"):
            cells = ((query, key), (1, 1), (query, 0))
            question = HeadQuestion(what, site=site.ref, head=1, query=query, key=key, cells=cells)
            request = WhichHeadsRequest(run=2, question=question)
            name = f"{kind} {what}"
            scripts[name] = script(engine, request)
            check_scores(scripts[name], ran, asked(engine, request))
    check(printed(scripts, tmp_path))


def test_what_has_no_lines_is_said(tiny_folder, monkeypatch) -> None:
    engine, _ = started(str(tiny_folder("bert")), prompt=tiny.SENTENCE)
    following = WhichHeadsRequest(run=2, question=HeadQuestion("next"))
    assert "nothing has to be copied" in failure_of(engine, ScriptRequest(of=following)).sentence
    monkeypatch.setattr("attention_models.scripts.all_weights._MOST_BYTES", 100)
    sentence = failure_of(engine, ScriptRequest(of=AtlasRequest(run=2, size=48))).sentence
    assert "too many for a script that holds them at once" in sentence
    monkeypatch.undo()
    monkeypatch.setattr("attention_models.scripts.script_text.MOST_NUMBERS", 50)
    off = (Ablation("mlp", SiteRef("decoder", 0)),)
    engine, _ = started(str(tiny_folder("gpt2")), prompt="Tom went", interventions=off)
    sentence = failure_of(engine, ScriptRequest(of=AtlasRequest(run=2, size=48))).sentence
    assert "more than 50 numbers" in sentence
    monkeypatch.undo()
    skip = Ablation("attention", SiteRef("decoder", 0))
    engine, _ = started(str(tiny_folder("bloom")), prompt="Tom went", interventions=(skip,))
    sentence = failure_of(engine, ScriptRequest(of=AtlasRequest(run=2, size=48))).sentence
    assert "keeps queries, keys and scores to itself" in sentence
    engine, _ = started("dates-bottleneck", prompt="3 May 2001", target="2001")
    assert "has no attention" in failure_of(engine, ScriptRequest(of=AtlasRequest(run=2, size=48))).sentence
