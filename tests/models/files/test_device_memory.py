"""What a device says of its memory, what happens where it runs out, and that nothing stays there that is gone."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from attention_models.engine.engine import Engine
from attention_models.files import devices
from attention_models.protocol import values
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.comparison import CompareRequest
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.interventions import Scale
from attention_models.protocol.loading import DevicesRequest, DevicesView, Loaded, LoadRequest
from attention_models.protocol.request import Failure, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import AUTO, BEST, Placement, SiteRef
from tests import pretend_device
from tests.models import tiny
from tests.models.asking import ask, failure_of, forward
from tests.models.everything import open_in, unlike, writing
from tests.pretend_device import DEVICE

pytestmark = pytest.mark.usefixtures("pretended")

SITE = SiteRef("decoder", 1)


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


def taken() -> int:
    devices.free()
    return pretend_device.held()


@pytest.mark.full
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


@pytest.mark.full
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
    assert isinstance(ask(engine, ForwardRequest(inputs=RunInputs("", picture="sample:fish-1"), ticket=3)), Ran)


@pytest.mark.full
def test_a_text_that_does_not_fit_is_let_go_and_the_run_before_stays():
    engine = open_in("story-gpt", Placement(DEVICE))
    forward(engine, "Tom and Anna", ticket=2)
    before = taken()
    pretend_device.set_budget(before + 1_000_000)
    failure = failure_of(engine, ForwardRequest(inputs=RunInputs(tiny.SENTENCE * 8), ticket=3))
    assert failure.sentence.startswith("There is not enough memory for this.")
    assert failure.no_room == Placement(DEVICE)
    assert taken() == before
    assert not isinstance(ask(engine, HeadRequest(run=2, site=SITE, head=0)), Failure)
    pretend_device.set_budget(None)
    forward(engine, tiny.SENTENCE * 8, ticket=4)


@pytest.mark.full
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


@pytest.mark.full
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
