"""What interventions changed: one head, the next token and the loss, beside the model as it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from attention_models.attention import attention
from attention_models.attention.incremental import IncrementalWork
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.forward.classes import labels_of, shares_of
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.forward.trace import Trace
from attention_models.protocol.comparison import CompareRequest, CompareView, TokenChange
from attention_models.protocol.information import entropy
from attention_models.protocol.interventions import Mask, applies
from attention_models.protocol.values import ClassHead, Prediction, read_only

_NONE = -100  # in the place of an id: torch's own mark of what counts for nothing
_MASK_BLOCK = 1 << 24  # cells of a mask held at once


def compare(request: CompareRequest, model: Model, before: Trace, after: Trace) -> CompareView:
    """Both runs are of the same text, `before` without interventions. For a site that is not long.

    Raises:
        IndexError: no such site, head or position.
    """
    weights = [trace.weights(request.site, request.head) for trace in (before, after)]
    masked = [trace.masked(request.site, request.head) for trace in (before, after)]
    difference = weights[1] - weights[0]
    figures = HeadFigures(
        weights=weights,
        masked=masked,
        difference=difference,
        largest_difference=float(np.abs(difference).max(initial=0.0)),
        entropy=[entropy(w).astype(np.float32) for w in weights],
        top_key=[w.argmax(axis=1) for w in weights],
        top=[w.max(axis=1) for w in weights],
        dead=np.flatnonzero(masked[1].all(axis=1)).tolist() if masked[1] is not None else (),
    )
    losses = loss(model, before), loss(model, after)
    return compare_view(request, model, before, after, figures, losses, peeks(before, after))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadFigures:
    """One head in two runs of the same text: of each pair the first is before, the second after."""

    weights: Sequence[np.ndarray]  # (rows, keys) float32, or of a long text their picture
    masked: Sequence[np.ndarray | None]  # as the weights, bool
    difference: np.ndarray  # as the weights: after - before
    largest_difference: float
    entropy: Sequence[np.ndarray]  # (queries,) float32, in bits
    top_key: Sequence[np.ndarray]  # (queries,) int
    top: Sequence[np.ndarray]  # (queries,) float32
    dead: Sequence[int]  # queries to which nothing is visible after


def compare_view(
    request: CompareRequest,
    model: Model,
    before: Trace,
    after: Trace,
    head: HeadFigures,
    losses: tuple[float | None, float | None],
    peeks: bool,
    cell: int = 1,
    done: float = 1.0,
) -> CompareView:
    """The answer: what the figures of the head, and what the model says before and after, come to."""
    x = after.at(request.site, request.head)
    return CompareView(
        request=request,
        head_dim=x.query.shape[-1],
        scale=x.scale,
        factor=1.0 if x.factors is None else float(x.factors[request.head]),
        before=read_only(head.weights[0]),
        after=read_only(head.weights[1]),
        masked_before=None if head.masked[0] is None else read_only(head.masked[0]),
        masked_after=None if head.masked[1] is None else read_only(head.masked[1]),
        difference=read_only(head.difference),
        largest_difference=head.largest_difference,
        entropy_before=read_only(head.entropy[0]),
        entropy_after=read_only(head.entropy[1]),
        top_key_before=read_only(head.top_key[0]),
        top_key_after=read_only(head.top_key[1]),
        top_before=read_only(head.top[0]),
        top_after=read_only(head.top[1]),
        token_changes=token_changes(model, before, after, request.position, request.top),
        prediction_before=prediction_at(model, before, request.position),
        prediction_after=prediction_at(model, after, request.position),
        loss_before=losses[0],
        loss_after=losses[1],
        peeks=peeks,
        dead_rows=tuple(head.dead),
        cell=cell,
        done=done,
    )


@torch.no_grad()
def token_changes(model: Model, before: Trace, after: Trace, position: int, top: int) -> tuple[TokenChange, ...]:
    """The `top` tokens that are likeliest at `position` in either run, with their probability in both.

    Ordered by the larger of the two; none for a model without an output head. Of a classifier its classes, of a model
    that answers questions the tokens likeliest as start or end, wherever they stand.
    """
    if not before.has_logits or not after.has_logits:
        return ()
    if model.info.class_head is not None:
        return _class_changes(model.info.class_head, before, after, position, top)
    p_before = before.logits_at([position])[0].cpu().double().softmax(dim=-1)  # (vocabulary,)
    p_after = after.logits_at([position])[0].cpu().double().softmax(dim=-1)
    best = torch.topk(torch.maximum(p_before, p_after), min(top, len(p_after))).indices
    return tuple(
        TokenChange(id=id_, label=model.piece_label(id_), before=float(p_before[id_]), after=float(p_after[id_]))
        for id_ in best.tolist()
    )


def _class_changes(head: ClassHead, before: Trace, after: Trace, position: int, top: int) -> tuple[TokenChange, ...]:
    is_span, is_share = head.of == "span", head.scale != "number"
    rows = range(len(before.tokens)) if is_span else [position]
    both = [trace.logits_at(rows).float().cpu() for trace in (before, after)]  # (rows, classes) each
    was, now = ((shares_of(z, head) if is_share else z.double()).flatten() for z in both)
    best = torch.topk(torch.maximum(was, now), min(top, len(was))).indices

    labels = labels_of(head, before)

    def label(place: int) -> str:
        token, end = divmod(place, len(labels))
        return f"{labels[end]}: {before.tokens[token].label}" if is_span else labels[place]

    return tuple(TokenChange(i, label(i), float(was[i]), float(now[i]), is_share) for i in best.tolist())


def loss(model: Model, trace: Trace) -> float | None:
    """Mean cross-entropy in nats of each next token of the text, given the tokens before it. Padding is no token of it.

    None for a model that does not predict the next token, and for a text of one token.
    """
    whole = LossInParts(model, trace)
    whole.advance()
    return whole.value


class LossInParts(IncrementalWork):
    """`value` is as `loss`, NaN until it is computed."""

    def __init__(self, model: Model, trace: Trace) -> None:
        self._trace: Trace | None = trace
        # after the last token stands none, and padding is neither said nor says anything
        self._wanted = next_ids(trace)
        has_loss = model.info.family == "causal" and trace.has_logits and len(self._wanted) > 0
        self.value: float | None = math.nan if has_loss else None
        # a logit is a product over the model's width, as many times a score's as there are heads
        self._row = model.info.vocabulary * max((x.heads for x in trace.inputs), default=1)
        super().__init__(len(trace.tokens) * self._row if has_loss else 0)

    @torch.no_grad()
    def _run(self) -> Iterator[int]:
        trace, self._trace = self._trace, None  # once it is done it keeps no run
        if self.value is None or trace is None:
            return
        if trace.output_logits is not None:
            said = trace.output_logits[:-1] if len(self._wanted) + 1 == len(trace.tokens) else None
            said = trace.output_logits[list(self._wanted)] if said is None else said  # a list copies
            ids = torch.tensor(list(self._wanted.values()), device=said.device)
            self.value = float(F.cross_entropy(said.float(), ids))
            return
        total = 0.0
        for rows, logits in trace.logit_blocks():
            ids = torch.tensor([self._wanted.get(row, _NONE) for row in rows], device=logits.device)
            total += float(F.cross_entropy(logits.float(), ids, ignore_index=_NONE, reduction="sum"))
            yield len(rows) * self._row
        self.value = total / len(self._wanted)


def next_ids(trace: Trace) -> dict[int, int]:
    """The id of the token after each position that has one; padding has and is none."""
    pairs = zip(trace.tokens, trace.tokens[1:], strict=False)
    return {i: after.id for i, (token, after) in enumerate(pairs) if not (token.padding or after.padding)}


def peeks(before: Trace, after: Trace) -> bool:
    """Whether anywhere in `after` a query may attend to a later key that `before` hides from it."""
    whole = PeeksInParts(before, after)
    whole.advance()
    return whole.found


class PeeksInParts(IncrementalWork):
    """`found` is as `peeks`, False until it is found."""

    def __init__(self, before: Trace, after: Trace) -> None:
        masks = [item for item in after.interventions if isinstance(item, Mask)]
        self._sides = [
            (was, now)
            for site, was, now in zip(after.sites, before.inputs, after.inputs, strict=True)
            if any(applies(mask, site) for mask in masks)
        ]
        self.found = False
        super().__init__(sum(now.queries * now.keys for _, now in self._sides))

    def _run(self) -> Iterator[int]:
        for was, now in self._sides:
            step = max(1, _MASK_BLOCK // (now.heads * now.keys))
            for start in range(0, now.queries, step):
                rows = slice(start, min(start + step, now.queries))
                self.found = _peeks(was, now, rows)
                if self.found:
                    return
                yield (rows.stop - rows.start) * now.keys


def _peeks(was: AttentionInputs, now: AttentionInputs, rows: slice) -> bool:
    # what is later than the first row, as far as one of them attends
    keys = slice(rows.start + 1, attention.reach(now, Part(None, rows)).stop)
    if keys.start >= keys.stop:
        return False
    masked_before, masked_after = (attention.masked_cells(x, Part(rows=rows, keys=keys)) for x in (was, now))
    if masked_before is None:
        return False
    # (1, heads or 1, rows or 1, keys or 1)
    opened = masked_before if masked_after is None else masked_before & ~masked_after
    opened = opened.expand(-1, -1, rows.stop - rows.start, keys.stop - keys.start)
    return bool(opened.triu().any())


def prediction_at(model: Model, trace: Trace, position: int) -> Prediction | None:
    """What the model says at `position`; None for a model that says no words."""
    says_words = trace.has_logits and model.info.class_head is None
    return predict(model, trace, [position])[0] if says_words else None
