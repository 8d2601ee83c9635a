"""How much each token matters, by several accounts, as a script: attention, rollout, flow, gradients and ablation."""

from __future__ import annotations

import numpy as np

from attention_models.effects.explanation import answer
from attention_models.effects.gradients import COMPLETE
from attention_models.effects.rollout import _ranks, rank_correlation
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import ACCOUNTS, Account, ExplanationRequest, ExplanationView
from attention_models.scripts.head import why_no_weights
from attention_models.scripts.own_functions import call, open_here
from attention_models.scripts.rerun import (
    aim_words,
    aimed_at,
    answer_of,
    begin,
    check_alone,
    inputs_of,
    why_not_again,
)
from attention_models.scripts.script_text import Script

_FEW = 3
"""Tokens to which a maximum flow is sought: networkx takes a moment for each."""

_MOST = 64
"""Tokens of which all numbers are printed; of a longer text those that matter most."""


def write(request: ExplanationRequest, context: Context) -> Script:
    """Raises InputError where the tokens of a model cannot be weighed."""
    run = context.run(request.run)
    check_alone(run)
    view = answer(request, context)
    script = Script(
        f"{run.model.info.name}: how much each token matters to {aim_words(run, view.aim)}",
        "Is attention an explanation? Jain and Wallace 2019; Wiegreffe and Pinter 2019.",
    )
    inputs = inputs_of(run)
    why = why_not_again(run) or why_no_weights(run.model)
    read = None if why else answer_of(run.model, run.trace, inputs, view.aim)
    if read is None:
        why = why or "its answer is not read off its output alone"
        open_here(script, run.model, why)
        script.section("the computation")
        call(script, "explanations", run, {**aimed_at(view.aim), "position": view.aim.position})
        for account in view.accounts:
            if account.values is not None:
                places = _places(account.values)
                script.show_each(
                    f"{_name(account)}, token", f'view.of("{account.name}")[{places}]', _listed(account, places)
                )
        return script
    begin(script, run, inputs, view.aim, read)
    _by_autograd(script, run, view)
    return script


def _name(account: Account) -> str:
    return ACCOUNTS[account.name].replace("×", "x")


def _places(values: np.ndarray) -> list[int]:
    """The tokens whose numbers are printed."""
    if len(values) <= _MOST:
        return list(range(len(values)))
    return sorted(np.argsort(-np.abs(values))[:_MOST].tolist())


def _by_autograd(script: Script, run: CurrentRun, view: ExplanationView) -> None:
    position, tokens, width = view.aim.position, len(run.trace.tokens), run.model.info.width
    script.line('inputs = {name: t for name, t in given.items() if name != "input_ids"}')
    script.line("embeddings = model.get_input_embeddings()(ids).detach()", f"(1, {tokens}, {width})")
    script.line("def run(embeddings):\n    return model(inputs_embeds=embeddings, **inputs, output_attentions=True)\n")
    script.line("x = embeddings.clone().requires_grad_()")
    script.line("out = run(x)")
    script.line("value = answer(out)")
    script.line("of_x, *of_weights = torch.autograd.grad(value, [x, *out.attentions])", "the gradients")
    script.line("accounts = {}")
    script.remark("attention: the mean over the heads of the last layer")
    script.line("layers = [w[0].detach().mean(dim=0).double() for w in out.attentions]", f"each ({tokens}, {tokens})")
    script.line(f'accounts["attention"] = layers[-1][{position}]')
    script.remark("rollout: Abnar and Zuidema 2020; half of each layer is the residual connection")
    script.line(f"mixed = [0.5 * w + 0.5 * torch.eye({tokens}, dtype=torch.float64) for w in layers]")
    script.line(f"product = torch.eye({tokens}, dtype=torch.float64)")
    script.line("for w in mixed:\n    product = w @ product")
    script.line(f'accounts["rollout"] = product[{position}]')
    script.remark("gradient x input, and attention x gradient summed over layers, heads and queries")
    script.line('accounts["gradient"] = (of_x * x.detach())[0].double().sum(dim=-1)', f"({tokens},)")
    script.line(
        'accounts["attention_gradient"] = sum((g * w.detach())[0].double().sum(dim=(0, 1))\n'
        "                                     for g, w in zip(of_weights, out.attentions))"
    )
    _integrated(script, view, tokens)
    script.remark("ablation: the value less what it is where a token's embedding is 0")
    script.line("without = []")
    script.line(
        f"for token in range({tokens}):\n"
        "    ablated = embeddings.clone()\n"
        "    ablated[0, token] = 0\n"
        "    with torch.no_grad():\n"
        "        without.append(answer(run(ablated)).double())"
    )
    script.line('accounts["ablation"] = value.detach().double() - torch.stack(without)')
    script.line("")
    script.show("the value", "value", view.aim.value)
    for account in view.accounts:
        if account.values is not None and account.name != "flow":
            places = _places(account.values)
            which = "" if len(places) == tokens else f"[{places}]"
            script.show_each(f"{_name(account)}, token", f'accounts["{account.name}"]{which}', _listed(account, places))
    _flow(script, view, position)
    _correlations(script, run.trace, view)


def _listed(account: Account, places: list[int]) -> list[float]:
    assert account.values is not None
    return [float(account.values[place]) for place in places]


def _integrated(script: Script, view: ExplanationView, tokens: int) -> None:
    script.remark("integrated gradients from embeddings of 0: Sundararajan et al. 2017, by Gauss-Legendre points")
    script.uses("import numpy as np")
    script.line(f"places, shares = np.polynomial.legendre.leggauss({view.steps})")
    script.line(f"total = torch.zeros({tokens}, embeddings.shape[-1], dtype=torch.float64)")
    script.line(
        "for alpha, share in zip((places + 1) / 2, shares / 2):\n"
        "    between = (float(alpha) * embeddings).requires_grad_()\n"
        "    total += share * torch.autograd.grad(answer(run(between)), between)[0][0].double()"
    )
    if view.gap > COMPLETE:
        script.remark("the sum over tokens is not the difference yet: the gradient jumps, and rounding decides where")
    script.line('accounts["integrated"] = (total * embeddings[0].double()).sum(dim=-1)')
    script.line("with torch.no_grad():\n    baseline = answer(run(torch.zeros_like(embeddings)))")
    script.show("with all embeddings 0", "baseline", view.baseline)


def _flow(script: Script, view: ExplanationView, position: int) -> None:
    """To the tokens with the most of it."""
    account = next(account for account in view.accounts if account.name == "flow")
    if account.values is None:
        script.remark(f"attention flow: {account.why}")
        return
    best = sorted(np.argsort(-account.values)[:_FEW].tolist())
    script.line("")
    script.remark("attention flow: the maximum flow from the position down to a token, mixed weights as capacities")
    script.uses("import networkx")
    script.line("graph = networkx.DiGraph()")
    script.line(
        "for layer, w in enumerate(mixed):\n"
        "    for query, key in w.nonzero().tolist():\n"
        "        graph.add_edge((layer + 1, query), (layer, key), capacity=float(w[query, key]))"
    )
    script.line(
        f"flows = [networkx.maximum_flow_value(graph, (len(mixed), {position}), (0, token)) for token in {best}]"
    )
    script.show_each(f"attention flow, tokens {best}, place", "flows", [float(account.values[i]) for i in best])


def _correlations(script: Script, trace: Trace, view: ExplanationView) -> None:
    """Spearman's of each account with attention, over the tokens that the position may attend to."""
    site = trace.sites[-1]
    masked = trace.masked(site, 0, [view.aim.position])
    seen = list(range(site.keys)) if masked is None else np.flatnonzero(~masked[0]).tolist()
    found = [
        (account, float(view.correlations[row, 0]))
        for row, account in enumerate(view.accounts)
        if row and account.values is not None and account.name != "flow" and not np.isnan(view.correlations[row, 0])
    ]
    if not found:
        return
    script.line("")
    script.remark("how alike their order is to attention's: Spearman's rank correlation, over the tokens it attends to")
    script.source_of(rank_correlation, _ranks)
    script.line(f"seen = {seen}" if seen != list(range(len(seen))) else f"seen = list(range({len(seen)}))")
    script.line('attention = accounts["attention"][seen].numpy()')
    for account, rho in found:
        of_account = f'accounts["{account.name}"].abs()[seen].numpy()'
        script.show(f"rank correlation of {_name(account)}", f"rank_correlation(attention, {of_account})", rho)
