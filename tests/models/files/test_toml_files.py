"""TOML that is not trusted: it says what tomllib says, and a long key is refused before it is parsed."""

from __future__ import annotations

import tomllib

import pytest

from attention_models.files.toml_files import DEEPEST_KEY, decode_toml

LONG = ".".join(["a"] * 1_000)  # tomllib alone takes seconds for a hundred times as many, and all memory
DOTS = "." * 100
QUOTES = '"' * 3


@pytest.mark.parametrize(
    "text",
    [
        f"x = '''{LONG}'''\ny = '{LONG}'\nz = \"{LONG}\" # {LONG}",
        f'x = "\\"{DOTS}"\ny = {QUOTES}"{DOTS}\\"""{DOTS}""\\"{QUOTES}""\nz = 1.5',
        f"x = ''''{DOTS}'''''\nz = 1",
        f"{'.'.join(['a'] * DEEPEST_KEY)} = 1",
        f"[\"a.b\" . '{DOTS}' . c]\nx = [1.5, 2.5, {{a.b = 1.5, c.d = {QUOTES}{DOTS}{QUOTES}}}]",
        "x = [\n" + "1.25,\n" * 100 + "]",
        "",
    ],
)
def test_what_is_no_long_key_is_read_as_tomllib_reads_it(text: str) -> None:
    assert decode_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        f"\n\n{LONG} = 1",
        f"\n\n[{LONG}]",
        f"\n\n[[{LONG}]]",
        f"\n\nx = {{{LONG} = 1}}",
        f"\n\n{LONG.replace('a', QUOTES[:1] + '.' + QUOTES[:1])} = 1",
        f"\n\n{LONG.replace('.', ' . ')} = 1",
        # behind quotes that belong to a text
        f'\n\nx = {{q = {QUOTES}b{QUOTES}", {LONG} = 1}}',
        f'\n\nx = {{q = {QUOTES}b{QUOTES}"", {LONG} = 1}}',
        f"\n\nx = {{q = '''b'''', {LONG} = 1}}",
        f'\n\nx = {{q = "\\\\", {LONG} = 1}}',
        f"\n\nx = {{q = '\\', {LONG} = 1}}",
        f"\n\nx = {{q = \"'\", b = '\"', {LONG} = 1}}",
    ],
)
def test_a_long_key_is_refused_with_its_line_before_it_is_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tomllib.loads(text)  # it is TOML
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("it is parsed"))
    with pytest.raises(tomllib.TOMLDecodeError, match=r"more than 16 parts .* \(at line 3, column \d+\)"):
        decode_toml(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"x = {'[' * 100_000}", "nested too deep"),
        (f"x = {'9' * 5_000}", "thousands of digits"),
        ("x = ", "Invalid value"),
        (f"x = {QUOTES}{DOTS}", "Unterminated string"),
    ],
)
def test_what_cannot_be_read_is_one_kind_of_error(text: str, words: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=words):
        decode_toml(text)
