"""The thumbnails of all heads as a script: every weight, pooled as the panel pools it."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.attention.atlas import Atlas
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.errors import InputError
from attention_models.scripts.all_weights import all_weights, layers_of
from attention_models.scripts.script_text import Script

_POOL = {
    "max": ("the largest weight in it", "F.max_pool2d(w[None], cell, ceil_mode=True)[0]"),
    "mean": ("their mean", "F.avg_pool2d(w[None], cell, ceil_mode=True, count_include_pad=False)[0]"),
}


def write(request: AtlasRequest, context: Context) -> Script:
    run = context.run(request.run)
    if not run.trace.sites:
        raise InputError(f"{run.model.info.name} has no attention: there is nothing to draw.")
    return atlas_script(request, run, run.trace.atlas_view(request.size, request.pooling, context.should_stop))


@torch.no_grad()
def atlas_script(request: AtlasRequest, run: CurrentRun, shown: Atlas) -> Script:
    """Lines that end with `images` and `means`: by stack a list of layers, (heads, rows, columns) and (rows, columns).

    Raises:
        InputError: as `all_weights`.
    """
    model, trace = run.model, run.trace
    script = Script(f"{model.info.name}: the thumbnails of all heads")
    all_weights(script, run)
    script.uses("import torch.nn.functional as F")
    what, pool = _POOL[request.pooling]
    script.line(
        "\ndef thumbnail(w):\n"
        f'    """(heads, queries, keys) in at most {request.size} x {request.size} squares, of each {what}."""\n'
        f"    cell = max(1, -(-max(w.shape[1:]) // {request.size}))\n"
        f"    return {pool}\n"
    )
    script.line("images = {stack: [thumbnail(w) for w in layers] for stack, layers in weights.items()}")
    script.line(
        "means = {stack: [thumbnail(w.mean(dim=0)[None])[0] for w in layers] for stack, layers in weights.items()}",
        "the mean column",
    )
    script.line("for stack, layers in images.items():\n    print(stack, [tuple(image.shape) for image in layers])")
    script.remark("The brightest square of each layer below the first row, which mostly has no choice:")
    for stack, sites in layers_of(run).items():
        for place, site in enumerate(sites):
            i = trace.index(site)
            image = np.nan_to_num(shown.images[i, : site.heads], nan=-1.0)  # (heads, rows, columns)
            first = 1 if image.shape[1] > 1 and (image[:, 1:] >= 0).any() else 0
            below = image[:, first:]
            head, at, column = (int(i) for i in np.unravel_index(int(below.argmax()), below.shape))
            row = at + first
            name = f"{stack} layer {site.layer}, head {head}, square ({row}, {column})"
            script.show(name, f'images["{stack}"][{place}][{head}, {row}, {column}]', float(image[head, row, column]))
            mean = float(shown.mean[i, row, column])
            name = f"{stack} layer {site.layer}, mean of its heads there"
            script.show(name, f'means["{stack}"][{place}][{row}, {column}]', mean)
    return script
