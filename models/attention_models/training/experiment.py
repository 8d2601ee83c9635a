"""From words, as a command or a panel has them, to a training: a task, and switches of the model and the training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attention_models.textbook.config import RECURRENT_SWITCHES, RecurrentConfig, as_recurrent_switch
from attention_models.textbook.tasks import TASKS, text_parts
from attention_models.textbook.tokenizer import END_ID, PAD_ID, SPECIAL, SPECIAL_IDS, START_ID
from attention_models.textbook.transformer_config import SWITCHES, TransformerConfig, as_switch
from attention_models.training.rows import RecurrentRows, Rows, TaskRows, TextRows
from attention_models.training.settings import NUMBERS, Settings, as_setting
from attention_models.training.training import Training

TEXT = "text"
"""The task of saying each character of a pasted text after those before it."""

KINDS = ("transformer", "recurrent")
"""What the switch `model` chooses between: the other switches are of the kind chosen."""

MOST_LAYERS = 128
"""Of a stack."""
MOST_PARAMETERS = 100_000_000
"""Each takes 16 bytes: weight, gradient and Adam's two means."""
MOST_KEPT = 2_000_000_000
"""Numbers of 4 bytes that a step keeps for its gradients."""

_SMALL = {"embedding": 32, "hidden": 64}  # of a recurrent model, where nothing else is asked for
_WINDOW = 64  # characters of a text that are read together
_ROOM = 2  # times as long as its rows is what a model can read, so that it can be tried beyond what it learned
_LEAST_CONTEXT = 64


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is learned, by what model, and how."""

    name: str  # of the task, with its difficulty: "reverse:10"
    title: str  # as a sentence goes on: "write the letters backwards"
    example: str  # a text for the model to read
    rows: Rows
    config: TransformerConfig | RecurrentConfig
    settings: Settings
    switches: Mapping[str, str] = field(default_factory=dict)  # that were set, as they were typed
    text: str = ""  # that the rows are of, where they are of one

    def training(self, folder: Path | None = None) -> Training:
        """Its beginning; snapshots go into `folder`."""
        return Training(self.config, self.rows, self.settings, folder)


def experiment(spec: str, switches: Mapping[str, str] | None = None, seed: int = 0, text: str = "") -> Experiment:
    """The training that is asked for.

    Args:
        spec: a task, "reverse", or one with its difficulty, "reverse:12"; "text" for the characters of `text`.
        switches: of the model (`SWITCHES`) and of the training (`NUMBERS`), by name, as they were typed.

    Raises:
        ValueError: no such task or switch, or one that cannot be set so; the sentence says which.
    """
    asked = dict(switches or {})
    kind = asked.pop("model", KINDS[0])
    if kind not in KINDS:
        raise ValueError(f"model is “{kind}”, and has to be one of {', '.join(KINDS)}")
    known, meaning = (SWITCHES, as_switch) if kind == KINDS[0] else (RECURRENT_SWITCHES, as_recurrent_switch)
    model: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    for name, word in asked.items():
        if name in NUMBERS:
            numbers[name] = as_setting(name, word)
        elif name in known:
            model[name] = meaning(name, word)
        else:
            whose = "" if kind == KINDS[0] else " of a recurrent model"
            there_are = ", ".join(sorted({"model", *known, *NUMBERS}))
            raise ValueError(f"there is no switch “{name}”{whose}. There are {there_are}")
    settings = Settings(seed=seed, **numbers)  # before rows are drawn from the seed
    task, _, difficulty = spec.partition(":")
    if kind == "recurrent":
        planned = _recurrent(task, difficulty, model, settings)
    elif task == TEXT:
        planned = _of_text(text, difficulty, model, settings)
    else:
        planned = _of_task(task, difficulty, model, settings)
    check_size(planned.config, planned.rows.context, settings.batch)
    return replace(planned, switches=dict(switches or {}), text=text if task == TEXT else "")


def check_size(config: TransformerConfig | RecurrentConfig, tokens: int, batch: int) -> None:
    """Refuse a training that takes gigabytes, before any of it is made.

    Args:
        tokens: of the longest row.
        batch: rows a step.

    Raises:
        ValueError: the sentence says what to make smaller.
    """
    if isinstance(config, TransformerConfig) and config.layers > MOST_LAYERS:
        raise ValueError(f"layers is {config.layers:,}, and is {MOST_LAYERS} at most")
    parameters, kept = parameters_of(config), batch * kept_by_row(config, tokens)
    if parameters > MOST_PARAMETERS:
        smaller = "embedding or hidden" if isinstance(config, RecurrentConfig) else "width, layers, inner or context"
        raise ValueError(
            f"this model has about {parameters:,} parameters, and {MOST_PARAMETERS:,} are trained at most: "
            f"take a smaller {smaller}"
        )
    if kept > MOST_KEPT:
        raise ValueError(
            f"a step of this training may take {4 * kept / 1e9:,.0f} GB, and {4 * MOST_KEPT / 1e9:.0f} GB are "
            f"used at most: take a batch of less than {batch:,}, or a smaller model"
        )


def parameters_of(config: TransformerConfig | RecurrentConfig) -> int:
    """About how many there are, and no fewer but for biases and norms; with the tables of positions."""
    if isinstance(config, RecurrentConfig):
        v, e, h = config.vocabulary + config.target_vocabulary, config.embedding, config.hidden
        return v * (e + 3 * h) + 4 * h * (2 * (e + h) + (e + 3 * h)) + 6 * h * h
    w = config.width
    stacks, attentions = (2, 3) if config.is_encoder_decoder else (1, 1)
    maps = {"none": 0, "swiglu": 3}.get(config.feed_forward, 2)
    layer = attentions * 4 * w * w + stacks * maps * w * config.inner
    return config.layers * layer + stacks * w * (2 * config.vocabulary + config.context) + config.buckets * config.heads


def kept_by_row(config: TransformerConfig | RecurrentConfig, tokens: int) -> int:
    """How many numbers of a row are kept for its gradients; no fewer than there are, and up to ten times as many."""
    if isinstance(config, RecurrentConfig):
        return tokens * (24 * config.hidden + 4 * config.embedding + 3 * config.target_vocabulary) + (
            2 * tokens * tokens * config.hidden
        )
    w, stacks = config.width, 2 if config.is_encoder_decoder else 1
    attention = 8 * w * tokens + 3 * config.heads * tokens * tokens
    if config.score == "additive":  # query and key are added before they are summed over the head's dimensions
        attention += 2 * w * tokens * tokens
    layer = (2 * stacks - 1) * attention + stacks * tokens * (4 * w + 3 * config.inner)
    return config.layers * layer + 3 * tokens * config.vocabulary


def _rows(name: str, difficulty: str, shape: str, seed: int) -> TaskRows:
    task = TASKS.get(name)
    if task is None:
        raise ValueError(f"there is no task “{name}”. There are {', '.join(TASKS)} and {TEXT}")
    number = _whole(f"the {task.counts} of {name}", difficulty, task.difficulty)
    task.check(number)
    return TaskRows(task, number, shape, seed)


def _recurrent(name: str, difficulty: str, model: dict[str, Any], settings: Settings) -> Experiment:
    if name == TEXT:
        raise ValueError("a text is continued by a decoder, and a recurrent model has an encoder too. Take a task")
    rows = _rows(name, difficulty, "encoder-decoder", settings.seed)
    example = rows.held_out_rows(1)[0]
    size = len(SPECIAL) + len(rows.alphabet)
    ids = {"pad": PAD_ID, "start": START_ID, "end": END_ID}
    config = RecurrentConfig(size, size, **{**_SMALL, **ids, **model})
    said = f"{name}:{rows.difficulty}"
    return Experiment(said, rows.task.title, example.prompt, RecurrentRows(rows), config, settings)


def _of_task(name: str, difficulty: str, model: dict[str, Any], settings: Settings) -> Experiment:
    shape = model.get("shape", TransformerConfig.shape)
    rows = _rows(name, difficulty, shape, settings.seed)
    task, number = rows.task, rows.difficulty
    config = _config(rows, model)
    example = rows.held_out_rows(1)[0]
    read = example.prompt if shape == "encoder-decoder" else task.asked(example)
    masks = "<mask>" * len(task.tokens(example.answer)) if shape == "encoder" else ""
    return Experiment(f"{name}:{number}", task.title, read + masks, rows, config, settings)


def _of_text(text: str, window: str, model: dict[str, Any], settings: Settings) -> Experiment:
    if model.setdefault("shape", "decoder") != "decoder":
        raise ValueError(f"a text is continued by a decoder, and shape is {model['shape']}. Leave shape out")
    length = _whole("the characters that are read together", window, _WINDOW)
    if not 2 <= length <= 1024:
        raise ValueError(f"{length} characters cannot be read together: take 2 to 1,024")
    parts = text_parts(text, length)
    rows = TextRows(parts, settings.seed)
    example = parts.held_out[0][: max(1, length // 2)]
    return Experiment(f"{TEXT}:{length}", "go on with the text", example, rows, _config(rows, model), settings)


def _config(rows: Rows, model: dict[str, Any]) -> TransformerConfig:
    context = max(_LEAST_CONTEXT, _ROOM * rows.context)
    vocabulary = len(SPECIAL) + len(rows.alphabet)
    return TransformerConfig(**{"context": context, **SPECIAL_IDS, **model, "vocabulary": vocabulary})


def _whole(what: str, word: str, otherwise: int) -> int:
    try:
        return int(word) if word else otherwise
    except ValueError:
        raise ValueError(f"“{word}” is no number: write {what} after the colon, as {otherwise}") from None
