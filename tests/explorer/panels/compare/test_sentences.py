"""What Compare says of two runs in words."""

from __future__ import annotations

from dataclasses import replace
from math import nan

from attention_explorer.panels.compare.compare_sentences import (
    SAME,
    aligned,
    change_name,
    largest,
    matched,
    more_said,
    remarks,
    said,
    share,
    title_of,
)
from attention_explorer.panels.compare.panel import about
from attention_explorer.session.state import Compared, Document, State
from attention_models.protocol.two_runs import RunOutput
from attention_models.protocol.values import Candidate, SiteRef
from tests.explorer.panels.compare.two_runs import ZERO, of_one_run, view
from tests.explorer.session import answers


def test_the_likeliest_token_is_said_and_what_follows_it() -> None:
    one = view().a
    assert (said(one), share(one)) == ("again", "50.0 %")
    assert more_said(one, "nats") == "after “home”, then it 10.0 % · loss 0.500 nats a token"
    assert more_said(one, "bits") == "after “home”, then it 10.0 % · loss 0.721 bits a token"


def test_a_translation_is_said_whole() -> None:
    one = replace(view().a, family="seq2seq", written=" tuvo un libro.")
    assert (said(one), share(one)) == ("tuvo un libro.", "")
    assert more_said(one, "nats").startswith("after “home”: again 50.0 %, it 10.0 %")


def test_what_says_nothing_says_why() -> None:
    one = replace(view().a, output=RunOutput(kind="none", why="This model gives vectors."))
    assert (said(one), share(one), more_said(one, "bits")) == ("—", "", "This model gives vectors.")


def test_a_class_that_is_a_plain_number_has_no_share() -> None:
    output = RunOutput(kind="classes", candidates=(Candidate(0, "stars", "stars", nan, 3.25, 1),))
    one = replace(view().a, output=output)
    assert (said(one), share(one), more_said(one, "bits")) == ("stars", "3.250", "")


def test_changes_are_in_the_title() -> None:
    one = view().a
    assert title_of(one) == "story-gpt"
    assert title_of(replace(one, interventions=("scores × 0.5",))) == "story-gpt · scores × 0.5"
    assert title_of(replace(one, interventions=("a", "b"), adapter="poet")) == "story-gpt · 2 changes · poet"


def test_the_largest_difference_has_its_sign_and_place() -> None:
    assert largest(view()) == ("+0.250", "largest: from “home | far” to “ran”")
    assert largest(of_one_run()) == ("0", "no weight differs")
    assert largest(replace(view(), maps=None)) == ("—", "")


def test_heads_are_named_by_both_where_they_are_not_the_same() -> None:
    first, _, third = view().changes
    assert change_name(first, view()) == "layer 0, head 0"
    assert change_name(third, view()) == "layer 1, head 0 ~ layer 1, head 1"
    assert matched(replace(view(), matched_over=3), SiteRef("decoder", 1), 0) == "most like A's: 0.80, over 3 rows"
    assert matched(view(), ZERO, 0) == ""


def test_what_is_to_be_known_is_said_once() -> None:
    assert remarks(view()) == ""
    assert remarks(of_one_run()) == SAME
    assert remarks(replace(of_one_run(), b=replace(view().a, head=0))) == (
        "Two heads of one run: what it says is the same."
    )
    assert remarks(replace(view(), why_not=("Of two kinds.",), remarks=("By words.",))) == "Of two kinds. By words."
    alone = replace(view(), b=replace(view().b, site=None, head=None))
    assert (
        remarks(alone) == "Layer 0, head 1 has no counterpart in B: choose a head of B below, or click one of the list."
    )


def test_the_alignment_is_counted() -> None:
    assert aligned(view()) == (
        "Aligned by words: as few as can be are added, left out or replaced between the two texts; 1 place with other "
        "words; 1 token only in B."
    )
    assert aligned(replace(view(), keys=None)) == ""


def test_the_about_tells_the_figures_on_screen() -> None:
    state = answers.after(State(), answers.loaded(), answers.ran())
    assert "Press" not in " ".join(about(state, view()).sentences)
    assert about(state, view()).to_try.startswith("Try: press “Use as B”")
    both = replace(state, document=replace(state.document, compared=Compared(Document())))
    told = " ".join(about(both, view()).sentences)
    assert "A says “again” 50.0 %, B “today” 25.0 %." in told
    assert "The largest difference is +0.250, from “home | far” to “ran”." in told
    assert "The head that changed most is layer 0, head 1, by 0.400." in told
