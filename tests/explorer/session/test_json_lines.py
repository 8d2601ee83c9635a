"""The line of a JSON text in which something stands."""

from __future__ import annotations

import pytest

from attention_explorer.session.lesson_files import line_in_json

TEXT = """{
 "title": "a, [{ \\" title",
 "step": [
  {
   "title": "x"
  },
  {
   "title": "y", "show": {
    "layer": 3
   },
   "options": []
  }
 ]
}"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("$", 1), ("$.title", 2), ("$.step", 3), ("$.step[0]", 4), ("$.step[0].title", 5), ("$.step[1]", 7),
        ("$.step[1].title", 8), ("$.step[1].show", 8), ("$.step[1].show.layer", 9), ("$.step[1].options", 11),
        ("$.step[1].nothing", 7), ("$.nothing", 1),
    ],
)  # fmt: skip
def test_it_is_where_it_stands(path: str, line: int) -> None:
    assert line_in_json(TEXT.encode(), path) == line
