"""Other attention weights as a script: rows put into the model's attention, and how far its answer moves."""

from __future__ import annotations

from attention_models.effects.adversarial_attention import search_of
from attention_models.effects.metric import resolve, view_of
from attention_models.effects.row_edits import _kl, distance, divergence
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.effects import AdversarialAttentionRequest, AdversarialAttentionView, Metric
from attention_models.protocol.errors import InputError
from attention_models.protocol.information import from_nats
from attention_models.protocol.values import site_tokens
from attention_models.scripts.heads import Head, word_of
from attention_models.scripts.hooks import home_of, wrap
from attention_models.scripts.loading import load
from attention_models.scripts.own_functions import call, open_here
from attention_models.scripts.rerun import Answer, answer_of, check_alone, give, inputs_of, why_not_again
from attention_models.scripts.script_text import Script, quoted

_NOTHING = "No other weights were found yet. Press “Search other weights”, and ask again once there are some."
_UNHOOKED = "its attention goes through no function that could be replaced"


def write(request: AdversarialAttentionRequest, context: Context) -> Script:
    """Raises InputError where nothing was found yet, or nothing can be searched for."""
    run = context.run(request.run)
    check_alone(run)
    return other_weights_script(search_of(request, run).view(request), run)


def other_weights_script(view: AdversarialAttentionView, run: CurrentRun) -> Script:
    """Lines that put each of the weights that were found into the model, and print how far its answer moves.

    Raises:
        InputError: none were found.
    """
    if not view.found:
        raise InputError(_NOTHING)
    name = Head.of(run.model, run.trace, *view.heads[0]).name
    which = name if len(view.heads) == 1 else f"{run.model.info.name}, {len(view.heads)} heads"
    at = word_of(run.trace.tokens, view.position)
    script = Script(
        f"{which}: other attention weights, and what is said at {at} with them",
        "Jain and Wallace 2019: the weights were searched for; put into the row, the model runs on as it comes.",
    )
    sites = list(dict.fromkeys(site for site, _ in view.heads))
    why, read = why_not_again(run), None
    home = "" if why else home_of(run.model, run.trace, sites)
    inputs = inputs_of(run)
    if home:
        aim = view_of(run.model, run.trace, resolve(run.model, run.trace, Metric(position=view.position)))
        read = answer_of(run.model, run.trace, inputs, aim)
    script.uses("from torch import Tensor")
    if read is None:
        open_here(script, run.model, why or _UNHOOKED)
        _numbers(script, run, view)
        script.source_of(divergence, _kl, distance)
        _by_own_functions(script, run, view)
    else:
        load(script, run.model)
        _numbers(script, run, view)
        script.source_of(divergence, _kl, distance)
        script.section("the text")
        give(script, inputs)
        _by_a_wrapped_function(script, run, view, home, read)
    _compare(script, view)
    return script


def _numbers(script: Script, run: CurrentRun, view: AdversarialAttentionView) -> None:
    site = run.trace.sites[run.trace.index(view.heads[0][0])]
    keys = site_tokens(run.trace, site)[1]
    what = {"same": "as unlike them as was found, the same answer"}
    for name, change in view.changes.items():
        source, target = word_of(keys, change.source), change.target
        what[name] = f"without {source}" if target is None else f"{source} to {word_of(keys, target)}"
    script.section("the numbers on screen")
    shape = f"({len(view.heads)}, {site.keys})"
    script.tensor("observed", view.observed, f"{shape} as they are; rows are heads")
    for name, rerun in view.found.items():
        script.tensor(name, rerun.weights, f"{shape} {what[name]}")


def _by_a_wrapped_function(
    script: Script, run: CurrentRun, view: AdversarialAttentionView, home: str, read: Answer
) -> None:
    trace = run.trace
    heads = [(trace.sites[trace.index(site)].module, head) for site, head in view.heads]
    script.section("the computation")
    script.values("heads", heads, "whose rows they are")
    script.line("places = {}", "of each attention module: (row above, head)")
    script.line(
        "for row, (name, head) in enumerate(heads):\n"
        "    places.setdefault(model.get_submodule(name), []).append((row, head))"
    )
    script.line("put = None", "the weights that are put in")
    wrap(
        script,
        home,
        (
            "if put is not None:",
            "    out = out.clone()  # (1, queries, heads, size)",
            "    for row, head in places.get(module, ()):",
            "        values = value[0, head * value.shape[1] // query.shape[1]]  # (keys, size)",
            f"        out[0, {view.query}, head] = put[row].to(values.dtype) @ values",
        ),
    )
    script.line("")
    script.line(
        "def said_with(weights):\n"
        "    global put\n"
        "    put = weights\n"
        "    with torch.no_grad():\n"
        "        out = model(**given)\n"
        f"    return torch.log_softmax({read.of_all}.float(), dim=-1)  # (answers,)\n"
    )
    script.line("own = said_with(None)")


def _by_own_functions(script: Script, run: CurrentRun, view: AdversarialAttentionView) -> None:
    request = view.request
    script.uses(
        "from attention_models.effects.batched_runs import BatchedRuns",
        "from attention_models.effects.row_edits import Rows",
        "from attention_models.protocol.values import SiteRef",
    )
    script.section("the computation")
    call(script, "run", run, {}, result="trace")
    copies = f"BatchedRuns.of(model, trace, text, {run.written!r})"
    script.line(f"rows = Rows({copies}, {request.site!r}, {request.head}, {request.scope!r}, {view.position})")
    script.line("")
    script.line("def said_with(weights):\n    return rows.answers(weights[None])[0]  # (answers,) log-probabilities\n")
    script.line("own = said_with(observed)")


def _compare(script: Script, view: AdversarialAttentionView) -> None:
    former = view.before.id
    script.line("mass = observed.sum(dim=1, keepdim=True)", "1, less where a sink takes part")
    script.remark(f"as it is: {quoted(view.before.label)}")
    script.show("likeliest as it is", "own.argmax()", former)
    script.show("its probability", f"own[{former}].exp()", view.before.probability)
    script.uses("import math")
    for name, rerun in view.found.items():
        best = rerun.best
        script.line("")
        script.line(f"said = said_with({name})")
        if name == "same":
            far = float(rerun.divergence.mean())
            script.line("far = divergence(same / mass, observed / mass).mean()", "Jensen-Shannon's")
            script.show("divergence, nats", "far", far)
            script.show("divergence, bits", "far / math.log(2)", from_nats(far, "bits"))
        else:
            script.remark(f"likeliest is {quoted(best.label)}")
            script.show(f"{name}, likeliest", "said.argmax()", best.id)
            script.show(f"{name}, its probability", f"said[{best.id}].exp()", best.probability)
        script.show(f"{name}, total variation distance", "distance(said, own)", rerun.distance)
        script.show(f"{name}, what was likeliest", f"said[{former}].exp()", rerun.former.probability)
    for name, change in view.changes.items():
        code = f"{change.share!r} * observed[:, {change.source}].mean()"
        script.show(f"{name}, how much of the weight", code, change.mass)
