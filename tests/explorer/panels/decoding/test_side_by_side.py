"""Samples as ways through the tree of branches."""

from __future__ import annotations

from attention_explorer.panels.decoding.side_by_side import SampleSet
from attention_explorer.session.branches import ROOT, Branches
from attention_models.protocol.decoding import DecodeSettings
from tests.explorer.session import answers


def test_a_node_that_has_taken_the_place_of_an_undone_one_is_no_sample():
    branches = Branches().grow(5, "a", -1.0).go(ROOT).grow(6, "b", -2.0)
    drawn = SampleSet.begin(DecodeSettings("sample"), ROOT, 2)
    assert not drawn.is_begun
    drawn = drawn.grown(branches, answers.samples_view(answers.samples_request(2), 5, 6))
    assert drawn.is_begun
    assert drawn.within(branches) == drawn
    assert drawn.shown(branches) == 1
    other = Branches().grow(5, "a", -1.0).go(ROOT).grow(7, "c", -2.0)  # after an undo: the same ids
    cut = drawn.within(other)
    assert cut is None  # one of them has a token that the other lacks
    assert drawn.within(Branches()) == SampleSet.begin(DecodeSettings("sample"), ROOT, 2)
    assert drawn.within(branches) == drawn  # a redo brings it back


def test_a_set_whose_start_is_gone_is_gone():
    branches = Branches().grow(5, "a", -1.0)
    assert SampleSet.begin(DecodeSettings("sample"), 1, 2).within(branches) is not None
    assert SampleSet.begin(DecodeSettings("sample"), 1, 2).within(Branches()) is None
