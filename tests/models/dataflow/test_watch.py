"""What a watched pass leaves: which tensors were made of which, whatever was written in place."""

from __future__ import annotations

import threading

import torch
from torch import Tensor, nn

from attention_models.dataflow.graph import Term
from attention_models.dataflow.watch import Watch, unwatched


class Calls(nn.Module):
    """A matrix, a function, a function that does nothing, and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.drop = nn.Linear(4, 4), nn.GELU(), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.drop(self.act(self.first(x)))
        return out


@torch.no_grad()
def watched(module: nn.Module, x: Tensor) -> tuple[Watch, int, int]:
    """The watch, and the nodes of `x` and of what the module made of it."""
    watch = Watch({child: name for name, child in module.named_modules()})
    with watch.watching(module.eval().modules()):
        start = watch.node(x)
        out = module(x)
        return watch, start, watch.node(out)


def test_a_sum_is_taken_apart_into_what_modules_gave():
    watch, start, end = watched(Calls(), torch.randn(3, 4))
    assert [unit.name for unit in watch.units] == ["first", "act"]  # dropout hands on what it was given
    stream, written = watch.graph.terms(end)
    assert (stream.node, stream.factor) == (start, 1.0)
    unit = watch.unit_of(written.node)
    assert unit is not None
    assert unit.name == "act"
    assert unit.reads == watch.units[0].gives


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        written: Tensor = (self.first(x) / 4).view(2, 2, 4).transpose(0, 1).transpose(0, 1).reshape(4, 4)
        return x - 0.5 * written


def test_factors_on_the_way_are_multiplied():
    watch, start, end = watched(Factors(), torch.randn(4, 4))
    stream, written = watch.graph.terms(end)
    assert (stream.node, stream.factor) == (start, 1.0)
    assert (written.node, written.factor) == (watch.units[0].gives[0], -0.125)


class InPlace(nn.Module):
    """Adds into what a module gave, and puts parts into a tensor that was empty."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        made = self.first(x)
        made += x
        halves = torch.empty(2, 3, 4)
        torch.mul(made, 2.0, out=halves[0])
        halves[1] = self.second(x)
        return halves


def test_what_was_written_into_is_made_of_what_was_written():
    module, x = InPlace(), torch.randn(3, 4)
    watch, start, end = watched(module, x)

    def reads(here: int) -> tuple[int, ...]:
        unit = watch.unit_of(here)
        return watch.graph.nodes[here].reads if unit is None else unit.reads

    made_of = set(watch.graph.walk(end, reads))
    first, second = watch.units
    assert {start, *first.gives, *second.gives} <= made_of
    with torch.no_grad():
        torch.testing.assert_close(first.gave[0], module.first(x))  # as it was before it was added to


def test_what_is_computed_unwatched_is_not_in_the_graph():
    watch = Watch({})
    x = torch.randn(3)
    with watch:
        y = x + 1
        before = len(watch.graph.nodes)
        with unwatched():
            z = y * 2
        assert len(watch.graph.nodes) == before
        number = watch.note("own", (watch.node(y),), z)
        assert watch.graph.terms(watch.node(z)) == [Term(number, 1.0, number)]
        assert watch.graph.nodes[number].reads == (watch.node(y),)


def test_another_thread_s_calls_are_not_of_this_pass():
    module, x = Calls().eval(), torch.randn(3, 4)
    watch = Watch({child: name for name, child in module.named_modules()})
    with torch.no_grad(), watch.watching(module.modules()):
        other = threading.Thread(target=lambda: module(x))
        other.start()
        other.join()
        assert watch.units == []
        module(x)
    assert [unit.name for unit in watch.units] == ["first", "act"]


def test_tensors_are_let_go_of():
    watch, _, _ = watched(Calls(), torch.randn(3, 4))
    assert all(unit.gave for unit in watch.units)
    watch.forget(0, 0)
    assert not any(unit.gave or unit.given for unit in watch.units)
