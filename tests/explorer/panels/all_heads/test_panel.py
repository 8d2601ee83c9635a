"""The panel of all heads, from made-up thumbnails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from attention_explorer.panels.all_heads.panel import HeadAtlasPanel, without_margin
from attention_explorer.session.hover import NOTHING, Pointed
from attention_explorer.session.intents import SelectHead, SetView
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.values import Pooling, SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer


def atlas(pooling: Pooling = "max", **changes: object) -> AtlasView:
    images, view = np.random.default_rng(0).random((8, 8, 4, 4), dtype=np.float32), answers.atlas_view()
    view = replace(view, request=replace(view.request, pooling=pooling))
    return replace(view, images=images, mean=images.mean(axis=1), **changes)  # type: ignore[arg-type]


def masked_like(images: np.ndarray) -> np.ndarray:
    """Nothing is masked."""
    return np.zeros((len(images), 1, *images.shape[2:]), bool)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> HeadAtlasPanel:
    return shown(qtbot, HeadAtlasPanel, session)


def test_it_wants_all_heads_once_a_run(panel, session):
    assert session.asked == [AtlasRequest(run=1, size=48, pooling="max")]
    session.arrive(atlas())
    assert not panel.is_waiting()
    session.arrive(answers.ran(run=2))
    assert session.asked[-1] == AtlasRequest(run=2, size=48, pooling="max")


def test_another_pooling_is_asked_for_and_named(panel, session):
    session.arrive(atlas())
    session.dispatch(SetView("pooling", "mean"))
    assert session.asked[-1] == AtlasRequest(run=1, size=48, pooling="mean")
    session.arrive(atlas(pooling="mean", cell=11))
    texts = [label.text() for label in panel.findChildren(QLabel)]
    assert "mean of 11 × 11 a pixel · layers down, heads across" in texts


def test_a_click_selects_and_a_selection_made_elsewhere_is_framed(panel, session, qtbot):
    session.arrive(atlas())
    assert panel.atlas.selection == (5, 5)
    qtbot.mouseClick(panel.atlas, Qt.MouseButton.LeftButton, pos=panel.atlas.cell_rect(2, 3).center().toPoint())
    assert (session.state.selection.site, session.state.selection.head) == (SiteRef("decoder", 2), 3)
    before = rendered(panel.atlas)
    session.dispatch(SelectHead(SiteRef("decoder", 7), 0))
    assert panel.atlas.selection == (7, 0)
    assert rendered(panel.atlas) != before


def test_the_pointer_is_shared_in_both_directions(panel, session):
    session.arrive(atlas())
    calm = rendered(panel.atlas)
    move_pointer(panel.atlas, panel.atlas.cell_rect(1, 6).center().toPoint())
    assert panel.hover.pointed == Pointed(site=SiteRef("decoder", 1), head=6)
    panel.hover.point(NOTHING)
    assert rendered(panel.atlas) == calm
    panel.hover.point(Pointed(site=SiteRef("decoder", 4), head=4))
    assert rendered(panel.atlas) != calm


def test_the_mean_over_heads_is_drawn_only_when_asked(panel, session):
    session.arrive(atlas())
    before = rendered(panel.atlas)
    session.dispatch(SetView("mean_column", True))
    assert rendered(panel.atlas) != before
    session.dispatch(SetView("mean_column", False))
    assert rendered(panel.atlas) == before


def test_thumbnails_are_not_drawn_anew_for_a_selection(panel, session, monkeypatch):
    session.arrive(atlas())
    rendered(panel.atlas)
    drawn = []
    monkeypatch.setattr("attention_explorer.panels.all_heads.atlas.draw_sheet", lambda *args: drawn.append(args))
    session.dispatch(SelectHead(SiteRef("decoder", 0), 0))
    panel.atlas.grab()
    assert drawn == []


def test_the_heads_of_a_model_that_went_are_not_shown_as_anothers(panel, session):
    session.arrive(atlas())
    session.arrive(answers.loaded())
    session.arrive(answers.ran(run=2, layers=2, heads=2))
    images = np.zeros((2, 2, 4, 4), np.float32)
    session.arrive(replace(answers.atlas_view(run=2), images=images, masked=masked_like(images)))
    assert panel.atlas.head_name(1, 1) == "layer 1, head 1"
    assert panel.atlas.head_name(5, 5) == ""


# --------------------------------------------------------------------------- several stacks


@pytest.fixture
def stacked(qtbot) -> HeadAtlasPanel:
    """A run of 3 source and 4 target tokens: encoder, decoder and cross sites of different sizes."""
    ran = answers.translation(written="El gato negro")
    session = SilentSession(answers.after(answers.TRANSLATING, answers.translator(), ran))
    images = np.full((6, 4, 4, 4), np.nan, np.float32)
    for i, site in enumerate(ran.sites):
        images[i, :, : site.queries, : site.keys] = (i + 1) / 10
    panel = shown(qtbot, HeadAtlasPanel, session)
    session.arrive(replace(answers.atlas_view(), images=images, mean=images[:, 0], masked=masked_like(images)))
    return panel


def select(panel: HeadAtlasPanel, stack: str, layer: int, head: int) -> None:
    panel.dispatch(SelectHead(SiteRef(stack, layer), head))


def test_a_model_of_one_stack_has_nothing_to_choose(panel, session):
    session.arrive(atlas())
    assert not panel.stacks.isVisible()


def test_one_stack_is_shown_at_a_time_and_chosen_by_a_button(stacked, qtbot):
    select(stacked, "decoder", 0, 0)
    assert stacked.stacks.isVisible()
    pictures = []
    for button in range(3):
        qtbot.mouseClick(stacked.stacks.button(button), Qt.MouseButton.LeftButton)
        assert stacked.stacks.current == button
        assert stacked.atlas.head_name(1, 3) == "layer 1, head 3"
        assert stacked.atlas.head_name(2, 0) == ""  # two layers a stack
        pictures.append(rendered(stacked.atlas))
    assert len({bytes(picture.constBits()) for picture in pictures}) == 3


def test_a_click_selects_in_the_stack_that_is_shown(stacked, qtbot):
    qtbot.mouseClick(stacked.stacks.button(2), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(stacked.atlas, Qt.MouseButton.LeftButton, pos=stacked.atlas.cell_rect(1, 2).center().toPoint())
    assert stacked.session.state.selection.site == SiteRef("cross", 1)
    assert stacked.atlas.selection == (1, 2)


def test_a_selection_made_elsewhere_brings_its_stack(stacked, qtbot):
    select(stacked, "cross", 0, 1)
    assert stacked.stacks.current == 2
    assert stacked.atlas.selection == (0, 1)
    qtbot.mouseClick(stacked.stacks.button(0), Qt.MouseButton.LeftButton)  # a look around selects nothing
    assert stacked.session.state.selection.site == SiteRef("cross", 0)
    assert stacked.atlas.selection == (-1, -1)
    select(stacked, "decoder", 1, 1)
    assert stacked.stacks.current == 1
    assert stacked.atlas.selection == (1, 1)


def test_thumbnails_are_cut_to_the_tokens_of_their_stack():
    images = np.full((2, 4, 4, 4), np.nan, np.float32)
    images[:, :3, :4, :2] = 0.5
    cut, mean = without_margin(images, images[:, 0])
    assert (cut.shape, mean.shape) == ((2, 3, 4, 2), (2, 4, 2))
    assert not np.isnan(cut).any()


def test_of_a_long_text_the_heads_come_in_parts(panel, session):
    images = np.full((8, 8, 4, 4), np.nan, np.float32)
    images[:2] = 0.5
    session.arrive(replace(atlas(done=0.25, cell=9), images=images))
    assert session.asked[-1] == AtlasRequest(run=1, size=48, pooling="max", have=0.25)
    assert panel.is_waiting()
    texts = [label.text() for label in panel.findChildren(QLabel)]
    assert "25% drawn · largest of 9 × 9 a pixel · layers down, heads across" in texts
    part = rendered(panel.atlas)
    asked = len(session.asked)
    session.dispatch(SelectHead(SiteRef("decoder", 7), 0))  # one that is not there yet can be chosen all the same
    assert panel.atlas.selection == (7, 0)
    assert len(session.asked) == asked
    session.arrive(atlas())
    assert not panel.is_waiting()
    assert rendered(panel.atlas) != part


def test_nothing_is_drawn_yet(panel, session):
    session.arrive(replace(atlas(done=0.01), images=np.full((8, 8, 4, 4), np.nan, np.float32)))
    assert panel.is_waiting()
    assert panel.atlas.selection == (5, 5)


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_faint_in_every_thumbnail(qtbot, side):
    ran = answers.ran()  # of four tokens
    padded = {2, 3} if side == "right" else {0, 1}
    tokens = tuple(replace(token, padding=place in padded) for place, token in enumerate(ran.tokens))
    plain = SilentSession(answers.after(State(), answers.loaded(), ran))
    filled = SilentSession(answers.after(State(), answers.loaded(), replace(ran, tokens=tokens)))
    pictures = []
    for session in (plain, filled):
        panel = shown(qtbot, HeadAtlasPanel, session)
        session.arrive(atlas())
        pictures.append((panel, rendered(panel.atlas)))
    (panel, before), (_, after) = pictures
    for row, head in ((0, 0), (3, 5), (7, 7)):
        rect = panel.atlas.cell_rect(row, head)
        for query in range(4):
            for key in range(4):
                x = round(rect.left() + (key + 0.5) * rect.width() / 4)
                y = round(rect.top() + (query + 0.5) * rect.height() / 4)
                same = before.pixelColor(x, y) == after.pixelColor(x, y)
                assert same == (query not in padded and key not in padded)


def test_the_largest_weight_is_named_with_what_it_leaves_out(panel, session):
    """The first row of a causal map has one key, and 1.00 there: that is not the largest of what is chosen between."""
    lower = np.tril(np.ones((4, 4), bool))
    view = atlas()
    images = np.where(lower, view.images, np.nan).astype(np.float32)
    images[:, :, 0, 0] = 1.0
    session.arrive(replace(view, images=images, masked=np.broadcast_to(~lower, (8, 1, 4, 4))))
    chosen = np.where(np.tril(np.ones((4, 4)), 0)[None, None, 1:] > 0, images[:, :, 1:], 0)
    layer, head = divmod(int(chosen.reshape(64, -1).max(axis=1).argmax()), 8)
    said = " ".join(panel.about(session.state).sentences)
    largest = value_text(float(chosen.max()))
    assert f"Among rows with more than one visible key, the largest weight is {largest}, in layer {layer}," in said
    assert f"layer {layer}, head {head}" in said
    session.arrive(atlas(masked=masked_like(view.images)))
    assert "Among rows" not in " ".join(panel.about(session.state).sentences)
    assert "The largest weight is " in " ".join(panel.about(session.state).sentences)
