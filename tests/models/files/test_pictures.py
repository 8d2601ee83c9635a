"""Pictures that are read, and a sentence for every file that is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attention_models.files import pictures, sample_pictures
from attention_models.files.pictures import read_picture
from attention_models.files.sample_pictures import SAMPLES, default_picture, path_of, samples, title_of_picture
from attention_models.protocol.errors import InputError

RED = np.zeros((4, 6, 3), np.uint8)
RED[:, :, 0] = 200


@pytest.mark.parametrize("suffix", ["png", "bmp", "gif", "webp", "ppm"])
def test_formats(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"red.{suffix}"
    Image.fromarray(RED).save(path, lossless=True) if suffix == "webp" else Image.fromarray(RED).save(path)
    read = read_picture(path, 3)
    assert (read.image.mode, read.image.size) == ("RGB", (6, 4))
    assert np.array_equal(np.asarray(read.image), RED)
    grey = read_picture(str(path), 1)
    assert (grey.image.mode, grey.changes) == ("L", ("colours turned grey",))


def test_what_is_transparent_has_the_colour_below(tmp_path: Path) -> None:
    path = tmp_path / "glass.png"
    Image.fromarray(np.array([[[0, 0, 0, 0], [10, 20, 30, 255]]], np.uint8)).save(path)
    read = read_picture(path, 3)
    assert np.asarray(read.image).tolist() == [[[0, 0, 0], [10, 20, 30]]]
    assert read.changes == ("alpha dropped",)


def test_a_camera_held_sideways(tmp_path: Path) -> None:
    path = tmp_path / "sideways.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.fromarray(RED).save(path, exif=exif)
    assert read_picture(path, 3).image.size == (4, 6)


@pytest.mark.parametrize(
    "array", [RED, RED[..., 0], RED[..., :1], RED / 255, np.dstack([RED, np.full((4, 6), 255, np.uint8)])]
)
def test_arrays(array: np.ndarray) -> None:
    assert read_picture(array, 3).image.size == (6, 4)
    assert read_picture(array, 1).image.size == (6, 4)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((0, 4), np.uint8), "is no picture"),
        (np.zeros((2, 2, 5), np.uint8), "is no picture"),
        (np.zeros(7, np.uint8), "is no picture"),
        (np.full((2, 2), 3.0), "from 0 to 1"),
        (np.full((2, 2), np.nan), "from 0 to 1"),
        (np.zeros((2, 2), np.int64), "from 0 to 1"),
    ],
)
def test_arrays_that_are_no_pictures(array: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_picture(array, 3)


def broken(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "böse datei.png"
    path.write_bytes(content)
    return path


def whole_png(tmp_path: Path) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    path = tmp_path / "whole.png"
    Image.fromarray(noise).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", b"%PDF-1.7", b"<svg xmlns='x'/>"])
def test_files_that_are_no_pictures(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="böse datei"):
        read_picture(broken(tmp_path, content), 3)


def test_half_a_picture(tmp_path: Path) -> None:
    content = whole_png(tmp_path)
    with pytest.raises(InputError, match="is broken"):
        read_picture(broken(tmp_path, content[: len(content) // 2]), 3)


def test_a_format_that_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "scan.tiff"
    Image.fromarray(RED).save(path)
    with pytest.raises(InputError, match="none of PNG, JPEG"):
        read_picture(path, 3)


def test_too_many_pixels_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_PIXELS", 1_000_000)
    path = tmp_path / "huge.png"
    Image.new("1", (1001, 1000)).save(path)
    monkeypatch.setattr(Image.Image, "load", lambda _self: pytest.fail("decoded"))
    with pytest.raises(InputError, match=r"huge\.png has more than 1 million pixels"):
        read_picture(path, 3)


def test_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    Image.new("1", (20_000, 20_000)).save(path)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(InputError, match="50 million pixels"):
        read_picture(path, 3)


def test_too_many_bytes(tmp_path: Path) -> None:
    path = tmp_path / "long.png"
    with path.open("wb") as file:
        file.truncate(sample_pictures.MOST_BYTES + 1)
    with pytest.raises(InputError, match="more than 64 MB"):
        read_picture(path, 3)


@pytest.mark.parametrize("name", ["gone.png", "", "x" * 5000, "a\0b"])
def test_no_such_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="Open"):
        read_picture(str(tmp_path / name), 3)


# --------------------------------------------------------------------------- samples


@pytest.mark.parametrize(("channels", "count", "side"), [(3, 4, 320), (1, 30, 28)])
def test_samples(channels: int, count: int, side: int) -> None:
    found = samples(channels)
    assert len(found) == count
    for sample in found:
        assert path_of(sample.reference) == sample.path
        assert title_of_picture(sample.reference) == sample.title
        assert read_picture(sample.reference, channels).image.size == (side, side)
    assert default_picture(channels) in {sample.reference for sample in found}


def test_samples_are_small_and_their_makers_named() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    card = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in card
    for path in (SAMPLES / "photos").iterdir():
        assert f"photos/{path.name}" in card


# --------------------------------------------------------------------------- what is decoded for minutes


def test_a_line_of_a_pixel(tmp_path: Path) -> None:
    path = tmp_path / "line.png"
    Image.new("1", (1, 70_000)).save(path)
    with pytest.raises(InputError, match=r"line\.png is 1 × 70,000 pixels, and no side may have more than 65,535"):
        read_picture(path, 3)


def test_numbers_that_are_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "typed.ppm"
    path.write_text("P3 2 1 255\n1 2 3\n4 5 6\n")
    assert np.asarray(read_picture(path, 3).image).tolist() == [[[1, 2, 3], [4, 5, 6]]]
    monkeypatch.setattr(pictures, "_MOST_TYPED", 10)
    with pytest.raises(InputError, match=r"typed\.ppm has its numbers written out"):
        read_picture(path, 3)


def test_a_comment_without_end(tmp_path: Path) -> None:
    path = tmp_path / "talks.ppm"
    path.write_bytes(b"P6 # short\n1 1 255\n\1\2\3")
    assert np.asarray(read_picture(path, 3).image).tolist() == [[[1, 2, 3]]]
    path.write_bytes(b"P6 #" + b"x" * 100_000)
    with pytest.raises(InputError, match="a comment in its header goes on"):
        read_picture(path, 3)


def test_scans_without_end(tmp_path: Path) -> None:
    path = tmp_path / "scans.jpg"
    Image.fromarray(RED).save(path, progressive=True)
    content = path.read_bytes()
    last = content.rindex(b"\xff\xda")
    path.write_bytes(content[:last] + content[last:-2] * 200 + content[-2:])
    with pytest.raises(InputError, match=r"scans\.jpg draws its picture in 20\d scans"):
        read_picture(path, 3)


def test_sixteen_bits_of_grey_are_scaled_to_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "deep.png"
    deep = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    Image.fromarray(deep).save(path)
    read = read_picture(path, 1)
    assert np.array_equal(np.asarray(read.image), np.round(deep / 257).astype(np.uint8))
    assert read.changes == ("16 bits of grey scaled to 8",)


def test_frames_of_a_long_gif_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "film.gif"
    frames = [Image.new("RGB", (4, 4), (50 * i, 0, 255 - 50 * i)) for i in range(5)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    assert read_picture(path, 3).changes == ("the first of 5 frames",)
    monkeypatch.setattr(pictures, "_MOST_COUNTED", 10)
    assert read_picture(path, 3).changes == ("the first of several frames",)
