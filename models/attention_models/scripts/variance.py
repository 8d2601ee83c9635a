"""Why scores are divided by sqrt(d), as a script: the panel's own draws again."""

from __future__ import annotations

from attention_models.forward.context import Context
from attention_models.protocol.errors import InputError
from attention_models.protocol.variance import Experiment, VarianceRequest
from attention_models.scripts.script_text import Script
from attention_models.views import variance

_WIDTHS = (1, 16, 64, 512)


def write(request: VarianceRequest, context: Context) -> Script:
    if request.refusal():
        raise InputError(request.refusal())
    numbers = (request.batch, request.tokens, request.deviation, request.seed)
    return variance_script(request, variance.measure(*numbers, context.should_stop, context.report))


def variance_script(request: VarianceRequest, shown: Experiment) -> Script:
    script = Script("Random queries and keys: the variance of q . k, and its softmax")
    script.uses("import math", "from collections.abc import Callable", "import numpy as np")
    script.line(f"Array, Cancelled, _BLOCK = np.ndarray, KeyboardInterrupt, {variance._BLOCK}")
    script.source_of(variance._products)
    script.section("the numbers on screen")
    script.line(f"batch, tokens, m, seed = {request.batch}, {request.tokens}, {request.deviation!r}, {request.seed}")
    script.section("the computation")
    places = {int(d): i for i, d in enumerate(shown.dimensions)}
    for d in _WIDTHS:
        i = places[d]
        script.line(f"pairs, scores = _products(batch, tokens, {d}, m, seed, lambda: False)", "(batch, tokens) each")
        script.show(f"variance of q . k at d = {d}", "pairs.var(ddof=1)", float(shown.variance[i]))
        script.line(f"law = m**4 * {d}")
        script.show(f"m^4 d at d = {d}", "law", float(shown.law[i]))
        for row, (name, divided) in enumerate((("", ""), (" / sqrt(d)", f" / math.sqrt({d})"))):
            script.line(f"weights = torch.softmax(torch.from_numpy(scores){divided}, dim=-1)", "(batch, tokens)")
            largest = float(shown.largest[row, i])
            script.show(f"mean largest weight of q . k{name} at d = {d}", "weights.max(dim=-1).values.mean()", largest)
    return script
