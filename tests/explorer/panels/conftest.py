"""Every test of a panel also holds it to what it says that it reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.explorer.panels.reading import Reading, recorded


@pytest.fixture(scope="package")
def reading() -> Iterator[Reading]:
    with recorded() as reading:
        yield reading


@pytest.fixture(autouse=True)
def nothing_unnamed_is_read(reading: Reading) -> Iterator[None]:
    reading.of.clear()
    yield
    assert reading.undeclared() == {}
