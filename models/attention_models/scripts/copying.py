"""OV copying as a script: the eigenvalues of W_O (W_U W_E) W_V, from the model's own matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attention_models.dataflow.readout import FoundNorm, readout_of
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import RolesView
from attention_models.protocol.values import Site
from attention_models.roles.copying import value_weights
from attention_models.scripts.loading import load
from attention_models.scripts.script_text import Script
from attention_models.scripts.streams import gain_code
from attention_models.scripts.which_heads import print_ranked
from attention_models.views.residual import output_projection

_SAME = 1e-4  # of the largest number: values are read off a pass in float32


@dataclass(frozen=True, slots=True)
class _Matrices:
    """Where a layer's matrices are: modules, whether their weights are turned, and the first column of each W_V.

    `before` is the norm whose output W_V reads, "" where it reads the stream itself.
    """

    value: str
    value_turned: bool
    columns: tuple[int, ...]
    output: str
    output_turned: bool
    before: str


def copying(script: Script, model: Model, view: RolesView, stacks: Mapping[str, Sequence[int]]) -> None:
    """Lines that end with `scores`, (layers, heads).

    Raises:
        InputError: a matrix is not one that the model keeps.
    """
    trace = run(model, [0, 0, 0, 0])
    (stack, at), *_ = stacks.items()
    sites = [trace.sites[trace.index(view.sites[i])] for i in at]
    width = model.module.get_input_embeddings().weight.shape[1]  # type: ignore[operator]
    values = value_weights(model, trace.sites, width)
    layers = [_matrices(model, trace, site, values.get(trace.index(site))) for site in sites]
    size = next(iter(values.values())).shape[2]
    readout = readout_of(model, trace)
    last = _name(model, readout.norm_module)
    norms = [pair for pair in ((readout.norm, readout.norm_module), *readout.before.values()) if pair[0] is not None]
    load(script, model)
    script.section("the numbers on screen")
    script.remark("Of each layer: where W_V stands, the first column of each of its heads there, and where W_O stands.")
    script.remark("And the norm whose output W_V reads.")
    rows = [f"    ({one.value!r}, {list(one.columns)}, {one.output!r}, {one.before!r})," for one in layers]
    script.line("\n".join(["layers = [", *rows, "]"]))
    script.line(f"heads, size = {sites[0].heads}, {size}", "of a layer, and numbers in a value")
    script.section("the computation")
    script.remark(
        "Elhage et al. 2021, “Copying behavior”. Gains of norms, and the means that they take away, are part of the "
        "matrices that read them; divisors are left out. Logits are taken less their mean over the vocabulary."
    )
    _fold(script, norms)
    script.line("W_E = model.get_input_embeddings().weight.detach().float()", "(vocabulary, width)")
    script.line("W_U = model.get_output_embeddings().weight.detach().float()", "(vocabulary, width)")
    script.line("shared = min(len(W_E), len(W_U))")
    script.line("both = ((W_U[:shared] - W_U.mean(dim=0)).T @ W_E[:shared]).double()", f"({width}, {width})")
    script.line(f"both = folded({last!r}, both)", "from a token to its own logit")
    turn_value, turn_output = (".T" if turned else "" for turned in (layers[0].value_turned, layers[0].output_turned))
    script.line('scores = torch.full((len(layers), heads), float("nan"), dtype=torch.float64)')
    script.line(
        "for layer, (value, columns, output, before) in enumerate(layers):\n"
        f"    W_V = model.get_submodule(value).weight.detach().double(){turn_value}  # (width, ...)\n"
        "    W_V = folded(before, W_V)\n"
        f"    W_O = model.get_submodule(output).weight.detach().double(){turn_output}  # (heads * size, width)\n"
        "    for head in range(heads):\n"
        "        first = columns[head * len(columns) // heads]\n"
        "        reads, writes = W_V[:, first : first + size], W_O[head * size : (head + 1) * size]\n"
        "        eigenvalues = torch.linalg.eigvals(writes @ both @ reads)  # (size,)\n"
        "        scores[layer, head] = eigenvalues.real.sum() / eigenvalues.abs().sum()"
    )
    script.line("print(scores)", f"({len(layers)}, {sites[0].heads}) layers down, heads across")
    place = view.roles.index("ov-copying")
    shown = view.scores[place, list(at)][:, : sites[0].heads]
    print_ranked(script, shown, None, [view.sites[i].layer for i in at], stack)


def _matrices(model: Model, trace: Trace, site: Site, w_v: Tensor | None) -> _Matrices:
    projection = output_projection(model, trace, site)
    output = "" if projection is None else model.module_names[projection]
    found = None if w_v is None else _value(model, site, w_v)
    if found is None or projection is None:
        raise InputError(
            f"This family keeps no matrix that makes the values of {site.stack} layer {site.layer}, or not as it is."
        )
    name, turned, columns = found
    before = _name(model, readout_of(model, trace).before.get(site.ref, (None, None))[1])
    return _Matrices(name, turned, columns, output, not isinstance(projection, Conv1D), before)


def _name(model: Model, module: nn.Module | None) -> str:
    return "" if module is None else model.module_names[module]


def _fold(script: Script, norms: Sequence[FoundNorm]) -> None:
    """Lines that say what `folded` is: of a norm by its name, and a matrix that reads what it gives."""
    kinds = {(norm.rms, gain_code(norm, module)) for norm, module in norms if norm is not None and module is not None}
    if len(kinds) > 1 or any(code is None for _, code in kinds):
        raise InputError("This family has norms of several kinds, or keeps their gains as no vector to be multiplied.")
    lines = ["def folded(name, matrix):"]
    for rms, code in kinds:
        lines += ["    if name:", "        norm = model.get_submodule(name)"]
        if code:
            lines.append(f"        matrix = {code}.detach().double()[:, None] * matrix")
        if not rms:
            lines.append("        matrix = matrix - matrix.mean(dim=0)")
    script.line("\n".join([*lines, "    return matrix"]))


def _value(model: Model, site: Site, w_v: Tensor) -> tuple[str, bool, tuple[int, ...]] | None:
    """Which matrix of the attention module holds W_V (key heads, width, value_dim), and where each head's begins."""
    bound = _SAME * float(w_v.abs().max())
    for name, module in model.module.get_submodule(site.module).named_modules():
        if not isinstance(module, (nn.Linear, Conv1D)):
            continue
        turned = not isinstance(module, Conv1D)
        weight = (module.weight.T if turned else module.weight).double().cpu()  # (width, ...)
        if weight.shape[0] != w_v.shape[1]:
            continue
        columns = [_column(weight, of_head, bound) for of_head in w_v]
        if all(column >= 0 for column in columns):
            return f"{site.module}.{name}", turned, tuple(columns)
    return None


def _column(weight: Tensor, of_head: Tensor, bound: float) -> int:
    """Where the columns of `of_head` begin in `weight`; -1 where they are not in it."""
    off = (weight - of_head[:, :1]).abs().amax(dim=0)  # (columns,)
    first = int(off.argmin())
    part = weight[:, first : first + of_head.shape[1]]
    return first if part.shape == of_head.shape and bool((part - of_head).abs().max() <= bound) else -1
