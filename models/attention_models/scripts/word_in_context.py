"""A word in two texts as a script: the residual streams of both, and cosines between their vectors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from attention_models.effects.in_context import in_context
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.protocol.effects import InContextAtRequest, InContextView, place_of_word
from attention_models.scripts.hooks import blocks_code, print_stream
from attention_models.scripts.loading import load
from attention_models.scripts.own_functions import call_with, open_here
from attention_models.scripts.rerun import give, why_not_with
from attention_models.scripts.script_text import Script, quoted

_UNHOOKED = "its blocks do not hand their stream on as others do"


def write(request: InContextAtRequest, context: Context) -> Script:
    """Raises InputError as the comparison does."""
    model = context.model
    view = in_context(request, model, context.should_stop, context.report)
    first, second = (quoted(word) for word in request.words)
    after = "the embedding" if request.layer == 0 else f"{view.stack} layer {request.layer - 1}"
    script = Script(
        f"{model.info.name}: {first} in one text and {second} in another",
        f"Cosines after every layer, 0 the embedding; then all figures after {after}.",
    )
    why = "interventions are on" if request.interventions else why_not_with(model)
    texts = [model.encode(text).inputs for text in request.texts]
    code = ""
    if not why:
        code = blocks_code(model, run(model, request.texts[0]), texts[0], view.stack)
        why = "" if code else _UNHOOKED
    if why:
        _by_own_functions(script, model, view, why)
    else:
        _by_hooks(script, model, view, texts, code)
    return script


def _by_hooks(script: Script, model: Model, view: InContextView, texts: list[dict[str, Tensor]], blocks: str) -> None:
    request = view.request
    assert isinstance(request, InContextAtRequest)
    load(script, model)
    print_stream(script)
    script.section("the texts")
    names = [give(script, inputs, suffix) for inputs, suffix in zip(texts, ("_a", "_b"), strict=True)]
    tokens = [len(of_text) for of_text in view.tokens]
    script.section("the computation")
    script.line(f"blocks = {blocks}")
    for side, name, count in zip("ab", names, tokens, strict=True):
        script.line(
            f"{side} = residual_stream(model, blocks, {name}).double()", f"({view.layers}, {count}, {model.info.width})"
        )
    for side, word, places in zip("ab", request.words, view.positions, strict=True):
        of = "its only token" if len(places) == 1 else f"the mean of its {len(places)} tokens"
        script.line(f"word_{side} = {side}[:, {list(places)}].mean(dim=1)", f"({view.layers}, …) {quoted(word)}: {of}")
    script.line("cosine = torch.cosine_similarity(word_a, word_b, dim=-1)", f"({view.layers},)")
    script.show_each("cosine", "cosine", view.cosine.tolist())
    layer, count = request.layer, sum(tokens)
    script.line("")
    script.line(f"x, y = a[{layer}], b[{layer}]", "after that layer")
    script.line("both = torch.cat([x, y])", f"({count}, …) the tokens of both texts")
    script.line("unit = torch.nn.functional.normalize(both, dim=1)")
    script.line("table = unit @ unit.T", f"({count}, {count}) the cosine of every two tokens")
    script.show("any two tokens", f"table[~torch.eye({count}, dtype=torch.bool)].mean()", view.anisotropy[layer])
    firsts, means = view.sentences[layer].tolist()
    script.show("first tokens", "torch.cosine_similarity(x[0], y[0], dim=0)", firsts)
    script.show("means of all tokens", "torch.cosine_similarity(x.mean(dim=0), y.mean(dim=0), dim=0)", means)
    _plane(script, view, layer)


def _plane(script: Script, view: InContextView, layer: int) -> None:
    script.line("")
    script.remark("the first two principal components of all tokens")
    script.line("centred = both - both.mean(dim=0)")
    script.line("_, sizes, ways = torch.linalg.svd(centred, full_matrices=False)")
    script.line("plane = centred @ ways[:2].T", f"({sum(map(len, view.tokens))}, 2)")
    script.line(
        "furthest = plane.gather(0, plane.abs().argmax(dim=0, keepdim=True))",
        "its sign is free",
    )
    script.line("plane = plane * furthest.sign()")
    script.line("explained = sizes.square()[:2] / sizes.square().sum()")
    script.show_each("variance along component", "explained", view.explained[layer].tolist())
    count = len(view.tokens[0])
    places = (view.positions[0][-1], count + view.positions[1][-1])
    for name, place in zip("AB", places, strict=True):
        script.show_each(f"word of {name}, component", f"plane[{place}]", view.plane[layer, place].tolist())


def _by_own_functions(script: Script, model: Model, view: InContextView, why: str) -> None:
    request = view.request
    assert isinstance(request, InContextAtRequest)
    open_here(script, model, why)
    script.section("the computation")
    given: dict[str, Any] = {"starts": _starts(view), "stack": request.stack or None}
    texts = [*map(repr, request.texts), *map(repr, request.words)]
    call_with(script, "word_in_context", texts, given, request.interventions)
    script.show_each("cosine", "view.cosine", view.cosine.tolist())
    layer = request.layer
    script.show("any two tokens", f"view.anisotropy[{layer}]", view.anisotropy[layer])
    script.show("first tokens", f"view.sentences[{layer}, 0]", view.sentences[layer, 0])
    script.show("means of all tokens", f"view.sentences[{layer}, 1]", view.sentences[layer, 1])


def _starts(view: InContextView) -> tuple[int | None, int | None] | None:
    """None where each word is at its last place, which is what is meant where nothing is said."""
    request = view.request
    last = [place_of_word(text, word) for text, word in zip(request.texts, request.words, strict=True)]
    starts = [place if place is None else place[0] for place in last]
    given = [start if start is not None else at for start, at in zip(request.starts, starts, strict=True)]
    return None if given == starts else request.starts
