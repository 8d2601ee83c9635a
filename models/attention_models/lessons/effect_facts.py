"""What heads and tokens do to an answer, as Effects shows it; and how far its gradient reaches back."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.explanation import explained
from attention_models.effects.lens import lens_view
from attention_models.effects.metric import resolve
from attention_models.effects.sweep import HeadSweep
from attention_models.forward.batches import encode
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.lessons.reading import Reading
from attention_models.protocol.effects import (
    ACCOUNTS,
    EffectsRequest,
    ExplanationRequest,
    ExplanationView,
    LensRequest,
    LensView,
    Metric,
)
from attention_models.protocol.values import site_tokens


def head_effect(r: Reading) -> float:
    """The change of the likeliest answer's logit where the head is zeroed."""
    current = r.current
    if r.fact.text is not None:
        raise ValueError("it is of the text on screen")
    aim = Metric(position=r.query)
    settled = resolve(r.model, r.trace, aim)
    sweep = current.kept.get(HeadSweep)
    if sweep is None or not sweep.answers(settled):
        sweep = current.kept.put(HeadSweep(BatchedRuns.of_run(current), settled))
    while not sweep.is_whole:
        sweep.advance(r.should_stop)
    found = sweep.view(EffectsRequest(run=current.ticket, aim=aim), settled).of(r.site.ref)
    assert found is not None
    return float(found[r.fact.head])


def agreement(r: Reading) -> float:
    """Spearman's correlation of attention, the mean of the last layer, with the account `word`, over the tokens."""
    names = list(ACCOUNTS)
    return float(_accounts(r).correlations[names.index("attention"), names.index(r.fact.word)])


def _accounts(r: Reading) -> ExplanationView:
    aim = Metric(position=r.query)
    kept = r.current.kept.get(ExplanationView)
    if kept is None or kept.request.aim != aim:
        settled = resolve(r.model, r.trace, aim)
        request = ExplanationRequest(run=r.current.ticket, aim=aim)
        kept = r.current.kept.put(explained(request, BatchedRuns.of_run(r.current), settled, r.should_stop))
    return kept


# --------------------------------------------------------------------------- read early


def early(r: Reading) -> str:
    """What is likeliest at the query where the stream is read off after block `at` (0: the embedding)."""
    view = _lens(r)
    assert view.best is not None
    assert view.labels is not None
    if not 0 <= r.fact.at < len(view.best):
        raise LookupError(f"there is no block {r.fact.at}")
    label = view.labels[int(view.best[r.fact.at, r.query])]
    return label.lstrip("␣") or label


def settled_after(r: Reading) -> float:
    """After how many blocks the final answer at the query is the likeliest, and stays so."""
    best = _lens(r).best
    assert best is not None
    column = best[:, r.query]
    others = np.flatnonzero(column != column[-1])
    return float(others[-1] + 1 if len(others) else 0)


def _lens(r: Reading) -> LensView:
    return r.get_or_compute("lens", lambda: _read_early(r))


def _read_early(r: Reading) -> LensView:
    inputs = encode(r.model, r.prompt, r.target).inputs
    view = lens_view(LensRequest(run=r.current.ticket), r.model, r.trace, inputs, r.should_stop)
    if view.best is None:
        raise ValueError(view.why.rstrip("."))
    return view


# --------------------------------------------------------------------------- values


def value_length(r: Reading) -> float:
    """‖v‖ of the key."""
    return float(_values(r)[r.key].norm())


def read_length(r: Reading) -> float:
    """‖w v‖: the key's weight times the length of its value."""
    return float(_read(r)[r.key])


def read_peak(r: Reading) -> str:
    """The key of which most is read: the largest ‖w v‖ of the row."""
    return site_tokens(r.trace, r.site)[1][int(_read(r).argmax())].word


def _values(r: Reading) -> Tensor:
    """(keys, value_dim) float64."""
    x = r.trace.at(r.site, r.fact.head)
    return x.value[0, r.fact.head // x.group].double().cpu()


def _read(r: Reading) -> np.ndarray:
    """(keys,) float64."""
    lengths: np.ndarray = r.row * _values(r).norm(dim=-1).numpy()
    return lengths


# --------------------------------------------------------------------------- gradients of a recurrent model


def gradient(r: Reading) -> float:
    """The key's share of the gradients' lengths: of the likeliest answer's logit at the query, to each source token."""
    lengths = _gradients(r)
    return float(lengths[_source(r)] / lengths.sum())


def gradient_peak(r: Reading) -> str:
    """The source token to whose embedding that gradient is longest."""
    return r.trace.source[int(_gradients(r).argmax())].word


def _source(r: Reading) -> int:
    return r.place_of(r.fact.key, r.trace.source)


def _gradients(r: Reading) -> np.ndarray:
    """(source,) float64: ‖d logit / d embedding‖, of float32 activations."""
    return r.get_or_compute(("gradients", r.query), lambda: _walk_back(r))


def _walk_back(r: Reading) -> np.ndarray:
    model = r.model
    if not isinstance(model, RecurrentModel):
        raise ValueError("it is of recurrent models; of a transformer Effects has gradients token by token")
    module, found = model.module, list[Tensor]()

    def keep(_module: nn.Module, _args: object, out: Tensor) -> Tensor:
        out = out.detach().requires_grad_()
        found.append(out)
        return out

    source, written = (
        torch.tensor([[token.id for token in tokens]], device=next(module.parameters()).device)
        for tokens in (r.trace.source, r.trace.tokens)
    )
    hook = module.source_embedding.register_forward_hook(keep)
    try:
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            logits = module(source, written).logits[0, r.query]
            (slopes,) = torch.autograd.grad(logits.max(), found)
    finally:
        hook.remove()
    lengths: np.ndarray = slopes[0].double().norm(dim=-1).cpu().numpy()
    return lengths
