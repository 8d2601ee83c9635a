"""What a model writes after a prompt, the likeliest token each time."""

from __future__ import annotations

from models.decoding.decode import decode
from models.forward.model import Model

MOST_TOKENS = 40


def written(model: Model, prompt: str) -> str:
    """Up to `MOST_TOKENS` tokens, of a translator the whole of its translation that has as many.

    Raises:
        InputError: the prompt is empty or too long.
    """
    text = ""
    for step in decode(model, prompt, MOST_TOKENS):
        text = step.text
    return text
