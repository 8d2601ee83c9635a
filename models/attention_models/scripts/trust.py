"""A run held against the model as transformers opens it: its logits, and a row of its weights."""

from __future__ import annotations

import torch

from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.values import Site, site_tokens
from attention_models.scripts.head import output_of, why_no_weights
from attention_models.scripts.heads import word_of
from attention_models.scripts.loading import load, why_not_loaded
from attention_models.scripts.rerun import given
from attention_models.scripts.script_text import Script, quoted

_LOGITS, _WEIGHTS = 5, 3


def write(request: TrustRequest, context: Context) -> Script:
    run = context.run(request.run)
    return trust_script(run, run.untouched(context.should_stop))


@torch.no_grad()
def trust_script(run: CurrentRun, trace: Trace) -> Script:
    """Of `trace`, what was run without interventions: the largest logits, and a row of weights where it gives them.

    Raises:
        InputError: transformers does not open the model, or it says nothing that could be compared.
    """
    model, name = run.model, run.model.info.name
    why = why_not_loaded(model)
    if why:
        raise InputError(f"There is no model of transformers to hold {name} against: {why}.")
    changed = "as it is, without your interventions" if run.trace.interventions else ""
    script = Script(f"{name} as transformers runs it, beside what is on screen", changed)
    load(script, model)
    call, row = given(script, run)
    site = None if why_no_weights(model) or not trace.sites else trace.sites[-1]
    options = "" if site is None or site.is_long else ", output_attentions=True"
    script.line(f"with torch.no_grad():\n    out = model({call}{options})")
    compared = _logits(script, run, trace, row)
    if site is not None and options:
        _weights(script, trace, site, row)
    elif not compared:
        raise InputError(f"{name} says nothing, and keeps no weights of its own to compare with.")
    return script


def _logits(script: Script, run: CurrentRun, trace: Trace, row: int) -> bool:
    """The largest at the last token, or of the classes; False of a model that gives none."""
    model, head, place = run.model, run.model.info.class_head, trace.last
    if not trace.has_logits:
        return False
    every = trace.logits_at([place])[0].float().cpu()  # (vocabulary or classes,)
    name = "logits" if model.info.pair_head is None else "prediction_logits"
    code = f"out.{name}[{row}, {place}]"
    if model.info.family == "vision" or (head is not None and head.of == "text"):
        code = f"out.{name}[{row}]"
    elif head is not None and head.of == "choice":
        code = "out.logits[0]"
    elif head is not None and head.of == "span":
        code = f"torch.stack([out.start_logits[{row}, {place}], out.end_logits[{row}, {place}]])"
    script.line(
        f"logits = {code}.float().reshape(-1)", f"({len(every)},) what it says at {word_of(trace.tokens, place)}"
    )
    best = every.topk(min(_LOGITS, len(every))).indices.tolist()
    for id_ in best:
        label = model.piece_label(id_) if head is None and model.info.family != "vision" else f"class {id_}"
        script.show(f"logit of {quoted(label)}", f"logits[{id_}]", float(every[id_]))
    return True


def _weights(script: Script, trace: Trace, site: Site, row: int) -> None:
    """The largest of the last token's row, in the last layer's first head."""
    queries, keys = site_tokens(trace, site)
    query = max((i for i, token in enumerate(queries) if not token.padding), default=site.queries - 1)
    weights = torch.tensor(trace.weights(site, 0, [query]))[0]  # (keys,)
    where = f"what {word_of(queries, query)} attends to, in {site.stack} layer {site.layer}, head 0"
    script.line(f"weights = out.{output_of(trace, site.ref)}[{row}, 0, {query}].float()", where)
    for key in weights.topk(min(_WEIGHTS, len(weights))).indices.tolist():
        script.remark(word_of(keys, key))
        script.show(f"weight of ({query}, {key})", f"weights[{key}]", float(weights[key]))
