"""Other attention weights in one row of some heads: put into copies of a run, and what the model then says."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.forward.capture import MixEdit
from attention_models.forward.predictions import answering_position
from attention_models.protocol.effects import Scope
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.values import Site, SiteRef

_ELSEWHERE = (
    "The answer is read in the decoder. Choose one of its heads, or one of cross-attention: the encoder's rows belong "
    "to other tokens."
)
_LONG = "This text is too long: a search runs the model hundreds of times. Take one of up to {most:,} keys."

MOST_KEYS = 1024

_LEAST = 1e-6
"""Of a row's weight: where less lies on all other keys, none of them could take over."""


class Rows:
    """The row that an answer is read at, of one head or of several: its weights, and a way to put in others."""

    def __init__(self, copies: BatchedRuns, site: SiteRef, head: int, scope: Scope, position: int) -> None:
        """Raises InputError where the head's rows are not those of the token that the answer is read at."""
        model, trace = copies.model, copies.trace
        self.copies, self.position = copies, position
        own = trace.sites[trace.index(site)]
        if own.stack not in (model.info.predicting_stack, "cross"):
            raise InputError(_ELSEWHERE)
        if own.keys > MOST_KEYS:
            raise InputError(_LONG.format(most=MOST_KEYS))
        self.query = self._reading_query()
        alike = [other for other in trace.sites if other.stack == own.stack and other.keys == own.keys]
        sites = alike if scope == "stack" else [own]
        self.heads = tuple(
            (each.ref, number) for each in sites for number in ([head] if scope == "head" else range(each.heads))
        )
        rows = [trace.weights(at, number, [self.query])[0] for at, number in self.heads]
        masks = [trace.masked(at, number, [self.query]) for at, number in self.heads]
        self.observed = torch.stack([torch.from_numpy(row.astype("float64")) for row in rows])  # (heads, keys)
        self.visible = torch.stack(
            [torch.ones(own.keys, dtype=torch.bool) if mask is None else ~torch.tensor(mask[0]) for mask in masks]
        )
        self._places: dict[SiteRef, list[tuple[int, int]]] = {}  # of each site: (row of `observed`, head)
        for place, (at, number) in enumerate(self.heads):
            self._places.setdefault(at, []).append((place, number))

    def _reading_query(self) -> int:
        """Of a model that says one thing of the whole text, the token that it reads it at."""
        head = self.copies.model.info.class_head
        of_text = head is not None and head.of == "text"
        return answering_position(self.copies.model, self.copies.trace) if of_text else self.position

    def answers(self, weights: Tensor, should_stop: ShouldStop = never) -> Tensor:
        """The model's answer with each of some rows put in: log-probabilities (copies, answers) float32.

        `weights` are (copies, heads, keys). They take the place of the softmax before values are mixed, so that what
        interventions do to the heads comes after. Gradients pass.

        Raises:
            Cancelled: `should_stop()` was true between two blocks.
        """
        logits = self.copies.run(
            len(weights), positions=[self.position], should_stop=should_stop, weighing=[self._weighing(weights)]
        )
        there = logits[:, 0] if logits.dim() == 3 else logits
        return torch.log_softmax(there.float(), dim=-1).cpu()

    def _weighing(self, weights: Tensor) -> MixEdit:
        def edit(site: Site, x: AttentionInputs, out: Tensor) -> Tensor:
            here = self._places.get(site.ref)
            if here is None:
                return out
            rows = weights[:, [place for place, _ in here]].to(x.value.device, x.value.dtype)  # (copies, heads, keys)
            values = x.value[:, [head // x.group for _, head in here]]  # (copies, heads, keys, value_dim)
            mixed = torch.matmul(rows[:, :, None], values)[:, :, 0]
            out = out.clone()
            out[:, [head for _, head in here], self.query] = mixed
            return out

        return edit

    def moved(self, source: int, target: int | None, share: float) -> Tensor:
        """(heads, keys): `share` of the weight on a key given to another, or to all others in proportion."""
        rows = self.observed.clone()
        taken = share * rows[:, source]
        rows[:, source] -= taken
        if target is not None:
            rows[:, target] += taken
            return rows
        left = rows.sum(dim=1)
        return ((left + taken) / left)[:, None] * rows

    @property
    def masses(self) -> Tensor:
        """(keys,): the weight on each key, the mean over heads."""
        return self.observed.mean(dim=0)

    def sources(self) -> list[int]:
        """Keys that have weight, and that every head can do without."""
        others = self.observed.sum(dim=1, keepdim=True) - self.observed  # (heads, keys)
        return torch.nonzero((self.masses > 0) & (others > _LEAST).all(dim=0))[:, 0].tolist()

    def targets(self) -> list[int]:
        """Keys that every head may attend to."""
        return torch.nonzero(self.visible.all(dim=0))[:, 0].tolist()


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon's, (...,) in nats, of distributions (..., keys): 0 where they are the same, at most log 2."""
    middle = (p + q) / 2
    return (_kl(p, middle) + _kl(q, middle)) / 2


def _kl(p: Tensor, q: Tensor) -> Tensor:
    return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum(dim=-1)


def distance(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Total variation distance, (...,), of distributions (..., answers) given by their logarithms."""
    return (log_p.double().exp() - log_q.double().exp()).abs().sum(dim=-1) / 2
