"""Vision checkpoints of a few thousand random weights, saved as real ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoImageProcessor

_VIT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "image_size": 24,
    "patch_size": 8,
    "num_channels": 3,
}
_BEIT = {**_VIT, "use_relative_position_bias": True, "layer_scale_init_value": 0.1}
_NO_BIAS = {"use_relative_position_bias": False}
_TEXT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 99}
_SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}
_LABELS = {"id2label": {0: "cat", 1: "dog", 2: "ship"}, "label2id": {"cat": 0, "dog": 1, "ship": 2}}

KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vit": ("ViTForImageClassification", "ViTConfig", {**_VIT, **_LABELS}),
    "vit_grey": ("ViTForImageClassification", "ViTConfig", {**_VIT, **_LABELS, "num_channels": 1}),
    "vit_bare": ("ViTModel", "ViTConfig", _VIT),
    "deit": ("DeiTForImageClassificationWithTeacher", "DeiTConfig", {**_VIT, **_LABELS}),
    "dinov2": ("Dinov2Model", "Dinov2Config", _VIT),
    "dinov2_registers": ("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", {**_VIT, "num_register_tokens": 2}),
    "dinov2_classes": ("Dinov2ForImageClassification", "Dinov2Config", {**_VIT, **_LABELS}),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", _VIT),
    "clip": ("CLIPModel", "CLIPConfig", {"vision_config": _VIT, "text_config": _TEXT, "projection_dim": 16}),
    "siglip_vision": ("SiglipVisionModel", "SiglipVisionConfig", _VIT),
    "beit": ("BeitForImageClassification", "BeitConfig", {**_BEIT, **_LABELS}),  # a bias by distance, in each layer
    "beit_shared": ("BeitModel", "BeitConfig", {**_BEIT, "use_shared_relative_position_bias": True, **_NO_BIAS}),
    "data2vec": ("Data2VecVisionForImageClassification", "Data2VecVisionConfig", {**_BEIT, **_LABELS}),
    "data2vec_bare": ("Data2VecVisionModel", "Data2VecVisionConfig", _BEIT),
    "swin": ("SwinForImageClassification", "SwinConfig", {**_SWIN, **_LABELS}),  # looks within windows
    "swinv2": ("Swinv2ForImageClassification", "Swinv2Config", {**_SWIN, **_LABELS}),
    "pvt": (  # keys are fewer than queries
        "PvtForImageClassification",
        "PvtConfig",
        {
            "image_size": 32,
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [16, 16, 16, 16],
            "num_attention_heads": [1, 2, 2, 2],
        },
    ),
    "mobilevit": (  # patches look only at those in the same place of their cells
        "MobileViTForImageClassification",
        "MobileViTConfig",
        {"image_size": 64, "hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 8, 8, 8, 8, 16], **_LABELS},
    ),
}


def save(kind: str, folder: Path) -> Path:
    """Write a vision checkpoint of random weights and how pictures are prepared for it to `folder`."""
    architecture, config, settings = KINDS[kind]
    torch.manual_seed(0)
    module = getattr(transformers, architecture)(getattr(transformers, config)(**settings))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)  # small ones would make heads that are all alike
    module.save_pretrained(folder)
    size = settings.get("vision_config", settings)
    side, channels = size["image_size"], size.get("num_channels", 3)
    processor = transformers.ViTImageProcessor(
        size={"height": side, "width": side}, image_mean=[0.5] * channels, image_std=[0.5] * channels
    )
    processor.save_pretrained(folder)
    return folder


def eager_run(folder: Path, pixels: torch.Tensor, kind: str) -> Any:
    """What transformers' own eager forward gives, with `attentions`."""
    module = getattr(transformers, KINDS[kind][0]).from_pretrained(folder, attn_implementation="eager").eval()
    module = module.vision_model if kind == "clip" else module
    with torch.no_grad():
        return module(pixel_values=pixels, output_attentions=True)


def own_pixels(folder: Path, picture: Any) -> torch.Tensor:
    """The picture as transformers prepares it."""
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels: torch.Tensor = processor(images=picture, return_tensors="pt")["pixel_values"]
    return pixels
