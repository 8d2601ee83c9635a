"""The table of families in docs/flow.md says what is read of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.flow.table import every_model, table

DOCS = Path(__file__).parents[3] / "docs" / "flow.md"


@pytest.mark.full
def test_the_table_is_what_is_read(tmp_path):
    written = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert written == table(every_model(tmp_path))
