"""Under which name weights are saved. No torch."""

from __future__ import annotations

from pathlib import Path

from attention_models.protocol.errors import ExplorerError

_MEANT = {".npz": (".npz", ".np", ".npy", ".nzp", ".zip"), ".safetensors": (".safetensors", ".safetensor", ".st")}
_OTHERS = frozenset({".csv", ".tsv", ".json", ".txt", ".pt", ".pth", ".bin", ".pkl", ".png", ".h5", ".hdf5", ".mat"})


def path_of_text(path: Path, place: int) -> Path:
    """Where the weights of the text at `place` of several, from 0, go: out-1.npz of out.npz."""
    return path.with_name(f"{path.stem}-{place + 1}{path.suffix}")


def is_ending(suffix: str) -> bool:
    """Whether a name's ending asks for a kind of file: the ".5" of "run 1.5" does not."""
    ending = suffix.lower()
    return ending in _OTHERS or any(ending in meant for meant in _MEANT.values())


def weights_path(path: str | Path) -> Path:
    """`path` with the ending of what can be written: out.np is out.npz, and out is too.

    Raises:
        ExplorerError: it asks for another kind of file.
    """
    path = Path(path)
    ending = path.suffix.lower()
    for right, meant in _MEANT.items():
        if ending in meant:
            return path if ending == right else path.with_suffix(right)
    if ending in _OTHERS or not path.name:
        raise ExplorerError(
            f"Weights are written as .npz or .safetensors, not as “{path.suffix or path}”. "
            "Give a name that ends in one of these."
        )
    return path.with_name(f"{path.name}.npz")
