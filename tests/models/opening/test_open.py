"""What opens, and a sentence for everything that does not; a checkpoint that fails to open changes nothing."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, GPT2LMHeadModel

from models import open_checkpoint, run
from models.engine.engine import Engine
from models.files.catalogue import SHIPPED, WEIGHTS, read_card, shipped
from models.files.sample_pictures import default_picture
from models.files.weight_files import wrong_count
from models.opening import examine as examining
from models.opening import open as checkpoints
from models.opening.examine import examine
from models.opening.open import describe
from models.protocol.errors import CheckpointError, InputError
from models.protocol.head import HeadRequest, HeadView
from models.protocol.loading import Loaded, LoadRequest
from models.protocol.request import Failure
from models.protocol.running import ForwardRequest, Ran
from models.protocol.values import SiteRef, StackInfo
from tests.models.asking import never, silent

TinyFolder = Callable[[str], Path]
Break = Callable[[Path], Any]

NAME = "mi modelo ñandú 模型"  # every sentence has to name it


@pytest.fixture
def folder(tiny_folder: TinyFolder, tmp_path: Path) -> Path:
    """A sound checkpoint of one's own, to break."""
    return Path(shutil.copytree(tiny_folder("gpt2"), tmp_path / NAME))


@pytest.fixture(scope="module")
def engine(tiny_folder: TinyFolder) -> Engine:
    """An engine with a checkpoint open and a run held."""
    engine = Engine()
    assert isinstance(engine.run(LoadRequest(reference=str(tiny_folder("llama"))), never, silent), Loaded)
    assert isinstance(engine.run(ForwardRequest(ticket=5, text="Tom and Anna"), never, silent), Ran)
    return engine


def assert_refused(engine: Engine, reference: str, *words: str) -> None:
    """`reference` is refused with a sentence holding `words`, and the engine goes on with what it has."""
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(reference)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 600
    failure = engine.run(LoadRequest(ticket=9, reference=reference), never, silent)
    assert isinstance(failure, Failure)
    assert failure.sentence == sentence
    # the log gets what lies behind it, where anything does
    assert ("Traceback" in failure.cause) == (caught.value.__cause__ is not None)
    view = engine.run(HeadRequest(run=5, site=SiteRef("decoder", 1), head=2), never, silent)
    assert isinstance(view, HeadView)


# --------------------------------------------------------------------------- what opens


def test_an_adapter_beside_whole_weights_is_not_put_on_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers does where peft is installed, of a file that nobody looked into."""
    expected = run(open_checkpoint(folder), "a b").logits
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "/else"}))
    for module in ("transformers.models.auto.auto_factory", "transformers.integrations.peft"):
        monkeypatch.setattr(f"{module}.is_peft_available", lambda: True)
    np.testing.assert_array_equal(run(open_checkpoint(folder), "a b").logits, expected)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped(name: str) -> None:
    model = open_checkpoint(name)
    assert model.info.shipped
    assert model.info.name == name
    assert model.dtype == torch.float32
    assert model.device.type == "cpu"
    assert not any(module.training for module in model.module.modules())
    assert not any(parameter.requires_grad for parameter in model.module.parameters())
    given = default_picture(model.info.channels) if model.info.family == "vision" else model.info.example
    assert len(run(model, given).sites) == sum(stack.layers for stack in model.info.stacks)


def test_described_without_reading_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_weights", None)
    info = describe("story-gpt")
    assert info.family == "causal"
    assert info.model_type == "gpt2"
    assert info.architecture == "GPT2LMHeadModel"
    assert info.stacks == (StackInfo("decoder", 8, 8, 8),)
    assert (info.width, info.context, info.vocabulary) == (256, 512, 8192)
    assert info.prefix == "<|endoftext|>"
    assert info.file_bytes == (WEIGHTS / "story-gpt" / "model.safetensors").stat().st_size


def test_parameters_are_counted(story_gpt: Any) -> None:
    assert story_gpt.info.parameters == sum(p.numel() for p in story_gpt.module.parameters())


def test_folder_with_spaces_and_other_letters(folder: Path) -> None:
    model = open_checkpoint(folder)
    assert model.info.name == NAME
    assert not model.info.shipped
    assert len(run(model, "Tom and Anna").sites) == 3


def test_relative_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert open_checkpoint(NAME).info.stacks == (StackInfo("decoder", 3, 4, 4),)


def test_shards(folder: Path) -> None:
    shard(folder)
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    model = open_checkpoint(folder)
    assert model.info.parameters == sum(p.numel() for p in model.module.parameters())
    assert len(run(model, "Tom and Anna").sites) == 3


def test_half_precision_is_opened_in_float32(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file({name: t.half() for name, t in load_file(path).items()}, path, metadata={"format": "pt"})
    change_config(folder, dtype="float16")
    assert open_checkpoint(folder).dtype == torch.float32


def test_safetensors_beside_a_pickle(folder: Path, tmp_path: Path) -> None:
    plant_bomb(folder / "pytorch_model.bin", tmp_path / "loaded")
    assert len(run(open_checkpoint(folder), "Tom").sites) == 3
    assert not (tmp_path / "loaded").exists()


def test_card_of_a_folder(folder: Path) -> None:
    (folder / "explorer.json").write_text(json.dumps({"title": "Mine", "example": "Tom", "prefix": 5, "other": 1}))
    info = open_checkpoint(folder).info
    assert (info.name, info.example, info.prefix) == ("Mine", "Tom", "")


@pytest.mark.parametrize(
    ("reads", "known"),
    [("en", "en"), ("deu", "deu"), ("English", ""), ("EN", ""), ("e", ""), ("en\n", ""), (5, ""), (None, ""), ([], "")],
)
def test_a_card_says_which_language_is_read(folder: Path, reads: object, known: str) -> None:
    (folder / "explorer.json").write_text(json.dumps({"title": "Mine", "reads": reads}))
    assert open_checkpoint(folder).info.reads == known
    assert read_card(folder).title == "Mine"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"5", b"\xff\xfe", b"[" * 60_000, b'{"title": "' + b"x" * 70_000 + b'"}']
)
def test_card_is_a_courtesy(folder: Path, content: bytes) -> None:
    (folder / "explorer.json").write_bytes(content)
    assert read_card(folder).title == NAME


def test_cards_of_the_shipped() -> None:
    for card in shipped():
        assert card.folder.is_dir()
        assert card.summary
        assert card.example or card.name.startswith("vit-")


# --------------------------------------------------------------------------- ways to break a folder


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def shard(folder: Path) -> None:
    model = GPT2LMHeadModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")


def raw_header(folder: Path, header: bytes, length: int | None = None) -> None:
    start = struct.pack("<Q", len(header) if length is None else length)
    (folder / "model.safetensors").write_bytes(start + header)


def header_and_body(folder: Path, *entries: dict[str, Any], size: int = 4) -> None:
    """A file that is as long as its header says, so that nothing but its entries speaks against it."""
    tensors = {f"t{i}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **e} for i, e in enumerate(entries)}
    raw_header(folder, json.dumps(tensors).encode())
    with (folder / "model.safetensors").open("ab") as file:
        file.write(bytes(size))


def header_of(folder: Path, **entry: Any) -> None:
    tensor = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **entry}
    raw_header(folder, json.dumps({"a": tensor}).encode())


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def plant_bomb(path: Path, marker: Path) -> None:
    data = pickle.dumps(Bomb(marker))
    pickle.loads(data)
    marker.rmdir()  # it does go off
    path.write_bytes(data)


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def cut_short(path: Path, count: int = 100) -> None:
    path.write_bytes(path.read_bytes()[:-count])


def without_tensor(folder: Path, name: str) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors[name]
    save_file(tensors, path, metadata={"format": "pt"})


def shard_missing(folder: Path) -> None:
    shard(folder)
    sorted(folder.glob("model-*.safetensors"))[1].unlink()


def index_of(folder: Path, content: Any) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))


def index_without_metadata(folder: Path) -> None:
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict.fromkeys(names, "a.safetensors")})
    )


def enlarge(path: Path, megabytes: int = 16) -> None:
    with path.open("r+b") as file:
        file.truncate((megabytes << 20) + 1)


def written(path: Path) -> Path:
    """An empty file at `path`, in place of what was there."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    return path


def larger_tokenizer(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([f"new{i}" for i in range(5)])
    tokenizer.save_pretrained(folder)


def with_nan(folder: Path, name: str) -> None:
    with_value(folder, name, float("nan"), slice(3, 4))


def with_value(folder: Path, name: str, value: float, where: slice = slice(None)) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors[name].view(-1)[where] = value
    save_file(tensors, path, metadata={"format": "pt"})


def change_tokenizer(folder: Path, **changes: Any) -> None:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
    """A normalizer of a tokenizer."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def later_ids(folder: Path) -> None:
    """The same pieces, some of them under ids that the model has no vectors for."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {piece: id_ if id_ < 300 else id_ + 700 for piece, id_ in vocabulary.items()}
    path.write_text(json.dumps(tokenizer))


BROKEN: dict[str, tuple[Break, tuple[str, ...]]] = {
    "empty folder": (empty, (NAME, "no config.json", "Choose the folder")),
    "no config": (lambda f: (f / "config.json").unlink(), (NAME, "no config.json", "Choose the folder")),
    "config no JSON": (lambda f: (f / "config.json").write_text("{not"), (NAME, "config.json", "JSON", "Fetch")),
    "config no text": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\0"), (NAME, "config.json", "Fetch")),
    "config a list": (lambda f: (f / "config.json").write_text("[1]"), (NAME, "config.json", "no table", "Fetch")),
    "config deep": (lambda f: (f / "config.json").write_text("[" * 99_999), (NAME, "config.json", "Fetch")),
    "config huge": (lambda f: enlarge(f / "config.json"), (NAME, "config.json", "larger than 16 MB", "not read")),
    "model type unknown": (lambda f: change_config(f, model_type="gpt99"), (NAME, "gpt99", "update transformers")),
    "model type no text": (lambda f: change_config(f, model_type=["gpt2"]), (NAME, "model type", "Check")),
    "code": (lambda f: change_config(f, auto_map={"AutoModel": "evil.M"}), (NAME, "never run", "use a checkpoint")),
    "layers no number": (lambda f: change_config(f, n_layer="eight"), (NAME, "config.json", "n_layer")),
    "layers many": (lambda f: change_config(f, n_layer=10**9), (NAME, "1,000,000,000 layers", "belong together")),
    "layers negative": (lambda f: change_config(f, n_layer=-5), (NAME, "n_layer is -5", "above 0", "Correct it")),
    "layers none": (lambda f: change_config(f, n_layer=0), (NAME, "n_layer is 0", "above 0", "Correct it")),
    "layers a yes": (lambda f: change_config(f, n_layer=True), (NAME, "n_layer is true", "above 0")),
    "heads none": (lambda f: change_config(f, n_head=0), (NAME, "n_head is 0", "above 0")),
    "heads in words": (lambda f: change_config(f, n_head="4"), (NAME, 'n_head is "4"', "above 0")),
    "heads a half": (lambda f: change_config(f, n_head=2.5), (NAME, "n_head is 2.5", "above 0")),
    "positions in words": (
        lambda f: change_config(f, n_positions="9"),
        (NAME, "'n_positions' expected int", "Correct"),
    ),
    "activation unknown": (lambda f: change_config(f, activation_function="x"), (NAME, "there is no 'x'", "fetch it")),
    "pair that is none": (
        lambda f: change_config(f, is_encoder_decoder=True),
        (NAME, "is_encoder_decoder", "no gpt2 of both", "Open a model of text"),
    ),
    "layers too few": (lambda f: change_config(f, n_layer=2), (NAME, "more layers", "h.2.", "belong together")),
    "layers too many": (lambda f: change_config(f, n_layer=4), (NAME, "not in its files", "h.3.", "not opened")),
    "width large": (lambda f: change_config(f, n_embd=10**6), (NAME, "parameters", "belong together")),
    "width beyond counting": (lambda f: change_config(f, n_embd=10**9), (NAME, "config.json")),
    "width other": (lambda f: change_config(f, n_embd=64), (NAME, "another shape", "should be", "belong together")),
    "positions other": (lambda f: change_config(f, n_positions=99), (NAME, "(64, 32)", "should be (99, 32)")),
    "vocabulary large": (lambda f: change_config(f, vocab_size=10**12), (NAME, "parameters", "belong together")),
    "heads do not divide": (lambda f: change_config(f, n_head=5), (NAME, "config.json", "num_heads")),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), (NAME, "no model.safetensors", "Fetch")),
    "weights empty": (lambda f: (f / "model.safetensors").write_bytes(b""), (NAME, "model.safetensors", "Fetch")),
    "weights cut short": (lambda f: cut_short(f / "model.safetensors"), (NAME, "not fetched whole", "Fetch it again")),
    "header cut short": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:50]),
        (NAME, "no complete header", "Fetch it again"),
    ),
    "header length huge": (lambda f: raw_header(f, b"{}", 1 << 62), (NAME, "no complete header", "Fetch it again")),
    "header garbage": (lambda f: raw_header(f, b"\x93\xff garbage"), (NAME, "header", "Fetch it again")),
    "header a list": (lambda f: raw_header(f, b"[]"), (NAME, "header", "Fetch it again")),
    "header deep": (lambda f: raw_header(f, b"[" * 99_999), (NAME, "header", "Fetch it again")),
    "header entries numbers": (lambda f: raw_header(f, b'{"a": 5}'), (NAME, "header", "Fetch it again")),
    "header without tensors": (lambda f: raw_header(f, b"{}"), (NAME, "0 tensors", "belong together")),
    "shape endless": (
        lambda f: raw_header(f, b'{"a": {"shape": [1e999], "data_offsets": [0, 0]}}'),
        (NAME, "header", "Fetch it again"),
    ),
    "shape absent": (lambda f: header_of(f, shape=None), (NAME, "header", "Fetch it again")),
    "offsets one": (lambda f: header_of(f, data_offsets=[0]), (NAME, "header", "Fetch it again")),
    "offsets words": (lambda f: header_of(f, data_offsets=["0", "x"]), (NAME, "header", "Fetch it again")),
    "offsets beyond": (
        lambda f: header_of(f, data_offsets=[0, 4 * 10**15], shape=[10**15]),
        (NAME, "describes", "Fetch it again"),
    ),
    "offsets negative": (lambda f: header_of(f, data_offsets=[-4, 0]), (NAME, "header", "Fetch it again")),
    "offsets shorter than the shape": (
        lambda f: header_and_body(f, {"shape": [3]}),
        (NAME, "header", "Fetch it again"),
    ),
    "offsets with a gap": (
        lambda f: header_and_body(f, {"data_offsets": [4, 8]}, size=8),
        (NAME, "header", "Fetch it again"),
    ),
    "shape negative": (lambda f: header_and_body(f, {"shape": [-1, -1]}), (NAME, "header", "Fetch it again")),
    "numbers of no kind": (lambda f: header_and_body(f, {"dtype": "EVIL"}), (NAME, "header", "Fetch it again")),
    "tensors on top of each other": (lambda f: header_and_body(f, {}, {}), (NAME, "header", "Fetch it again")),
    "tensor missing": (
        lambda f: without_tensor(f, "transformer.h.1.attn.c_attn.weight"),
        (NAME, "transformer.h.1.attn.c_attn.weight", "at random", "not opened"),
    ),
    "weights no numbers": (
        lambda f: with_nan(f, "transformer.h.1.attn.c_attn.weight"),
        (NAME, "1 of its tensors", "no numbers", "transformer.h.1.attn.c_attn.weight in layer 1", "not opened"),
    ),
    "embedding no numbers": (lambda f: with_nan(f, "transformer.wte.weight"), (NAME, "transformer.wte.weight first")),
    "adapter": (
        lambda f: (f / "config.json").rename(f / "adapter_config.json"),
        (NAME, "adapter", "put on another model", "merge_and_unload"),
    ),
    "shard missing": (shard_missing, (NAME, "1 of its", "model-00002-of", "Fetch them again")),
    "index outside": (
        lambda f: index_of(f, {"weight_map": {"a": "../other.safetensors"}}),
        (NAME, "points outside", "../other.safetensors", "not followed"),
    ),
    "index absolute": (
        lambda f: index_of(f, {"weight_map": {"a": "/etc/passwd"}}),
        (NAME, "points outside", "/etc/passwd", "not followed"),
    ),
    "index of numbers": (lambda f: index_of(f, {"weight_map": {"a": 5}}), (NAME, "no weight files", "Fetch it")),
    "index of a name too long": (lambda f: index_of(f, {"weight_map": {"a": "x" * 9999}}), (NAME, "damaged", "Fetch")),
    "index of a name with a zero": (lambda f: index_of(f, {"weight_map": {"a": "x\0y"}}), (NAME, "damaged", "Fetch")),
    "index of the folder above": (lambda f: index_of(f, {"weight_map": {"a": ".."}}), (NAME, "points outside")),
    "index without metadata": (index_without_metadata, (NAME, "damaged", "Fetch it again")),
    "index without map": (lambda f: index_of(f, {}), (NAME, "no weight files", "Fetch it")),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), (NAME, "no tokenizer", "Add the file")),
    "tokenizer no JSON": (lambda f: (f / "tokenizer.json").write_text("{"), (NAME, "tokenizer", "Fetch it again")),
    "tokenizer empty": (lambda f: (f / "tokenizer.json").write_text("{}"), (NAME, "tokenizer", "Fetch it again")),
    "tokenizer cut short": (lambda f: cut_short(f / "tokenizer.json"), (NAME, "tokenizer", "Fetch it again")),
    "tokenizer huge": (lambda f: enlarge(f / "tokenizer.json", 64), (NAME, "larger than 64 MB", "Fetch it again")),
    "settings of the tokenizer huge": (
        lambda f: enlarge(f / "tokenizer_config.json"),
        (NAME, "tokenizer_config.json", "larger than 16 MB"),
    ),
    "settings of writing huge": (
        lambda f: enlarge(written(f / "generation_config.json")),
        (NAME, "generation_config.json", "larger than 16 MB"),
    ),
    "one of several templates huge": (
        lambda f: enlarge(written(f / "additional_chat_templates" / "tools.jinja")),
        (NAME, "tools.jinja", "larger than 16 MB"),
    ),
    "tokenizer's settings a list": (
        lambda f: (f / "tokenizer_config.json").write_text("[]"),
        (NAME, "tokenizer", "not built as it should be", "Fetch it again"),
    ),
    "overflow": (
        lambda f: with_value(f, "transformer.h.1.attn.c_attn.weight", 3e38),
        (NAME, "first run", "no numbers", "Fetch it again"),
    ),
    "tokenizer that grows": (
        lambda f: change_tokenizer(
            f, normalizer={"type": "Sequence", "normalizers": [replacing({"String": "a"}, "a" * 1000)] * 3}
        ),
        (NAME, "1,000,000,000 characters of one", "Fetch it again"),
    ),
    "tokenizer that grows from nothing": (
        lambda f: change_tokenizer(f, normalizer=replacing({"Regex": "x*"}, "a" * 1000)),
        (NAME, "1,001 characters of one", "Fetch it again"),
    ),
    "tokenizer that writes what it did not read": (
        lambda f: change_tokenizer(f, decoder=replacing({"String": "ab"}, "a" * 2002)),
        (NAME, "1,001 characters of one", "Fetch it again"),
    ),
    "tokenizer of later ids": (later_ids, (NAME, "a token 1,0", "only 330 tokens", "belong together")),
    "labels without end": (lambda f: change_config(f, num_labels=10**9), (NAME, "num_labels is 1,000,000,000")),
    "labels without end, of a part": (
        lambda f: change_config(f, vision_config={"num_labels": 10**9}),
        (NAME, "num_labels is 1,000,000,000"),
    ),
    "header too large": (
        lambda f: raw_header(f, b" " * ((16 << 20) + 1)),
        (NAME, "larger than 16 MB", "Fetch it again"),
    ),
    "tokenizer too large": (larger_tokenizer, (NAME, "335 tokens", "only 330", "belong together")),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_folder(engine: Engine, folder: Path, name: str) -> None:
    damage, words = BROKEN[name]
    damage(folder)
    assert_refused(engine, str(folder), *words)


def test_values_that_float16_has_no_room_for_are_no_damage(folder: Path) -> None:
    name = "transformer.h.1.mlp.c_fc.weight"
    with_value(folder, name, 1e6, slice(3, 4))
    with pytest.raises(CheckpointError) as refused:
        open_checkpoint(folder, dtype="float16")
    for words in (NAME, "does not fit into float16", "1 of its tensors", f"{name} in layer 1", "Choose bfloat16"):
        assert words in str(refused.value)
    assert "broken" not in str(refused.value)
    assert open_checkpoint(folder, dtype="bfloat16").info.stacks
    with_nan(folder, name)
    with pytest.raises(CheckpointError, match="is broken"):
        open_checkpoint(folder, dtype="float16")


@pytest.mark.parametrize("architectures", ["GPT2LMHeadModel", {"a": 1}, 5, [], [None], None])
def test_architecture_that_is_not_named(folder: Path, architectures: Any) -> None:
    change_config(folder, architectures=architectures)
    assert describe(str(folder)).architecture == "GPT2"


@pytest.mark.parametrize("reference", ["", "no such folder", "nowhere/at all", "~nobody-at-home/x", "x" * 5000, "a\0b"])
def test_no_such_folder(engine: Engine, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        open_checkpoint(reference)
    failure = engine.run(LoadRequest(reference=reference), never, silent)
    assert isinstance(failure, Failure)


def test_file_in_place_of_a_folder(engine: Engine, folder: Path) -> None:
    assert_refused(engine, str(folder / "config.json"), "neither a shipped one nor a folder", "Choose a folder")


def test_attention_that_can_not_be_seen(engine: Engine, tiny_folder: TinyFolder) -> None:
    assert_refused(engine, str(tiny_folder("longformer")), "longformer", "nothing to show", "another family")


@pytest.mark.parametrize("pickle_name", ["pytorch_model.bin", "model.pt", "weights.ckpt"])
def test_pickle_is_never_loaded(engine: Engine, folder: Path, tmp_path: Path, pickle_name: str) -> None:
    (folder / "model.safetensors").unlink()
    plant_bomb(folder / pickle_name, tmp_path / "loaded")
    assert_refused(engine, str(folder), NAME, pickle_name, "any program", "Convert it")
    assert not (tmp_path / "loaded").exists()


def test_pickle_named_as_weights_is_never_loaded(engine: Engine, folder: Path, tmp_path: Path) -> None:
    plant_bomb(folder / "model.safetensors", tmp_path / "loaded")
    assert_refused(engine, str(folder), NAME, "Fetch it again")
    assert not (tmp_path / "loaded").exists()


def test_code_beside_a_tokenizer_is_never_run(folder: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (folder / "evil.py").write_text(f"import os\nos.mkdir({str(marker)!r})\nclass T: pass\n")
    path = folder / "tokenizer_config.json"
    names = {"auto_map": {"AutoTokenizer": ["evil.T", "evil.T"]}, "tokenizer_class": "T"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **names}))
    assert len(open_checkpoint(folder).tokenize("Tom and Anna")) > 2
    assert not marker.exists()


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "experts_implementation"])
def test_kernels_that_a_config_names_are_never_fetched(folder: Path, name: str) -> None:
    change_config(folder, **{name: "someone/kernel"})
    config = examine(str(folder)).config
    assert "someone/kernel" not in (config._attn_implementation, config._experts_implementation)
    open_checkpoint(folder)


def test_a_tokenizer_that_is_code(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("llama"), tmp_path / "code"))
    settings = {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.X", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(
        CheckpointError, match=r"code has a tokenizer that is program code, which is never run here. Save"
    ):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    "config",
    [
        {"num_local_experts": 0, "head_dim": None},  # Granite without experts
        {"num_key_value_heads": [4, 0, 2], "num_attention_heads": [8, None, 8]},  # one for each layer
        {"vision_config": {"num_heads": [3, 6], "vocab_size": 0}, "decoder_layers": 0},
    ],
)
def test_counts_that_real_configs_have(config: dict[str, Any]) -> None:
    assert wrong_count(config) == ""


def test_a_count_of_a_half_is_looked_at() -> None:
    assert wrong_count({"text_config": {"num_attention_heads": -4}}).startswith("num_attention_heads is -4 and")


def test_a_card_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "explorer.json")
    assert describe(str(folder)).example == ""


def test_a_folder_that_vanishes_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def vanish(path: Path) -> None:
        shutil.rmtree(path)
        next(path.iterdir())

    monkeypatch.setattr(examining, "read_headers", vanish)
    with pytest.raises(CheckpointError, match=r"cannot be read \(No such file or directory\). Check that it is still"):
        open_checkpoint(folder)


@pytest.mark.parametrize("changes", [{"n_layer": 10**9}, {"n_embd": 10**6}, {"vocab_size": 10**12}, {"n_inner": 10**8}])
def test_lie_is_found_before_memory_is_taken(
    folder: Path, changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_weights", None)  # never reached
    change_config(folder, **changes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="belong together"):
        open_checkpoint(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_same_weights_as_transformers_reads(folder: Path) -> None:
    ours = open_checkpoint(folder).module.state_dict()
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert np.array_equal(ours[name].numpy(), tensor.numpy())


def test_a_text_that_the_tokenizer_leaves_nothing_of(folder: Path) -> None:
    change_tokenizer(folder, normalizer=replacing({"Regex": ".*"}, ""))
    model = open_checkpoint(folder)
    with pytest.raises(InputError, match="leaves nothing of this text"):
        model.encode("Tom went")


def test_a_text_that_a_tokenizer_gives_up_on(folder: Path) -> None:
    change_tokenizer(folder, normalizer=replacing({"Regex": "(a+)+$"}, "b"))
    model = open_checkpoint(folder)
    assert model.encode("Tom went").tokens
    with pytest.raises(InputError, match=r"tokenizer fails on this text \(.*retry-limit.*\)\. Change the text"):
        model.encode("a" * 40 + "!")


@pytest.mark.parametrize("longest", ["many", None, [5], {}])
def test_a_tokenizer_that_gives_no_number_for_its_longest_text(folder: Path, longest: Any) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": longest}))
    assert len(open_checkpoint(folder).encode("Tom went").tokens) > 1


def test_the_folder_where_the_program_was_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert describe(".").name == NAME
    monkeypatch.chdir(folder.parent)
    (folder / "inside").mkdir()
    monkeypatch.chdir(folder / "inside")
    assert describe("..").name == NAME
    with pytest.raises(CheckpointError, match=r"^inside has no config\.json"):
        describe(".")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_a_folder_whose_name_is_no_text(folder: Path) -> None:
    odd = folder.with_name(os.fsdecode(b"bad\xff"))
    folder.rename(odd)
    with pytest.raises(CheckpointError, match=r"bad\ufffd” has bytes in its name that are no text.*Rename it"):
        open_checkpoint(odd)


def test_a_token_around_a_text_that_the_model_does_not_know(folder: Path) -> None:
    template = [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]
    special = {"X": {"id": "X", "ids": [9999], "tokens": ["X"]}}
    change_tokenizer(
        folder,
        post_processor={"type": "TemplateProcessing", "single": template, "pair": pair, "special_tokens": special},
    )
    with pytest.raises(InputError, match=r"330 tokens, and 9,999 is none of them\. Its tokenizer is another model's"):
        open_checkpoint(folder).encode("Tom went")


def test_what_training_left_beside_the_weights_may_be_large(folder: Path) -> None:
    enlarge(written(folder / "trainer_state.json"), 64)
    assert describe(str(folder)).parameters
