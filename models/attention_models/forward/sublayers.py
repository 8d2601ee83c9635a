"""What each block of a model adds to the residual stream, and by which module: seen in the sums of a run.

A few tokens are run, and every tensor operation within a block is noted. Where the residual stream is one summand, the
other is what a sublayer contributes, and the module that returned it is the one to switch off: the output projection of
most families, a norm where one stands on what is written (Gemma 2), the mixture where there are experts. What was made
of an attention layer's values is attention, all else the feed-forward network. No family is known by its name.

Why it is not built on `attention_models.dataflow`, which reads the same sums: that package lies above this one and runs
models through it; it keeps calls of modules without children alone, where a part to switch off is any module (a mixture
of experts); and its whole graph takes half as long again (story-gpt: 36 ms of processor time against 24), which the
first run with a part off would wait for.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle
from transformers.pytorch_utils import Conv1D

from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.capture import Recorder, active, recording
from attention_models.forward.model import Model
from attention_models.protocol.values import SiteRef

_PROBE = 8  # tokens
_TOLD_APART = 0.05  # a gain of 1 gives 1, a gain stored as g - 1 and set to 1 gives 2

# operations after which a tensor holds the numbers that it held before
_SAME = frozenset(
    f"aten::{name}"
    for name in (
        *("view", "_unsafe_view", "reshape", "_reshape_alias", "expand", "squeeze", "unsqueeze"),
        *("transpose", "permute", "t", "clone", "_to_copy", "contiguous", "detach", "alias", "lift_fresh"),
    )
)
_SUMS = ("aten::add", "aten::add_", "aten::sub", "aten::sub_")
_SCALINGS = ("aten::mul", "aten::mul_", "aten::div", "aten::div_")
_MIXING = ("aten::bmm", "aten::mm", "aten::baddbmm")
_SOFTMAX = ("aten::_softmax", "aten::_safe_softmax")
_CONVOLUTION = "aten::convolution"
_KEEPS_WEIGHTS = ("aten::masked_fill", "aten::masked_fill_", *_SCALINGS)


@dataclass(frozen=True, slots=True)
class Call:
    """A module, and which of its calls within the block is meant, counted from 0."""

    module: nn.Module
    number: int


@dataclass(frozen=True, slots=True)
class BlockParts:
    """One block as it ran.

    Attributes:
        calls: by the name of a part ("attention", "cross", "mlp", "norm1", ...) the calls that make it: of a sublayer
            those whose output is added to the stream, of a norm the norm itself.
        why: what is said where a part that should be there is not; "" where all was found.
        neurons: the call of the matrix that reads the activations of the feed-forward network; None where several do,
            as in a mixture of experts, or where it is not found.
    """

    calls: Mapping[str, tuple[Call, ...]]
    why: str = ""
    neurons: Call | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.calls)

    @property
    def neuron_count(self) -> int:
        """How many neurons the feed-forward network has; 0 where they cannot be told apart."""
        if self.neurons is None:
            return 0
        matrix = self.neurons.module
        if isinstance(matrix, nn.Linear):
            return matrix.in_features
        assert isinstance(matrix, Conv1D)
        return int(matrix.weight.shape[0])


Blocks = dict[SiteRef, BlockParts]


def sublayers_of(model: Model, inputs: Mapping[str, Tensor]) -> Blocks:
    """The parts of every block, found once a model with a few tokens of `inputs`."""
    if not isinstance(model.sublayers, dict):
        model.sublayers = _found(model, inputs)
    found: Blocks = model.sublayers
    return found


def without_gain(norm: nn.Module) -> nn.Module | None:
    """A norm like `norm` that multiplies by 1 and adds 0; None where none could be made. It has no hooks.

    Whether a family stores its gain as g or as g - 1 is seen from what it makes of ones.
    """
    own = dict(norm.named_parameters(recurse=False))
    if not own or any(p.dim() != 1 for p in own.values()):
        return None
    width = next(iter(own.values())).shape[0]
    x = 10 * torch.randn(1, width, generator=torch.Generator().manual_seed(0))
    for gain in (1.0, 0.0):
        plain = _with_parameters(norm, own, gain, torch.device("cpu"), torch.float32)
        with torch.no_grad():
            size = float(plain(x).square().mean().sqrt())
        if abs(size - 1) < _TOLD_APART:
            device = next((p.device for p in own.values() if not p.is_meta), torch.device("cpu"))
            return _with_parameters(norm, own, gain, device, next(iter(own.values())).dtype)
    return None


def _with_parameters(
    norm: nn.Module, own: Mapping[str, nn.Parameter], gain: float, device: torch.device, dtype: torch.dtype
) -> nn.Module:
    plain = copy.copy(norm)
    vars(plain).pop("forward", None)  # accelerate's, which would fetch the weights
    for name, value in vars(plain).items():
        if name.endswith("_hooks") or name.endswith("_hooks_with_kwargs") or name.endswith("_hooks_always_called"):
            plain.__dict__[name] = type(value)()
    plain._parameters = dict(norm._parameters)  # None where it has no bias
    for name, p in own.items():
        number = 0.0 if "bias" in name else gain
        plain._parameters[name] = nn.Parameter(torch.full(p.shape, number, device=device, dtype=dtype), False)
    return plain


@dataclass(eq=False, slots=True)
class _Value:
    """The numbers of one tensor, whatever views of them there are."""

    kind: str
    made_of: tuple[_Value, ...] = ()
    mixed: frozenset[str] = frozenset()  # what it was made of: of attention the stack, "cross" say; a convolution
    is_weights: bool = False  # it came out of a softmax
    calls: list[Call] = field(default_factory=list)  # that returned it, the innermost first
    normed: _Value | None = None  # what a norm made it of


class _Block(TorchDispatchMode):
    """Notes what happens within one call of a block."""

    def __init__(self, ref: SiteRef, stream: Tensor, own_weights: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ref = ref
        self.sites: list[SiteRef] = []
        self._own_weights = own_weights
        self._numel = stream.numel()
        self._values: dict[tuple[int, int], _Value] = {}
        self._alive: list[Any] = [stream]  # memory that is let go would be another tensor's next
        self._calls: Counter[nn.Module] = Counter()
        self._norms: list[tuple[Call, _Value, _Value]] = []
        self._stream = {self._value(stream)}
        self._added: list[_Value | None] = []  # None is what came of no module
        self._last: Tensor | None = None

    # what is noted

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made_of = [t for t in _flat(args) if isinstance(t, Tensor)]
        values = [self._value(t) for t in made_of]
        for t in _flat(out):
            if isinstance(t, Tensor):
                self._note(func._schema.name, t, made_of, values)
        return out

    def _note(self, name: str, out: Tensor, made_of: list[Tensor], values: list[_Value]) -> None:
        self._alive.append(out)
        if name in _SAME and values and out.numel() == made_of[0].numel():
            self._values[_key(out)] = values[0]
            return
        mixed = frozenset(what for value in values if not self._is_stream(value) for what in value.mixed)
        if self._own_weights and name in _MIXING and any(value.is_weights for value in values):
            mixed |= {self.ref.stack}
        if name == _CONVOLUTION:
            mixed |= {_CONVOLUTION}
        is_weights = name in _SOFTMAX or (
            bool(values) and values[0].is_weights and (name in _KEEPS_WEIGHTS or name in _SAME)
        )
        value = _Value("other", tuple(values), mixed, is_weights)
        self._values[_key(out)] = value
        whole = [t.numel() == self._numel for t in made_of]
        if name in _SUMS and len(values) == 2 and all(whole):
            value.kind = "sum"
            self._add(value)
        elif name in _SCALINGS and values and whole[0] and all(t.numel() == 1 for t in made_of[1:]):
            value.kind = "scaled"

    def _add(self, value: _Value) -> None:
        first, second = value.made_of
        is_stream = self._is_stream(first), self._is_stream(second)
        if is_stream[0] != is_stream[1]:
            self._added += self._summands(second if is_stream[0] else first)
        if any(is_stream):
            self._stream.add(value)

    def _summands(self, value: _Value) -> list[_Value | None]:
        if value.calls:
            return [value]
        if value.kind == "scaled":
            return self._summands(value.made_of[0])
        if value.kind == "sum":
            return [found for part in value.made_of for found in self._summands(part)]
        return [None]

    def _is_stream(self, value: _Value | None) -> bool:
        if value is None or value in self._stream:
            return value is not None
        if value.kind == "scaled":
            return self._is_stream(value.made_of[0])
        return self._is_stream(value.normed)

    def attends(self, ref: SiteRef, x: AttentionInputs) -> None:
        """An attention layer was reached: what is made of its values is attention."""
        self.sites.append(ref)
        self._value(x.value).mixed |= {ref.stack}

    def left(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any], out: Any) -> None:
        """A module within the block returned `out`."""
        call = Call(module, self._calls[module])
        self._calls[module] += 1
        out = out[0] if isinstance(out, (tuple, list)) and out else out
        if not isinstance(out, Tensor) or out.numel() != self._numel:
            return
        value = self._value(out)
        value.calls.append(call)
        given = next((t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)), None)
        if given is not None and given.numel() == self._numel and _is_norm(module):
            value.normed = self._value(given)
            self._norms.append((call, value.normed, value))

    def _value(self, t: Tensor) -> _Value:
        self._alive.append(t)
        return self._values.setdefault(_key(t), _Value("given"))

    # what comes of it

    def parts(self, after: Any, name: str) -> BlockParts:
        """`after` is what the block returned, `name` what the model is called."""
        after = after[0] if isinstance(after, (tuple, list)) and after else after
        block = f"block {self.ref.layer} of the {self.ref.stack}"
        own = [ref for ref in self.sites if ref.stack != "cross"]
        if any(ref != self.ref for ref in own) or len(own) > 1:
            return BlockParts({}, f"{name} has other attention layers than one in {block}: it cannot be switched off.")
        if not isinstance(after, Tensor) or not self._is_stream(self._value(after)):
            return BlockParts({}, f"What {block} of {name} returns is no sum with what it was given: see its code.")
        calls: dict[str, list[Call]] = {"attention": [], "cross": [], "mlp": []}
        matrices: list[Call | None] = []  # of the feed-forward network, what its summands come of
        lost = False
        for value in self._added:
            if value is None:
                lost = True
                continue
            if _CONVOLUTION in value.mixed:
                continue  # a state space model's (Mamba), which is neither
            part = "cross" if "cross" in value.mixed else "attention" if value.mixed else "mlp"
            calls[part].append(value.calls[0])
            if part == "mlp":
                matrices.append(_matrix(value))
        added = [value for value in self._added if value is not None]
        norms = [
            call
            for call, given, value in self._norms
            if (self._is_stream(given) or any(value is one for one in added)) and without_gain(call.module) is not None
        ]
        for number, call in enumerate(dict.fromkeys(norms), start=1):
            calls[f"norm{number}"] = [call]
        why = f"{block} of {name} adds to the stream what no module of it returns." if lost else ""
        neurons = matrices[0] if len(matrices) == 1 else None
        return BlockParts({part: tuple(found) for part, found in calls.items() if found}, why, neurons)


class _Noting(Recorder):
    """Tells the block that runs which values its attention reads."""

    block: _Block | None = None

    def keep(self, module: nn.Module, x: AttentionInputs, stack: str = "") -> AttentionInputs:
        kept = super().keep(module, x, stack)
        if self.block is not None:
            self.block.attends(self.sites[-1].ref, kept)
        return kept


@torch.no_grad()
def _found(model: Model, inputs: Mapping[str, Tensor]) -> Blocks:
    found: Blocks = {}
    recorder = _Noting(model.module_names, model.seq2seq)
    with recording(recorder), _noted(model, recorder, found):
        model.forward({name: _few(t) for name, t in inputs.items()})
    return found


def _few(t: Tensor) -> Tensor:
    """A few tokens of one text; a text of a single token is repeated, or a vector would be as large as the stream."""
    t = t[:1]
    return t.repeat(1, _PROBE)[:, :_PROBE] if t.dim() == 2 and not t.is_floating_point() else t


@contextmanager
def _noted(model: Model, recorder: _Noting, found: Blocks) -> Iterator[None]:
    """While it lasts, every block that runs is noted, and its parts are put into `found`."""
    ran: Counter[str] = Counter()  # blocks of each stack so far: a shared one counts each time
    stack_of = {block: stack for stack, block in model.blocks}

    def enter(module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        if active() is not recorder:
            return  # another thread's
        stream = args[0] if args else kwargs.get("hidden_states")
        ref = SiteRef(stack_of[module], ran[stack_of[module]])
        ran[ref.stack] += 1
        if isinstance(stream, Tensor):
            recorder.block = _Block(ref, stream, own_weights=bool(model.info.weights_only))
            recorder.block.__enter__()  # type: ignore[no-untyped-call]

    def leave() -> _Block | None:
        block, recorder.block = recorder.block, None
        if block is not None:
            block.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        return block

    def left(module: nn.Module, args: Any, kwargs: Mapping[str, Any], out: Any) -> None:
        if active() is not recorder:
            return
        if module in stack_of:
            block = leave()
            if block is not None:
                found[block.ref] = block.parts(out, model.info.name)
        elif recorder.block is not None:
            recorder.block.left(module, args, kwargs, out)

    handles: list[RemovableHandle] = [b.register_forward_pre_hook(enter, with_kwargs=True) for b in stack_of]
    for child in dict.fromkeys(child for block in stack_of for child in block.modules()):
        handles.append(child.register_forward_hook(left, with_kwargs=True))
    try:
        yield
    finally:
        leave()  # of a block that raised
        for handle in handles:
            handle.remove()


def _matrix(value: _Value) -> Call | None:
    """The matrix that gave a summand, before any norm on what is written; None where another module did."""
    if value.normed is not None and value.normed.calls:
        value = value.normed
    return value.calls[0] if isinstance(value.calls[0].module, (nn.Linear, Conv1D)) else None


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower() and next(module.children(), None) is None


def _key(t: Tensor) -> tuple[int, int]:
    return t.data_ptr(), t.numel()


def _flat(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _flat(part)
    else:
        yield tree
