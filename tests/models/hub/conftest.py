"""A hub of this computer's own: each file of tests says in its fixture `source` what lies there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.hub_server import Hub, reached


@pytest.fixture
def hub(source: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with reached(source, monkeypatch) as hub:
        yield hub
