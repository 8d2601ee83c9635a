"""How much each head has one role, over many texts, as a script: the model runs on all of them and counts again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.forward.vision import VisionModel
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import PATTERNS, ROLE_NAMES, RoleRequest, RolesView
from attention_models.protocol.values import Site, Token
from attention_models.protocol.work import Report, ShouldStop
from attention_models.roles.probe import our_probe, read_probe
from attention_models.roles.reading import Item, Reader
from attention_models.roles.roles import head_roles
from attention_models.scripts.copying import copying
from attention_models.scripts.head import keep_weights, outputs_of, why_no_weights
from attention_models.scripts.loading import load, load_recurrent, why_not_loaded
from attention_models.scripts.patterns import BY_WORD, define_cells, rule_of, tokens_of, visible_of
from attention_models.scripts.pictures import processor, reading_of
from attention_models.scripts.role_counts import counted_of
from attention_models.scripts.script_text import Script
from attention_models.scripts.which_heads import print_ranked

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
