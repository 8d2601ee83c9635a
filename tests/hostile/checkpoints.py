"""Checkpoints made to hang, exhaust or mislead a program that opens them: each is made by a function, none is stored.

A `Hostile` starts from a sound tiny checkpoint and damages a copy of it.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.models.opening.damage import change_config, change_tokenizer, cut_short, header_and_body, raw_header

Damage = Callable[[Path], Any]
MANY, VAST = 10**6, 10**9


@dataclass(frozen=True)
class Hostile:
    name: str
    kind: str  # of the tiny checkpoint that it is made from
    damage: Damage
    opens: bool = False  # whether it may open as well: what is odd about it does no harm


def make(hostile: Hostile, sound: Path, folder: Path) -> Path:
    """A damaged copy of the checkpoint in `sound`, as `folder` or a file in it."""
    shutil.copytree(sound, folder)
    made = hostile.damage(folder)
    return made if isinstance(made, Path) else folder


# --------------------------------------------------------------------------- config.json

COUNTS: dict[str, tuple[str, ...]] = {
    "gpt2": ("n_layer", "n_head", "n_embd", "n_inner", "n_positions", "vocab_size", "num_labels"),
    "llama": (
        *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size"),
        *("intermediate_size", "max_position_embeddings"),
    ),
    "qwen2": ("num_hidden_layers", "max_window_layers", "sliding_window"),
    "gemma3": ("num_hidden_layers", "sliding_window_pattern"),
    "gpt_neo": ("num_layers", "window_size"),
    "albert": ("num_hidden_layers", "num_hidden_groups", "inner_group_num", "embedding_size", "type_vocab_size"),
    "bert": ("num_hidden_layers", "type_vocab_size", "max_position_embeddings"),
    "distilbert": ("n_layers", "n_heads"),
    "gpt_oss": ("num_local_experts", "num_experts_per_tok"),
    "llama4": ("num_local_experts", "interleave_moe_layer_step", "num_hidden_layers"),
    "jamba": ("num_experts", "num_hidden_layers", "mamba_d_state", "mamba_d_conv", "mamba_expand"),
    "t5": ("num_layers", "num_decoder_layers", "relative_attention_num_buckets", "d_kv", "d_ff"),
    "bart": ("encoder_layers", "decoder_layers", "max_position_embeddings"),
    "marian": ("max_position_embeddings", "decoder_vocab_size"),
    "deberta_v2": ("position_buckets", "max_relative_positions", "conv_kernel_size"),
    "modernbert": ("num_hidden_layers", "global_attn_every_n_layers"),
    "xlnet": ("n_layer", "clamp_len", "mem_len"),
    "bloom": ("n_layer", "n_head"),
    "mpt": ("n_layers", "n_heads", "max_seq_len"),
    "mamba": ("num_hidden_layers", "state_size", "conv_kernel", "expand"),
    "whisper": ("encoder_layers", "max_source_positions"),
    "vit": ("num_hidden_layers", "image_size", "num_channels", "encoder_stride", "pooler_output_size"),
    "dinov2": ("mlp_ratio", "num_hidden_layers"),
    "dinov2_registers": ("num_register_tokens",),
    "swin": ("window_size", "embed_dim"),
}
"""Fields that size a loop or a tensor."""


def lists() -> dict[str, tuple[tuple[str, Any], ...]]:
    return {
        "gpt_neo": (
            ("attention_types", [[["global", "local"], MANY]]),
            ("attention_types", [[["global", "local"], VAST]]),
            ("attention_types", [[["global"] * 1000, 1000]] * 100),
            ("attention_types", [[["global", "local"], -1]]),
            ("attention_types", [[["global", "local"], "1"]]),
        ),
        "gemma3": (("layer_types", ["full_attention"] * MANY), ("layer_types", [["full_attention"]] * 3)),
        "llama4": (("moe_layers", list(range(MANY))), ("no_rope_layers", [1] * MANY)),
        "longformer": (("attention_window", [4] * MANY), ("attention_window", VAST)),
        "deberta_v2": (("pos_att_type", "|".join(["p2c"] * 100_000)), ("pos_att_type", ["c2p"] * MANY)),
        "swin": (("depths", [2] * MANY), ("depths", [VAST, 2]), ("num_heads", [VAST, 2])),
        "pvt": (("depths", [MANY] * 4), ("hidden_sizes", [VAST] * 4)),
        "bert_tagger": (
            ("id2label", {str(i): f"LABEL_{i}" for i in range(700_000)}),
            ("id2label", {str(i): "x" * 10_000 for i in range(5)}),
            ("label2id", {f"LABEL_{i}": i for i in range(300_000)}),
            ("id2label", {str(VAST): "x"}),
            ("id2label", {"-1": "x", "one": "y"}),
        ),
        "vit": (
            ("image_size", [30_000, 30_000]),
            ("image_size", 30_000),
            ("patch_size", 1),
            ("patch_size", 0),
            ("patch_size", -8),
            ("patch_size", [8, 8, 8]),
            ("id2label", {str(i): f"LABEL_{i}" for i in range(700_000)}),
        ),
        "clip": (
            ("vision_config.num_hidden_layers", VAST),
            ("vision_config.image_size", 30_000),
            ("text_config.num_hidden_layers", VAST),
            ("text_config.vocab_size", VAST),
        ),
        "bert2bert": (
            ("encoder.num_hidden_layers", MANY),
            ("decoder.num_hidden_layers", VAST),
            ("decoder.vocab_size", VAST),
            ("encoder.encoder", {"encoder": {"num_hidden_layers": VAST}}),
        ),
        "llama": (
            ("rope_parameters", {"rope_type": "linear", "factor": 1e308, "rope_theta": 1e308}),
            ("rope_parameters", {"rope_type": "yarn", "factor": 8, "original_max_position_embeddings": VAST}),
            ("rope_parameters", {"rope_type": "longrope", "short_factor": [1.0] * MANY, "long_factor": [1.0] * MANY}),
            ("rope_parameters", {"rope_type": "dynamic", "factor": -1}),
            ("rope_parameters", [1] * MANY),
            ("pretraining_tp", MANY),
            ("eos_token_id", list(range(MANY))),
            ("bos_token_id", -5),
            ("architectures", ["LlamaForCausalLM"] * MANY),
            ("architectures", ["../../etc/passwd"]),
            ("architectures", ["__import__('os').system"]),
            ("hidden_act", "x" * MANY),
            ("hidden_act", "os.system"),
            ("torch_dtype", "os.system"),
            ("dtype", "float3"),
            ("transformers_version", "9" * 100_000),
            ("name_or_path", "x" * (1 << 20)),
            ("pruned_heads", {str(i): [0] for i in range(300_000)}),
            ("pruned_heads", {"0": list(range(MANY))}),
            ("tie_word_embeddings", "maybe"),
            ("attn_implementation", "evil/kernel"),
            ("_attn_implementation", "evil/kernel"),
            ("experts_implementation", "evil/kernel"),
            ("base_model_tp_plan", {f"layers.*.{i}": "colwise" for i in range(100_000)}),
            ("task_specific_params", {str(i): {} for i in range(300_000)}),
            ("num_hidden_layers", 1e308),
            ("num_hidden_layers", float("nan")),
            ("num_hidden_layers", float("inf")),
            ("num_hidden_layers", 10**400),
            ("num_hidden_layers", -VAST),
            ("num_hidden_layers", [3, 3]),
            ("num_hidden_layers", {"a": 3}),
            ("num_hidden_layers", True),
            ("rms_norm_eps", float("nan")),
            ("rms_norm_eps", "x"),
            ("initializer_range", -1),
            ("attention_dropout", 1e9),
            ("quantization_config", {"quant_method": "x"}),
            ("auto_map", {"AutoModelForCausalLM": "evil--evil.M"}),
            ("model_type", "l" * MANY),
            ("model_type", "../llama"),
            ("text_config", {"text_config": {"text_config": {"num_hidden_layers": VAST}}}),
            ("surprise", {f"a{i}": i for i in range(300_000)}),
            ("chunk_size_feed_forward", VAST),
            ("num_labels", MANY),
            ("is_encoder_decoder", True),
            ("use_cache", [[]] * 10),
        ),
    }


def put(field: str, value: Any) -> Damage:
    """Write `value` for a field of config.json; "a.b" is b of the part a."""

    def damage(folder: Path) -> None:
        path = folder / "config.json"
        config = part = json.loads(path.read_text())
        *above, last = field.split(".")
        for name in above:
            part = part.setdefault(name, {})
        part[last] = value
        path.write_text(json.dumps(config))

    return damage


Content = str | bytes | Callable[[], str]


def text_of(name: str, content: Content) -> Damage:
    """Write a file of this content, which is made when it is written where it is large."""

    def damage(folder: Path) -> None:
        made = content() if callable(content) else content
        (folder / name).write_bytes(made.encode() if isinstance(made, str) else made)

    return damage


def deep(depth: int) -> str:
    return '{"model_type": "llama", "a": ' + '{"a":' * depth + "1" + "}" * depth + "}"


def no_file(make: Callable[[Path], Any], name: str) -> Damage:
    """Something that is no regular file in the place of one."""

    def damage(folder: Path) -> None:
        path = folder / name
        path.unlink(missing_ok=True)
        make(path)

    return damage


def loop(path: Path) -> None:
    other = path.with_name("loop")
    path.symlink_to(other)
    other.symlink_to(path)


def configs() -> Iterator[Hostile]:
    for kind, fields in COUNTS.items():
        for field in fields:
            for value in (MANY, VAST):
                yield Hostile(f"{kind}: {field} of {value:.0e}", kind, put(field, value), opens=True)
    for kind, changes in lists().items():
        for field, value in changes:
            words = f"{type(value).__name__} {str(value)[:40]}"
            yield Hostile(f"{kind}: {field} as {words}", kind, put(field, value), opens=True)
    texts: dict[str, Content] = {
        "deep": lambda: deep(200_000),
        "brackets": lambda: "[" * (15 << 20),
        "empty lists": lambda: "[" + ",".join(["[]"] * 5_000_000) + "]",
        "a table of lists": lambda: '{"model_type": "llama", "a": [' + ",".join(["[]"] * 5_000_000) + "]}",
        "one key twice": '{"model_type": "llama", "model_type": "gpt2", "n_layer": 1, "n_layer": 9}',
        "a number of a million digits": '{"model_type": "llama", "vocab_size": ' + "9" * MANY + "}",
        "half a character": b'{"model_type": "\xf0\x9f"}',
        "lone surrogates": '{"model_type": "\\ud800"}',
        "zeros": bytes(1 << 20),
        "UTF-16": '{"model_type": "llama"}'.encode("utf-16"),
        "nothing": "",
        "null": "null",
    }
    for name, content in texts.items():
        yield Hostile(f"config.json: {name}", "llama", text_of("config.json", content))
    for file in ("config.json", "tokenizer.json", "model.safetensors"):
        # of one that is not regular the tokenizer's settings alone may do
        yield Hostile(f"{file}: a pipe", "llama", no_file(os.mkfifo, file))
        yield Hostile(f"{file}: a folder", "llama", no_file(Path.mkdir, file))
        yield Hostile(f"{file}: links in a ring", "llama", no_file(loop, file))
        yield Hostile(f"{file}: a device", "llama", no_file(lambda path: path.symlink_to("/dev/zero"), file))
    for file in ("generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
        yield Hostile(f"{file}: a pipe", "llama", no_file(os.mkfifo, file), opens=True)
        yield Hostile(f"{file}: brackets", "llama", text_of(file, lambda: "[" * (10 << 20)), opens=True)
        yield Hostile(f"{file}: lists", "llama", text_of(file, lambda: "[" + "[]," * 3_000_000 + "[]]"), opens=True)


# --------------------------------------------------------------------------- weights


def empty_tensors(count: int) -> Damage:
    """Tensors without a number beside those of the model."""

    def damage(folder: Path) -> None:
        from safetensors.torch import load_file, save_file
        from torch import zeros

        path = folder / "model.safetensors"
        tensors = load_file(path)
        tensors |= {f"model.layers.{i}.self_attn.q_proj.weight": zeros(0) for i in range(10, count)}
        save_file(tensors, path, metadata={"format": "pt"})

    return damage


def named(count: int, name: str) -> Damage:
    """So many empty tensors and the layers in the config to go with them."""

    def damage(folder: Path) -> None:
        entries = {name.format(i): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(count)}
        raw_header(folder, json.dumps(entries).encode())
        change_config(folder, num_hidden_layers=count)

    return damage


def vast_shape(shape: list[int]) -> Damage:
    return lambda folder: raw_header(
        folder, json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    )


def sparse(name: str, size: int, start: bytes = b"") -> Damage:
    """A file with a hole of `size` bytes behind `start`."""

    def damage(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.write(start)
            file.truncate(len(start) + size)

    return damage


def wide(folder: Path) -> None:
    """A terabyte of weights, all of them a hole."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 38], "data_offsets": [0, 1 << 40]}}).encode()
    sparse("model.safetensors", 1 << 40, struct.pack("<Q", len(header)) + header)(folder)


def called(name: str, folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / name)


def shards(count: int) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        names = {f"t{i}": f"model-{i:05d}-of-{count:05d}.safetensors" for i in range(count)}
        index = {"metadata": {}, "weight_map": names}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return damage


def weights() -> Iterator[Hostile]:
    for count in (20_000, 100_000):
        yield Hostile(f"{count:,} empty tensors", "llama", empty_tensors(count))
        yield Hostile(f"{count:,} empty tensors alone", "llama", named(count, "t{}"))
        layers = "model.layers.{}.self_attn.q_proj.weight"
        yield Hostile(f"{count:,} layers of empty tensors", "llama", named(count, layers))
    yield Hostile("names of 1,000 characters", "llama", named(15_000, "x" * 1000 + "{}"))
    for name, shape in {
        "of 2^62": [1 << 62, 4],
        "of a million dimensions": [1] * MANY,
        "of zero times 2^62": [0, 1 << 62],
        "of 10^400": [10**400],
    }.items():
        yield Hostile(f"a shape {name}", "llama", vast_shape(shape))
    for length in (1 << 63, (1 << 64) - 1, 100 << 20, 0):
        yield Hostile(f"a header of {length:,} bytes", "llama", partial(raw_header, header=b"{}", length=length))
    yield Hostile("a header of brackets", "llama", lambda folder: raw_header(folder, b"[" * (15 << 20)))
    yield Hostile("a header of lists", "llama", lambda folder: raw_header(folder, b"[" + b"[]," * 4_000_000 + b"[]]"))
    yield Hostile("a header of spaces", "llama", lambda folder: raw_header(folder, b" " * (15 << 20) + b"{}"))
    yield Hostile("a hole of a terabyte", "llama", wide)
    yield Hostile("tensors that overlap", "llama", lambda folder: header_and_body(folder, {}, {}))
    yield Hostile("offsets beyond the file", "llama", lambda f: header_and_body(f, {"data_offsets": [0, 1 << 60]}))
    yield Hostile("an index of 100,000 shards", "llama", shards(100_000))
    yield Hostile("weights cut in half", "llama", lambda folder: cut_short(folder / "model.safetensors", 9000))
    for name in ("pytorch_model.bin", "model.pt", "model.ckpt", "x.pkl"):
        yield Hostile(f"weights as {name} alone", "llama", partial(called, name))


# --------------------------------------------------------------------------- the tokenizer


def deep_normalizer(depth: int, folder: Path) -> None:
    change_tokenizer(folder, normalizer=None)
    path = folder / "tokenizer.json"
    nested = '{"type":"Sequence","normalizers":[' * depth + '{"type":"NFC"}' + "]}" * depth
    path.write_text(path.read_text().replace('"normalizer": null', f'"normalizer": {nested}'))


def regex(pattern: str) -> Damage:
    """Text is cut by this regular expression, which takes ever longer to find that it matches nothing."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return lambda folder: change_tokenizer(folder, pre_tokenizer=split)


def normalizing(pattern: str) -> Damage:
    replace = {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}
    return lambda folder: change_tokenizer(folder, normalizer=replace)


def added(count: int, length: int = 4) -> Damage:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return lambda folder: change_tokenizer(
        folder, added_tokens=[{"id": i, "content": f"<{i:0{length}d}>", **flags} for i in range(count)]
    )


def numbered() -> dict[str, int]:
    return {f"t{i}": i for i in range(MANY)}


def pairs() -> list[list[str]]:
    return [[f"t{i}", f"t{i + 1}"] for i in range(MANY)]


def of_model(**changes: Any) -> Damage:
    """Change the `model` of tokenizer.json; what is large is made when it is written."""

    def damage(folder: Path) -> None:
        path = folder / "tokenizer.json"
        saved = json.loads(path.read_text())
        saved["model"] |= {name: value() if callable(value) else value for name, value in changes.items()}
        path.write_text(json.dumps(saved))

    return damage


def settings(**changes: Any) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return damage


def tokenizers() -> Iterator[Hostile]:
    whole = 60 << 20
    contents: dict[str, Content] = {
        "60 MB of brackets": lambda: "[" * whole,
        "60 MB of braces": lambda: '{"a":' * (whole // 5),
        "60 MB of empty lists": lambda: "[" + "[]," * (whole // 3 - 1) + "[]]",
        "60 MB of empty lists in a table": lambda: '{"version": "1.0", "a": [' + "[]," * (whole // 3 - 30) + "[]]}",
        "60 MB of spaces": lambda: " " * whole + "{}",
        "60 MB of one text": lambda: '{"version": "' + "x" * (whole - 20) + '"}',
        "60 MB of numbers": lambda: '{"version": [' + "1," * (whole // 2 - 20) + "1]}",
    }
    for name, content in contents.items():
        yield Hostile(f"tokenizer.json: {name}", "llama", text_of("tokenizer.json", content))
    yield Hostile("a vocabulary of a million", "llama", of_model(vocab=numbered))
    yield Hostile("a million merges", "llama", of_model(merges=pairs))
    yield Hostile("a million merges and their vocabulary", "llama", of_model(vocab=numbered, merges=pairs))
    yield Hostile("a million added tokens", "llama", added(500_000))
    yield Hostile("added tokens of 10,000 characters", "llama", added(1000, 10_000))
    yield Hostile("added tokens of later ids", "llama", added(1000))
    yield Hostile("a vocabulary of negative ids", "llama", of_model(vocab={"a": -1}))
    yield Hostile("a vocabulary of words", "llama", of_model(vocab={"a": "b"}))
    yield Hostile("a vocabulary of one id", "llama", of_model(vocab={f"t{i}": 0 for i in range(330)}, merges=[]))
    yield Hostile("a piece of a million characters", "llama", of_model(vocab={"x" * MANY: 0}, merges=[]))
    yield Hostile("merges of what is not there", "llama", of_model(merges=[["x", "y"]]))
    yield Hostile("a model of no kind", "llama", of_model(type="Evil"))
    yield Hostile("dropout of 1", "llama", of_model(dropout=1.0), opens=True)
    yield Hostile("dropout of NaN", "llama", of_model(dropout=float("nan")), opens=True)
    for depth in (100, 5000):
        yield Hostile(f"normalizers {depth:,} deep", "llama", partial(deep_normalizer, depth), opens=True)
    for pattern in (
        "(a+)+$",
        "(a|a)*b",
        "(x+x+)+y",
        "(?:a{1,100}){1,100}b",
        r"(\s*\w*)*!",
        ".*.*.*=.*",
        "(a?){60}a{60}",
    ):
        yield Hostile(f"split by {pattern}", "llama", regex(pattern), opens=True)
        yield Hostile(f"normalized by {pattern}", "llama", normalizing(pattern), opens=True)
    for pattern in ("", "(", "a{0,100000}{0,100000}", "x*", "(?<=a+)b", "\\" * 99, "(a" * 50_000):
        yield Hostile(f"split by {pattern[:20] or 'nothing'}", "llama", regex(pattern), opens=True)
    yield Hostile(
        "a template that loops", "llama", settings(chat_template="{% for i in range(10**9) %}x{% endfor %}"), opens=True
    )
    yield Hostile("a template that grows", "llama", settings(chat_template="{{ 'x' * 3000000000 }}"), opens=True)
    yield Hostile("a template of 10 MB", "llama", settings(chat_template="{{ x }}" * 1_000_000), opens=True)
    yield Hostile("a template 5,000 deep", "llama", settings(chat_template="{% if 1 %}" * 5000), opens=True)
    yield Hostile("a tokenizer's code", "llama", settings(auto_map={"AutoTokenizer": ["evil.T", None]}), opens=True)
    yield Hostile("a tokenizer's class", "llama", settings(tokenizer_class="os.system"), opens=True)
    yield Hostile("a tokenizer's length in words", "llama", settings(model_max_length="long"), opens=True)
    yield Hostile("a tokenizer's length beyond counting", "llama", settings(model_max_length=10**400), opens=True)
    decoder = {str(i): {"content": f"<{i}>", "special": True} for i in range(300_000)}
    yield Hostile("300,000 tokens added in its settings", "llama", settings(added_tokens_decoder=decoder))
    yield Hostile(
        "special tokens without end", "llama", settings(additional_special_tokens=["x"] * 300_000), opens=True
    )
    yield Hostile("a special token of a million characters", "llama", settings(pad_token="x" * MANY), opens=True)
    padding = {"strategy": {"Fixed": VAST}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    padding |= {"pad_type_id": 0, "pad_token": "x"}
    yield Hostile("padding to a billion", "llama", lambda folder: change_tokenizer(folder, padding=padding), opens=True)
    truncation = {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 0}
    yield Hostile("cutting to nothing", "llama", lambda f: change_tokenizer(f, truncation=truncation), opens=True)
    template: dict[str, Any] = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 300_000,
        "pair": [],
    }
    template |= {"special_tokens": {}}
    yield Hostile(
        "a text 300,000 times over", "llama", lambda f: change_tokenizer(f, post_processor=template), opens=True
    )


# --------------------------------------------------------------------------- pictures are prepared


def prepared(**changes: Any) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / "preprocessor_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return damage


def preparations() -> Iterator[Hostile]:
    for name, value in {
        "30,000 square": {"height": 30_000, "width": 30_000},
        "a billion wide": {"height": 1, "width": VAST},
        "negative": {"height": -24, "width": -24},
        "nothing": {"height": 0, "width": 0},
        "words": {"height": "a", "width": "b"},
        "a number": 30_000,
        "a shortest edge of 30,000": {"shortest_edge": 30_000},
        "a longest edge of a billion": {"longest_edge": VAST, "shortest_edge": VAST},
        "a list": [24] * MANY,
        "nested": {"height": {"height": 24}, "width": 24},
    }.items():
        yield Hostile(f"pictures scaled to {name}", "vit", prepared(size=value), opens=True)
    yield Hostile(
        "pictures cut to 30,000 square",
        "vit",
        prepared(do_center_crop=True, crop_size={"height": 30_000, "width": 30_000}),
    )
    yield Hostile(
        "pictures padded to 30,000 square", "vit", prepared(do_pad=True, pad_size={"height": 30_000}), opens=True
    )
    yield Hostile("a million means", "vit", prepared(image_mean=[0.5] * MANY), opens=True)
    yield Hostile("a mean of NaN", "vit", prepared(image_mean=[float("nan")] * 3), opens=True)
    yield Hostile("a deviation of 0", "vit", prepared(image_std=[0, 0, 0]), opens=True)
    yield Hostile("a way of scaling of no kind", "vit", prepared(resample=99), opens=True)
    yield Hostile("a factor of 1e308", "vit", prepared(rescale_factor=1e308), opens=True)
    yield Hostile("preparation of no kind", "vit", prepared(image_processor_type="os.system"), opens=True)
    yield Hostile("preparation by code", "vit", prepared(auto_map={"AutoImageProcessor": "evil.P"}), opens=True)
    yield Hostile(
        "preparation of lists", "vit", text_of("preprocessor_config.json", lambda: "[" + "[]," * 4_000_000 + "[]]")
    )
    yield Hostile("preparation of brackets", "vit", text_of("preprocessor_config.json", lambda: "[" * (10 << 20)))
    yield Hostile("preparation from a pipe", "vit", no_file(os.mkfifo, "preprocessor_config.json"))


def every() -> tuple[Hostile, ...]:
    from tests.hostile.gguf_files import gguf_files

    return (*configs(), *weights(), *tokenizers(), *preparations(), *gguf_files())
