"""One cell as a script: q . k, scale, bias, cap, mask, softmax, the value's share and what is written."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import Part
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.errors import InputError
from attention_models.scripts.heads import Head
from attention_models.scripts.loading import load, why_not_loaded
from attention_models.scripts.script_text import Script
from attention_models.textbook.scores import Additive
from attention_models.textbook.transformer import MultiHeadAttention, _single, eager_attention_forward
from attention_models.views.cell import cell_view
from attention_models.views.residual import output_projection, output_weight


@torch.no_grad()
def recurrent_scores(script: Script, model: RecurrentModel, trace: Trace, step: int, word: str) -> Callable[[], None]:
    """Writes the numbers that the scores at `step` are made of; what it gives writes the lines that compute `scores`.

    They are (source,), of the decoder's state, with local attention's Gaussian.
    """
    module, config = model.module, model.module.config
    run = model.read_again(trace)
    s, score = run.looking[:, step], module.score  # (1, hidden)
    keys = score.prepare(run.encoded)[0]  # (source, hidden)
    source, width = keys.shape
    of_step, what = "at" if config.is_luong else "before", "W h" if config.score == "general" else "h"
    script.section("the numbers on screen")
    if isinstance(score, Additive):
        script.tensor("Ws", score.w(s)[0], f"({width},) W s: the decoder's state {of_step} {word}, multiplied by W")
        script.tensor("Uh", keys, f"({source}, {width}) U h: each encoder state, multiplied by U")
        script.tensor("v", score.v.weight[0], f"({width},) learned")
        formula, remark = "torch.tanh(Ws + Uh) @ v", f"({source},) v . tanh(W s + U h): Bahdanau et al. 2015"
    else:
        script.tensor("s", s[0], f"({width},) the decoder's state {of_step} {word}")
        script.tensor("h", keys, f"({source}, {width}) {what} of each encoder state")
        formula, remark = "h @ s", f"({source},) s . {what}: Luong et al. 2015, equation 8"
    if module.place is not None:
        length = sum(token.id != config.pad for token in trace.source)
        place = float(module.place(s, torch.tensor([length], device=s.device)))
        script.number("place", place, "where it looks around, predicted: Luong et al. 2015, equation 9")

    def compute() -> None:
        script.line(f"scores = {formula}", remark)
        if module.place is not None:
            script.line(f"distance = torch.arange({source}) - place", f"({source},)")
            script.line(f"scores = scores - distance**2 / (2 * ({config.window} / 2) ** 2)", "a Gaussian: equation 10")

    return compute


MOST_KEYS = 8192
"""Numbers of all keys of a row: of more, the other keys' scores come in as one number, their sum."""
_MOST_OUTPUT = 4096  # numbers of W_O that are written out


def write(request: CellRequest, context: Context) -> Script:
    run = context.run(request.run)
    return cell_script(request, run.model, run.trace)


@torch.no_grad()
def cell_script(request: CellRequest, model: Model, trace: Trace) -> Script:
    """Raises IndexError where there is no such cell, InputError where the model shows its weights alone."""
    if model.info.weights_only:
        raise InputError(model.info.weights_only)
    with model.adapter_as(trace.interventions):
        return _cell_script(request, model, trace)


def _cell_script(request: CellRequest, model: Model, trace: Trace) -> Script:
    view = cell_view(request, model, trace)
    cell = Head.of(model, trace, request.site, request.head)
    query, key = cell.query_word(request.query), cell.key_word(request.key)
    script = Script(f"{cell.name}: how much {query} attends to {key}")
    row = _Row(script, cell, view)
    if isinstance(model, RecurrentModel):
        row.recurrent(model)
    elif not row.is_whole:
        row.cell_alone()
    elif cell.textbook is not None and not view.row_masked.all():
        row.textbook(cell.textbook)
    else:
        row.whole()
    row.written()
    return script


class _Row:
    """Writes the row of one query; the lines end with `weight` and `v`, those of the cell."""

    def __init__(self, script: Script, cell: Head, view: CellView) -> None:
        self.script, self.cell, self.view = script, cell, view
        self.query, self.key = view.request.query, view.request.key
        self.part = Part([cell.head], [self.query])
        x = cell.x
        self.keys, self.values = x.key[0, cell.key_head].float(), x.value[0, cell.key_head].float()
        self.is_whole = self.keys.numel() + self.values.numel() <= MOST_KEYS

    # ------------------------------------------------------------------ its numbers

    def _row_of(self, t: Tensor) -> Tensor | None:
        """Of a tensor that broadcasts to cells, this row (keys,); None where it is 0 all along."""
        found = self.part.take_cells(t)[0, 0, 0].float().expand(self.cell.x.keys)
        return found if bool(found.any()) else None

    def _bias(self) -> Tensor | None:
        """Added before a soft cap: T5's, and ALiBi's where a family hands it over by itself."""
        return None if self.cell.x.bias is None else self._row_of(self.cell.x.bias)

    def _in_mask(self) -> Tensor | None:
        """Added with the mask: the slopes of ALiBi, in some families."""
        mask = self.cell.x.mask
        if mask is None or mask.dtype == torch.bool:
            return None
        return self._row_of(attention.added_bias(self.cell.x))

    def _scale(self) -> None:
        width = self.view.q.shape[0]
        usual = math.isclose(self.view.scale, width**-0.5)
        self.script.number("scaling", self.view.scale, f"1 / sqrt({width})" if usual else "as this model was trained")
        if self.view.factor != 1:
            self.script.line(f"scaling = scaling * {self.view.factor!r}", "an intervention of yours")

    def _numbers(self) -> None:
        script, view, x = self.script, self.view, self.cell.x
        script.section("the numbers on screen")
        turned = ", turned by its position" if view.rotated else ""
        script.tensor("q", view.q, f"({x.query.shape[-1]},) query of {self.cell.query_word(self.query)}{turned}")
        script.tensor("K", self.keys, f"({x.keys}, {self.keys.shape[1]}) the keys, one a row")
        script.tensor("V", self.values, f"({x.keys}, {self.values.shape[1]}) the values")
        script.tensor("visible", ~view.row_masked, f"({x.keys},) the mask's row: False is hidden")
        script.line(f"key = {self.key}", self.cell.key_word(self.key))

    # ------------------------------------------------------------------ its computation

    def whole(self) -> None:
        """As the formula has it."""
        script, view, n = self.script, self.view, self.cell.x.keys
        self._numbers()
        self._scale()
        bias, in_mask = self._bias(), self._in_mask()
        if bias is not None:
            script.tensor("bias", bias, f"({n},) what positions add")
        if in_mask is not None:
            script.tensor("slopes", in_mask, f"({n},) what positions add, in the mask")
        if self.cell.x.sinks is not None:
            script.tensor(
                "sink", self.cell.x.sinks[self.cell.head : self.cell.head + 1].float(), "(1,) a score that no key has"
            )
        script.section("the computation")
        script.line("scores = K @ q", f"({n},) q . k of every key")
        script.show("q . k", "scores[key]", view.raw)
        script.line("scores = scores * scaling", f"({n},)")
        if bias is not None:
            script.line("scores = scores + bias", f"({n},)")
        if view.softcap is not None:
            script.line(f"scores = {view.softcap!r} * torch.tanh(scores / {view.softcap!r})", f"({n},) the soft cap")
        if in_mask is not None:
            script.line("scores = scores + slopes", f"({n},)")
        script.show("score", "scores[key]", view.score)
        if view.row_masked.any():
            script.line('scores = scores.masked_fill(~visible, float("-inf"))', f"({n},)")
        if self.cell.x.sinks is not None:
            script.line("weights = torch.softmax(torch.cat([scores, sink]), dim=-1)[:-1]", f"({n},) and 1 for the sink")
        elif view.row_masked.all():
            script.line("weights = torch.zeros_like(scores)", f"({n},) nothing is visible")
        else:
            script.line("weights = torch.softmax(scores, dim=-1)", f"({n},) they sum to 1")
        self._mix()

    def textbook(self, module: MultiHeadAttention) -> None:
        """By the textbook transformer's own lines."""
        script, view, x = self.script, self.view, self.cell.x
        script.uses("from types import SimpleNamespace", "from typing import Any", "from torch import Tensor, nn")
        script.section("the lines of the textbook transformer")
        is_additive = module.additive is not None
        script.source_of(_single, eager_attention_forward)
        if is_additive:
            script.source_of(MultiHeadAttention._additive)
        self._numbers()
        bias = self._bias()
        script.line(
            "query, keys, values = q[None, None, None], K[None, None], V[None, None]",
            "(batch, heads, tokens, head_dim)",
        )
        given = "None"
        if is_additive:
            assert module.additive is not None
            script.number("scaling", 0.0, "the product of q and k counts for nothing")
            script.tensor("v", module.additive.weight[self.cell.head], f"({x.query.shape[-1]},) learned")
            script.line("head = SimpleNamespace(additive=SimpleNamespace(weight=v[None]), heads=1, key_heads=1)")
        else:
            self._scale()
        if bias is not None and not is_additive:
            script.tensor("bias", bias, f"({x.keys},) what positions add")
            given = "bias[None, None, None]"
        script.section("the computation")
        if is_additive:
            script.line("bias = _additive(head, query, keys)", f"(1, 1, 1, {x.keys}) v . tanh(q + k)")
            script.show("v . tanh(q + k)", "bias[0, 0, 0, key]", view.raw)
            given = "bias"
        else:
            script.line("scores = K @ q", f"({x.keys},) q . k of every key")
            script.show("q . k", "scores[key]", view.raw)
        script.line(
            "mixed, weights = eager_attention_forward(\n"
            "    SimpleNamespace(is_causal=False), query, keys, values, visible, scaling, " + given + "\n)"
        )
        script.line("weights = weights[0, 0, 0]", f"({x.keys},) they sum to 1")
        self._mix()

    def recurrent(self, model: RecurrentModel) -> None:
        """A decoder state's scores of the encoder's states."""
        script, view, n = self.script, self.view, self.cell.x.keys
        compute = recurrent_scores(script, model, self.cell.trace, self.query, self.cell.query_word(self.query))
        script.tensor("V", self.values, f"({n}, {self.values.shape[1]}) the encoder's states h")
        script.tensor("visible", ~view.row_masked, f"({n},) False is outside of the window")
        script.line(f"key = {self.key}", self.cell.key_word(self.key))
        script.section("the computation")
        compute()
        script.show("score", "scores[key]", view.score)
        script.line('scores = scores.masked_fill(~visible, float("-inf"))', f"({n},)")
        script.line("weights = torch.softmax(scores, dim=-1)", f"({n},) they sum to 1")
        self._mix()

    def cell_alone(self) -> None:
        """Of a long row the other keys' part of the softmax is one number."""
        script, view = self.script, self.view
        width = self.keys.shape[1]
        scores = torch.from_numpy(view.row_scores.copy()).double()
        hidden = torch.from_numpy(view.row_masked.copy())
        others = scores.masked_fill(hidden, -torch.inf)
        others[self.key] = -torch.inf
        if self.cell.x.sinks is not None:
            others = torch.cat([others, self.cell.x.sinks[self.cell.head].double().cpu()[None]])
        script.section("the numbers on screen")
        script.tensor("q", view.q, f"({width},) query of {self.cell.query_word(self.query)}")
        script.tensor("k", view.k, f"({width},) key of {self.cell.key_word(self.key)}")
        script.tensor("v", view.value, f"({self.values.shape[1]},) its value")
        script.line(f"visible = {not view.masked}")
        if view.additive is None:
            self._scale()
        else:
            script.tensor("v_score", view.additive.v, f"({width},) learned")
        rest = float(torch.logsumexp(others, 0))
        script.number("others", rest, f"log of the sum of exp(score) of the other {len(view.row_scores) - 1:,} keys")
        script.section("the computation")
        if view.additive is None:
            script.line("score = q @ k", "q . k")
            script.show("q . k", "score", view.raw)
            script.line("score = score * scaling")
        else:
            script.line("score = v_score @ torch.tanh(q + k)", "v . tanh(q + k)")
        bias = self._bias() if view.additive is None else None
        in_mask = self._in_mask()
        if bias is not None:
            script.line(f"score = score + {float(bias[self.key])!r}", "what positions add")
        if view.softcap is not None:
            script.line(f"score = {view.softcap!r} * torch.tanh(score / {view.softcap!r})", "the soft cap")
        if in_mask is not None:
            script.line(f"score = score + {float(in_mask[self.key])!r}", "what positions add")
        script.show("score", "score", view.score)
        if view.masked:
            script.line("weight = torch.tensor(0.0)", "it is hidden")
        else:
            script.line("weight = torch.softmax(torch.stack([score, torch.tensor(others)]), dim=-1)[0]")
        script.show("weight", "weight", view.weight)
        self._share()

    def _mix(self) -> None:
        """From `weights`, `V` and `key` to the head's output."""
        view = self.view
        self.script.line("weight, v = weights[key], V[key]")
        self.script.show("weight", "weight", view.weight)
        self._share()
        self.script.line("output = weights @ V", f"({self.values.shape[1]},) the head's output: all values, mixed")
        self.script.show("length of the output", "output.norm()", view.head_output_norm)

    def _share(self) -> None:
        self.script.line("mixed = weight * v", f"({self.values.shape[1]},) this key's part")
        self.script.show("length of weight * v", "mixed.norm()", self.view.mixed_norm)

    def written(self) -> None:
        """What W_O makes of the cell's part."""
        view, cell, script = self.view, self.cell, self.script
        weight = output_weight(cell.model, cell.trace, cell.site, cell.head)
        if view.write is None or weight is None or view.write_norm is None or not view.write.any():
            return
        rows = slice(cell.head * weight.shape[0], (cell.head + 1) * weight.shape[0])
        script.section("what is written into the residual stream")
        if weight.numel() <= _MOST_OUTPUT:
            script.tensor(
                "W_O", weight.float(), f"({weight.shape[0]}, {weight.shape[1]}) the head's rows of the output matrix"
            )
        elif why_not_loaded(cell.model):
            return
        else:
            projection = output_projection(cell.model, cell.trace, cell.site)
            name = cell.model.module_names[projection] if projection is not None else ""
            load(script, cell.model)
            turned = "" if type(projection).__name__ == "Conv1D" else ".T"
            script.line(
                f'W_O = model.get_submodule("{name}").weight{turned}[{rows.start}:{rows.stop}].detach().float()',
                f"({weight.shape[0]}, {weight.shape[1]})",
            )
        script.line("write = mixed @ W_O", f"({weight.shape[1]},)")
        script.show("length of the write", "write.norm()", view.write_norm)
