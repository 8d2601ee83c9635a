"""What a logit's gradient says of the tokens: with respect to their embeddings, and to the attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import WHOLE, AttentionInputs
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.metric import ResolvedMetric, of_logits
from attention_models.forward.capture import PassingRecorder
from attention_models.forward.class_logits import logits_of
from attention_models.forward.intervened import intervened
from attention_models.forward.position_tables import read_as_if_alone
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.values import SiteRef

POINTS = (32, 64, 128, 256)
"""Of the integral: more are taken until it is complete."""

COMPLETE = 0.01
"""The share of the difference by which the sum may be off."""

_TOLERANCE = 1e-3


@dataclass(slots=True)
class _Weighing(PassingRecorder):
    """Keeps the weights of each site in the graph of the gradient."""

    weights: dict[SiteRef, Tensor] = field(default_factory=dict)

    def mix(self, x: AttentionInputs) -> Tensor:
        w = attention.weights(x)  # (copies, heads, queries, keys)
        if w.requires_grad:
            w.retain_grad()
        self.weights[self.sites[-1].ref] = w
        out = torch.matmul(w.to(x.value.dtype), WHOLE.take_keys(x.value, x.heads))
        for edit in self.mix_edits:
            out = edit(self.sites[-1], x, out)
        return out


class Embedded:
    """A run whose token embeddings are given, so that there are gradients with respect to them."""

    def __init__(self, copies: BatchedRuns, aim: ResolvedMetric) -> None:
        """Raises InputError where the model takes no embeddings, is not in float32, or the aim is no logit."""
        model = copies.model
        self._copies, self._aim = copies, aim
        if aim.measure == "loss":
            raise InputError("Tokens are weighed by what they do to one logit, or a difference of two: choose one.")
        if model.dtype != torch.float32:
            raise InputError(
                f"{model.info.name} runs in {model.dtype_name}, in which gradients are rounded too much to be told "
                "apart. Open it in float32."
            )
        if model.seq2seq or "input_ids" not in copies.inputs or not model.accepts("inputs_embeds"):
            raise InputError(
                f"{model.info.name} takes no token embeddings in one stack, so there are none to take a gradient of. "
                "Open a model of one stack that reads text."
            )
        module: Any = model.module
        with torch.no_grad():
            self.embeddings: Tensor = module.get_input_embeddings()(copies.inputs["input_ids"])  # (1, tokens, width)
            same = self.values(self.embeddings)
        own = float(of_logits(copies.trace.logits_at([aim.position]), aim)[0])
        if abs(float(same[0]) - own) > _TOLERANCE * max(1.0, abs(own)):
            raise InputError(f"What {model.info.name} says of its token embeddings is not what it says of the tokens.")

    def values(self, embeddings: Tensor, should_stop: ShouldStop = never) -> Tensor:
        """The aim of each of some copies, (copies,) float64 on the CPU, of embeddings (copies, tokens, width)."""
        return self._forward(embeddings, should_stop)[0]

    def _forward(self, embeddings: Tensor, should_stop: ShouldStop) -> tuple[Tensor, dict[SiteRef, Tensor]]:
        model, count = self._copies.model, len(embeddings)
        inputs = {name: t.expand(count, *t.shape[1:]) for name, t in self._copies.inputs.items()}
        recorder = _Weighing(model.module_names, False, should_stop, self._copies.trace.interventions)
        with intervened(model, inputs, recorder) as changed, read_as_if_alone(model, changed):
            given = {name: t for name, t in changed.items() if name != "input_ids"}
            out = model.module(inputs_embeds=embeddings, **given, **model.forward_options)
        logits = logits_of(out)
        assert logits is not None
        there = logits if logits.dim() == 2 else logits[:, self._aim.position]
        return of_logits(there, self._aim), recorder.weights

    def gradients(self, should_stop: ShouldStop = never) -> tuple[np.ndarray, np.ndarray]:
        """(tokens,) of gradient x input, and (tokens,) of attention x gradient, float64.

        The second is summed over layers, heads and queries: what each token is attended to, times what the aim would
        gain by more of it.
        """
        with torch.enable_grad():
            embeddings = self.embeddings.clone().requires_grad_(True)
            value, weights = self._forward(embeddings, should_stop)
            value.sum().backward()
        assert embeddings.grad is not None
        of_inputs = (embeddings.grad * embeddings.detach())[0].cpu().double().sum(dim=-1)
        of_weights = torch.zeros(len(of_inputs), dtype=torch.float64)
        for w in weights.values():
            if w.grad is not None:
                of_weights += (w.grad * w.detach())[0].cpu().double().sum(dim=(0, 1))
        return of_inputs.numpy(), of_weights.numpy()

    def integrated(self, should_stop: ShouldStop = never) -> tuple[np.ndarray, float, float, int]:
        """Integrated gradients from embeddings of 0: (tokens,) float64, the aim there, the gap, and how many points.

        Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks"; by Gauss-Legendre points, more of them
        until the sum is the difference to within `COMPLETE`.
        """
        with torch.no_grad():
            ends = self.values(torch.cat([torch.zeros_like(self.embeddings), self.embeddings]), should_stop)
        baseline, value = ends.tolist()
        found, gap, points = np.zeros(self.embeddings.shape[1]), float("inf"), 0
        for points in POINTS:
            found = self._integral(points, should_stop)
            gap = abs(found.sum() - (value - baseline)) / max(abs(value - baseline), 1e-9)
            if gap <= COMPLETE:
                break
        return found, baseline, gap, points

    def _integral(self, points: int, should_stop: ShouldStop) -> np.ndarray:
        places, shares = np.polynomial.legendre.leggauss(points)
        places, shares = (places + 1) / 2, shares / 2  # from 0 to 1
        total = torch.zeros(self.embeddings.shape[1:], dtype=torch.float64)
        at_once = self._copies.at_once
        for start in range(0, points, at_once):
            alphas = torch.tensor(places[start : start + at_once], dtype=self.embeddings.dtype)
            alphas = alphas.to(self.embeddings.device)[:, None, None]
            with torch.enable_grad():
                between = (alphas * self.embeddings).requires_grad_(True)  # (points, tokens, width)
                value, _ = self._forward(between, should_stop)
                value.sum().backward()
            assert between.grad is not None
            weights = torch.tensor(shares[start : start + at_once])
            total += torch.einsum("p,ptw->tw", weights, between.grad.cpu().double())
        return (total * self.embeddings[0].cpu().double()).sum(dim=-1).numpy()

    def without_each(self, should_stop: ShouldStop = never) -> np.ndarray:
        """(tokens,) float64: the aim, less what it is where the token's embedding is 0 (Li et al. 2016, erasure)."""
        tokens, at_once = self.embeddings.shape[1], self._copies.at_once
        found: list[Tensor] = []
        with torch.no_grad():
            value = float(self.values(self.embeddings, should_stop)[0])
            for start in range(0, tokens, at_once):
                places: Sequence[int] = range(start, min(start + at_once, tokens))
                changed = self.embeddings.repeat(len(places), 1, 1)
                changed[range(len(places)), list(places)] = 0.0
                found.append(self.values(changed, should_stop))
        return value - torch.cat(found).numpy()
