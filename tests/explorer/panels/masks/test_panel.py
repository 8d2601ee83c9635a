"""The Mask and scale panel on the real engine, driven by mouse and keyboard."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

import attention_models as models
from attention_explorer.panels.masks.effect import AFTER, BEFORE, CHANGE, dead_sentence, loss_sentence
from attention_explorer.session.intents import (
    Arrived,
    ClearInterventions,
    PutIntervention,
    RestoreDocument,
    SelectHead,
    SelectQuery,
    SetView,
    Show,
)
from attention_explorer.session.state import Document, InterventionItem, Selection
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.comparison import CompareRequest, CompareView, TokenChange
from attention_models.protocol.head import HeadView
from attention_models.protocol.interventions import Adapter, Mask, Scale
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef
from attention_models.views.comparison import loss
from tests.explorer.panels.masks_host import Host, opened_host
from tests.explorer.real_window import EXAMPLE, wait_until
from tests.explorer.session import answers
from tests.explorer.widgets.pointer import move_pointer

LEFT = Qt.MouseButton.LeftButton
SITE, HEAD, LAST = SiteRef("decoder", 5), 5, 13
START = Document("story-gpt", EXAMPLE, Selection(SITE, HEAD, LAST, 1))


@pytest.fixture(scope="module")
def opened(qapp) -> Iterator[Host]:
    with opened_host(START) as host:
        yield host


@pytest.fixture
def host(opened: Host) -> Host:
    opened.session.dispatch(RestoreDocument(START))
    opened.session.dispatch(Show(None))
    opened.settle()
    return opened


def click(widget, where: QPoint | None = None) -> None:
    QTest.mouseClick(widget, LEFT, Qt.KeyboardModifier.NoModifier, where or widget.rect().center())


def choose(host: Host, kind: str) -> None:
    """Choose a mask with the keyboard, as a person does: every step of the way is a choice."""
    box = host.masks.mask_knobs.kind
    box.setFocus()
    steps = box.findData(kind) - box.currentIndex()
    for _ in range(abs(steps)):
        QTest.keyClick(box, Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up)
    host.settle()


def interventions(host: Host) -> list[Any]:
    return [listed.value for listed in host.state.document.interventions]


def comparison(host: Host) -> CompareView:
    view = host.state.results.of(CompareView)
    assert view is not None
    assert host.state.ran is not None
    assert view.request.run == host.state.ran.run
    return view


def texts(host: Host) -> str:
    return "\n".join(label.text() for label in host.masks.findChildren(QLabel) if label.isVisibleTo(host.masks))


def listed(host: Host) -> list[str]:
    return [line.box.accessibleName() for line in host.masks.list.lines]


def numbers(host: Host) -> list[tuple[str, ...]]:
    return [tuple(label.text() for label in row) for row in host.masks.effect.numbers.rows]


def test_untouched_it_shows_the_models_own_numbers_and_an_invitation(host):
    shown = texts(host)
    assert "Nothing is changed: this is the model as trained." in shown
    trace = models.run(models.open_checkpoint("story-gpt"), EXAMPLE)
    row = trace.weights(SITE, HEAD)[LAST].astype(np.float64)
    bits = -(row * np.log2(np.where(row > 0, row, 1))).sum()
    assert numbers(host)[0][::2] == ("Entropy of row “to”", f"{value_text(bits)} bits")
    assert numbers(host)[1][::2] == ("Largest weight of row “to”", f"{value_text(row.max())} ⟨start⟩")
    assert numbers(host)[2][::2] == ("Loss on this text", f"{2.995 / math.log(2):.3f} bits")
    assert host.masks.effect.bars.accessibleDescription().startswith("␣Tom 67.9 %, ")
    assert not host.masks.effect.change.isVisibleTo(host.masks)
    assert "before" not in shown


def test_a_scope_and_a_mask_put_an_intervention_there(host):
    choose(host, "none")
    assert interventions(host) == [Mask("none", site=SITE, head=HEAD)]
    click(host.masks.scope_chooser.buttons["layer"])
    assert host.masks.mask_knobs.kind.currentData() == "trained"
    assert "Also on here: mask: none, decoder layer 5, head 5." in host.masks.mask_knobs.explanation.text()
    choose(host, "causal")
    click(host.masks.scope_chooser.buttons["everywhere"])
    choose(host, "none")
    assert interventions(host) == [Mask("none", site=SITE, head=HEAD), Mask("causal", site=SITE), Mask("none")]
    click(host.masks.scope_chooser.buttons["head"])
    assert host.masks.mask_knobs.kind.currentData() == "none"
    choose(host, "trained")
    assert interventions(host) == [Mask("causal", site=SITE), Mask("none")]


def test_opening_the_future_shows_the_leak(host):
    choose(host, "none")
    view = comparison(host)
    assert view.loss_before is not None
    assert view.loss_after is not None
    losses = [f"{loss / math.log(2):.3f} bits" for loss in (view.loss_before, view.loss_after)]
    assert numbers(host)[2] == ("Loss on this text", *losses)
    assert view.loss_after is not None
    assert view.loss_after < view.loss_before - 0.2
    assert "The loss falls while tokens may peek" in texts(host)
    click(host.masks.scope_chooser.buttons["everywhere"])
    choose(host, "none")
    assert "The future is open, and still the loss rises" in texts(host)


def test_every_figure_of_the_effect_is_that_of_two_runs_of_the_model(host):
    item = Scale(0.4, site=SITE, head=HEAD)
    host.session.dispatch(PutIntervention(item))
    host.settle()
    model = models.open_checkpoint("story-gpt")
    runs = [models.run(model, EXAMPLE), models.run(model, EXAMPLE, interventions=[item])]
    rows = [run.weights(SITE, HEAD)[LAST].astype(np.float64) for run in runs]
    bits = [f"{value_text(-(row * np.log2(np.where(row > 0, row, 1))).sum())} bits" for row in rows]
    assert numbers(host)[0][1:] == tuple(bits)
    words = [token.word for token in runs[0].tokens]
    assert numbers(host)[1][1:] == tuple(f"{value_text(row.max())} {words[row.argmax()]}" for row in rows)
    logits = [run.logits[LAST].astype(np.float64) for run in runs]
    shares = [np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in logits]
    best = int(np.maximum(*shares).argmax())
    described = host.masks.effect.bars.accessibleDescription()
    expected = f"{100 * shares[0][best]:.1f} % to {100 * shares[1][best]:.1f} %"
    assert described.startswith(f"{model.piece_label(best)} {expected}")
    assert host.masks.card._mark.text() == "edited × 1"
    difference = runs[1].weights(SITE, HEAD) - runs[0].weights(SITE, HEAD)
    readout = f"“to” looks at “Tom”: changed by {value_text(float(difference[LAST, 1]))}"
    assert host.masks.effect.change.map.readout(LAST, 1) == readout
    largest = value_text(float(np.abs(difference).max()))
    assert host.masks.effect.change.bar.accessibleDescription().endswith(f"to {largest}")


def test_a_small_change_of_what_is_hardly_likely_is_seen(host):
    host.session.dispatch(PutIntervention(Scale(0.4, site=SITE, head=HEAD)))
    host.settle()
    change = TokenChange(id=0, label="␣Tom", before=0.00024, after=0.00025)
    host.session.dispatch(Arrived(replace(comparison(host), token_changes=(change,))))
    assert host.masks.effect.bars.accessibleDescription() == "␣Tom 0.024 % to 0.025 %"


def test_the_map_of_changes_selects_a_cell(host):
    host.session.dispatch(PutIntervention(Scale(0.4, site=SITE, head=HEAD)))
    host.settle()
    host.masks.area.ensureWidgetVisible(host.masks.effect.change.map)
    heat_map = host.masks.effect.change.map
    click(heat_map, heat_map.cell_rect(9, 3).center().toPoint())
    assert (host.state.selection.query, host.state.selection.key) == (9, 3)
    assert host.map.map.selection == (9, 3)


def test_a_number_that_a_mask_can_not_take_is_a_notice_and_changes_nothing(host):
    choose(host, "window")
    assert interventions(host) == [Mask("window", window=4, site=SITE, head=HEAD)]
    number = host.masks.mask_knobs.number
    QTest.keyClick(number, Qt.Key.Key_Down)
    host.settle()
    assert interventions(host) == [Mask("window", window=3, site=SITE, head=HEAD)]
    number.selectAll()
    QTest.keyClicks(number, "0")
    QTest.keyClick(number, Qt.Key.Key_Return)
    notice = host.state.notice
    assert notice is not None
    assert notice.text.startswith("A “window” mask needs a number from 1 to ")
    assert interventions(host) == [Mask("window", window=3, site=SITE, head=HEAD)]
    assert number.value() == 3


def test_the_number_is_there_only_for_masks_that_need_one(host):
    assert not host.masks.mask_knobs.number.isVisibleTo(host.masks)
    choose(host, "blocks")
    assert host.masks.mask_knobs.number.isVisibleTo(host.masks)
    choose(host, "full")
    assert not host.masks.mask_knobs.number.isVisibleTo(host.masks)


def test_the_slider_from_1_over_d_to_1_and_its_ways_home(host):
    knobs = host.masks.scale_knobs
    slider = knobs.slider
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Home)
    host.settle()
    (least,) = interventions(host)
    assert least.factor * 32**-0.5 == pytest.approx(1 / 32)
    assert knobs.scale_text.text() == "Scale 0.0312 = 0.177 × 0.177: softer than trained"
    assert knobs.temperature_text.text() == "Temperature 5.66 = 1 / factor: the same knob"
    click(slider, QPoint(round(slider.x_of(32**0.5)), slider.handle_rect().center().toPoint().y()))
    host.settle()
    (unit,) = interventions(host)
    assert unit.factor == pytest.approx(32**0.5, rel=1e-12)
    assert knobs.scale_text.text() == "Scale 1.000 = 5.66 × 0.177: sharper than trained"
    QTest.mouseDClick(slider, LEFT, Qt.KeyboardModifier.NoModifier, slider.handle_rect().center().toPoint())
    host.settle()
    assert interventions(host) == []
    click(knobs.even)
    host.settle()
    assert interventions(host) == [Scale(0.0, site=SITE, head=HEAD)]
    assert knobs.scale_text.text().endswith("every key alike")
    assert numbers(host)[0][2] == f"{value_text(float(np.log2(14)))} bits"
    click(knobs.home)
    host.settle()
    assert interventions(host) == []


def test_an_exact_factor_can_be_typed(host):
    factor = host.masks.scale_knobs.factor
    factor.selectAll()
    QTest.keyClicks(factor, "0.25")
    assert interventions(host) == []  # not 0 on the way
    QTest.keyClick(factor, Qt.Key.Key_Return)
    assert interventions(host) == [Scale(0.25, site=SITE, head=HEAD)]
    assert host.masks.scale_knobs.slider.value == 0.25
    host.settle()


def test_of_a_drag_the_step_under_way_is_shown_and_then_the_newest(host):
    slider = host.masks.scale_knobs.slider
    ran: list[Any] = []
    host.bridge.arrived.connect(lambda result: ran.append(result) if isinstance(result, Ran) else None)
    start = slider.handle_rect().center().toPoint()
    QTest.mousePress(slider, LEFT, Qt.KeyboardModifier.NoModifier, start)
    for step in range(1, 41):
        move_pointer(slider, start - QPoint(step, 0), LEFT)  # forty steps before the first is answered
    wait_until(lambda: bool(ran) and ran[-1].inputs.interventions[0].factor == slider.value)  # the button is still held
    assert 1 <= len(ran) <= 2  # the one that was begun, and the newest
    QTest.mouseRelease(slider, LEFT, Qt.KeyboardModifier.NoModifier, start - QPoint(40, 0))
    host.settle()
    (item,) = interventions(host)
    assert item.factor == slider.value
    assert host.state.ran is not None
    assert host.state.ran.inputs.interventions == (item,)
    host.session.undo()
    assert interventions(host) == []
    host.settle()


def test_before_and_after_are_a_click_away_in_the_colours_of_weights(host):
    host.session.dispatch(PutIntervention(Mask("window", window=2, site=SITE, head=HEAD)))
    host.settle()
    view, change = comparison(host), host.masks.effect.change
    host.masks.area.ensureWidgetVisible(change)
    assert "changed by" in change.map.readout(LAST, LAST)
    for which, weights in ((BEFORE, view.before), (AFTER, view.after)):
        click(change.choice.button(which))
        assert change.map.readout(LAST, LAST).endswith(value_text(float(weights[LAST, LAST])))
        top = value_text(float(max(view.before.max(), view.after.max())))  # of both, so that they may be compared
        assert change.bar.accessibleDescription().endswith(f"to {top}")
        ending = f"looks at “Tom”: {value_text(float(view.before[LAST, 1]))}" if which == BEFORE else "“Tom”: masked"
        assert change.map.readout(LAST, 1).endswith(ending)
    assert not change.note.isVisibleTo(host.masks)
    click(change.choice.button(CHANGE))
    assert "changed by" in change.map.readout(LAST, LAST)
    assert "changed by" in change.map.readout(LAST, 1)  # the window hides it now: what it had is gone


@pytest.mark.parametrize("where", ["masks", "map"])
def test_what_is_forbidden_before_and_after_has_no_change(host, where):
    host.session.dispatch(PutIntervention(Mask("painted", cells=((5, 2, False), (3, 6, True)), site=SITE, head=HEAD)))
    host.session.dispatch(SetView("normalisation", "difference"))
    host.settle()
    shown = host.masks.effect.change.map if where == "masks" else host.map.map
    model = models.open_checkpoint("story-gpt")
    lengths = range(len(model.tokenize(EXAMPLE)))
    for query in lengths:
        for key in lengths:
            forbidden = key > query and (query, key) != (3, 6)  # by the causal mask, in both runs
            assert shown.readout(query, key).endswith(": masked") is forbidden, (query, key)
    assert "changed by" in shown.readout(5, 2)


def test_painting_over_the_head_map(host):
    click(host.masks.mask_knobs.brushes["block"])
    heat_map = host.map.map
    QTest.mousePress(heat_map, LEFT, Qt.KeyboardModifier.NoModifier, heat_map.cell_rect(LAST, 0).center().toPoint())
    move_pointer(heat_map, heat_map.cell_rect(LAST, 2).center().toPoint(), LEFT)
    QTest.mouseRelease(heat_map, LEFT, Qt.KeyboardModifier.NoModifier, heat_map.cell_rect(LAST, 2).center().toPoint())
    cells = tuple((LAST, key, False) for key in range(3))
    assert host.state.painted_cells == cells  # at once, before the model has answered
    assert not host.state.up_to_date
    host.settle()
    assert interventions(host) == [Mask("painted", cells=cells, site=SITE, head=HEAD)]
    assert not host.state.results.of(HeadView).weights[LAST, :3].any()
    click(host.masks.mask_knobs.brushes["allow"])
    click(heat_map, heat_map.cell_rect(4, 9).center().toPoint())
    host.settle()
    assert interventions(host) == [Mask("painted", cells=((4, 9, True), *cells), site=SITE, head=HEAD)]
    assert host.state.results.of(HeadView).weights[4, 9] > 0
    assert "drag to allow cells in this head" in [label.text() for label in host.map.card.findChildren(QLabel)]
    QTest.keyClick(heat_map, Qt.Key.Key_Escape)
    assert host.state.document.view.painting == "off"
    assert not host.masks.mask_knobs.brushes["allow"].isChecked()
    click(heat_map, heat_map.cell_rect(6, 2).center().toPoint())
    assert (host.state.selection.query, host.state.selection.key) == (6, 2)


def test_a_row_without_keys_is_said_in_words(host):
    cells = tuple((2, key, False) for key in range(3))
    host.session.dispatch(SelectQuery(2))
    host.session.dispatch(PutIntervention(Mask("painted", cells=cells, site=SITE, head=HEAD)))
    host.settle()
    shown = texts(host)
    assert "Row “and” may look at nothing: its weights are all 0, and this head writes nothing there." in shown
    assert numbers(host)[1][2] == "none"
    assert "nan" not in shown.lower()
    assert "None" not in shown


def test_the_list_switches_removes_and_clears(host):
    host.session.dispatch(PutIntervention(Scale(0.5)))
    host.session.dispatch(PutIntervention(Mask("window", window=3)))
    host.settle()
    lines = host.masks.list.lines
    assert [line.box.accessibleName() for line in lines] == ["scores × 0.5, everywhere", "mask: window 3, everywhere"]
    QTest.keyClick(lines[0].box, Qt.Key.Key_Space)
    assert host.state.document.interventions[0] == InterventionItem(Scale(0.5), on=False)
    host.settle()
    assert host.state.ran.inputs.interventions == (Mask("window", window=3),)
    QTest.keyClick(lines[0].box, Qt.Key.Key_Delete)
    assert interventions(host) == [Mask("window", window=3)]
    host.session.dispatch(PutIntervention(Scale(0.5)))
    click(host.masks.list.clear_button)
    assert interventions(host) == []
    host.session.undo()
    assert interventions(host) == [Mask("window", window=3), Scale(0.5)]
    host.settle()


def test_the_knobs_show_what_is_in_force_at_the_selected_head(host):
    host.session.dispatch(PutIntervention(Scale(0.5, site=SITE, head=HEAD)))
    assert host.masks.scale_knobs.slider.value == 0.5
    host.session.dispatch(SelectHead(SITE, 4))
    assert host.masks.scale_knobs.slider.value == 1
    host.session.dispatch(SelectHead(SITE, HEAD))
    assert host.masks.scale_knobs.slider.value == 0.5
    host.settle()


def test_what_other_scopes_do_to_the_scale_is_said(host):
    host.session.dispatch(PutIntervention(Scale(2)))
    host.session.dispatch(PutIntervention(Scale(0.4, site=SITE, head=HEAD)))
    host.settle()
    knobs = host.masks.scale_knobs
    assert comparison(host).factor == pytest.approx(0.8)
    assert knobs.scale_text.text() == "Scale 0.141 = 0.4 × 2 (other scopes) × 0.177: softer than trained"
    assert knobs.temperature_text.text().startswith("Temperature 1.25 ")
    click(host.masks.scope_chooser.buttons["everywhere"])
    assert knobs.scale_text.text() == "Scale 0.141 = 2 × 0.4 (other scopes) × 0.177: softer than trained"


def test_the_head_map_can_show_the_change(host):
    host.session.dispatch(PutIntervention(Scale(0.4, site=SITE, head=HEAD)))
    host.session.dispatch(SetView("normalisation", "difference"))
    host.settle()
    view = comparison(host)
    assert host.map.map.readout(LAST, 1).endswith(f"changed by {value_text(float(view.difference[LAST, 1]))}")
    assert host.map.bar.accessibleDescription().startswith("change from −")
    host.session.dispatch(ClearInterventions())
    host.settle()
    assert host.map.map.readout(LAST, 1).endswith("changed by 0")


@pytest.mark.parametrize("size", [(430, 540), (700, 900)])
@pytest.mark.parametrize("points", [10, 15])
def test_nothing_needs_to_scroll_sideways(host, size, points):
    host.session.dispatch(PutIntervention(Scale(0.4, site=SITE, head=HEAD)))
    host.session.dispatch(PutIntervention(Mask("window", window=3, site=SITE)))
    host.settle()
    body = host.masks.area.widget()
    font = body.font()
    font.setPointSize(points)
    body.setFont(font)
    margins = 2 * 14 + 2  # the card's
    try:
        assert (
            body.minimumSizeHint().width() <= size[0] - margins - host.masks.area.verticalScrollBar().sizeHint().width()
        )
    finally:
        body.setFont(host.font())


def made_up(before: float | None, after: float | None, peeks: bool = False, dead: tuple[int, ...] = ()) -> CompareView:
    request = CompareRequest(run=1, site=SITE, head=0, position=0)
    return answers.comparison(request, loss_before=before, loss_after=after, peeks=peeks, dead_rows=dead)


@pytest.mark.parametrize(
    ("before", "after", "peeks", "begins"),
    [
        (3.0, 2.5, True, "The loss falls while tokens may peek"),
        (3.0, 3.1, True, "The future is open, and still the loss rises"),
        (3.0, 2.5, False, "The loss falls on this text, without a look ahead"),
        (3.0, 3.1, False, "The loss rises: the model was not trained"),
        (3.0, 3.0002, True, "The loss is as it was"),
        (None, None, False, ""),
    ],
)
def test_the_sentence_about_the_loss_is_honest(before, after, peeks, begins):
    sentence = loss_sentence(made_up(before, after, peeks), "nats")
    assert sentence.startswith(begins)
    assert bool(sentence) == bool(begins)


def test_many_dead_rows_are_counted():
    sentence = dead_sentence(made_up(3.0, 3.0, dead=(0, 1, 2, 3, 4, 5)), list("abcdef"))
    assert sentence.startswith("Rows “a”, “b”, “c”, “d” and 2 more may look at nothing: their weights are all 0")


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_is_taken_out_by_its_box(qapp, tmp_path):
    from tests.models import lora, tiny

    base = tiny.save("gpt2", tmp_path / "base")
    folder = lora.save("gpt2", base, tmp_path / "tuned")
    with opened_host(Document(str(folder), "Tom and Anna")) as host:
        assert host.masks.adapter.isVisibleTo(host.masks)
        assert host.masks.adapter.text() == "Adapter tuned (scale 1.5)"
        assert host.masks.adapter.isChecked()
        host.masks.adapter.click()
        host.settle()
        assert listed(host) == ["adapter off"]
        assert host.state.ran is not None
        assert host.state.ran.inputs.interventions == (Adapter(on=False),)
        host.session.undo()
        host.settle()
        assert host.masks.adapter.isChecked()


def test_a_model_without_an_adapter_has_no_box_for_it(host):
    assert not host.masks.adapter.isVisibleTo(host.masks)


def test_a_part_of_the_selected_block_is_switched_off_and_on_again(host):
    switches = host.masks.part_switches
    assert switches.title.text() == "Switch off in layer 5"
    assert [b.text() for b in switches.buttons.values() if not b.isHidden()] == [
        "Attention",
        "Feed-forward network",
        "Gain of norm 1",
        "Gain of norm 2",
    ]
    plain = comparison(host)
    click(switches.buttons["mlp"])
    host.settle()
    skip = Ablation("mlp", SITE)
    assert interventions(host) == [skip]
    assert listed(host) == ["feed-forward network off, decoder layer 5"]
    model = models.open_checkpoint("story-gpt")
    trace, found = models.run(model, EXAMPLE, interventions=[skip]), comparison(host)
    assert found.loss_before == plain.loss_after
    assert found.loss_after == pytest.approx(loss(model, trace), abs=1e-6)
    likeliest = found.prediction_after
    assert likeliest is not None
    assert likeliest.candidates[0].id == int(trace.logits[LAST].argmax())
    np.testing.assert_allclose(found.after, trace.weights(SITE, HEAD), atol=1e-6)
    assert switches.buttons["mlp"].isChecked()
    host.session.undo()
    host.settle()
    assert not switches.buttons["mlp"].isChecked()
    host.session.redo()
    host.settle()
    click(switches.buttons["norm1"])
    host.settle()
    assert interventions(host) == [skip, Ablation("norm1", SITE)]
    host.session.dispatch(SelectHead(SiteRef("decoder", 2), 0))
    host.settle()
    assert switches.title.text() == "Switch off in layer 2"
    assert not any(button.isChecked() for button in switches.buttons.values())
    host.session.dispatch(SelectHead(SITE, HEAD))
    click(switches.buttons["mlp"])
    host.settle()
    assert interventions(host) == [Ablation("norm1", SITE)]


def test_the_blocks_of_both_stacks_have_their_own_parts(qapp):
    document = Document("en-es", "Good morning.", Selection(SiteRef("cross", 1), 0, 0, 0), target="Buenos")
    with opened_host(document) as host:
        switches = host.masks.part_switches
        assert switches.title.text() == "Switch off in decoder layer 1"
        assert not switches.buttons["cross"].isHidden()
        click(switches.buttons["cross"])
        host.settle()
        assert interventions(host) == [Ablation("cross", SiteRef("decoder", 1))]
        host.session.dispatch(SelectHead(SiteRef("encoder", 1), 0))
        host.settle()
        assert switches.title.text() == "Switch off in encoder layer 1"
        assert switches.buttons["cross"].isHidden()
        assert not any(button.isChecked() for button in switches.buttons.values())
