from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.results import Results
from attention_explorer.session.state import Document, Selection, State, clamped
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site, SiteRef
from tests.explorer.session import answers

FIRST = SiteRef("decoder", 0)


def looking_at(selection: Selection, ran: Ran | None) -> State:
    return State(document=Document(selection=selection), results=Results() if ran is None else Results().keeping(ran))


def test_the_panels_selection_is_within_what_ran_and_the_documents_is_kept():
    chosen = Selection(site=FIRST, head=40, query=40, key=-2)
    state = looking_at(chosen, answers.ran(text="one two three"))
    assert state.selection == Selection(site=FIRST, head=7, query=2, key=0)
    assert state.document.selection == chosen


def test_before_the_first_run_a_selection_is_only_made_non_negative():
    assert clamped(Selection(query=-1, key=9), None) == Selection(query=0, key=9)


def test_cross_attention_has_bounds_of_its_own_on_either_side():
    cross = Site("cross", 0, 8, 8, 32, queries=2, keys=9)
    run = replace(answers.ran(text="a b c d"), sites=(cross,))
    assert clamped(Selection(site=cross.ref, query=5, key=8), run) == Selection(site=cross.ref, query=1, key=8)


def test_the_site_is_none_where_the_model_has_no_such_site():
    ran = answers.ran(layers=2)
    assert looking_at(Selection(site=SiteRef("encoder", 0)), ran).site is None
    assert looking_at(Selection(site=FIRST), ran).site is ran.sites[0]


def test_a_change_that_changes_nothing_gives_the_same_state():
    state = State()
    assert state.with_document(text="") is state
    assert state.with_document(text="a").document.text == "a"
