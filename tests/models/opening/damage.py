"""Ways to break the folder of a checkpoint."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, GPT2LMHeadModel

Break = Callable[[Path], Any]
NAME = "mi modelo ñandú 模型"  # every sentence has to name it


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
