"""What a model writes after a prompt: a translator by the beam search of the window, others the likeliest token."""

from __future__ import annotations

from models.decoding.beam import BEAMS, MOST_WRITTEN
from models.decoding.decode import decode
from models.forward.model import Model

MOST_TOKENS = 40  # of a text that could go on for ever


def written(model: Model, prompt: str) -> str:
    """Up to `MOST_TOKENS` tokens; the whole of a translation; of a masked model the prompt with its masks filled in.

    Raises:
        InputError: the prompt is empty or too long.
    """
    steps = decode(model, prompt, MOST_TOKENS)
    if model.seq2seq:
        steps = decode(model, prompt, MOST_WRITTEN, strategy="beam", beams=BEAMS)
    text = ""
    for step in steps:
        text = step.text
    return text
