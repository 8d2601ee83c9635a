"""Is attention an explanation? Other weights that give the same answer, and the least change that gives another.

Jain and Wallace 2019, "Attention is not Explanation", section 4.2, adversarial attention: weights as far as can be
from the observed ones by Jensen-Shannon's divergence, while the answer moves by at most epsilon in total variation
distance. As there, the weights are the softmax of free numbers, and Adam climbs the divergence less 500 times what the
distance is over epsilon. What differs: one distribution is sought and not several that also differ from each other,
from several beginnings of which the best is kept; the model is a transformer, so that what changes is the row of the
token that the answer is read at, in one head, one layer or all of them, and all else is run on as it comes; and of
what was found only that counts which a run of the model with exactly these weights confirms.

What it does not show: that a head could have been trained to such weights, nor that they would do on another text
(Wiegreffe and Pinter 2019, "Attention is not not Explanation"). Where the head hardly acts on the answer, any do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.row_edits import Rows, distance, divergence
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.forward.run import run_alone
from attention_models.protocol.effects import (
    EPSILON,
    AdversarialAttentionRequest,
    AdversarialAttentionView,
    Moved,
    Rerun,
    Scope,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Report, ShouldStop, never, silent
from attention_models.protocol.values import Candidate, SiteRef, read_only
from attention_models.views.candidates import label_of

# The least change of a row of attention weights after which another answer is the likeliest.
# Every key blocked in turn; and for every two keys all weight of one moved to the other. Of the moves that change the
# likeliest answer the least part that still does is found by halving, for all of them at once: those that fail at half
# of the least known are left behind while another succeeds. So the least is of moves between two keys, and exact to a
# thousandth where more weight moved never undoes what less did.


MOST_MOVES = 1024
"""Of longer rows: the moves from the keys with the most weight."""

_CHANGE_HALVINGS = 10

Change = tuple[int, int | None, float]
"""From which key, to which (None: to all others in proportion), and what share of its weight."""


@dataclass(frozen=True, slots=True)
class _Flip:
    source: int
    target: int
    mass: float  # all of it


class Counterfactual:
    """Found a batch at a time."""

    def __init__(self, rows: Rows, likeliest: int) -> None:
        self._rows, self._likeliest = rows, likeliest
        sources = sorted(rows.sources(), key=lambda key: -float(rows.masses[key]))
        targets = rows.targets()
        pairs = [(source, target) for source in sources for target in targets if source != target]
        self._sources, self._pairs, self.moves = sources, pairs[:MOST_MOVES], len(pairs)
        self._blocks, self.tried = 0, 0
        self._flips: list[_Flip] = []
        self.blocked: Change | None = None
        self.moved: Change | None = None
        self._low, self._high, self._halved = 0.0, 0.0, 0
        self._at, self._left = 0, list[tuple[_Flip, float]]()  # of the halving under way: how many were tried, what did

    @property
    def blocks_done(self) -> bool:
        return self._blocks == len(self._sources)

    @property
    def is_whole(self) -> bool:
        return (
            self.blocks_done
            and self.tried == len(self._pairs)
            and (not self._flips or self._halved == _CHANGE_HALVINGS)
        )

    @property
    def done(self) -> float:
        if self.is_whole:
            return 1.0
        tried = self._blocks + self.tried
        return 0.8 * tried / max(1, len(self._sources) + len(self._pairs)) + 0.2 * self._halved / _CHANGE_HALVINGS

    def advance(self, should_stop: ShouldStop = never) -> None:
        """One batch more.

        Raises:
            Cancelled: `should_stop()` was true between two blocks; what was done before stays.
        """
        at_once = self._rows.copies.at_once
        if not self.blocks_done:
            self._block(self._sources[self._blocks : self._blocks + at_once], should_stop)
        elif self.tried < len(self._pairs):
            self._move(self._pairs[self.tried : self.tried + at_once], should_stop)
        elif not self.is_whole:
            self._halve(should_stop)

    def _block(self, keys: list[int], should_stop: ShouldStop) -> None:
        """Sources come with the largest weight first, so the last that changes the answer is the least."""
        flips = self._are_flipped([self._rows.moved(key, None, 1.0) for key in keys], should_stop)
        for key, flipped in zip(keys, flips, strict=True):
            if flipped:
                self.blocked = key, None, 1.0
        self._blocks += len(keys)

    def _move(self, pairs: list[tuple[int, int]], should_stop: ShouldStop) -> None:
        flips = self._are_flipped([self._rows.moved(source, target, 1.0) for source, target in pairs], should_stop)
        masses = self._rows.masses
        self._flips += [
            _Flip(source, target, float(masses[source]))
            for (source, target), flipped in zip(pairs, flips, strict=True)
            if flipped
        ]
        self.tried += len(pairs)
        least = min(self._flips, key=lambda flip: flip.mass, default=None)
        if least is not None:
            self.moved, self._high = (least.source, least.target, 1.0), least.mass

    def _halve(self, should_stop: ShouldStop) -> None:
        """Some more of the moves that are left, at half of the least weight that is known to do."""
        middle = (self._low + self._high) / 2
        tried = self._flips[self._at : self._at + self._rows.copies.at_once]
        shares = [min(1.0, middle / flip.mass) for flip in tried]
        rows = [self._rows.moved(f.source, f.target, s) for f, s in zip(tried, shares, strict=True)]
        flipped = self._are_flipped(rows, should_stop)
        self._left += [(flip, share) for flip, share, yes in zip(tried, shares, flipped, strict=True) if yes]
        self._at += len(tried)
        if self._at < len(self._flips):
            return
        if self._left:
            self._flips = [flip for flip, _ in self._left]
            first, share = self._left[0]
            self.moved, self._high = (first.source, first.target, share), middle
        else:
            self._low = middle
        self._at, self._left = 0, []
        self._halved += 1

    def _are_flipped(self, rows: list[Tensor], should_stop: ShouldStop) -> list[bool]:
        """Of a batch of rows, each (heads, keys)."""
        with torch.no_grad():
            said = self._rows.answers(torch.stack(rows), should_stop)  # (rows, answers)
        flipped: list[bool] = (said.argmax(dim=-1) != self._likeliest).tolist()
        return flipped


STEPS = 120
_AT_ONCE = 8
"""Steps of the search between two answers."""

_RATE = 0.3
_PENALTY = 500.0
_MARGIN = 0.98
"""Of epsilon: so that rounding, which differs between a run in a batch and one alone, breaks no promise."""

_ENOUGH = 0.995
"""Of the largest divergence that there is."""

_HALVINGS = 8
_SEARCH_SHARE = 0.6
"""Of all the work, as it is told."""

_ALL = slice(None)

_LABEL = "Searching for other weights"


def answer(request: AdversarialAttentionRequest, context: Context) -> AdversarialAttentionView:
    """As far as it is computed once a few steps more were made."""
    search = search_of(request, context.run(request.run))
    search.advance(context.should_stop, context.report)
    return search.view(request)


def search_of(request: AdversarialAttentionRequest, current: CurrentRun) -> Search:
    """The search that is asked for, as far as it has come: `current` keeps it."""
    kept = current.kept.get(Search)
    if kept is None or not kept.answers(request):
        kept = current.kept.put(Search(request, BatchedRuns.of_run(current)))
    return kept


def adversarial_attention(
    model: Model,
    text: Any,
    site: SiteRef | tuple[str, int],
    head: int,
    *,
    scope: Scope = "head",
    epsilon: float = EPSILON,
    position: int | None = None,
    written: Any = None,
    interventions: tuple[Intervention, ...] = (),
    should_stop: ShouldStop = never,
) -> AdversarialAttentionView:
    """Weights unlike those of a head that leave the answer as it is, and the least change that does not.

        found = adversarial_attention(model, "Tom and Anna went to the park. Anna gave the ball to", ("decoder", 5), 5)
        found.same.divergence       # (heads,) nats, at most log 2
        found.same.distance         # of the answer with found.same.weights put in, at most epsilon
        found.moved                 # the least weight whose move to another key changes the likeliest answer

    Args:
        scope: "head", "layer" (all heads of the site) or "stack" (all heads of all sites like it).
        epsilon: how far the answer may move, in total variation distance.
        position: where the answer is read; None as in `attention_models.forward.predictions.answering_position`.

    Other arguments as in `ax.head_effects`.

    Raises:
        InputError: the model takes no gradients in its number format, gives no distribution, or as in `head_effects`.
    """
    trace = run_alone(model, text, target=written, interventions=interventions, should_stop=should_stop)
    request = AdversarialAttentionRequest(
        run=0, site=SiteRef(*site) if isinstance(site, tuple) else site, head=head, scope=scope, position=position,
        epsilon=epsilon,
    )  # fmt: skip
    search = Search(request, BatchedRuns.of(model, trace, text, written))
    while not search.is_whole:
        search.advance(should_stop)
    return search.view(request)


@dataclass(slots=True)
class _Best:
    weights: Tensor  # (heads, keys) float64
    divergence: float  # the mean over heads


class Search:
    """The search of one run, row and scope, done a few steps at a time."""

    def __init__(self, request: AdversarialAttentionRequest, copies: BatchedRuns) -> None:
        """Raises InputError as `adversarial_attention`."""
        model, trace = copies.model, copies.trace
        self._request = request
        _check(model, request)
        if not trace.has_logits:
            raise InputError(f"{model.info.name} has no output head: there is no answer that could stay the same.")
        position = answering_position(model, trace) if request.position is None else request.position
        if not 0 <= position < len(trace.tokens):
            raise InputError(f"There is no position {position}: the text has tokens 0 to {len(trace.tokens) - 1:,}.")
        self._copies = copies
        self._rows = Rows(copies, request.site, request.head, request.scope, position)
        with torch.no_grad():
            self._own = torch.log_softmax(trace.logits_at([position])[0].float().cpu(), dim=-1)  # (answers,)
        observed = self._rows.observed
        self._mass = observed.sum(dim=1, keepdim=True)  # 1, less where a sink takes part
        self._free = _beginnings(observed, self._rows.visible).requires_grad_(True)  # (beginnings, heads, keys)
        self._adam = torch.optim.Adam([self._free], lr=_RATE)
        self._steps = 0
        self._best = _Best(observed, 0.0)
        self._same = self._rerun(observed, never)
        self._margin = _MARGIN
        self._least = Counterfactual(self._rows, int(self._own.argmax()))
        self._reruns: dict[str, Moved] = {}

    def answers(self, request: AdversarialAttentionRequest) -> bool:
        return replace(request, have=0.0) == replace(self._request, have=0.0)

    @property
    def is_whole(self) -> bool:
        return self._searched and self._least.is_whole

    @property
    def _searched(self) -> bool:
        return self._steps >= STEPS

    @property
    def done(self) -> float:
        if self.is_whole:
            return 1.0
        return _SEARCH_SHARE * self._steps / STEPS + (1 - _SEARCH_SHARE) * self._least.done

    def advance(self, should_stop: ShouldStop = never, report: Report = silent) -> None:
        """A few steps more.

        Raises:
            Cancelled: `should_stop()` was true between two blocks of the model; what was done before stays.
        """
        report(_LABEL, self.done)
        if self._steps >= STEPS:
            self._confirm(should_stop)  # where the last steps were called off before that
            self._least.advance(should_stop)
            return
        if not self._steps:
            self._pull_back(should_stop)
        for _ in range(min(_AT_ONCE, STEPS - self._steps)):
            self._step(should_stop)
            report(_LABEL, self.done)
            if self._searched:
                self._pull_back(should_stop)
                break
        self._confirm(should_stop)

    # ----------------------------------------------------------------- the search

    def _weights(self, part: slice = _ALL) -> Tensor:
        """(beginnings, heads, keys) float64 that sum to what the observed ones do."""
        masked = self._free[part].masked_fill(~self._rows.visible, -math.inf)
        return self._mass * masked.softmax(dim=-1)

    def _step(self, should_stop: ShouldStop) -> None:
        """As many beginnings at once as are run together; their gradients add up before the step."""
        self._adam.zero_grad()
        reached = []
        for part in self._parts(len(self._free)):
            with torch.enable_grad():
                weights = self._weights(part)
                off = distance(self._rows.answers(weights, should_stop), self._own)  # (beginnings,)
                far = self._divergence(weights).mean(dim=1)
                (_PENALTY * (off - self._margin * self._request.epsilon).clamp(min=0) - far).sum().backward()
            reached.append((weights.detach(), off.detach()))
        for weights, off in reached:
            self._keep(weights, off)
        self._adam.step()
        self._steps += 1
        if self._best.divergence >= _ENOUGH * math.log(2):
            self._steps = STEPS

    def _parts(self, count: int) -> list[slice]:
        at_once = self._copies.at_once
        return [slice(start, start + at_once) for start in range(0, count, at_once)]

    def _divergence(self, weights: Tensor) -> Tensor:
        """(…, heads) of (…, heads, keys)."""
        return divergence(weights / self._mass, (self._rows.observed / self._mass).expand_as(weights))

    @torch.no_grad()
    def _keep(self, weights: Tensor, off: Tensor) -> None:
        """The furthest of those within epsilon, if it is further than what there was."""
        far = self._divergence(weights).mean(dim=1)
        far[~(off <= self._margin * self._request.epsilon)] = -1.0
        place = int(far.argmax())
        if float(far[place]) > self._best.divergence:
            self._best = _Best(weights[place].clone(), float(far[place]))

    @torch.no_grad()
    def _pull_back(self, should_stop: ShouldStop) -> None:
        """From where each beginning has come to, back to the observed weights until the answer is the same."""
        ends, observed = self._weights(), self._rows.observed
        low, high = torch.zeros(len(ends), 1, 1), torch.ones(len(ends), 1, 1)
        for share in (high, *(None for _ in range(_HALVINGS))):
            at = (low + high) / 2 if share is None else share
            between = observed + at * (ends - observed)
            said = [self._rows.answers(between[part], should_stop) for part in self._parts(len(between))]
            off = distance(torch.cat(said), self._own)
            self._keep(between, off)
            fits = (off <= self._margin * self._request.epsilon)[:, None, None]
            low, high = torch.where(fits, at, low), torch.where(fits, high, at)

    def _confirm(self, should_stop: ShouldStop) -> None:
        """Run the best alone; it counts if the answer is the same there too."""
        if self._best.divergence <= float(self._same.divergence.mean()):
            return
        rerun = self._rerun(self._best.weights, should_stop)
        if rerun.distance <= self._request.epsilon:
            self._same = rerun
            return
        self._margin *= 0.9
        self._best = _Best(torch.from_numpy(self._same.weights.copy()), float(self._same.divergence.mean()))

    @torch.no_grad()
    def _rerun(self, weights: Tensor, should_stop: ShouldStop) -> Rerun:
        """(heads, keys) put into the model."""
        said = self._rows.answers(weights[None], should_stop)[0]
        return Rerun(
            weights=read_only(weights.numpy().copy()),
            divergence=read_only(self._divergence(weights).numpy()),
            distance=float(distance(said, self._own)),
            best=self._candidate(said, int(said.argmax())),
            former=self._candidate(said, int(self._own.argmax())),
        )

    def _candidate(self, said: Tensor, id_: int) -> Candidate:
        model, trace = self._copies.model, self._copies.trace
        return Candidate(
            id=id_,
            label=label_of(model, trace, id_),
            piece="",
            probability=float(said[id_].double().exp()),
            logit=float("nan"),
            rank=1 + int((said > said[id_]).sum()),
        )

    # ----------------------------------------------------------------- what is found

    def view(self, request: AdversarialAttentionRequest) -> AdversarialAttentionView:
        """What is found so far; later work leaves it as it is."""
        rows, least = self._rows, self._least
        return AdversarialAttentionView(
            request=request,
            heads=rows.heads,
            position=rows.position,
            query=rows.query,
            visible=read_only(rows.visible.numpy()),
            observed=read_only(rows.observed.numpy()),
            before=self._candidate(self._own, int(self._own.argmax())),
            same=self._same,
            blocked=self._moved("blocked", least.blocked),
            moved=self._moved("moved", least.moved),
            tried=least.tried,
            moves=least.moves,
            searched=self._searched,
            blocks_done=least.blocks_done,
            moves_done=least.is_whole,
            done=self.done,
        )

    def _moved(self, name: str, change: tuple[int, int | None, float] | None) -> Moved | None:
        """The change run alone; None where another answer is not likeliest there, by rounding."""
        if change is None:
            return None
        source, target, share = change
        known = self._reruns.get(name)
        if known is None or (known.source, known.target, known.share) != change:
            rerun = self._rerun(self._rows.moved(source, target, share), never)
            mass = share * float(self._rows.masses[source])
            self._reruns[name] = known = Moved(source=source, target=target, mass=mass, share=share, rerun=rerun)
        return known if known.rerun.best.id != known.rerun.former.id else None


def _beginnings(observed: Tensor, visible: Tensor) -> Tensor:
    """(beginnings, heads, keys) float64 before the softmax.

    Even; turned over; drawn at random, by one seed; and the observed weights, disturbed a little and more.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(observed.shape, generator=generator, dtype=torch.float64) for _ in range(4)]
    logs = observed.clamp(min=1e-6).log().masked_fill(~visible, 0.0)
    return torch.stack(
        [torch.zeros_like(logs), -logs / 2, 2 * drawn[0], 2 * drawn[1], logs + 0.2 * drawn[2], logs + drawn[3]]
    )


def _check(model: Model, request: AdversarialAttentionRequest) -> None:
    if not 0 < request.epsilon < 1:
        raise InputError(f"An answer may move by more than 0 and less than 1, not by {request.epsilon:g}.")
    if model.dtype != torch.float32:
        raise InputError(
            f"{model.info.name} runs in {model.dtype_name}, in which gradients are rounded too much to be told apart. "
            "Open it in float32."
        )
    head = model.info.class_head
    if head is not None and (head.scale != "softmax" or head.of == "span"):
        raise InputError(
            f"{model.info.name} does not share out a whole among its answers, so that no distance between two of them "
            "is defined. Open a model that says tokens, or one of several classes."
        )
