"""Reads a picture for a model, as transformers reads it from a file.

Files are never trusted: known formats, bounded sizes, a sentence for everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageOps, UnidentifiedImageError

from attention_models.files.sample_pictures import MOST_BYTES, path_of, title_of_picture
from attention_models.protocol.errors import InputError

MOST_PIXELS = 50_000_000
LONGEST = 65_535
"""Pixels of a side: what JPEG and GIF have room for. Each line of a picture takes memory besides its pixels."""

_ORIENTATION = 0x0112  # in EXIF
_MOST_TYPED = 8 << 20  # bytes of a PPM file whose numbers are written out, which Python reads one by one
_MOST_COMMENT = 1 << 16  # bytes in which a comment in the header of a PPM file has to end
_MOST_SCANS = 100  # of a JPEG file, each of which goes over the whole picture; programs write ten
_MOST_COUNTED = 1 << 20  # bytes of a GIF file in which frames are counted, one by one
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM")


@dataclass(frozen=True, slots=True)
class ReadPicture:
    """A picture, and what became of it on the way."""

    image: Image.Image  # "L" or "RGB", the right way up
    changes: tuple[str, ...] = ()  # what is not as in the file: "alpha dropped"


def read_picture(source: str | Path | np.ndarray, channels: int) -> ReadPicture:
    """A picture in grey (1 channel) or RGB (3), as transformers reads one from a file.

    It is turned as its EXIF says, and what is transparent gets the colour that stands below. Other than there, 16 bits
    of grey are scaled to 8: transformers cuts all above 255 to white.

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
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise InputError(f"{name} has more than {MOST_BYTES >> 20} MB. Scale the picture down first.")
        _check_start(path, name)
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise _too_large(name)
            if max(image.size) > LONGEST:
                raise InputError(
                    f"{name} is {image.width:,} × {image.height:,} pixels, and no side may have more than {LONGEST:,}. "
                    "Cut a part out of it first."
                )
            _check_work(path, size, image.format, name)
            frames = _frames(image, size)
            changes = [f"the first of {frames} frames"] if frames != "1" else []
            if _has_deep_colours(path):
                changes.append("16 bits a colour cut to 8")
            turned = ImageOps.exif_transpose(image)
            if image.getexif().get(_ORIENTATION, 1) != 1:
                changes.append("turned as its EXIF says")
            read = _converted(turned, channels)
            return ReadPicture(read.image, (*changes, *read.changes))
    except InputError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as cause:
        raise _too_large(name) from cause
    except UnidentifiedImageError as cause:
        raise InputError(f"{name} is no picture that can be read: it is none of {', '.join(FORMATS)}.") from cause
    except Exception as cause:  # decoders raise what they like at broken data
        raise InputError(f"{name} is broken, or may not be read. Open another picture.") from cause


def _check_start(path: Path, name: str) -> None:
    """Refuse a PPM file with a comment in its header that goes on and on: it is read a byte at a time.

    Raises:
        InputError: it does.
    """
    with open(path, "rb") as file:
        start = file.read(_MOST_COMMENT)
    if start[:1] == b"P" and start[1:2].isalnum() and b"#" in start and b"\n" not in start[start.index(b"#") :]:
        raise InputError(f"{name} is broken: a comment in its header goes on without end. Open another picture.")


def _check_work(path: Path, size: int, kind: str | None, name: str) -> None:
    """Refuse what is decoded for minutes.

    Raises:
        InputError: its numbers are written out, or it goes over the picture without end.
    """
    if kind == "PPM" and size > _MOST_TYPED:
        with open(path, "rb") as file:
            if file.read(2) in (b"P1", b"P2", b"P3"):
                raise InputError(
                    f"{name} has its numbers written out, in more than {_MOST_TYPED >> 20} MB. Save it as PNG, or as "
                    "binary PPM."
                )
    if kind == "JPEG":
        scans = path.read_bytes().count(b"\xff\xda")
        if scans > _MOST_SCANS:
            raise InputError(f"{name} draws its picture in {scans:,} scans; no program writes as many. Save it again.")


def _frames(image: Image.Image, size: int) -> str:
    """How many pictures a file of `size` bytes holds, in words."""
    if image.format == "GIF" and size > _MOST_COUNTED:
        return "several" if getattr(image, "is_animated", False) else "1"
    return str(getattr(image, "n_frames", 1))


def _has_deep_colours(path: Path) -> bool:
    """Whether a file is a PNG of 16 bits a colour, of which PIL gives the upper 8."""
    with open(path, "rb") as file:
        header = file.read(26)  # signature, length and name of IHDR, width, height, bit depth, colour type
    return header[:8] == b"\x89PNG\r\n\x1a\n" and header[24] == 16 and header[25] != 0


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


def _converted(image: Image.Image, channels: int) -> ReadPicture:
    changes: list[str] = []
    if image.mode == "I" or image.mode.startswith("I;16"):
        image = Image.fromarray(_scaled_to_bytes(np.asarray(image)))
        changes.append("16 bits of grey scaled to 8")
    if _is_transparent(image):
        changes.append("alpha dropped")
    if image.mode == "CMYK":
        changes.append("CMYK turned into RGB")
    image.info.pop("transparency", None)  # PIL warns of what is dropped on purpose
    image = image.convert("RGB")
    if channels == 1:
        red, green, blue = image.split()
        if any(ImageChops.difference(*pair).getbbox() for pair in ((red, green), (green, blue))):
            changes.append("colours turned grey")
        image = image.convert("L")
    return ReadPicture(image, tuple(changes))


def _scaled_to_bytes(deep: np.ndarray) -> np.ndarray:
    """16 bits of grey as the nearest of 8: x / 257, rounded, a part at a time: the whole would take a gigabyte."""
    scaled = np.empty(deep.shape, np.uint8)
    whole, parts = scaled.reshape(-1), deep.reshape(-1)
    for first in range(0, whole.size, _PART):
        part = parts[first : first + _PART].clip(0, 65535).astype(np.uint32)
        whole[first : first + _PART] = (part + 128) // 257
    return scaled


_PART = 1 << 20


def _is_transparent(image: Image.Image) -> bool:
    """Whether anything would show through."""
    if "transparency" in image.info:
        image = image.convert("RGBA")
    if "A" not in image.getbands():
        return False
    return ImageChops.invert(image.getchannel("A")).getbbox() is not None
