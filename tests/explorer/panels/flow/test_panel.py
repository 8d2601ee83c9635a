"""The Flow panel, driven by mouse and keys, with views made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRectF, Qt

from attention_explorer.panels.flow.model_scene import Place
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.paths import resource
from attention_explorer.session.hover import Pointed
from attention_explorer.session.intents import SelectCell, SelectHead, SelectQuery, SetView
from attention_explorer.session.state import InterventionItem, State
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.comparison import CompareRequest, TokenChange
from attention_models.protocol.flow import BlockRequest, FlowRequest
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.prediction import PredictionRequest
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.flow.made import block_view, flow_view, two_stacks
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

SITE = SiteRef("decoder", 5)
WEIGHTS = np.tril(np.full((4, 4), 0.25, np.float32))


def head_view(run: int = 1) -> HeadView:
    return HeadView(request=HeadRequest(run=run, site=SITE, head=1), weights=WEIGHTS, masked=None)


@pytest.fixture
def session() -> SilentSession:
    state = answers.after(State(), answers.loaded(), answers.ran(), SelectHead(SITE, 1), SelectCell(3, 0))
    return SilentSession(state)


@pytest.fixture
def panel(qtbot, session) -> FlowPanel:
    panel = shown(qtbot, FlowPanel, session)
    panel.resize(780, 560)
    session.arrive(flow_view(), block_view(), answers.prediction_view(), head_view())
    return panel


def middle(rect: QRectF) -> QPoint:
    return rect.center().toPoint()


def click(qtbot, widget, rect: QRectF) -> None:
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=middle(rect))


def test_with_the_whole_model_it_asks_for_what_stands_above_it_then_for_the_block(qtbot, session):
    panel = shown(qtbot, FlowPanel, session)
    session.arrive(flow_view(), block_view(), answers.prediction_view(), head_view())
    first = list(dict.fromkeys(session.asked))  # asked for again before it is here, a request is one to the engine
    assert first == [
        FlowRequest(run=1),
        PredictionRequest(run=1, positions=(3,)),
        HeadRequest(run=1, site=SITE, head=1),
        BlockRequest(run=1, stack="decoder", layer=5, position=3),
    ]
    assert not panel.is_waiting()
    asked = len(session.asked)
    session.dispatch(SelectQuery(2))
    assert session.asked[asked:] == [
        BlockRequest(run=1, stack="decoder", layer=5, position=2),
        PredictionRequest(run=1, positions=(2,)),
    ]


def test_it_shows_the_run(panel):
    model, block = panel.body.model, panel.body.block
    assert [label.word for label in model.scene.stacks[0].labels] == ["Tom", "and", "Anna", "went"]
    assert model.marks.selected == Place(0, 5, 3)
    assert model.marks.key == (0, 0)
    assert model.arcs is not None
    np.testing.assert_array_equal(model.arcs.weights, WEIGHTS[3])
    assert [(row.label, row.text, row.share) for row in model.outputs[0].rows] == [("to", "68.4 %", 0.684)]
    assert block.around.written == (("attention", 2.0), ("feed_forward", 8.0))
    assert block.ends == ("x   residual stream after block 4, norm 28.00", "to block 6, norm 32.00")
    assert block.heading == ("Block 5, for “went”", "pre-norm, read from the model")
    assert panel.body.path.steps == ("story-gpt", "block 5", "attention", "head 1", "cell “went”, “Tom”")


def test_a_click_selects_layer_and_token_and_once_more_goes_in(panel, session, qtbot):
    model = panel.body.model
    click(qtbot, model, model.crossing_rect(Place(0, 2, 1)))
    selection = session.state.selection
    assert (selection.site, selection.head, selection.query) == (SiteRef("decoder", 2), 1, 1)
    assert session.state.document.view.distance == "model"
    click(qtbot, model, model.crossing_rect(Place(0, 2, 1)))
    assert session.state.document.view.distance == "block"
    assert panel.body.block.isVisible()
    assert not model.isVisible()
    assert panel.body.path.here == 1


def test_chips_select_the_query_and_with_shift_the_key(panel, session, qtbot):
    model = panel.body.model
    click(qtbot, model, model.chip_rect(0, 2))
    at = middle(model.chip_rect(0, 1))
    qtbot.mouseClick(model, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, pos=at)
    assert (session.state.selection.query, session.state.selection.key) == (2, 1)


def test_escape_goes_out_and_enter_in(panel, session, qtbot):
    view = session.state.document.view
    assert view.distance == "model"
    qtbot.keyClick(panel.body.model, Qt.Key.Key_Return)
    assert session.state.document.view.distance == "block"
    panel.body.block.setFocus()
    qtbot.keyClick(panel.body.block, Qt.Key.Key_Escape)
    assert session.state.document.view.distance == "model"


def test_the_keyboard_goes_along_with_the_picture(panel, session, qtbot):
    """In by Enter, from head to head, and out by Esc, without a click in between."""
    body = panel.body
    body.model.setFocus()
    qtbot.waitUntil(body.model.hasFocus)
    qtbot.keyClick(body.model, Qt.Key.Key_Return)
    assert body.block.isVisible()
    assert body.block.hasFocus()
    session.dispatch(SetView("distance", "attention"))
    assert body.matrices.picture.hasFocus()
    qtbot.keyClick(body.matrices.picture, Qt.Key.Key_Escape)
    assert body.block.hasFocus()
    qtbot.keyClick(body.block, Qt.Key.Key_Escape)
    assert body.model.hasFocus()


def test_the_path_goes_to_distances_and_to_other_panels(panel, session, qtbot):
    fronts: list[str] = []
    panel.front_wanted.connect(fronts.append)
    path = panel.body.path
    for step, distance in ((1, "block"), (2, "attention"), (0, "model")):
        click(qtbot, path, path.item_rect(step))
        assert session.state.document.view.distance == distance
    for step in (3, 4):
        click(qtbot, path, path.item_rect(step))
    assert fronts == ["flow", "flow", "flow", "map", "cell"]


def test_a_head_in_the_block_is_selected_and_gone_into(panel, session, qtbot):
    session.dispatch(SetView("distance", "block"))
    block = panel.body.block
    click(qtbot, block, block.head_rect(4, 3))
    assert session.state.selection.head == 3
    click(qtbot, block, block.head_rect(4, 3))
    assert session.state.document.view.distance == "attention"


def test_numbers_of_a_box_open_and_close(panel, session, qtbot):
    session.dispatch(SetView("distance", "block"))
    block, numbers = panel.body.block, panel.body.numbers
    qtbot.mouseClick(block, Qt.MouseButton.LeftButton, pos=(block.box_rect(7).topLeft().toPoint() + QPoint(20, 8)))
    assert numbers.isVisible()
    assert "h.5.ln_2" in numbers.heading.text()
    assert numbers.formula.text() == "y = (x − mean) ÷ √(variance + ε) × gain + bias"
    assert numbers.worked.text().startswith("dimension 0: (2.000 − 0.0625) ÷ √(1.407² + 1e-05) × 0.500 + 0.125 = ")
    numbers.table.setCurrentIndex(numbers.table.model().index(5, 2))
    assert numbers.worked.text() == "dimension 5: (−3.000 − 0.0625) ÷ √(1.407² + 1e-05) × 0.500 + 0.125 = −0.963"
    qtbot.keyClick(block, Qt.Key.Key_Escape)
    assert not numbers.isVisible()
    assert session.state.document.view.distance == "block"


def test_switching_off_puts_an_intervention_and_on_again_takes_it_away(panel, session, qtbot):
    session.dispatch(SetView("distance", "block"))
    block = panel.body.block
    assert block.switches == {0: "Switch off", 5: "Switch off", 7: "Switch off", 8: "Switch off"}
    expected = {0: "norm1", 5: "attention", 7: "norm2", 8: "mlp"}
    for box, part in expected.items():
        click(qtbot, block, block.switch_rect(box))
        assert session.state.document.interventions == (InterventionItem(Ablation(part, SITE)),)
        assert block.switches[box] == "Switch on"
        click(qtbot, block, block.switch_rect(box))
        assert session.state.document.interventions == ()


def test_loss_and_next_token_stand_beside_the_model_as_it_is(panel, session):
    edited = RunInputs("Tom and Anna went", interventions=(Ablation("mlp", SITE),))
    run = answers.ran(run=2)
    session.arrive(replace(run, request=replace(run.request, inputs=edited)), flow_view(run=2))
    session.arrive(block_view(BlockRequest(run=2, stack="decoder", layer=5, position=3)))
    session.arrive(answers.prediction_view(run=2), head_view(run=2))
    assert isinstance(session.asked[-1], CompareRequest)
    change = TokenChange(7, "␣to", 0.684, 0.25)
    view = answers.comparison(session.asked[-1], token_changes=(change,), loss_before=3.0, loss_after=3.5)
    session.arrive(view)
    row = panel.body.model.outputs[0].rows[0]
    assert (row.label, row.share, row.before) == ("to", 0.25, 0.684)
    assert row.text == "25.0 %  (was 68.4 %)"
    assert panel.body.effect.text() == "loss 4.328 → 5.049 bits"  # 3 and 3.5 over log 2
    assert panel.body.mark.text() == "edited × 1"
    assert panel.body.mark.isVisible()


def test_what_a_click_does_is_said_in_the_same_words_everywhere(panel, session):
    said = "click a block to select it, again to open it"
    assert said in panel.body.sentence.text()
    assert said in panel.about(session.state).to_try
    assert said in resource("help.md").read_text(encoding="utf-8").lower()
    session.dispatch(SetView("distance", "block"))
    assert "click a box to see its formula" in panel.body.sentence.text()  # one is in it by now


def test_play_walks_box_by_box_and_says_the_numbers(panel, session, qtbot):
    session.dispatch(SetView("reduce_motion", True))
    body = panel.body
    assert body.sentence.text().startswith("Press Play to follow “went”")
    qtbot.mouseClick(body.play.step_button, Qt.MouseButton.LeftButton)
    assert body.sentence.text().startswith("“went” becomes a vector")
    assert body.model.marks.playing == Place(0, -1, 3)
    for _ in range(6):
        qtbot.keyClick(body.model, Qt.Key.Key_S)
    assert "Layer norm: mean 0.0625" in body.sentence.text()
    assert body.path.here == 1  # in the block
    assert body.block.isVisible()
    qtbot.mouseClick(body.play.back_button, Qt.MouseButton.LeftButton)
    assert body.sentence.text().startswith("Block 4: attention writes 2.000")
    assert body.path.here == 0
    qtbot.keyClick(body.model, Qt.Key.Key_Escape)
    assert panel.player.at == -1
    assert body.model.marks.playing is None


def test_play_runs_by_itself_and_pauses(panel, session, qtbot):
    session.dispatch(SetView("reduce_motion", True))
    panel.body.play.speed.setValue(panel.body.play.speed.maximum())
    panel.player.halt_ms = 1
    qtbot.mouseClick(panel.body.play.play_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: panel.player.at > 2, timeout=10_000)
    qtbot.mouseClick(panel.body.play.play_button, Qt.MouseButton.LeftButton)
    at = panel.player.at
    assert not panel.player.playing
    assert panel.body.play.play_button.text() == "▶ Play"
    qtbot.wait(30)
    assert panel.player.at == at


def test_with_room_model_and_block_stand_side_by_side(panel):
    assert not panel.body.shows_both
    panel.resize(1400, 700)
    assert panel.body.model.isVisible()
    assert panel.body.block.isVisible()
    assert panel.body.model.width() > 500


def test_pointing_lights_the_token_everywhere(panel, qtbot):
    model = panel.body.model
    pointed: list[Pointed] = []
    panel.hover.changed.connect(pointed.append)
    qtbot.mouseMove(model, middle(model.crossing_rect(Place(0, 2, 1))))
    assert pointed == [Pointed(query=1)]
    panel.hover.point(Pointed(query=2))
    assert model.marks.hovered == (0, 2)


def test_another_run_leaves_the_picture_until_its_own_is_here(panel, session):
    before = panel.body.model.scene
    session.arrive(answers.ran(run=2))
    assert panel.body.model.scene is before
    session.arrive(flow_view(run=2))
    assert panel.body.model.scene is not before


def test_both_stacks_of_an_encoder_decoder_model(qtbot):
    state = answers.after(answers.TRANSLATING, answers.translator(), answers.translation())
    session = SilentSession(answers.after(state, SelectHead(SiteRef("cross", 1), 0), SelectCell(1, 2)))
    panel = shown(qtbot, FlowPanel, session)
    panel.resize(900, 560)
    session.arrive(two_stacks())
    model = panel.body.model
    assert [stack.title for stack in model.scene.stacks] == ["encoder", "decoder"]
    assert (model.marks.selected, model.marks.key) == (Place(1, 1, 1), (0, 2))
    assert session.asked[-1] == BlockRequest(run=1, stack="decoder", layer=1, position=1)
    click(qtbot, model, model.crossing_rect(Place(0, 0, 1)))
    assert (session.state.selection.site, session.state.selection.query) == (SiteRef("encoder", 0), 1)
    assert model.marks.selected == Place(0, 0, 1)


def test_of_a_cross_attention_the_source_chips_are_its_keys(qtbot):
    state = answers.after(answers.TRANSLATING, answers.translator(), answers.translation())
    session = SilentSession(answers.after(state, SelectHead(SiteRef("cross", 1), 0), SelectCell(1, 2)))
    panel = shown(qtbot, FlowPanel, session)
    panel.resize(900, 560)
    session.arrive(two_stacks())
    click(qtbot, panel.body.model, panel.body.model.chip_rect(0, 0))
    assert (session.state.selection.site, session.state.selection.key) == (SiteRef("cross", 1), 0)


def test_before_a_run_it_says_what_will_be_here(qtbot):
    panel = shown(qtbot, FlowPanel, SilentSession())
    assert panel.body.reason.isVisible()
    assert "appears here" in panel.body.reason.text()


def test_with_the_largest_text_the_sentence_is_read_whole(panel, qtbot):
    panel.resize(540, 460)
    body, said = panel.body, panel.body.sentence.text()
    font = panel.font()
    font.setPointSizeF(20)
    body.setFont(font)
    qtbot.waitUntil(lambda: body.sentence.heightForWidth(body.sentence.width()) <= body.sentence.height())
    assert body.sentence.text() == said
    assert "…" not in said
