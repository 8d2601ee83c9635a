"""What the engine answers of a long text: rows, tiles, and the atlas in moments."""

from __future__ import annotations

import numpy as np
import pytest

from attention_models.engine.engine import Engine
from attention_models.forward import current_run
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.head import HeadRequest, HeadView, RowRequest, RowView, TilesRequest, TilesView
from attention_models.protocol.values import Tile
from tests.models.asking import SITE, ask, failure_of, forward, opened
from tests.models.tiny import TinyFolder

TEXT = "Tom and Anna went to the park. Anna gave the ball to"


def test_a_row_is_that_of_the_whole_head(gpt: Engine) -> None:
    ran = forward(gpt, TEXT, ticket=70)
    whole = ask(gpt, HeadRequest(run=70, site=SITE, head=2))
    assert isinstance(whole, HeadView)
    assert whole.masked is not None
    for query in (0, 5, len(ran.tokens) - 1):
        row = ask(gpt, RowRequest(run=70, site=SITE, head=2, query=query))
        assert isinstance(row, RowView)
        np.testing.assert_allclose(row.weights, whole.weights[query], atol=1e-6)
        if row.masked is not None:
            np.testing.assert_array_equal(row.masked, whole.masked[query])
        assert not row.weights.flags.writeable


def test_tiles_are_those_of_the_whole_head(gpt: Engine) -> None:
    ran = forward(gpt, TEXT, ticket=71)
    whole = ask(gpt, HeadRequest(run=71, site=SITE, head=2))
    assert isinstance(whole, HeadView)
    assert whole.masked is not None
    for scale in (False, True):
        view = ask(gpt, TilesRequest(run=71, site=SITE, head=2, tiles=(Tile(0, 0, 0),), scale_rows=scale))
        assert isinstance(view, TilesView)
        ((tile, values),) = view.tiles
        assert (tile, values.shape) == (Tile(0, 0, 0), (len(ran.tokens),) * 2)
        np.testing.assert_array_equal(np.isnan(values), whole.masked)
        expected = whole.weights / whole.weights.max(1, keepdims=True) if scale else whole.weights
        np.testing.assert_allclose(values[~whole.masked], expected[~whole.masked], atol=1e-6)


def test_tiles_say_what_sinks_take_of_their_rows(tiny_folder: TinyFolder) -> None:
    engine = opened(str(tiny_folder("gpt_oss")))
    ran = forward(engine, TEXT, ticket=75)
    site = ran.sites[1].ref
    whole = ask(engine, HeadRequest(run=75, site=site, head=1))
    assert isinstance(whole, HeadView)
    assert whole.sinks is not None
    view = ask(engine, TilesRequest(run=75, site=site, head=1, tiles=(Tile(0, 0, 0), Tile(1, 0, 0))))
    assert isinstance(view, TilesView)
    assert view.sinks[1] is None  # a square stands for several rows
    assert view.sinks[0] is not None
    np.testing.assert_allclose(view.sinks[0], whole.sinks, atol=1e-6)
    ((_, values), _) = view.tiles
    np.testing.assert_allclose(np.nansum(values, 1) + view.sinks[0], 1.0, atol=1e-6)


def test_models_without_sinks_say_nothing_of_them(gpt: Engine) -> None:
    forward(gpt, TEXT, ticket=76)
    view = ask(gpt, TilesRequest(run=76, site=SITE, head=2, tiles=(Tile(0, 0, 0),)))
    assert isinstance(view, TilesView)
    assert view.sinks == (None,)


def test_an_answer_holds_as_many_tiles_as_a_moment_allows(gpt: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    forward(gpt, TEXT, ticket=72)
    monkeypatch.setitem(current_run.WORK_PER_ANSWER, "cpu", 1)
    tile = Tile(0, 0, 0)
    view = ask(gpt, TilesRequest(run=72, site=SITE, head=2, tiles=(tile, tile, tile)))
    assert isinstance(view, TilesView)
    assert len(view.tiles) == 1


def test_the_atlas_comes_in_moments(gpt: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    forward(gpt, TEXT, ticket=73)
    whole = ask(gpt, AtlasRequest(run=73, size=8))
    assert isinstance(whole, AtlasView)
    assert whole.done == 1
    forward(gpt, TEXT, ticket=74)
    monkeypatch.setitem(current_run.WORK_PER_ANSWER, "cpu", 1)
    shares, part = [0.0], whole
    while shares[-1] < 1:
        answer = ask(gpt, AtlasRequest(run=74, size=8, have=shares[-1]))
        assert isinstance(answer, AtlasView)
        part = answer
        assert part.done > shares[-1]
        shares.append(part.done)
        ask(gpt, TilesRequest(run=74, site=SITE, head=2, tiles=(Tile(0, 0, 0),)))  # what comes between does no harm
    assert len(shares) == 9  # a block of rows for each of the eight layers
    np.testing.assert_array_equal(part.images, whole.images)
    assert part.row_error == whole.row_error


def test_another_pooling_begins_anew(gpt: Engine) -> None:
    forward(gpt, TEXT, ticket=75)
    views = [ask(gpt, AtlasRequest(run=75, size=8, pooling=how)) for how in ("max", "mean", "max")]
    images = [view.images for view in views if isinstance(view, AtlasView)]
    np.testing.assert_array_equal(images[0], images[2])
    assert (images[0] >= images[1]).all()
    assert not (images[0] == images[1]).all()


def test_what_is_gone_or_not_there(gpt: Engine) -> None:
    forward(gpt, TEXT, ticket=76)
    for request in (
        RowRequest(run=1, site=SITE, head=0, query=0),
        TilesRequest(run=1, site=SITE, head=0, tiles=(Tile(0, 0, 0),)),
    ):
        assert failure_of(gpt, request).stale
    with pytest.raises(IndexError):
        ask(gpt, TilesRequest(run=76, site=SITE, head=99, tiles=(Tile(0, 0, 0),)))
    with pytest.raises(IndexError):
        ask(gpt, TilesRequest(run=76, site=SITE, head=0, tiles=(Tile(0, 9, 0),)))
