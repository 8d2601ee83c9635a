"""A run held against the model's own eager attention, or a textbook model's against its papers' formulas."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from attention_models.forward.batches import encode
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.vision import VisionModel
from attention_models.opening.snapshots import fitted, holding, read_weights
from attention_models.protocol.batch import Batch
from attention_models.protocol.trust import EAGER, AloneReport, TrustReport, TrustRequest
from attention_models.trust.check import compare_with_alone, compare_with_eager
from attention_models.trust.inputs import report_on_input
from attention_models.trust.pictures import picture_difference
from attention_models.trust.recurrent_formulas import compare_with_formulas


def _as_its_files_say(model: Model) -> AbstractContextManager[None]:
    """While it lasts, its weights are read anew from its files, whatever was run; where none was changed they stay."""
    if model.adapter is not None:
        return model.adapter.computed_again(model.module)
    if model.info.training is None:
        return nullcontext()
    return holding(fitted(model.module, read_weights(model.info), model.info.name))


def answer(request: TrustRequest, context: Context) -> TrustReport:
    started = time.perf_counter()
    run = context.run(request.run)
    model = run.model
    apart: float | None = None
    alone: AloneReport | None = None
    encoded = encode(model, run.text, run.written)
    if isinstance(model, RecurrentModel):
        context.report("Comparing with the papers' formulas", None)
        with _as_its_files_say(model):
            found = compare_with_formulas(model, run.trace)
    else:
        context.report(f"Comparing with {EAGER}", None)
        trace = run.untouched(context.should_stop)  # edits are meant to make a difference
        with _as_its_files_say(model):
            found = compare_with_eager(model, encoded, trace, context.should_stop)
        if isinstance(run.text, Batch) and len(run.text.texts) > 1:
            alone = compare_with_alone(model, run.text, run.written, trace, context.should_stop)
        if isinstance(model, VisionModel) and isinstance(run.text, str):
            apart = picture_difference(model, run.text, encoded.inputs["pixel_values"])
    return TrustReport(
        request=request,
        logit_difference=found.logit_difference,
        weight_difference=found.weight_difference,
        tolerance=found.tolerance,
        logit_tolerance=found.logit_tolerance,
        rounding=found.rounding,
        end_to_end=found.end_to_end,
        rows=found.rows,
        against=found.against,
        input=report_on_input(model, run.text, run.trace) if apart is None else None,
        input_difference=apart,
        alone=alone,
        seconds=time.perf_counter() - started,
    )
