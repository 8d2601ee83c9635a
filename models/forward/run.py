"""One forward pass of a model, recorded: what every attention weight depends on, as a `Trace`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from models.forward.capture import Recorder, recording
from models.forward.finite import check_finite
from models.forward.logits import later_logits
from models.forward.model import Model
from models.forward.origin import origin_of
from models.forward.output_weights import check_edits, keep_output_weights
from models.forward.position_edits import edited_positions
from models.forward.trace import Trace
from models.protocol.chat import Pair, Prompt
from models.protocol.interventions import Intervention, check
from models.protocol.work import never


def run(
    model: Model,
    text: Prompt | tuple[str, str] | list[int] | list[dict[str, str]] | Path | np.ndarray,
    *,
    target: str | list[int] | None = None,
    interventions: Sequence[Intervention] = (),
    should_stop: Callable[[], bool] = never,
) -> Trace:
    """Run `model` on `text` and keep what every attention weight depends on.

    Args:
        model: from `open_checkpoint`.
        text: the input, or token ids as they are (nothing is added to them), or a conversation: a `Chat` or
            `[{"role": "user", "content": "Good morning."}]`. Two texts, ("first", "second"), are read as a pair by the
            tokenizer's own template, with its segment ids where the model has embeddings of them. For a vision model a
            picture: its path, "sample:NAME", or an array (height, width, 3).
        target: what the decoder of an encoder-decoder model has written so far, after its start token.
        interventions: what to change (`models.protocol.interventions`); without any the model runs as it is.
        should_stop: polled between blocks.

    Returns:
        The `Trace`: tokens, sites in the order in which they ran, weights on demand, logits.

    Raises:
        ValueError: an intervention names a layer or head that the model does not have.
        InputError: an empty text, one that is longer than the model's context, or ids that it does not know.
        NotFiniteError: the run gave NaN or infinity, which is said of the first layer where.
        Cancelled: `should_stop()` was true.
    """
    check_edits(model, interventions)
    if isinstance(text, tuple):
        text = Pair.of(text)
    encoded = model.encode(text, target)
    recorder = Recorder(model.module_names, model.seq2seq, should_stop, tuple(interventions))
    with (
        torch.no_grad(),
        recording(recorder),
        edited_positions(model, encoded.inputs, interventions) as inputs,
        later_logits(model, inputs, len(encoded.tokens)) as later,
    ):
        out = model.forward(inputs if later is None else later.asking)
        if model.info.weights_only:
            keep_output_weights(model, recorder, out, len(encoded.tokens))
    check(interventions, recorder.sites)
    check_finite(model.info.name, recorder, out)
    return Trace.of(encoded, recorder, out, later, origin_of(model, text, target, encoded))
