"""Vision transformers: a picture goes in, cut into patches, and each patch is a token (Dosovitskiy et al. 2021)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from transformers import AutoImageProcessor
from transformers.image_utils import load_image

from attention_models.files import devices
from attention_models.files.bounds import MOST_SIDE
from attention_models.files.memory import KEPT_BYTES, most_tokens
from attention_models.files.names import title_of
from attention_models.files.pictures import read_picture
from attention_models.files.sample_pictures import path_of, title_of_picture
from attention_models.files.weight_files import read_json, summary
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.first_run import check_numbers, what_is_lacking
from attention_models.forward.model import Encoded, Given, Model
from attention_models.forward.output_weights import keep_output_weights
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import CheckpointInfo, SeenPicture, Token

# What an image processor makes of a picture's size, in words.


Size = tuple[int, int]  # width, height


def fitted(processor: Any, size: Size, seen: Size) -> str:
    """How a picture of `size` became one of `seen`: "512 × 300 squeezed to 224 × 224"; "" where it is as it was."""
    scaled = _scaled(processor, size)
    if getattr(processor, "do_center_crop", False):
        kept = _sides(processor.crop_size)
        if kept != seen or scaled is None:
            return _made(size, seen)
        parts = [_resized(size, scaled)] if scaled != size else [_words(size)]
        if scaled[0] > kept[0] or scaled[1] > kept[1]:
            parts.append(f"cut to its middle {_words(kept)}")
        if scaled[0] < kept[0] or scaled[1] < kept[1]:
            parts.append(f"black around it to fill {_words(kept)}")
        return ", ".join(parts) if len(parts) > 1 or scaled != size else ""
    if scaled != seen:
        return _made(size, seen)
    return "" if scaled == size else _resized(size, scaled)


def check_scaled(processor: Any, name: str, size: Size) -> None:
    """Refuse a picture of which `processor` would make one without end: a line of a pixel, scaled by its shorter side.

    Raises:
        InputError: it would have more pixels than a square of `MOST_SIDE`.
    """
    width, height = _scaled(processor, size) or size
    if width * height > MOST_SIDE**2:
        raise InputError(
            f"{name} is {_words(size)} pixels, and the model wants it scaled to {_words((width, height))}: more than "
            f"{_words((MOST_SIDE, MOST_SIDE))}. Cut a part out of it first."
        )


def _scaled(processor: Any, size: Size) -> Size | None:
    """The size after scaling; None where the processor does it by a rule of its own."""
    if not getattr(processor, "do_resize", False):
        return size
    width, height = _sides(processor.size)
    if width and height:
        return width, height
    short = _part(processor.size, "shortest_edge")
    if not short or _part(processor.size, "longest_edge"):
        return None
    along = int(short * max(size) / min(size))
    return (short, along) if size[0] <= size[1] else (along, short)


def _resized(size: Size, scaled: Size) -> str:
    same = math.isclose(size[0] / size[1], scaled[0] / scaled[1], rel_tol=1 / min(scaled))
    return f"{_words(size)} {'scaled' if same else 'squeezed'} to {_words(scaled)}"


def _made(size: Size, seen: Size) -> str:
    return f"{_words(size)} made into {_words(seen)}" if size != seen else ""


def _words(size: Size) -> str:
    return f"{size[0]} × {size[1]}"


def _sides(size: Any) -> Size:
    return _part(size, "width") or 0, _part(size, "height") or 0


def _part(size: Any, name: str) -> int | None:
    return size.get(name) if isinstance(size, Mapping) else getattr(size, name, None)


MOST_PATCHES = 1 << 14
"""Tokens of one picture: attention takes a weight for each two of them."""

# parameters that stand before the patches, and what the tokens made of them are called; in the order they come in
_EXTRA = {
    "cls_token": "CLS",
    "class_embedding": "CLS",
    "distillation_token": "DIST",
    "register_tokens": "REG",
}


class VisionModel(Model):
    """A vision transformer, ready to be run on pictures. Made by `open_checkpoint`.

    Its "vocabulary" are the classes of its head; what it says of the picture it says at every position alike.
    """

    def __init__(self, info: CheckpointInfo, module: nn.Module, processor: Any) -> None:
        super().__init__(info, module, None)
        self.processor = processor
        self._extra = _extra_tokens(module)
        self._last: tuple[tuple[Path, int, int], Encoded] | None = None  # of the last file, and what was read of it

    def encode(self, text: Given, target: str | list[int] | None = None) -> Encoded:
        """Turn a picture (a path, "sample:NAME" or an array) into the model's input.

        Raises:
            InputError: no picture, a broken one or one that is too large.
        """
        if not isinstance(text, (str, Path, np.ndarray)):
            raise InputError(f"{self.info.name} looks at pictures. Give it one.")
        if isinstance(text, np.ndarray) or not str(text):
            return self._encoded(text)
        path = path_of(str(text))
        try:
            stat = path.stat()
            key = (path, stat.st_mtime_ns, stat.st_size)
        except (OSError, ValueError):
            return self._encoded(text)  # which says what is wrong
        if self._last is None or self._last[0] != key:
            self._last = (key, self._encoded(text))
        return self._last[1]

    def _encoded(self, source: str | Path | np.ndarray) -> Encoded:
        read = read_picture(source, self.info.channels)
        name = "The array" if isinstance(source, np.ndarray) else title_of_picture(str(source))
        check_scaled(self.processor, name, read.image.size)
        pixels: Tensor = self.processor(images=read.image, return_tensors="pt")["pixel_values"]  # (1, channels, h, w)
        rows, columns = self._grid(pixels)
        if rows * columns > MOST_PATCHES:
            raise InputError(
                f"{name} is cut into {rows:,} × {columns:,} patches, more than the {MOST_PATCHES:,} that are shown. "
                "Open a model with larger patches."
            )
        places = [f"r{row + 1} c{column + 1}" for row in range(rows) for column in range(columns)]
        tokens = [Token(i, name, "", 0, 0, special=True, label=name) for i, name in enumerate(self._extra)]
        tokens += [Token(len(tokens) + i, name, "", 0, 0, label=name) for i, name in enumerate(places)]
        inputs = {"pixel_values": pixels.to(self.device, self.dtype)}
        fit = fitted(self.processor, read.image.size, (pixels.shape[3], pixels.shape[2]))
        seen = SeenPicture(
            self._shown(pixels[0]),
            rows=rows,
            columns=columns,
            first=len(self._extra),
            changes=tuple(filter(None, (fit, *read.changes))),
        )
        return Encoded(inputs, tuple(tokens), picture=seen)

    def own_input(self, source: str) -> Tensor | None:
        """What transformers itself makes of a file, (1, channels, height, width) as the model takes it.

        None where it makes nothing of it: it turns each file into RGB, which a model of one channel cannot take, and
        cuts 16 bits of grey to white.
        """
        with Image.open(path_of(source)) as image, warnings.catch_warnings():
            if self.info.channels != 3 or image.mode == "I" or image.mode.startswith("I;16"):
                return None
            warnings.simplefilter("ignore")  # PIL's, of transparency that is dropped
            pixels: Tensor = self.processor(images=load_image(image), return_tensors="pt")["pixel_values"]
        return pixels.to(self.device, self.dtype)

    def _shown(self, pixels: Tensor) -> np.ndarray:
        """What the model sees, with the normalisation taken back: (height, width, 3) uint8."""
        shown = pixels.float()
        if getattr(self.processor, "do_normalize", False):
            mean, deviation = (
                torch.tensor(getattr(self.processor, name)).float()[:, None, None]
                for name in ("image_mean", "image_std")
            )
            shown = shown * deviation + mean
        array = (shown.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).expand(-1, -1, 3).cpu().numpy().copy()
        array.flags.writeable = False
        return np.asarray(array)

    def forward(self, inputs: Mapping[str, Tensor]) -> Any:
        out = super().forward(inputs)
        logits = getattr(out, "logits", None)  # (1, classes), of the picture as a whole
        if logits is not None:
            rows, columns = self._grid(inputs["pixel_values"])
            out.logits = logits[:, None].expand(-1, len(self._extra) + rows * columns, -1)  # (1, tokens, classes)
        return out

    def piece(self, id_: int) -> str:
        """What a class is called."""
        return str(self.config.id2label.get(id_, f"class {id_}"))

    def piece_label(self, id_: int) -> str:
        return self.piece(id_)

    def _grid(self, pixels: Tensor) -> tuple[int, int]:
        """Rows and columns of patches."""
        size = self.config.patch_size
        down, across = (size, size) if isinstance(size, int) else size
        return pixels.shape[2] // down, pixels.shape[3] // across


def open_processor(folder: Path) -> Any:
    """What prepares pictures for the model in `folder`, by PIL: transformers' other ones need torchvision.

    Raises:
        CheckpointError: there is none.
    """
    wrong = _too_large(folder)
    if wrong:
        raise CheckpointError(f"{title_of(folder)}: {wrong}. Correct its preprocessor_config.json, or fetch it again.")
    try:
        return AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False, backend="pil")
    except Exception as cause:
        name = "preprocessor_config.json"
        why = f": {summary(cause)}. Correct its {name}" if (folder / name).exists() else f". Add its {name}"
        raise CheckpointError(f"{title_of(folder)} does not say how pictures are prepared for it{why}.") from cause


def _too_large(folder: Path) -> str:
    """Which size of its preprocessor_config.json no picture is prepared to, as a clause; "" where all will do."""
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return ""
    for name, sizes in read_json(path, "").items():
        if name.endswith("size"):
            for side in sizes.values() if isinstance(sizes, dict) else sizes if isinstance(sizes, list) else (sizes,):
                if isinstance(side, int) and not 0 < side <= MOST_SIDE:
                    return f"{name} asks for pictures of {side:,} pixels a side, and 1 to {MOST_SIDE:,} are prepared"
    return ""


def open_vision(info: CheckpointInfo, module: nn.Module, folder: Path) -> VisionModel:
    """A vision model of what was loaded from `folder`.

    Raises:
        CheckpointError: its image processor cannot be read, or its tokens are not a grid of patches.
    """
    model = VisionModel(info, module, open_processor(folder))
    blank = np.zeros((32, 32, info.channels), np.uint8)
    recorder = Recorder(model.module_names)
    try:
        encoded = model.encode(blank)
        count = len(encoded.tokens)
        if info.weights_only and count > most_tokens(info.stacks):
            raise InputError(
                f"{count:,} patches have more weights than can be kept ({KEPT_BYTES / 1e9:.0f} GB at most)"
            )
        with torch.no_grad(), recording(recorder):
            out = model.forward(encoded.inputs)
    except Cancelled:
        raise
    except Exception as cause:
        if devices.is_out_of_memory(cause):
            raise  # its own sentence, with other devices to choose from
        raise CheckpointError(
            f"{title_of(folder)} cannot be run on a picture: {summary(cause)}. Open another checkpoint."
        ) from cause
    check_numbers(info.name, out)
    if not _is_plain(model, recorder, out, count):
        raise CheckpointError(
            f"{title_of(folder)}: {info.model_type} does not let every patch look at every other, in all layers alike, "
            "so its attention cannot be drawn on one picture. Open a plain vision transformer."
        )
    return model


def _is_plain(model: VisionModel, recorder: Recorder, out: Any, count: int) -> bool:
    """Whether every layer has a weight for each of the `count` tokens to attend to each other."""
    if model.info.weights_only:
        try:
            keep_output_weights(model, recorder, out, count)
        except InputError:
            return False
        if what_is_lacking(model, recorder):
            return False
    parts = ((x.query if x.precomputed is None else x.precomputed, x) for x in recorder.inputs)
    return {(part.shape[0], x.queries, x.keys) for part, x in parts} == {(1, count, count)}


def _extra_tokens(module: nn.Module) -> tuple[str, ...]:
    """The tokens that stand before the patches."""
    found: list[str] = []
    for name, label in _EXTRA.items():
        for parameter_name, parameter in module.named_parameters():
            if parameter_name.rpartition(".")[2] == name:
                count = parameter.shape[1] if name == "register_tokens" else 1
                found += [label] if count == 1 else [f"{label} {i + 1}" for i in range(count)]
    return tuple(found)
