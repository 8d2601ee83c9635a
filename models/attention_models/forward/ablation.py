"""Switches parts of blocks off, or holds them at a value, for the length of one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.attention.inputs import AttentionInputs
from attention_models.files.sample_pictures import SAMPLES, samples
from attention_models.forward.block_hooks import Edit, Edits, hooked, tensor_of, with_tensor
from attention_models.forward.capture import MixEdit, PassingRecorder, active, recording
from attention_models.forward.model import Encoded, Model
from attention_models.forward.sublayers import BlockParts, Blocks, Call, sublayers_of, without_gain
from attention_models.protocol.ablation import LAYER, SUBLAYERS, Ablation, describe_ablation, part_name
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import never
from attention_models.protocol.values import Site, SiteRef

# What the parts of a model give on average over all positions of texts (`attention_models.forward.mean_texts`).


# The inputs that means are taken over: sentences of our own, or sample pictures.


TEXTS = SAMPLES / "texts" / "means.tsv"


@cache
def mean_sentences() -> tuple[tuple[str, str], ...]:
    """English sentences, each with its Spanish translation."""
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return tuple((english, spanish) for english, spanish in pairs)


def mean_inputs(model: Model) -> Iterator[Encoded]:
    """These as `model` takes them, one after another.

    The decoder of our own translator is given the translation, that of another encoder-decoder model the sentence
    itself. What a model's context does not hold is left out.

    Raises:
        InputError: nothing of it is left.
    """
    count = 0
    for encoded in _encoded(model):
        count += 1
        yield encoded
    if not count:
        raise InputError(
            f"{model.info.name} takes none of the texts that means are taken over: they are too long for it."
        )


def _encoded(model: Model) -> Iterator[Encoded]:
    if model.info.family == "vision":
        for picture in samples(model.info.channels):
            yield model.encode(picture.reference)
        return
    for english, spanish in mean_sentences():
        target = None if not model.seq2seq else spanish if model.info.shipped else english
        try:
            yield model.encode(english, target)
        except InputError:
            continue  # too long for it


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Float32 means over positions.

    Attributes:
        heads: (heads, value_dim) of what each head of a site gives, before W_O.
        summands: (width,) of what a call adds to the stream.
        neurons: (neurons,) of the activations that the last matrix of a feed-forward network reads.
    """

    heads: Mapping[SiteRef, Tensor]
    summands: Mapping[tuple[SiteRef, Call], Tensor]
    neurons: Mapping[SiteRef, Tensor]


@dataclass(slots=True, eq=False)
class _Sums:
    total: dict[Any, Tensor] = field(default_factory=dict)
    count: dict[Any, int] = field(default_factory=dict)

    def add(self, key: Any, rows: Tensor) -> None:
        """Of (positions, ...)."""
        total = rows.cpu().double().sum(dim=0)  # some devices have no float64
        self.total[key] = self.total[key] + total if key in self.total else total
        self.count[key] = self.count.get(key, 0) + len(rows)

    def means(self, kind: str) -> dict[Any, Tensor]:
        return {k[1]: (t / self.count[k]).float() for k, t in self.total.items() if k[0] == kind}


@torch.no_grad()
def means_of(model: Model, blocks: Blocks, should_stop: Callable[[], bool]) -> Means:
    """Those of `model` as it is now, an adapter that is off included.

    Found once a model, and once more without its adapter.
    """
    is_off = model.adapter is not None and model.adapter.is_off
    if is_off not in model.means:
        model.means[is_off] = _measured(model, blocks, should_stop)
    found: Means = model.means[is_off]
    return found


def _measured(model: Model, blocks: Blocks, should_stop: Callable[[], bool]) -> Means:
    sums = _Sums()

    def of_heads(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
        sums.add(("head", site.ref), out.transpose(1, 2).flatten(0, 1))  # (positions, heads, value_dim)
        return out

    for encoded in mean_inputs(model):
        recorder = PassingRecorder(model.module_names, model.seq2seq, should_stop, mix_edits=[of_heads])
        edits: Edits = {
            ref: {call: _counting(sums, ref, call, call == found.neurons) for call in _calls(found)}
            for ref, found in blocks.items()
        }
        with recording(recorder), hooked(model, edits):
            model.forward(encoded.inputs)
    return Means(sums.means("head"), sums.means("summand"), sums.means("neuron"))


def _calls(found: Any) -> list[Call]:
    """What adds to the stream, and the matrix that reads the neurons."""
    calls = [call for part in ("attention", "cross", "mlp") for call in found.calls.get(part, ())]
    return calls if found.neurons is None or found.neurons in calls else [*calls, found.neurons]


def _counting(sums: _Sums, ref: SiteRef, call: Call, reads_neurons: bool) -> Edit:
    def edit(given: Any, out: Any) -> None:
        wrote = tensor_of(out)
        sums.add(("summand", (ref, call)), wrote.reshape(-1, wrote.shape[-1]))
        if reads_neurons:
            read = given[0][0]
            sums.add(("neuron", ref), read.reshape(-1, read.shape[-1]))

    return edit


_ORDER = {"neuron": 0, LAYER: 1}
"""What is wider gives way to what is said of a sublayer by itself."""


@contextmanager
def ablated(
    model: Model,
    inputs: Mapping[str, Tensor],
    interventions: Sequence[Intervention],
    first: SiteRef | None = None,
) -> Iterator[None]:
    """While it lasts, this thread's forward passes leave out what `interventions` switch off, or hold it.

    `inputs` are those of a whole run of the model: the first time some of them are run to find its parts. `first` is
    the block that a pass over part of the model begins with.

    Raises:
        InputError: the model has no such block, no such part of it is known, or a position that is not there.
    """
    skips = [item.of_stack(model.info.predicting_stack) for item in interventions if isinstance(item, Ablation)]
    skips = [skip for skip in skips if not skip.on]
    if not skips:
        yield
        return
    if model.info.textbook:
        raise InputError(f"{model.info.name} is a recurrent model: interventions are for transformers.")
    recorder = active()
    means = None
    if any(skip.fill == "mean" for skip in skips):
        stop = never if recorder is None else recorder.should_stop
        means = means_of(model, sublayers_of(model, inputs), stop)
    heads = [skip for skip in skips if skip.part == "head"]
    others = sorted((skip for skip in skips if skip.part != "head"), key=lambda skip: _ORDER.get(skip.part, 2))
    fills = _Fills(model, next(iter(inputs.values())).shape[0], means)
    edits = fills.edits(sublayers_of(model, inputs), others) if others else {}
    if recorder is not None and heads:
        recorder.mix_edits.append(fills.of_heads(heads))
    with hooked(model, edits, first):
        yield


class _Fills:
    """What stands in the place of what parts give."""

    def __init__(self, model: Model, texts: int, means: Means | None) -> None:
        self._name, self._texts, self._means = model.info.name, texts, means
        self._time_first = getattr(model.config, "model_type", "") == "xlnet"  # (tokens, texts, width)

    # ----------------------------------------------------------------- sublayers, neurons, norms

    def edits(self, blocks: Blocks, skips: Sequence[Ablation]) -> Edits:
        """What is to be done at which call of which block."""
        edits: Edits = {}
        neurons: dict[SiteRef, list[Ablation]] = {}
        for skip in skips:
            block = blocks.get(skip.site)
            if block is None:
                raise InputError(_no_block(self._name, blocks, skip))
            at = edits.setdefault(skip.site, {})
            if skip.part == "neuron":
                neurons.setdefault(skip.site, []).append(skip)
                call = self._neuron_call(block, skip)
                at[call] = partial(self._without_neurons, call.module, neurons[skip.site])
                continue
            for call in self._calls(block, skip):
                at[call] = _no_gain(call.module) if skip.norm is not None else partial(self._filled, skip, call)
        return edits

    def _calls(self, block: BlockParts, skip: Ablation) -> tuple[Call, ...]:
        if skip.part == LAYER:
            calls = tuple(call for part in SUBLAYERS for call in block.calls.get(part, ()))
        else:
            calls = block.calls.get(skip.part, ())
        if block.why and (skip.norm is None or not calls):
            raise InputError(f"“{describe_ablation(skip)}” cannot be done: {block.why}")
        if not calls:
            known = ", ".join(part_name(part) for part in block.calls)
            raise InputError(
                f"“{describe_ablation(skip)}”: this block of {self._name} has no {part_name(skip.part)} with anything "
                f"to switch off. It has {known}."
            )
        return calls

    def _neuron_call(self, block: BlockParts, skip: Ablation) -> Call:
        if block.neurons is None:
            raise InputError(
                f"“{describe_ablation(skip)}”: no single matrix of this block of {self._name} reads the neurons of a "
                "feed-forward network, so that none can be told from the others."
            )
        if skip.unit is not None and skip.unit >= block.neuron_count:
            raise InputError(f"“{describe_ablation(skip)}”: there are only neurons 0 to {block.neuron_count - 1:,}.")
        return block.neurons

    def _filled(self, skip: Ablation, call: Call, _given: Any, out: Any) -> Any:
        return with_tensor(out, self._fill(skip, call, tensor_of(out)))

    def _fill(self, skip: Ablation, call: Call, out: Tensor) -> Tensor:
        if skip.fill == "zero":
            return torch.zeros_like(out)
        if skip.fill == "mean":
            assert self._means is not None
            mean = self._means.summands[skip.site, call]
            return mean.to(out.device, out.dtype).expand_as(out).contiguous()
        return self._pinned(skip, out)

    def _pinned(self, skip: Ablation, out: Tensor) -> Tensor:
        """(texts, tokens, n), or (texts * tokens, n), everywhere as it is at one position."""
        rows = out if out.dim() > 2 else out.view(self._texts, -1, out.shape[-1])
        axis = 0 if self._time_first and out.dim() > 2 else 1
        there = rows.narrow(axis, self._place(skip, rows.shape[axis]), 1)
        return there.expand_as(rows).reshape(out.shape)

    def _place(self, skip: Ablation, positions: int) -> int:
        if skip.position is None or skip.position >= positions:
            raise InputError(f"“{describe_ablation(skip)}”: there are only positions 0 to {positions - 1:,}.")
        return skip.position

    def _without_neurons(self, matrix: nn.Module, skips: Sequence[Ablation], given: Any, _out: Any) -> Tensor:
        """What the last matrix makes of activations in which those of `skips` are replaced."""
        (read, *rest), kwargs = given
        read = read.clone()
        for skip in skips:
            if skip.fill == "position":
                read[..., skip.unit] = self._pinned(skip, read[..., skip.unit, None])[..., 0]
            elif skip.fill == "mean":
                assert self._means is not None
                assert skip.unit is not None
                read[..., skip.unit] = self._means.neurons[skip.site][skip.unit].to(read.device, read.dtype)
            else:
                read[..., skip.unit] = 0.0
        again: Tensor = matrix.forward(read, *rest, **kwargs)  # past the hooks
        return again

    # ----------------------------------------------------------------- heads

    def of_heads(self, skips: Sequence[Ablation]) -> MixEdit:
        by_site: dict[SiteRef, list[Ablation]] = {}
        for skip in skips:
            by_site.setdefault(skip.site, []).append(skip)

        def edit(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
            here = [skip for skip in by_site.get(site.ref, ()) if skip.unit is not None and skip.unit < site.heads]
            if not here:
                return out
            out = out.clone()  # (texts, heads, queries, value_dim)
            for skip in here:
                if skip.fill == "position":
                    out[:, skip.unit] = out[:, skip.unit, self._place(skip, out.shape[2]), None]
                elif skip.fill == "mean":
                    assert self._means is not None
                    out[:, skip.unit] = self._means.heads[site.ref][skip.unit].to(out.device, out.dtype)
                else:
                    out[:, skip.unit] = 0.0
            return out

        return edit


def _no_block(name: str, blocks: Blocks, skip: Ablation) -> str:
    of_stack = [ref.layer for ref in blocks if ref.stack == skip.site.stack]
    if not of_stack:
        stack = next((ref.stack for ref in blocks), "")
        has = f"its only stack is the {stack}" if stack else "no list of blocks was found in it"
        return f"“{describe_ablation(skip)}” cannot be done in {name}: {has}."
    return (
        f"“{describe_ablation(skip)}”: {name} has no such layer; its {skip.site.stack} has layers 0 to {max(of_stack)}."
    )


def _no_gain(norm: nn.Module) -> Edit:
    plain = without_gain(norm)
    assert plain is not None  # or it would be no part

    def edit(given: Any, out: Tensor) -> Tensor:
        args, kwargs = given
        again: Tensor = plain.to(out.device)(*args, **kwargs)
        return again

    return edit
