"""Everything that the engine answers, on a device that is not the CPU: nothing mixes the two, and no number differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models import (
    adopt,
    attention,
    decode,
    devices,
    logits,
    long_comparison,
    masks,
    open_checkpoint,
    pooling,
    run,
    tiles,
    values,
)
from models.alignment import likelihoods
from models.capture import IMPLEMENTATION
from models.decode_requests import DecodeSamplesRequest, DecodeStepRequest
from models.decode_settings import DecodeSettings
from models.engine import Engine
from models.errors import CheckpointError
from models.interventions import Intervention, Mask, Scale
from models.requests import (
    AtlasRequest,
    CellRequest,
    CompareRequest,
    DevicesRequest,
    ForwardRequest,
    HeadRequest,
    LoadRequest,
    PredictionRequest,
    Request,
    RowRequest,
    TilesRequest,
)
from models.results import DevicesView, Failure, Loaded, Ran, Result
from models.textbook.checkpoint import RecurrentModel
from models.textbook.formulas import compare_with_formulas
from models.textbook.views import score_of
from models.values import AUTO, BEST, Placement, SiteRef, Tile
from tests import pretend_device
from tests.models import inputs, tiny
from tests.models.asking import ask, failure_of, forward
from tests.models.everything import EVERY_FILTER, aligned, everything, open_in, unlike, writing
from tests.models.own_modules import CHARACTERS, CONTEXT, Reader, Writer

DEVICE = f"{pretend_device.NAME}:0"
SITE = SiteRef("decoder", 1)

TEXTS = {"en-es": "Good morning, how are you?", "story-bert": "Tom [MASK] to the [MASK].", "bert": "Tom [MASK] to it."}
PICTURES = {"vit-cifar10": "sample:chelsea", "vit-quickdraw": "sample:fish-1"}


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    """As strict as any: without float64, as Apple's have none."""
    with pretend_device.pretended(no_float64=True):
        yield


def text_of(name: str) -> str:
    return TEXTS.get(name, tiny.SENTENCE)


def check_everything(reference: str | Path, name: str, dtype: str, folder: Path) -> None:
    here, there = (
        everything(open_in(reference, Placement(place, dtype)), text_of(name), folder, PICTURES.get(name, ""))
        for place in ("cpu", DEVICE)
    )
    assert not unlike(here, there)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("story-gpt", "float32"),
        ("story-gpt", "bfloat16"),
        ("story-bert", "float32"),
        ("en-es", "float32"),
        ("vit-cifar10", "bfloat16"),
        ("vit-quickdraw", "float32"),
    ],
)
def test_an_included_model_answers_everything_as_on_the_cpu(tmp_path, name, dtype):
    check_everything(name, name, dtype, tmp_path)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("llama", "float32"),
        ("llama", "bfloat16"),
        ("gemma2", "float32"),
        ("gpt_oss", "bfloat16"),
        ("modernbert", "float32"),
        ("t5", "float32"),
        ("bert2bert", "bfloat16"),
        ("albert", "float32"),
        ("gpt_neo", "float32"),
        ("bloom", "bfloat16"),
        ("deberta_v2", "float32"),
        ("bert_bare", "float32"),
    ],
)
def test_a_family_answers_everything_as_on_the_cpu(tiny_folder, tmp_path, kind, dtype):
    check_everything(tiny_folder(kind), kind, dtype, tmp_path)


@pytest.fixture
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for long texts is done from a few tokens on: fused kernels, blocks of rows, logits made later."""
    for module, name, value in (
        (attention, "EXACT_KEYS", 4),
        (attention, "_ROWS_BLOCK", 512),
        (attention, "_DEVICE_BLOCK", 512),
        (attention, "_LEAST_ROWS", 4),
        (masks, "GROUP", 4),
        (masks, "_BLOCK", 512),
        (masks, "_DEVICE_BLOCK", 512),
        (attention, "_CACHE_BLOCK", 128),
        (pooling, "_DEVICE_BLOCK", 512),
        (pooling, "_BLOCK", 512),
        (tiles, "_DEVICE_BLOCK", 128),
        (tiles, "_BLOCK", {"cpu": 128}),
        (long_comparison, "_DEVICE_BLOCK", 128),
        (long_comparison, "_BLOCK", {"cpu": 128}),
        (logits, "KEPT_BYTES", 1),
        (values, "LARGEST_WHOLE", 4),
    ):
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize(("kind", "dtype"), [("gpt2", "float32"), ("gemma2", "float32"), ("t5", "bfloat16")])
def test_a_long_text_is_answered_as_on_the_cpu(tiny_folder, tmp_path, everything_is_long, kind, dtype):
    check_everything(tiny_folder(kind), kind, dtype, tmp_path)


@pytest.mark.parametrize("how", ["sdpa", "attend", "torch's encoder", "transformers"])
def test_a_model_that_was_handed_over_is_run_where_it_lies(tiny_folder, tmp_path, how):
    answers = []
    for place in ("cpu", DEVICE):
        if how == "transformers":
            folder = tiny_folder("llama")
            module = aligned(AutoModelForCausalLM.from_pretrained(folder)).to(place)
            adopted = adopt(module, AutoTokenizer.from_pretrained(folder))
        elif how == "torch's encoder":
            adopted = adopt(Reader().to(place), CHARACTERS, family="encoder", context=CONTEXT)
        else:
            adopted = adopt(Writer(how).to(place), CHARACTERS, context=CONTEXT)
        engine = Engine([adopted])
        loaded = ask(engine, LoadRequest(ticket=1, reference=adopted.info.reference))
        assert isinstance(loaded, Loaded)
        assert loaded.placement.device == place
        answers.append(list(everything(engine, "Tom went to the park.", tmp_path)))
        adopted.release()
    here, there = answers
    assert not unlike(iter(here), iter(there))


def test_a_recurrent_model_can_be_moved_by_hand():
    here, there = open_checkpoint("dates-luong"), open_checkpoint("dates-luong")
    there.module.to(DEVICE)
    assert isinstance(there, RecurrentModel)
    text, target = "March 1st, 2020", "2020-03"
    trace = run(there, text, target=target)
    np.testing.assert_allclose(trace.logits, run(here, text, target=target).logits, atol=1e-5)
    assert compare_with_formulas(there, trace).logit_difference < 1e-5
    assert score_of(there, trace, 0, 0)[1].shape == (len(trace.source),)
    written = [[step.text for step in decode(model, text, strategy="beam", beams=2)] for model in (here, there)]
    assert written[0] == written[1]


def told_of_cards(monkeypatch: pytest.MonkeyPatch, first: int, second: int) -> None:
    """accelerate, which knows the real ones, is told of these cards and how many bytes they have."""
    cards = {DEVICE: first, "pretend:1": second, "cpu": 1_000_000_000}
    monkeypatch.setattr("transformers.integrations.accelerate.get_max_memory", lambda _asked=None: cards)


def test_a_model_spread_over_two_cards_and_the_cpu_answers_the_same(monkeypatch, tmp_path):
    """What fits on neither card is kept aside on the CPU until it runs."""
    told_of_cards(monkeypatch, 16_000_000, 9_000_000)
    spread = Engine()
    loaded = ask(spread, LoadRequest(ticket=1, reference="story-gpt", placement=Placement(AUTO)))
    assert isinstance(loaded, Loaded)
    assert loaded.device == "PRETEND 1 (Card 1), PRETEND 0 (Card 0), CPU"
    assert loaded.placement == Placement(AUTO)
    here = everything(open_in("story-gpt", Placement("cpu")), tiny.SENTENCE, tmp_path)
    assert not unlike(here, everything(spread, tiny.SENTENCE, tmp_path))
    assert spread._run is not None
    assert {x.query.device.index for x in spread._run.trace.inputs} == {0, 1}


# accelerate says of a buffer beside the modules (mBART's) that it is no module
@pytest.mark.filterwarnings("ignore:The following device_map keys do not match any submodules")
@pytest.mark.parametrize("kind", ["llama", "bert", "mbart", "t5", "gpt_oss", "modernbert"])
def test_a_family_can_be_spread(tiny_folder, monkeypatch, kind):
    here = open_checkpoint(tiny_folder(kind))
    size = sum(p.nbytes for p in aligned(here.module).parameters())
    told_of_cards(monkeypatch, size * 6 // 10, size)
    there = open_checkpoint(tiny_folder(kind), device=AUTO)
    text = text_of("bert") if here.info.mask_token else tiny.SENTENCE
    np.testing.assert_array_equal(run(there, text).logits, run(here, text).logits)
    assert {str(p.device) for p in there.module.parameters()} == {DEVICE, "pretend:1"}


def test_a_model_that_can_not_be_spread_after_all_is_refused_with_what_to_do(tiny_folder, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise IndexError("list index out of range")  # as transformers 5.24, of some tied weights

    monkeypatch.setattr("transformers.integrations.accelerate.get_max_memory", broken)
    with pytest.raises(CheckpointError, match=r"can not be loaded: list index out of range. Choose one device"):
        open_checkpoint(tiny_folder("llama"), device=AUTO)


def test_a_vision_model_can_be_spread(monkeypatch):
    here = open_checkpoint("vit-cifar10")
    size = sum(p.nbytes for p in aligned(here.module).parameters())
    told_of_cards(monkeypatch, size * 6 // 10, size)
    there = open_checkpoint("vit-cifar10", device=AUTO)
    picture = PICTURES["vit-cifar10"]
    np.testing.assert_array_equal(run(there, picture).logits, run(here, picture).logits)
    assert {str(p.device) for p in there.module.parameters()} == {DEVICE, "pretend:1"}


@pytest.mark.parametrize("kind", ["albert", "distilbert", "electra", "deberta_v2", "marian"])
def test_a_family_that_accelerate_would_part_within_its_attention_stays_on_one_card(tiny_folder, monkeypatch, kind):
    here = open_checkpoint(tiny_folder(kind))
    size = sum(p.nbytes for p in aligned(here.module).parameters())
    told_of_cards(monkeypatch, size // 2, size)
    there = open_checkpoint(tiny_folder(kind), device=AUTO)
    text = text_of("bert") if here.info.mask_token else tiny.SENTENCE
    np.testing.assert_array_equal(run(there, text).logits, run(here, text).logits)
    assert {str(p.device) for p in there.module.parameters()} == {DEVICE}


def test_accelerators_are_told_and_the_first_is_taken():
    view = ask(Engine(), DevicesRequest())
    assert isinstance(view, DevicesView)
    _, first, second, spread = view.devices
    assert (first.name, first.label, first.total) == (DEVICE, "PRETEND 0 (Card 0)", pretend_device.TOTAL)
    assert (second.name, spread.name) == ("pretend:1", AUTO)
    engine = Engine()
    loaded = ask(engine, LoadRequest(ticket=1, reference="vit-quickdraw", placement=Placement(BEST, "float16")))
    assert isinstance(loaded, Loaded)
    assert (loaded.device, loaded.placement) == ("PRETEND 0 (Card 0)", Placement(DEVICE, "float16"))


def test_a_driver_that_does_not_tell_its_memory(monkeypatch):
    """As Intel's integrated graphics: the function is there, and raises."""

    def silent(_: Any) -> None:
        raise RuntimeError("The device doesn't support querying the available free memory.")

    monkeypatch.setattr(torch.get_device_module(pretend_device.NAME), "mem_get_info", silent)
    view = ask(Engine(), DevicesRequest())
    assert isinstance(view, DevicesView)
    assert [(device.free, device.total) for device in view.devices[1:3]] == [(None, None)] * 2
    loaded = ask(Engine(), LoadRequest(ticket=1, reference="vit-quickdraw", placement=Placement(DEVICE)))
    assert isinstance(loaded, Loaded)


# --------------------------------------------------------------------------- when memory runs out


def taken() -> int:
    devices.free()
    return pretend_device.held()


def test_memory_that_torch_keeps_for_later_is_free():
    before = taken()
    gone = torch.zeros(10_000_000, device=DEVICE)
    del gone
    pretend_device.set_budget(before + 50_000_000)
    driver = torch.get_device_module(DEVICE)
    assert driver.mem_get_info(torch.device(DEVICE))[0] == 10_000_000  # it keeps 40 MB
    assert devices.free_memory(torch.device(DEVICE)) == (50_000_000, before + 50_000_000)
    engine = open_in("story-gpt", Placement(DEVICE))  # takes 34.2 MB
    pretend_device.set_budget(None)
    loaded = ask(engine, LoadRequest(ticket=2, reference="vit-quickdraw", placement=Placement(DEVICE)))
    assert isinstance(loaded, Loaded)
    assert driver.memory_reserved(torch.device(DEVICE)) == pretend_device.held() < before + 10_000_000  # given back


def test_a_model_that_does_not_fit_is_let_go_and_the_open_one_stays():
    engine = open_in("vit-quickdraw", Placement(DEVICE))
    before = taken()
    pretend_device.set_budget(before + 35_000_000)  # its 34.2 MB fit, and what a run takes does not
    load = LoadRequest(ticket=2, reference="story-gpt", placement=Placement(DEVICE))
    failure = failure_of(engine, load)
    assert failure.sentence.startswith("story-gpt in float32 does not fit on pretend:0: there is not enough memory.")
    assert failure.no_room == Placement(DEVICE)
    assert taken() == before
    pretend_device.set_budget(before + 30_000_000)
    failure = failure_of(engine, load)
    assert "story-gpt takes 34.2 MB of memory to open in float32, and 30.0 MB are free on PRETEND 0" in failure.sentence
    assert failure.no_room == Placement(DEVICE)
    assert isinstance(ask(engine, ForwardRequest(ticket=3, text="", picture="sample:fish-1")), Ran)


def test_a_text_that_does_not_fit_is_let_go_and_the_run_before_stays():
    engine = open_in("story-gpt", Placement(DEVICE))
    forward(engine, "Tom and Anna", ticket=2)
    before = taken()
    pretend_device.set_budget(before + 1_000_000)
    failure = failure_of(engine, ForwardRequest(ticket=3, text=tiny.SENTENCE * 8))
    assert failure.sentence.startswith("There is not enough memory for this.")
    assert failure.no_room == Placement(DEVICE)
    assert taken() == before
    assert not isinstance(ask(engine, HeadRequest(run=2, site=SITE, head=0)), Failure)
    pretend_device.set_budget(None)
    forward(engine, tiny.SENTENCE * 8, ticket=4)


def test_a_model_that_is_closed_leaves_nothing_there():
    engine = open_in("vit-quickdraw", Placement(DEVICE))
    before = taken()
    for reference in ("story-gpt", "vit-quickdraw"):
        loaded = ask(engine, LoadRequest(ticket=2, reference=reference, placement=Placement(DEVICE)))
        assert isinstance(loaded, Loaded)
        if reference == "story-gpt":
            ran = forward(engine, tiny.SENTENCE)
            assert not isinstance(ask(engine, AtlasRequest(run=2, size=16)), Failure)
            list(writing(engine, tiny.SENTENCE, ran.sites[0].ref, (Scale(0.5),)))
            assert taken() > before + 30_000_000
    assert taken() < before + 5000  # a table of what is the future, for as many tokens


@pytest.mark.parametrize("room", [0, 4000])
def test_what_is_computed_in_parts_begins_anew_where_it_failed(tiny_folder, monkeypatch, room):
    monkeypatch.setattr(values, "LARGEST_WHOLE", 4)
    requests = (AtlasRequest(run=2, size=16), CompareRequest(run=2, site=SITE, head=0, position=5))
    answers: list[list[tuple[Request, Result]]] = [[], []]
    for request, fails in product(requests, (False, True)):
        engine = open_in(tiny_folder("gpt2"), Placement(DEVICE))
        forward(engine, tiny.SENTENCE)
        if fails:
            pretend_device.set_budget(taken() + room)
            assert isinstance(ask(engine, request), Failure)
            pretend_device.set_budget(None)
        answers[fails].append((request, ask(engine, request)))
    assert not unlike(iter(answers[0]), iter(answers[1]))


# --------------------------------------------------------------------------- what the CPU waits for


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "modernbert", "t5", "bart"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_captured_run_waits_no_more_often_than_one_by_torchs_own_attention(tiny_folder, kind, dtype):
    model = open_checkpoint(tiny_folder(kind), device=DEVICE, dtype=dtype)
    text = text_of(kind)
    with pretend_device.counted() as ours:
        run(model, text)
    edits: list[Intervention] = [Scale(0.5), Mask("window", window=3), Mask("painted", cells=((3, 1, False),))]
    with pretend_device.counted() as edited:
        run(model, text, interventions=edits)
    module: Any = model.module
    module.set_attn_implementation("sdpa")
    with torch.no_grad(), pretend_device.counted() as plain:
        module(**model.encode(text).inputs, **model.forward_options)
    assert ours.to_host == edited.to_host == plain.to_host
    assert ours.to_device == plain.to_device


@pytest.mark.parametrize(("kind", "more"), [("mistral", 2), ("gemma3", 2), ("modernbert", 1), ("llama", 0)])
def test_a_long_run_waits_for_each_kind_of_mask_not_for_each_layer(tiny_folder, monkeypatch, kind, more):
    """Once for the table of what its rows reach, and once, where transformers did not, to see that none is padded."""
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    monkeypatch.setattr(attention, "EXACT_KEYS", 1)
    model = open_checkpoint(tiny_folder(kind), device=DEVICE)
    text = text_of(kind)
    edits: list[Intervention] = [Mask("window", window=3), Mask("painted", cells=((3, 1, False),), head=1)]
    module: Any = model.module
    module.set_attn_implementation("sdpa")
    with torch.no_grad(), pretend_device.counted() as plain:
        module(**model.encode(text).inputs, **model.forward_options)
    module.set_attn_implementation(IMPLEMENTATION)
    with pretend_device.counted() as ours:
        trace = run(model, text)
    assert ours.to_host == plain.to_host + more
    with pretend_device.counted() as edited:
        run(model, text, interventions=edits)
    kinds = len({None if x.mask is None else id(x.mask) for x in trace.inputs})
    # window, and window with a cell; of each mask as trained, whose own table is not made
    assert edited.to_host == plain.to_host + (more == 2) + 2 * kinds


def waits(engine: Engine, request: Request) -> int:
    with pretend_device.counted() as counts:
        answer = ask(engine, request)
    assert not isinstance(answer, Failure)
    return counts.to_host


def test_what_is_looked_at_comes_in_few_copies():
    """Each number asked of a device by itself is a wait for all that it was given to do."""
    engine = open_in("story-gpt", Placement(DEVICE))
    ran = forward(engine, tiny.SENTENCE)
    cell: dict[str, Any] = {"run": 2, "site": SITE, "head": 0}
    last = len(ran.tokens) - 1
    assert waits(engine, PredictionRequest(run=2, positions=(0, last))) == 2  # a copy each
    assert waits(engine, HeadRequest(**cell)) <= 2
    assert waits(engine, RowRequest(**cell, query=last)) <= 2
    assert waits(engine, TilesRequest(**cell, tiles=(Tile(0, 0, 0),))) == 1
    assert waits(engine, AtlasRequest(run=2, size=64)) <= 3 * len(ran.sites)  # a block each: two pictures and a sum
    assert waits(engine, CellRequest(**cell, query=last, key=0)) <= 26
    told: dict[str, Any] = {"text": tiny.SENTENCE, "steps": 3, "number": 1}
    for settings in (DecodeSettings(), EVERY_FILTER, DecodeSettings(strategy="beam", beams=3)):
        assert waits(engine, DecodeStepRequest(**told, settings=settings)) <= 4
    samples = DecodeSamplesRequest(**told, settings=EVERY_FILTER, samples=(0, 1, 2), ids=((), (), ()))
    assert waits(engine, samples) <= 3


@pytest.mark.parametrize("case", ["bool mask", "float mask", "causal"])
def test_a_block_of_rows_is_found_in_one_copy(case):
    x = inputs.make(case)
    mask = None if x.mask is None else x.mask.to(DEVICE)
    there = replace(x, query=x.query.to(DEVICE), key=x.key.to(DEVICE), mask=mask)
    with pretend_device.counted() as counts:
        assert attention.reach(there, [0], slice(2, 5)) == attention.reach(x, [0], slice(2, 5))
    assert counts.to_host == (0 if case == "causal" else 1)


def test_how_likely_each_word_was_comes_in_one_copy():
    model = open_checkpoint("en-es", device=DEVICE)
    trace = run(model, TEXTS["en-es"], target="Buenos días, ¿cómo estás?")
    with pretend_device.counted() as counts:
        likelihoods(trace)
    assert counts.to_host == 1
