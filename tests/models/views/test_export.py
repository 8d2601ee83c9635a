"""Weights as files: whole or not at all, with progress, and what stands in them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.attention.rounding import bounds
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.request import Cancelled
from attention_models.views import export
from attention_models.views.export import save_weights
from attention_models.views.head import word_weights
from attention_models.views.saved_weights import load_weights

TEXT = "Tom and Anna went to the park."


@pytest.fixture(scope="module")
def trace(story_gpt: Model) -> Trace:
    return run(story_gpt, TEXT)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_every_head_of_every_site_is_written(trace, tmp_path):
    path = tmp_path / "a.npz"
    assert save_weights(trace, path) == path.stat().st_size
    with np.load(path) as written:
        assert set(written) == {"meta", "tokens", *(f"decoder.{layer}" for layer in range(8))}
        assert written["tokens"].tolist() == [token.piece for token in trace.tokens]
        for site in trace.sites:
            weights = written[f"decoder.{site.layer}"]
            assert weights.dtype == np.float32
            assert weights.shape == (8, site.queries, site.keys)
            for head in range(8):
                np.testing.assert_array_equal(weights[head], trace.weights(site, head))
    assert files(tmp_path) == ["a.npz"]


def test_an_encoder_decoder_model_has_two_texts(en_es: Model, tmp_path):
    trace = run(en_es, "The cat.", target="El gato.")
    save_weights(trace, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as written:
        assert len(written["source_tokens"]) == written["cross.0"].shape[2]
        assert len(written["tokens"]) == written["cross.0"].shape[1]


def test_progress_grows_to_the_whole(trace, tmp_path):
    told: list[float] = []
    save_weights(trace, tmp_path / "a.npz", report=told.append)
    assert len(told) == 64
    assert all(a < b for a, b in pairwise(told))
    assert told[-1] == 1


@pytest.mark.parametrize("after", [0, 1, 40])
def test_called_off_it_leaves_what_was_there_and_no_half_file(trace, tmp_path, monkeypatch, after):
    path = tmp_path / "a.npz"
    path.write_bytes(b"the weights of yesterday")
    polls = iter(range(1000))
    with pytest.raises(Cancelled):
        save_weights(trace, path, lambda: next(polls) >= after)
    assert path.read_bytes() == b"the weights of yesterday"
    assert files(tmp_path) == ["a.npz"]


def test_a_large_head_is_called_off_in_its_middle(trace, tmp_path, monkeypatch):
    """Between blocks, so that it does not take as long as a head of thousands of tokens takes to be compressed."""
    monkeypatch.setattr(export, "_BLOCK", 64)
    polls = iter(range(1000))
    with pytest.raises(Cancelled):
        save_weights(trace, tmp_path / "a.npz", lambda: next(polls) >= 3)
    monkeypatch.setattr(export, "_BLOCK", 100)
    save_weights(trace, tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as written:
        np.testing.assert_array_equal(written["decoder.7"][3], trace.weights(trace.sites[7], 3))
    assert files(tmp_path) == ["b.npz"]


def test_what_can_not_be_written_is_a_sentence(trace, tmp_path):
    with pytest.raises(ExplorerError, match=r"The weights could not be written to .*: there is no such folder\."):
        save_weights(trace, tmp_path / "nowhere" / "a.npz")


def test_a_long_text_s_weights_are_written_some_rows_at_a_time(trace, tmp_path, monkeypatch):
    """Held whole, one head of 32,768 tokens takes 4 GB."""
    site = trace.sites[0]
    monkeypatch.setattr(export, "_CELLS", 3 * site.keys + 1)
    held: list[int] = []
    whole = Trace.weights

    def weights(self, site, head, rows=None):
        found = whole(self, site, head, rows)
        held.append(found.size)
        return found

    monkeypatch.setattr(Trace, "weights", weights)
    save_weights(trace, tmp_path / "a.npz")
    assert max(held) == 3 * site.keys < site.queries * site.keys
    with np.load(tmp_path / "a.npz") as written:
        for site in trace.sites:
            for head in range(site.heads):
                # some rows at a time a processor may add in another order
                expected = whole(trace, site, head)
                room = bounds(trace.at(site, head), head, None, torch.from_numpy(expected))
                off = np.abs(written[f"decoder.{site.layer}"][head] - expected)
                assert (off <= (room.high - room.low).numpy()).all()


@pytest.mark.full
def test_words_are_written_as_the_view_merges_them(tmp_path, monkeypatch):
    """Also of a text so long that rows come some at a time: no word is torn apart."""
    for name, target in (("story-gpt", None), ("en-es", "El gato increíblemente travieso.")):
        trace = run(open_checkpoint(name), "The unbelievably mischievous cat.", target=target)
        for cells in (1, 3 * trace.sites[0].keys, 1 << 22):
            monkeypatch.setattr(export, "_CELLS", cells)
            for path in (tmp_path / "a.npz", tmp_path / "a.safetensors"):
                save_weights(trace, path, words=True)
                saved = load_weights(path)
                assert saved.by_word
                for site in trace.sites:
                    found = saved.weights(site.stack, site.layer)
                    for head in range(site.heads):
                        merged = word_weights(trace, site.ref, head).weights
                        np.testing.assert_allclose(found[head], merged, atol=1e-6)
                        np.testing.assert_allclose(found[head].sum(axis=1), 1.0, atol=1e-6)
                assert [token.continues for token in saved.tokens] == [token.continues for token in trace.tokens]
        with np.load(tmp_path / "a.npz") as written:
            words = written["source_words" if trace.source else "words"].tolist()
            assert [w for w in words if w.isalpha()] == ["The", "unbelievably", "mischievous", "cat"]
            assert written[f"{trace.sites[-1].stack}.0"].shape[1] == len(written["words"])


def test_of_tokens_a_file_says_so(trace, tmp_path):
    save_weights(trace, tmp_path / "a.npz")
    assert not load_weights(tmp_path / "a.npz").by_word
