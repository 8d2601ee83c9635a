"""Looks at a training before it is begun: what does not go together is said, and the model's size."""

from __future__ import annotations

import torch

from models.forward.context import Context
from models.protocol.training_plan import PlanRequest, PlanView
from models.textbook.transformer_config import TransformerConfig
from models.training.experiment import experiment
from models.training.training import model_of


def answer(request: PlanRequest, context: Context) -> PlanView:
    asked = request.asked
    try:
        planned = experiment(asked.task, dict(asked.switches), asked.seed, asked.text)
        config = planned.config
        if isinstance(config, TransformerConfig) and planned.rows.context > config.context:
            raise ValueError(
                f"context is {config.context}, and rows of this task take {planned.rows.context} tokens: set "
                "it to that or more"
            )
    except ValueError as error:
        return PlanView(request=request, sentence=f"{str(error)[:1].upper()}{str(error)[1:].rstrip('.')}.")
    with torch.device("meta"):
        parameters = sum(p.numel() for p in model_of(config).parameters())
    return PlanView(request=request, parameters=parameters)
