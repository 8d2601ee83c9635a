"""What is said of a picture's size, held against what the processors of four families do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import transformers
from PIL import Image

from attention_models.forward.vision import fitted

SQUARE = {"height": 24, "width": 24}
PROCESSORS = {
    "vit": lambda: transformers.ViTImageProcessorPil(size=SQUARE),
    "still": lambda: transformers.ViTImageProcessorPil(do_resize=False),
    "clip": lambda: transformers.CLIPImageProcessorPil(size={"shortest_edge": 24}, crop_size=SQUARE),
    "deit": lambda: transformers.DeiTImageProcessorPil(size={"height": 32, "width": 32}, crop_size=SQUARE),
    "cropping": lambda: transformers.CLIPImageProcessorPil(do_resize=False, crop_size=SQUARE),
}


@pytest.mark.parametrize(
    ("kind", "size", "says"),
    [
        ("vit", (52, 30), "52 × 30 squeezed to 24 × 24"),
        ("vit", (96, 96), "96 × 96 scaled to 24 × 24"),
        ("vit", (24, 24), ""),
        ("still", (24, 24), ""),
        ("clip", (52, 30), "52 × 30 scaled to 41 × 24, cut to its middle 24 × 24"),
        ("clip", (30, 52), "30 × 52 scaled to 24 × 41, cut to its middle 24 × 24"),
        ("clip", (24, 30), "24 × 30, cut to its middle 24 × 24"),
        ("clip", (48, 48), "48 × 48 scaled to 24 × 24"),
        ("deit", (52, 30), "52 × 30 squeezed to 32 × 32, cut to its middle 24 × 24"),
        ("cropping", (20, 30), "20 × 30, cut to its middle 24 × 24, black around it to fill 24 × 24"),
    ],
)
def test_the_sentence_is_what_the_processor_does(kind: str, size: tuple[int, int], says: str) -> None:
    processor: Any = PROCESSORS[kind]()
    across = np.linspace(0, 255, size[0]).astype(np.uint8)[None, :, None].repeat(size[1], 0).repeat(3, 2)
    pixels = processor(images=Image.fromarray(across), return_tensors="np")["pixel_values"]
    seen = (pixels.shape[3], pixels.shape[2])
    assert fitted(processor, size, seen) == says
    # a ramp from left to right tells how much of the width is there
    shown = pixels[0, 0] * processor.image_std[0] + processor.image_mean[0] if processor.do_normalize else pixels[0, 0]
    row = shown[shown.shape[0] // 2]
    assert (row.max() - row.min() < 0.9) == ("cut" in says and size[0] > size[1])
