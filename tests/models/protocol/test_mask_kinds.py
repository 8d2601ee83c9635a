"""Kinds of masks: the objects alone, and new ones that no other file knows of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import attention_models as models
from attention_models.decoding.cached_run import CachedRun, start_run
from attention_models.protocol.interventions import Mask, describe, effective_masks, mask_spellings, parse_mask
from attention_models.protocol.mask_kinds import MASK_KINDS, MaskKind, register
from attention_models.views.cell import mask_reason
from tests.models.tiny import SENTENCE

N = 9


class Dilated(MaskKind):
    """Every nth token back: Beltagy et al. 2020, section 3.1. It masks more, and promises that what is kept stays."""

    name, title, sentence = "dilated", "Dilated", "A token attends to itself and every nth token before it."
    counts, example = "how far apart the tokens are that a token attends to", 2

    def allows(self, q: Any, k: Any, n: int, keys: int) -> Any:
        return (q - k) % n == 0

    def allows_cache(self, prompt: int, n: int, cells: Any) -> bool:
        return True


class Mirrored(MaskKind):
    """Opens the future, and says nothing of caches."""

    name, title, sentence = "mirrored", "Mirrored", "A token attends to itself and to what comes after it."
    replaces = True

    def allows(self, q: Any, k: Any, n: int, keys: int) -> Any:
        return k >= q


@pytest.fixture
def new_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both registered, and forgotten after the test."""
    for kind in (Dilated, Mirrored):
        monkeypatch.setitem(MASK_KINDS, kind.name, None)
        register(kind)


@pytest.mark.parametrize("name", [name for name, kind in MASK_KINDS.items() if not kind.takes_cells])
@pytest.mark.parametrize("n", [1, 3, N, N + 4])
def test_ints_numpy_and_torch_give_the_same_cells(name, n):
    kind = MASK_KINDS[name]
    alone = np.array([[bool(kind.allows(q, k, n, N)) for k in range(N)] for q in range(N)])
    places = np.arange(N)
    of_numpy = np.broadcast_to(kind.allows(places[:, None], places[None], n, N), (N, N))
    of_torch = torch.as_tensor(kind.allows(torch.arange(N)[:, None], torch.arange(N)[None], n, N)).expand(N, N)
    np.testing.assert_array_equal(of_numpy, alone)
    np.testing.assert_array_equal(of_torch.numpy(), alone)


@pytest.mark.parametrize("name", [name for name, kind in MASK_KINDS.items() if not kind.takes_cells])
@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("prompt", [1, 4, 8])
def test_a_kind_that_allows_a_cache_keeps_what_was_visible_as_the_text_grows(name, n, prompt):
    """Against the masks of every longer text, on top of a causal one where the kind only masks more."""
    kind = MASK_KINDS[name]
    longest = 12

    def visible(keys: int) -> np.ndarray:
        places = np.arange(keys)
        cells = np.broadcast_to(kind.allows(places[:, None], places[None], n, keys), (keys, keys))
        return cells if kind.replaces else cells & (places <= places[:, None])

    stays = True
    for keys in range(prompt, longest):
        longer, shorter = visible(longest)[:keys], visible(keys)
        stays &= bool((longer[:, :keys] == shorter).all()) and not longer[:, keys:].any()
    assert stays or not kind.allows_cache(prompt, n, ())
    if name not in ("padding",):  # a number beyond the text changes nothing, which padding does not try to know
        assert kind.allows_cache(prompt, n, ()) == stays


def test_every_spelling_is_read_as_what_it_names():
    for spelling in mask_spellings():
        assert parse_mask(spelling).definition.spelling == spelling
    assert set(mask_spellings()) == {"none", "causal", "padding:2", "window:8", "blocks:4", "full", "prefix:3"}


@pytest.mark.usefixtures("new_kinds")
@pytest.mark.parametrize("long", [False, True])
def test_a_new_kind_runs_and_is_described(story_gpt, long, monkeypatch):
    if long:  # the cells are worked out where they are asked for
        monkeypatch.setattr("attention_models.attention.edits.is_long", lambda queries, keys: True)
    ids = [token.id for token in story_gpt.tokenize(SENTENCE)]
    trace = models.run(story_gpt, ids, interventions=[Mask("dilated", window=3)])
    places = np.arange(len(ids))
    apart = places[:, None] - places
    np.testing.assert_array_equal(trace.masked(("decoder", 2), 1), (apart < 0) | (apart % 3 != 0))
    weights = trace.weights(("decoder", 2), 1)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
    assert not weights[(apart < 0) | (apart % 3 != 0)].any()
    assert describe(Mask("dilated", window=3)) == "mask: dilated 3, everywhere"
    site = trace.sites[2]
    assert mask_reason(trace, site, 1, 5, 4, masked=True) == "mask “dilated 3”"
    assert mask_reason(trace, site, 1, 5, 2, masked=False) == ""
    mirrored = models.run(story_gpt, ids, interventions=[Mask("mirrored")])
    np.testing.assert_array_equal(mirrored.masked(("decoder", 2), 1), apart > 0)
    assert mask_reason(mirrored, site, 1, 2, 5, masked=False) == "opened by the mask “mirrored”"
    assert mask_reason(mirrored, site, 1, 5, 2, masked=True) == "mask “mirrored”"


@pytest.mark.usefixtures("new_kinds")
def test_a_new_kind_covers_and_is_written_as_the_others(story_gpt):
    dilated, mirrored = parse_mask("dilated:3"), parse_mask("mirrored")
    assert (dilated, mirrored) == (Mask("dilated", window=3), Mask("mirrored"))
    assert {"dilated:2", "mirrored"} <= set(mask_spellings())
    assert effective_masks([dilated, mirrored]) == [mirrored]
    assert effective_masks([mirrored, dilated]) == [mirrored, dilated]
    with pytest.raises(ValueError, match=r"A “dilated” mask needs a number from 1 to .*\(how far apart"):
        Mask("dilated")


@pytest.mark.usefixtures("new_kinds")
@pytest.mark.parametrize(("mask", "kept"), [("dilated:2", True), ("mirrored", False)])
def test_a_cache_is_used_only_where_a_kind_promises_that_it_may_be(story_gpt, mask, kept):
    """Each step's logits are those of a whole pass, whether anything was kept or not."""
    item = parse_mask(mask)
    writing = start_run(story_gpt, story_gpt.encode(SENTENCE), (item,))
    assert isinstance(writing, CachedRun)
    assert writing.prevents_caching == (None if kept else item)
    for _ in range(4):
        logits = writing.logits()
        whole = models.run(story_gpt, writing.ids[0].tolist(), interventions=[item]).logits_at([-1])
        torch.testing.assert_close(logits, whole.float(), atol=1e-4, rtol=0)
        assert (writing.cached > 0) == kept
        writing.append(logits.argmax(dim=-1))
