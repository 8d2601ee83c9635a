"""Flow in the window, with the real engine and every shipped model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

import attention_models as models
from attention_explorer.panels.flow.model_scene import Place
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.session.intents import ClearInterventions, OpenCheckpoint, SelectHead, SelectQuery, SetView
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import SHIPPED
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.flow import BlockView
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import EXAMPLE, opened_window, panel_of, settle, wait_until

pytestmark = pytest.mark.x


@pytest.fixture(scope="module")
def window(qapp) -> Iterator[MainWindow]:
    with opened_window(arrangement="flow") as opened:
        yield opened


def flow(window: MainWindow) -> FlowPanel:
    return panel_of(window, FlowPanel)


def click(widget, rect) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=rect.center().toPoint())


def back(window: MainWindow) -> None:
    window.session.dispatch(ClearInterventions())
    window.session.dispatch(SetView("distance", "model"))
    window.session.dispatch(SelectHead(SiteRef("decoder", 5), 5))
    window.session.dispatch(SelectQuery(13))
    settle(window)


def test_it_is_in_front_and_shows_the_models_own_numbers(window):
    """Held against hooks on transformers' own modules."""
    assert flow(window).isVisible()
    model = models.open_checkpoint("story-gpt")
    wrote: dict[str, np.ndarray] = {}

    def hook(name: str):
        def keep(_module, _inputs, output) -> None:
            out = output[0] if isinstance(output, tuple) else output
            wrote[name] = out[0].norm(dim=-1).numpy()

        return keep

    layers: Any = model.module.get_submodule("transformer.h")
    handles = [layer.attn.register_forward_hook(hook(f"attention {i}")) for i, layer in enumerate(layers)]
    handles += [layer.mlp.register_forward_hook(hook(f"feed_forward {i}")) for i, layer in enumerate(layers)]
    handles += [layer.register_forward_hook(hook(f"stream {i}")) for i, layer in enumerate(layers)]
    with torch.no_grad():
        model.module(**model.encode(EXAMPLE).inputs)
    for handle in handles:
        handle.remove()
    blocks = flow(window).body.model.scene.stacks[0].flow.blocks
    assert len(blocks) == 8
    for i, block in enumerate(blocks):
        np.testing.assert_allclose(block.norms, wrote[f"stream {i}"], rtol=1e-5)
        for written in block.written:
            np.testing.assert_allclose(written.norms, wrote[f"{written.part} {i}"], rtol=1e-5)


def test_its_key_brings_it_to_the_front(window):
    window.menus["show_heads"].trigger()
    assert not flow(window).isVisible()
    assert window.menus["show_flow"].shortcut().toString() == "F4"
    window.menus["show_flow"].trigger()
    assert flow(window).isVisible()


def test_from_the_model_to_one_number_and_back_by_the_path(window):
    body = flow(window).body
    click(body.model, body.model.name_rect(0, 5))  # selected already
    settle(window)
    assert body.block.isVisible()
    click(body.path, body.path.item_rect(4))
    settle(window)
    cell = next(panel for panel in window.panels if panel.name == "cell")
    assert cell.isVisible()
    assert flow(window).isVisible()
    path = cell._path[0]
    assert path.here == 4
    click(path, path.item_rect(0))
    settle(window)
    assert body.model.isVisible()
    assert window.session.state.document.view.distance == "model"
    back(window)


def test_the_feed_forward_network_switched_off_in_its_box(window):
    """Loss and next token stand beside, and they are the comparison's."""
    window.session.dispatch(SetView("distance", "block"))
    settle(window)
    body = flow(window).body
    view = window.session.state.results.of(BlockView)
    assert view is not None
    box = next(i for i, each in enumerate(view.boxes) if each.part == "feed_forward" and i in body.block.switches
               and not each.module.endswith("ln_2"))  # fmt: skip
    click(body.block, body.block.switch_rect(box))
    settle(window)
    state = window.session.state
    assert state.ran is not None
    assert state.ran.inputs.interventions == (Ablation("mlp", SiteRef("decoder", 5)),)
    compared = state.results.of(CompareView)
    assert compared is not None
    before, after = (loss / math.log(2) for loss in (compared.loss_before, compared.loss_after))
    assert body.effect.text() == f"loss {before:.3f} → {after:.3f} bits"
    assert compared.loss_before != compared.loss_after
    rows = body.model.outputs[0].rows
    assert [row.share for row in rows] == [change.after for change in compared.token_changes[:4]]
    assert [row.before for row in rows] == [change.before for change in compared.token_changes[:4]]
    written = {each.part: each for each in body.model.scene.stacks[0].flow.blocks[5].written}
    assert written["feed_forward"].off
    assert not written["feed_forward"].norms.any()
    assert body.block.switches[box] == "Switch on"
    click(body.block, body.block.switch_rect(box))
    settle(window)
    assert window.session.state.ran.inputs.interventions == ()
    back(window)


@pytest.mark.parametrize("part", [0, 1])
def test_a_norms_gain_switched_off_is_the_gain_of_that_very_norm(window, part):
    window.session.dispatch(SetView("distance", "block"))
    settle(window)
    body = flow(window).body
    view = window.session.state.results.of(BlockView)
    assert view is not None
    boxes = [i for i, each in enumerate(view.boxes) if each.kind == "LayerNorm"]
    click(body.block, body.block.switch_rect(boxes[part]))
    settle(window)
    after = window.session.state.results.of(BlockView)
    assert after is not None
    norms = [after.boxes[i] for i in boxes]
    assert [each.off for each in norms] == [part == 0, part == 1]
    plain = norms[part]
    x = plain.before.astype(np.float64)
    np.testing.assert_allclose(plain.after, (x - x.mean()) / np.sqrt(x.var() + 1e-5), atol=1e-5)
    back(window)


def test_play_goes_through_all_of_it(window):
    panel = flow(window)
    window.session.dispatch(SetView("reduce_motion", True))
    view = window.session.state.results.of(BlockView)
    assert view is not None
    said = []
    for _ in range(panel.player.count):
        QTest.mouseClick(panel.body.play.step_button, Qt.MouseButton.LeftButton)
        said.append(panel.body.sentence.text())
    assert len(said) == len(set(said)) == 1 + 8 + len(view.boxes) + 1
    assert said[-1].startswith("Next, after “to”: “Tom”, 67.9 %")
    QTest.keyClick(panel.body.model, Qt.Key.Key_Escape)
    window.session.dispatch(SetView("reduce_motion", False))


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "story-gpt"])
def test_every_shipped_model_fills_it(window, name):
    window.session.dispatch(OpenCheckpoint(name))
    loaded = lambda: window.session.state.results.loaded  # noqa: E731
    wait_until(lambda: loaded() is not None and loaded().info.reference == name)
    settle(window)
    panel, body = flow(window), flow(window).body
    assert not window.panel_bar.isVisible(), window.panel_bar.text
    ran = window.session.state.ran
    assert ran is not None
    if loaded().info.textbook:
        scene = body.recurrent.scene
        assert body.recurrent.isVisible()
        assert scene is not None
        assert (len(scene.source), len(scene.target)) == (len(ran.source), len(ran.tokens))
        assert (scene.flow.bottleneck is None) == bool(ran.sites)
        return
    stacks = body.model.scene.stacks
    lengths = [len(ran.source), len(ran.tokens)] if ran.source else [len(ran.tokens)]
    assert [len(stack.labels) for stack in stacks] == lengths
    assert body.model.isVisible()
    assert body.model.outputs
    click(body.model, body.model.crossing_rect(Place(len(stacks) - 1, 0, 0)))
    settle(window)
    click(body.model, body.model.crossing_rect(Place(len(stacks) - 1, 0, 0)))
    settle(window)
    view = window.session.state.results.of(BlockView)
    assert view is not None
    assert (view.request.layer, view.request.position) == (0, 0)
    boxes = view.boxes
    assert body.block.view is view
    assert not [box for box in boxes if type(box).__name__ == "ModuleBox"]
    rect = body.block.rect()
    assert all(rect.contains(body.block.box_rect(i).toAlignedRect()) for i in range(len(boxes)))
    panel.grab()
    QTest.mouseMove(body.block, QPoint(2, 2))
    window.session.dispatch(SetView("distance", "model"))
