"""GGUF files: the same numbers as the checkpoint they were made from, and a sentence for what cannot be opened."""

from __future__ import annotations

import gc
import shutil
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.files import gguf as gguf_files
from attention_models.files.gguf import read_gguf
from attention_models.opening import inspect_checkpoint
from attention_models.opening.describe import description_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import DescribeRequest
from attention_models.protocol.values import StackInfo
from tests.hostile.gguf_files import array, text, with_settings
from tests.models.gguf_maker import gguf_of
from tests.models.tiny import SENTENCE, TinyFolder


@pytest.fixture(scope="module")
def sound(tiny_folder: TinyFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gguf_of(tiny_folder("llama"), tmp_path_factory.mktemp("gguf ñ") / "mi modelo.gguf")


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    """A file of one's own, to break."""
    copy = tmp_path / "tiny.gguf"
    copy.write_bytes(sound.read_bytes())
    return copy


@pytest.fixture
def folder(tiny_folder: TinyFolder, tmp_path: Path) -> Path:
    """A checkpoint of one's own, to make a file of."""
    return Path(shutil.copytree(tiny_folder("llama"), tmp_path / "model"))


def refused(path: Path, *words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence
    found = description_of(DescribeRequest(reference=str(path)))
    assert found.refusal == sentence


def test_equals_the_checkpoint_it_was_made_from(sound: Path, tiny_folder: TinyFolder) -> None:
    model, original = open_checkpoint(sound), open_checkpoint(tiny_folder("llama"))
    assert model.dtype == torch.float32
    assert (model.info.name, model.info.family) == ("mi modelo", "causal")
    trace, expected = run(model, SENTENCE), run(original, SENTENCE)
    assert [t.text for t in trace.tokens] == [t.text for t in expected.tokens]
    assert np.abs(trace.logits - expected.logits).max() < 1e-5
    for site in range(len(trace.sites)):
        for head in range(trace.sites[site].heads):
            assert np.abs(trace.weights(site, head) - expected.weights(site, head)).max() < 1e-6


def test_packed_weights_are_unpacked_by_no_kernel_of_a_hub(
    tiny_folder: TinyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.quantizers.quantizer_gguf import GgufHfQuantizer

    # transformers asks a hub for a kernel here, of some architectures (qwen35, lfm2), unless it is told to unpack
    unpacks: list[bool] = []
    monkeypatch.setattr(
        GgufHfQuantizer,
        "validate_environment",
        lambda quantizer, *_, **__: unpacks.append(quantizer.quantization_config.dequantize),
    )
    path = gguf_of(tiny_folder("llama"), tmp_path / "packed.gguf", packed=True)
    packed, whole = open_checkpoint(path), open_checkpoint(tiny_folder("llama"))
    assert set(unpacks) == {True}
    theirs = whole.module.state_dict()
    for name, tensor in packed.module.state_dict().items():
        step = float(theirs[name].abs().max()) / 127  # of 8 bits
        assert float((tensor - theirs[name]).abs().max()) <= step


def test_read_once(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Counted(gguf.GGUFReader):
        def __init__(self, path: str, *args: Any) -> None:
            made.append(str(path))
            super().__init__(path, *args)

    tables: list[Any] = []
    table = gguf.get_tensor_name_map

    def counted(*args: Any) -> Any:
        tables.append(args)
        return table(*args)

    monkeypatch.setattr(gguf, "GGUFReader", Counted)
    monkeypatch.setattr(gguf, "get_tensor_name_map", counted)
    open_checkpoint(sound)
    assert made == [str(sound)]
    assert len(tables) == 1
    assert gguf.GGUFReader is Counted
    assert gguf.get_tensor_name_map is counted


def test_no_other_thread_waits_for_cycles_to_be_looked_for(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collects: list[bool] = []

    class Watched(gguf.GGUFReader):
        def __init__(self, path: str, *args: Any) -> None:
            collects.append(gc.isenabled())
            super().__init__(path, *args)

    monkeypatch.setattr(gguf, "GGUFReader", Watched)
    description_of(DescribeRequest(reference=str(sound)))
    open_checkpoint(sound)
    assert collects == [False, False]
    assert gc.isenabled()


def test_described_before_it_is_opened(sound: Path, tiny_folder: TinyFolder) -> None:
    found = description_of(DescribeRequest(reference=str(sound)))
    original = open_checkpoint(tiny_folder("llama")).info
    assert not found.refusal
    assert found.info is not None
    assert found.info.stacks == original.stacks == (StackInfo("decoder", 3, 4, 2),)
    assert found.info.parameters == original.parameters
    assert (found.info.context, found.info.vocabulary) == (64, original.vocabulary)
    assert found.info.file_bytes == sound.stat().st_size
    assert dict(found.weights)["float32"] == 4 * original.parameters


def test_header(sound: Path) -> None:
    header = read_gguf(sound)
    assert header.architecture == "llama"
    assert header.settings["llama.attention.head_count"] == 4
    assert "tokenizer.ggml.tokens" not in header.settings  # an array is only walked through
    assert header.tensors.shapes["blk.0.ffn_down.weight"] == (32, 48)


def test_unknown_architecture(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    refused(gguf_of(tiny_folder("llama"), tmp_path / "new.gguf", architecture="llamango"), "new.gguf", "llamango")


def test_numbers_that_make_no_model_of_a_known_architecture(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    path = gguf_of(tiny_folder("llama"), tmp_path / "n.gguf")
    content, key = path.read_bytes(), b"llama.attention.head_count"
    at = content.index(key + struct.pack("<I", 4)) + len(key) + 4  # 4: an unsigned number of 32 bits
    path.write_bytes(content[:at] + struct.pack("<I", 0) + content[at + 4 :])
    refused(path, "n.gguf: no model can be built from its header", "Fetch it again")


def test_without_tokenizer(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    refused(gguf_of(tiny_folder("llama"), tmp_path / "t.gguf", tokenizer=False), "t.gguf", "no tokenizer")


def test_one_of_several_files(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    path = gguf_of(tiny_folder("llama"), tmp_path / "tiny-00001-of-00002.gguf", parts=2)
    refused(path, path.name, "split", "llama-gguf-split --merge")
    assert not description_of(DescribeRequest(reference=str(path))).info


def test_without_the_extra(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_files, "GGUF", ("gguf", "no_such_package"))
    refused(path, "no_such_package", "not installed", "python -m pip install no_such_package")
    assert read_gguf(path).architecture == "llama"


def test_no_gguf(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    refused(path, "tiny.gguf", "no GGUF file")


@pytest.mark.parametrize("version", [0, 1, 4, 0x03000000])
def test_other_versions(path: Path, version: int) -> None:
    path.write_bytes(b"GGUF" + struct.pack("<I", version) + path.read_bytes()[8:])
    refused(path, "version", "Convert it again")


@pytest.mark.parametrize("keep", [0, 3, 20, 200, 5000, -1])
def test_cut_short(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "tiny.gguf", "not fetched whole" if keep > 3 or keep < 0 else "tiny.gguf")


def test_header_that_claims_too_much(path: Path) -> None:
    content = path.read_bytes()
    for tensors, settings, key in ((1 << 60, 1, 3), (1, 1 << 60, 3), (1, 1, 1 << 60)):
        start = b"GGUF" + struct.pack("<IQQQ", 3, tensors, settings, key)
        path.write_bytes(start + content[len(start) :])
        refused(path, "tiny.gguf", "damaged", "Fetch it again")


def test_array_that_claims_too_much(path: Path) -> None:
    for of, count in ((4, 1 << 61), (8, 1 << 61), (9, 1), (77, 1)):
        entry = struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, of, count)
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry + bytes(64))
        refused(path, "tiny.gguf", "damaged", "Fetch it again")


def put(path: Path, setting: str, value: int) -> None:
    """Write another number for a setting of 32 bits."""
    content, key = path.read_bytes(), struct.pack("<Q", len(setting)) + setting.encode() + struct.pack("<I", 4)
    at = content.index(key) + len(key)
    path.write_bytes(content[:at] + struct.pack("<I", value) + content[at + 4 :])


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("llama.block_count", 2, ("describes 2 layers", "tensors of 3", "belong together")),
        ("llama.block_count", 0, ("num_hidden_layers is 0", "above 0", "Fetch it again")),
        ("llama.attention.head_count_kv", 0, ("num_key_value_heads is 0", "above 0", "Fetch it again")),
        ("llama.embedding_length", 0, ("hidden_size is 0", "above 0", "Fetch it again")),
    ],
)
def test_header_that_lies(path: Path, setting: str, value: int, words: tuple[str, ...]) -> None:
    put(path, setting, value)
    refused(path, "tiny.gguf", *words)


def test_tensor_of_many_dimensions(path: Path) -> None:
    tensor = struct.pack("<Q", 1) + b"a" + struct.pack("<I", 1 << 31)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor + bytes(64))
    refused(path, "dimensions", "Fetch it again")


def test_tensor_beyond_the_end(path: Path) -> None:
    tensor = struct.pack("<Q", 1) + b"a" + struct.pack("<IQIQ", 1, 1 << 40, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor + bytes(64))
    refused(path, "describes", "Fetch it again")


@pytest.mark.parametrize("in_arrays", [True, False])
def test_texts_that_no_vocabulary_of_the_weights_has_are_never_parsed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, in_arrays: bool
) -> None:
    # transformers puts a text together letter by letter: 190 MB of them took a minute
    def texts() -> bytes:
        long = text("x" * (1 << 20))
        return b"".join(
            array(f"a{i}", 8, 1, long) if in_arrays else text(f"a{i}") + b"\x08\0\0\0" + long for i in range(8)
        )

    path = with_settings(texts, 8)(folder)
    monkeypatch.setattr(inspect_checkpoint, "AutoConfig", None)
    refused(
        path, "tiny.gguf: its header is wrong: it has 8,", "bytes, and its weights are 30 tensors", "Fetch it again"
    )


def test_texts_of_all_arrays_are_bounded_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_files, "_MOST_TEXTS", 5_000)
    path = with_settings(lambda: b"".join(array(f"a{i}", 8, 1_000, bytes(8_000)) for i in range(6)), 6)(folder)
    refused(path, "tiny.gguf is damaged", "its header claims", "texts, more than 5,000")


@pytest.mark.full
def test_a_chat_template_in_the_header(tiny_folder: TinyFolder, tmp_path: Path, sound: Path) -> None:
    template = "{% for message in messages %}{{ message['role'] + ': ' + message['content'] }}{% endfor %}"
    model = open_checkpoint(gguf_of(tiny_folder("llama"), tmp_path / "chat.gguf", template=template))

    assert model.info.chat
    assert not open_checkpoint(sound).info.chat
    tokens = run(model, [{"role": "user", "content": "Tom and Anna"}]).tokens
    assert "".join(token.text for token in tokens) == "user: Tom and Anna"
    assert "".join(token.text for token in tokens if token.role == "user") in ("Tom and Anna", " Tom and Anna")
