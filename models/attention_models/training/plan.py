"""Looks at a training before it is begun: what does not go together is said, and the model's size."""

from __future__ import annotations

import torch

from attention_models.forward.context import Context
from attention_models.protocol.errors import as_sentence
from attention_models.protocol.training_messages import AskedTuning
from attention_models.protocol.training_plan import PlanRequest, PlanView
from attention_models.training.experiment import experiment
from attention_models.training.training import check_context, model_of
from attention_models.training.tuning_plan import plan_of


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
