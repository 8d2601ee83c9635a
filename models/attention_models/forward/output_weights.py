"""Models whose attention does not go through transformers' interface: their weights as the model itself gives them.

With `output_attentions` such a model returns every weight of every head, and nothing of what they were made of. They
are kept as they are, so a bound is set on how many there may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Adapter, Intervention, Scale, acts_outside_of_attention
from attention_models.protocol.values import Site

if TYPE_CHECKING:
    from attention_models.forward.capture import Recorder
    from attention_models.forward.model import Model


def keep_output_weights(model: Model, recorder: Recorder, out: Any, tokens: int) -> None:
    """Keep the weights that a model's output holds, in the place of queries and keys.

    Args:
        tokens: how many the stack that predicts has read so far, those of earlier steps included.

    Raises:
        InputError: they are no weights of every query for every key.
    """
    name = model.info.name
    for stack, layers in _by_stack(model, out):
        for layer, weights in enumerate(layers or ()):
            if not _fits(stack, weights, tokens, model.seq2seq):
                raise InputError(f"{name} gave no square of weights for this text. Try a shorter one.")
            batch, heads, queries, keys = weights.shape
            query, key = (weights.new_empty(batch, heads, count, 0) for count in (queries, keys))
            recorder.inputs.append(AttentionInputs(query=query, key=key, value=query, scale=1.0, precomputed=weights))
            recorder.sites.append(
                Site(
                    stack=stack,
                    layer=layer,
                    heads=heads,
                    key_heads=heads,
                    head_dim=0,  # not seen
                    queries=queries,
                    keys=keys,
                    causal=stack == "decoder",
                )
            )


def check_edits(model: Model, interventions: Sequence[Intervention]) -> None:
    """Refuse an intervention that would have to change what this model does not show, or does not have.

    Raises:
        ValueError: it does not show it.
        InputError: its scores are no products that could be scaled, or `interventions` are none.
    """
    _check_kinds(interventions)
    if model.adapter is None and any(isinstance(item, Adapter) for item in interventions):
        raise ValueError(f"{model.info.name} was opened without an adapter: there is none to take out.")
    if model.info.weights_only and not all(map(acts_outside_of_attention, interventions)):
        raise ValueError(f"{model.info.weights_only} So masks, scales and single heads cannot be changed.")
    if model.info.additive and any(isinstance(item, Scale) for item in interventions):
        raise InputError(f"The scores of {model.info.name} are v · tanh(q + k): there is no product to scale.")


def _check_kinds(given: Any) -> None:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(f"Interventions are given as a list, as in [Scale(0.5)], not as a {type(given).__name__}.")
    for item in given:
        if not isinstance(item, Intervention):
            kind = type(item).__name__
            raise InputError(f"An intervention is a Scale, Mask, Positions, Adapter or Ablation, not a {kind}.")


def _by_stack(model: Model, out: Any) -> list[tuple[str, Any]]:
    if not model.seq2seq:
        return [(model.info.stacks[0].stack, out.attentions)]
    return [
        ("encoder", out.encoder_attentions),
        ("decoder", out.decoder_attentions),
        ("cross", out.cross_attentions),
    ]


def _fits(stack: str, weights: Any, tokens: int, seq2seq: bool) -> bool:
    """Whether there is a weight for every key of the stack, and no other."""
    if not isinstance(weights, Tensor) or weights.dim() != 4:
        return False
    _, _, queries, keys = weights.shape
    if stack == "cross":
        return True  # what the source has is seen in the encoder's
    return keys == (queries if seq2seq and stack == "encoder" else tokens)
