"""A logit as a sum of writes where norms stand between a write and the logit, each held at its divisor in the run.

A pass is made in which the stream goes on through every norm, activation and cap with the factor that each had in the
run: a norm divides by the deviation that it found, an activation or cap multiplies by what it gave over what it was
given. What sublayers write is cut from what they read. The logit is then a linear function of the writes, of the
embedding and of biases, so that each times its gradient is its share, and the shares sum to the logit (the identity
and LayerNorm rules of Ali et al. 2022, "XAI for Transformers: Better Explanations through Conservative Propagation").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers.pytorch_utils import Conv1D

from attention_models.attention.inputs import AttentionInputs
from attention_models.dataflow.norms import norm_of
from attention_models.dataflow.readout import readout_of
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.metric import ResolvedMetric, of_logits
from attention_models.forward.block_hooks import Edits, tensor_of, with_tensor
from attention_models.forward.sublayers import sublayers_of
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.values import Site, SiteRef

_ELEMENTWISE: tuple[Any, ...] = (F.gelu, F.relu, F.silu, F.tanh, torch.relu, torch.tanh, Tensor.relu, Tensor.tanh)


@dataclass(slots=True)
class HeldShares:
    """What each part adds to an aim: `attention` by site, without its heads; `directions` (width,) of W_O's output."""

    value: float = 0.0
    embedding: float = 0.0
    constant: float = 0.0
    attention: dict[SiteRef, float] = field(default_factory=dict)
    networks: dict[SiteRef, float] = field(default_factory=dict)
    directions: dict[SiteRef, Tensor] = field(default_factory=dict)
    heads: dict[SiteRef, Tensor] = field(default_factory=dict)  # (heads, queries, value_dim): what each gave
    norms: int = 0
    activations: int = 0

    @property
    def total(self) -> float:
        return self.embedding + self.constant + sum(self.attention.values()) + sum(self.networks.values())


def held_shares(copies: BatchedRuns, aim: ResolvedMetric, should_stop: ShouldStop = never) -> HeldShares:
    """The shares; it is for who asks to see that they sum to the value.

    Raises:
        InputError: what a block adds was not found.
    """
    with torch.enable_grad():
        return _Pass(copies, aim).shares(should_stop)


class _Pass:
    def __init__(self, copies: BatchedRuns, aim: ResolvedMetric) -> None:
        self.copies, self.aim = copies, aim
        self.stack = copies.model.info.predicting_stack
        self.found = HeldShares()
        self.entered: list[Tensor] = []
        self.writes: dict[tuple[SiteRef, str], list[Tensor]] = {}
        self.projected: dict[SiteRef, Tensor] = {}  # what W_O gave, where a norm comes before the sum
        self.biases: list[Tensor] = []
        self.kinds: list[str] = []

    def shares(self, should_stop: ShouldStop) -> HeldShares:
        copies, found, here = self.copies, self.found, self.aim.position
        with self._hooked() as edits, _Products(self):
            logits = copies.run(1, [self._heads], edits, None, should_stop, self._enter)
            at = logits if logits.dim() == 2 else logits[:, here]
            value = of_logits(at, self.aim)
            if value.requires_grad:
                value.sum().backward()
        found.value = float(value.detach()[0])
        found.embedding = sum(self._share(t) for t in self.entered)
        found.constant = sum(
            float((b.detach() * b.grad).cpu().double().sum()) for b in self.biases if b.grad is not None
        )
        for (ref, part), written in self.writes.items():
            total = sum(self._share(t) for t in written)
            if part == "mlp":
                found.networks[ref] = total
                continue
            site = SiteRef("cross", ref.layer) if part == "cross" else ref
            found.attention[site] = total
            grad = self.projected.get(site, written[0]).grad
            if grad is not None:
                found.directions[site] = grad.reshape(-1, grad.shape[-1])[here].detach().cpu().double()
        found.norms, found.activations = self.kinds.count("norm"), self.kinds.count("activation")
        return found

    def _share(self, t: Tensor) -> float:
        if t.grad is None:
            return 0.0
        rows, grads = (x.detach().reshape(-1, t.shape[-1])[self.aim.position].cpu().double() for x in (t, t.grad))
        return float(rows @ grads)

    # ----------------------------------------------------------------- what is cut, and what is held

    def _heads(self, site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
        self.found.heads[site.ref] = out[0].detach()
        return out

    def _enter(self, ref: SiteRef, hidden: Tensor) -> Tensor:
        if ref != SiteRef(self.stack, 0):
            return hidden
        self.entered.append(hidden.detach().requires_grad_(True))
        return self.entered[-1]

    def _cut(self, ref: SiteRef, part: str, through: bool) -> Callable[[Any, Any], Any]:
        def edit(_given: Any, out: Any) -> Any:
            wrote = tensor_of(out)
            if not (through and wrote.requires_grad):
                wrote = wrote.detach().requires_grad_(True)
            else:
                wrote.retain_grad()
            self.writes.setdefault((ref, part), []).append(wrote)
            return with_tensor(out, wrote)

        return edit

    @contextmanager
    def _hooked(self) -> Iterator[Edits]:
        model, edits = self.copies.model, Edits()
        outputs = readout_of(model, self.copies.trace).outputs
        projections: dict[nn.Module, SiteRef] = {}
        for ref, block in sublayers_of(model, self.copies.inputs).items():
            if ref.stack != self.stack:
                continue
            if block.why:
                raise InputError(block.why)
            at = edits.setdefault(ref, {})
            for part in ("attention", "cross", "mlp"):
                for call in block.calls.get(part, ()):
                    site = SiteRef("cross", ref.layer) if part == "cross" else ref
                    own = outputs.get(site) if part != "mlp" else None
                    through = own is not None and own is not call.module
                    if through and own is not None:
                        projections[own] = site
                    at[call] = self._cut(ref, part, through)
        with ExitStack() as stack:
            for module in model.module_names:
                if next(module.children(), None) is None:
                    handle = module.register_forward_hook(self._hold(projections.get(module)))
                    stack.callback(handle.remove)
            yield edits

    def _hold(self, site: SiteRef | None) -> Callable[[nn.Module, Any, Any], Any]:
        def hook(module: nn.Module, args: Any, out: Any) -> Any:
            given = args[0] if args else None
            if not isinstance(out, Tensor) or not isinstance(given, Tensor) or not given.is_floating_point():
                return None
            if site is not None:
                self.projected[site] = out.detach().requires_grad_(True)
                return self.projected[site]
            if not given.requires_grad:
                return None
            if isinstance(module, (nn.Linear, Conv1D)):
                return self._with_bias(out, getattr(module, "bias", None))
            if given.shape != out.shape:
                return None
            norm = norm_of(module, given.detach(), out.detach())
            if norm is None:
                return None if any(True for _ in module.parameters()) else self._product(given, out)
            x = given if norm.rms else given - given.mean(dim=-1, keepdim=True)
            factor = (x.detach().float().square().mean(dim=-1, keepdim=True) + norm.eps).rsqrt()
            gain = 1.0 if norm.gain is None else norm.gain.float().to(given.device)
            linear = x.float() * factor * gain
            held = out.detach() + (linear - linear.detach()).to(out.dtype)
            self._note(held, "norm")
            bias = None if norm.bias is None else norm.bias.to(out.dtype).to(given.device)
            return self._with_bias(held, bias)

        return hook

    def _with_bias(self, out: Tensor, bias: Tensor | None) -> Tensor:
        if bias is None:
            return out
        self.biases.append(bias.detach().clone().requires_grad_(True))
        return out + (self.biases[-1] - self.biases[-1].detach())

    def _product(self, given: Tensor, out: Tensor) -> Tensor:
        """`out`, which is made of `given` number by number, as `given` times what it was multiplied by."""
        x = given.detach()
        factor = torch.where(x == 0, 0.0, out.detach() / torch.where(x == 0, 1.0, x))
        held = out.detach() + factor * (given - x)
        if not torch.equal(x, out.detach()):
            self._note(held, "activation")
        return held

    def _note(self, held: Tensor, kind: str) -> None:
        """Count it where the logit is found to depend on it."""
        if held.requires_grad:
            held.register_hook(lambda _: self.kinds.append(kind))


class _Products(TorchFunctionMode):
    """While it is active, elementwise functions that a model calls without a module are held too."""

    def __init__(self, of: _Pass) -> None:
        super().__init__()
        self._of = of

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in _ELEMENTWISE and isinstance(args[0], Tensor) and args[0].requires_grad:
            return self._of._product(args[0], out)
        return out
