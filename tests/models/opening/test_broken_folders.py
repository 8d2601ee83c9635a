"""Each way to break a folder gets a sentence that names the folder, what is wrong and what to do."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from attention_models import open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.files.weight_files import wrong_count
from attention_models.opening import open as checkpoints
from attention_models.protocol.errors import CheckpointError
from tests.models.opening.damage import (
    NAME,
    Break,
    change_config,
    change_tokenizer,
    cut_short,
    empty,
    enlarge,
    header_and_body,
    header_of,
    index_of,
    index_without_metadata,
    larger_tokenizer,
    later_ids,
    raw_header,
    replacing,
    shard_missing,
    with_nan,
    with_value,
    without_tensor,
    written,
)
from tests.models.opening.refusal import assert_refused

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
    "layers many": (
        lambda f: change_config(f, n_layer=10**9),
        (NAME, "n_layer is 1,000,000,000", "Correct it in config.json"),
    ),
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
    "width large": (lambda f: change_config(f, n_embd=2000), (NAME, "parameters", "belong together")),
    "width beyond the weights": (lambda f: change_config(f, n_embd=10**6), (NAME, "n_embd is 1,000,000", "330")),
    "width beyond counting": (lambda f: change_config(f, n_embd=10**9), (NAME, "config.json")),
    "width other": (lambda f: change_config(f, n_embd=64), (NAME, "another shape", "should be", "belong together")),
    "positions other": (lambda f: change_config(f, n_positions=99), (NAME, "(64, 32)", "should be (99, 32)")),
    "vocabulary large": (lambda f: change_config(f, vocab_size=10**12), (NAME, "vocab_size is 1,000,000,000,000")),
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


@pytest.mark.parametrize("changes", [{"n_layer": 10**9}, {"n_embd": 10**6}, {"vocab_size": 10**12}, {"n_inner": 10**8}])
def test_lie_is_found_before_memory_is_taken(
    folder: Path, changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_weights", None)  # never reached
    change_config(folder, **changes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="its weights are"):
        open_checkpoint(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
