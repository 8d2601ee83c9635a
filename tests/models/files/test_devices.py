"""Devices and number formats: what there is, what is refused, and that every request is answered in each format."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import accelerate
import numpy as np
import psutil
import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.files import devices
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.opening.checkpoint_inspector import CheckpointInspector
from attention_models.opening.open import open_examined
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.comparison import CompareRequest
from attention_models.protocol.decoding import into_input
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.loading import DevicesRequest, DevicesView, Loaded, LoadRequest
from attention_models.protocol.positions import PositionsRequest, ShuffleRequest
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.request import Failure, ShouldStop
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import BEST, UNIT_ROUNDOFFS, Placement, SiteRef
from attention_models.protocol.variance import VarianceRequest
from tests.models import tiny
from tests.models.asking import ask, failure_of

SITE = SiteRef("decoder", 3)
HALF = ["bfloat16", "float16"]


def test_the_cpu_is_always_there_and_first(monkeypatch):
    monkeypatch.setattr(devices, "_CONTAINER", ())
    first, *others = devices.devices()
    assert (first.name, first.label) == ("cpu", "CPU")
    assert first.total == psutil.virtual_memory().total
    assert first.free is not None
    assert 0 < first.free <= psutil.virtual_memory().total
    assert len(others) == (torch.accelerator.device_count() and torch.accelerator.device_count() + 1)


@pytest.mark.parametrize(
    ("most", "used", "expected"),
    [
        ("1000000000", "400000000", (600_000_000, 1_000_000_000)),
        ("1000000000", "1400000000", (0, 1_000_000_000)),
        ("max", "5", None),
        ("9223372036854771712", "5", None),
        ("", "", None),
    ],
)
def test_a_container_may_have_less_than_its_computer(monkeypatch, tmp_path, most, used, expected):
    (tmp_path / "max").write_text(most)
    (tmp_path / "current").write_text(used)
    monkeypatch.setattr(devices, "_CONTAINER", ((tmp_path / "max", tmp_path / "current"),))
    found = devices.free_memory(torch.device("cpu"))
    if expected is None:
        assert found[1] == psutil.virtual_memory().total
    else:
        assert found == expected


def test_the_best_device_is_an_accelerator_where_there_is_one():
    device, dtype = devices.parse(Placement(BEST))
    assert dtype is torch.float32
    assert device is not None
    assert (device.type == "cpu") != torch.accelerator.is_available()


@pytest.mark.parametrize("name", ["quantum", "xla:99", "cuda:99", "", "mps:7", "cpu:7", "cpu:1"])
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(CheckpointError, match=f"no device “{name}”"):
        devices.parse(Placement(name))


def test_a_number_format_that_is_none_is_refused():
    with pytest.raises(CheckpointError, match=r"“int3” is no number format.*float32, bfloat16 or float16"):
        open_checkpoint("story-gpt", dtype="int3")


class Pretended:
    """As `torch.cuda` where there are two cards."""

    @staticmethod
    def mem_get_info(device: torch.device) -> tuple[int, int]:
        return 10_000_000_000 * (device.index + 1), 80_000_000_000

    @staticmethod
    def get_device_name(device: torch.device) -> str:
        return f"Card {device.index}"


@pytest.fixture
def two_cards(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch, "cuda", Pretended)


def test_accelerators_are_listed_with_their_memory(two_cards):
    cpu, first, second, spread = devices.devices()
    assert (first.name, first.label, first.free) == ("cuda:0", "CUDA 0 (Card 0)", 10_000_000_000)
    assert (second.name, second.total) == ("cuda:1", 80_000_000_000)
    assert spread.name == "auto"
    assert cpu.total is not None
    assert spread.total == cpu.total + 160_000_000_000
    assert devices.parse(Placement(BEST, "float16")) == (torch.device("cuda", 0), torch.float16)
    assert devices.parse(Placement("cuda"))[0] == torch.device("cuda", 0)
    with pytest.raises(CheckpointError, match=r"“cuda:2”.*cpu, cuda:0 or cuda:1"):
        devices.parse(Placement("cuda:2"))


def test_mps_has_what_the_driver_recommends_less_what_tensors_take(monkeypatch):
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 10_000_000_000)
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 3_000_000_000)
    assert devices.free_memory(torch.device("mps", 0)) == (7_000_000_000, 10_000_000_000)


def test_spreading_needs_accelerate(two_cards, monkeypatch):
    monkeypatch.setattr(devices, "is_installed", lambda _name: False)
    assert [device.name for device in devices.devices()] == ["cpu", "cuda:0", "cuda:1"]
    with pytest.raises(CheckpointError, match="python -m pip install accelerate"):
        devices.parse(Placement("auto"))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_equals_eager_in_that_precision(dtype):
    model = open_checkpoint("story-gpt", dtype=dtype)
    text = "Tom and Anna went to the park."
    trace = run(model, text)
    eager: Any = AutoModelForCausalLM.from_pretrained(
        model.info.folder, dtype=getattr(torch, dtype), attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        out = eager(torch.tensor([[token.id for token in trace.tokens]]), output_attentions=True)
    tolerance = 20 * UNIT_ROUNDOFFS[dtype]  # of two runs from end to end, where rounding adds up
    for layer, weights in enumerate(out.attentions):
        for head in range(weights.shape[1]):
            assert np.abs(trace.weights(layer, head) - weights[0, head].float().numpy()).max() <= tolerance
    logits = out.logits[0].float().numpy()
    assert np.abs(trace.logits - logits).max() / np.abs(logits).max() <= tolerance


@pytest.mark.full
@pytest.mark.parametrize("dtype", HALF)
def test_every_view_is_answered_in_half_precision(dtype):
    engine = Engine()
    loaded = ask(engine, LoadRequest(ticket=1, reference="story-gpt", placement=Placement("cpu", dtype)))
    assert isinstance(loaded, Loaded)
    assert (loaded.device, loaded.dtype, loaded.placement) == ("CPU", dtype, Placement("cpu", dtype))
    ran = ask(engine, ForwardRequest(inputs=RunInputs(tiny.SENTENCE), ticket=2))
    assert isinstance(ran, Ran)
    for request in (
        HeadRequest(run=2, site=SITE, head=0),
        AtlasRequest(run=2, size=32),
        PredictionRequest(run=2, positions=(3,)),
        CompareRequest(run=2, site=SITE, head=0, position=3),
        CellRequest(run=2, site=SITE, head=0, query=4, key=2),
        VarianceRequest(batch=2, tokens=8, deviation=1.0, seed=0, run=2, site=SITE, head=0),
        PositionsRequest(run=2, site=SITE, head=0, query=4, key=2),
        ShuffleRequest(run=2, seed=0),
        into_input(ran.inputs),
    ):
        answer = ask(engine, request)
        assert not isinstance(answer, Failure), (request, answer)
    prediction = ask(engine, PredictionRequest(run=2, positions=(3,)))
    assert isinstance(prediction, PredictionView)
    assert sum(c.probability for c in prediction.predictions[0].candidates) <= 1 + 1e-6
    report = ask(engine, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert report.tolerance == 1e-5
    assert report.rounding is not None
    assert 0.1 < report.rounding < 1
    assert report.holds


@pytest.mark.short(
    *("gpt2-float16", "gemma2-bfloat16", "gpt_oss-float16", "albert-bfloat16", "roberta-float16"),
    *("marian-bfloat16",),
)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "gpt_oss", "bert", "albert", "roberta", "t5", "marian"])
def test_every_family_runs_in_half_precision(tiny_folder, kind, dtype):
    trace = run(open_checkpoint(tiny_folder(kind), dtype=dtype), tiny.SENTENCE)
    assert isinstance(trace, Trace)
    for i, site in enumerate(trace.sites):
        weights = trace.weights(i, site.heads - 1)
        assert weights.dtype == np.float32
        assert np.isfinite(weights).all()


@pytest.mark.full
@pytest.mark.parametrize("reference", ["story-gpt", "en-es"])
def test_a_model_whose_weights_are_kept_aside_answers_the_same(monkeypatch, reference):
    """As accelerate leaves it where the model is larger than the device: each weight comes when its module runs."""
    plain, spread = Engine(), Engine()
    ask(plain, LoadRequest(ticket=1, reference=reference))

    def opened(examination: CheckpointInspector, placement: Placement, should_stop: ShouldStop) -> Model:
        model = open_examined(examination, placement, should_stop)
        accelerate.cpu_offload(model.module, torch.device("cpu"))
        assert all(p.is_meta for p in model.module.parameters())
        return model

    monkeypatch.setattr("attention_models.opening.load.open_examined", opened)
    assert isinstance(ask(spread, LoadRequest(ticket=1, reference=reference)), Loaded)
    inputs = RunInputs(tiny.SENTENCE, target="Tom y Ana" if reference == "en-es" else None)
    requests = (
        ForwardRequest(inputs=inputs, ticket=2),
        HeadRequest(run=2, site=SITE, head=0),
        AtlasRequest(run=2, size=32),
        PredictionRequest(run=2, positions=(3,)),
        CompareRequest(run=2, site=SITE, head=0, position=3),
        CellRequest(run=2, site=SITE, head=0, query=4, key=2),
        PositionsRequest(run=2, site=SITE, head=0, query=4, key=2),
        ShuffleRequest(run=2),
        into_input(inputs),
        TrustRequest(run=2),
    )
    for request in requests:
        one, other = ask(plain, request), ask(spread, request)
        assert not isinstance(one, Failure), one
        for field in fields(one):
            if field.name in ("request", "seconds", "trace_bytes"):
                continue
            here, there = getattr(one, field.name), getattr(other, field.name)
            if isinstance(here, np.ndarray):
                np.testing.assert_array_equal(here, there)
            elif isinstance(here, (int, float, str, bool)) or here is None:
                assert here == there, (request, field.name)


def test_a_textbook_model_stays_where_it_is():
    engine = Engine()
    loaded = ask(engine, LoadRequest(reference="dates-luong", placement=Placement("cpu", "float16")))
    assert isinstance(loaded, Loaded)
    assert (loaded.device, loaded.dtype) == ("CPU", "float32")
    assert loaded.placement == Placement("cpu", "float32")


def test_what_lies_on_two_devices_is_spread():
    here, elsewhere = nn.Linear(2, 2), nn.Linear(2, 2, device="meta")
    assert not devices.is_spread(here)
    assert not devices.is_spread(elsewhere)
    assert devices.is_spread(nn.Sequential(here, elsewhere))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_load_without_room_says_so_and_leaves_the_open_model(monkeypatch, dtype):
    engine = Engine()
    ask(engine, LoadRequest(ticket=1, reference="story-gpt"))
    ask(engine, ForwardRequest(inputs=RunInputs("Tom"), ticket=2))

    def full(*_: Any, **__: Any) -> nn.Module:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("attention_models.opening.open._weights", full)
    failure = failure_of(engine, LoadRequest(ticket=3, reference="en-es", placement=Placement("cpu", dtype)))
    assert f"en-es in {dtype} does not fit on cpu" in failure.sentence
    assert failure.no_room == Placement("cpu", dtype)
    assert not isinstance(ask(engine, HeadRequest(run=2, site=SITE, head=0)), Failure)


def test_what_did_not_fit_is_let_go(monkeypatch):
    """The frames of the failed work hold its tensors until the error is gone."""
    engine = Engine()
    ask(engine, LoadRequest(ticket=1, reference="story-gpt"))
    held: list[int] = []

    class Big:
        def __del__(self) -> None:
            held.append(1)

    def full(*_: Any, **__: Any) -> Any:
        big = Big()
        raise MemoryError(f"{id(big)}")

    freed: list[int] = []
    monkeypatch.setattr("attention_models.engine.running.run_each", full)
    monkeypatch.setattr("attention_models.files.devices.free", lambda: freed.append(len(held)))
    failure = failure_of(engine, ForwardRequest(inputs=RunInputs("Tom"), ticket=2))
    assert "not enough memory" in failure.sentence
    assert freed == [1]  # gone before the caches were emptied


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("MPS backend out of memory (MPS allocated: 9.05 GB, other allocations: 384.00 KB)"),
        RuntimeError("Invalid buffer size: 28.00 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"),
    ],
)
def test_every_devices_way_to_say_that_memory_ran_out_is_known(error):
    assert devices.is_out_of_memory(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("CUDA error: device-side assert triggered"), ValueError("out of memory")]
)
def test_other_errors_are_no_shortage_of_memory(error):
    assert not devices.is_out_of_memory(error)


def test_devices_are_told():
    view = ask(Engine(), DevicesRequest())
    assert isinstance(view, DevicesView)
    assert view.devices[0].name == "cpu"


def test_threads_are_those_that_this_process_may_use(monkeypatch):
    chosen: list[int] = []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    for allowed, counted, expected in ((2, 2, 2), (2, 64, 2), (16, 8, 7), (64, 64, 63), (4, 4, 4)):
        monkeypatch.setattr(torch, "get_num_threads", lambda counted=counted: counted)
        monkeypatch.setattr("os.sched_getaffinity", lambda _pid, allowed=allowed: set(range(allowed)), raising=False)
        devices.set_threads()
        assert chosen.pop() == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    devices.set_threads()
    assert not chosen
