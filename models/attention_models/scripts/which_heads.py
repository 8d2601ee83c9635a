"""What every head was asked on this text, as a script: the share of its weight that lies on some cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import ROLE_NAMES, HeadQuestion, WhichHeadsRequest
from attention_models.protocol.values import Site, Token, site_tokens
from attention_models.roles.which_heads import Answer, AskingHeads
from attention_models.scripts.all_weights import all_weights, layers_of
from attention_models.scripts.patterns import define_cells, masks_of, tokens_of
from attention_models.scripts.script_text import Script, quoted

SHOWN = 3
"""Heads of a stack that are printed beside those on screen."""


def write(request: WhichHeadsRequest, context: Context) -> Script:
    run = context.run(request.run)
    asking = AskingHeads(run.model, run.trace, request.question)
    asking.advance(should_stop=context.should_stop)
    return which_heads_script(request.question, run, asking.found())


@torch.no_grad()
def which_heads_script(question: HeadQuestion, run: CurrentRun, shown: Answer) -> Script:
    """Lines that end, for each stack, with `scores`, (layers, heads), and `even`, (layers,).

    Raises:
        InputError: no head can be asked that, or as `all_weights`.
    """
    trace = run.trace
    stacks = {
        stack: sites for stack, sites in layers_of(run).items() if not all(shown.why[trace.index(s)] for s in sites)
    }
    if not stacks:
        raise InputError(next((why for why in shown.why if why), f"{run.model.info.name} has no attention."))
    script = Script(f"{run.model.info.name}: {_title(question, run)}")
    all_weights(script, run)
    if question.is_pattern:
        define_cells(script, question.kind)
    for stack, sites in stacks.items():
        _stack(script, question, run, stack, sites, shown)
    return script


def _title(question: HeadQuestion, run: CurrentRun) -> str:
    if question.is_pattern:
        return f"how much each head attends to {ROLE_NAMES[question.kind].title}"
    site = run.trace.sites[run.trace.index(question.site)]  # type: ignore[arg-type]
    queries, keys = site_tokens(run.trace, site)
    query = quoted(queries[question.query].word) if question.query < len(queries) else str(question.query)
    key = quoted(keys[question.key].word) if question.key < len(keys) else str(question.key)
    return {
        "cell": f"how much {query} ({question.query}) attends to {key} ({question.key}) in each head",
        "row": f"what {query} ({question.query}) has in common with layer {site.layer}, head {question.head} in each",
        "column": f"how much all attend to {key} ({question.key}) in each head",
        "painted": "how much of each head lies on the painted cells",
    }[question.kind]


def _stack(
    script: Script, question: HeadQuestion, run: CurrentRun, stack: str, sites: Sequence[Site], shown: Answer
) -> None:
    trace = run.trace
    n, m = sites[0].queries, sites[0].keys
    script.section(f"{stack}: the share of each head")
    queries, keys = site_tokens(trace, sites[0])
    script.line(f"n, m = {n}, {m}", "queries and keys")
    if question.kind == "row":
        place = [site.ref for site in sites].index(question.site)  # type: ignore[arg-type]
        script.line(f'row = weights["{stack}"][{place}][{question.head}, {question.query}]', f"({m},)")
    else:
        _cells(script, question, queries, keys)
        padded = [i for i, token in enumerate(queries) if token.padding]
        script.line("real = torch.ones(n, dtype=torch.bool)", f"({n},)")
        if padded:
            script.line(f"real[{padded}] = False", "padding asks nothing")
    script.line(f"scores, even = torch.zeros({len(sites)}, {sites[0].heads}), torch.zeros({len(sites)})")
    inputs = [trace.inputs[trace.index(site)] for site in sites]
    for name, code, places in masks_of(script, inputs, f"{stack}_mask"):
        if name != code:
            script.line(f"{name} = {code}", "which keys each query sees")
        lines = [f"visible = {name}", f'w = weights["{stack}"][layer]  # (heads, queries, keys)', *_share(question)]
        script.line(f"for layer in {_run_of(places)}:\n" + "\n".join(f"    {line}" for line in lines))
    script.line("print(scores)", f"({len(sites)}, {sites[0].heads}) layers down, heads across")
    rows = [trace.index(site) for site in sites]
    print_ranked(script, shown.scores[rows, : sites[0].heads], shown.even[rows], [site.layer for site in sites], stack)


def _cells(script: Script, question: HeadQuestion, queries: Sequence[Token], keys: Sequence[Token]) -> None:
    """Lines that end with `cells`, (queries, keys): those that are asked about."""
    if question.is_pattern:
        for name, tokens in (("q", queries), ("k", keys)):
            if name == "k" and tokens == queries:
                script.line("k = q", "and what is attended to")
            else:
                script.values(name, tokens_of(question.kind, tokens), "what attends" if name == "q" else "to what")
        script.line("cells = cells_of(q, k)", "(queries, keys)")
        return
    script.line("cells = torch.zeros(n, m, dtype=torch.bool)", "(queries, keys) those that are asked about")
    if question.kind == "cell":
        script.line(f"cells[{question.query}, {question.key}] = True")
    elif question.kind == "column":
        script.line(f"cells[:, {question.key}] = True")
    else:
        script.rows("painted", question.cells, "query and key of each")
        script.line("for query, key in painted:\n    cells[query, key] = True")


def _run_of(places: Sequence[int]) -> str:
    whole = list(range(places[0], places[-1] + 1))
    return f"range({places[0]}, {places[-1] + 1})" if list(places) == whole else str(list(places))


def _share(question: HeadQuestion) -> list[str]:
    """Lines, of one layer: what is visible, and its weights `w`, to its places in `scores` and `even`."""
    seen = "seen = visible.sum(dim=-1)  # (heads or 1, queries) how many keys each query sees"
    if question.kind == "row":
        q = question.query
        return [
            seen,
            f"evenly = visible[..., {q}, :] / seen[..., {q}, None].clamp(min=1)  # (heads or 1, keys)",
            f"scores[layer] = torch.minimum(w[:, {q}], row).sum(dim=-1)  # (heads,)",
            "even[layer] = torch.minimum(evenly, row).sum(dim=-1).mean()  # of a head that attends evenly",
        ]
    lines = [seen, "hit = cells & real[:, None] & visible  # (heads or 1, queries, keys)"]
    if question.is_pattern:
        lines.append("hit = hit & (seen > 1)[..., None]  # a query that sees one key has no choice")
    if question.kind == "cell":
        lines.append("counted = (cells & real[:, None]).any(dim=-1)[None]  # where it is hidden its weight is 0")
    else:
        lines.append("counted = hit.any(dim=-1)  # (heads or 1, queries) which queries count")
    return [
        *lines,
        "scores[layer] = (w * hit).sum(dim=(1, 2)) / counted.sum(dim=-1)  # (heads,)",
        "even[layer] = (hit.sum(dim=-1) / seen.clamp(min=1)).sum() / counted.sum()  # of a head that attends evenly",
    ]


def print_ranked(
    script: Script, scores: np.ndarray, even: np.ndarray | None, layers: Sequence[int], stack: str
) -> None:
    """Lines that print the heads with the highest `scores`, (layers, heads), and what an `even` one has."""
    order = np.argsort(np.where(np.isnan(scores), -np.inf, scores), axis=None, kind="stable")[::-1]
    if np.isnan(scores).all():
        script.remark("No query of this text has such a key, so no head has a score.")
    for place in order[: min(SHOWN, int(np.count_nonzero(~np.isnan(scores))))]:
        layer, head = divmod(int(place), scores.shape[1])
        name = f"{stack} layer {layers[layer]}, head {head}"
        script.show(name, f"scores[{layer}, {head}]", float(scores[layer, head]))
        if even is not None and not np.isnan(even[layer]):
            script.show(f"even attention in {stack} layer {layers[layer]}", f"even[{layer}]", float(even[layer]))
