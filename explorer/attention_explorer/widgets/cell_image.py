"""From numbers to pixels: one byte a cell, then a picture of any size.

A code of 0 stands for "no value here" (masked, or not computed) and stays transparent. The other 255 codes rank the
values by their distance from zero, so that where many cells share one pixel the largest code is the one that matters
most: a single strong weight among two thousand stays visible, and so does a strong negative one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage, QPainter

from attention_explorer.look.colour_maps import ColourTable


def is_of_other_scale(painter: QPainter, ratio: float) -> bool:
    """Whether a picture of `ratio` device pixels a logical one would blur: a projector or a lens has another scale."""
    return abs(painter.deviceTransform().m11() - ratio) > 1e-3 * ratio


Codes = NDArray[np.uint8]

_TOP_LEVEL = 254  # levels run from 0 to this one


def encode(values: NDArray[np.float32], low: float, high: float, masked: NDArray[np.bool_] | None = None) -> Codes:
    """One code a cell, in the shape of `values`. Values beyond low or high take the colour at that end."""
    span = high - low
    level = np.subtract(values, low, dtype=np.float32)
    with np.errstate(invalid="ignore"):  # an infinite value over an empty range becomes a NaN: not drawn
        level *= _TOP_LEVEL / span if span > 0 else 0.0
    missing = np.isnan(level)
    if masked is not None:
        missing |= masked
    np.clip(level, 0, _TOP_LEVEL, out=level)
    level += 0.5
    level[missing] = 0
    codes = level.astype(np.uint8)
    order = _level_order(low, high)
    rank = np.empty(256, dtype=np.uint8)
    rank[order] = np.arange(1, _TOP_LEVEL + 2)
    codes = rank.take(codes)
    codes[missing] = 0
    return codes


def colours(table: ColourTable, low: float, high: float) -> list[int]:
    """The colour of every code, as QRgb, for an Indexed8 image; code 0 is transparent."""
    chosen = table[np.round(_level_order(low, high) * (255 / _TOP_LEVEL)).astype(int)]  # (255, 3)
    return [0, *packed(chosen)]


def packed(rows: ColourTable) -> list[int]:
    """Rows of red, green and blue as opaque QRgb."""
    red, green, blue = rows.astype(np.uint32).T
    colours: list[int] = (np.uint32(0xFF000000) | (red << 16) | (green << 8) | blue).tolist()
    return colours


def _level_order(low: float, high: float) -> NDArray[np.int64]:
    """Levels sorted by their distance from the value zero. (255,)"""
    levels = np.arange(_TOP_LEVEL + 1)
    zero = 0.0 if high <= low else float(np.clip(-low / (high - low) * _TOP_LEVEL, 0, _TOP_LEVEL))
    return np.argsort(np.abs(levels - zero), kind="stable")


def stretch(codes: Codes, axis: int, offset: float, size: float, pixels: int) -> Codes:
    """Draw one axis of cells in `pixels` pixels: cells of `size` pixels, starting `offset` cells in.

    A cell of a pixel or more is repeated; where cells are smaller, a pixel shows the largest code of those it covers.
    """
    count = codes.shape[axis]
    if size >= 1:
        index = np.floor(offset + (np.arange(pixels) + 0.5) / size).astype(np.intp)
        repeated: Codes = np.take(codes, np.clip(index, 0, count - 1), axis=axis)
        return repeated
    edges = np.clip(np.floor(offset + np.arange(pixels + 1) / size + 1e-9).astype(np.intp), 0, count)
    first = np.minimum(edges[:-1], count - 1)
    last = np.maximum(edges[1:] - 1, first)
    largest: Codes = np.take(codes, first, axis=axis)
    for further in range(1, int((last - first).max()) + 1):  # a few takes of whole lines, far faster than reduceat
        np.maximum(largest, np.take(codes, np.minimum(first + further, last), axis=axis), out=largest)
    return largest


def to_image(codes: Codes, code_colours: list[int]) -> QImage:
    """A picture with one pixel a code. codes: (height, width)."""
    height, width = codes.shape
    stride = -(-width // 4) * 4  # QImage wants every line to start on four bytes
    padded = np.zeros((height, stride), dtype=np.uint8)
    padded[:, :width] = codes
    indexed = QImage(padded.data, width, height, stride, QImage.Format.Format_Indexed8)
    indexed.setColorTable(code_colours)
    return indexed.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
