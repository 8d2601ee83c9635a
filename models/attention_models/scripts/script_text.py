"""Puts a script together: numbers that Python reads back bit for bit, lines, and shapes at their ends."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_models.protocol.errors import InputError

NAME = "attention-explorer"
"""This program, as it is installed."""

WIDTH = 120
MOST_NUMBERS = 40_000
"""In one script: more is no longer a text that somebody reads."""

_LETTERS = 96  # of a text on one line
_REMARKS = 56  # the column where remarks begin, where a line leaves room
_INDENT = "    "

_COMPARE = """def compare(name, computed, on_screen):
    for i, (number, shown) in enumerate(zip(computed, on_screen, strict=True)):
        print(f"{name} {i}:", float(number), "  on screen:", shown)
"""


class Script:
    """Lines of Python in the order in which they are added. `title` says what they compute."""

    def __init__(self, title: str, *about: str) -> None:
        self.title = title
        self._imports = ["import torch"]
        self._head = [f"# {printable(line)}" for line in (title, *about) if line]
        self._lines: list[str] = []
        self._numbers = 0
        self._compares = False
        self.advice = "Try a shorter text."
        """What to do where there are more than `MOST_NUMBERS`."""

    def code(self) -> str:
        """The whole script."""
        imports = sorted(_joined(self._imports), key=lambda line: (line.startswith("from"), line))
        helper = ["", *_COMPARE.split("\n")] if self._compares else []
        return "\n".join([*self._head, "", *imports, *helper, "", *self._lines, ""])

    # ------------------------------------------------------------------ lines

    def uses(self, *imports: str) -> None:
        """Import lines that are needed."""
        self._imports += imports

    def section(self, title: str) -> None:
        self._lines += [*([""] if self._lines else []), f"# ---- {printable(title)} ----"]

    def remark(self, text: str) -> None:
        self._lines += [f"# {line}" for line in textwrap.wrap(printable(text), WIDTH - 2)]

    def line(self, code: str, remark: str = "") -> None:
        """One statement, or several; `remark` stands at the end of the first."""
        first, *rest = code.split("\n")
        self._lines += [_remarked(first, remark), *rest]

    def source_of(self, *functions: Callable[..., Any]) -> None:
        """The lines of functions or classes as they stand in their files."""
        for function in functions:
            lines = textwrap.dedent(inspect.getsource(function)).rstrip()
            path = Path(inspect.getsourcefile(inspect.unwrap(function)) or "")
            file = path.as_posix().split("/attention_models/")[-1]
            self._lines += ["", f"# attention_models/{file}", *lines.split("\n"), ""]

    # ------------------------------------------------------------------ numbers

    def number(self, name: str, value: float, remark: str = "") -> None:
        self.line(f"{name} = {_float(value)}", remark)

    def tensor(self, name: str, values: Tensor | np.ndarray, remark: str = "") -> None:
        """`name = torch.tensor(...)`: float32 numbers with every digit that tells them apart, or booleans.

        Raises:
            InputError: the script would have more than `MOST_NUMBERS` numbers.
        """
        array = values.detach().cpu() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
        self._count(array.numel())
        values_of = array.flatten().tolist()
        if array.dtype == torch.bool or not array.is_floating_point():
            texts, kind = [str(value) for value in values_of], ""
        elif array.dtype == torch.float64:
            texts, kind = [_float(value) for value in values_of], "dtype=torch.float64"
        else:
            texts, kind = [_single(value) for value in values_of], ""
        self._lines += _nested(f"{name} = torch.tensor(", texts, tuple(array.shape), kind, remark)

    def rows(self, name: str, rows: Sequence[Sequence[object]], remark: str = "") -> None:
        """`name` as a list of lists of ids, words or tuples, which may be of different length. Errors as `tensor`."""
        self._count(sum(map(len, rows)))
        self._lines.append(_remarked(f"{name} = [", remark))
        for row in rows:
            *lines, last = _filled("[", [repr(value) for value in row], "", _INDENT)
            self._lines += [*lines, f"{last},"]
        self._lines.append("]")

    def values(self, name: str, values: Sequence[object], remark: str = "") -> None:
        """`name` as a list of ids, words or tuples. Errors as `tensor`."""
        self._count(len(values))
        self._lines += _filled(f"{name} = [", [repr(value) for value in values], remark)

    def text(self, name: str, text: str, remark: str = "") -> None:
        """`name` as a string, over several lines where it is long."""
        parts = [text[i : i + _LETTERS] for i in range(0, len(text), _LETTERS)] or [""]
        if len(parts) == 1:
            self.line(f"{name} = {text!r}", remark)
        else:
            self.line("\n".join([f"{name} = (", *(f"{_INDENT}{part!r}" for part in parts), ")"]), remark)

    def _count(self, numbers: int) -> None:
        self._numbers += numbers
        if self._numbers > MOST_NUMBERS:
            raise InputError(
                f"This takes more than {MOST_NUMBERS:,} numbers to compute, too many for a script. {self.advice}"
            )

    def show(self, name: str, code: str, shown: float) -> None:
        """Print what `code` computed beside what is on screen."""
        self.line(f'print("{_in_quotes(name)}:", float({code}), "  on screen:", {_float(shown)})')

    def show_each(self, name: str, code: str, shown: Sequence[float]) -> None:
        """The same of as many numbers as `code` has: “name 0”, “name 1”, …"""
        self._compares = True
        name = _in_quotes(name)
        texts = [str(value) if isinstance(value, int) else _float(value) for value in shown]
        listed = textwrap.wrap(", ".join(texts), WIDTH - 4, break_on_hyphens=False, break_long_words=False)
        whole = f'compare("{name}", {code}, [{" ".join(listed)}])'
        if len(whole) <= WIDTH:
            self.line(whole)
        else:
            self._lines += [f'compare("{name}", {code}, [', *(f"{_INDENT}{line}" for line in listed), "])"]


def _joined(imports: list[str]) -> list[str]:
    """Each line once; what comes from one module in one line."""
    names: dict[str, set[str]] = {}
    for line in imports:
        module, _, named = line.partition(" import ")
        names.setdefault(module, set()).update(named.split(", ") if named else ())
    return [f"{module} import {', '.join(sorted(named))}" if named else module for module, named in names.items()]


def printable(text: str) -> str:
    """On one line, with what cannot be seen or would change the order of what is read written as its code."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(word: str) -> str:
    """A token in a remark: “Anna”."""
    return f"“{printable(word[:40])}”"


def _in_quotes(words: str) -> str:
    """Words, which may be a model's, within a string of the script: they cannot end it."""
    return printable(words).replace("\\", "/").replace('"', "'")


def _remarked(code: str, remark: str) -> str:
    if not remark:
        return code
    return f"{code:<{_REMARKS}}  # {printable(remark)}" if code else f"# {printable(remark)}"


def _float(value: float) -> str:
    """A number of Python, which reads it back as it is."""
    if np.isnan(value) or np.isinf(value):
        return f'float("{value}")'
    return repr(float(value))


def _single(value: float) -> str:
    """The shortest text that reads back as the same float32."""
    if not np.isfinite(value):
        return _float(value)
    text = str(np.float32(value))
    return text if np.float32(float(text)) == np.float32(value) else repr(value)


def _nested(before: str, texts: list[str], shape: tuple[int, ...], kind: str, remark: str) -> list[str]:
    """Lines of nested lists. What fits stands on one line."""
    if sum(map(len, texts)) < WIDTH:
        flat = f"{before}{', '.join([_listed(texts, shape), *([kind] if kind else [])])})"
        if len(flat) <= WIDTH - len(remark) - 4:
            return [_remarked(flat, remark)]
    last = [f"{_INDENT}{kind},"] if kind else []
    return [_remarked(before, remark), *_rows(texts, shape, _INDENT), *last, ")"]


def _listed(texts: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return texts[0]
    size = len(texts) // shape[0] if shape[0] else 0
    return "[" + ", ".join(_listed(texts[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])) + "]"


def _rows(texts: list[str], shape: tuple[int, ...], indent: str) -> list[str]:
    if len(shape) <= 1:
        text = _listed(texts, shape) + ","
        more = indent + " "
        return textwrap.wrap(
            text, WIDTH, initial_indent=indent, subsequent_indent=more, break_on_hyphens=False, break_long_words=False
        )
    size = len(texts) // shape[0]
    rows = [f"{indent}["]
    for i in range(shape[0]):
        rows += _rows(texts[i * size : (i + 1) * size], shape[1:], indent + _INDENT)
    return [*rows, f"{indent}],"]


def _filled(before: str, texts: Sequence[str], remark: str, indent: str = "") -> list[str]:
    """A list, on one line where it fits: words with spaces in them stay whole."""
    flat = f"{indent}{before}{', '.join(texts)}]"
    if len(flat) <= WIDTH - len(remark) - 4:
        return [_remarked(flat, remark)]
    inner = indent + _INDENT
    lines = [inner]
    for text in texts:
        if len(lines[-1]) + len(text) + 2 > WIDTH and lines[-1] != inner:
            lines.append(inner)
        lines[-1] += f"{text}, "
    return [_remarked(indent + before, remark), *(line.rstrip() for line in lines), f"{indent}]"]
