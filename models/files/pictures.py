"""Reads a picture for a model to look at.

Files are never trusted: known formats, bounded sizes, a sentence for everything else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from models.files.sample_pictures import path_of, title_of_picture
from models.protocol.errors import InputError

MOST_BYTES = 64 << 20
MOST_PIXELS = 50_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM")


def read_picture(source: str | Path | np.ndarray, channels: int) -> Image.Image:
    """A picture in grey (1 channel) or RGB (3), the right way up, what is transparent on white.

    Args:
        source: a path, "sample:NAME", or an array (height, width) or (height, width, 3 or 4), uint8 or 0 to 1.

    Raises:
        InputError: no picture, one that is broken or too large; the sentence says which.
    """
    if isinstance(source, np.ndarray):
        return _converted(_from_array(source), channels)
    reference = str(source)
    if not reference:
        raise InputError("There is no picture to look at. Open one, or choose a sample.")
    name, path = title_of_picture(reference), path_of(reference)
    try:
        if not path.is_file():
            raise InputError(f"There is no picture {path}. Open another.")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{name} has more than {MOST_BYTES >> 20} MB. Scale the picture down first.")
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise _too_large(name)
            return _converted(ImageOps.exif_transpose(image), channels)
    except InputError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as cause:
        raise _too_large(name) from cause
    except UnidentifiedImageError as cause:
        raise InputError(f"{name} is no picture that can be read: it is none of {', '.join(FORMATS)}.") from cause
    except Exception as cause:  # decoders raise what they like at broken data
        raise InputError(f"{name} is broken, or may not be read. Open another picture.") from cause


def _too_large(name: str) -> InputError:
    return InputError(f"{name} has more than {MOST_PIXELS // 1_000_000} million pixels. Scale the picture down first.")


def _from_array(array: np.ndarray) -> Image.Image:
    shape = array.shape
    if array.ndim not in (2, 3) or array.size == 0 or (array.ndim == 3 and shape[2] not in (1, 3, 4)):
        raise InputError(f"An array of shape {shape} is no picture: it is (height, width) or (height, width, 3).")
    if array.shape[0] * array.shape[1] > MOST_PIXELS:
        raise _too_large("The array")
    if array.dtype != np.uint8:
        if not (np.issubdtype(array.dtype, np.floating) and bool(((array >= 0) & (array <= 1)).all())):
            raise InputError("A picture's numbers are uint8, or real numbers from 0 to 1. Convert the array first.")
        array = np.round(array * 255).astype(np.uint8)
    return Image.fromarray(array[..., 0] if array.ndim == 3 and shape[2] == 1 else array)


def _converted(image: Image.Image, channels: int) -> Image.Image:
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if channels == 1 else "RGB")
