"""The engine: every request answered, every mishap a sentence, and what was open stays open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import run
from attention_models.decoding.beam import BEAMS, MOST_WRITTEN
from attention_models.decoding.choosing import end_ids
from attention_models.decoding.decode import decode
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.decoding import DecodeStepView, into_input
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import DescribeRequest, Loaded, LoadRequest
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.request import Cancelled, Failure, Request
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import Placement, SiteRef
from tests.models import tiny
from tests.models.asking import SITE, ask, failure_of, forward, never, opened, still_holds
from tests.models.tiny import TinyFolder

ROOT = Path(__file__).resolve().parents[3]
VIEWS: list[Callable[[int], Request]] = [
    lambda run: HeadRequest(run=run, site=SITE, head=2),
    lambda run: AtlasRequest(run=run, size=8),
    lambda run: PredictionRequest(run=run, positions=(0,)),
    lambda run: TrustRequest(run=run),
]


# --------------------------------------------------------------------------- answers


def test_load() -> None:
    said: list[str] = []
    request = LoadRequest(ticket=7, reference="story-bert")
    loaded = Engine().run(request, never, lambda label, _: said.append(label))
    assert isinstance(loaded, Loaded)
    assert loaded.info.name == "story-bert"
    assert (loaded.device, loaded.dtype, loaded.eval_mode) == ("CPU", "float32", True)
    assert loaded.seconds > 0
    assert said == ["Opening story-bert"]


def test_of_a_folder_its_name_is_said_and_not_where_it_lies(tmp_path) -> None:
    said: list[str] = []
    Engine().run(LoadRequest(reference=str(tmp_path / "mine")), never, lambda label, _: said.append(label))
    assert said == ["Opening mine"]


def test_of_a_hub_its_whole_name_is_said() -> None:
    said: list[str] = []
    Engine().run(LoadRequest(reference="hf://owner/name"), never, lambda label, _: said.append(label))
    assert said[0] == "Opening hf://owner/name"


def test_forward(gpt: Engine) -> None:
    ran = forward(gpt, tiny.SENTENCE, ticket=11)
    assert (ran.run, ran.inputs.prompt) == (11, tiny.SENTENCE)
    assert ran.tokens[0].label == "⟨start⟩"
    assert "".join(token.text for token in ran.tokens) == tiny.SENTENCE
    assert [site.ref for site in ran.sites] == [SiteRef("decoder", layer) for layer in range(8)]
    assert ran.masks == ()
    assert ran.trace_bytes > 14 * 8192 * 4


def test_masks_are_found(bert: Engine) -> None:
    ran = forward(bert, "[MASK] and Anna went to the [MASK].")
    assert ran.masks == (1, 7)
    assert all(ran.tokens[i].piece == "[MASK]" for i in ran.masks)


def test_head(gpt: Engine, story_gpt: Model) -> None:
    forward(gpt, tiny.SENTENCE)
    view = ask(gpt, HeadRequest(run=2, site=SITE, head=5))
    assert isinstance(view, HeadView)
    assert (view.request.run, view.request.site, view.request.head) == (2, SITE, 5)
    assert np.array_equal(view.weights, run(story_gpt, tiny.SENTENCE).weights(SITE, 5))
    assert view.masked is not None
    assert np.array_equal(view.masked, np.triu(np.ones((14, 14), bool), 1))
    assert (view.weights[view.masked] == 0).all()


def test_head_that_sees_everything(bert: Engine) -> None:
    forward(bert, "Tom and Anna")
    view = ask(bert, HeadRequest(run=2, site=SiteRef("encoder", 0), head=0))
    assert isinstance(view, HeadView)
    assert view.masked is None


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_atlas(gpt: Engine, story_gpt: Model, pooling: Any) -> None:
    forward(gpt, tiny.SENTENCE)
    view = ask(gpt, AtlasRequest(run=2, size=8, pooling=pooling))
    assert isinstance(view, AtlasView)
    assert (view.request.run, view.cell, view.request.pooling) == (2, 2, pooling)
    assert np.array_equal(view.images, run(story_gpt, tiny.SENTENCE).atlas(8, pooling))
    assert view.mean.shape == (8, 7, 7)
    assert view.row_error < 1e-5


def test_predictions(gpt: Engine) -> None:
    forward(gpt, tiny.SENTENCE)
    view = ask(gpt, PredictionRequest(run=2, positions=(13, 4), top=5))
    assert isinstance(view, PredictionView)
    assert [p.position for p in view.predictions] == [13, 4]
    assert [len(p.candidates) for p in view.predictions] == [5, 5]
    assert view.predictions[0].candidates[0].label == "␣Tom"


def test_trust(gpt: Engine) -> None:
    forward(gpt, tiny.SENTENCE)
    report = ask(gpt, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert report.request.run == 2
    assert report.holds
    assert report.logit_difference == 0.0


def test_step(gpt: Engine) -> None:
    forward(gpt, tiny.SENTENCE)
    request = into_input(RunInputs(tiny.SENTENCE))
    stepped = ask(gpt, request)
    assert isinstance(stepped, DecodeStepView)
    assert (stepped.request, stepped.whole, stepped.ending) == (request, tiny.SENTENCE + " Tom", "steps")
    assert stepped.chosen is not None
    assert stepped.chosen.label == "␣Tom"
    assert failure_of(gpt, into_input(RunInputs("Another text"))).stale


def test_step_fills_a_mask(bert: Engine) -> None:
    forward(bert, "Anna went [MASK] the park.")
    stepped = ask(bert, into_input(RunInputs("Anna went [MASK] the park.")))
    assert isinstance(stepped, DecodeStepView)
    assert stepped.chosen is not None
    assert stepped.whole == f"Anna went {stepped.chosen.label.removeprefix('␣')} the park."
    assert isinstance(stepped.whole, str)
    forward(bert, stepped.whole, ticket=3)
    assert "no [MASK] to fill" in failure_of(bert, into_input(RunInputs(stepped.whole))).sentence


def test_one_token(gpt: Engine, bert: Engine) -> None:
    assert len(forward(gpt, "a").tokens) == 2  # and the start
    assert [token.text for token in forward(bert, "a").tokens] == ["", "a", ""]
    view = ask(gpt, HeadRequest(run=2, site=SITE, head=0))
    assert isinstance(view, HeadView)
    assert view.weights.shape == (2, 2)
    atlas = ask(gpt, AtlasRequest(run=2, size=32))
    assert isinstance(atlas, AtlasView)
    assert atlas.images.shape == (8, 8, 2, 2)


def test_translator_is_run_on_what_it_writes(tiny_folder: TinyFolder) -> None:
    engine = opened(str(tiny_folder("marian")))
    ran = forward(engine, tiny.SENTENCE)
    *_, last = decode(open_checkpoint(tiny_folder("marian")), tiny.SENTENCE, MOST_WRITTEN, strategy="beam", beams=BEAMS)
    ended = last.ids[-1] in end_ids(open_checkpoint(tiny_folder("marian")))
    assert ran.tokens[0].label == "⟨start⟩"
    assert tuple(token.id for token in ran.tokens[1:]) == (last.ids[:-1] if ended else last.ids)
    assert ran.written == last.text
    assert "".join(token.text for token in ran.source if not token.special).replace(" ", "") in tiny.SENTENCE.replace(
        " ", ""
    )
    for request in (HeadRequest(run=2, site=SiteRef("cross", 1), head=3), AtlasRequest(run=2, size=8)):
        assert not isinstance(ask(engine, request), Failure)
    assert "written its whole answer" in failure_of(engine, into_input(RunInputs(tiny.SENTENCE))).sentence


def test_vectors_but_no_words(tiny_folder: TinyFolder) -> None:
    engine = opened(str(tiny_folder("bert_bare")))
    forward(engine, tiny.SENTENCE)
    assert isinstance(ask(engine, AtlasRequest(run=2, size=8)), AtlasView)
    assert "no output head" in failure_of(engine, PredictionRequest(run=2, positions=(0,))).sentence


def test_arrays_can_not_be_written_to(gpt: Engine) -> None:
    forward(gpt, tiny.SENTENCE)
    head, atlas = ask(gpt, HeadRequest(run=2, site=SITE, head=0)), ask(gpt, AtlasRequest(run=2, size=8))
    assert isinstance(head, HeadView)
    assert isinstance(atlas, AtlasView)
    assert head.masked is not None
    for array in (head.weights, head.masked, atlas.images, atlas.mean):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


def test_results_hold_no_tensors(gpt: Engine) -> None:
    forward(gpt, tiny.SENTENCE)
    for view in VIEWS:
        result = ask(gpt, view(2))
        for name in (field for kind in type(result).__mro__ for field in getattr(kind, "__slots__", ())):
            assert not isinstance(getattr(result, name), torch.Tensor)


# --------------------------------------------------------------------------- what is gone


@pytest.mark.parametrize("view", VIEWS)
def test_run_that_is_gone(gpt: Engine, view: Callable[[int], Request]) -> None:
    forward(gpt, "Tom", ticket=20)
    forward(gpt, "Anna", ticket=21)
    assert not isinstance(ask(gpt, view(21)), Failure)
    for run_ticket in (20, 22, 0):
        failure = failure_of(gpt, view(run_ticket))
        assert failure.stale
        assert failure.sentence == ""


def test_other_checkpoint_takes_the_run_along(tiny_folder: TinyFolder) -> None:
    engine = opened(str(tiny_folder("gpt2")))
    forward(engine, "Tom")
    assert isinstance(ask(engine, LoadRequest(reference=str(tiny_folder("llama")))), Loaded)
    assert failure_of(engine, AtlasRequest(run=2, size=8)).stale
    assert forward(engine, "Tom", ticket=3).sites[0].key_heads == 2


def test_nothing_is_open_yet() -> None:
    engine = Engine()
    failure = failure_of(engine, ForwardRequest(inputs=RunInputs("Tom"), ticket=1))
    assert failure.sentence == "No checkpoint is open yet. Open one first."
    assert not failure.stale
    for view in VIEWS:
        assert failure_of(engine, view(0)).stale


# --------------------------------------------------------------------------- called off, and faults


def stop_at(poll: int) -> Callable[[], bool]:
    polls = iter(range(1, poll + 1))
    return lambda: next(polls) == poll


@pytest.mark.parametrize(
    ("request_of", "polls"),
    [
        (lambda: ForwardRequest(inputs=RunInputs("Tom and Anna"), ticket=81), 1),
        (lambda: ForwardRequest(inputs=RunInputs("Tom and Anna"), ticket=81), 5),
        (lambda: AtlasRequest(run=80, size=8), 3),
        (lambda: TrustRequest(run=80), 4),
        (lambda: LoadRequest(reference="story-bert"), 1),
    ],
)
def test_called_off(gpt: Engine, request_of: Callable[[], Request], polls: int) -> None:
    forward(gpt, tiny.SENTENCE, ticket=80)
    with pytest.raises(Cancelled):
        ask(gpt, request_of(), stop_at(polls))
    view = ask(gpt, HeadRequest(run=80, site=SITE, head=0))
    assert isinstance(view, HeadView)
    assert view.weights.shape == (14, 14)


def too_large(*_: Any, **__: Any) -> Any:
    return torch.empty(1 << 50)


def out_of_memory(*_: Any, **__: Any) -> Any:
    raise MemoryError


@pytest.mark.parametrize("shortage", [too_large, out_of_memory])
def test_not_enough_memory(gpt: Engine, monkeypatch: pytest.MonkeyPatch, shortage: Callable[..., Any]) -> None:
    forward(gpt, tiny.SENTENCE, ticket=90)
    monkeypatch.setattr("attention_models.engine.running.run_each", shortage)
    failure = failure_of(gpt, ForwardRequest(inputs=RunInputs("Tom"), ticket=91))
    assert "not enough memory" in failure.sentence
    assert "Shorten the text" in failure.sentence
    assert failure.cause.startswith("Traceback")
    assert failure.no_room == Placement("cpu", "float32")
    assert still_holds(gpt, 90)


def test_not_enough_memory_to_describe(gpt: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers' error is dressed up on its way, as one of the config."""
    forward(gpt, tiny.SENTENCE, ticket=95)
    monkeypatch.setattr("attention_models.opening.inspect_checkpoint.AutoConfig.from_pretrained", out_of_memory)
    failure = failure_of(gpt, DescribeRequest(reference="en-es", ticket=96))
    assert "not enough memory to say what this is" in failure.sentence
    assert still_holds(gpt, 95)


def test_fault_of_the_program_is_not_dressed_up(gpt: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("sizes differ")

    monkeypatch.setattr("attention_models.engine.running.run_each", broken)
    with pytest.raises(RuntimeError, match="sizes differ"):
        ask(gpt, ForwardRequest(inputs=RunInputs("Tom"), ticket=1))


def test_request_of_no_kind(gpt: Engine) -> None:
    with pytest.raises(TypeError, match="no answer to a Request"):
        ask(gpt, Request())


@pytest.mark.parametrize(
    "module",
    [
        "attention_models.protocol.values",
        "attention_models.protocol.errors",
        "attention_models.protocol.hub",
        "attention_models.files.catalogue",
    ],
)
def test_imports_no_torch(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert module in loaded
    assert not {"torch", "transformers", "tokenizers", "safetensors"}.intersection(loaded)


@pytest.mark.parametrize("name", ["open_checkpoint", "run", "Trace", "Model"])
def test_names_of_the_package(name: str) -> None:
    import attention_models as models

    assert name in dir(models)
    assert getattr(models, name).__name__ == name


def test_unknown_name_of_the_package() -> None:
    import attention_models as models

    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = models.nonsense  # type: ignore[attr-defined]
