"""Files of every kind, held against what transformers' own image processor makes of the same file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers.image_utils import load_image

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.files import pictures
from attention_models.files.pictures import ReadPicture, read_picture
from attention_models.forward.vision import VisionModel
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.trust.report import picture_difference
from tests.models import tiny_vision
from tests.models.asking import never, silent

HEIGHT, WIDTH = 30, 52
RGBA = np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def deep_png(path: Path, samples: np.ndarray, colour_type: int) -> Path:
    """A PNG of 16 bits a sample, which PIL cannot write in colours: (height, width, samples)."""
    height, width = samples.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)
    header = struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    return path


def alpha_png(path: Path) -> None:
    Image.fromarray(RGBA).save(path)


def palette_png(path: Path) -> None:
    """Some of its colours transparent, by a table of bytes."""
    image = Image.fromarray(RGBA[..., :3]).quantize(16)
    image.save(path, transparency=bytes(range(0, 256, 16)))


def palette_gif(path: Path) -> None:
    Image.fromarray(RGBA[..., :3]).quantize(16).save(path, transparency=3)


def grey_alpha_png(path: Path) -> None:
    grey, alpha = Image.fromarray(RGBA[..., 0]), Image.fromarray(RGBA[..., 3])
    Image.merge("LA", [grey, alpha]).save(path)


def one_bit_png(path: Path) -> None:
    Image.fromarray(RGBA[..., 0]).convert("1").save(path)


def one_bit_clear_png(path: Path) -> None:
    Image.fromarray(RGBA[..., 0]).convert("1").save(path, transparency=0)


def cmyk_jpeg(path: Path) -> None:
    Image.fromarray(RGBA[..., :3]).convert("CMYK").save(path)


def turned_jpeg(path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(RGBA[..., :3]).save(path, exif=exif)


def turned_alpha_png(path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(RGBA).save(path, exif=exif)


def deep_colour_png(path: Path) -> None:
    deep_png(path, np.random.default_rng(0).integers(0, 65536, (HEIGHT, WIDTH, 3)), 2)


def deep_alpha_png(path: Path) -> None:
    deep_png(path, np.random.default_rng(0).integers(0, 65536, (HEIGHT, WIDTH, 4)), 6)


KINDS: dict[str, tuple[str, Callable[[Path], None], tuple[str, ...]]] = {
    "alpha": ("png", alpha_png, ("alpha dropped",)),
    "palette": ("png", palette_png, ("alpha dropped",)),
    "gif": ("gif", palette_gif, ("alpha dropped",)),
    "grey and alpha": ("png", grey_alpha_png, ("alpha dropped",)),
    "one bit": ("png", one_bit_png, ()),
    "one bit, clear": ("png", one_bit_clear_png, ("alpha dropped",)),
    "cmyk": ("jpg", cmyk_jpeg, ("CMYK turned into RGB",)),
    "turned": ("jpg", turned_jpeg, ("turned as its EXIF says",)),
    "turned, alpha": ("png", turned_alpha_png, ("turned as its EXIF says", "alpha dropped")),
    "16 bits a colour": ("png", deep_colour_png, ("16 bits a colour cut to 8",)),
    "16 bits a colour, alpha": ("png", deep_alpha_png, ("16 bits a colour cut to 8", "alpha dropped")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vision.save("vit", tmp_path_factory.mktemp("vit") / "vit")


@pytest.fixture(scope="module")
def model(folder: Path) -> VisionModel:
    model = open_checkpoint(folder)
    assert isinstance(model, VisionModel)
    return model


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")  # transformers' own reading
@pytest.mark.parametrize("kind", KINDS)
def test_weights_equal_transformers_own_call_with_the_file(
    tmp_path: Path, folder: Path, model: VisionModel, kind: str
) -> None:
    suffix, write, changes = KINDS[kind]
    path = tmp_path / f"picture.{suffix}"
    write(path)
    with Image.open(path) as image:
        pixels = tiny_vision.own_pixels(folder, load_image(image))  # its reading of a path leaves a GIF open
    theirs = tiny_vision.eager_run(folder, pixels, "vit")
    trace = run(model, path)
    for site, weights in zip(trace.sites, theirs.attentions, strict=True):
        for head in range(site.heads):
            np.testing.assert_allclose(trace.weights(site, head), weights[0, head].numpy(), atol=1e-6)
    np.testing.assert_allclose(trace.logits[0], theirs.logits[0].numpy(), atol=1e-5)
    assert trace.picture is not None
    size = (HEIGHT, WIDTH) if kind == "turned" else (WIDTH, HEIGHT)
    assert trace.picture.changes == (f"{size[0]} × {size[1]} squeezed to 24 × 24", *changes)


def on_white(image: Image.Image, channels: int) -> ReadPicture:
    """The planted error: what is transparent is laid on white."""
    image = image.convert("RGBA")
    return ReadPicture(Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB"))


def test_a_lost_alpha_turns_the_strip_red(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "glass.png"
    alpha_png(path)

    def report() -> TrustReport:
        engine = Engine()
        engine.run(LoadRequest(reference=str(folder), ticket=1), never, silent)
        ran = engine.run(ForwardRequest(inputs=RunInputs("", picture=str(path)), ticket=2), never, silent)
        assert isinstance(ran, Ran)
        found = engine.run(TrustRequest(run=2, ticket=3), never, silent)
        assert isinstance(found, TrustReport)
        return found

    right = report()
    assert right.holds
    assert right.input_difference == 0
    monkeypatch.setattr(pictures, "_converted", on_white)
    wrong = report()
    assert not wrong.holds
    assert wrong.input_difference is not None
    assert wrong.input_difference > 0.5
    # all else is as it should be: the wrong picture was run rightly
    assert max(wrong.weight_difference, wrong.logit_difference) <= wrong.tolerance


def test_16_bits_of_grey_are_scaled(tmp_path: Path, model: VisionModel) -> None:
    ramp = np.linspace(0, 65535, HEIGHT * WIDTH).round().astype(np.uint16).reshape(HEIGHT, WIDTH)
    for name in ("ramp.png", "ramp.pgm"):
        path = tmp_path / name
        Image.fromarray(ramp).save(path)
        read = read_picture(path, 3)
        np.testing.assert_array_equal(np.asarray(read.image), np.round(ramp / 257)[..., None].repeat(3, 2))
        assert read.changes == ("16 bits of grey scaled to 8",)
        # transformers' own reading makes it white: nothing to compare with
        assert picture_difference(model, str(path), model.encode(path).inputs["pixel_values"]) is None
        with Image.open(path) as image:
            assert np.asarray(image.convert("RGB")).mean() > 250


def test_the_upper_8_of_16_bits_a_colour(tmp_path: Path) -> None:
    sample = deep_png(tmp_path / "deep.png", np.full((4, 4, 3), 0x0102), 2)
    assert np.asarray(read_picture(sample, 3).image)[0, 0].tolist() == [1, 1, 1]
    samples = np.random.default_rng(1).integers(0, 65536, (9, 9, 3))
    read = np.asarray(read_picture(deep_png(tmp_path / "more.png", samples, 2), 3).image)
    assert float(np.abs(read - samples / 257).max()) <= 1


def test_a_picture_of_no_change_says_none(tmp_path: Path, model: VisionModel) -> None:
    path = tmp_path / "right.png"
    Image.fromarray(RGBA[:24, :24, :3]).save(path)
    assert run(model, path).picture.changes == ()  # type: ignore[union-attr]
    opaque = RGBA[:24, :24].copy()
    opaque[..., 3] = 255
    Image.fromarray(opaque).save(path)
    assert run(model, path).picture.changes == ()  # type: ignore[union-attr]


def test_half_precision_gets_the_same_picture(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "glass.png"
    alpha_png(path)
    model = open_checkpoint(folder, dtype="bfloat16")
    assert isinstance(model, VisionModel)
    pixels = model.encode(path).inputs["pixel_values"]
    assert pixels.dtype == torch.bfloat16
    assert picture_difference(model, str(path), pixels) == 0
