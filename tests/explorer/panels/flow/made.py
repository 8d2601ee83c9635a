"""A small model's flow, made by hand: two blocks of four heads, on four tokens."""

from __future__ import annotations

import numpy as np

from attention_models.protocol.flow import (
    STREAM,
    BlockFlow,
    BlockRequest,
    BlockView,
    Box,
    FeedForwardBox,
    FlowRequest,
    FlowView,
    HeadsBox,
    Neuron,
    NormBox,
    OutputBox,
    Placement,
    ProjectionBox,
    StackFlow,
    SumBox,
    Written,
)
from attention_models.protocol.values import Candidate, SiteRef

WIDTH = 8
WORDS = ("Tom", "and", "Anna", "went")


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def block_flow(layer: int, stack: str = "decoder", positions: int = 4, cross: bool = False) -> BlockFlow:
    ramp = np.arange(1, positions + 1, dtype=np.float32)
    parts = [Written(part="attention", module=f"h.{layer}.attn", norms=0.5 * ramp)]
    if cross:
        parts.append(Written(part="cross", module=f"h.{layer}.cross", norms=0.25 * ramp))
    parts.append(Written(part="feed_forward", module=f"h.{layer}.mlp", norms=2 * ramp))
    sites = (SiteRef(stack, layer), *((SiteRef("cross", layer),) if cross else ()))
    return BlockFlow(
        ref=SiteRef(stack, layer),
        module=f"h.{layer}",
        placement="pre",
        parallel=False,
        written=tuple(parts),
        norms=(3 + layer) * ramp,
        remainder=0 * ramp,
        sites=sites,
    )


def stack_flow(stack: str = "decoder", layers: int = 8, positions: int = 4, cross: bool = False) -> StackFlow:
    ramp = np.arange(1, positions + 1, dtype=np.float32)
    return StackFlow(
        stack=stack,
        embedding=(
            Written(part="tokens", module="wte", norms=0.1 * ramp),
            Written(part="positions", module="wpe", norms=0.2 * ramp),
        ),
        norms=0.3 * ramp,
        blocks=tuple(block_flow(layer, stack, positions, cross) for layer in range(layers)),
    )


def flow_view(run: int = 1, layers: int = 8, positions: int = 4) -> FlowView:
    return FlowView(
        request=FlowRequest(run=run), stacks=(stack_flow(layers=layers, positions=positions),), deviation=0.0
    )


def two_stacks(run: int = 1) -> FlowView:
    """Of `answers.translation`: three tokens read, three written."""
    stacks = (stack_flow("encoder", 2, 3), stack_flow("decoder", 2, 3, cross=True))
    return FlowView(request=FlowRequest(run=run), stacks=stacks, deviation=0.0)


def norm(reads: tuple[int, ...], part: str = "attention", module: str = "h.5.ln_1") -> NormBox:
    before = numbers(2, -1, 0.5, 0, 1, -3, 0.25, 0.75)
    mean, deviation = float(before.mean()), float(before.std())
    gain, bias = np.full(WIDTH, 0.5, np.float32), np.full(WIDTH, 0.125, np.float32)
    return NormBox(
        module=module,
        kind="LayerNorm",
        part=part,  # type: ignore[arg-type]
        reads=reads,
        before=before,
        after=(before - mean) / deviation * gain + bias,
        parameters=2 * WIDTH,
        rms=False,
        mean=mean,
        deviation=deviation,
        eps=1e-5,
        gain=gain,
        bias=bias,
    )


def boxes() -> tuple[Box, ...]:
    """A pre-norm block: norm, q, k, v, heads, output, sum, norm, feed-forward network, sum."""
    first = norm((STREAM,))
    projections = [
        ProjectionBox(
            module="h.5.attn",
            kind="Linear",
            part="attention",
            reads=(0,),
            before=first.after,
            after=np.arange(WIDTH, dtype=np.float32),
            parameters=72,
            makes=makes,
            rows=WIDTH,
            columns=WIDTH,
            bias=True,
        )
        for makes in "qkv"
    ]
    weights = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.6, 0.1], [0.25] * 4, [0.0, 0.0, 0.0, 1.0]], np.float32)
    heads = HeadsBox(
        module="h.5.attn",
        kind="Attention",
        part="attention",
        reads=(1, 2, 3),
        before=None,
        after=np.ones(WIDTH, np.float32),
        site=SiteRef("decoder", 5),
        heads=4,
        key_heads=4,
        head_dim=2,
        weights=weights,
        norms=numbers(1, 2, 3, 4),
    )
    output = OutputBox(
        module="h.5.attn.c_proj",
        kind="Linear",
        part="attention",
        reads=(4,),
        before=heads.after,
        after=np.full(WIDTH, 0.5, np.float32),
        parameters=72,
        rows=WIDTH,
        columns=WIDTH,
        bias=True,
        norms=numbers(0.1, 0.2, 0.3, 0.4),
    )
    network = FeedForwardBox(
        module="h.5.mlp",
        kind="MLP",
        part="feed_forward",
        reads=(7,),
        before=np.ones(WIDTH, np.float32),
        after=np.full(WIDTH, 0.25, np.float32),
        parameters=300,
        hidden=32,
        activation="GELU",
        gated=False,
        positive=11,
        neurons=(Neuron(17, 3.5, 2.25, 0.75), Neuron(4, -1.5, 1.125, -0.5), Neuron(9, 0.5, 0.25, 0.0)),
    )
    middle = np.full(WIDTH, 1.5, np.float32)
    return (
        first,
        *projections,
        heads,
        output,
        SumBox(module="", kind="", part="attention", reads=(STREAM, 5), before=None, after=middle),
        norm((6,), "feed_forward", "h.5.ln_2"),
        network,
        SumBox(module="", kind="", part="feed_forward", reads=(6, 8), before=None, after=middle + 0.25),
    )


TO = Candidate(id=7, label="␣to", piece="Ġto", probability=0.684, logit=9.5, rank=1)


def block_view(
    request: BlockRequest | None = None, made: tuple[Box, ...] | None = None, placement: Placement = "pre"
) -> BlockView:
    return BlockView(
        request=request or BlockRequest(run=1, stack="decoder", layer=5, position=3),
        module="h.5",
        placement=placement,
        parallel=False,
        before=np.ones(WIDTH, np.float32),
        after=np.full(WIDTH, 1.75, np.float32),
        boxes=made or boxes(),
        remainder=0.0,
        candidates=(TO,),
        target=7,
        target_label="␣to",
        effect_note="",
    )
