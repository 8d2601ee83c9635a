"""Runs of different kinds: what is compared of them, and the sentences where something cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attention_models import compare_runs, open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.errors import InputError
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.two_runs import OtherRun, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import SiteRef, Token
from tests.models import tiny_vision
from tests.models.asking import ask, opened
from tests.models.tiny import TinyModel

STORY = "Tom and Anna went to the park. Anna gave the ball to"
SENTENCE = "The house has three doors."
YELLOW = "Yesterday Anna bought a yellow umbrella."


@pytest.fixture(scope="module")
def bahdanau() -> Model:
    return open_checkpoint("recurrent-en-es-bahdanau")


@pytest.fixture(scope="module")
def bottleneck() -> Model:
    return open_checkpoint("recurrent-en-es-bottleneck")


def test_cross_attention_of_a_recurrent_model_and_a_transformer(bahdanau: Model, en_es: Model) -> None:
    view = compare_runs(bahdanau, YELLOW, other_model=en_es)
    assert view.matching == "similarity"
    assert view.why_not_by_index == (
        "recurrent-en-es-bahdanau has 1 × 1 heads in its cross-attention, en-es has 4 × 8 heads in its "
        "cross-attention: heads of the same number are no counterparts. Each is held against the one that is most like "
        "it."
    )
    (change,) = view.changes
    assert change.other_site.stack == "cross"
    assert view.queries is not None
    assert view.keys is not None
    assert view.maps is not None
    # "yellow" is three tokens of A and one of B: its columns are summed in A; rows of several are averaged
    (k,) = (i for i, place in enumerate(view.keys.places) if place.a[1] - place.a[0] == 3)
    r = next(i for i, place in enumerate(view.queries.places) if place.is_single and place.same and i > 0)
    row, key = view.queries.places[r], view.keys.places[k]
    ours = run(bahdanau, YELLOW, target=view.a.written).weights(0, 0)
    theirs = run(en_es, YELLOW, target=view.b.written).weights(change.other_site, change.other_head)
    assert view.maps.a[r, k] == pytest.approx(float(ours[row.a[0], slice(*key.a)].sum()), abs=1e-5)
    assert view.maps.b[r, k] == pytest.approx(float(theirs[row.b[0], key.b[0]]), abs=1e-5)
    assert view.remarks[0].startswith("Where several tokens of one run stand for one of the other")


def test_what_two_models_wrote_by_ids_is_aligned_by_its_words(bahdanau: Model, en_es: Model) -> None:
    view = compare_runs(bahdanau, SENTENCE, other_model=en_es)
    assert [view.a.written, view.b.written] == ["la casa tiene tres puerta.", "La casa tiene tres puertas."]
    assert view.queries is not None
    assert view.queries.by == "words"

    def drawn(tokens: tuple[Token, ...], span: tuple[int, int]) -> str:
        return "|".join(token.label for token in tokens[slice(*span)])

    shown = [[drawn(view.a.tokens, p.a), drawn(view.b.tokens, p.b)] for p in view.queries.places]
    assert shown == [
        ["⟨start⟩", "⟨start⟩"],
        ["␣la", "␣La"],
        ["␣casa", "␣casa"],
        ["␣tiene", "␣tiene"],
        ["␣tres", "␣tres"],
        ["␣puerta", "␣pu|er|tas"],
        [".", "."],
    ]


def test_a_transformer_has_stacks_that_a_recurrent_model_lacks(bahdanau: Model, en_es: Model) -> None:
    view = compare_runs(en_es, SENTENCE, other_model=bahdanau, site=("encoder", 2), head=3)
    assert view.why_not == (
        "recurrent-en-es-bahdanau has no self-attention: the heads of en-es's encoder and decoder have no counterpart.",
    )
    assert (view.b.site, view.maps) == (None, None)
    assert len(view.changes) == 1  # the one cross head of B, and the head of A that is most like it
    assert "31 heads of A have no counterpart: recurrent-en-es-bahdanau has fewer." in view.remarks
    by_hand = compare_runs(
        en_es, SENTENCE, other_model=bahdanau, site=("encoder", 2), head=3, other_site=("cross", 0), other_head=0
    )
    assert by_hand.maps is not None  # as somebody wants it


def test_what_reads_is_held_against_what_reads(story_gpt: Model, en_es: Model) -> None:
    view = compare_runs(story_gpt, SENTENCE, other_model=en_es, position=4)
    assert view.why_not == ()
    assert {change.other_site.stack for change in view.changes} == {"encoder"}
    assert view.queries is not None
    assert view.queries.by == "characters"
    assert view.b.output.position == len(view.b.tokens) - 1  # no word of the translation stands for one of the text
    back = compare_runs(en_es, SENTENCE, other_model=story_gpt, site=("encoder", 0))
    assert {(change.site.stack, change.other_site.stack) for change in back.changes} == {("encoder", "decoder")}
    assert back.why_not == (
        "story-gpt reads and writes one text: the heads of en-es's decoder have no counterpart.",
        "story-gpt has no cross-attention: the heads of en-es's cross-attention have no counterpart.",
    )


def test_without_attention_only_what_is_said_is_compared(bahdanau: Model, bottleneck: Model, en_es: Model) -> None:
    for a, b in ((bahdanau, bottleneck), (bottleneck, bahdanau), (bottleneck, en_es)):
        view = compare_runs(a, SENTENCE, other_model=b)
        assert view.why_not == ("recurrent-en-es-bottleneck has no attention: only what both say is compared.",)
        assert view.changes == ()
        assert (view.matching, view.maps, view.done) == (None, None, 1.0)
        assert "tiene tres" in view.a.written
        assert "tiene tres" in view.b.written
        assert view.said[0].label == "⟨end⟩"
        assert min(view.said[0].probability_a, view.said[0].probability_b) > 0.9


def test_two_vocabularies(story_gpt: Model, story_bert: Model) -> None:
    view = compare_runs(
        story_gpt, STORY, "Tom and Anna went to the park. Anna gave the ball to [MASK].", other_model=story_bert
    )
    bert = run(story_bert, view.b.text).logits[14].astype(float)
    shares = np.exp(bert - bert.max()) / np.exp(bert - bert.max()).sum()
    tom = next(said for said in view.said if said.label == "␣Tom")
    assert tom.probability_a == pytest.approx(view.a.output.candidates[0].probability, abs=1e-12)
    assert tom.probability_b == pytest.approx(shares[story_bert.tokenize("Tom")[1].id], abs=1e-6)
    assert "story-bert says the token at a position, story-gpt the one that comes after it." in view.remarks
    assert view.queries is not None
    assert view.queries.by == "words"
    assert (
        "story-gpt has 8 × 8 heads in its decoder, story-bert has 6 × 8 heads in its encoder" in view.why_not_by_index
    )
    assert len(view.changes) == 48
    assert "16 heads of A have no counterpart: story-bert has fewer." in view.remarks


def test_a_word_that_one_vocabulary_has_not(story_gpt: Model, tiny_model: TinyModel) -> None:
    view = compare_runs(story_gpt, STORY, other_model=tiny_model("gpt2"))
    tom = next(said for said in view.said if said.label == "␣Tom")
    assert tom.probability_a > 0.5
    assert np.isnan(tom.probability_b)  # it is spelled in several tokens there


def test_a_picture_beside_a_text(story_gpt: Model) -> None:
    vit = open_checkpoint("vit-cifar10")
    view = compare_runs(vit, "sample:chelsea", STORY, other_model=story_gpt)
    assert view.why_not == ("A looks at a picture and B reads text: no patch stands for a word.",)
    assert (view.changes, view.said, view.done) == ((), (), 1.0)
    assert view.a.output.kind == "classes"
    assert view.a.output.candidates[0].label == "cat"
    assert view.b.output.candidates[0].label == "␣Tom"
    assert compare_runs(vit, "sample:chelsea", STORY, other_model=story_gpt, position=3).b.output.position == 13


def test_two_pictures_are_aligned_patch_by_patch(tmp_path: Path) -> None:
    vit = open_checkpoint("vit-cifar10")
    view = compare_runs(vit, "sample:chelsea", "sample:coffee", site=("encoder", 1), head=2)
    assert view.queries is not None
    assert view.maps is not None
    assert view.queries.by == "patches"
    a, b = (run(vit, name).weights(("encoder", 1), 2) for name in ("sample:chelsea", "sample:coffee"))
    np.testing.assert_allclose(view.maps.difference, a - b, atol=1e-7)
    change = view.counterpart(SiteRef("encoder", 1), 2)
    assert change is not None
    assert change.change == pytest.approx(float(np.abs(a.astype(float) - b).sum(1).mean() / 2), abs=1e-6)
    cat = next(said for said in view.said if said.label == "cat")
    assert cat.probability_a == pytest.approx(view.a.output.candidates[0].probability, abs=1e-12)
    other = open_checkpoint(tiny_vision.save("vit", tmp_path / "vit"))
    (sentence,) = compare_runs(vit, "sample:chelsea", other_model=other).why_not
    assert sentence.startswith("A cuts its picture into 8 × 8 patches after 1 other tokens, B into ")


def test_a_classifier_beside_another_says_classes_of_one_name(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_classifier")
    view = compare_runs(model, STORY, "The dog sleeps.")
    assert view.a.output.kind == "classes"
    for said in view.said:
        of_a = next(c for c in view.a.output.candidates if c.label == said.label)
        of_b = next(c for c in view.b.output.candidates if c.label == said.label)
        assert (said.probability_a, said.probability_b) == pytest.approx((of_a.probability, of_b.probability))
    assert compare_runs(model, STORY, other_model=tiny_model("bert")).said == ()


def test_a_model_without_an_output_head_says_why(tiny_model: TinyModel) -> None:
    view = compare_runs(tiny_model("llama_bare"), STORY, other_model=tiny_model("llama"))
    assert view.a.output.kind == "none"
    assert "no output head" in view.a.output.why
    assert view.b.output.kind == "words"
    assert {change.change for change in view.changes} != {0.0}


def said_at(view: TwoRunsView) -> tuple[int, int]:
    return view.a.output.position, view.b.output.position


def test_b_says_it_where_a_token_of_its_own_stands_for_the_position(story_gpt: Model) -> None:
    longer = "Yesterday Tom and Anna went to the park. Anna gave the ball to"
    assert said_at(compare_runs(story_gpt, STORY, longer)) == (13, 15)
    assert said_at(compare_runs(story_gpt, STORY, longer, position=4)) == (4, 6)
    assert said_at(compare_runs(story_gpt, longer, STORY, position=2)) == (2, 13)  # that word is in A alone


def test_padding_is_not_counted(story_gpt: Model) -> None:
    engine = opened("story-gpt")
    short = "Tom and Anna went"
    batch = RunInputs(Batch((short, STORY)))
    ran = ask(engine, ForwardRequest(inputs=batch, ticket=2))
    assert isinstance(ran, Ran)
    assert len(ran.tokens) == 14
    view = ask(engine, TwoRunsRequest(run=2, site=SiteRef("decoder", 5), head=5, other=OtherRun(RunInputs(STORY))))
    assert isinstance(view, TwoRunsView)
    alone = compare_runs(story_gpt, short, STORY)
    for padded, plain in zip(view.changes, alone.changes, strict=True):
        assert padded.change == pytest.approx(plain.change, abs=1e-6)
    assert view.queries is not None
    assert len(view.queries.alone_a) == 9  # padding stands for no word


def test_a_head_that_b_lacks(story_gpt: Model) -> None:
    view = compare_runs(story_gpt, STORY, other_site=("decoder", 11), other_head=0)
    assert view.why_not == ("story-gpt has no decoder layer 11, head 0.",)
    assert view.maps is None
    with pytest.raises(IndexError):
        compare_runs(story_gpt, STORY, site=("decoder", 3), head=8)


def test_what_is_no_text_is_said(story_gpt: Model) -> None:
    with pytest.raises(InputError, match="Two runs are of texts, pairs or conversations, not of a int"):
        compare_runs(story_gpt, 7)
