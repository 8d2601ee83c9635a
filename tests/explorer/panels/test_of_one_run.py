"""What a panel shows belongs to the token, the run and the checkpoint that it names: against eager transformers.

After another token, another checkpoint, a new text, undo and an intervention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from attention_explorer.panels.base import Panel
from attention_explorer.panels.flow.box_text import ways_to_say
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import (
    OpenCheckpoint,
    PutIntervention,
    SelectCell,
    SelectHead,
    SelectQuery,
    SetText,
    SetView,
)
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import WEIGHTS
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.flow import BlockRequest, HeadsBox, OutputBox
from attention_models.protocol.head import HeadView
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Lane, Result
from attention_models.protocol.running import ForwardRequest, Ran
from attention_models.protocol.scripts import ScriptView
from attention_models.protocol.values import SiteRef
from tests.explorer.independent import facts_of
from tests.explorer.real_window import EXAMPLE, opened_window, panel_of, settle, wait_until
from tests.models.scripts.running import printed

SITE = SiteRef("decoder", 5)
CLOSE = 5e-4 + 1e-5
"""The table says three decimals of float32 numbers."""


@pytest.fixture
def window(qapp) -> Iterator[MainWindow]:
    with opened_window("story-gpt", EXAMPLE, "flow") as window:
        window.session.dispatch(SelectHead(SITE, 5))
        window.session.dispatch(SelectQuery(13))
        window.session.dispatch(SetView("distance", "block"))
        settle(window)
        yield window


def table_of(window: MainWindow) -> tuple[str, np.ndarray]:
    """The heading of Flow's table, and its last column."""
    numbers = panel_of(window, FlowPanel).body.numbers
    model = numbers.table.model()
    last = model.columnCount() - 1
    values = [model.index(row, last).data().replace("−", "-") for row in range(model.rowCount())]
    return numbers.heading.text(), np.array([float(value) for value in values])


@pytest.mark.full
def test_the_table_of_numbers_follows_what_is_shown(window):
    session, panel = window.session, panel_of(window, FlowPanel)
    view = panel.body.block.view
    assert view is not None
    panel._show_numbers(next(i for i, box in enumerate(view.boxes) if isinstance(box, OutputBox)))

    def agrees(module: str, name: str = "story-gpt") -> None:
        settle(window)
        heading, out = table_of(window)
        assert module in heading
        expected = facts_of(name, session.state.ran).outputs[module][session.state.selection.query]
        np.testing.assert_allclose(out, expected, atol=CLOSE)

    output = "transformer.h.5.attn.c_proj"
    agrees(output)
    session.dispatch(SelectQuery(10))
    agrees(output)
    session.dispatch(SelectHead(SiteRef("decoder", 2), 0))
    agrees("transformer.h.2.attn.c_proj")
    session.undo()
    agrees(output)
    session.dispatch(SetText("Ben and Sue sat on the wall. Sue gave the book to"))
    agrees(output)
    session.undo()
    agrees(output)
    session.dispatch(OpenCheckpoint("story-bert"))
    settle(window)
    agrees(f"bert.encoder.layer.{session.state.selection.site.layer}.attention.output.dense", "story-bert")


def ran_in(window: MainWindow) -> Ran:
    ran = window.session.state.ran
    assert ran is not None
    return ran


def written_by(window: MainWindow, skips: tuple[Ablation, ...]) -> dict[str, np.ndarray]:
    """What each module of transformers' own story-gpt gives for the tokens on screen, with heads or attention off."""
    ids = torch.tensor([[token.id for token in ran_in(window).tokens]])
    model = transformers.AutoModelForCausalLM.from_pretrained(WEIGHTS / "story-gpt", attn_implementation="eager")
    model = model.float().eval()
    found: dict[str, np.ndarray] = {}
    for skip in skips:
        attention = model.transformer.h[skip.site.layer].attn

        def without(_module: object, given: tuple[torch.Tensor], skip: Ablation = skip) -> tuple[torch.Tensor]:
            kept = given[0].clone().unflatten(-1, (8, -1))
            kept[:, :, slice(None) if skip.unit is None else skip.unit] = 0
            return (kept.flatten(-2),)

        attention.c_proj.register_forward_pre_hook(without)
        if skip.unit is None:  # nor is its bias added
            attention.c_proj.register_forward_hook(lambda _module, _given, out: torch.zeros_like(out))
    for name, module in model.named_modules():
        if name.endswith("c_proj"):
            module.register_forward_hook(lambda _m, _g, out, name=name: found.update({name: out[0].detach().numpy()}))
    with torch.no_grad():
        found["logits"] = model(input_ids=ids).logits[0].numpy()
    return found


def heads_and_output(window: MainWindow) -> tuple[HeadsBox, OutputBox]:
    view = panel_of(window, FlowPanel).body.block.view
    assert view is not None
    heads = next(box for box in view.boxes if isinstance(box, HeadsBox))
    return heads, next(box for box in view.boxes if isinstance(box, OutputBox))


@pytest.mark.full
def test_switched_off_attention_looks_switched_off_in_flow(window):
    """One head, then all of them: no arc is drawn of a head that carries nothing, and its boxes say so."""
    session, body = window.session, panel_of(window, FlowPanel).body

    def has_arcs() -> bool:
        return body.model.arcs is not None

    assert has_arcs()
    for skip, off in ((Ablation("head", SITE, 5), (5,)), (Ablation("attention", SITE), tuple(range(8)))):
        session.dispatch(PutIntervention(skip))
        settle(window)
        heads, output = heads_and_output(window)
        assert heads.off == off
        assert output.off == (skip.part == "attention")
        assert not has_arcs()
        expected = written_by(window, session.state.ran.inputs.interventions)
        at = session.state.selection.query
        np.testing.assert_allclose(output.after, expected["transformer.h.5.attn.c_proj"][at], atol=1e-5)
        picture = body.block.painter_of(body.block.layout_now())
        assert "switched off" in ways_to_say(heads, picture.around)[0]
        session.dispatch(PutIntervention(replace(skip, on=True)))
        settle(window)
        assert heads_and_output(window)[0].off == ()
        assert has_arcs()


class Slow:
    """Keeps the engine's answers to a lane until they are let go, as a large model would."""

    def __init__(self, window: MainWindow, lane: Lane) -> None:
        self._bridge, self._lane = window.bridge, lane
        self._kept: list[Result] = []
        self._receive = window.bridge._receive
        setattr(self._bridge, "_receive", self._take)  # noqa: B010

    def _take(self, result: Result) -> None:
        if result.request.lane == self._lane:
            self._kept.append(result)
        else:
            self._receive(result)

    @property
    def has_one(self) -> bool:
        return bool(self._kept)

    def let_go(self) -> None:
        setattr(self._bridge, "_receive", self._receive)  # noqa: B010
        for result in self._kept:
            self._receive(result)


def veiled(window: MainWindow) -> set[str]:
    return {panel.name for panel in window.findChildren(Panel) if panel.isVisible() and panel.is_veiled}


def row_in_flow(window: MainWindow) -> np.ndarray:
    arcs = panel_of(window, FlowPanel).body.model.arcs
    assert arcs is not None
    return arcs.weights


def check_row(window: MainWindow, name: str = "story-gpt") -> None:
    """The row that Flow draws as arcs, and the one that Next says, are of the run, head and token named."""
    settle(window)
    facts, chosen = facts_of(name, ran_in(window)), window.session.state.selection
    assert chosen.site is not None
    np.testing.assert_allclose(row_in_flow(window), facts.weights[chosen.site][chosen.head, chosen.query], atol=1e-5)
    assert not veiled(window)


def test_figures_of_the_run_before_are_pale_until_the_next_is_here(window):
    """A new text, undo, another checkpoint, an intervention: then the right numbers, and nothing pale."""
    session, panel = window.session, panel_of(window, FlowPanel)
    session.dispatch(SelectQuery(10))
    check_row(window)
    before = session.state.ran
    steps: list[tuple[Callable[[], object], Lane, str]] = [
        (lambda: session.dispatch(SetText("Ben sat. Sue gave")), ForwardRequest.lane, "story-gpt"),
        (session.undo, ForwardRequest.lane, "story-gpt"),
        (lambda: session.dispatch(OpenCheckpoint("story-bert")), LoadRequest.lane, "story-bert"),
        (session.undo, LoadRequest.lane, "story-gpt"),
    ]
    for step, lane, name in steps:
        hint, cell, run = panel.body.sentence.text(), session.state.selection, session.state.ran
        slow = Slow(window, lane)
        step()
        wait_until(lambda: "flow" in veiled(window) and slow.has_one)  # noqa: B023
        wait_until(lambda: {"flow", "next", "trust", "input"} <= veiled(window))
        assert session.state.ran is run
        assert session.state.selection == cell  # of the run that is drawn: not that of the text to come
        assert panel.body.sentence.text() == hint
        slow.let_go()
        check_row(window, name)
    assert session.state.ran.tokens == before.tokens
    assert session.state.selection.query == 10


def test_the_block_before_is_pale_while_the_next_is_computed(window):
    session, panel = window.session, panel_of(window, FlowPanel)
    slow = Slow(window, BlockRequest.lane)
    session.dispatch(SelectQuery(9))
    wait_until(lambda: panel.is_veiled)
    slow.let_go()
    settle(window)
    assert not panel.is_veiled
    _, output = heads_and_output(window)
    expected = facts_of("story-gpt", session.state.ran).outputs["transformer.h.5.attn.c_proj"][9]
    np.testing.assert_allclose(output.after, expected, atol=1e-5)


@pytest.mark.full
def test_the_script_of_head_prints_the_cell_that_is_selected(qapp, tmp_path):
    """story-next, from “He” to “Tom”."""
    with opened_window("story-next", "", "heads") as window:
        session = window.session
        words = [token.text for token in ran_in(window).tokens]
        query, key = words.index("He"), words.index("Tom")
        session.dispatch(SelectCell(query, key))
        settle(window)
        panel_of(window, HeadMapPanel).show_script()
        wait_until(lambda: session.state.results.of(ScriptView) is not None)
        view, script = session.state.results.of(HeadView), session.state.results.of(ScriptView)
        assert view is not None
        assert script is not None
        line = printed({"head": script.code}, tmp_path)["head"][0]
        assert line.name == f"weight of ({query}, {key})"
        assert line.computed == pytest.approx(float(view.weights[query, key]), abs=1e-6)
