"""The panel of one head, from made-up weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QStyle, QStyleOptionComboBox

from attention_explorer.look.colour_maps import diverging
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.head.shown_map import is_faint, normalised
from attention_explorer.session.hover import Pointed
from attention_explorer.session.intents import SelectCell, SelectHead, SetView
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.head import (
    HeadRequest,
    HeadView,
    ScoresRequest,
    ScoresView,
    TilesRequest,
    TilesView,
    WordWeights,
)
from attention_models.protocol.running import Ran
from attention_models.protocol.values import TILE, SiteRef, Tile
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

WEIGHTS = np.array(
    [[1.0, 0.0, 0.0, 0.0], [0.75, 0.25, 0.0, 0.0], [0.5, 0.3, 0.2, 0.0], [0.1, 0.6, 0.2, 0.1]], dtype=np.float32
)


def view(run: int = 1, weights: np.ndarray = WEIGHTS) -> HeadView:
    masked = np.triu(np.ones(weights.shape, dtype=bool), 1)
    return replace(answers.head_view(run=run), weights=weights, masked=masked)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> HeadMapPanel:
    return shown(qtbot, HeadMapPanel, session)


def said(panel: HeadMapPanel) -> list[str]:
    return [label.text() for label in panel.card.findChildren(QLabel)]


def test_it_wants_the_selected_head(panel, session):
    assert session.asked == [HeadRequest(run=1, site=SiteRef("decoder", 5), head=5)]
    session.dispatch(SelectHead(SiteRef("decoder", 2), 1))
    assert session.asked[-1] == HeadRequest(run=1, site=SiteRef("decoder", 2), head=1)


def falling(tokens: int = 80) -> np.ndarray:
    """Rows that share their weight evenly: of many tokens all but the first rows are faint."""
    return np.tril(np.ones((tokens, tokens), np.float32)) / np.arange(1, tokens + 1, dtype=np.float32)[:, None]


def test_a_dark_map_offers_rows_by_their_largest(qtbot, panel, session):
    session.arrive(view())
    assert not panel.brighter.isVisible()
    session.arrive(answers.ran(run=2, text="so " * 80), view(run=2, weights=falling()))
    assert panel.brighter.isVisible()
    qtbot.mouseClick(panel.brighter, Qt.MouseButton.LeftButton)
    assert session.state.document.view.normalisation == "row"
    assert panel.scale.currentText() == "Rows / max"
    assert ": weight / max 1" in panel.map.readout(79, 3)  # no weight, and called none
    assert not panel.brighter.isVisible()
    session.dispatch(SetView("normalisation", "none"))
    assert panel.brighter.isVisible()
    assert ": 0.0125" in panel.map.readout(79, 3)
    session.arrive(answers.loaded())  # nothing to show, nothing to say
    assert not panel.brighter.isVisible()


@pytest.mark.parametrize(
    ("values", "faint"),
    [
        (falling(), True),
        (falling(40), False),  # few enough to look at
        (np.where(falling() > 0, falling(), np.nan), True),
        (falling() * np.arange(1, 81)[:, None], False),
        (np.eye(80, dtype=np.float32) + 0.2, False),
        (None, False),
    ],
)
def test_what_counts_as_dark(values, faint):
    assert is_faint(values) is faint


def test_without_weights_there_is_no_range_to_show(panel, session):
    assert not panel.bar.isVisible()
    session.arrive(view())
    assert panel.bar.isVisible()
    session.arrive(answers.loaded())
    assert not panel.bar.isVisible()
    assert panel.map.selection == (-1, -1)


def test_it_shows_weights_words_and_the_head_it_is_of(panel, session):
    session.arrive(view())
    assert panel.map.readout(3, 1) == "“went” looks at “and”: 0.600"
    assert panel.map.readout(0, 3) == "“Tom” cannot look at “went”: masked"
    assert said(panel)[:1] == ["Layer 5, head 5"]
    assert "where “went” looks" in said(panel)
    session.dispatch(SelectCell(1, 0))
    assert panel.map.selection == (1, 0)
    assert "where “and” looks" in said(panel)


@pytest.mark.parametrize(("how", "expected"), [("none", 0.6), ("row", 1.0), ("column", 1.0)])
def test_what_the_colours_show_is_what_the_readout_says(panel, session, how, expected):
    session.arrive(view())
    session.dispatch(SetView("normalisation", how))
    assert panel.map.readout(3, 1).endswith(value_text(expected))
    assert panel.scale.currentData() == how


def test_every_choice_of_scale_is_short_and_says_in_full_what_it_is(panel):
    tooltips = [panel.scale.itemData(i, Qt.ItemDataRole.ToolTipRole) for i in range(panel.scale.count())]
    texts = [panel.scale.itemText(i) for i in range(panel.scale.count())]
    assert texts[:4] == ["Weights", "Rows / max", "Columns / max", "Change"]
    assert texts[4:] == ["Scores q · k", "Scaled scores", "Masked scores"]
    assert tooltips[1:4] == ["Each row by its largest", "Each column by its largest", "Change by interventions"]


@pytest.mark.parametrize("points", [10.0, 15.0])
def test_the_chosen_scale_can_be_read_in_a_narrow_panel(panel, session, points, qtbot):
    font = panel.font()
    font.setPointSizeF(points)
    panel.setFont(font)
    panel.resize(panel.minimumSizeHint())
    for how in ("none", "column"):
        session.dispatch(SetView("normalisation", how))
        qtbot.wait(1)  # the least width is that of what is chosen, and a dock keeps to it
        panel.resize(panel.minimumSizeHint())
        panel.scale.parentWidget().layout().activate()
        option = QStyleOptionComboBox()
        panel.scale.initStyleOption(option)
        field = panel.scale.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, panel.scale
        )
        assert panel.scale.fontMetrics().horizontalAdvance(panel.scale.currentText()) <= field.width()


def test_the_scale_is_chosen_in_the_panel_and_can_be_undone(panel, session, qtbot):
    session.arrive(view())
    qtbot.keyClick(panel.scale, Qt.Key.Key_Down)
    assert session.state.document.view.normalisation == "row"
    session.undo()
    assert panel.scale.currentData() == "none"
    assert panel.map.readout(3, 1).endswith("0.600")


def test_the_last_picture_stays_until_the_next_run_has_its_own(panel, session):
    session.arrive(view())
    before = rendered(panel.map)
    session.arrive(answers.ran(run=2))
    assert rendered(panel.map) == before
    session.arrive(view(run=2, weights=np.eye(4, dtype=np.float32)))
    assert panel.map.readout(3, 1).endswith(": 0")


def test_a_click_selects_a_cell(panel, session, qtbot):
    session.arrive(view())
    qtbot.mouseClick(panel.map, Qt.MouseButton.LeftButton, pos=panel.map.cell_rect(2, 1).center().toPoint())
    assert (session.state.selection.query, session.state.selection.key) == (2, 1)


def test_the_pointer_is_shared_and_marked_on_the_colour_bar(panel, session):
    session.arrive(view())
    calm = rendered(panel.bar)
    move_pointer(panel.map, panel.map.cell_rect(3, 1).center().toPoint())
    assert panel.hover.pointed == Pointed(query=3, key=1)
    assert rendered(panel.bar) != calm
    panel.hover.point(Pointed(query=3))  # a token alone has no one weight
    assert rendered(panel.bar) == calm


def test_weights_of_another_number_of_tokens_are_numbered(panel, session):
    ran = answers.ran(run=2)
    session.arrive(replace(ran, sites=tuple(replace(site, keys=2) for site in ran.sites)))
    session.arrive(view(run=2, weights=np.full((4, 2), 0.5, np.float32)))
    assert panel.map.readout(3, 1) == "“went” looks at “1”: 0.500"


@pytest.mark.parametrize(
    ("stack", "row", "column"),
    [("encoder", "⟨end⟩", "cat"), ("decoder", "gato", "El"), ("cross", "gato → negro", "cat")],
)
def test_each_stack_names_its_own_words(qtbot, stack, row, column):
    ran = answers.translation(written="El gato negro")
    session = SilentSession(answers.after(answers.TRANSLATING, answers.translator(), ran))
    panel = shown(qtbot, HeadMapPanel, session)
    session.dispatch(SelectHead(SiteRef(stack, 0), 1))
    site = session.state.site
    assert site is not None
    weights = np.full((site.queries, site.keys), 0.25, np.float32)
    session.arrive(replace(answers.head_view(site=site.ref, head=1), weights=weights))
    assert panel.map.readout(2, 1) == f"“{row}” looks at “{column}”: 0.250"


def test_scaling_leaves_rows_of_zeros_alone():
    weights = np.array([[0.2, 0.4], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(normalised(weights, "row"), [[0.5, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(normalised(weights, "column"), [[1.0, 1.0], [0.0, 0.0]])
    assert normalised(weights, "none") is weights


# --------------------------------------------------------------------------- a long text: its map comes in tiles

LONG = 2000
SITE = SiteRef("decoder", 5)
TOP = Tile(3, 0, 0)


def long_run(run: int = 1) -> Ran:
    short = answers.ran(run=run, text=" ".join(["Tom", "and", "Anna", "went"] * (LONG // 4)))
    return replace(short, sites=tuple(replace(site, causal=True) for site in short.sites))


def tiles_view(request: TilesRequest, count: int | None = None, value: float = 0.25) -> TilesView:
    found = []
    for tile in request.tiles[:count]:
        rows, columns = tile.rows(LONG), tile.columns(LONG)
        shape = (-(-(rows.stop - rows.start) // tile.cell), -(-(columns.stop - columns.start) // tile.cell))
        found.append((tile, np.full(shape, value, np.float32)))
    return TilesView(request=request, tiles=tuple(found), sinks=(None,) * len(found))


def last_asked(session: SilentSession) -> TilesRequest:
    request = session.asked[-1]
    assert isinstance(request, TilesRequest)
    return request


@pytest.fixture
def long_session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), long_run()))


@pytest.fixture
def long_panel(qtbot, long_session) -> HeadMapPanel:
    return shown(qtbot, HeadMapPanel, long_session)


def test_a_long_text_s_readout_says_what_the_sink_takes(long_panel, long_session):
    fill(long_panel, long_session)
    assert "sink" not in long_panel._note_of(700, 3)
    request = TilesRequest(run=1, site=SITE, head=long_session.state.selection.head, tiles=(Tile(0, 2, 0),))
    shares = np.linspace(0.25, 0.75, TILE).astype(np.float32)
    shares[1] = np.nan  # a row that no weight was asked of
    long_session.arrive(replace(tiles_view(request), sinks=(shares,)))
    assert long_panel._note_of(2 * TILE, 3) == ", beside a sink of 0.250"
    assert long_panel._note_of(3 * TILE - 1, 3) == ", beside a sink of 0.750"
    assert long_panel._note_of(2 * TILE + 1, 3) == ""
    long_session.dispatch(SelectHead(SITE, 0 if long_session.state.selection.head else 1))
    fill(long_panel, long_session)
    assert long_panel._note_of(2 * TILE, 3) == ""  # of another head


def fill(panel: HeadMapPanel, session: SilentSession) -> None:
    """Answer until nothing is missing."""
    while panel.is_waiting():
        session.arrive(tiles_view(last_asked(session)))


def test_of_a_long_text_it_asks_for_tiles_the_whole_map_first(long_panel, long_session):
    assert last_asked(long_session).tiles[0] == TOP
    assert (last_asked(long_session).site, last_asked(long_session).head) == (SITE, 5)
    assert not any(isinstance(request, HeadRequest) for request in long_session.asked)
    assert long_panel.is_waiting()
    fill(long_panel, long_session)
    assert long_panel.map.high == 0.25
    assert long_panel.bar.isVisible()
    assert long_panel.tools.isVisible()
    assert long_panel.tools.detail.text() == "of 8 × 8 weights a square"


def test_a_short_text_has_no_tools(panel, session):
    session.arrive(view())
    assert not panel.tools.isVisible()
    assert not panel.find_key.isEnabled()


def test_zooming_asks_for_what_is_missing(long_panel, long_session):
    fill(long_panel, long_session)
    long_panel.map.go_to_cell(1500, 1000)
    request = last_asked(long_session)
    assert request.tiles[0] == Tile(0, 5, 3)
    long_session.arrive(tiles_view(request, count=1))  # the engine answers with a part of it
    assert Tile(0, 5, 3) not in long_panel.map.missing()
    fill(long_panel, long_session)
    assert long_panel.tools.detail.text() == "each weight as it is"
    asked = len(long_session.asked)
    long_panel.map.centre_on(0.5, 0.75)
    long_panel.map.centre_on(1000 / LONG, 1500 / LONG)
    assert len(long_session.asked) == asked or long_panel.is_waiting()


def test_the_last_map_stays_until_the_next_is_there(long_panel, long_session):
    fill(long_panel, long_session)
    long_session.dispatch(SelectHead(SITE, 2))
    assert last_asked(long_session).tiles == (TOP,)
    assert long_panel.map.overview() is not None
    long_session.arrive(tiles_view(last_asked(long_session), value=0.75))
    assert long_panel.map.high == 0.75


def test_the_thumbnail_stands_in_for_another_head(long_panel, long_session):
    fill(long_panel, long_session)
    size = -(-LONG // -(-LONG // 48))
    images = np.zeros((8, 8, size, size), np.float32)
    images[5, 2] = np.tril(np.full((size, size), 0.6))
    masked = np.triu(np.ones((8, 1, size, size), bool), 1)
    images[5, 2, 3, 2] = 0.0  # a weight that rounds to 0 is none that a mask hides
    request = AtlasRequest(run=1, size=48)
    atlas = replace(answers.atlas_view(), request=request, images=images, masked=masked, cell=42)
    long_session.arrive(atlas)
    long_session.dispatch(SelectHead(SITE, 2))
    overview = long_panel.map.overview()
    assert overview is not None
    assert overview.shape == (size, size)
    assert np.isnan(overview[0, 1])
    assert overview[1, 0] == np.float32(0.6)
    assert overview[3, 2] == 0
    assert long_panel.map.high == pytest.approx(0.6)


def test_pooling_and_scaling_are_asked_for(long_panel, long_session):
    fill(long_panel, long_session)
    long_panel.tools.pooling_chosen.emit("mean")
    assert long_session.state.document.view.pooling == "mean"
    assert last_asked(long_session).pooling == "mean"
    fill(long_panel, long_session)
    long_session.dispatch(SetView("normalisation", "row"))
    assert last_asked(long_session).scale_rows
    fill(long_panel, long_session)
    assert long_panel.bar.accessibleDescription().startswith("weight / max")
    model = long_panel.scale.model()
    enabled = [bool(model.index(i, 0).flags() & Qt.ItemFlag.ItemIsEnabled) for i in range(7)]
    assert enabled == [True, True, *[False] * 5]
    assert "Columns and scores are shown up to 1,024 tokens" in long_panel.scale.toolTip()
    for how in ("column", "scaled"):  # from a session file, say
        long_session.dispatch(SetView("normalisation", how))
        assert long_panel.scale.currentIndex() == 0
        assert long_panel.map.value_name == ""


def test_a_token_is_found_selected_and_brought_into_the_middle(long_panel, long_session, qtbot):
    fill(long_panel, long_session)
    qtbot.keyClicks(long_panel.tools.search.field, "anna")
    assert long_panel.tools.search.count.text() == "500"
    qtbot.keyClick(long_panel.tools.search.field, Qt.Key.Key_Return)
    selection = long_session.state.selection
    assert selection.query % 4 == 2
    middle = long_panel.map.part().center()
    assert middle.y() * LONG == pytest.approx(min(selection.query, LONG - 1), abs=LONG * long_panel.map.part().height())
    assert selection.query in long_panel.map.view.rows.visible()
    long_panel.tools.search.position.setValue(1234)
    assert long_session.state.selection.query == 1234
    assert 1234 in long_panel.map.view.rows.visible()


def test_the_overview_moves_the_map(long_panel, long_session):
    fill(long_panel, long_session)
    long_panel.map.zoom_by(10)
    long_panel.tools.overview.moved.emit(0.25, 0.75)
    assert long_panel.map.part().center().x() == pytest.approx(0.25, abs=0.01)
    assert long_panel.tools.overview.frame().center().y() == pytest.approx(2 + 0.75 * 80, abs=2)


def test_the_marker_of_the_colour_bar_follows_the_pointer(long_panel, long_session):
    fill(long_panel, long_session)
    before = rendered(long_panel.bar)
    long_panel.hover.point(Pointed(query=1500, key=3))
    assert rendered(long_panel.bar) != before


def test_back_to_a_short_text(long_panel, long_session):
    fill(long_panel, long_session)
    long_session.arrive(answers.ran(run=2), view(run=2))
    assert not long_panel.map.is_tiled
    assert not long_panel.tools.isVisible()
    assert long_panel.map.readout(3, 1) == "“went” looks at “and”: 0.600"
    model = long_panel.scale.model()
    assert all(model.index(i, 0).flags() & Qt.ItemFlag.ItemIsEnabled for i in range(4))


def split_run(long: bool = False) -> Ran:
    """“un|happy cats ran”: the second token goes on with the first."""
    ran = answers.ran(text="un happy cats ran")
    tokens = tuple(replace(token, continues=i == 1) for i, token in enumerate(ran.tokens))
    sites = tuple(replace(site, queries=2048, keys=2048) for site in ran.sites) if long else ran.sites
    return replace(ran, tokens=tokens, sites=sites)


def word_view() -> HeadView:
    merged = np.array([[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.7, 0.2, 0.1]], np.float32)
    request = HeadRequest(run=1, site=SiteRef("decoder", 5), head=5, words=True)
    return replace(view(), request=request, by_word=WordWeights(merged, merged == 0))


@pytest.fixture
def words(qtbot) -> tuple[HeadMapPanel, SilentSession]:
    session = SilentSession(answers.after(State(), answers.loaded(), split_run()))
    panel = shown(qtbot, HeadMapPanel, session)
    qtbot.mouseClick(panel.words, Qt.MouseButton.LeftButton)
    assert session.state.document.view.words
    assert session.asked[-1] == word_view().request
    session.arrive(word_view())
    return panel, session


def test_words_are_shown_instead_of_pieces_and_the_axis_says_how(words, qtbot):
    panel, session = words
    assert panel.map.key_note == "words: from averaged, to summed"
    assert panel.map.readout(1, 1) == "“cats” looks at “cats”: 0.200"
    assert panel.map.readout(1, 0) == "“cats” looks at “unhappy”, most from “cats” to “un”: 0.800"
    assert panel.map.readout(0, 1) == "“unhappy” cannot look at “cats”: masked"
    qtbot.mouseClick(panel.words, Qt.MouseButton.LeftButton)
    session.arrive(view())
    assert panel.map.key_note == ""
    assert panel.map.readout(1, 0) == "“happy” looks at “un”: 0.750"


def test_a_cell_of_words_selects_its_strongest_pieces(words):
    panel, session = words
    panel.map.choose((1, 1))
    panel.map.choose((2, 0))
    assert (session.state.selection.query, session.state.selection.key) == (3, 1)  # 0.6 there, 0.1 to the first
    assert panel.map.selection == (2, 0)
    session.dispatch(SelectCell(1, 0))
    assert panel.map.selection == (0, 0)
    panel.hover.point(Pointed(query=3, key=2))
    assert panel.bar._marker == pytest.approx(0.2)


def test_painting_a_word_paints_all_its_pieces(words):
    panel, session = words
    session.dispatch(SetView("painting", "block"))
    panel.map.stroke_painted.emit(((1, 0),))
    assert set(session.state.painted_cells) == {(2, 0, False), (2, 1, False)}
    assert panel.map._brush.painted == ((1, 0, False),)


def test_a_long_text_and_a_change_are_shown_in_pieces_and_say_so(qtbot, words):
    panel, session = words
    session.dispatch(SetView("normalisation", "difference"))
    assert "not for words" in panel.words.toolTip()
    long = SilentSession(answers.after(State(), answers.loaded(), split_run(long=True)))
    other = shown(qtbot, HeadMapPanel, long)
    assert not other.words.isEnabled()
    assert "up to 1,024 tokens" in other.words.toolTip()


RAW = np.array([[4.0, 8.0, 1.0, 2.0], [-6.0, 2.0, 9.0, 1.0], [1.0, 2.0, 3.0, 50.0], [0.5, -1.0, 2.0, 0.0]], np.float32)


def scores(layer: int = 5, head: int = 5) -> ScoresView:
    masked = np.triu(np.ones(RAW.shape, dtype=bool), 1)
    request = ScoresRequest(run=1, site=SiteRef("decoder", layer), head=head)
    return ScoresView(request=request, raw=RAW, scaled=RAW / 4, masked=masked)


def test_scores_are_asked_for_when_they_are_chosen(panel, session):
    session.arrive(view())
    session.dispatch(SetView("normalisation", "raw"))
    assert session.asked[-1] == ScoresRequest(run=1, site=SiteRef("decoder", 5), head=5)
    count = len(session.asked)
    session.arrive(scores())
    for how in ("scaled", "masked"):
        session.dispatch(SetView("normalisation", how))
    assert len(session.asked) == count


@pytest.mark.parametrize(
    ("how", "readout", "label", "high", "hidden"),
    [
        ("raw", "q · k −6.000", "q · k", 50.0, "q · k 2.000"),
        ("scaled", "scaled score −1.500", "score", 12.5, "scaled score 0.500"),
        ("masked", "score −1.500", "score", 1.5, "masked"),
    ],
)
def test_scores_are_coloured_about_0_and_said_as_what_they_are(panel, session, how, readout, label, high, hidden):
    session.arrive(view())
    session.dispatch(SetView("normalisation", how))
    session.arrive(scores())
    assert panel.scale.currentData() == how
    assert panel.map.readout(1, 0) == f"“and” looks at “Tom”: {readout}"
    assert panel.map.readout(0, 3).endswith(f": {hidden}")
    assert panel.map.colour_span == (-high, high)
    assert panel.bar.accessibleDescription() == f"{label} from {value_text(-high)} to {value_text(high)}"
    assert panel._table is diverging()
    session.dispatch(SetView("normalisation", "none"))
    assert panel.map.readout(1, 0).endswith(": 0.750")
    assert panel.map.colour_span == (0.0, 1.0)


def test_scores_of_another_head_are_not_shown(panel, session):
    session.arrive(view())
    session.dispatch(SetView("normalisation", "raw"))
    session.arrive(scores())
    session.dispatch(SelectHead(SiteRef("decoder", 2), 1))
    session.dispatch(SetView("normalisation", "scaled"))
    assert "q · k" in panel.map.readout(1, 0)  # the last picture stays
    session.arrive(scores(2, 1))
    assert "scaled score" in panel.map.readout(1, 0)


def test_scores_of_a_model_that_has_none_cannot_be_chosen(panel, session):
    loaded = answers.loaded()
    session.dispatch(SetView("normalisation", "masked"))
    session.arrive(replace(loaded, info=replace(loaded.info, weights_only="It shows its weights alone.")))
    session.arrive(answers.ran(run=2), view(run=2))
    assert panel.scale.currentData() == "none"
    assert panel.scale.toolTip().endswith("It shows its weights alone.")
    assert panel.map.readout(3, 1).endswith(": 0.600")
    enabled = [bool(panel.scale.model().index(i, 0).flags() & Qt.ItemFlag.ItemIsEnabled) for i in range(7)]
    assert enabled == [*[True] * 4, *[False] * 3]


def test_scores_are_of_pieces_where_words_are_shown(panel, session):
    session.dispatch(SetView("words", True))
    session.arrive(replace(view(), request=HeadRequest(run=1, site=SiteRef("decoder", 5), head=5, words=True)))
    session.dispatch(SetView("normalisation", "raw"))
    session.arrive(scores())
    assert "scores are shown for the pieces" in panel.words.toolTip()
    assert panel.map.readout(1, 0).endswith("q · k −6.000")
