from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.branches import Branches
from attention_explorer.session.session import CHARACTERS, MERGE_SECONDS, NODES, STEPS, History
from attention_explorer.session.state import Document, Selection
from attention_models.protocol.chat import Turn
from attention_models.protocol.values import SiteRef


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(clock) -> History:
    return History(clock)


def doc(text: str) -> Document:
    return Document(text=text)


def undo_all(history: History, present: Document) -> list[str]:
    """The texts that undo leads through."""
    texts = []
    while (document := history.undo(present)) is not None:
        present = document
        texts.append(present.text)
    return texts


def test_undo_and_redo_walk_the_same_way(history):
    for text in ("", "a", "b"):
        history.record(doc(text))
    assert undo_all(history, doc("c")) == ["b", "a", ""]
    assert not history.can_undo
    present, texts = doc(""), []
    while (document := history.redo(present)) is not None:
        present = document
        texts.append(present.text)
    assert texts == ["a", "b", "c"]
    assert not history.can_redo
    assert history.can_undo


def test_there_is_nothing_to_undo_at_first(history):
    assert history.undo(doc("")) is None
    assert history.redo(doc("")) is None


def test_typing_is_one_step_as_long_as_it_goes_on(history, clock):
    for text in ("", "a", "ab", "abc"):
        history.record(doc(text), "text")
        clock.now += MERGE_SECONDS  # longer than a second in all
    clock.now += 0.01
    history.record(doc("abcd"), "text")
    assert undo_all(history, doc("abcd.")) == ["abcd", ""]


def test_other_keys_and_no_key_make_steps_of_their_own(history):
    for text, merge in (("", "text"), ("a", "select"), ("b", "select"), ("c", ""), ("d", ""), ("e", "text")):
        history.record(doc(text), merge)
    assert undo_all(history, doc("f")) == ["e", "d", "c", "a", ""]


def test_a_step_after_undo_stands_alone_and_ends_redo(history):
    history.record(doc(""), "text")
    history.record(doc("a"), "text")
    present = history.undo(doc("ab"))
    assert present == doc("")
    history.record(present, "text")
    assert not history.can_redo
    assert undo_all(history, doc("x")) == [""]


def test_steps_that_lead_nowhere_are_dropped(history):
    history.record(doc("a"), "text")
    history.settle(doc("a"))  # typed and deleted again
    assert not history.can_undo
    history.record(doc("a"), "text")
    assert undo_all(history, doc("b")) == ["a"]


def branched(*tokens: int, name: str = "") -> Document:
    branches = Branches()
    for token in tokens:
        branches = branches.grow(token, str(token), -0.5)
    return doc("a").with_branches(branches.named(1, name) if name else branches)


def test_a_passage_is_one_step_however_long_it_takes(history, clock):
    for count in range(4):
        history.record_passage(branched(*range(count)), 1, lambda d: d)
        clock.now += 100
    history.record_passage(branched(*range(4)), 2, lambda d: d)
    assert history.undo(branched(*range(5))) == branched(*range(4))
    assert history.undo(branched(*range(4))) == branched()
    assert not history.can_undo


def test_what_was_done_in_the_middle_of_a_passage_is_taken_back_alone(history):
    """The head was chosen between two tokens: undo takes the choice back, and then all the tokens."""
    here = Selection(SiteRef("decoder", 1))

    def again(document: Document) -> Document:
        return document.with_branches(document.branches.grow(2, "2", -0.5))

    history.record_passage(branched(), 1, again)
    history.record(branched(1))
    history.record_passage(replace(branched(1), selection=here), 1, again)
    present = replace(branched(1, 2), selection=here)
    assert history.undo(present) == branched(1, 2)
    assert history.undo(branched(1, 2)) == branched()
    assert history.redo(branched()) == branched(1, 2)
    assert history.redo(branched(1, 2)) == present


def test_a_passage_ends_redo(history):
    history.record(doc("a"))
    history.undo(doc("b"))
    history.record_passage(branched(), 1, lambda d: d)
    assert not history.can_redo


def test_the_trees_are_bounded_and_the_oldest_go(history):
    tokens = 4000
    trees = NODES // tokens + 3
    nodes = branched(*range(tokens)).branches.nodes
    for number in range(min(trees, STEPS + 3)):
        tree = Branches((*nodes[:-1], replace(nodes[-1], name=str(number))), 0, tokens)
        history.record(doc("a").with_branches(tree))
    assert len(undo_all(history, doc(""))) == min(NODES // tokens, STEPS)


def test_the_number_of_steps_is_bounded(history):
    for number in range(STEPS + 5):
        history.record(doc(str(number)))
    texts = undo_all(history, doc("now"))
    assert len(texts) == STEPS
    assert texts[-1] == "5"


def test_the_texts_are_bounded_and_the_oldest_go(history):
    for letter in "abcde":
        history.record(doc(letter * (CHARACTERS // 3)))
    assert [text[0] for text in undo_all(history, doc(""))] == ["e", "d", "c"]


def test_what_turns_say_is_bounded_too(history):
    for letter in "abcde":
        history.record(Document(text="", chat=True, turns=(Turn("user", letter * (CHARACTERS // 3)),)))
    present, said = Document(), ""
    while (document := history.undo(present)) is not None:
        present = document
        said += document.turns[0].text[0]
    assert said == "edc"


def test_a_text_that_many_steps_share_counts_once(history):
    text = "a" * (CHARACTERS // 2)
    for number in range(10):
        history.record(Document(checkpoint=str(number), text=text))
    assert len(undo_all(history, doc(""))) == 10


def test_a_text_beyond_the_bound_cannot_be_gone_back_to(history):
    history.record(doc("a" * (CHARACTERS + 1)))
    assert not history.can_undo
