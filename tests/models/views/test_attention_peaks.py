"""What every head attends to from the first row, against transformers' own attentions and rules spelled out here."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attention_models import Model, open_checkpoint, run
from attention_models.files.sample_pictures import path_of
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.head import AttentionPeaks
from attention_models.protocol.running import ForwardRequest, Ran, RerunRequest, RunInputs
from attention_models.protocol.values import Site, SiteRef
from attention_models.views.attention_peaks import looks
from tests.models import tiny
from tests.models.asking import ask, forward, opened
from tests.models.eager import attentions

TOM = "Tom and Anna went to the park. Anna gave the ball to"
ATOL = 1e-6


def assert_is(
    found: AttentionPeaks | None, sites: tuple[Site, ...], theirs: dict[SiteRef, np.ndarray], keys: list[int]
) -> None:
    """Each head's `AttentionPeak` is the largest of its eager weights over `keys`."""
    assert found is not None
    for site, heads in zip(sites, found.of_heads, strict=True):
        rows = theirs[site.ref][:, found.query][:, keys]  # (heads, keys)
        assert len(heads) == site.heads
        np.testing.assert_allclose([look.weight for look in heads], rows.max(axis=1), atol=ATOL)
        for look, row in zip(heads, rows, strict=True):
            assert row[keys.index(look.key)] == pytest.approx(row.max(), abs=ATOL)


def words_of(trace: Trace) -> list[int]:
    return [i for i, token in enumerate(trace.tokens) if not token.special and re.search(r"\w", token.text)]


def test_a_model_that_writes_on_reads_the_row_of_its_last_token(story_gpt: Model) -> None:
    trace = run(story_gpt, TOM)
    found = looks(trace, (), continues=True)
    assert found is not None
    assert found.query == len(trace.tokens) - 1
    keys = [i for i in words_of(trace) if i < found.query - 1]  # not itself, not its neighbour
    assert 0 not in keys  # ⟨start⟩
    assert_is(found, trace.sites, attentions(tiny.eager_run(story_gpt, TOM), story_gpt), keys)


def test_punctuation_at_the_end_is_a_query_and_never_a_key(story_gpt: Model) -> None:
    trace = run(story_gpt, "Tom ran. Anna, Ben and Mia sat.")
    found = looks(trace, (), continues=True)
    assert found is not None
    assert trace.tokens[found.query].word == "."
    assert {trace.tokens[look.key].word for heads in found.of_heads for look in heads} <= {
        *("Tom", "ran", "Anna", "Ben", "and", "Mia")
    }


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_without_a_start_token_the_first_word_is_the_sink(tiny_model, kind: str) -> None:
    model = tiny_model(kind)
    trace = run(model, TOM)
    found = looks(trace, (), continues=True)
    assert found is not None
    first = trace.tokens[0]
    keys = [i for i in words_of(trace) if 0 < i < found.query - 1]
    assert not first.special
    assert_is(found, trace.sites, attentions(tiny.eager_run(model, TOM), model), keys)


def test_a_model_that_fills_in_reads_the_row_of_its_first_mask(story_bert: Model) -> None:
    text = "Anna lost her ball in the park. Tom helped [MASK] find [MASK]."
    trace = run(story_bert, text)
    masks = [i for i, token in enumerate(trace.tokens) if token.piece == "[MASK]"]
    found = looks(trace, masks, continues=False)
    assert found is not None
    assert found.query == masks[0]
    keys = [i for i in words_of(trace) if abs(i - masks[0]) > 1 and i not in masks]
    assert_is(found, trace.sites, attentions(tiny.eager_run(story_bert, text), story_bert), keys)


def test_without_a_mask_it_is_the_last_word(story_bert: Model) -> None:
    found = looks(run(story_bert, "The cat is black."), (), continues=False)
    assert found is not None
    assert found.query == 4  # [CLS] The cat is black . [SEP]
    assert {look.key for heads in found.of_heads for look in heads} <= {1, 2}


def test_of_a_pair_the_second_text_begins_and_the_first_is_attended_to() -> None:
    engine = opened("story-next")
    ran = ask(engine, ForwardRequest(inputs=RunInputs(Pair("Tom lost his ball.", "He cried.")), ticket=2))
    assert isinstance(ran, Ran)
    assert ran.looks is not None
    assert ran.tokens[ran.looks.query].word == "He"
    trace = engine.workspace.run.trace  # type: ignore[union-attr]
    first = [i for i in words_of(trace) if trace.tokens[i].segment == 0]
    for site, heads in zip(ran.sites, ran.looks.of_heads, strict=True):
        for head, look in enumerate(heads):
            row = trace.weights(site, head)[ran.looks.query]
            assert [look.weight, row[look.key]] == pytest.approx([row[first].max()] * 2, abs=ATOL)


def test_across_two_texts_it_is_the_row_that_wrote_the_last_word(en_es: Model) -> None:
    source, target = "The black cat is sleeping on the table.", "El gato negro está durmiendo sobre la mesa."
    trace = run(en_es, source, target=target)
    found = looks(trace, (), continues=False)
    assert found is not None
    assert [trace.tokens[i].word for i in (found.query, found.query + 1)] == ["la", "mesa"]
    theirs = attentions(tiny.eager_run(en_es, source, target), en_es)
    keys = [i for i, token in enumerate(trace.source) if not token.special and re.search(r"\w", token.text)]
    for site, heads in zip(trace.sites, found.of_heads, strict=True):
        if site.stack == "cross":
            assert_is(AttentionPeaks(found.query, (heads,)), (site,), theirs, keys)
        else:
            assert heads == ()


def test_of_a_picture_it_is_the_row_of_cls_over_the_patches() -> None:
    model = open_checkpoint("vit-cifar10")
    trace = run(model, str(path_of("sample:chelsea")))
    found = looks(trace, (), continues=False)
    assert found is not None
    assert found.query == 0
    for site, heads in zip(trace.sites, found.of_heads, strict=True):
        for head, look in enumerate(heads):
            row = trace.weights(site, head)[0]
            assert [look.weight, row[look.key]] == pytest.approx([row[1:].max()] * 2, abs=ATOL)
            assert look.key > 0


@pytest.mark.parametrize(("text", "keys"), [("Tom and", {1}), ("Tom", None), ("!?", None)])
def test_a_text_of_a_word_or_two_has_little_to_attend_to(story_gpt: Model, text: str, keys: set[int] | None) -> None:
    found = looks(run(story_gpt, text), (), continues=True)
    assert (found is None) == (keys is None)
    assert found is None or {look.key for heads in found.of_heads for look in heads} == keys


def test_a_model_without_attention_has_none() -> None:
    ran = forward(opened("dates-bottleneck"), "5 March 1998")
    assert ran.looks is None


@pytest.mark.parametrize("padding", ["left", "right"])
def test_padding_is_neither_the_first_token_nor_a_key(padding: str) -> None:
    engine = opened("story-gpt")
    batch = Batch(("Tom and Anna went home because", TOM), padding, 0)  # type: ignore[arg-type]
    ran = ask(engine, ForwardRequest(inputs=RunInputs(batch), ticket=2))
    assert isinstance(ran, Ran)
    assert ran.looks is not None
    assert ran.tokens[ran.looks.query].word == "because"
    trace = engine.workspace.run.trace  # type: ignore[union-attr]
    start = next(i for i, token in enumerate(trace.tokens) if not token.padding)  # ⟨start⟩
    keys = list(range(start + 1, ran.looks.query - 1))
    for site, heads in zip(ran.sites, ran.looks.of_heads, strict=True):
        for head, look in enumerate(heads):
            row = trace.weights(site, head)[ran.looks.query]
            assert [look.weight, row[look.key]] == pytest.approx([row[keys].max()] * 2, abs=ATOL)
            assert look.key in keys


def test_a_run_that_only_changes_interventions_does_not_say_it_again() -> None:
    engine = opened("story-gpt")
    ran = ask(engine, RerunRequest(inputs=RunInputs(TOM), ticket=2))
    assert isinstance(ran, Ran)
    assert ran.looks is None
