"""A block of a decoder that reads a source has two attentions: each has tokens of its own, and its own chosen head."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtTest import QTest

from attention_explorer.panels.flow.block_picture import BlockPicture
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.session.intents import SelectHead, SelectQuery, SetView
from attention_models.protocol.flow import HeadsBox
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import click, opened_window, panel_of, settle

CROSS, OWN, HEAD = SiteRef("cross", 2), SiteRef("decoder", 2), 4


@pytest.fixture(scope="module")
def window(qapp):
    with opened_window("en-es", "The black cat is sleeping on the table.", "flow") as window:
        window.session.dispatch(SelectHead(CROSS, HEAD))
        window.session.dispatch(SelectQuery(1))
        window.session.dispatch(SetView("distance", "block"))
        settle(window)
        yield window


def heads_of(block: BlockPicture) -> dict[str, tuple[int, HeadsBox]]:
    """By part, the box of its heads and its number."""
    assert block.view is not None
    return {box.part: (number, box) for number, box in enumerate(block.view.boxes) if isinstance(box, HeadsBox)}


def test_each_is_told_with_the_tokens_that_it_attends_to(window):
    """In tooltips, in the table and in what Play says, by the largest weight of each."""
    panel, ran = panel_of(window, FlowPanel), window.session.state.ran
    block, own = panel.body.block, {"attention": ran.tokens, "cross": ran.source}
    for part, (number, box) in heads_of(block).items():
        words = [token.word for token in own[part]]
        for head in (HEAD, 0):
            at = block.layout_now().head_rect(number, head, box.heads).center()
            assert f"most on “{words[int(box.weights[head].argmax())]}”" in block.tooltip_at(number, QPointF(at))
        panel._show_numbers(number)
        model = panel.body.numbers.table.model()
        named = [model.index(row, 1).data() for row in range(box.heads)]
        assert named == [words[int(weights.argmax())] for weights in box.weights]
    steps = {step.box: step.sentence for step in panel._steps if step.kind == "box"}
    for part, (number, box) in heads_of(block).items():
        told = HEAD if part == "cross" else int(box.norms.argmax())
        word = own[part][int(box.weights[told].argmax())].word
        assert f"head {told} takes most from “{word}”" in steps[number]


def test_the_chosen_head_is_one_of_its_own_attention(window):
    block = panel_of(window, FlowPanel).body.block
    heads = heads_of(block)
    (_, crossing), (number, own) = heads["cross"], heads["attention"]
    assert (block.head_in(crossing), block.head_in(own)) == (HEAD, -1)
    click(block, block.head_rect(number, HEAD).center().toPoint())  # the same number, another head
    settle(window)
    QTest.qWait(20)
    selection = window.session.state.selection
    assert (selection.site, selection.head) == (OWN, HEAD)
    assert window.session.state.document.view.distance == "block"
    assert (block.head_in(crossing), block.head_in(own)) == (-1, HEAD)
