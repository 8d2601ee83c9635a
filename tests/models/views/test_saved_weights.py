"""What leaves the program says what it is: written, read back, and held against the run and the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attention_models as models
from attention_models import load_weights, open_checkpoint, run, save_weights
from attention_models.files import fingerprint
from attention_models.files.catalogue import folder_of
from attention_models.files.weights_path import weights_path
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.interventions import Mask, Positions, Scale
from attention_models.protocol.values import CheckpointInfo, SiteRef
from tests.models.talking import save_talking

TEXT = "Tom and Ánna went to the park. 🙂"
ENDINGS = ["npz", "safetensors"]
EDITS = (
    Scale(0.5, site=SiteRef("decoder", 1), head=3),
    Mask("window", window=4),
    Mask("painted", cells=((5, 2, False), (6, 1, False)), head=2),
    Positions("shift", 3),
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_comes_back_as_it_was(story_gpt: Model, tmp_path: Path, ending: str) -> None:
    trace = run(story_gpt, TEXT, interventions=EDITS)
    path = tmp_path / f"a.{ending}"
    assert save_weights(trace, path) == path.stat().st_size
    saved = load_weights(path)
    assert saved.tokens == trace.tokens
    assert saved.source == ()
    assert saved.ids == tuple(token.id for token in trace.tokens)
    assert saved.text == TEXT
    assert [TEXT[token.start : token.end] for token in saved.tokens] == [token.text for token in saved.tokens]
    assert saved.interventions == trace.interventions == EDITS
    assert list(saved.sites) == [f"decoder.{layer}" for layer in range(8)]
    for site in trace.sites:
        weights = saved.weights(site.stack, site.layer)
        assert weights.dtype == np.float32
        assert weights.shape == (site.heads, site.queries, site.keys)
        for head in range(site.heads):
            np.testing.assert_array_equal(weights[head], trace.weights(site, head))
    # another run of what the file names gives the file's numbers
    again = run(open_checkpoint(saved.meta["checkpoint"]["reference"]), saved.text, interventions=saved.interventions)
    np.testing.assert_array_equal(saved.weights("decoder", 7)[0], again.weights(("decoder", 7), 0))
    with pytest.raises(KeyError, match=r"no encoder\.0; it has decoder\.0"):
        saved.weights("encoder", 0)


def test_it_names_the_checkpoint_by_its_content(story_gpt: Model, tmp_path: Path) -> None:
    save_weights(run(story_gpt, "Tom"), tmp_path / "a.npz")
    meta = load_weights(tmp_path / "a.npz").meta
    assert meta["format"] == 1
    file = folder_of("story-gpt") / "model.safetensors"
    assert meta["checkpoint"] == {
        "reference": "story-gpt",
        "name": "story-gpt",
        "model_type": "gpt2",
        "architecture": "GPT2LMHeadModel",
        "family": "causal",
        "adapter": None,
        "revision": None,
        "sha256": {"model.safetensors": hashlib.sha256(file.read_bytes()).hexdigest()},
    }
    assert (meta["device"], meta["dtype"]) == ("cpu", "float32")
    for name in ("torch", "transformers", "tokenizers", "numpy"):
        assert meta["versions"][name] == __import__(name).__version__
    assert meta["generated"] is None


def test_the_arrays_are_plain_for_other_programs(story_gpt: Model, tmp_path: Path) -> None:
    trace = run(story_gpt, TEXT)
    save_weights(trace, tmp_path / "a.npz")
    save_weights(trace, tmp_path / "a.safetensors")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as written:
        meta = json.loads(written["meta"].item())
        assert [token["piece"] for token in meta["tokens"]] == written["tokens"].tolist()
        twin = load_file(tmp_path / "a.safetensors")  # safetensors' own reader
        assert set(twin) == set(written) - {"meta", "tokens"}
        for name, array in twin.items():
            np.testing.assert_array_equal(array, written[name])


def test_an_encoder_decoder_model(en_es: Model, tmp_path: Path) -> None:
    trace = run(en_es, "The cat.", target="El gato.")
    save_weights(trace, tmp_path / "a.safetensors")
    saved = load_weights(tmp_path / "a.safetensors")
    assert (saved.tokens, saved.source) == (trace.tokens, trace.source)
    assert saved.meta["input"]["target"] == "El gato."
    np.testing.assert_array_equal(saved.weights("cross", 3)[2], trace.weights(("cross", 3), 2))


def test_segments_of_an_encoder_that_knows_some(story_bert: Model, tmp_path: Path) -> None:
    trace = run(story_bert, "Tom [MASK] to the park.")
    save_weights(trace, tmp_path / "a.npz")
    saved = load_weights(tmp_path / "a.npz")
    assert saved.segment_ids == (0,) * len(trace.tokens)
    assert [token.special for token in saved.tokens] == [token.special for token in trace.tokens]


def test_a_conversation_keeps_its_turns(tmp_path: Path) -> None:
    model = open_checkpoint(save_talking("chatml", tmp_path / "talking"))
    turns = [{"role": "user", "content": "Tom went home."}]
    trace = run(model, turns)
    save_weights(trace, tmp_path / "a.npz")
    saved = load_weights(tmp_path / "a.npz")
    assert saved.meta["input"]["turns"] == [{"role": "user", "text": "Tom went home."}]
    assert saved.text == model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert "".join(token.text for token in saved.tokens) == saved.text
    assert saved.tokens == trace.tokens  # with whose words they are


def test_ids_and_a_picture(story_gpt: Model, tmp_path: Path) -> None:
    save_weights(run(story_gpt, [5, 6, 7]), tmp_path / "a.npz")
    assert load_weights(tmp_path / "a.npz").ids == (5, 6, 7)
    assert load_weights(tmp_path / "a.npz").text is None
    save_weights(run(open_checkpoint("vit-cifar10"), "sample:coffee"), tmp_path / "b.npz")
    given = load_weights(tmp_path / "b.npz").meta["input"]
    assert (given["text"], given["picture"]) == (None, "sample:coffee")
    assert given["changes"] == ["320 × 320 scaled to 32 × 32"]


def test_a_commit_of_a_hub_is_its_revision(tmp_path: Path) -> None:
    commit, blob = "0123456789abcdef" * 2 + "01234567", "ab" * 32
    folder = tmp_path / "models--owner--name" / "snapshots" / commit
    folder.mkdir(parents=True)
    content = tmp_path / "models--owner--name" / "blobs" / blob
    content.parent.mkdir()
    content.write_bytes(b"not read: the cache names it by its hash")
    (folder / "model.safetensors").symlink_to(content)
    info = CheckpointInfo("hf://owner/name", "name", str(folder), "causal", "gpt2", "", (), 0, None, 0, 0, 0)
    assert fingerprint.revision_of(info) == commit
    assert fingerprint.content_hash(info) == {"model.safetensors": blob}


def test_a_changed_file_has_another_hash(tmp_path: Path) -> None:
    info = CheckpointInfo("x", "x", str(tmp_path), "causal", "gpt2", "", (), 0, None, 0, 0, 0)
    for content in (b"one", b"three"):
        (tmp_path / "model.safetensors").write_bytes(content)
        assert fingerprint.content_hash(info) == {"model.safetensors": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("out.npz", "out.npz"),
        ("out.NPZ", "out.NPZ"),
        ("out", "out.npz"),
        ("out.np", "out.npz"),
        ("out.npy", "out.npz"),
        ("run.v2", "run.v2.npz"),
        ("out.safetensor", "out.safetensors"),
        ("out.safetensors", "out.safetensors"),
    ],
)
def test_endings_typed_wrongly_are_mended(story_gpt: Model, tmp_path: Path, typed: str, written: str) -> None:
    assert weights_path(tmp_path / typed) == tmp_path / written
    save_weights(run(story_gpt, "Tom"), tmp_path / typed)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [written]
    assert load_weights(tmp_path / written).text == "Tom"


@pytest.mark.parametrize("typed", ["out.csv", "out.pt", "out.json"])
def test_another_kind_of_file_is_refused(story_gpt: Model, tmp_path: Path, typed: str) -> None:
    with pytest.raises(ExplorerError, match=r"\.npz or \.safetensors, not as “\.\w+”"):
        save_weights(run(story_gpt, "Tom"), tmp_path / typed)
    assert list(tmp_path.glob("out*")) == []


def test_a_file_of_anybody_is_not_trusted(story_gpt: Model, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(ExplorerError, match="There is no file"):
        load_weights(path)
    for content in (b"", b"PK\x03\x04", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(ExplorerError, match=r"a\.npz does not hold weights that this program wrote"):
            load_weights(path)
    np.savez(path, tokens=np.array(["a"]))
    with pytest.raises(ExplorerError, match="does not hold weights"):
        load_weights(path)
    np.savez(path, meta=np.array({"format": 1}, dtype=object))  # a pickle
    with pytest.raises(ExplorerError, match="does not hold weights"):
        load_weights(path)
    np.savez(path, meta=np.array(json.dumps({"format": 2})))
    with pytest.raises(ExplorerError, match="format 2, which is newer"):
        load_weights(path)
    save_file({"decoder.0": np.zeros((1, 1, 1), np.float32)}, tmp_path / "b.safetensors")
    with pytest.raises(ExplorerError, match="does not hold weights"):
        load_weights(tmp_path / "b.safetensors")


def test_an_array_that_is_not_as_described_is_said(story_gpt: Model, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_weights(run(story_gpt, "Tom went"), path)
    with np.load(path) as written:
        arrays = dict(written)
    arrays["decoder.0"] = arrays["decoder.0"][:, :1]
    np.savez(path, **arrays)
    saved = load_weights(path)
    with pytest.raises(ExplorerError, match=r"damaged: decoder\.0"):
        saved.weights("decoder", 0)


def test_the_names_are_the_packages_own() -> None:
    assert models.load_weights is load_weights
    assert models.save_weights is save_weights
