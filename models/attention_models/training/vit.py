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

import torch
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification

from attention_models.training.common import Batch, Recipe, command_line, save, start, train
from attention_models.training.pictures import (
    Pictures,
    normalized,
    read_cifar10,
    read_quickdraw,
    varied_drawings,
    varied_photographs,
)


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
