"""The scores of a recurrent model's attention as a script, by the textbook's own lines."""

from __future__ import annotations

from collections.abc import Callable

import torch

from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.scripts.script_text import Script
from attention_models.textbook.scores import Additive


@torch.no_grad()
def recurrent_scores(script: Script, model: RecurrentModel, trace: Trace, step: int, word: str) -> Callable[[], None]:
    """Writes the numbers that the scores at `step` are made of; what it gives writes the lines that compute `scores`.

    They are (source,), of the decoder's state, with local attention's Gaussian.
    """
    module, config = model.module, model.module.config
    run = model.read_again(trace)
    s, score = run.looking[:, step], module.score  # (1, hidden)
    keys = score.prepare(run.encoded)[0]  # (source, hidden)
    source, width = keys.shape
    of_step, what = "at" if config.is_luong else "before", "W h" if config.score == "general" else "h"
    script.section("the numbers on screen")
    if isinstance(score, Additive):
        script.tensor("Ws", score.w(s)[0], f"({width},) W s: the decoder's state {of_step} {word}, multiplied by W")
        script.tensor("Uh", keys, f"({source}, {width}) U h: each encoder state, multiplied by U")
        script.tensor("v", score.v.weight[0], f"({width},) learned")
        formula, remark = "torch.tanh(Ws + Uh) @ v", f"({source},) v . tanh(W s + U h): Bahdanau et al. 2015"
    else:
        script.tensor("s", s[0], f"({width},) the decoder's state {of_step} {word}")
        script.tensor("h", keys, f"({source}, {width}) {what} of each encoder state")
        formula, remark = "h @ s", f"({source},) s . {what}: Luong et al. 2015, equation 8"
    if module.place is not None:
        length = sum(token.id != config.pad for token in trace.source)
        place = float(module.place(s, torch.tensor([length], device=s.device)))
        script.number("place", place, "where it looks around, predicted: Luong et al. 2015, equation 9")

    def compute() -> None:
        script.line(f"scores = {formula}", remark)
        if module.place is not None:
            script.line(f"distance = torch.arange({source}) - place", f"({source},)")
            script.line(f"scores = scores - distance**2 / (2 * ({config.window} / 2) ** 2)", "a Gaussian: equation 10")

    return compute
