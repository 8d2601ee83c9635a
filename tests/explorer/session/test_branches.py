"""The tree of branches: it grows, is walked, named, compared and cut, and keeps what it had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_explorer.session.branches import ROOT, Branches, outline


def grown(*words: str, branches: Branches | None = None) -> Branches:
    tree = branches or Branches()
    for word in words:
        tree = tree.grow(ord(word[0]), word, -0.5)
    return tree


def forked() -> Branches:
    """abc, and ax from its first node."""
    tree = grown("a", "b", "c")
    return grown("x", branches=tree.go(tree.path()[0].id))


def words(tree: Branches, id_: int | None = None) -> str:
    return "".join(node.label for node in tree.path(id_))


def test_it_begins_at_the_prompt():
    assert Branches().path() == ()
    assert Branches().ids() == ()
    assert Branches().log_probability() == 0
    assert outline(Branches()) == ()


def test_a_path_adds_up():
    tree = grown("a", "b", "c")
    assert words(tree) == "abc"
    assert tree.ids() == (97, 98, 99)
    assert tree.log_probability() == -1.5


def test_going_back_and_on_with_another_token_makes_a_branch_and_loses_none():
    tree = forked()
    assert words(tree) == "ax"
    assert sorted(words(tree, leaf.id) for leaf in tree.leaves()) == ["abc", "ax"]


def test_the_same_token_again_is_the_same_branch():
    tree = forked()
    again = grown("b", branches=tree.go(tree.path()[0].id))
    assert words(again) == "ab"
    assert again.nodes == tree.nodes


def test_furthest_goes_on_along_what_was_chosen_last():
    tree = forked()
    assert "".join(node.label for node in tree.go(ROOT).furthest()) == "ax"
    b = next(node for node in tree.nodes if node.label == "b")
    assert "".join(node.label for node in tree.go(b.id).furthest()) == "abc"


def test_deleting_takes_a_branch_and_all_that_follows_and_moves_who_looked_at_it():
    tree = forked()
    b = next(node for node in tree.nodes if node.label == "b")
    assert words(tree.without(b.id)) == "ax"
    gone = tree.go(tree.leaves()[0].id).without(b.id)
    assert words(gone) == "a"
    assert [node.label for node in gone.nodes] == ["a", "x"]
    assert tree.branch_start(tree.leaves()[0].id) == b.id


def test_ids_are_not_used_again():
    tree = grown("a", "b")
    shorter = tree.without(tree.current)
    assert grown("z", branches=shorter).current > tree.current


def test_a_name_is_kept_and_can_be_taken_away():
    tree = grown("a", "b")
    assert tree.named(tree.current, " mine ").node(tree.current).name == "mine"
    assert tree.named(tree.current, "mine").named(tree.current, "").node(tree.current).name == ""


def test_an_unknown_node_is_refused():
    for act in (Branches().go, Branches().without, Branches().path, Branches().branch_start):
        with pytest.raises(KeyError, match="no node 9"):
            act(9)


def test_the_outline_has_a_line_a_run_and_indents_at_forks():
    lines = outline(forked())
    assert [(line.text, line.depth, line.tokens, line.on_path) for line in lines] == [
        ("a", 0, 1, True),
        ("bc", 1, 2, False),
        ("x", 1, 1, True),
    ]
    assert [line.log_probability for line in lines] == [-0.5, -1.5, -1.0]


ACTIONS = st.lists(st.tuples(st.sampled_from(["grow", "go", "delete"]), st.integers(0, 30)), max_size=40)


@given(ACTIONS)
def test_any_walk_leaves_a_tree(actions):
    tree = Branches()
    for what, number in actions:
        if what == "grow":
            tree = tree.grow(number % 4, str(number % 4), -0.1)
        elif tree.nodes:
            id_ = tree.nodes[number % len(tree.nodes)].id
            tree = tree.go(id_) if what == "go" else tree.without(id_)
        ids = {node.id for node in tree.nodes}
        assert len(ids) == len(tree.nodes)
        assert tree.current in ids | {ROOT}
        assert all(node.parent in ids | {ROOT} for node in tree.nodes)
        siblings = [(node.parent, node.token) for node in tree.nodes]
        assert len(set(siblings)) == len(siblings)
        assert sum(line.tokens for line in outline(tree)) == len(tree.nodes)
