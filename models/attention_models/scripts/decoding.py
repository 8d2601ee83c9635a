"""The choice of one token as a script: temperature, top-k, top-p, min-p, and the draw."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_models.decoding.filters import apply
from attention_models.decoding.player import player_of
from attention_models.forward.context import Context
from attention_models.protocol.decoding import DecodeStepRequest, DecodeStepView
from attention_models.protocol.errors import InputError
from attention_models.scripts.script_text import Script

_MOST = 2000  # tokens whose logits are written out
_FEW = 10
SHAPING = ("temperature", "top-k", "top-p", "min-p")
"""The filters that a script spells out. What comes before them has acted on the logits that it starts from."""


def write(request: DecodeStepRequest, context: Context) -> Script:
    """Raises InputError for a beam search, a model that fills in masks, and more tokens than can be written out."""
    if request.settings.strategy == "beam":
        raise InputError("A beam search compares whole texts: it has no one choice that a few lines could show.")
    player = player_of(context)
    writing = player.written(request.inputs)
    view = player.step(request, context.should_stop)
    logits, ids = writing.logits_after(request.ids, context.should_stop)
    chain = writing.filters(request.settings)
    before = apply([pair for pair in chain if pair[0] not in SHAPING], ids, logits.clone()).scores[0]
    after = apply(chain, ids, logits.clone()).scores[0]
    return choice_script(view, before, after, context.model.info.name)


def choice_script(view: DecodeStepView, before: Tensor, after: Tensor, name: str) -> Script:
    """From logits (vocabulary,) `before` the shaping filters; what they left, `after`, says which are written out."""
    settings, chosen = view.request.settings, view.chosen
    assert chosen is not None
    kept = int((~torch.isneginf(after)).sum())
    cuts = settings.draws and kept < int((~torch.isneginf(before)).sum())
    count = max(_FEW, kept + 1 if cuts else 0, settings.top_k or 0 if settings.draws else 0)
    if count > _MOST:
        raise InputError(f"These settings leave {kept:,} tokens, too many for a script. Choose a smaller top-k or p.")
    ids = before.topk(min(count, len(before))).indices  # the likeliest first
    if chosen.id not in ids.tolist():
        ids = torch.cat([ids, ids.new_tensor([chosen.id])])
    ids = ids[~torch.isneginf(before[ids])]
    rest = before.clone()
    rest[ids] = -torch.inf
    n, place = len(ids), ids.tolist().index(chosen.id) if chosen.id in ids.tolist() else 0
    script = Script(f"{name}: how the token {view.request.number} was chosen")
    script.section("the numbers on screen")
    script.tensor("ids", ids, f"({n},) the likeliest tokens")
    script.tensor("logits", before[ids], f"({n},)" + (" after the rules on repetition" if _ruled(view) else ""))
    if settings.draws:
        script.number("temperature", settings.temperature)
        others = float(torch.logsumexp(rest.double() / settings.temperature, 0))
        script.number("others", others, "log of the sum of exp(logit / temperature) of all other tokens")
    else:
        script.number("others", float(torch.logsumexp(rest.double(), 0)), "log of the sum of exp(logit) of the others")
    script.section("the computation")
    if not settings.draws:
        script.line("p = torch.softmax(torch.cat([logits, torch.tensor([others])]), dim=-1)[:-1]", f"({n},)")
        script.line("token = ids[p.argmax()]", "greedy: the likeliest")
        if not _ruled(view):
            script.show("its probability", "p.max()", chosen.probability)
        script.show("token", "token", chosen.id)
        return script
    _shape(script, view, n, cuts)
    script.show("share of the chosen token", f"kept[{place}]", chosen.kept)
    if view.drawn is not None and (cuts or not bool((rest > -torch.inf).any())):
        _draw(script, view.drawn)
        if view.request.forced is None:
            script.show("token", "token", chosen.id)
    return script


def _ruled(view: DecodeStepView) -> bool:
    return any(stage.filter not in SHAPING for stage in view.stages)


def _shape(script: Script, view: DecodeStepView, n: int, cuts: bool) -> None:
    """Lines that end with `kept`, (n,): each token's share once all filters have acted."""
    settings = view.request.settings
    script.line("scores = torch.cat([logits / temperature, torch.tensor([others])])", f"({n + 1},) last: the others")
    if settings.top_k is not None:
        script.line(f"least = scores[:-1].topk(min({settings.top_k}, {n})).values[-1]", "top-k: Fan et al. 2018")
        script.line('scores[:-1] = scores[:-1].masked_fill(scores[:-1] < least, float("-inf"))')
        script.line('scores[-1] = float("-inf")')
    if settings.top_p is not None and settings.top_p < 1:
        script.line("p = torch.softmax(scores, dim=-1)", "top-p: Holtzman et al. 2020")
        script.line("ahead = p[:-1].cumsum(dim=0) - p[:-1]", f"({n},) what all likelier tokens hold")
        script.line(f'scores[:-1] = scores[:-1].masked_fill(ahead >= {settings.top_p!r}, float("-inf"))')
        if cuts:
            script.line('scores[-1] = float("-inf")')
    if settings.min_p is not None and settings.min_p > 0:
        script.line("p = torch.softmax(scores, dim=-1)", "min-p: Nguyen et al. 2024")
        script.line(f'scores[:-1] = scores[:-1].masked_fill(p[:-1] < {settings.min_p!r} * p[:-1].max(), float("-inf"))')
        if cuts:
            script.line('scores[-1] = float("-inf")')
    script.line("kept = torch.softmax(scores, dim=-1)[:-1]", f"({n},) what it is drawn from")
    script.line("print(dict(zip(ids.tolist(), kept.tolist())))")


def _draw(script: Script, drawn: float) -> None:
    script.number("drawn", drawn, "uniform from 0 to 1")
    script.line("order = ids.argsort()", "shares lie side by side in the vocabulary's order")
    script.line("ends = kept.double()[order].cumsum(dim=0)")
    script.line("token = ids[order][torch.searchsorted(ends, ends[-1] * drawn, right=True)]")
