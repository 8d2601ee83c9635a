"""The next step of a training as a script: the loss of its batch, the gradient of one weight, and Adam's step of it."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from attention_models.files.training_steps import WEIGHTS_PREFIX, snapshot_path
from attention_models.forward.context import Context
from attention_models.protocol.errors import InputError
from attention_models.protocol.gradient_breakdown import GradientBreakdown, TokenLoss
from attention_models.protocol.training_scripts import BatchOnScreen
from attention_models.scripts.script_text import MOST_NUMBERS, Script, quoted
from attention_models.scripts.training.lines import make_model, same_threads
from attention_models.textbook.tokenizer import PAD_ID
from attention_models.training.experiment import experiment

_MOVED = 5  # parameters whose moves are printed


def write(request: BatchOnScreen, context: Context) -> Script:
    """Raises InputError where the weights of this step are not kept any more, or the batch is too large."""
    found = request.dissection
    file = snapshot_path(Path(request.folder), found.step - 1)
    if not file.is_file():
        raise InputError(
            f"The weights before step {found.step:,} are in no snapshot any more. Take one batch, and ask again."
        )
    asked = request.asked
    planned = experiment(asked.task, dict(asked.switches), asked.seed, asked.text)
    numbers = sum(len(row) for _, rows in (*found.inputs, ("", found.labels)) for row in rows)
    if numbers > MOST_NUMBERS:
        raise InputError(f"The batch has {numbers:,} numbers, too many for a script. Train with fewer rows a batch.")
    weights = {name: t for name, t in load_file(file).items() if name.startswith(WEIGHTS_PREFIX)}
    is_small = numbers + sum(t.numel() for t in weights.values()) <= MOST_NUMBERS
    script = Script(f"{planned.name}, seed {asked.seed}: step {found.step:,} in numbers, which is not taken yet")
    script.uses("import torch.nn.functional as F")
    same_threads(script)
    script.section("the model")
    make_model(script, planned.config)
    if is_small:
        _written_weights(script, weights)
    else:
        _weights_of(script, file)
    script.line("model.train()", "with dropout, as it learns")
    script.section("the numbers on screen")
    _batch(script, found)
    script.section("the computation")
    _losses(script, found, planned.settings.seed, request.row)
    _chain_rule(script, found, request.row)
    _adam(script, found)
    _deeper(script, found)
    if not is_small:
        _moved(script, found)
    return script


# --------------------------------------------------------------------------- what it starts from


def _written_weights(script: Script, weights: dict[str, Tensor]) -> None:
    script.line("weights = {}")
    for name, tensor in weights.items():
        script.tensor(f"weights[{name.removeprefix(WEIGHTS_PREFIX)!r}]", tensor)
    script.line("for name, parameter in model.named_parameters():\n    parameter.data.copy_(weights[name])")


def _weights_of(script: Script, file: Path) -> None:
    script.uses("from safetensors.torch import load_file")
    script.remark("The snapshot is there while the training is in its window; saved as a folder it stays.")
    script.line(f"state = load_file({str(file)!r})")
    script.line(
        "for name, parameter in model.named_parameters():\n"
        f'    parameter.data.copy_(state["{WEIGHTS_PREFIX}" + name])  # one matrix of two uses is there once'
    )


def _batch(script: Script, found: GradientBreakdown) -> None:
    places = len(found.labels[0])
    padded = dict(found.inputs).get("input_ids", ())
    visible = tuple(tuple(int(id_ != PAD_ID) for id_ in row) for row in padded)
    for name, rows in found.inputs:
        if name == "attention_mask" and rows == visible:
            script.line(f"attention_mask = input_ids != {PAD_ID}", "False is padding")
            continue
        script.tensor(name, torch.tensor(rows), f"({len(rows)}, {len(rows[0])})")
    script.tensor("labels", torch.tensor(found.labels), f"({found.rows}, {places}) -100: nothing is to be said")
    given = ", ".join(f"{name!r}: {name}" for name, _ in found.inputs)
    script.line(f"inputs = {{{given}}}")


# --------------------------------------------------------------------------- what is computed


def _losses(script: Script, found: GradientBreakdown, seed: int, row: int) -> None:
    count, smoothing = len(found.tokens), found.smoothing
    vocabulary = len(found.words)
    script.line(f"dropout = {seed} * 1_000_003 + {found.step}", "its seed")
    script.line("torch.manual_seed(dropout)")
    script.line("h = model.model(**inputs).last_hidden_state", f"(rows, tokens, {found.width}) what the logits are of")
    script.line("logits = model.lm_head(h)", f"(rows, tokens, {vocabulary})")
    script.line("logits.retain_grad()")
    script.line(
        "loss = F.cross_entropy(\n    logits.flatten(0, 1), labels.flatten(), ignore_index=-100, "
        f"label_smoothing={smoothing!r}\n)"
    )
    script.show("loss of the batch", "loss.detach()", found.loss)
    script.line("said = labels != -100", "(rows, tokens)")
    script.line("log_p = logits.detach()[said].double().log_softmax(-1)", f"({count}, {vocabulary})")
    script.line(
        f"y = {1 - smoothing!r} * F.one_hot(labels[said], {vocabulary}).double() + {smoothing!r} / {vocabulary}",
        "what p should be",
    )
    script.line("losses = -(y * log_p).sum(-1)", f"({count},) of each token")
    for i, token in _of_row(found, row):
        script.show(f"loss of row {row + 1}, position {token.place}", f"losses[{i}]", token.loss)
    script.show("mean of the losses", "losses.mean()", found.loss)


def _of_row(found: GradientBreakdown, row: int) -> list[tuple[int, TokenLoss]]:
    return [(i, token) for i, token in enumerate(found.tokens) if token.row == row]


def _chain_rule(script: Script, found: GradientBreakdown, row: int) -> None:
    output, count = found.output, len(found.tokens)
    place = f"[{output.token}, {output.dimension}]"
    script.section(f"the gradient of W{place}: the logit of {quoted(found.words[output.token])}, dimension of h")
    script.line(f"p = log_p.exp()[:, {output.token}]", f"({count},)")
    script.line(
        f"terms = (p - y[:, {output.token}]) * h.detach()[said][:, {output.dimension}].double() / {count}",
        "by the chain rule",
    )
    for i, token in _of_row(found, row):
        script.show(f"term of row {row + 1}, position {token.place}", f"terms[{i}]", output.terms[i].term)
    script.show("sum of all terms", "terms.sum()", output.through_output)
    script.line("loss.backward()", "by autograd")
    script.line("gradient = model.lm_head.weight.grad")
    if output.through_embedding:
        script.line("as_head = logits.grad.flatten(0, 1).T @ h.detach().flatten(0, 1)", "without where it embeds")
        script.show("gradient by way of the embedding", f"(gradient - as_head){place}", output.through_embedding)
    script.show("gradient by autograd", f"gradient{place}", output.total)


def _adam(script: Script, found: GradientBreakdown) -> None:
    adam = found.adam
    place = f"[{adam.index[0]}, {adam.index[1]}]"
    beta1, beta2 = adam.betas
    script.section("Adam's step of it: Kingma and Ba 2015, algorithm 1")
    script.line(f"length = torch.nn.utils.clip_grad_norm_(model.parameters(), {found.clip!r})", "of all gradients")
    script.show("length of the gradient", "length", found.gradient_length)
    script.line(f"g = float(gradient{place})", "shortened where that is longer")
    script.show("gradient as it counts", "g", adam.clipped)
    script.number("m", adam.m_before, "of the steps before")
    script.number("v", adam.v_before)
    script.line(f"m = {beta1!r} * m + (1 - {beta1!r}) * g")
    script.line(f"v = {beta2!r} * v + (1 - {beta2!r}) * g**2")
    script.show("m", "m", adam.m)
    script.show("v", "v", adam.v)
    script.line(f"m_corrected, v_corrected = m / (1 - {beta1!r}**{adam.step}), v / (1 - {beta2!r}**{adam.step})")
    script.line(f"change = -{adam.rate!r} * m_corrected / (v_corrected**0.5 + {adam.epsilon!r})")
    script.show("change", "change", adam.change)
    script.show("weight afterwards", f"model.lm_head.weight.detach(){place} + change", adam.after)


def _deeper(script: Script, found: GradientBreakdown) -> None:
    deeper = found.deeper
    script.uses("import copy")
    script.section("a deeper gradient, held against a difference in float64")
    script.line("exact = copy.deepcopy(model).double()")
    script.line('exact.set_attn_implementation("eager")')
    script.line(
        "\n".join(
            [
                "",
                "",
                "def loss_with(moved):",
                f"    weight = exact.get_parameter({deeper.name!r})",
                f"    kept = float(weight.detach()[{deeper.index}])",
                f"    weight.data[{deeper.index}] = kept + moved",
                "    torch.manual_seed(dropout)",
                "    with torch.no_grad():",
                "        logits = exact(**inputs).logits",
                f"    weight.data[{deeper.index}] = kept",
                "    return F.cross_entropy(",
                "        logits.flatten(0, 1), labels.flatten(), ignore_index=-100, "
                f"label_smoothing={found.smoothing!r}",
                "    )",
                "",
                "",
            ]
        )
    )
    width = repr(deeper.width)
    script.show("difference", f"(loss_with({width}) - loss_with(-{width})) / (2 * {width})", deeper.difference)


def _moved(script: Script, found: GradientBreakdown) -> None:
    """By torch's own Adam, from what it keeps in the snapshot."""
    adam = found.adam
    script.section("how far the parameters move, by torch's own Adam")
    script.line(
        "optimizer = torch.optim.Adam(\n"
        f"    model.parameters(), lr={adam.rate!r}, betas={tuple(adam.betas)}, eps={adam.epsilon!r}, fused=True\n)"
    )
    script.line("before = {name: p.detach().clone() for name, p in model.named_parameters()}")
    if adam.step > 1:
        script.line(
            "\n".join(
                [
                    "for name, p in model.named_parameters():",
                    f'    kept = {{"step": torch.tensor({float(adam.step - 1)!r})}}',
                    '    kept |= {key: state[f"{key}.{name}"] for key in ("exp_avg", "exp_avg_sq")}',
                    "    optimizer.state[p] = kept",
                ]
            )
        )
    script.line("optimizer.step()")
    script.line("moves = {name: (p.detach() - before[name].double()).norm() for name, p in model.named_parameters()}")
    for one in sorted(found.moved, key=lambda one: -one.update)[:_MOVED]:
        script.show(f"{one.name} moves by", f"moves[{one.name!r}]", one.update)
