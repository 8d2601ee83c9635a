"""The engine with a B: opened once, run once, let go of; and nothing of A is lost where B fails."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention_models import Scale, run
from attention_models.engine import running
from attention_models.engine.engine import Engine
from attention_models.files import devices
from attention_models.forward import current_run
from attention_models.forward.model import Model
from attention_models.opening import load
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Cancelled, Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.two_runs import DropOtherRequest, OtherDropped, OtherRun, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import Placement, SiteRef, Tile
from tests.models.asking import SITE, ask, failure_of, forward, never, opened, still_holds
from tests.models.tiny import TinyFolder

STORY = "Tom and Anna went to the park. Anna gave the ball to"
OTHER = OtherRun(inputs=RunInputs("Tom and Anna went to the park. Tom gave the ball to"))


@pytest.fixture
def engine() -> Engine:
    engine = opened("story-gpt")
    forward(engine, STORY)
    return engine


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many runs and loads there were."""
    counts = {"run": 0, "load": 0}

    def counting(module: Any, name: str) -> None:
        real = module.answer

        def answer(request: Any, context: Any) -> Any:
            counts[name] += 1
            return real(request, context)

        monkeypatch.setattr(module, "answer", answer)

    counting(running, "run")
    counting(load, "load")
    return counts


def compared(engine: Engine, other: OtherRun | None = OTHER, **options: Any) -> TwoRunsView:
    """Asked until all is computed."""
    request = TwoRunsRequest(**{"run": 2, "site": SITE, "head": 2, "other": other, **options})
    while True:
        view = ask(engine, request)
        assert isinstance(view, TwoRunsView), view
        if view.done >= 1:
            return view
        assert view.done > request.have
        request = replace(request, have=view.done)


def test_another_head_costs_no_run(engine: Engine, counted: dict[str, int], story_gpt: Model) -> None:
    before = [run(story_gpt, text) for text in (STORY, str(OTHER.inputs.prompt))]
    for layer in range(8):
        view = compared(engine, site=SiteRef("decoder", layer), head=layer)
        for side, trace in zip((view.a, view.b), before, strict=True):
            assert side.weights is not None
            np.testing.assert_array_equal(side.weights, trace.weights(("decoder", layer), layer))
            assert not side.weights.flags.writeable
    compared(engine, position=3)
    compared(engine, matching="similarity")
    assert counted == {"run": 1, "load": 0}
    assert (view.same_checkpoint, view.same_run) == (True, False)


def test_two_heads_of_one_run_cost_none(engine: Engine, counted: dict[str, int], story_gpt: Model) -> None:
    view = compared(engine, None, other_site=SiteRef("decoder", 5), other_head=7)
    trace = run(story_gpt, STORY)
    assert view.maps is not None
    assert view.same_run
    np.testing.assert_array_equal(view.maps.difference, trace.weights(SITE, 2) - trace.weights(("decoder", 5), 7))
    assert (view.b.site, view.b.head) == (SiteRef("decoder", 5), 7)
    assert view.changes == ()
    assert counted == {"run": 0, "load": 0}


def test_a_b_that_is_a_runs_nothing_and_changes_nothing(engine: Engine, counted: dict[str, int]) -> None:
    for reference in ("", "story-gpt"):
        view = compared(engine, OtherRun(inputs=RunInputs(STORY), reference=reference))
        assert view.same_run
        assert {change.change for change in view.changes} == {0.0}
    assert counted == {"run": 0, "load": 0}


def test_another_checkpoint_is_opened_once_beside_the_open_one(engine: Engine, counted: dict[str, int]) -> None:
    bert = OtherRun(inputs=RunInputs(STORY), reference="story-bert")
    views = [compared(engine, bert, head=head) for head in range(3)]
    views.append(compared(engine, replace(bert, inputs=OTHER.inputs)))
    assert counted == {"run": 2, "load": 1}
    assert {(view.a.name, view.b.name, view.same_checkpoint) for view in views} == {("story-gpt", "story-bert", False)}
    assert dict(views[0].b.files).keys() == {"model.safetensors"}
    assert views[0].b.files != views[0].a.files
    assert still_holds(engine, 2)


def test_one_model_is_kept_for_b_and_let_go_with_it(engine: Engine) -> None:
    def model_of_b() -> weakref.ref[Model]:
        beside = engine.workspace.beside
        assert beside is not None
        assert beside.model is not None
        return weakref.ref(beside.model)

    compared(engine, OtherRun(inputs=RunInputs(STORY), reference="story-bert"))
    first = model_of_b()
    compared(engine, OtherRun(inputs=RunInputs(STORY), reference="story-next"))
    second = model_of_b()
    gc.collect()
    assert first() is None
    assert second() is not None
    assert isinstance(ask(engine, DropOtherRequest(ticket=9)), OtherDropped)
    gc.collect()
    assert second() is None
    compared(engine, OtherRun(inputs=RunInputs(STORY), reference="story-bert"))
    third = model_of_b()
    assert isinstance(ask(engine, LoadRequest(reference="story-next", ticket=10)), Loaded)
    gc.collect()
    assert third() is None
    assert engine.workspace.beside is None


def test_a_b_with_interventions_is_the_open_model_changed(engine: Engine, story_gpt: Model) -> None:
    view = compared(engine, OtherRun(inputs=RunInputs(STORY, interventions=(Scale(0.5),))))
    expected = run(story_gpt, STORY, interventions=[Scale(0.5)]).weights(SITE, 2)
    assert view.b.weights is not None
    np.testing.assert_array_equal(view.b.weights, expected)
    assert (view.a.interventions, view.b.interventions) == ((), ("scores × 0.5, everywhere",))


def test_a_branch_that_was_written_is_read_along(engine: Engine, story_gpt: Model) -> None:
    written = tuple(token.id for token in story_gpt.tokenize(" Tom. He", special=False))
    view = compared(engine, OtherRun(inputs=RunInputs(STORY, continuation=written)))
    assert view.queries is not None
    assert len(view.b.tokens) == len(view.a.tokens) + len(written)
    assert view.queries.alone_b == tuple(range(14, 14 + len(written)))
    shared = [change.change for change in view.changes]
    assert max(shared) < 1e-6  # what was written later changes nothing before it


def test_a_in_a_new_run_keeps_b(engine: Engine, counted: dict[str, int]) -> None:
    compared(engine)
    forward(engine, "Tom and Anna went to the park.", ticket=3)
    view = compared(engine, run=3)
    assert len(view.a.tokens) == 9
    assert view.b.text == OTHER.inputs.prompt
    assert counted["run"] == 1
    assert failure_of(engine, TwoRunsRequest(run=2, site=SITE, other=OTHER)).stale


# --------------------------------------------------------------------------- what cannot be


def test_a_checkpoint_that_cannot_be_opened(engine: Engine, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    failure = failure_of(engine, TwoRunsRequest(run=2, site=SITE, other=replace(OTHER, reference=str(broken))))
    assert failure.sentence.startswith("B cannot be opened: ")
    assert "broken" in failure.sentence
    assert still_holds(engine, 2)
    assert engine.workspace.beside is None
    assert compared(engine).done == 1.0


def test_a_checkpoint_that_does_not_fit_beside_the_open_one(
    engine: Engine, tiny_folder: TinyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "free_memory", lambda _: (1000, 10**9))
    failure = failure_of(
        engine, TwoRunsRequest(run=2, site=SITE, other=replace(OTHER, reference=str(tiny_folder("gpt2"))))
    )
    assert failure.sentence.startswith("B does not fit beside story-gpt: gpt2 takes ")
    assert failure.no_room is None  # the open model need not be moved
    assert still_holds(engine, 2)


def test_a_model_of_pictures_has_nothing_to_look_at_in_a_text(engine: Engine) -> None:
    failure = failure_of(engine, TwoRunsRequest(run=2, site=SITE, other=replace(OTHER, reference="vit-cifar10")))
    assert failure.sentence == (
        "vit-cifar10 looks at pictures, and B is given a text. Choose a checkpoint of text for B."
    )
    assert still_holds(engine, 2)


def test_a_text_of_b_that_is_too_long_is_no_fault_of_the_text_on_screen(engine: Engine) -> None:
    failure = failure_of(engine, TwoRunsRequest(run=2, site=SITE, other=OtherRun(inputs=RunInputs(STORY * 200))))
    assert failure.sentence.startswith("B cannot be run by story-gpt: This text is ")
    assert failure.cut_to is None
    assert not failure.no_figures
    assert still_holds(engine, 2)


def test_memory_that_runs_out_takes_b_and_leaves_a(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(running, "run_each", short)
    failure = failure_of(engine, TwoRunsRequest(run=2, site=SITE, other=OTHER))
    assert failure.sentence == TwoRunsRequest.no_memory
    assert engine.workspace.beside is None
    assert still_holds(engine, 2)


def test_a_load_of_b_can_be_called_off(engine: Engine) -> None:
    said: list[str] = []
    request = TwoRunsRequest(run=2, site=SITE, other=replace(OTHER, reference="story-bert"))

    def begun() -> bool:
        return "Opening story-bert" in said

    with pytest.raises(Cancelled):
        engine.run(request, begun, lambda label, _: said.append(label))
    assert engine.workspace.beside is None
    assert still_holds(engine, 2)
    with pytest.raises(Cancelled):
        engine.run(TwoRunsRequest(run=2, site=SITE, other=OTHER), lambda: True, lambda *_: None)
    assert compared(engine).done == 1.0


def test_what_is_done_is_said(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(current_run.WORK_PER_ANSWER, "cpu", 1)
    said: list[tuple[str, float | None]] = []
    request = TwoRunsRequest(run=2, site=SITE, other=OtherRun(RunInputs(STORY), "story-next"))
    first = engine.run(request, never, lambda *progress: said.append(progress))
    assert isinstance(first, TwoRunsView)
    engine.run(replace(request, have=first.done), never, lambda *progress: said.append(progress))
    assert [label for label, _ in said] == [
        "Opening story-next",
        "Running the model",
        "Comparing all heads",
        "Comparing all heads",
    ]
    assert said[-2][1] == 0.0
    assert said[-1][1] == first.done > 0.0


def test_another_place_for_b(engine: Engine, counted: dict[str, int]) -> None:
    half = OtherRun(RunInputs(STORY), "story-next", Placement("cpu", "bfloat16"))
    view = compared(engine, half)
    assert (view.b.device, view.b.dtype) == ("cpu", "bfloat16")
    assert "A runs in float32, B in bfloat16: part of what differs is rounding." in view.remarks
    assert compared(engine, replace(half, placement=None)).b.dtype == "float32"
    assert counted["load"] == 2


# --------------------------------------------------------------------------- long texts


@pytest.fixture
def long_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_models.protocol.values.LARGEST_WHOLE", 16)
    monkeypatch.setattr("attention_models.protocol.values.TILE", 8)


def test_a_long_text_is_compared_in_moments(
    engine: Engine, story_gpt: Model, long_maps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(current_run.WORK_PER_ANSWER, "cpu", 1)
    texts = STORY * 3, STORY * 2 + " Tom."
    ran = ask(engine, ForwardRequest(inputs=RunInputs(texts[0]), ticket=2))
    assert isinstance(ran, Ran)
    first = ask(engine, TwoRunsRequest(run=2, site=SITE, head=2, other=OtherRun(RunInputs(texts[1]))))
    assert isinstance(first, TwoRunsView)
    assert 0 < first.done < 1
    assert any(np.isnan(change.change) for change in first.changes)
    assert isinstance(ask(engine, AtlasRequest(run=2, size=8)), AtlasView)  # between two of them
    view = compared(engine, OtherRun(RunInputs(texts[1])))
    assert not any(np.isnan(change.change) for change in view.changes)
    assert (view.a.weights, view.b.weights) == (None, None)
    assert view.queries is not None
    assert view.maps is not None

    # all of it, a place at a time
    traces = [run(story_gpt, text).weights(SITE, 2) for text in texts]
    count = len(view.queries)
    whole = np.full((3, count, count), np.nan, np.float32)
    for r, row in enumerate(view.queries.places):
        for k, key in enumerate(view.queries.places):
            if row.a[0] < row.a[1] and key.a[0] < key.a[1]:
                whole[0, r, k] = traces[0][slice(*row.a), slice(*key.a)].sum(1).mean()
            if row.b[0] < row.b[1] and key.b[0] < key.b[1]:
                whole[1, r, k] = traces[1][slice(*row.b), slice(*key.b)].sum(1).mean()
    whole[2] = whole[0] - whole[1]

    def furthest(square: np.ndarray) -> float:
        known = square[~np.isnan(square)]
        return float(known[np.abs(known).argmax()]) if len(known) else np.nan

    def largest(square: np.ndarray) -> float:
        known = square[~np.isnan(square)]
        return float(known.max()) if len(known) else np.nan

    cell, tile = view.maps.cell, view.maps.tile
    assert tile == Tile(3, 0, 0)
    assert cell == 8
    assert view.maps.a.shape == (-(-count // cell),) * 2
    for shown, expected, how in (
        (view.maps.a, whole[0], largest),
        (view.maps.b, whole[1], largest),
        (view.maps.difference, whole[2], furthest),
    ):
        for i in range(shown.shape[0]):
            for j in range(shown.shape[1]):
                square = expected[i * cell : (i + 1) * cell, j * cell : (j + 1) * cell]
                assert shown[i, j] == pytest.approx(how(square), abs=1e-6, nan_ok=True)
    part = compared(engine, OtherRun(RunInputs(texts[1])), tile=Tile(0, 1, 0)).maps
    assert part is not None
    assert (part.tile, part.cell) == (Tile(0, 1, 0), 1)
    np.testing.assert_allclose(part.difference, whole[2, 8:16, :8], atol=1e-6)
    with pytest.raises(IndexError):
        engine.run(
            TwoRunsRequest(run=2, site=SITE, other=OtherRun(RunInputs(texts[1])), tile=Tile(0, 99, 0)),
            never,
            lambda *_: None,
        )


def test_failures_are_no_failures_of_the_program(engine: Engine) -> None:
    for other in (OtherRun(RunInputs("")), OtherRun(RunInputs(STORY), "no such checkpoint")):
        failure = ask(engine, TwoRunsRequest(run=2, site=SITE, other=other))
        assert isinstance(failure, Failure)
        assert failure.sentence.startswith("B cannot be ")
        assert failure.sentence.endswith(".")
