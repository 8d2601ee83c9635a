"""Lines that put a part of another text's run into this one: hooks on blocks, on sublayers, on W_O, or on attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from attention_models.effects.batched_runs import BatchedRuns
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.sublayers import sublayers_of
from attention_models.protocol.patching import BY_POSITION, PatchColumnRequest, PatchView
from attention_models.scripts.eager_attention import home_of, wrap
from attention_models.scripts.output_matrices import columns_of, output_names
from attention_models.scripts.rerun_inputs import Answer, begin
from attention_models.scripts.script_text import Script
from attention_models.scripts.streams import blocks_code, print_stream


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
