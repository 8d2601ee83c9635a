"""Masks that transformers describes: their blocks are those of its own, and no run of a long text holds one whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    chunked_causal_mask_function,
    or_masks,
    sdpa_mask,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)

from attention_models import decode, open_checkpoint, run
from attention_models.attention.incremental import BlockSize
from attention_models.attention.masks import RowMask, mask_where_looked_at
from attention_models.attention.tiles import HeadTiles
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.length.batching import source_ids, translate
from attention_models.protocol import values
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.comparison import CompareRequest
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.values import SiteRef, Tile
from attention_models.trust.check import compare_with_eager
from attention_models.views import comparison, long_comparison
from attention_models.views.cell import cell_view
from attention_models.views.long_comparison import LongComparison
from tests.models import tiny
from tests.models.eager import assert_same_as_eager, target_for
from tests.models.opening.test_families import ALL, WINDOWS
from tests.models.room import room_of
from tests.models.tiny import TinyModel

LOCAL = {*WINDOWS, "llama4", "modernbert"} - {"gpt2"}
"""Kinds with layers that see a part of the text."""


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text of more than one token counts as a long one."""
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)


PADDING = torch.tensor([[0] * 5 + [1] * 35, [1] * 40], dtype=torch.bool)  # of two texts, the first one shorter
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "causal": (causal_mask_function, {}),
    "causal, padded": (causal_mask_function, {"attention_mask": PADDING}),
    "causal, nothing padded": (causal_mask_function, {"attention_mask": torch.ones_like(PADDING)}),
    "window": (sliding_window_causal_mask_function(7), {"local_size": 7}),
    "window, padded": (sliding_window_causal_mask_function(7), {"local_size": 7, "attention_mask": PADDING}),
    "chunks": (
        chunked_causal_mask_function(8, torch.tensor([5, 0])),
        {"local_size": 8, "attention_mask": PADDING},
    ),
    "both sides": (
        sliding_window_bidirectional_mask_function(4),
        {"local_size": 4, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": True},
    ),
    "full": (bidirectional_mask_function, {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": True}),
    "full, padded": (
        bidirectional_mask_function,
        {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": True, "attention_mask": PADDING},
    ),
    "of one's own": (
        or_masks(causal_mask_function, lambda b, h, q, k: (k < 3) & (q < 9)),
        {"use_vmap": True, "allow_is_causal_skip": False},
    ),
}


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("sizes", [(40, 40, 0, 0), (6, 40, 34, 0), (6, 16, 34, 24)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_are_those_of_transformers(name: str, sizes: tuple[int, int, int, int]) -> None:
    """Of a text as a whole, and of what is appended to one that was read before, in whole and with a window."""
    function, options = FUNCTIONS[name]
    expected = sdpa_mask(2, *sizes, function, **options)
    found = mask_where_looked_at(2, *sizes, function, **options)
    if expected is None:
        assert found is None
        return
    assert isinstance(found, RowMask)
    assert found.shape == expected.shape
    for rows in (slice(0, 6), slice(2, 5), [5, 0, 3]):
        for keys in (slice(None), slice(3, 11)):
            assert torch.equal(found.block(None, rows, keys), expected[:, :, rows][..., keys])


def test_a_short_text_has_its_mask_held() -> None:
    function = sliding_window_causal_mask_function(7)
    assert type(mask_where_looked_at(1, 1024, 1024, 0, 0, function, local_size=7)) is Tensor
    assert type(mask_where_looked_at(1, 1025, 1025, 0, 0, function, local_size=7)) is RowMask
    assert type(mask_where_looked_at(1, 1, 9000, 8999, 0, function, local_size=7)) is Tensor  # one row is no square


# --------------------------------------------------------------------------- in models, as if their texts were long


@pytest.mark.short("*-gpt2", "*-mistral", "*-gemma2", "*-gpt_oss", "*-llama4", "*-modernbert", "*-t5_encoder", "*-bart")
@pytest.mark.usefixtures("long")
@pytest.mark.parametrize(("family", "kind"), ALL)
def test_every_family_equals_eager(tiny_model: TinyModel, family: str, kind: str) -> None:
    model = tiny_model(kind)
    trace = assert_same_as_eager(model, tiny.SENTENCE, 2e-6)
    assert any(isinstance(x.mask, RowMask) for x in trace.inputs) == (kind in LOCAL)
    found = compare_with_eager(model, model.encode(tiny.SENTENCE, target_for(model)), trace)
    assert found.rows > 0
    assert max(found.logit_difference, found.weight_difference) < found.tolerance


EDITS: dict[str, tuple[Intervention, ...]] = {
    "window": (Mask("window", window=3),),
    "blocks": (Mask("blocks", window=4), Scale(0.5)),
    "padding": (Mask("padding", window=2),),
    "none": (Mask("none"),),
    "prefix": (Mask("prefix", window=5, site=SiteRef("decoder", 1)),),
    "one head": (Mask("window", window=9), Mask("causal", head=2), Mask("blocks", window=5, head=1)),
    "painted": (
        Mask("window", window=6),
        Mask("painted", cells=((2, 9, True), (7, 7, False), (7, 6, False), (7, 6, True), (500, 3, False)), head=3),
        Mask("painted", cells=((0, 0, False),)),
    ),
}


@pytest.mark.short("gemma2-*", "mistral-one head", "bert-window", "modernbert-painted")
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", ["llama", "gemma2", "mistral", "bert", "modernbert"])
def test_edited_runs_are_those_of_held_masks(
    tiny_model: TinyModel, kind: str, edit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(kind)
    edits = tuple(item for item in EDITS[edit] if "bert" not in kind or getattr(item, "site", None) is None)
    short = run(model, tiny.SENTENCE, interventions=edits)
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    long = run(model, tiny.SENTENCE, interventions=edits)
    assert any(isinstance(x.mask, RowMask) for x in long.inputs) == any(x.mask is not None for x in short.inputs)
    for site in short.sites:
        for head in range(site.heads):
            one, other = long.masked(site, head), short.masked(site, head)
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_array_equal(one, other)
            theirs = short.weights(site, head)
            room = room_of(short.at(site, head), head, site.layer, torch.from_numpy(theirs.copy()), 2e-6, 1e-5)
            np.testing.assert_allclose(long.weights(site, head), theirs, atol=room)
    np.testing.assert_allclose(long.logits, short.logits, atol=1e-5, rtol=1e-5)


@pytest.mark.short("gemma2-*", "llama4-edits1", "bart-edits2", "t5-edits0")
@pytest.mark.parametrize("edits", [(), (Mask("window", window=5),), (Mask("blocks", window=4, head=1),)])
@pytest.mark.parametrize("kind", [*sorted(LOCAL - {"modernbert"}), "gpt2", "bart", "t5"])
def test_written_texts_are_the_same(
    tiny_model: TinyModel, kind: str, edits: tuple[Intervention, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key/value cache, whose windows forget."""
    model = tiny_model(kind)

    def written() -> list[list[int]]:
        return [list(step.ids) for step in decode(model, tiny.SENTENCE, steps=12, interventions=edits)]

    expected = written()
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    assert written() == expected


def test_padded_translations_are_the_same(en_es: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = source_ids(en_es, ["Good morning.", "The black cat is sleeping on the table.", "Thank you very much."])
    expected = translate(en_es, sources, 12)
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    assert translate(en_es, sources, 12) == expected


@pytest.mark.parametrize("block", [1 << 24, 1])
@pytest.mark.parametrize(
    ("edits", "peeks", "dead"),
    [
        ((Mask("window", window=3),), False, ()),
        ((Mask("none", head=2),), True, ()),
        ((Mask("painted", cells=((4, 5, True),), head=1),), True, ()),
        ((Mask("painted", cells=((11, 18, True),), site=SiteRef("decoder", 2)),), True, ()),
        ((Mask("window", window=1), Mask("painted", cells=((6, 6, False), (9, 9, False)))), False, (6, 9)),
        ((Mask("window", window=1), Mask("painted", cells=tuple((q, q, False) for q in range(30)))), False, range(20)),
    ],
)
@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_what_edits_open_and_leave_blind(
    tiny_model: TinyModel,
    kind: str,
    edits: tuple[Intervention, ...],
    peeks: bool,
    dead: Sequence[int],
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether one sees the future, and who sees nothing, with held masks and with rules."""
    monkeypatch.setattr(comparison, "_MASK_BLOCK", block)
    monkeypatch.setattr(long_comparison, "_BLOCK", BlockSize(block))
    model, request = tiny_model(kind), CompareRequest(run=1, site=SiteRef("decoder", 1), head=1, position=3)
    for size in (values.LARGEST_WHOLE, 1):
        monkeypatch.setattr(values, "LARGEST_WHOLE", size)
        before, after = (run(model, tiny.SENTENCE, interventions=which) for which in ((), edits))
        assert len(after.tokens) == 20
        view = LongComparison(model, before, after).answer(request)
        assert (view.peeks, view.dead_rows) == (peeks, tuple(dead))


@pytest.mark.usefixtures("long")
def test_layers_that_are_masked_alike_look_at_the_cells_once(tiny_model: TinyModel) -> None:
    edits = [Mask("window", window=5), Mask("blocks", window=4, site=SiteRef("decoder", 2), head=1)]
    found = [x.mask for x in run(tiny_model("llama"), tiny.SENTENCE, interventions=edits).inputs]
    functions = [mask.functions for mask in found if isinstance(mask, RowMask)]
    assert functions[0] == functions[1] == functions[2][:1]
    assert len(functions[2]) == 2


# --------------------------------------------------------------------------- what is held meanwhile

TOKENS = 3000


class Largest(TorchDispatchMode):
    """How many elements the largest tensor in memory had, and what was done with a mask as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0
        self.of_masks: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(isinstance(part, RowMask) for part in tree_leaves((args, kwargs))):
            self.of_masks.append(str(func))
        for t in tree_leaves(out):
            if isinstance(t, Tensor) and not isinstance(t, RowMask):
                self.elements = max(self.elements, t.untyped_storage().nbytes() // t.element_size())
        return out


@pytest.fixture
def long_model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    kind = tiny.KINDS[request.param]
    tokenizer = kind.tokenizer()
    tokenizer.model_max_length = 2 * TOKENS
    wide = {"max_position_embeddings": 2 * TOKENS, "sliding_window": 70, "attention_chunk_size": 70}
    settings = {name: wide.get(name, value) for name, value in kind.settings.items()}
    monkeypatch.setitem(tiny.KINDS, "long", replace(kind, settings=settings, tokenizer=lambda: tokenizer))
    return open_checkpoint(tiny.save("long", tmp_path / "long"))


def ids(count: int) -> list[int]:
    return torch.randint(5, 100, (count,), generator=torch.Generator().manual_seed(1)).tolist()


@pytest.mark.full
@pytest.mark.parametrize("long_model", ["mistral", "gemma2", "gpt_oss", "modernbert"], indirect=True)
def test_nothing_has_as_many_elements_as_a_square(long_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run, all views of a long text, its edited run and their comparison, and the comparison with eager."""
    monkeypatch.setattr(comparison, "_MASK_BLOCK", 1 << 22)  # of all heads together it is more than a square
    model, text = long_model, ids(TOKENS)
    with Largest() as largest:
        trace = run(model, text)
        edits = [Mask("window", window=50), Mask("painted", cells=((2000, 2500, True),), head=1)]
        edited = run(model, text, interventions=edits)
        for each in (trace, edited):
            look(model, each)
        site = trace.sites[0]
        LongComparison(model, trace, edited).answer(CompareRequest(run=1, site=site.ref, head=1, position=9))
        found = compare_with_eager(model, model.encode(text), trace)
    assert max(found.logit_difference, found.weight_difference) < 3e-5  # random weights make scores that round coarsely
    assert 0 < largest.elements < TOKENS**2
    assert not largest.of_masks
    assert trace.nbytes < TOKENS**2
    assert any(isinstance(x.mask, RowMask) for x in trace.inputs)
    assert all(isinstance(x.mask, RowMask) for x in edited.inputs)


def look(model: Model, trace: Trace) -> None:
    """Atlas, tiles, a row, a cell and logits of a long text."""
    trace.atlas(48)
    for i, site in enumerate(trace.sites):
        tiles = HeadTiles(trace.at(i, 1), 1)
        for tile in (Tile(4, 0, 0), Tile(0, 11, 11), Tile(0, 3, 3)):
            tiles.tile(tile)
        masked = trace.masked(i, 1, [2000])
        assert not trace.weights(i, 1, [2000])[False if masked is None else masked].any()
        cell_view(CellRequest(run=1, site=site.ref, head=1, query=2000, key=1990), model, trace)
    trace.logits_at([0, TOKENS - 1])


@pytest.mark.parametrize("long_model", ["mistral", "gemma2"], indirect=True)
def test_a_long_run_equals_eager(long_model: Model) -> None:
    """1,100 tokens: the shortest of long texts, whose eager attention can be held."""
    model, text = long_model, ids(1100)
    trace = run(model, text)
    with torch.no_grad():
        out = tiny.eager(model)(**model.encode(text).inputs, output_attentions=True)
    for i, theirs in enumerate(out.attentions):
        for head in range(4):
            np.testing.assert_allclose(trace.weights(i, head), theirs[0, head].numpy(), atol=1e-5)
    np.testing.assert_allclose(trace.logits, out.logits[0].numpy(), atol=1e-4, rtol=1e-5)
