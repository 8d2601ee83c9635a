"""The lines that make the rows of a training, for each shape of a model as plainly as they can be written.

They end with `of_step(number)`, what step `number` learns from, and `held_out`: what the model is called with and what
it is to say, (rows, tokens) each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from attention_models.protocol.errors import InputError
from attention_models.scripts.script_text import WIDTH, Script
from attention_models.scripts.training.loop_lines import filled
from attention_models.textbook.tasks import HELD_OUT_SHARE
from attention_models.training.experiment import Experiment
from attention_models.training.folders import TEXT_FILE
from attention_models.training.rows import RecurrentRows, TaskRows, TextRows

MOST_WRITTEN = 20_000
"""Characters of a text that stand in a script: more is no longer a text that somebody reads."""

_MOST_CONSTANT = 80
_SPECIAL = "PAD, START, END, UNKNOWN, MASK = range(5)"


def make_data(script: Script, planned: Experiment, folder: str) -> None:
    """`folder` is that of the training, "" where it has not begun: a long text is read from there.

    Raises:
        InputError: the text is too long, and lies nowhere.
    """
    script.uses("import random")
    script.section("the data")
    script.line(f"seed = {planned.settings.seed}")
    script.line(_SPECIAL, "ids of the tokens that stand around a text")
    script.line("IGNORE = -100", "the label of a place where nothing is to be said")
    rows = planned.rows
    if isinstance(rows, TextRows):
        _of_text(script, rows, planned, folder)
    elif isinstance(rows, RecurrentRows):
        _of_task(script, rows.rows, planned, "recurrent")
    elif isinstance(rows, TaskRows):
        _of_task(script, rows, planned, rows.shape)


# --------------------------------------------------------------------------- a generated task

_DRAWN = """
def is_held_out(row):
    return zlib.crc32(f"{row.prompt}\\n{row.answer}".encode()) % SHARE == 0  # told by the row alone


def drawn(count, rng, from_held_out=False):
    found = []
    while len(found) < count:
        row = MAKE(rng, DIFFICULTY)
        if is_held_out(row) == from_held_out:
            found.append(row)
    return found


def padded(rows, fill):
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])
"""

_BATCH = """

def batch(rows):
    prompts = [[ids[token] for token in row.promptTOKENS] for row in rows]
    answers = [[ids[token] for token in row.answerTOKENS] for row in rows]
"""

_TWO_SIDES = """
    source = padded([prompt + [END] for prompt in prompts], PAD)  # the encoder reads
    written = padded([[START] + answer for answer in answers], PAD)  # the decoder reads, one place late
    labels = padded([answer + [END] for answer in answers], IGNORE)  # and is to say
"""

_BY_SHAPE = {
    "encoder-decoder": _TWO_SIDES
    + """\
    return {"input_ids": source, "attention_mask": source != PAD, "decoder_input_ids": written}, labels
""",
    "recurrent": _TWO_SIDES
    + """\
    return {"source": source, "target": written}, labels
""",
    "decoder": """
    before = [[START] + prompt + BETWEEN for prompt in prompts]
    read = padded([b + answer for b, answer in zip(before, answers)], PAD)
    labels = padded([[IGNORE] * (len(b) - 1) + answer + [END] for b, answer in zip(before, answers)], IGNORE)
    return {"input_ids": read, "attention_mask": read != PAD}, labels
""",
    "encoder": """
    before = [[START] + prompt + BETWEEN for prompt in prompts]
    read = padded([b + [MASK] * len(answer) + [END] for b, answer in zip(before, answers)], PAD)
    labels = padded([[IGNORE] * len(b) + answer + [IGNORE] for b, answer in zip(before, answers)], IGNORE)
    return {"input_ids": read, "attention_mask": read != PAD}, labels
""",
}

_STEPS = """

def of_step(number):
    return batch(drawn(BATCH, random.Random(f"{seed} {number - 1}")))


held_rows = drawn(2 * HELD_OUT, random.Random(f"{seed} held out"), from_held_out=True)
held_out = batch(list(dict.fromkeys(held_rows))[:HELD_OUT])  # different ones
"""


def _of_task(script: Script, rows: TaskRows, planned: Experiment, shape: str) -> None:
    task, settings = rows.task, planned.settings
    script.uses("import zlib", "from attention_models.textbook.tasks import Row")
    source_with_helpers(script, task.make)
    if task.of_words:
        script.uses("from attention_models.textbook.tasks import TASKS")
        words = f"TASKS[{task.name!r}].alphabet"
        script.line(f"tokens = sorted({{*{words}, *{list(task.separator)!r}}})", "words")
    else:
        script.line(f"tokens = {''.join(rows.alphabet)!r}", "characters, in the order of their code points")
    script.line("ids = {token: i for i, token in enumerate(tokens, 5)}")
    text = _DRAWN + _BATCH.rstrip("\n") + _BY_SHAPE[shape] + _STEPS
    values = {
        "SHARE": str(HELD_OUT_SHARE),
        "MAKE": getattr(task.make, "__name__", ""),
        "DIFFICULTY": str(rows.difficulty),
        "TOKENS": ".split()" if task.of_words else "",
        "BETWEEN": f"[ids[token] for token in {task.separator!r}]",
        "BATCH": str(settings.batch),
        "HELD_OUT": str(settings.held_out),
    }
    script.line(filled(text, values).rstrip("\n"))


def source_with_helpers(script: Script, function: Callable[..., Any]) -> None:
    """The lines of a function and of what it calls in its own file; what it takes from elsewhere is imported."""
    found: dict[str, Callable[..., Any]] = {}
    constants: dict[str, object] = {}

    def look_into(one: Callable[..., Any]) -> None:
        for name, value in inspect.getclosurevars(one).globals.items():
            home = getattr(value, "__module__", "")
            if isinstance(value, ModuleType):
                script.uses(f"import {value.__name__}")
            elif isinstance(value, FunctionType) and home == one.__module__:
                if name not in found:
                    look_into(value)
                    found[name] = value
            elif callable(value):
                script.uses(f"from {home} import {name}")
            elif len(repr(value)) <= _MOST_CONSTANT and isinstance(value, (str, int, tuple)):
                constants[name] = value
            else:
                script.uses(f"from {one.__module__} import {name}")

    look_into(function)
    for name, value in constants.items():
        script.line(f"{name} = {value!r}")
    script.source_of(*found.values(), function)


# --------------------------------------------------------------------------- a text

_WINDOWS = """
held, rest = text[-(len(text) // 10) :], text[: -(len(text) // 10)]  # the last tenth is held out
held_windows = [held[i : i + window] for i in range(0, len(held) - window + 1, window)]
kept = set(held_windows)
windows = [w for w in (rest[i : i + window] for i in range(len(rest) - window + 1)) if w not in kept]
ids = {character: i for i, character in enumerate(sorted({c for w in (*windows, *held_windows) for c in w}), 5)}


def batch(some):
    rows = torch.tensor([[START] + [ids[c] for c in w] for w in some])
    return {"input_ids": rows[:, :-1]}, rows[:, 1:]  # each character after those before it


def of_step(number):
    return batch(random.Random(f"{seed} {number - 1}").choices(windows, k=BATCH))


held_out = batch(held_windows[:HELD_OUT])
"""


def _of_text(script: Script, rows: TextRows, planned: Experiment, folder: str) -> None:
    text = planned.text
    if len(text) <= MOST_WRITTEN:
        write_text(script, "text", text)
    elif folder:
        script.uses("from pathlib import Path")
        script.remark("The text lies beside the model: it is there while the training is.")
        script.line(f"text = Path({str(Path(folder) / TEXT_FILE)!r}).read_bytes().decode()")
    else:
        raise InputError(
            f"The text has {len(text):,} characters, too many for a script. Press Train: then the script reads it from "
            "the training's folder. Or take a shorter text."
        )
    script.line(f"window = {rows.window}", "characters that are read together")
    values = {"BATCH": str(planned.settings.batch), "HELD_OUT": str(planned.settings.held_out)}
    script.line(filled(_WINDOWS, values).strip("\n"))


def write_text(script: Script, name: str, text: str) -> None:
    """`name = …`, a line of the text a line."""
    most = WIDTH - 30
    parts = [line[i : i + most] for line in text.splitlines(keepends=True) for i in range(0, len(line), most)]
    script.line("\n".join([f"{name} = (", *(f"    {part!r}" for part in parts), ")"]) if parts else f'{name} = ""')
