"""What is said of a checkpoint before it is opened, held against the opened one; and what is refused before it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.files import devices
from attention_models.files.catalogue import SHIPPED
from attention_models.files.memory import in_bytes, text_bytes, weight_bytes
from attention_models.forward.model import Model
from attention_models.opening import open as checkpoints
from attention_models.opening.describe import capabilities, description_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import Described, DescribeRequest, LoadRequest
from attention_models.protocol.values import Placement
from tests.models import tiny_vision
from tests.models.asking import ask, failure_of
from tests.models.opening.damage import change_config, larger_tokenizer, without_tensor
from tests.models.tiny import SENTENCE, TinyFolder, TinyModel

KINDS = [
    *("gpt2", "gpt2_bare", "llama", "llama_bare", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "gpt_neox"),
    *("opt", "gpt_oss", "bert", "bert_pretrained", "bert_decoder", "bert_classifier", "albert", "electra"),
    *("electra_discriminator", "distilbert", "roberta", "xlm_roberta", "modernbert", "bert2bert", "t5", "t5_encoder"),
    *("bloom", "mpt", "gpt_neo", "deberta_v2", "mt5", "bart", "mbart", "marian", "bert_tagger", "bert_bare"),
]


def describe(reference: str | Path) -> Described:
    return description_of(DescribeRequest(reference=str(reference)))


def works(found: Described) -> dict[str, bool]:
    return {capability.name: capability.works for capability in found.capabilities}


@pytest.fixture
def copy(tiny_folder: TinyFolder, tmp_path: Path) -> Callable[[str], Path]:
    return lambda kind: Path(shutil.copytree(tiny_folder(kind), tmp_path / "mi modelo ñ"))


# --------------------------------------------------------------------------- what is said


@pytest.mark.short("gpt2", "gemma2", "bert", "modernbert", "t5", "bart", "bert_tagger")
@pytest.mark.parametrize("kind", KINDS)
def test_as_it_opens(
    kind: str, tiny_folder: TinyFolder, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(kind)
    monkeypatch.setattr(checkpoints, "_weights", None)
    found = describe(tiny_folder(kind))
    assert (found.refusal, found.info) == ("", model.info)
    assert found.text_tokens == model.info.context or (model.info.context is None and found.text_tokens == 512)


@pytest.mark.short("story-gpt", "en-es", "dates-bahdanau", "vit-cifar10")
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped(name: str) -> None:
    found = describe(name)
    assert (found.refusal, found.info) == ("", open_checkpoint(name).info)


@pytest.mark.parametrize("kind", KINDS)
def test_text_takes_what_is_said(kind: str, tiny_model: TinyModel) -> None:
    """q, k, v and the residual stream of a run, counted, for each token."""
    model = tiny_model(kind)
    trace = run(model, SENTENCE, target="Tom" if model.seq2seq else None)
    if model.info.weights_only:
        kept = sum(x.precomputed.numel() for x in trace.inputs if x.precomputed is not None)
        kept += sum(t.numel() for stream in trace.residual.values() for t in stream)
        assert text_bytes(model.info, len(trace.tokens)) == 4 * kept
        return
    numbers = sum(x.query.numel() / x.queries + (x.key.numel() + x.value.numel()) / x.keys for x in trace.inputs)
    numbers += sum(t.numel() / t.shape[0] for stream in trace.residual.values() for t in stream)
    assert text_bytes(model.info, 1) == 4 * numbers
    assert text_bytes(model.info, 100, "bfloat16") == 200 * numbers


def test_weights_take_what_is_said(story_gpt: Model) -> None:
    assert weight_bytes(story_gpt.info) == sum(p.numel() * p.element_size() for p in story_gpt.module.parameters())
    assert dict(describe("story-gpt").weights) == {"float32": 34_187_264, "bfloat16": 17_093_632, "float16": 17_093_632}


def test_what_works() -> None:
    every = ["Attention", "Cell arithmetic", "Next token", "Writing text", "Masks and scale", "Alignment"]
    assert works(describe("story-gpt")) == {**dict.fromkeys(every, True), "Alignment": False}
    assert works(describe("en-es")) == dict.fromkeys([*every, "Pairs of texts"], True)
    assert works(describe("dates-luong")) == {**dict.fromkeys(every, True), "Masks and scale": False}
    bottleneck = works(describe("dates-bottleneck"))
    assert bottleneck == {**dict.fromkeys(every, False), "Next token": True, "Writing text": True}
    assert works(describe("story-bert"))["Filling in masks"]
    assert not works(describe("story-bert"))["Writing text"]


def test_every_refusal_has_its_reason(tiny_model: TinyModel) -> None:
    for kind in KINDS:
        for capability in capabilities(tiny_model(kind).info):
            assert capability.works or capability.why


def test_answered_by_the_engine(tiny_folder: TinyFolder) -> None:
    found = ask(Engine(), DescribeRequest(reference=str(tiny_folder("gpt2"))))
    assert isinstance(found, Described)
    assert found.info is not None
    assert found.free is not None
    assert found.free > 1 << 20
    assert found.where == "CPU"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (34_187_264, "34.2 MB"),
        (538_060_032, "538.1 MB"),
        (1_528_823_808, "1.5 GB"),
        (3 * 10**12, "3.0 TB"),
    ],
)
def test_in_bytes(count: int, words: str) -> None:
    assert in_bytes(count) == words


# --------------------------------------------------------------------------- what is refused


def assert_refused(folder: Path, *words: str, understood: bool = True) -> None:
    """Described and opened with the same sentence, before any weight is read."""
    found = describe(folder)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    assert found.refusal == str(caught.value)
    for word in words:
        assert word in found.refusal
    assert (found.info is not None) == understood


def test_too_large_for_the_memory(
    tiny_folder: TinyFolder, monkeypatch: pytest.MonkeyPatch, tiny_model: TinyModel
) -> None:
    needed = 4 * tiny_model("gpt2").info.parameters
    monkeypatch.setattr(checkpoints, "_weights", None)
    monkeypatch.setattr(devices, "free_memory", lambda _: (needed - 1, needed))
    assert_refused(tiny_folder("gpt2"), "gpt2", in_bytes(needed), "free", "float32", "Close other programs")


def test_too_large_is_answered_with_where_else(tiny_folder: TinyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "free_memory", lambda _: (1000, 2000))
    failure = failure_of(Engine(), LoadRequest(reference=str(tiny_folder("gpt2")), placement=Placement("cpu")))
    assert failure.no_room == Placement("cpu")


def test_just_fits(tiny_folder: TinyFolder, monkeypatch: pytest.MonkeyPatch, tiny_model: TinyModel) -> None:
    needed = 4 * tiny_model("gpt2").info.parameters
    monkeypatch.setattr(devices, "free_memory", lambda _: (needed, needed))
    assert not describe(tiny_folder("gpt2")).refusal


@pytest.mark.parametrize("kind", ["llama", "gpt_neox", "qwen3"])
def test_head_that_is_not_in_the_file(copy: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy(kind)
    name = "embed_out.weight" if kind == "gpt_neox" else "lm_head.weight"
    without_tensor(folder, name)
    monkeypatch.setattr(checkpoints, "_weights", None)
    assert_refused(folder, "mi modelo ñ", "lm_head.weight is not in the file", "at random")


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "distilbert", "marian", "t5"])
def test_layer_that_is_not_in_the_file(copy: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy(kind)
    names = sorted(name for name in load_file(folder / "model.safetensors") if ".1." in name and "weight" in name)
    without_tensor(folder, names[0])
    monkeypatch.setattr(checkpoints, "_weights", None)
    assert_refused(folder, "mi modelo ñ", ".1.", "is not in the file", "at random")


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("bert", "cls."),
        ("roberta", "lm_head."),
        ("distilbert", "vocab_"),
        ("albert", "predictions."),
        ("electra", "generator_"),
        ("modernbert", ("head.", "decoder.")),
    ],
)
def test_masked_model_without_its_head_is_an_encoder(
    copy: Callable[[str], Path], kind: str, head: str | tuple[str, ...]
) -> None:
    folder = copy(kind)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(head)}
    assert len(kept) < len(tensors)
    save_file(kept, path, metadata={"format": "pt"})
    found = describe(folder)
    assert not found.refusal
    assert found.info is not None
    assert found.info.family == "encoder"
    assert not works(found)["Next token"]
    said = next(c for c in found.capabilities if c.name == "Next token").why
    assert "is not in the file" in said
    model = open_checkpoint(folder)
    assert (model.info, model.output_head) == (found.info, None)
    assert len(run(model, SENTENCE).sites) == 3


def test_masked_model_with_half_its_head(copy: Callable[[str], Path]) -> None:
    folder = copy("bert")
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["cls.predictions.transform.dense.bias"]
    save_file(tensors, path, metadata={"format": "pt"})
    found = describe(folder)
    assert found.info is not None
    assert found.info.family == "encoder"  # what is left of it would say words by numbers made up at random


def test_names_of_2018(copy: Callable[[str], Path]) -> None:
    folder = copy("bert")
    path = folder / "model.safetensors"
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {}
    for name, tensor in load_file(path).items():
        for new, before in old.items():
            name = name.replace(new, before)
        tensors[name] = tensor
    save_file(tensors, path, metadata={"format": "pt"})
    found = describe(folder)
    assert not found.refusal
    assert found.info is not None
    assert found.info.family == "masked"
    assert open_checkpoint(folder).info == found.info


def test_packed_weights(copy: Callable[[str], Path]) -> None:
    folder = copy("gpt2")
    change_config(folder, quantization_config={"quant_method": "gptq", "bits": 4})
    assert_refused(folder, "mi modelo ñ", "packed", "GGUF", understood=False)


def test_tokenizer_of_another_model(copy: Callable[[str], Path]) -> None:
    folder = copy("gpt2")
    larger_tokenizer(folder)
    assert_refused(folder, "335 tokens", "only 330")


def test_no_tokenizer(copy: Callable[[str], Path]) -> None:
    folder = copy("gpt2")
    (folder / "tokenizer.json").unlink()
    assert_refused(folder, "mi modelo ñ", "no tokenizer", "Add the file")


@pytest.mark.parametrize(
    "change", [{"n_layer": 4}, {"n_layer": 10**9}, {"model_type": "gpt99"}, {"auto_map": {"AutoModel": "evil.M"}}]
)
def test_config_that_lies(copy: Callable[[str], Path], change: dict[str, Any]) -> None:
    folder = copy("gpt2")
    change_config(folder, **change)
    assert_refused(folder, "mi modelo ñ", understood=change == {"n_layer": 4})


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("gpt2", {"n_embd": 64}, "should be"),
        ("gpt2", {"n_positions": 99}, "1 tensor has another shape"),
        ("llama", {"num_key_value_heads": 4}, "k_proj"),
        ("llama", {"intermediate_size": 50}, "mlp"),
        ("bert", {"intermediate_size": 50}, "dense"),
        ("bart", {"max_position_embeddings": 65}, "embed_positions"),
    ],
)
def test_config_that_lies_about_shapes(
    copy: Callable[[str], Path], kind: str, change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(kind)
    change_config(folder, **change)
    monkeypatch.setattr(checkpoints, "_weights", None)  # it is seen from the headers
    assert_refused(folder, "mi modelo ñ", "another shape", said, "belong together")


def test_a_vision_model() -> None:
    found = describe("vit-cifar10")
    assert found.refusal == ""
    assert found.text_bytes == 0
    assert works(found) == {
        "Attention": True,
        "Cell arithmetic": True,
        "Naming what it sees": True,
        "Writing text": False,
        "Masks and scale": True,
        "Alignment": False,
    }


def test_a_vision_model_that_can_not_be_shown_a_picture(tmp_path: Path) -> None:
    folder = tiny_vision.save("vit_bare", tmp_path / "mine")
    assert works(describe(str(folder)))["Naming what it sees"] is False
    (folder / "preprocessor_config.json").unlink()
    assert "preprocessor_config.json" in describe(str(folder)).refusal


def test_nothing_there(tmp_path: Path) -> None:
    assert_refused(tmp_path / "none", "neither a shipped one nor a folder", understood=False)
