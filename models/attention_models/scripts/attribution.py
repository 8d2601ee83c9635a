"""A logit as a sum of what every part wrote, as a script: hooks on sublayers, and the direction it is read along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.dataflow.norms import Norm
from attention_models.dataflow.readout import readout_of
from attention_models.effects.attribution import answer
from attention_models.effects.batched_runs import BatchedRuns
from attention_models.files.devices import weight_of
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.sublayers import sublayers_of
from attention_models.protocol.effects import AttributionRequest, AttributionView
from attention_models.protocol.errors import InputError
from attention_models.protocol.values import SiteRef
from attention_models.scripts.hooks import blocks_code, gain_code, output_names, print_stream
from attention_models.scripts.own_functions import call, open_here
from attention_models.scripts.rerun import (
    aim_words,
    aimed_at,
    answer_of,
    begin,
    check_alone,
    inputs_of,
    settled_of,
    why_not_again,
)
from attention_models.scripts.script_text import Script
from attention_models.views.residual import logit_path

_MOST = 160
"""Heads whose parts are all printed; of more, those of the modules that add most."""

_SAME = 1e-4  # of the direction
_UNHOOKED = "its sublayers do not hand on what they write as others do"


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """What is hooked, by dotted names, and how the logit is read from the stream."""

    outputs: dict[SiteRef, str]
    networks: tuple[str, ...]
    blocks: str
    norm: tuple[str, Norm, str] | None  # its name, its formula, and what to write for its gain
    head: str
    factor: float


def write(request: AttributionRequest, context: Context) -> Script:
    """Raises InputError where a logit of the model is no such sum."""
    run = context.run(request.run)
    check_alone(run)
    view = answer(request, context)
    if view.why:
        raise InputError(view.why)
    script = Script(
        f"{run.model.info.name}: {aim_words(run, view.aim)} as the sum of what every part wrote",
        "Direct logit attribution (Elhage et al. 2021), the divisor of the last norm held at its value in this run.",
    )
    inputs, why = inputs_of(run), why_not_again(run)
    parts = read = None
    if view.held:
        why = why or "norms stand between what is written and the logit"
    elif not why:
        parts, why = _parts_of(run, inputs, view), _UNHOOKED
        read = answer_of(run.model, run.trace, inputs, view.aim)
    if parts is None or read is None:
        open_here(script, run.model, why)
        script.section("the computation")
        call(script, "logit_attribution", run, {**aimed_at(view.aim), "position": view.aim.position})
        _show_by_own(script, view)
        return script
    begin(script, run, inputs, view.aim, read, print_stream)
    _hooks(script, run, view, parts)
    _direction(script, view, parts)
    _sum(script, run, view, parts)
    return script


# --------------------------------------------------------------------------- what is hooked


@torch.no_grad()
def _parts_of(run: CurrentRun, inputs: Mapping[str, Tensor], view: AttributionView) -> _Parts | None:
    """None where a sublayer's writes come of no module of its own, or the last norm and head are not read so."""
    model, trace, stack = run.model, run.trace, run.model.info.predicting_stack
    readout, names = readout_of(model, trace), model.module_names
    head = readout.head
    if readout.outer or head is None or head not in names:
        return None
    outputs = output_names(BatchedRuns.of_run(run))
    attention: list[nn.Module] = []
    networks: list[nn.Module] = []
    for ref, block in sublayers_of(model, dict(inputs)).items():
        if ref.stack != stack:
            continue
        for part, calls in block.calls.items():
            if part in ("attention", "cross", "mlp"):
                (networks if part == "mlp" else attention).extend(call.module for call in calls)
    hooked = [names.get(module, "") for module in attention]
    if hooked != [outputs.get(site.site) for site in view.sites] or len(set(networks)) != len(networks):
        return None
    norm = _norm_code(run, readout.norm_module, readout.norm)
    blocks = blocks_code(model, trace, inputs, stack)
    factor = _factor(run, view, readout.norm, head)
    if not blocks or factor is None or (readout.norm is not None and norm is None):
        return None
    of_sites = {site.site: outputs[site.site] for site in view.sites}
    return _Parts(of_sites, tuple(names[module] for module in networks), blocks, norm, names[head], factor)


def _norm_code(run: CurrentRun, module: nn.Module | None, norm: Norm | None) -> tuple[str, Norm, str] | None:
    if module is None or norm is None or module not in run.model.module_names:
        return None
    code = gain_code(norm, module)
    return None if code is None else (run.model.module_names[module], norm, code)


def _factor(run: CurrentRun, view: AttributionView, norm: Norm | None, head: nn.Module) -> float | None:
    """What the model multiplies the logits by; None where the direction is no multiple of the one that is written."""
    model, trace, aim = run.model, run.trace, settled_of(view.aim)
    path, _ = logit_path(model, trace, model.info.predicting_stack, aim.position, aim.target)
    if path is None or aim.target is None:
        return None
    along = weight_of(head)[aim.target].double().cpu()
    if norm is not None:
        along = along if norm.gain is None else along * norm.gain
        along = along if norm.rms else along - along.mean()
        stream = trace.residual[model.info.predicting_stack][-1][aim.position].float().cpu().numpy()
        along = along / float(np.sqrt(norm.statistics(stream)[1] ** 2 + norm.eps))
    own = path.direction.double()
    factor = float(own @ along / (along @ along))
    if float((own - factor * along).norm()) > _SAME * float(own.norm()):
        return None
    return 1.0 if abs(factor - 1) < _SAME else factor


# --------------------------------------------------------------------------- lines


def _hooks(script: Script, run: CurrentRun, view: AttributionView, parts: _Parts) -> None:
    position = view.aim.position
    for name, modules in (("outputs", tuple(parts.outputs.values())), ("networks", parts.networks)):
        what = "W_O of each attention module" if name == "outputs" else "what each feed-forward network ends with"
        script.line(f"{name} = [", what)
        for module in modules:
            script.line(f'    "{module}",')
        script.line("]")
    script.line("joined, wrote = {}, {}", "by module: its heads side by side, and what it adds to the stream")
    script.line("")
    script.line(
        "def keep(name):\n"
        "    def hook(module, args, out):\n"
        "        out = out[0] if isinstance(out, tuple) else out\n"
        f"        wrote[name] = out.reshape(-1, out.shape[-1])[{position}].double()\n"
        "        if name in outputs:\n"
        f"            joined[name] = args[0].reshape(-1, args[0].shape[-1])[{position}].double()\n"
        "    return hook\n"
    )
    script.line("hooks = [model.get_submodule(name).register_forward_hook(keep(name)) for name in outputs + networks]")
    script.line(f"blocks = {parts.blocks}")
    script.line(
        f"stream = residual_stream(model, blocks, given)[:, {position}].double()",
        f"({len(run.trace.residual[run.model.info.predicting_stack])}, {run.model.info.width})",
    )
    script.line("for hook in hooks:\n    hook.remove()")
    script.line("with torch.no_grad():\n    logit = answer(model(**given))")


def _direction(script: Script, view: AttributionView, parts: _Parts) -> None:
    """Along which the logit is read from the stream, and what is added."""
    aim = view.aim
    script.line("")
    script.remark("what a write of 1 along each direction of the stream adds to it")
    script.line(f'head = model.get_submodule("{parts.head}")')
    less = "" if aim.against is None else " - {}[" + str(aim.against) + "]"
    script.line(f"row = (head.weight[{aim.target}]{less.format('head.weight')}).detach().double()", "the unembedding")
    script.line(
        f"added = 0 if head.bias is None else float(head.bias[{aim.target}]{less.format('head.bias')})",
        "by the biases of head and last norm",
    )
    times = "" if parts.factor == 1 else f"{parts.factor!r} * "
    if parts.norm is None:
        script.line(f"direction = {times}row")
        return
    name, norm, gain = parts.norm
    script.line(f'norm = model.get_submodule("{name}")')
    script.line("x = stream[-1]", "what the last norm is given")
    if norm.bias is not None:
        script.line(f"added = added + {times}float(row @ norm.bias.detach().double())")
    script.line(f"direction = row * {gain}.detach().double()" if gain else "direction = row", "its gain")
    if not norm.rms:
        script.line("direction = direction - direction.mean()", "it takes the mean away")
    spread = "x.square().mean()" if norm.rms else "x.var(unbiased=False)"
    script.line(f"direction = {times}direction / ({spread} + {norm.eps!r}).sqrt()", "its divisor, held")


def _sum(script: Script, run: CurrentRun, view: AttributionView, parts: _Parts) -> None:
    heads = [len(site.heads) for site in view.sites]
    width = run.model.info.width
    transposed = isinstance(run.model.module.get_submodule(next(iter(parts.outputs.values()))), nn.Linear)
    weight = "module.weight.T" if transposed else "module.weight"
    script.line("")
    script.line("embedding = stream[0] @ direction")
    script.line("of_heads, biases = {}, {}")
    script.line(
        f"for name, heads in zip(outputs, {heads}, strict=True):\n"
        "    module = model.get_submodule(name)\n"
        f"    W = {weight}.detach().double().reshape(heads, -1, {width})  # the rows of W_O that each head has\n"
        "    z = joined[name].reshape(heads, -1)  # (heads, size) what each head gives\n"
        '    of_heads[name] = torch.einsum("hs,hsw,w->h", z, W, direction)\n'
        "    biases[name] = wrote[name] @ direction - of_heads[name].sum()\n"
        "of_networks = {name: wrote[name] @ direction for name in networks}\n"
        "attention = sum(of_heads[name].sum() + biases[name] for name in outputs)\n"
        "feed_forward = sum(of_networks.values())"
    )
    script.show("the logit", "logit", view.aim.value)
    script.show("embedding", "embedding", view.embedding)
    script.show("attention", "attention", sum(site.total for site in view.sites))
    if view.networks:
        script.show("feed-forward networks", "feed_forward", sum(value for _, value in view.networks))
    script.show("biases of the last norm and head", "added", view.constant)
    script.show("their sum", "embedding + attention + feed_forward + added", view.aim.value - view.remainder)
    shown = _shown(view)
    for site in view.sites:
        if site.site in shown:
            name, where = parts.outputs[site.site], f"{site.site.stack} layer {site.site.layer}"
            script.show_each(f"{where}, head", f'of_heads["{name}"]', site.heads.tolist())
            script.show(f"{where}, bias of W_O", f'biases["{name}"]', site.bias)
    blocks = [value for _, value in view.networks]
    if blocks:
        script.show_each("network", "of_networks.values()", blocks)


def _shown(view: AttributionView) -> set[SiteRef]:
    """The attention modules whose heads are printed."""
    left, found = _MOST, set[SiteRef]()
    for site in sorted(view.sites, key=lambda site: -float(np.abs(site.heads).max())):
        left -= len(site.heads)
        if found and left < 0:
            break
        found.add(site.site)
    return found


def _show_by_own(script: Script, view: AttributionView) -> None:
    script.show("the logit", "view.aim.value", view.aim.value)
    script.show("embedding", "view.embedding", view.embedding)
    script.show("attention", "sum(site.total for site in view.sites)", sum(site.total for site in view.sites))
    total = sum(value for _, value in view.networks)
    script.show("feed-forward networks", "sum(value for _, value in view.networks)", total)
    script.show("biases of the last norm and head", "view.constant", view.constant)
    shown = _shown(view)
    for i, site in enumerate(view.sites):
        if site.site in shown:
            where = f"{site.site.stack} layer {site.site.layer}"
            script.show_each(f"{where}, head", f"view.sites[{i}].heads", site.heads.tolist())
