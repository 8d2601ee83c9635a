"""Where the program's data lies: at the root of a source tree, inside the package when installed."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def resource(name: str) -> Path:
    """A file in `resources/`. Raises FileNotFoundError, naming both places looked in."""
    return _found(f"resources/{name}")


def documents() -> Path:
    """The folder `docs/`. Raises FileNotFoundError, naming both places looked in."""
    return _found("docs")


def _found(name: str) -> Path:
    places = (_HERE / name, _HERE.parents[1] / name)
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(f"{name} is neither at {places[0]} nor at {places[1]}: the installation is incomplete.")
