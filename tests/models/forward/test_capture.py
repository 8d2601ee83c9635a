"""Whole models: what a run keeps is what transformers' own eager forward computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attention_models import run
from attention_models.attention import output as mixing
from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.capture import Recorder, active
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.eager import TARGET, assert_same_as_eager
from tests.models.tiny import TinyModel

DECODERS = ("gpt2", "llama", "gemma2", "gpt_oss")
ENCODERS = ("bert", "distilbert", "albert", "roberta", "bert_bare")
BOTH = ("t5", "marian")


@pytest.mark.parametrize("tokens", [14, 512])
def test_story_gpt_equals_eager(story_gpt: Model, tokens: int) -> None:
    trace = assert_same_as_eager(story_gpt, tiny.text_of(story_gpt, tokens))
    assert [(s.stack, s.layer, s.heads, s.queries, s.keys) for s in trace.sites] == [
        ("decoder", layer, 8, tokens, tokens) for layer in range(8)
    ]
    assert all(site.causal for site in trace.sites)


@pytest.mark.parametrize("tokens", [9, 256])
def test_story_bert_equals_eager(story_bert: Model, tokens: int) -> None:
    trace = assert_same_as_eager(story_bert, tiny.text_of(story_bert, tokens))
    assert [(s.stack, s.layer, s.heads, s.queries, s.keys) for s in trace.sites] == [
        ("encoder", layer, 8, tokens, tokens) for layer in range(6)
    ]
    assert not any(site.causal for site in trace.sites)
    assert trace.masked(0, 0) is None


def test_en_es_equals_eager(en_es: Model) -> None:
    trace = assert_same_as_eager(en_es, "The black cat is sleeping on the table.")
    assert [token.label for token in trace.source][-1] == "⟨end⟩"
    assert trace.tokens[0].label == "⟨start⟩"
    assert len(trace.logits) == len(trace.tokens)


@pytest.mark.parametrize("kind", DECODERS)
def test_sites_of_a_decoder(tiny_model: TinyModel, kind: str) -> None:
    sites = run(tiny_model(kind), tiny.SENTENCE).sites
    assert [site.ref for site in sites] == [SiteRef("decoder", layer) for layer in range(3)]
    assert all(site.causal and site.heads == 4 for site in sites)
    assert {site.key_heads for site in sites} == {4 if kind == "gpt2" else 2}
    assert {site.head_dim for site in sites} == {8}
    assert len({site.module for site in sites}) == 3


@pytest.mark.parametrize("kind", ENCODERS)
def test_sites_of_an_encoder(tiny_model: TinyModel, kind: str) -> None:
    sites = run(tiny_model(kind), tiny.SENTENCE).sites
    assert [site.ref for site in sites] == [SiteRef("encoder", layer) for layer in range(3)]
    assert not any(site.causal for site in sites)
    # ALBERT runs one module three times
    assert len({site.module for site in sites}) == (1 if kind == "albert" else 3)


@pytest.mark.parametrize("kind", BOTH)
def test_sites_of_an_encoder_and_decoder(tiny_model: TinyModel, kind: str) -> None:
    model = tiny_model(kind)
    trace = run(model, tiny.SENTENCE, target=TARGET)
    assert [site.ref for site in trace.sites] == [
        *(SiteRef("encoder", layer) for layer in range(2)),
        *(SiteRef(stack, layer) for layer in range(3) for stack in ("decoder", "cross")),
    ]
    source, written = len(trace.source), len(trace.tokens)
    assert source != written
    shapes = {"encoder": (source, source), "decoder": (written, written), "cross": (written, source)}
    for site in trace.sites:
        assert (site.queries, site.keys) == shapes[site.stack]
        assert site.causal == (site.stack == "decoder")
    described = {info.stack: (info.layers, info.heads) for info in model.info.stacks}
    assert described == {"encoder": (2, 4), "decoder": (3, 4), "cross": (3, 4)}


@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss"])
def test_sliding_window_is_masked(tiny_model: TinyModel, kind: str) -> None:
    trace = run(tiny_model(kind), tiny.SENTENCE)
    n = len(trace.tokens)
    assert n > 12  # longer than the window of 8
    reach = [masked.argmin(1).tolist() for layer in (0, 1) if (masked := trace.masked(layer, 0)) is not None]
    assert reach == [[max(0, i - 7) for i in range(n)], [0] * n]
    row_sums = trace.weights(0, 0).sum(1)
    assert (row_sums < 1 - 1e-4).any() == (kind == "gpt_oss")  # its sinks take a share


def test_last_block_feeds_the_final_norm(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    module: Any = story_gpt.module
    logits = module.lm_head(module.transformer.ln_f(trace.residual["decoder"][-1]))
    np.testing.assert_allclose(logits.numpy(), trace.logits, atol=1e-4)


def test_token_ids_run_as_they_are(story_gpt: Model) -> None:
    text = run(story_gpt, tiny.SENTENCE)
    ids = run(story_gpt, [token.id for token in text.tokens])
    assert np.array_equal(ids.logits, text.logits)
    of_numpy = run(story_gpt, list(np.array([token.id for token in text.tokens])))
    assert of_numpy.tokens == ids.tokens
    assert all(type(token.id) is int for token in of_numpy.tokens)
    assert [t.label for t in ids.tokens] == [t.label for t in text.tokens]
    assert all(token.text == "" for token in ids.tokens)


def test_one_token(story_gpt: Model) -> None:
    trace = run(story_gpt, [17])
    assert trace.weights(0, 0).tolist() == [[1.0]]
    assert trace.logits.shape == (1, 8192)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([], "no tokens"),
        ([0] * 513, "513 tokens; story-gpt takes 512"),
        ([9000], "no token 9000"),
        ([-1], "no token -1"),
        ([1.5], "A list of ids has whole numbers"),
        ([1, "Tom"], "A list of ids has whole numbers"),
        ([{"role": "user", "content": "Hi"}, 5], "Turn 2 is no table"),
        (b"Tom", "reads text, a list of ids or a list of turns, not a bytes"),
        (None, "not a NoneType"),
    ],
)
def test_what_can_not_run(story_gpt: Model, ids: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(story_gpt, ids)


def test_decoder_start_takes_one_place(tiny_model: TinyModel) -> None:
    marian = tiny_model("marian")
    limit = marian.info.context
    assert limit == 60
    assert len(run(marian, "Anna", target=[300] * (limit - 1)).tokens) == limit
    for target in ([300] * limit, "Anna " * limit):
        with pytest.raises(InputError, match="takes 59"):
            run(marian, "Anna", target=target)


# --------------------------------------------------------------------------- what is kept


def test_trace_of_512_tokens_is_small(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.text_of(story_gpt, 512))
    all_weights = 8 * 8 * 512 * 512 * 4
    assert trace.nbytes < 60e6 < all_weights
    # queries, keys and values of 8 layers, the stream at 9 places, logits
    assert trace.nbytes == 4 * 512 * (8 * 3 * 256 + 9 * 256 + 8192)


def test_nothing_is_kept_outside_a_run(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[AttentionInputs] = []
    trace = run(story_gpt, tiny.SENTENCE)
    real = Recorder.keep

    def watched(self: Recorder, module: nn.Module, x: AttentionInputs, *more: Any) -> Any:
        kept.append(x)
        return real(self, module, x, *more)

    monkeypatch.setattr(Recorder, "keep", watched)
    assert active() is None
    with torch.no_grad():
        logits = story_gpt.module(**story_gpt.encode(tiny.SENTENCE).inputs).logits[0].numpy()
    assert kept == []
    assert np.array_equal(logits, trace.logits)
    run(story_gpt, tiny.SENTENCE)
    assert len(kept) == 8  # that was the way by which they would have come


def test_run_is_called_off_between_blocks(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[AttentionInputs] = []
    polls: list[None] = []
    real = mixing.output

    def counted(x: AttentionInputs) -> torch.Tensor:
        computed.append(x)
        return real(x)

    def stop_after_three() -> bool:
        polls.append(None)
        return len(polls) > 3

    monkeypatch.setattr(mixing, "output", counted)
    with pytest.raises(Cancelled):
        run(story_gpt, tiny.SENTENCE, should_stop=stop_after_three)
    assert len(computed) == 4
    assert active() is None
    assert len(run(story_gpt, tiny.SENTENCE).sites) == 8


# --------------------------------------------------------------------------- the trace


def test_site_by_any_name(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.SENTENCE)
    expected = trace.weights(5, 3)
    names: list[Any] = [trace.sites[5], SiteRef("decoder", 5), ("decoder", 5), -3]
    for name in names:
        assert np.array_equal(trace.weights(name, 3), expected)


@pytest.mark.parametrize("site", [8, -9, ("decoder", 8), ("encoder", 0), SiteRef("cross", 0)])
def test_unknown_site(story_gpt: Model, site: Any) -> None:
    with pytest.raises(IndexError, match="no attention site"):
        run(story_gpt, tiny.SENTENCE).weights(site, 0)


@pytest.mark.parametrize("head", [-1, 8])
def test_unknown_head(story_gpt: Model, head: int) -> None:
    with pytest.raises(IndexError, match=f"Head {head} does not exist"):
        run(story_gpt, tiny.SENTENCE).scores(0, head)


def test_rows_of_a_trace(tiny_model: TinyModel) -> None:
    trace = run(tiny_model("gemma2"), tiny.SENTENCE)
    for rows in (slice(3, 7), [11, 2], [0]):
        for read in (trace.weights, trace.scores, trace.masked):
            part, whole = read(0, 1, rows), read(0, 1)
            assert part is not None
            assert whole is not None
            np.testing.assert_allclose(part, whole[rows], atol=1e-6)


def test_mask_of_keys_covers_every_row(story_bert: Model) -> None:
    trace = run(story_bert, "Tom and Anna")
    x = replace(trace.inputs[0], mask=torch.tensor([[[[True, True, False, True, False]]]]))
    trace = replace(trace, inputs=(x, *trace.inputs[1:]))
    shut = [False, False, True, False, True]
    for rows, count in ((None, 5), (slice(1, 3), 2), ([4], 1)):
        masked = trace.masked(0, 1, rows)
        assert masked is not None
        assert masked.tolist() == [shut] * count


def test_atlas_holds_every_head(story_gpt: Model) -> None:
    trace = run(story_gpt, tiny.text_of(story_gpt, 40))
    view = trace.atlas_view(16)
    assert view.images.shape == (8, 8, 14, 14)  # squares of 3
    assert view.cell == 3
    assert view.rows.error < 1e-5
    for site, head in ((0, 0), (7, 7), (3, 5)):
        np.testing.assert_allclose(view.images[site, head], trace.pooled(site, head, 16), atol=1e-7)
    mean = np.stack([trace.weights(2, head) for head in range(8)]).mean(0)
    assert view.mean[2, 0, 0] == pytest.approx(mean[:3, :3].max(), abs=1e-6)
    assert np.array_equal(trace.atlas(16), view.images)


def test_atlas_of_unlike_sites_has_room_for_the_largest(tiny_model: TinyModel) -> None:
    trace = run(tiny_model("t5"), tiny.SENTENCE, target="Tom")
    source, written = len(trace.source), len(trace.tokens)
    images = trace.atlas(64)
    assert images.shape == (8, 4, source, source)
    assert np.isfinite(images[0]).all()
    cross = images[3]
    assert np.isfinite(cross[:, :written, :source]).all()
    assert np.isnan(cross[:, written:]).all()


def test_atlas_is_called_off_between_sites(story_gpt: Model) -> None:
    polls = iter([False, False, True])
    with pytest.raises(Cancelled):
        run(story_gpt, tiny.SENTENCE).atlas_view(8, should_stop=lambda: next(polls))
    assert next(polls, None) is None


def test_picture_without_pixels(story_gpt: Model) -> None:
    with pytest.raises(ValueError, match="ask for 1 or more"):
        run(story_gpt, tiny.SENTENCE).atlas(0)


def test_model_without_a_head_gives_no_logits(tiny_model: TinyModel) -> None:
    with pytest.raises(ValueError, match="no output head"):
        _ = run(tiny_model("bert_bare"), tiny.SENTENCE).logits
