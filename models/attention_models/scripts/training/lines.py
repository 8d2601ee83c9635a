"""The lines that make the rows of a training, for each shape of a model as plainly as they can be written.

They end with `of_step(number)`, what step `number` learns from, and `held_out`: what the model is called with and what
it is to say, (rows, tokens) each.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from attention_models.protocol.errors import InputError
from attention_models.scripts.script_text import WIDTH, Script
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.tasks import HELD_OUT_SHARE
from attention_models.textbook.transformer_config import SWITCHES, TransformerConfig
from attention_models.training.experiment import Experiment
from attention_models.training.folders import TEXT_FILE
from attention_models.training.loss_watch import PATIENCE, RISEN
from attention_models.training.pipe import threads_beside_a_window
from attention_models.training.rows import RecurrentRows, TaskRows, TextRows
from attention_models.training.settings import Settings
from attention_models.training.training import BETAS, EPSILON, MEASURED_TOGETHER, reads_ahead, written_right

# The lines of a training's loop: the loss, the schedule, Adam, and what is measured on held-out rows.


LOSS = """
def loss_of(logits, labels, smoothing=0.0):
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=smoothing)
"""

_RATE = """

def learning_rate(number):  # section 5.3, equation 3, RATE times
    return RATE * WIDTH**-0.5 * min(number**-0.5, number * WARMUP**-1.5)
"""

MEASURE = """

@torch.no_grad()
def measure(model, inputs, labels, most):
    model.eval()  # without dropout
    rows, loss, tokens, right, whole = min(most, len(labels)), 0.0, 0, 0, 0
    for start in range(0, rows, TOGETHER):
        part = slice(start, min(start + TOGETHER, rows))
        some, wanted = {name: t[part] for name, t in inputs.items()}, labels[part]
        logits, counted = model(**some).logits, wanted != IGNORE
        hits = (logits.argmax(-1) == wanted) | ~counted  # (rows, tokens)
        loss += float(loss_of(logits, wanted)) * int(counted.sum())
        tokens, right = tokens + int(counted.sum()), right + int((hits & counted).sum())
        whole += WHOLE
    model.train()
    return loss / tokens, right / tokens, whole / rows
""".replace("TOGETHER", str(MEASURED_TOGETHER))
_BESIDE_TRUE = "int(hits.all(1).sum())"
_WRITTEN = "written_right(model, some, wanted)  # by itself: later tokens are visible"

_WATCH = """
    first, risen = first or loss, risen + 1 if loss > TIMES * (first or loss) else 0
    if not (math.isfinite(loss) and math.isfinite(length)) or risen >= PATIENCE:
        ON_DIVERGED
"""
WATCH = _WATCH.strip("\n").replace("TIMES", f"{RISEN:g}").replace("PATIENCE", str(PATIENCE))
"""What is done with `loss` and `length` before a step is taken; `ON_DIVERGED` is what to do where the loss diverges."""

STEP = """
    inputs, labels = of_step(number)
    torch.manual_seed(seed * 1_000_003 + number)  # dropout
    logits = model(**inputs).logits  # (rows, tokens, vocabulary)
    value = loss_of(logits, labels, SMOOTHING)
    value.backward()
    length = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    loss = float(value.detach())
WATCH
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
""".replace("WATCH", WATCH)
"""A step from its `number` and `rate` on, indented once."""


ON_DIVERGED = 'raise SystemExit(f"At step {number} the loss diverges.")'

DIVERGES = f"{PATIENCE} steps above {RISEN:g} times the first: it diverges"
"""What is said where the first loss and the count of such steps begin."""

BY_STEPS = """
for number in range(1, STEPS + 1):
"""

BY_THE_CLOCK = """
number, spent = 0, 0.0
while (fraction := spent / SECONDS) < 1:  # of the training that is done
    begun, number = time.perf_counter(), number + 1
"""

PRINT = """
    if number in on_screen:
        print(f"loss of step {number}:", loss, "  on screen:", on_screen[number])
    elif number <= 10 or number % 50 == 0:
        right = float((logits.argmax(-1) == labels).sum() / (labels != IGNORE).sum())
        print(f"step {number}: loss {loss:.4f}, {right:.1%} of the batch's labels right")
"""


def functions(script: Script, config: TransformerConfig | RecurrentConfig, settings: Settings) -> None:
    """`loss_of`, `learning_rate` and `measure`."""
    script.uses("import math", "import torch.nn.functional as F")
    ahead = reads_ahead(config)
    if ahead:
        script.uses("from attention_models.textbook.pretrained import TextbookModel", "from torch import Tensor")
        script.line("START_ID = START")
        script.source_of(written_right)
    rates = {"RATE": repr(settings.rate), "WIDTH": str(config.width), "WARMUP": str(settings.warmup)}
    script.line(LOSS.strip("\n"))
    script.line(filled(_RATE, rates).rstrip("\n"))
    script.line(filled(MEASURE, {"WHOLE": _WRITTEN if ahead else _BESIDE_TRUE}).rstrip("\n"))


def adam() -> str:
    return f"torch.optim.Adam(model.parameters(), lr=0.0, betas={BETAS}, eps={EPSILON!r}, fused=True)"


def smoothing_of(config: TransformerConfig | RecurrentConfig) -> float:
    return config.label_smoothing if isinstance(config, TransformerConfig) else 0.0


def filled(lines: str, values: dict[str, str]) -> str:
    """`lines` with each name in capitals as its value."""
    for name, value in values.items():
        lines = lines.replace(name, value)
    return lines


# The lines that make a textbook model of random weights.


SAME_BITS = "Each number is the one on screen bit for bit where torch adds up alike: here, with so many threads."
_OF_TRANSFORMERS = ("vocabulary", *SWITCHES, "pad_token_id", "bos_token_id", "eos_token_id")


def same_threads(script: Script) -> None:
    """The line that lets torch round sums as the process that trains does."""
    script.line(f"torch.set_num_threads({threads_beside_a_window()})", "as in the process that trains")


def make_model(script: Script, config: TransformerConfig | RecurrentConfig) -> None:
    """Lines that end with `model`, and the config as `config`; torch's generator decides the weights."""
    config_of(script, config)
    if isinstance(config, RecurrentConfig):
        script.uses("from attention_models.textbook.recurrent import RecurrentSeq2Seq")
        script.line("model = RecurrentSeq2Seq(config)", "read attention_models/textbook/recurrent.py beside this")
        return
    script.uses(
        "from attention_models.forward.capture import IMPLEMENTATION",
        "from attention_models.textbook.pretrained import made",
    )
    script.line("model = made(config)", "read attention_models/textbook/transformer.py beside this")
    script.line("model.set_attn_implementation(IMPLEMENTATION)", '"eager" gives the same but for rounding')


def config_of(script: Script, config: TransformerConfig | RecurrentConfig) -> None:
    """`config = …`, every switch of it."""
    if isinstance(config, RecurrentConfig):
        kind, file = "RecurrentConfig", "config"
        names = tuple(field.name for field in fields(config) if field.name not in ("model_type", "most_words"))
    else:
        kind, file, names = "TransformerConfig", "transformer_config", _OF_TRANSFORMERS
    script.uses(f"from attention_models.textbook.{file} import {kind}")
    given = ", ".join(f"{name}={getattr(config, name)!r}" for name in names) + ","
    lines = textwrap.wrap(given, WIDTH - 4, break_long_words=False)
    script.line("\n".join([f"config = {kind}(", *(f"    {line}" for line in lines), ")"]))


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
