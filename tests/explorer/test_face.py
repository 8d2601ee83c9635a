"""What `import attention_explorer as ax` offers. That it loads neither torch nor Qt: tests/test_import_rules.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import attention_explorer as ax
import attention_models
from attention_explorer import embedded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_it_has_every_name_of_the_mathematics_and_the_window():
    assert set(ax.__all__) == {*attention_models.__all__, "open", "__version__"}
    for name in attention_models.__all__:
        assert getattr(ax, name) is getattr(attention_models, name)
    assert ax.open is embedded.open
    assert set(ax.__all__) <= set(dir(ax))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'attention_explorer' has no attribute 'nonsense'"):
        _ = ax.nonsense  # type: ignore[attr-defined]


def test_the_page_lists_every_name_and_no_other():
    page = PAGE.read_text(encoding="utf-8")
    table = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == {*ax.__all__} - {"__version__"}
    assert set(re.findall(r"\bax\.(\w+)", page)) <= set(ax.__all__)


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
def test_the_code_of_the_page_is_python(block: str):
    compile(block, "docs/python.md", "exec")
