"""Who looks for garbage: Python by itself, nobody for a while, or who has taken it over."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from attention_models.files import collecting


@pytest.fixture(params=[True, False], ids=["was on", "was off"])
def was_on(request: pytest.FixtureRequest) -> Iterator[bool]:
    on: bool = request.param
    if not on:
        gc.disable()
    yield on
    gc.enable()


def test_it_is_as_it_was_when_the_last_block_has_ended(was_on: bool) -> None:
    first, second = collecting.deferred(), collecting.deferred()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    assert collecting.is_deferred()
    second.__exit__(None, None, None)
    assert gc.isenabled() is was_on
    assert not collecting.is_deferred()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_who_takes_it_over_is_asked_alone(was_on: bool, order: tuple[int, int]) -> None:
    asked: list[int] = []
    collectors: list[Callable[[], None]] = [lambda: asked.append(0), lambda: asked.append(1)]
    for collector in collectors:
        collecting.take_over(collector)
    assert not gc.isenabled()
    collecting.collect()
    assert asked == [0]
    with collecting.deferred():
        collecting.hand_back(collectors[order[0]])
    assert not gc.isenabled()
    collecting.collect()
    assert asked == [0, order[1]]
    collecting.hand_back(collectors[order[1]])
    collecting.hand_back(collectors[order[1]])
    assert gc.isenabled() is was_on


def test_given_back_for_a_while(was_on: bool) -> None:
    collector: Callable[[], None] = lambda: None  # noqa: E731
    collecting.take_over(collector)
    collecting.give_back_for_a_while()
    assert gc.isenabled() is was_on
    with collecting.deferred():
        assert not gc.isenabled()
    collecting.take_again()
    assert not gc.isenabled()
    collecting.hand_back(collector)
    assert gc.isenabled() is was_on


def test_without_anybody_it_is_done_here() -> None:
    class Node:
        me: Node

    gone: list[bool] = []
    node = Node()
    node.me = node
    import weakref

    weakref.finalize(node, gone.append, True)
    del node
    with collecting.deferred():
        collecting.collect()
    assert gone == [True]
