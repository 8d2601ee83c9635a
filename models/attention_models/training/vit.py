"""vit-cifar10 and vit-quickdraw: small vision transformers.

python -m attention_models.training.vit cifar10 --data cifar10 --out vit-cifar10 --seconds 340
python -m attention_models.training.vit quickdraw --data . --out vit-quickdraw --seconds 1200 \\
    --layers 4 --heads 4 --width 128
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification

from attention_models.training.common import Batch, Recipe, command_line, save, start, train

# The pictures the vision transformers learn from: read, split, and varied at random.


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


@dataclass(frozen=True, slots=True)
class Setting:
    """What differs between the two beside their size."""

    read: Callable[[Path], Pictures]
    vary: Callable[[Tensor], Tensor]
    balanced: bool  # draw every class equally often
    decay: float
    smoothing: float


SETTINGS = {
    "cifar10": Setting(read_cifar10, varied_photographs, balanced=False, decay=0.1, smoothing=0.1),
    "quickdraw": Setting(read_quickdraw, varied_drawings, balanced=True, decay=0.05, smoothing=0.05),
}


def chances(labels: Tensor, balanced: bool) -> Tensor:
    """The chance of each picture to be drawn, up to a factor. (pictures,)"""
    return 1 / torch.bincount(labels).float()[labels] if balanced else torch.ones(len(labels), device=labels.device)


def write_preprocessing(folder: Path, channels: int, side: int) -> None:
    """preprocessor_config.json: resize, scale to 0..1, then to -1..1."""
    settings = {
        "image_processor_type": "ViTImageProcessor",
        "do_convert_rgb": channels == 3,
        "do_resize": True,
        "size": {"height": side, "width": side},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * channels,
        "image_std": [0.5] * channels,
        "resample": 2,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    parser = command_line("Train a vision transformer.", layers=6, heads=6, width=192, batch=128)
    parser.add_argument("pictures", choices=sorted(SETTINGS), help="what to learn from")
    options = parser.parse_args(argv)
    budget, device = start(options)

    setting = SETTINGS[options.pictures]
    pictures = setting.read(options.data)
    images, labels = pictures.train.to(device), pictures.train_labels.to(device)
    held_out_images, held_out_labels = pictures.held_out.to(device), pictures.held_out_labels.to(device)
    chance = chances(labels, setting.balanced)
    _, channels, side, _ = images.shape
    model = ViTForImageClassification(
        ViTConfig(
            image_size=side,
            patch_size=4,
            num_channels=channels,
            hidden_size=options.width,
            num_hidden_layers=options.layers,
            num_attention_heads=options.heads,
            intermediate_size=4 * options.width,
            hidden_dropout_prob=0.05,
            attention_probs_dropout_prob=0.0,
            id2label=dict(enumerate(pictures.classes)),
            label2id={name: i for i, name in enumerate(pictures.classes)},
        )
    )

    def batches() -> Iterator[Batch]:
        while True:
            pick = torch.multinomial(chance, options.batch, replacement=True)
            yield Batch({"pixel_values": normalized(setting.vary(images[pick]))}, labels[pick])

    def held_out() -> Iterator[Batch]:
        for part, part_labels in zip(held_out_images.split(500), held_out_labels.split(500), strict=True):
            yield Batch({"pixel_values": normalized(part)}, part_labels)

    recipe = Recipe(model, batches(), held_out, peak=1.5e-3, decay=setting.decay, smoothing=setting.smoothing)
    train(recipe, budget, device)
    save(model, options.out)
    write_preprocessing(options.out, channels, side)


if __name__ == "__main__":
    main()
