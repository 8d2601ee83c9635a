"""What a model writes after a prompt: a translator by the beam search of the window, others the likeliest token.

A classifier writes nothing: of it the probability of each class.
"""

from __future__ import annotations

from attention_models.decoding.beam import BEAMS, MOST_WRITTEN
from attention_models.decoding.decode import decode
from attention_models.forward.classes import classes_at
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.protocol.chat import Pair

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


def shares(model: Model, prompt: str, second: str = "") -> dict[int, tuple[str, float]]:
    """Label and probability of each class by its number, of a text or, where there is a second one, of the pair.

    Raises:
        InputError: a text is empty or too long, or the model reads no pairs.
    """
    trace = run(model, Pair(prompt, second) if second.strip() else prompt)
    return {one.id: (one.label, one.probability) for one in classes_at(model, trace, 0)}
