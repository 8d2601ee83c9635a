"""What a picture is called: the path of a file, or "sample:NAME" for one that comes with the program. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attention_models.protocol.errors import InputError

SAMPLES = Path(__file__).parents[1] / "samples"
PREFIX = "sample:"
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".ppm", ".pgm"})
"""Of the files that are taken for pictures."""
MOST_BYTES = 64 << 20
"""Of a picture's file."""


@dataclass(frozen=True, slots=True)
class Sample:
    reference: str  # "sample:chelsea"
    title: str
    path: Path


@cache
def samples(channels: int) -> tuple[Sample, ...]:
    """Sample pictures for a model with this many channels: drawings for one, photos for three."""
    folder = SAMPLES / ("drawings" if channels == 1 else "photos")
    return tuple(
        Sample(f"{PREFIX}{path.stem}", path.stem.replace("-", " "), path)
        for path in sorted(folder.iterdir())
        if path.suffix in SUFFIXES
    )


def default_picture(channels: int) -> str:
    """The picture that a vision model starts with; "" where no samples are installed."""
    found = {sample.reference for sample in samples(channels)}
    return next((name for name in ("sample:chelsea", "sample:fish-1") if name in found), "")


def path_of(reference: str) -> Path:
    """The file that `reference` names.

    Raises:
        InputError: no sample of that name.
    """
    if not reference.startswith(PREFIX):
        return Path(reference).expanduser()
    found = next((s for channels in (3, 1) for s in samples(channels) if s.reference == reference), None)
    if found is None:
        raise InputError(f"There is no sample picture “{reference.removeprefix(PREFIX)}”. Open a picture of your own.")
    return found.path


def reference_of(typed: str) -> str:
    """What a person may mean by a file's name: the sample of that title where there is no such file."""
    if not typed or typed.startswith(PREFIX) or Path(typed).expanduser().exists():
        return typed
    named = typed.replace(" ", "-")
    found = next((s for channels in (3, 1) for s in samples(channels) if s.path.stem == named), None)
    return typed if found is None else found.reference


def title_of_picture(reference: str) -> str:
    """What to call a picture in a sentence: a sample's name, or the name of its file."""
    if reference.startswith(PREFIX):
        return reference.removeprefix(PREFIX).replace("-", " ")
    return Path(reference).name
