"""Statements of lessons: what they mean, and what is none."""

from __future__ import annotations

import pytest

from attention_explorer.session.statements import statement

FIGURES: dict[str, float | str] = {"p": 0.25, "q": 0.5, "says": "Tom"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("p < q", True),
        ("p > q", False),
        ("p = 0.25", True),
        ("p = q / 2", True),
        ("q > p * 1.9", True),
        ("q > p * 2", False),
        ("p >= 0.25 and q <= 0.5", True),
        ("p >= 0.25 and q < 0.5", False),
        ("says = 'Tom'", True),
        ("says != 'Anna'", True),
        ("says = 'tom'", False),
        ("says > 'Anna'", False),
        ("p != 1e-3", True),
    ],
)
def test_what_holds(text: str, holds: bool) -> None:
    assert statement(text).holds(FIGURES) is holds


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("says = 'Tom'", ("says", "Tom")),
        ("says != 'Tom'", None),
        ("p = 0.5", None),
        ("says = 'Tom' and p < 1", None),
        ("says = other", None),
    ],
)
def test_the_word_that_it_says_a_figure_is(text: str, word: tuple[str, str] | None) -> None:
    assert statement(text).word == word


def test_the_names_that_it_needs() -> None:
    assert statement("p < q / 2 and says = 'q or r'").names == {"p", "q", "says"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "p", "p < ", "p < q < 1", "p == q", "__import__('os') = 1", "p.x = 1", "P = 1", "p * 0 = 1"),
        *("p = 'it's'", "p < 1 or q < 1", "p = (q)", "p < " + "9" * 400),
    ],
)
def test_what_is_no_statement(text: str) -> None:
    with pytest.raises(ValueError, match=r"no statement|no figure's name|by 0|too long"):
        statement(text)
