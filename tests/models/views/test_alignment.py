"""The alignment read from cross-attention, against transformers' own attentions averaged in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import MarianMTModel

from attention_models import Model, Trace, open_checkpoint, run
from attention_models.protocol.alignment import AlignmentRequest, AlignmentView
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.protocol.word_spans import Words
from attention_models.views.alignment import described, likelihoods, mean_weights
from tests.models.asking import ask, failure_of, opened

SOURCE, TARGET = "The black cat is sleeping on the table.", "El gato negro está durmiendo sobre la mesa."
TOLERANCE = 1e-5
CROSS = SiteRef("cross", 2)


@pytest.fixture(scope="module")
def model() -> Model:
    return open_checkpoint("en-es")


@pytest.fixture(scope="module")
def trace(model) -> Trace:
    return run(model, SOURCE, target=TARGET)


@pytest.fixture(scope="module")
def theirs(model) -> np.ndarray:
    """(layers, heads, target tokens, source tokens) float64 from the model's eager attention."""
    inputs = model.encode(SOURCE, TARGET).inputs
    before = model.module.config._attn_implementation
    model.module.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            out = model.module(**inputs, output_attentions=True)
    finally:
        model.module.set_attn_implementation(before)
    weights: np.ndarray = torch.stack([layer[0] for layer in out.cross_attentions]).double().numpy()
    return weights


def test_one_head_is_its_weights(trace, theirs):
    np.testing.assert_allclose(mean_weights(trace, CROSS, 4), theirs[2, 4], atol=TOLERANCE)


def test_a_layer_is_the_mean_over_its_heads(trace, theirs):
    np.testing.assert_allclose(mean_weights(trace, CROSS), theirs[2].mean(axis=0), atol=TOLERANCE)
    own = np.mean([trace.weights(CROSS, head).astype(np.float64) for head in range(8)], axis=0)
    np.testing.assert_allclose(mean_weights(trace, CROSS), own, atol=1e-7)


def test_all_heads_are_the_mean_over_every_cross_head(trace, theirs):
    found = mean_weights(trace)
    np.testing.assert_allclose(found, theirs.mean(axis=(0, 1)), atol=TOLERANCE)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=TOLERANCE)


def test_the_listed_head_finds_eight_of_nine_words(trace):
    """What `attention_explorer.session.defaults` says of it: row i writes token i + 1."""
    weights = mean_weights(trace, CROSS, 4)
    own = [0, 2, 1, 3, 4, 5, 6, 7, 8]  # the English token of each Spanish one
    assert sum(int(weights[row].argmax()) == key for row, key in enumerate(own)) == 8
    assert np.mean([weights[row, key] for row, key in enumerate(own)]) == pytest.approx(0.82, abs=0.01)


def test_it_says_what_it_shows(trace):
    assert described(trace, CROSS, 4) == "cross-attention layer 2, head 4"
    assert described(trace, CROSS) == "mean over the 8 heads of cross-attention layer 2"
    assert described(trace) == "mean over all 32 cross-attention heads"


def test_what_does_not_align_is_refused(trace):
    with pytest.raises(ValueError, match="decoder looks within one text"):
        mean_weights(trace, SiteRef("decoder", 0))
    with pytest.raises(IndexError):
        mean_weights(trace, SiteRef("cross", 9))
    with pytest.raises(ValueError, match="no cross-attention"):
        mean_weights(run(open_checkpoint("story-gpt"), "Tom"))


def test_the_engine_answers_for_the_run_it_holds(trace):
    engine = opened("en-es")
    ask(engine, ForwardRequest(inputs=RunInputs(SOURCE, target=TARGET), ticket=2))
    view = ask(engine, AlignmentRequest(run=2, site=CROSS))
    assert isinstance(view, AlignmentView)
    np.testing.assert_array_equal(view.weights, mean_weights(trace, CROSS))
    assert not view.weights.flags.writeable
    assert (view.request.site, view.request.head, view.description) == (CROSS, None, described(trace, CROSS))


def test_a_target_that_is_too_long_is_named_and_how_much_of_it_fits(model):
    engine = opened("en-es")
    failure = failure_of(engine, ForwardRequest(inputs=RunInputs("Hello.", target="gato " * 200), ticket=2))
    assert failure.of_target
    assert failure.sentence.startswith("The target is 201 tokens long; en-es takes 127.")
    kept = ask(engine, ForwardRequest(inputs=RunInputs("Hello.", target=("gato " * 200)[: failure.cut_to]), ticket=3))
    assert isinstance(kept, Ran)
    assert len(kept.tokens) == model.info.context


@pytest.mark.parametrize("target", ["El perro negro está durmiendo.", "El gato negro está durmiendo."])
def test_likelihoods_are_those_of_transformers_in_float64(model, target):
    trace = run(model, "The black cat is sleeping.", target=target)
    found = likelihoods(trace)
    encoded = model.encode("The black cat is sleeping.", target)
    eager = MarianMTModel.from_pretrained(model.info.folder, dtype=torch.float64, attn_implementation="eager").eval()
    with torch.no_grad():
        logits = eager(**encoded.inputs).logits[0]
    ids = encoded.inputs["decoder_input_ids"][0, 1:]
    expected = torch.log_softmax(logits[:-1], dim=-1)[torch.arange(len(ids)), ids].exp()
    np.testing.assert_allclose(found[:-1], expected.numpy(), rtol=1e-5)
    assert np.isnan(found[-1])


def test_what_is_forced_is_less_likely_than_what_the_model_writes(model):
    cat, dog = (run(model, "The black cat is sleeping.", target=f"El {word} negro") for word in ("gato", "perro"))
    assert likelihoods(cat)[1] > 0.5
    assert likelihoods(dog)[1] < 0.01


def test_words_are_those_that_a_position_writes(model):
    """Rows averaged over the positions that wrote a word, columns summed over its pieces, likelihoods multiplied."""
    engine = opened("en-es")
    source, target = "The unbelievably mischievous cat.", "El gato increíblemente travieso."
    ran = ask(engine, ForwardRequest(inputs=RunInputs(source, target=target), ticket=2))
    assert isinstance(ran, Ran)
    pieces = ask(engine, AlignmentRequest(run=2, site=CROSS))
    merged = ask(engine, AlignmentRequest(run=2, site=CROSS, words=True))
    assert isinstance(pieces, AlignmentView)
    assert isinstance(merged, AlignmentView)
    rows = [[0]]
    for position in range(1, len(ran.tokens)):
        goes_on = position + 1 < len(ran.tokens) and ran.tokens[position + 1].continues
        rows = [*rows[:-1], [*rows[-1], position]] if goes_on else [*rows, [position]]
    columns = Words.of(ran.source)
    assert len(rows) < len(ran.tokens)
    assert merged.weights.shape == (len(rows), len(columns))
    for i, row in enumerate(rows):
        for j in range(len(columns)):
            block = pieces.weights[np.ix_(row, list(columns.tokens(j)))].astype(np.float64)
            assert merged.weights[i, j] == pytest.approx(block.sum(axis=1).mean(), abs=1e-7)
        product = pieces.likelihoods[row].prod()
        assert merged.likelihoods[i] == pytest.approx(product, rel=1e-5, nan_ok=True)
    np.testing.assert_allclose(merged.weights.sum(axis=1), 1.0, atol=1e-6)
    assert rows[-1] == [len(ran.tokens) - 1]  # what comes next is written by the last one alone
