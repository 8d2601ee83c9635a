"""Looks at a training before it is begun: what does not go together is said, and the model's size."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch

from attention_models.files.catalogue import HANDED_OVER
from attention_models.forward.context import Context
from attention_models.protocol.errors import ExplorerError, as_sentence
from attention_models.protocol.training_messages import AskedTuning
from attention_models.protocol.training_plan import PlanRequest, PlanView
from attention_models.training.experiment import experiment
from attention_models.training.finetuning import check_kind, learned_count, settings_of
from attention_models.training.pairs_file import Source, rows_in, source_of
from attention_models.training.training import check_context, model_of
from attention_models.training.tuning_rows import data_for, rows_of

_MOST_COUNTED = 1_000_000
"""Characters: a tokenizer takes a second for so many, and all that is asked of the open model waits meanwhile."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """How many rows the open model makes of a source: a long one takes a second, and settings change often."""

    source: bytes  # its SHA-256
    learned: int
    held: int


def plan_of(request: PlanRequest, asked: AskedTuning, context: Context) -> PlanView:
    """What can be told now; of a checkpoint that is not open that is only whether there is something to learn from.

    Raises:
        Cancelled: `context.should_stop()` was true.
    """
    try:
        return _planned(request, asked, context)
    except ExplorerError as error:
        return PlanView(request=request, sentence=str(error))
    except ValueError as error:
        return PlanView(request=request, sentence=as_sentence(str(error)))


def _planned(request: PlanRequest, asked: AskedTuning, context: Context) -> PlanView:
    if not asked.checkpoint:
        raise ValueError("no checkpoint is open. Open one, or choose another here")
    if asked.checkpoint.startswith(HANDED_OVER):
        raise ValueError(
            "this model was handed over from Python, and learns in a process that has no such object. Write it into a "
            "folder with save_pretrained, and open that"
        )
    settings = settings_of(asked)
    model = context.workspace.model
    is_open = model is not None and model.info.reference == asked.checkpoint
    if model is not None and is_open:
        check_kind(model)
    source = source_of(asked)
    source.check_not_empty()
    if model is None or not is_open:
        _check_table(source)
        return PlanView(request=request)
    parameters = learned_count(model, settings)
    digest = hashlib.sha256(f"{source.file}\n{source.text}".encode("utf-8", "replace")).digest()
    counted = context.workspace.kept_of_model.get(_Counted)
    if counted is None or counted.source != digest:
        data = data_for(model, source)
        if len(source.text) > _MOST_COUNTED:
            return PlanView(request=request, parameters=parameters)
        rows = rows_of(model, data, settings.seed, should_stop=context.should_stop)
        counted = _Counted(digest, len(rows.learned), len(rows.held))
        context.workspace.kept_of_model.put(counted)
    held = min(counted.held, settings.held_out)
    return PlanView(request=request, parameters=parameters, rows=counted.learned, held_out=held)


def _check_table(source: Source) -> None:
    """Whether a file that is a table by its name can be read as one, of however many columns."""
    if source.suffix in (".csv", ".tsv"):
        for _ in rows_in(source, source.has_commas):
            pass


def answer(request: PlanRequest, context: Context) -> PlanView:
    asked = request.asked
    if isinstance(asked, AskedTuning):
        return plan_of(request, asked, context)
    try:
        planned = experiment(asked.task, dict(asked.switches), asked.seed, asked.text)
        check_context(planned.config, planned.rows)
    except ValueError as error:
        return PlanView(request=request, sentence=as_sentence(str(error)))
    with torch.device("meta"):
        parameters = sum(p.numel() for p in model_of(planned.config).parameters())
    return PlanView(request=request, parameters=parameters)
