"""The lines that read a picture and prepare it for a vision model, as the program does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from transformers.image_utils import load_image

from attention_models.files.sample_pictures import path_of
from attention_models.forward.trace import Trace
from attention_models.forward.vision import VisionModel
from attention_models.protocol.errors import InputError
from attention_models.scripts.script_text import Script


def prepare(script: Script, model: VisionModel, trace: Trace) -> None:
    """Two sections that end with `pixels`, (1, channels, height, width), as the model was given them.

    Raises:
        InputError: the picture is no file, or is not what was read any longer.
    """
    if trace.origin is None or trace.origin.picture in (None, "array"):
        raise InputError("This picture came as an array and is no file that a script could open.")
    reference = str(trace.origin.picture)
    given = model.encode(reference).inputs["pixel_values"]
    script.section("the picture on screen")
    script.line(f"path = {str(path_of(reference).resolve())!r}")
    for line in _lines_of(script, model, [reference]):
        script.line(line)
    script.section("the computation")
    processor(script, model)
    shape = f"({', '.join(map(str, given.shape))})"
    script.line('pixels = processor(images=image, return_tensors="pt")["pixel_values"]', shape)
    if given.dtype != torch.float32:
        script.line(f"pixels = pixels.to({given.dtype})")


def processor(script: Script, model: VisionModel) -> None:
    """Lines after which `processor` is what prepares pictures for the model."""
    script.uses("from transformers import AutoImageProcessor")
    options = (repr(model.info.folder), "local_files_only=True", 'backend="pil"')
    lines = ("processor = AutoImageProcessor.from_pretrained(", *(f"    {option}," for option in options), ")")
    script.line("\n".join(lines), f"a {type(model.processor).__name__}")


def reading_of(script: Script, model: VisionModel, references: Sequence[str]) -> tuple[str, ...]:
    """Writes `texts`, the paths of some pictures; lines that make `image` of a `path`. Raises as `prepare`."""
    paths = [f"    {str(path_of(reference).resolve())!r}," for reference in references]
    script.line("\n".join(["texts = [", *paths, "]"]), "pictures")
    return _lines_of(script, model, references)


def _lines_of(script: Script, model: VisionModel, references: Sequence[str]) -> tuple[str, ...]:
    for imports, lines, read in _WAYS:
        if all(_gives(model, read, reference) for reference in references):
            script.uses(*imports)
            return lines
    raise InputError("No few lines read this picture as it was read here. Save it as PNG in 8 bits, and open that.")


def _gives(model: VisionModel, read: Callable[[str], Image.Image], reference: str) -> bool:
    """Whether reading the file this way gives what the model was given."""
    wanted = model.encode(reference).inputs["pixel_values"]
    try:
        image = read(str(path_of(reference)))
        pixels: Tensor = model.processor(images=image, return_tensors="pt")["pixel_values"]
    except Exception:  # a grey picture to a model of colours, say: whatever a processor raises
        return False
    return pixels.shape == wanted.shape and bool(torch.equal(pixels.to(wanted.device, wanted.dtype), wanted))


_Way = tuple[tuple[str, ...], tuple[str, ...], Callable[[str], Image.Image]]
"""Imports, lines that end with `image`, and what they do."""


def _rgb(path: str) -> Image.Image:
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def _grey(path: str) -> Image.Image:
    return _rgb(path).convert("L")


def _of_16_bits(path: str) -> Image.Image:
    deep = np.asarray(ImageOps.exif_transpose(Image.open(path))).clip(0, 65535).astype(np.uint32)
    return Image.fromarray(((deep + 128) // 257).astype(np.uint8))


_PIL = ("from PIL import Image, ImageOps",)
_DEEP = (
    "deep = np.asarray(ImageOps.exif_transpose(Image.open(path))).clip(0, 65535).astype(np.uint32)",
    "image = Image.fromarray(((deep + 128) // 257).astype(np.uint8))  # 16 bits of grey scaled to 8",
)
_WAYS: tuple[_Way, ...] = (
    (("from transformers.image_utils import load_image",), ("image = load_image(path)",), load_image),
    (_PIL, ('image = ImageOps.exif_transpose(Image.open(path)).convert("RGB").convert("L")  # grey',), _grey),
    (("import numpy as np", *_PIL), (*_DEEP, 'image = image.convert("RGB")'), lambda p: _of_16_bits(p).convert("RGB")),
    (("import numpy as np", *_PIL), _DEEP, _of_16_bits),
)
