"""How much each head has one role, over many texts, as a script: the model runs on all of them and counts again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attention_models.dataflow.readout import FoundNorm, readout_of
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.forward.vision import VisionModel
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Report, ShouldStop
from attention_models.protocol.roles import PATTERNS, ROLE_NAMES, RoleRequest, RolesView
from attention_models.protocol.values import Site, Token
from attention_models.roles.copying import value_weights
from attention_models.roles.probe import our_probe, read_probe
from attention_models.roles.reading import Item, Reader
from attention_models.roles.relations import NAMES, grouped, pieces_of_words
from attention_models.roles.roles import head_roles
from attention_models.scripts.head import keep_weights, outputs_of, why_no_weights
from attention_models.scripts.hooks import gain_code
from attention_models.scripts.loading import load, load_recurrent, why_not_loaded
from attention_models.scripts.patterns import BY_WORD, define_cells, rule_of, tokens_of, visible_of
from attention_models.scripts.pictures import processor, reading_of
from attention_models.scripts.script_text import Script
from attention_models.scripts.which_heads import print_ranked
from attention_models.views.residual import output_projection

# What is added up over many texts for a role, as lines: shares of weight, of entropy, of what distance explains.


class Counted(ABC):
    """Lines of one role. In those of a text there are `text`, its number, and `given`; in those of a layer of it also
    `layer`, `w` (heads, queries, keys), `n`, `m`, and `visible`, (queries, keys) or (heads, queries, keys)."""

    def numbers(self, script: Script) -> None:  # noqa: B027 (most write none)
        """What the texts have beside their tokens."""

    @abstractmethod
    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None: ...

    def of_text(self, stack: str, q: str, k: str) -> list[str]:
        return []

    @abstractmethod
    def of_layer(self, stack: str, first: int) -> list[str]: ...

    @abstractmethod
    def end(self, script: Script, stack: str) -> None: ...


def counted_of(role: str, items: Sequence[Item], trace: Trace) -> Counted:
    """How `role` is counted in `items`, of which `trace` is one."""
    if ROLE_NAMES[role].kind == "relation":
        return _Relation(role, items)
    if role == "breadth":
        return _Breadth()
    return _Distance(items, trace) if role == "positional" else _Pattern()


class _Pattern(Counted):
    """The mean over queries of the weight on some cells."""

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        for name in ("sums", "counts", "evens"):
            script.line(f"{name}_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")

    def of_text(self, stack: str, q: str, k: str) -> list[str]:
        return [f"cells = cells_of({q}, {k})  # (queries, keys)"]

    def of_layer(self, stack: str, first: int) -> list[str]:
        return [
            "seen = visible.sum(dim=-1)  # how many keys each query sees",
            "hit = cells & visible & (seen > 1)[..., None]  # a query that sees one key has no choice",
            f"sums_{stack}[layer] += (w * hit).sum(dim=(1, 2))",
            f"counts_{stack}[layer] += hit.any(dim=-1).sum(dim=-1)  # the queries that count",
            f"evens_{stack}[layer] += (hit.sum(dim=-1) / seen.clamp(min=1)).sum(dim=-1)  # if heads attended evenly",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"scores = sums_{stack} / counts_{stack}")
        script.line(f"even = evens_{stack}.sum(dim=1) / counts_{stack}.sum(dim=1)")


class _Breadth(Counted):
    """The mean over rows of the entropy, as a share of the most that it could be."""

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        for name in ("sums", "counts"):
            script.line(f"{name}_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")

    def of_layer(self, stack: str, first: int) -> list[str]:
        return [
            "seen = visible.sum(dim=-1)  # how many keys each query sees",
            "counted = ((seen > 1) & torch.ones(w.shape[:2], dtype=torch.bool))  # (heads, queries)",
            "total = w.sum(dim=-1).clamp(min=torch.finfo(w.dtype).tiny)  # 1, less a sink's share",
            "entropy = torch.log(total) - torch.xlogy(w, w).sum(dim=-1) / total  # (heads, queries), nats",
            "share = entropy / torch.log(seen.clamp(min=2).float())  # of the most that it could be",
            f"sums_{stack}[layer] += (share * counted).sum(dim=-1)",
            f"counts_{stack}[layer] += counted.sum(dim=-1)",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"scores = sums_{stack} / counts_{stack}")


class _Distance(Counted):
    """The share of the map's variance that distance alone explains."""

    def __init__(self, items: Sequence[Item], trace: Trace) -> None:
        self._picture = trace.picture
        grids = {(p.rows, p.columns) for p in (item.encoded.picture for item in items) if p is not None}
        if len(grids) > 1:
            raise InputError(
                "These pictures are cut into grids of different size, so no one table has their distances."
            )
        self._longest = max(max(len(item.encoded.tokens), len(item.encoded.source)) for item in items)

    def numbers(self, script: Script) -> None:
        picture = self._picture
        if picture is None:
            return
        rows, columns, first, count = picture.rows, picture.columns, picture.first, self._longest
        script.line(f"rows, columns, first = {rows}, {columns}, {first}", "of patches, and where they begin")
        script.line(
            "down, right = torch.arange(rows * columns) // columns, torch.arange(rows * columns) % columns\n"
            "apart = (down[:, None] - down + rows - 1) * (2 * columns - 1) + right[:, None] - right + columns - 1\n"
            f"places = torch.full(({count}, {count}), -1)  # which distance each cell has; CLS and its like have none\n"
            "places[first : first + rows * columns, first : first + rows * columns] = apart"
        )

    def _most(self) -> int:
        picture = self._picture
        if picture is None:
            return 2 * self._longest
        return (2 * picture.rows - 1) * (2 * picture.columns - 1)

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        most = self._most()
        script.line(
            f"sums_{stack} = torch.zeros({layers}, {heads}, {most}, dtype=torch.float64)", "of each distance, by head"
        )
        script.line(f"squares_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")
        script.line(f"counts_{stack} = torch.zeros({layers}, {most}, dtype=torch.float64)", "cells of each distance")

    def of_layer(self, stack: str, first: int) -> list[str]:
        lines = ["seen = visible if visible.dim() == 2 else visible.any(dim=0)  # (queries, keys)"]
        if self._picture is None:
            lines.append(
                f"places = torch.arange(n)[:, None] - torch.arange(m) + {self._longest}  # which distance each cell has"
            )
        return [
            *lines,
            "counted = seen & (seen.sum(dim=-1) > 1)[:, None] & (places >= 0)",
            "kept, at = (w * counted).double(), places.clamp(min=0).flatten()",
            f"squares_{stack}[layer] += kept.square().sum(dim=(1, 2))",
            f"sums_{stack}[layer].index_add_(1, at, kept.flatten(1))",
            f"counts_{stack}[layer].index_add_(0, at, counted.flatten().double())",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"whole = sums_{stack}.sum(dim=-1) ** 2 / counts_{stack}.sum(dim=-1)[:, None]")
        script.line(f"between = (sums_{stack} ** 2 / counts_{stack}.clamp(min=1)[:, None]).sum(dim=-1) - whole")
        script.line(f"total = squares_{stack} - whole", "the variance of the weights, times the cells")
        script.line("scores = (between / total).clamp(0, 1)", "R^2")


class _Relation(Counted):
    """Attention between words that a dependency edge joins: Clark et al. 2019, section 4."""

    def __init__(self, role: str, items: Sequence[Item]) -> None:
        relation = NAMES.index(role)
        self._rows = []
        for item in items:
            pieces = pieces_of_words(item.encoded.source or item.encoded.tokens, item.text)
            self._rows.append(
                [
                    (pieces[source], [(target - source, pieces[target]) for target in targets if pieces[target]])
                    for place, source, targets in grouped(item.text)
                    if place == relation and pieces[source]
                ]
            )

    def numbers(self, script: Script) -> None:
        script.rows("related", self._rows, "of each text: a word's tokens, and how far and which those it is joined to")

    def begin(self, script: Script, stack: str, layers: int, heads: int) -> None:
        script.uses("from collections import Counter")
        script.line(f"sums_{stack} = torch.zeros({layers}, {heads}, dtype=torch.float64)")
        for name in ("counts", "evens"):
            script.line(f"{name}_{stack} = torch.zeros({layers}, dtype=torch.float64)")
        script.line(f"far_{stack}, words_{stack} = Counter(), 0", "how often each distance in words leads there")

    def of_layer(self, stack: str, first: int) -> list[str]:
        return [
            "seen = visible if visible.dim() == 2 else visible[0]  # (queries, keys)",
            "for word, others in related[text]:",
            "    keys = [key for _, pieces in others for key in pieces if seen[word, key].all()]",
            "    if not keys:",
            "        continue  # nothing of what it is joined to is visible",
            f"    sums_{stack}[layer] += w[:, word][:, :, keys].sum(dim=-1).mean(dim=-1)  # to all pieces, from each",
            f"    counts_{stack}[layer] += 1",
            f"    evens_{stack}[layer] += (len(keys) / seen[word].sum(dim=-1)).mean()",
            f"    if layer == {first}:",
            f"        words_{stack} += 1",
            f"        far_{stack}.update({{far for far, pieces in others if pieces[0] in keys}})",
        ]

    def end(self, script: Script, stack: str) -> None:
        script.line(f"scores = sums_{stack} / counts_{stack}[:, None]")
        script.line(
            f"best = max(far_{stack}.values()) / words_{stack}", "of a head that always attends so many words away"
        )
        script.line(f"even = (evens_{stack} / counts_{stack}).clamp(min=best)")


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


_REPEATED = ("copy", "induction")


def write(request: RoleRequest, context: Context) -> Script:
    return role_script(context.model, request, context.should_stop, context.report)


@torch.no_grad()
def role_script(model: Model, request: RoleRequest, should_stop: ShouldStop, report: Report) -> Script:
    """Lines that end, for each stack, with `scores`, (layers, heads), and `even`, (layers,), which measures lack.

    Raises:
        InputError: no head has the role, the model cannot be opened by itself, or the texts are too many to be read.
        Cancelled: it was to stop.
    """
    role, name = request.role, model.info.name
    why = why_not_loaded(model)
    if why and not isinstance(model, RecurrentModel):
        raise InputError(f"This score is of many texts, on which a script would have to run {name}, and {why}.")
    probe = read_probe(request.probe) if request.probe else our_probe()
    view = head_roles(model, probe, should_stop, report)
    stacks = _stacks(view, role)
    if not stacks:
        raise InputError(next((sentence for one, _, sentence in view.why if one == role), f"{name} has no such head."))
    does = _does(role)
    if role == "ov-copying":
        script = Script(f"{name}: {does}")
        copying(script, model, view, stacks)
        return script
    reader = Reader(model, probe, should_stop, report)
    items = (reader.repeats() if role in _REPEATED else []) or reader.all_items()
    what = "random tokens that come twice" if not items[0].text.prompt else f"{len(items)} texts of {probe.name}"
    script = Script(f"{name}: {does}, over {what}")
    script.advice = "Choose a file of fewer texts."
    _Counting(script, model, role, view, items, stacks).write()
    return script


def _does(role: str) -> str:
    title, kind = ROLE_NAMES[role].title, ROLE_NAMES[role].kind
    if kind == "measure":
        return {
            "ov-copying": "how far each head writes what it reads (OV copying)",
            "positional": "how much of each head's map distance explains",
            "breadth": "how broadly each head attends",
        }[role]
    return f"how much each head attends {f'to {title}' if kind == 'pattern' else f'by grammar, {title}'}"


def _stacks(view: RolesView, role: str) -> dict[str, list[int]]:
    """Of each stack that has the role, where in `view.sites` its layers are."""
    place, found = view.roles.index(role), dict[str, list[int]]()
    for i, site in enumerate(view.sites):
        found.setdefault(site.stack, []).append(i)
    return {stack: at for stack, at in found.items() if not np.isnan(view.scores[place, at]).all()}


class _Counting:
    """Writes the loop over the texts."""

    def __init__(
        self,
        script: Script,
        model: Model,
        role: str,
        view: RolesView,
        items: Sequence[Item],
        stacks: dict[str, list[int]],
    ) -> None:
        self.script, self.model, self.role, self.view, self.stacks = script, model, role, view, stacks
        self.items = items
        self.trace = _run_again(model, max(items, key=lambda item: item.length))
        self.layers: dict[str, list[Site]] = {}
        for site in self.trace.sites:
            self.layers.setdefault(site.stack, []).append(site)
        self.counted = counted_of(role, items, self.trace)
        self.of_textbook = bool(why_no_weights(model))
        self.is_pattern = role in {pattern.name for pattern in PATTERNS}

    def write(self) -> None:
        script, role = self.script, self.role
        masks = {stack: self._masks(stack) for stack in self.stacks}
        if isinstance(self.model, RecurrentModel):
            load_recurrent(script, self.model)
        else:
            load(script, self.model)
        if self.is_pattern:
            define_cells(script, role)
        script.section("the numbers on screen")
        start, call = self._inputs()
        sides = self._sides()
        self.counted.numbers(script)
        script.section("the computation")
        if isinstance(self.model, VisionModel):
            processor(script, self.model)
        if self.of_textbook:
            keep_weights(script, self.trace)
        for stack, at in self.stacks.items():
            self.counted.begin(script, stack, len(at), self.layers[stack][0].heads)
        body = [*start, *self._run(call)]
        for stack in self.stacks:
            body += self.counted.of_text(stack, *sides[stack]) if self.is_pattern else []
            for code, layers in masks[stack].items():
                body += [
                    f"for layer in {layers}:",
                    f'    w = given["{stack}"][layer][0].float()  # (heads, queries, keys)',
                    "    n, m = w.shape[1:]",
                    f"    visible = {code}  # which keys each query sees",
                    *(f"    {line}" for line in self.counted.of_layer(stack, layers[0])),
                ]
        script.line("for text in range(len(texts)):\n" + "\n".join(f"    {line}" for line in body))
        place = self.view.roles.index(role)
        for stack, at in self.stacks.items():
            heads = self.layers[stack][0].heads
            script.section(f"{stack}: the score of each head")
            self.counted.end(script, stack)
            script.line("print(scores)", f"({len(at)}, {heads}) layers down, heads across")
            layers = [self.view.sites[i].layer for i in at]
            print_ranked(script, self.view.scores[place, at][:, :heads], self.view.even[place, at], layers, stack)

    # ------------------------------------------------------------------ what is run

    def _inputs(self) -> tuple[list[str], str]:
        """Writes the texts; lines that make one of them the model's input, and the arguments of its call."""
        script, items, model = self.script, self.items, self.model
        if isinstance(model, VisionModel):
            reading = reading_of(script, model, [str(item.text.prompt) for item in items])
            dtype = "" if model.dtype_name == "float32" else f".to(torch.{model.dtype_name})"
            made = f'pixels = processor(images=image, return_tensors="pt")["pixel_values"]{dtype}'
            return ["path = texts[text]", *reading, made], "pixel_values=pixels"
        ids = [[token.id for token in item.encoded.source or item.encoded.tokens] for item in items]
        script.rows("texts", ids, "the ids of each text")
        lines, call = ["ids = torch.tensor([texts[text]])"], "input_ids=ids"
        if model.accepts("attention_mask"):
            call += ", attention_mask=torch.ones_like(ids)"
        segments = [item.encoded.inputs.get("token_type_ids") for item in items]
        if any(one is not None for one in segments):
            rows = [[0] * len(row) if one is None else one[0].tolist() for row, one in zip(ids, segments, strict=True)]
            script.rows("segments", rows, "which of two texts each is of")
            call += ", token_type_ids=torch.tensor([segments[text]])"
        if model.seq2seq:
            written = [[token.id for token in item.encoded.tokens] for item in items]
            script.rows("written", written, "what the decoder has said of each")
            call += ", decoder_input_ids=torch.tensor([written[text]])"
        return lines, call

    def _run(self, call: str) -> list[str]:
        """Lines that end with `given`: by stack the weights of its layers, each (1, heads, queries, keys)."""
        if isinstance(self.model, RecurrentModel):
            return [
                "with torch.no_grad():",
                "    looked = model(ids, torch.tensor([written[text]])).inputs",
                'scores = looked.bias.masked_fill(~looked.mask, float("-inf"))',
                'given = {"cross": [torch.softmax(scores.float(), dim=-1)]}',
            ]
        if self.of_textbook:
            order = {site.ref: i for i, site in enumerate(self.trace.sites)}
            places = {stack: [order[site.ref] for site in self.layers[stack]] for stack in self.stacks}
            given = [f'"{stack}": [kept[i] for i in {at}]' for stack, at in places.items()]
            lines = ["kept.clear()", "with torch.no_grad():", f"    model({call})"]
        else:
            given = [f'"{stack}": out.{outputs_of(stack, self.model.seq2seq)}' for stack in self.stacks]
            lines = ["with torch.no_grad():", f"    out = model({call}, output_attentions=True)"]
        return [*lines, f"given = {{{', '.join(given)}}}"]

    # ------------------------------------------------------------------ who attends, and what is seen

    def _sides(self) -> dict[str, tuple[str, str]]:
        """Of each stack what `cells_of` is given of its queries and of its keys; writes words where it takes them."""
        if not self.is_pattern:
            return {}
        read, said = "texts[text]", "written[text]"
        if isinstance(self.model, VisionModel):
            read = 'range(given["encoder"][0].shape[-1])'
        if self.role in BY_WORD:
            self._words("words", [item.encoded.source or item.encoded.tokens for item in self.items])
            read, said = "words[text]", "said[text]"
            if self.model.seq2seq and set(self.stacks) & {"decoder", "cross"}:
                self._words("said", [item.encoded.tokens for item in self.items])
        if not self.model.seq2seq:
            return dict.fromkeys(self.stacks, (read, read))
        return {"encoder": (read, read), "decoder": (said, said), "cross": (said, read)}

    def _words(self, name: str, texts: Sequence[Sequence[Token]]) -> None:
        what = "its tokens' ids and words" if self.role == "rare" else "its tokens' words"
        self.script.rows(name, [tokens_of(self.role, tokens) for tokens in texts], f"of each text {what}")

    def _masks(self, stack: str) -> dict[str, list[int]]:
        """Expressions of what each query sees, in `n`, `m` and `w`, and the layers of which each is."""
        found: dict[str, list[int]] = {}
        for layer, site in enumerate(self.layers[stack]):
            found.setdefault(self._mask(site), []).append(layer)
        return found

    def _mask(self, site: Site) -> str:
        if isinstance(self.model, RecurrentModel):
            return "looked.mask[0, 0]"
        x = self.trace.inputs[self.trace.index(site)]
        if x.precomputed is not None:
            return "w != 0"  # such a model says no more of its mask
        visible = visible_of(x)
        rule = rule_of(visible[0]) if bool((visible == visible[:1]).all()) else ""
        if not rule:
            raise InputError(
                f"What a query sees in {site.stack} layer {site.layer} follows no rule that a line says, and the masks "
                "of all texts are too many numbers. Ask about the text on screen."
            )
        return rule


def _run_again(model: Model, item: Item) -> Trace:
    """One text run alone, for its masks."""
    if isinstance(model, VisionModel):
        return run(model, str(item.text.prompt))
    encoded = item.encoded
    target = [token.id for token in encoded.tokens[1:]] if model.seq2seq else None
    return run(model, [token.id for token in encoded.source or encoded.tokens], target=target or None)
