"""What a checkpoint's folder says before a weight is read: its JSON, and the headers of its safetensors files.

Nothing here loads a tensor, and nothing anywhere loads a pickle.
"""

from __future__ import annotations

import json
import math
import re
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attention_models.files.bounds import Accounted, too_large_for_vocabulary, too_many_values
from attention_models.files.names import title_of
from attention_models.files.safe_files import NotAFile, open_regular
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import TOKENIZERS, Tensors

JSON_BYTES = 16 << 20  # an index of a very large model has some MB
_HEADER_BYTES = 16 << 20  # some 130,000 tensors; the format would take 100 MB, which Python reads for half a minute
TEXT_BYTES = 64 << 20  # of a tokenizer's file; the largest vocabularies have some 40 MB, and Python reads them whole
_SETTINGS = (
    *("generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json", "adapter_config.json"),
)
"""Files with the bound of a config: Python makes a gigabyte of 50 MB of empty lists."""
_TEXTS = (".json", ".txt", ".model", ".jinja")
_UNREAD = ("trainer_state.json", "explorer.json")  # a line for every step of training; a card, which is not relied on
_MOST_EMPTY = 1000  # tensors without a number
_MOST_TENSORS = 50_000  # in one file; a model of a hundred thousand is kept in a hundred files
_NAME = 255  # bytes of a file's name on common disks
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6},
}
_COUNTS = (
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size", "vocab_size", "head_dim"),
    *("n_layer", "n_head", "n_embd", "d_model", "d_kv", "num_layers", "num_heads", "n_layers", "n_heads", "dim"),
    *("encoder_attention_heads", "decoder_attention_heads"),
)
_HALVES = ("text_config", "encoder", "decoder")

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_CLASS = re.compile(r"^[A-Za-z]+(Error|Exception): ")


def read_json(path: Path, advice: str) -> dict[str, Any]:
    """A JSON table of bounded size. `advice` ends the sentence where there is no such file.

    Raises:
        CheckpointError: no file, too large, or no JSON table.
    """
    check_regular(path)
    if not path.is_file():
        raise CheckpointError(f"{title_of(path.parent)} has no {path.name}. {advice}")
    if path.stat().st_size > JSON_BYTES:
        raise CheckpointError(f"{path} is larger than {JSON_BYTES >> 20} MB; no such file is. It was not read.")
    try:
        content = path.read_bytes()
        many = too_many_values(content)
        if many:
            raise CheckpointError(f"{path} is no table of settings: {many}. It was not read. Fetch the file again.")
        value = json.loads(content.decode())
    except (OSError, ValueError, RecursionError) as cause:
        raise CheckpointError(f"{path} cannot be read as JSON: {summary(cause)}. Fetch the file again.") from cause
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no table of settings. Fetch the file again.")
    return value


def weight_files(folder: Path) -> list[Path]:
    """A checkpoint's safetensors files: the one that is whole, or its shards in the order of their names.

    Raises:
        CheckpointError: no weights, only a pickle, or a missing shard.
    """
    title = title_of(folder)
    index = folder / "model.safetensors.index.json"
    single = folder / "model.safetensors"
    if single.is_file():
        return [single]
    if index.is_file():
        index_table = read_json(index, "")
        table = index_table.get("weight_map")
        if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
            raise CheckpointError(f"{index} lists no weight files. Fetch it again.")
        names = sorted(set(table.values()))
        strange = [name for name in names if Path(name).name != name or name == ".."]
        if strange:
            raise CheckpointError(f"{index} points outside its folder ({strange[0][:80]}). It was not followed.")
        nameless = [name for name in names if len(name) > _NAME or not name.isprintable()]
        if nameless or not isinstance(index_table.get("metadata"), dict):
            raise CheckpointError(f"{index} is damaged. Fetch it again.")
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise CheckpointError(
                f"{title} is incomplete: {len(missing)} of its {len(names)} weight files are missing, "
                f"{missing[0]} first. Fetch them again."
            )
        return [folder / name for name in names]
    pickles = sorted(path for path in folder.iterdir() if path.suffix in PICKLES)
    if pickles:
        raise _unread(title, pickles[0])
    raise CheckpointError(f"{title} has no model.safetensors: the folder holds no weights. Fetch the file.")


def read_headers(folder: Path) -> Tensors:
    """Names and shapes of all tensors in a checkpoint's safetensors files, whole or in shards.

    Raises:
        CheckpointError: no weights, only a pickle, a missing shard, or a damaged file.
    """
    files = weight_files(folder)
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        shapes.update(file_header(file))
    check_not_empty(title_of(folder), shapes)
    return Tensors(shapes, sum(file.stat().st_size for file in files))


def check_not_empty(title: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse tensors without end that hold nothing, each of which transformers would look for a place for.

    Raises:
        CheckpointError: there are more than any model has.
    """
    empty = [name for name, shape in shapes.items() if 0 in shape]
    if len(empty) > _MOST_EMPTY:
        raise CheckpointError(
            f"{title}: its weight files hold {len(empty):,} tensors without a number, {empty[0][:80]} first. They are "
            "no checkpoint. Fetch them again."
        )


def adapter(title: str) -> CheckpointError:
    return CheckpointError(
        f"{title} is an adapter, which is put on another model and is none by itself. Merge the two with peft's "
        "merge_and_unload and save_pretrained, and open that."
    )


def _unread(title: str, file: Path) -> CheckpointError:
    """Of weights in `file` alone, by what its first bytes are."""
    try:
        with open_regular(file) as stream:
            start = stream.read(64)
    except NotAFile:
        start = b""
    if start.startswith((b"PK\x03\x04", b"\x80")):  # torch's archive, or a bare pickle
        return only_a_pickle(title, file.name)
    if re.fullmatch(rb"[\x01-\x20]\0\0\0.\0[A-Za-z0-9]+Spec\0.*", start, re.DOTALL):
        return of_ctranslate2(title, file.name)
    return CheckpointError(
        f"{title} has its weights only in {file.name}, which is no format that is read here. "
        "Fetch the checkpoint's safetensors files."
    )


def of_ctranslate2(title: str, file: str) -> CheckpointError:
    return CheckpointError(
        f"{title} is a model of CTranslate2 ({file}): packed for its own program, which shows no attention. "
        "Open the checkpoint of transformers that it was made from."
    )


def only_a_pickle(title: str, pickle: str) -> CheckpointError:
    return CheckpointError(
        f"{title} has its weights only as a pickle ({pickle}), and loading a pickle can run any program. "
        "Convert it to model.safetensors where you trust it, with transformers' save_pretrained."
    )


def file_header(file: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a safetensors file; checks that the file is as long as its header says."""
    size = file.stat().st_size
    damaged = f"{file} is damaged or was not fetched whole"
    try:
        with open_regular(file) as stream:
            length = header_length(stream.read(8), size)
            shapes, end = parse_header(stream.read(length))
    except OverflowError as cause:
        raise CheckpointError(f"{damaged}: {cause}. Fetch it again.") from cause
    except (OSError, ValueError) as cause:
        raise CheckpointError(f"{damaged}: its header cannot be read. Fetch it again.") from cause
    if 8 + length + end != size:
        raise CheckpointError(
            f"{damaged}: its header describes {8 + length + end:,} bytes, the file has {size:,}. Fetch it again."
        )
    return shapes


def header_length(start: bytes, size: int) -> int:
    """How long the header is, by the first 8 bytes of a safetensors file of `size` bytes.

    Raises:
        OverflowError: longer than the file, or than any header may be.
    """
    length = int(struct.unpack("<Q", start)[0]) if len(start) == 8 else size
    if 8 + length > size:
        raise OverflowError(f"{size:,} bytes hold no complete header")
    if length > _HEADER_BYTES:
        raise OverflowError(f"its header is larger than {_HEADER_BYTES >> 20} MB; no such header is")
    return length


def parse_header(header: bytes) -> tuple[dict[str, tuple[int, ...]], int]:
    """Names and shapes of the tensors, and how many bytes of them follow the header.

    Raises:
        ValueError: no header of a safetensors file.
    """
    try:
        if header.count(b"data_offsets") > _MOST_TENSORS:
            raise ValueError(f"more than {_MOST_TENSORS:,} tensors")
        entries = json.loads(header)
        if not isinstance(entries.pop("__metadata__", {}), dict):
            raise TypeError("metadata that are no table")
        shapes = {name: tuple(int(n) for n in entry["shape"]) for name, entry in entries.items()}
        spans = sorted((*map(int, entry["data_offsets"]), name) for name, entry in entries.items())
        end = 0
        for first, last, name in spans:  # without gaps or overlaps, each as long as its shape says
            bits = _BITS[entries[name]["dtype"]] * math.prod(shapes[name])
            if first != end or 8 * (last - first) != bits or min(shapes[name], default=0) < 0:
                raise ValueError(f"{name} does not lie where it should")
            end = last
    except (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError) as cause:
        raise ValueError("no header of a safetensors file") from cause
    return shapes, end


def wrong_count(config: dict[str, Any]) -> str:
    """Which number of layers, heads and the like in a config is no valid count, as a clause; "" where all are."""
    for half in (config, *(config[name] for name in _HALVES if isinstance(config.get(name), dict))):
        for name in _COUNTS:
            found = half.get(name)
            is_count = isinstance(found, int) and not isinstance(found, bool) and found > 0
            if found is not None and not is_count and not isinstance(found, list):  # a list has one for each layer
                value = json.dumps(found)
                shown = value if len(value) <= 40 else f"{value[:39]}…"
                return f"{name} is {shown} and should be a whole number above 0"
    return ""


def check_texts(folder: Path, accounted: Accounted) -> None:
    """Check the files beside the weights before a library reads them.

    Raises:
        CheckpointError: one is larger than any valid one, holds more values, or is no regular file.
    """
    for path in sorted((*folder.iterdir(), *folder.glob("additional_chat_templates/*"))):
        if path.name in _UNREAD:
            continue
        check_regular(path)
        if path.suffix not in _TEXTS or not path.is_file():
            continue
        most = JSON_BYTES if path.name in _SETTINGS or path.suffix == ".jinja" else TEXT_BYTES
        if path.stat().st_size > most:
            raise CheckpointError(
                f"{path} is larger than {most >> 20} MB; no such file is. It was not read. Fetch it again."
            )
        is_table = path.suffix == ".json" and path.name in (*TOKENIZERS, *_SETTINGS)  # no library reads others
        many = too_large_for_vocabulary(path.read_bytes(), accounted) if is_table else ""
        if many:
            raise CheckpointError(f"{path} is no file that a program writes: {many}. It was not read. Fetch it again.")


def check_regular(path: Path) -> None:
    """Refuse what would be waited for or read without end.

    Raises:
        CheckpointError: a pipe, a device or a socket lies at `path`.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing, or links in a ring
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CheckpointError(f"{path} is a pipe or a device, and no file. It was not read. Put the file in its place.")


def is_endless_number(cause: BaseException) -> bool:
    """Whether Python refused to read a number for its length: what it says is advice for programmers."""
    return isinstance(cause, ValueError) and "integer string conversion" in str(cause)


def summary(cause: BaseException) -> str:
    """The first line of an error, short enough for a sentence; the second too, where the first ends in a colon."""
    if isinstance(cause, (AttributeError, TypeError)):
        return "it is not built as it should be"  # Python's own words would say nothing of the file
    if isinstance(cause, RecursionError):
        return "it is nested too deeply"
    if isinstance(cause, UnicodeDecodeError):
        return "it is no text"
    if is_endless_number(cause):
        return "it holds a number of thousands of digits"
    lines = [line.strip() for line in str(cause).strip().splitlines() if line.strip()]
    line = lines[0] if lines else type(cause).__name__
    if line.endswith(":") and len(lines) > 1:
        line = f"{line} {_CLASS.sub('', lines[1])}"
    if isinstance(cause, KeyError):
        line = f"there is no {line}"
    return (line if len(line) <= 200 else line[:199] + "…").rstrip(".:")
