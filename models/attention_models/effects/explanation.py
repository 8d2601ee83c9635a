"""Is attention an explanation? Several accounts of what each token has to do with an answer, beside each other.

Jain and Wallace 2019, "Attention is not Explanation"; Wiegreffe and Pinter 2019, "Attention is not not Explanation".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.gradients import Embedded
from attention_models.effects.metric import ResolvedMetric, aimed, resolve, view_of
from attention_models.effects.rollout import flow, mixed_with_identity, rank_correlation, rollout
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run_alone
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import ACCOUNTS, Account, ExplanationRequest, ExplanationView
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Report, ShouldStop, never, silent
from attention_models.protocol.values import read_only

MOST_FOR_FLOW = 40
"""Tokens: a maximum flow is sought for each, through every weight of every layer."""

_NO_FLOW = f"A maximum flow is sought for texts of up to {MOST_FOR_FLOW} tokens."
_LONG = "This text is too long to hold the weights of every layer. Take a shorter one."
_ONE_STACK = "Rollout and flow follow the tokens of one stack from layer to layer; this model has two."


def answer(request: ExplanationRequest, context: Context) -> ExplanationView:
    current = context.run(request.run)
    aim = resolve(current.model, current.trace, request.aim)
    copies = BatchedRuns.of_run(current)
    return explained(request, copies, aim, context.should_stop, context.report)


def explanations(
    model: Model,
    text: Any,
    *,
    target: str | int | None = None,
    against: str | int | None = None,
    position: int | None = None,
    interventions: tuple[Intervention, ...] = (),
) -> ExplanationView:
    """What each token has to do with a logit: by attention, rollout, flow, gradients and ablation.

        view = explanations(model, "Tom and Anna went to the park. Anna gave the ball to", target=" Tom")
        view.of("integrated")       # (tokens,) float64, which sum to view.aim.value - view.baseline
        view.correlations           # of every two, Spearman's

    Arguments as in `ax.head_effects`.

    Raises:
        InputError: the model says nothing there, has two stacks, or takes no gradients in its number format.
    """
    trace = run_alone(model, text, interventions=interventions)
    aim = aimed(target, against, None, position)
    copies = BatchedRuns.of(model, trace, text, None)
    return explained(ExplanationRequest(run=0, aim=aim), copies, resolve(model, trace, aim))


def explained(
    request: ExplanationRequest,
    copies: BatchedRuns,
    aim: ResolvedMetric,
    should_stop: ShouldStop = never,
    report: Report = silent,
) -> ExplanationView:
    """Raises InputError as `explanations`, and Cancelled where `should_stop()` was true between two blocks."""
    model, trace = copies.model, copies.trace
    if model.seq2seq:
        raise InputError(_ONE_STACK)
    if any(site.is_long for site in trace.sites):
        raise InputError(_LONG)
    report("Weighing the tokens", 0.0)
    embedded = Embedded(copies, aim)
    layers = _layers(trace)
    here = aim.position
    found: dict[str, np.ndarray | None] = {"attention": layers[-1][here].astype(np.float64)}
    mixed = mixed_with_identity(layers)
    found["rollout"] = rollout(mixed)[here]
    report("Weighing the tokens", 0.1)
    found["flow"] = flow(mixed, here, should_stop) if len(trace.tokens) <= MOST_FOR_FLOW else None
    report("Weighing the tokens", 0.3)
    found["gradient"], found["attention_gradient"] = embedded.gradients(should_stop)
    report("Weighing the tokens", 0.4)
    found["integrated"], baseline, gap, points = embedded.integrated(should_stop)
    report("Weighing the tokens", 0.9)
    found["ablation"] = embedded.without_each(should_stop)
    accounts = tuple(_account(name, found[name]) for name in ACCOUNTS)
    return ExplanationView(
        request=request,
        aim=view_of(model, trace, aim),
        accounts=accounts,
        correlations=_correlations(trace, accounts, here),
        reached=_reached(trace, here),
        baseline=baseline,
        gap=gap,
        steps=points,
    )


def _account(name: str, values: np.ndarray | None) -> Account:
    return Account(name, None, _NO_FLOW) if values is None else Account(name, read_only(values))


def _layers(trace: Trace) -> list[np.ndarray]:
    """The mean over heads of each layer's weights, (queries, keys)."""
    return [
        np.stack([trace.weights(site, head) for head in range(site.heads)]).astype(np.float64).mean(axis=0)
        for site in trace.sites
    ]


def _reached(trace: Trace, position: int) -> np.ndarray:
    """(tokens,) bool: from which tokens something can come to `position` through the layers' masks."""
    reached = np.arange(len(trace.tokens)) == position
    for site in reversed(trace.sites):
        masked = trace.masked(site, 0, np.flatnonzero(reached).tolist())
        if masked is None:
            return read_only(np.ones_like(reached))
        reached = reached | ~masked.all(axis=0)
    return read_only(reached)


def _correlations(trace: Trace, accounts: tuple[Account, ...], position: int) -> np.ndarray:
    site = trace.sites[-1]
    masked = trace.masked(site, 0, [position])
    seen = np.ones(site.keys, bool) if masked is None else ~masked[0]
    table = np.full((len(accounts), len(accounts)), np.nan)
    for i, one in enumerate(accounts):
        for j, other in enumerate(accounts):
            if one.values is not None and other.values is not None:
                table[i, j] = rank_correlation(np.abs(one.values[seen]), np.abs(other.values[seen]))
    return read_only(table)
