"""Looks at a fine-tuning before it is begun: what does not go together is said, and how much there is to learn."""

from __future__ import annotations

from models.files.catalogue import HANDED_OVER
from models.forward.model import Model
from models.protocol.errors import ExplorerError, as_sentence
from models.protocol.training_messages import AskedTuning
from models.protocol.training_plan import PlanRequest, PlanView
from models.training.finetuning import check_kind, learned_count, settings_of
from models.training.pairs_file import data_of
from models.training.tuning_rows import rows_of


def plan_of(request: PlanRequest, asked: AskedTuning, model: Model | None) -> PlanView:
    """What can be told now; of a checkpoint other than the open `model` that is only whether the data can be read."""
    try:
        return _planned(request, asked, model)
    except ExplorerError as error:
        return PlanView(request=request, sentence=str(error))
    except ValueError as error:
        return PlanView(request=request, sentence=as_sentence(str(error)))


def _planned(request: PlanRequest, asked: AskedTuning, model: Model | None) -> PlanView:
    if not asked.checkpoint:
        raise ValueError("no checkpoint is open. Open one, or choose another here")
    if asked.checkpoint.startswith(HANDED_OVER):
        raise ValueError(
            "this model was handed over from Python, and learns in a process that has no such object. Write it into a "
            "folder with save_pretrained, and open that"
        )
    settings = settings_of(asked)
    is_open = model is not None and model.info.reference == asked.checkpoint
    if model is not None and is_open:
        check_kind(model)
    data = data_of(asked)
    if model is None or not is_open:
        return PlanView(request=request)
    rows = rows_of(model, data, settings.seed)
    return PlanView(
        request=request,
        parameters=learned_count(model, settings),
        rows=len(rows.learned),
        held_out=min(len(rows.held), settings.held_out),
    )
