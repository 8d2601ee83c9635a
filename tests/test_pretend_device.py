"""The pretend accelerator refuses what CUDA refuses, computes what the CPU computes, and counts what it is asked."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests import pretend_device
from tests.pretend_device import DEVICE, counted, held, pretended


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    with pretended():
        yield


def rows() -> Tensor:
    return torch.arange(12.0).view(3, 4)


def test_torch_knows_of_it_while_it_lasts():
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == pretend_device.CARDS
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None
    assert accelerator.type == pretend_device.NAME
    with pretended():
        pass
    assert not torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 0


def test_a_tensor_goes_there_and_comes_back():
    there = rows().to(DEVICE)
    assert (str(there.device), type(there)) == (DEVICE, Tensor)
    assert there.cpu().device.type == "cpu"
    assert there.cpu().equal(rows())
    assert float(there[1, 2]) == 6.0
    assert there.tolist() == rows().tolist()
    assert there.to(torch.bfloat16).dtype is torch.bfloat16
    assert "device='pretend:0'" in repr(there)


MIXED: list[Callable[[Tensor, Tensor], Any]] = [
    lambda there, here: there + here,
    lambda there, here: here + there,
    lambda there, here: there @ here.T,
    lambda there, here: torch.cat([there, here]),
    lambda there, here: torch.where(there > 0, there, here),
    lambda there, here: there.masked_fill(here > 0, 0.0),
    lambda there, here: here.add_(there),
    lambda there, here: torch.tensor(0.0).add_(there[0, 0]),
    lambda there, here: torch.stack([there[0, 0], here[0, 0]]),
    lambda there, here: F.embedding(here.long(), there),
    lambda there, here: there.gather(0, here.long()),
    lambda there, here: F.scaled_dot_product_attention(there[None], here[None], there[None]),
    lambda there, here: torch.matmul(there, there.T, out=torch.empty(3, 3)),
    lambda there, here: here[there.long()],
]


@pytest.mark.parametrize("mix", MIXED)
def test_a_tensor_of_the_cpu_beside_one_of_the_device_raises(mix):
    with pytest.raises(RuntimeError, match="same device"):
        mix(rows().to(DEVICE), rows())


def test_neither_do_two_cards_mix():
    with pytest.raises(RuntimeError, match=r"pretend:0 and pretend:1|pretend:1 and pretend:0"):
        rows().to(DEVICE) + rows().to("pretend:1")
    assert rows().to(DEVICE).to("pretend:1").device.index == 1


def test_numbers_and_indexes_may_come_from_the_cpu():
    there = rows().to(DEVICE)
    assert (there * torch.tensor(2.0)).cpu().equal(rows() * 2)
    assert torch.where(there > 5, there, torch.tensor(0.0)).cpu().equal(torch.where(rows() > 5, rows(), 0.0))
    assert there[torch.tensor([2, 0])].cpu().equal(rows()[[2, 0]])
    there[:, torch.tensor([1])] = 7.0
    assert there[:, 1].tolist() == [7.0] * 3


def test_what_only_the_cpu_can_do_raises():
    there = rows().to(DEVICE)
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\)"):
        there.numpy()
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device=DEVICE, generator=torch.Generator())


def test_views_share_their_memory_and_writing_in_place_is_seen():
    there = rows().to(DEVICE)
    column, square = there[:, 1], there.view(2, 6)
    there.mul_(2)
    column += 1
    square[0, 0] = -1
    expected = rows() * 2
    expected[:, 1] += 1
    expected[0, 0] = -1
    assert there.cpu().equal(expected)
    assert column.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    room = torch.empty(3, 3, device=DEVICE)
    assert torch.matmul(there, there.T, out=room) is room
    assert room.cpu().equal(expected @ expected.T)


def test_results_without_a_size_yet_grow():
    empty = torch.empty(0, device=DEVICE)
    torch.cat([rows().to(DEVICE), rows().to(DEVICE)], out=empty)
    assert empty.cpu().equal(torch.cat([rows(), rows()]))


def test_a_module_moves_with_its_ties_and_has_gradients():
    torch.manual_seed(0)
    first, last = nn.Linear(4, 4), nn.Linear(4, 4)
    last.weight = weight = first.weight
    module = nn.Sequential(first, nn.GELU(), last)
    module(rows()).square().sum().backward()
    assert weight.grad is not None
    expected = weight.grad.clone()
    module.zero_grad()
    module.to(DEVICE)
    assert first.weight is last.weight is weight
    assert str(weight.device) == DEVICE
    module(rows().to(DEVICE)).square().sum().backward()
    assert weight.grad.cpu().equal(expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.GRU(4, 5, batch_first=True, bidirectional=True),
        lambda: nn.GRUCell(4, 5),
        lambda: nn.LSTMCell(4, 5),
        lambda: nn.Conv1d(3, 2, 2),
        lambda: nn.LayerNorm(4),
        lambda: nn.MultiheadAttention(4, 2),
    ],
)
def test_layers_compute_as_on_the_cpu(make):
    torch.manual_seed(0)
    layer = make().eval()
    x = (rows(),) * (3 if isinstance(layer, nn.MultiheadAttention) else 1)
    with torch.no_grad():
        here = layer(*x)
        there = layer.to(DEVICE)(*(t.to(DEVICE) for t in x))
    for one, other in zip(*([t] if isinstance(t, Tensor) else t for t in (here, there)), strict=True):
        if one is not None:
            torch.testing.assert_close(other.cpu(), one, rtol=0, atol=1e-6)  # a GRU has other kernels on a CPU


def test_attention_is_the_cpus_fused_one_and_has_gradients():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 6, 4).unbind()
    q2, k2, v2 = (t.to(DEVICE) for t in (q, k, v))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert F.scaled_dot_product_attention(q2, k2, v2, is_causal=True).cpu().equal(expected)
    for t in (q, q2):
        t.requires_grad_()
    F.scaled_dot_product_attention(q, k, v).square().sum().backward()
    F.scaled_dot_product_attention(q2, k2, v2).square().sum().backward()
    assert q.grad is not None
    assert q2.grad is not None
    torch.testing.assert_close(q2.grad.cpu(), q.grad, rtol=0, atol=1e-6)


FLOAT64: list[Callable[[Tensor], Any]] = [
    lambda there: there.double(),
    lambda there: there.to("cpu", torch.float64),
    lambda there: rows().double().to(DEVICE),
    lambda there: torch.zeros(3, dtype=torch.float64, device=DEVICE),
    lambda there: there.sum(dtype=torch.float64),
]


@pytest.mark.parametrize("make", FLOAT64)
def test_it_may_have_no_float64(make):
    there = rows().to(DEVICE)
    make(there)
    with pretended(no_float64=True), pytest.raises(TypeError, match="float64"):
        make(there)


def test_memory_is_counted_and_bounded():
    gc.collect()
    before = held()
    there = torch.zeros(1000, device=DEVICE)
    view = there[10:]
    assert held() - before == 4000
    del there
    assert held() - before == 4000  # the view holds it
    with pretended(budget=held() + 5000):
        driver = torch.get_device_module(DEVICE)
        view.clone()
        assert driver.mem_get_info(view.device) == (1040, held() + 5000)  # what is gone is kept
        assert driver.memory_reserved(view.device) - driver.memory_allocated(view.device) == 3960
        driver.empty_cache()
        assert driver.mem_get_info(view.device) == (5000, held() + 5000)
        with pytest.raises(torch.OutOfMemoryError):
            view.repeat(2)
        assert held() - before == 4000
        view.clone()
    del view
    assert held() == before


def test_launches_copies_and_waits_are_counted():
    there = rows().to(DEVICE)
    with counted() as counts:
        there.T[1:].view(-1, 3)
    assert (counts.launches, counts.to_host, counts.to_device) == (0, 0, 0)
    with counted() as counts:
        total = (there * 2).sum()
    assert (dict(counts.kernels), counts.to_host) == ({"mul": 1, "sum": 1}, 0)
    waits: list[Callable[[], Any]] = [
        lambda: float(total),
        lambda: there.cpu(),
        lambda: there.tolist(),
        lambda: bool((there > 0).any()),
        lambda: torch.nonzero(there),
        lambda: there[there > 3],
        lambda: torch.equal(there, there),
    ]
    for wait in waits:
        with counted() as counts:
            wait()
        assert counts.to_host == 1
    for copy in (lambda: rows().to(DEVICE), lambda: torch.tensor([1, 2], device=DEVICE), lambda: there[:, [0, 2]]):
        with counted() as counts:
            copy()
        assert (counts.to_device, counts.to_host) == (1, 0)
