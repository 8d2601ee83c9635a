"""Activation patching as a script: the other text run once, and a hook that puts a part of it into this run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor, nn

from attention_models.effects.batched_runs import BatchedRuns
from attention_models.effects.patching import answer
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.predictions import answering_position
from attention_models.forward.run import run as run_text
from attention_models.forward.sublayers import sublayers_of
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import BY_POSITION, PatchColumnRequest, PatchRequest, PatchView
from attention_models.protocol.errors import InputError
from attention_models.scripts.heads import Head, word_of
from attention_models.scripts.hooks import blocks_code, columns_of, home_of, output_names, print_stream, wrap
from attention_models.scripts.own_functions import call_with, open_here, written_out
from attention_models.scripts.rerun import (
    Answer,
    aim_words,
    aimed_at,
    answer_of,
    begin,
    check_alone,
    inputs_of,
    show_value,
    show_values,
    why_not_again,
)
from attention_models.scripts.script_text import Script, quoted

# Lines that put a part of another text's run into this one: hooks on blocks, on sublayers, on W_O, or on attention.


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """Both runs, and how the aim is read from each."""

    run: CurrentRun
    request: PatchColumnRequest
    view: PatchView
    inputs: Mapping[str, Tensor]
    other_inputs: Mapping[str, Tensor]
    read: Answer
    read_other: Answer

    @property
    def pairs(self) -> tuple[list[int], list[int]]:
        """Positions here, and those of the other text that stand for them."""
        places = [(i, j) for i, j in enumerate(self.view.stands_for) if j is not None]
        return [i for i, _ in places], [j for _, j in places]


def patched_by_hooks(script: Script, patch: Patch) -> bool:
    """Write lines that end with `before`, `other` and `patched`; False, and none, where no hook reaches that."""
    kind, run = patch.request.kind, patch.run
    stack = run.model.info.predicting_stack
    if kind == "residual":
        blocks = blocks_code(run.model, run.trace, patch.inputs, stack)
        own = {block for name, block in run.model.blocks if name == stack}
        if not blocks or len(own) != len(patch.view.rows):  # one that runs more than once would be changed each time
            return False
        _begin(script, patch, print_stream)
        _residual(script, patch, blocks)
    elif kind in BY_POSITION:
        modules = _modules(patch, stack)
        if modules is None:
            return False
        _begin(script, patch)
        _sublayers(script, patch, modules)
    elif kind == "head":
        assert patch.request.site is not None
        output = output_names(BatchedRuns.of_run(run)).get(patch.request.site, "")
        if not output:
            return False
        _begin(script, patch)
        _head(script, patch, output)
    else:
        assert patch.request.site is not None
        home = home_of(run.model, run.trace, [patch.request.site])
        if not home:
            return False
        _begin(script, patch)
        _pattern(script, patch, home)
    return True


def _begin(script: Script, patch: Patch, helpers: Callable[[Script], None] | None = None) -> None:
    other = patch.other_inputs, patch.read_other
    begin(script, patch.run, patch.inputs, patch.view.aim, patch.read, helpers, other)


def _residual(script: Script, patch: Patch, blocks: str) -> None:
    here, there = patch.request.column, patch.view.stands_for[patch.request.column]
    script.line(f"blocks = {blocks}")
    script.line(f"there = residual_stream(model, blocks, given_other)[:, {there}]", "(blocks + 1, width)")
    script.line(
        "\n".join(
            [
                "patched = []",
                "for block, entering in zip(blocks, there):",
                "    def put(block, args, kwargs):",
                '        stream = (args[0] if args else kwargs["hidden_states"]).clone()  # (1, tokens, width)',
                f"        stream[0, {here}] = entering",
                '        return ((stream, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": stream})',
                "    hook = block.register_forward_pre_hook(put, with_kwargs=True)",
                "    with torch.no_grad():",
                "        patched.append(answer(model(**given)))",
                "    hook.remove()",
            ]
        )
    )
    _both(script)


def _modules(patch: Patch, stack: str) -> list[str] | None:
    """Of each block the module that returns what is patched; None where that is not one of its own."""
    found: list[nn.Module] = []
    for ref, block in sublayers_of(patch.run.model, dict(patch.inputs)).items():
        if ref.stack == stack:
            calls = block.calls.get(patch.request.kind, ())
            if len(calls) != 1:
                return None
            found.append(calls[0].module)
    names = [patch.run.model.module_names.get(module, "") for module in found]
    is_whole = len(set(names)) == len(names) == len(patch.view.rows)
    return names if is_whole and all(names) else None


def _sublayers(script: Script, patch: Patch, modules: list[str]) -> None:
    here, there = patch.request.column, patch.view.stands_for[patch.request.column]
    script.line("modules = [", "what each block adds comes out of these")
    for name in modules:
        script.line(f'    "{name}",')
    script.line("]")
    script.line(
        "\n".join(
            [
                "kept = {}",
                "",
                "def keep(name):",
                "    def hook(module, args, out):",
                "        wrote = out[0] if isinstance(out, tuple) else out",
                f"        kept[name] = wrote.reshape(-1, wrote.shape[-1])[{there}]",
                "    return hook",
                "",
                "hooks = [model.get_submodule(name).register_forward_hook(keep(name)) for name in modules]",
                "with torch.no_grad():",
                "    model(**given_other)",
                "for hook in hooks:",
                "    hook.remove()",
                "",
                "patched = []",
                "for name in modules:",
                "    def put(module, args, out):",
                "        wrote = (out[0] if isinstance(out, tuple) else out).clone()",
                f"        wrote.view(-1, wrote.shape[-1])[{here}] = kept[name]",
                "        return (wrote, *out[1:]) if isinstance(out, tuple) else wrote",
                "    hook = model.get_submodule(name).register_forward_hook(put)",
                "    with torch.no_grad():",
                "        patched.append(answer(model(**given)))",
                "    hook.remove()",
            ]
        )
    )
    _both(script)


def _head(script: Script, patch: Patch, output: str) -> None:
    assert patch.request.site is not None
    here, there = patch.pairs
    start, end = columns_of(patch.run.trace, patch.request.site, patch.request.column)
    script.line(f'W_O = model.get_submodule("{output}")')
    script.line(f"here, there = {here}, {there}", "which token stands for which")
    script.line(
        "\n".join(
            [
                "kept = []",
                "",
                "def keep(module, args):",
                f"    kept.append(args[0][0, there, {start}:{end}])  # what the head gave there",
                "",
                "def put(module, args):",
                "    joined = args[0].clone()  # (1, tokens, heads * size) the heads side by side",
                f"    joined[0, here, {start}:{end}] = kept[0]",
                "    return (joined, *args[1:])",
                "",
                "hook = W_O.register_forward_pre_hook(keep)",
                "with torch.no_grad():",
                "    model(**given_other)",
                "hook.remove()",
                "hook = W_O.register_forward_pre_hook(put)",
                "with torch.no_grad():",
                "    patched = [answer(model(**given))]",
                "hook.remove()",
            ]
        )
    )
    _both(script)


def _pattern(script: Script, patch: Patch, home: str) -> None:
    trace, site = patch.run.trace, patch.request.site
    assert site is not None
    place, head = trace.index(site), patch.request.column
    script.line(f'attention = model.get_submodule("{trace.sites[place].module}")')
    script.line("kept, doing = [], None")
    wrap(
        script,
        home,
        (
            'if module is attention and doing == "keep":',
            f"    kept.append(weights[0, {head}])  # (queries, keys) of the other text",
            'if module is attention and doing == "put":',
            "    out = out.clone()  # (1, queries, heads, size)",
            f"    out[0, :, {head}] = kept[0] @ value[0, {head // trace.inputs[place].group}]",
        ),
    )
    script.line(
        "\n".join(
            [
                "with torch.no_grad():",
                '    doing = "keep"',
                "    model(**given_other)",
                '    doing = "put"',
                "    patched = [answer(model(**given))]",
                "modeling.eager_attention_forward = eager",
            ]
        )
    )
    _both(script)


def _both(script: Script) -> None:
    script.line("with torch.no_grad():\n    before, other = answer(model(**given)), answer_other(model(**given_other))")


_WHAT = {
    "residual": "the stream as it enters each block",
    "attention": "what the attention of each block adds",
    "mlp": "what the feed-forward network of each block adds",
    "head": "what one head gives, at every token",
    "pattern": "the weights of one head",
}
_NO_TOKEN = "No token of the other text stands for {token}. Select one that has one."
_NO_HEAD = "Heads of the decoder and of cross-attention are patched. Select one of those."
_UNHOOKED = "its parts do not hand on what they compute as others do"


def write(request: PatchColumnRequest, context: Context) -> Script:
    """Raises InputError where nothing of the other text stands for what is selected, or as `ax.patch` does."""
    run = context.run(request.run)
    check_alone(run)
    view = _whole(request, context)
    if view.why:
        raise InputError(view.why)
    values = _values(request, run, view)
    script = Script(_title(request, run, view), f"Measured is {aim_words(run, view.aim)}.")
    why, patch = why_not_again(run), None
    if not why:
        patch = _patch_of(request, run, view)
        why = _UNHOOKED
    if patch is None or not patched_by_hooks(script, patch):
        _by_own_functions(script, run, request, view, why)
    show_value(script, view.aim, "as it is", "before", view.aim.value)
    show_value(script, view.aim, "in the other text", "other", view.other_value)
    if len(values) == 1:
        show_value(script, view.aim, "patched", "patched[0]", values[0])
    else:
        show_values(script, view.aim, "patched, block", "patched", values)
    return script


def _whole(request: PatchColumnRequest, context: Context) -> PatchView:
    """The panel's own sweep, gone on with to its end."""
    asked = PatchRequest(run=request.run, other=request.other, kind=request.kind, align=request.align, aim=request.aim)
    view = answer(asked, context)
    while view.done < 1:
        view = answer(asked, context)
    return view


def _values(request: PatchColumnRequest, run: CurrentRun, view: PatchView) -> list[float]:
    """Of each block, or of the one head."""
    if request.kind in BY_POSITION:
        if not 0 <= request.column < len(run.trace.tokens) or view.stands_for[request.column] is None:
            raise InputError(_NO_TOKEN.format(token=word_of(run.trace.tokens, request.column)))
        of_blocks: list[float] = view.values[:, request.column].tolist()
        return of_blocks
    if request.site not in view.rows or np.isnan(view.values[view.rows.index(request.site), request.column]):
        raise InputError(_NO_HEAD)
    return [float(view.values[view.rows.index(request.site), request.column])]


def _title(request: PatchColumnRequest, run: CurrentRun, view: PatchView) -> str:
    if request.kind in BY_POSITION:
        there = view.stands_for[request.column]
        assert there is not None
        name = f"{run.model.info.name}, {word_of(run.trace.tokens, request.column)}"
        return f"{name}: {_WHAT[request.kind]}, from {quoted(view.other_labels[there])} ({there}) of another text"
    assert request.site is not None
    name = Head.of(run.model, run.trace, request.site, request.column).name
    return f"{name}: {_WHAT[request.kind]}, from another text"


def _patch_of(request: PatchColumnRequest, run: CurrentRun, view: PatchView) -> Patch | None:
    """None where the aim is not read from what the model itself gives."""
    model, aim = run.model, view.aim
    inputs, other_inputs = inputs_of(run), model.encode(request.other, run.written).inputs  # type: ignore[arg-type]
    other: Trace = run_text(model, request.other, target=run.written)
    place = view.stands_for[aim.position]
    there = replace(aim, position=answering_position(model, other) if place is None else place, value=view.other_value)
    read = answer_of(model, run.trace, inputs, aim)
    read_other = answer_of(model, other, other_inputs, there, "ids_other")
    if read is None or read_other is None:
        return None
    return Patch(run, request, view, inputs, other_inputs, read, read_other)


# --------------------------------------------------------------------------- by this program's own functions


def _by_own_functions(script: Script, run: CurrentRun, request: PatchColumnRequest, view: PatchView, why: str) -> None:
    open_here(script, run.model, why)
    script.section("the computation")
    given = {"kind": request.kind, "align": request.align, **aimed_at(view.aim), "position": view.aim.position}
    script.line(f"text = {written_out(script, run.text)}")
    texts = ["text", repr(request.other)]
    call_with(script, "patch", texts, {**given, "written": run.written}, run.trace.interventions)
    if request.kind in BY_POSITION:
        script.line(f"patched = view.values[:, {request.column}]", "(blocks,)")
    else:
        assert request.site is not None
        script.line(f"patched = view.values[{view.rows.index(request.site)}, {request.column}][None]")
    script.line("before, other = view.aim.value, view.other_value")
