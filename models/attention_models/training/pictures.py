"""The pictures the vision transformers learn from: read, split, and varied at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
HELD_OUT_DRAWINGS = 2_000


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures with labels, split. Pixels are uint8, 0..255."""

    classes: tuple[str, ...]
    train: Tensor  # (pictures, channels, height, width)
    train_labels: Tensor  # (pictures,)
    held_out: Tensor
    held_out_labels: Tensor


def read_cifar10(folder: Path) -> Pictures:
    """CIFAR-10 as mosaics `cifar_{train,test}_<i>.webp` of pictures of 32 x 32 pixels, labels in `cifar_<split>_y.npy`.

    A mosaic is read row by row. Raises FileNotFoundError where a split is missing.
    """
    train, test = (_read_mosaics(folder, name) for name in ("train", "test"))
    return Pictures(CIFAR10_CLASSES, *train, *test)


def _read_mosaics(folder: Path, name: str) -> tuple[Tensor, Tensor]:
    count = len(list(folder.glob(f"cifar_{name}_*.webp")))
    if not count:
        raise FileNotFoundError(f"no mosaic cifar_{name}_0.webp in {folder}")
    tiles = []
    for i in range(count):  # by number: the labels follow that order, file names need not
        with Image.open(folder / f"cifar_{name}_{i}.webp") as image:
            mosaic = np.asarray(image.convert("RGB"))  # (rows x 32, columns x 32, channels)
        rows, columns = mosaic.shape[0] // 32, mosaic.shape[1] // 32
        grid = mosaic.reshape(rows, 32, columns, 32, 3)
        tiles.append(grid.transpose(0, 2, 4, 1, 3).reshape(-1, 3, 32, 32))
    labels = np.load(folder / f"cifar_{name}_y.npy").astype(np.int64)
    return torch.from_numpy(np.concatenate(tiles)), torch.from_numpy(labels)


def read_quickdraw(folder: Path) -> Pictures:
    """Drawings from `quickdraw10.npz`: `x` (drawings, 28, 28) uint8, `y` (drawings,), `classes`.

    2,000 are held out, or a tenth where there are few.
    """
    with np.load(folder / "quickdraw10.npz") as data:
        drawings, labels, classes = data["x"], data["y"].astype(np.int64), tuple(map(str, data["classes"]))
    order = np.random.default_rng(0).permutation(len(drawings))
    held = min(HELD_OUT_DRAWINGS, len(drawings) // 10)
    x, y = torch.from_numpy(drawings[order])[:, None], torch.from_numpy(labels[order])
    return Pictures(classes, x[held:], y[held:], x[:held], y[:held])


def normalized(pixels: Tensor) -> Tensor:
    """Pixels 0..255 to -1..1, float32."""
    return pixels.float() / 127.5 - 1


def varied_photographs(pixels: Tensor) -> Tensor:
    """Shift, mirror, change brightness and contrast, and cover a square, each at random.

    (pictures, channels, side, side) to the same, float32, 0..255.
    """
    count, channels, side, _ = pixels.shape
    device = pixels.device
    reach = 4  # pixels a picture may move in each direction
    line = torch.arange(side, device=device)

    def per_picture() -> Tensor:
        return torch.rand(count, 1, 1, 1, device=device)

    padded = torch.nn.functional.pad(pixels.float(), (reach,) * 4)
    down, right = (torch.randint(2 * reach + 1, (count, 1, 1, 1), device=device) for _ in range(2))
    rows = (down + line.view(1, 1, side, 1)).expand(count, channels, side, side + 2 * reach)
    columns = (right + line.view(1, 1, 1, side)).expand(count, channels, side, side)
    moved = padded.gather(2, rows).gather(3, columns)
    moved = torch.where(per_picture() < 0.5, moved.flip(3), moved)

    contrast, brightness = 0.8 + 0.4 * per_picture(), 40 * (per_picture() - 0.5)
    lit = (moved - 127.5) * contrast + 127.5 + brightness

    middle_y, middle_x = (torch.randint(side, (count, 1, 1, 1), device=device) for _ in range(2))
    hole = ((line.view(1, 1, side, 1) - middle_y).abs() < 5) & ((line.view(1, 1, 1, side) - middle_x).abs() < 5)
    return torch.where(hole, 127.5, lit).clamp(0, 255)


def varied_drawings(pixels: Tensor) -> Tensor:
    """Turn, scale, move and mirror each drawing at random: people draw in any size, place and tilt.

    (drawings, channels, side, side) to the same, float32, 0..255.
    """
    count, device = len(pixels), pixels.device

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, device=device)

    angle, scale = between(-0.25, 0.25), between(0.75, 1.25)
    mirror = torch.where(between(0, 1) < 0.5, -1.0, 1.0)
    top = torch.stack([mirror * scale * angle.cos(), -scale * angle.sin(), between(-0.15, 0.15)], dim=-1)
    bottom = torch.stack([mirror * scale * angle.sin(), scale * angle.cos(), between(-0.15, 0.15)], dim=-1)
    maps = torch.stack([top, bottom], dim=1)  # (drawings, 2, 3)
    grid = torch.nn.functional.affine_grid(maps, list(pixels.shape), align_corners=False)
    return torch.nn.functional.grid_sample(pixels.float(), grid, align_corners=False)
