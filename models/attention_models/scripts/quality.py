"""Quality on sentences of one length as a script: every model translates them, and each score is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import transformers

from attention_models.decoding.choosing import end_ids
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.length.measurement import MOST_WRITTEN
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.quality import QualityBin, QualityExample, QualityScore, ShownQuality
from attention_models.protocol.request import Cancelled
from attention_models.scripts.loading import load, load_tokenizer, why_not_loaded
from attention_models.scripts.own_functions import FACE, open_here
from attention_models.scripts.script_text import Script

MOST = 200
"""Sentences of one length up to which a script translates all of them; of more it has the one that is read."""

_PLAIN = """
def plain(text):  # letter case and spaces aside
    return " ".join(text.lower().split())


def right(written):  # how many equal one of their references
    pairs = zip(written, sentences)
    return sum(plain(text) in map(plain, references) for text, (_, references) in pairs)
""".strip()

_BLEU = """
def bleu(written):  # corpus BLEU, 0 to 100, letter case aside: Papineni et al. 2002
    most = max(len(references) for _, references in sentences)
    streams = [[refs[i] if i < len(refs) else None for _, refs in sentences] for i in range(most)]
    return BLEU(lowercase=True, effective_order=True).corpus_score(written, streams).score
""".strip()

_OF_ALL = """
def log_p(model):  # of the references' tokens, the true ones before each given: the mean, in nats
    found = [log_p_of(model, source, one) for source, references in sentences for one in references]
    return sum(total for total, _ in found) / sum(tokens for _, tokens in found)
""".strip()


def write(request: ShownQuality, context: Context) -> Script:
    """Opens each of the models once more. Raises CheckpointError, a model that cannot be opened; Cancelled."""
    shown, models = request.bin, []
    for reference in request.references:
        if context.should_stop():
            raise Cancelled
        context.report(f"Opening {reference}", None)
        models.append(open_checkpoint(reference))
    return quality_script(shown, request.example, models, has_bleu=request.has_bleu)


def quality_script(shown: QualityBin, place: int, models: Sequence[Model], *, has_bleu: bool) -> Script:
    """Of the sentences of one length, `place` of which is read; one model for each score."""
    is_whole = shown.sentences <= MOST
    chosen = shown.examples[place]
    examples = shown.examples if is_whole else (chosen,)
    names = [model.info.name for model in models]
    unit = "words" if has_bleu else "characters"
    script = Script(f"Sentences of {shown.name} {unit}, by {', '.join(names)}")
    script.section("the sentences on screen, and their translations")
    script.line("sentences = [")
    for example in examples:
        script.line(f"    ({example.source!r}, {list(example.references)!r}),")
    script.line("]")
    if is_whole:
        script.remark(f"The one that is read stands at {place}.")
    else:
        script.remark(f"It is one of {shown.sentences:,} of this length, too many to be listed here.")
    script.line(f"{_PLAIN}\n\n")
    if is_whole and has_bleu:
        script.uses("from sacrebleu.metrics.bleu import BLEU")
        script.line(f"{_BLEU}\n\n")
    if is_whole:
        script.line(f"{_OF_ALL}\n\n")
    for i, model in enumerate(models):
        script.section(f"{'the computation, ' if i == 0 else 'the same '}by {model.info.name}")
        alone = _is_by_transformers(model)
        _translate(script, model, alone=alone)
        _compare(script, model, chosen, i, place if is_whole else 0)
        if is_whole:
            _score(script, model, shown, i, alone=alone, has_bleu=has_bleu)
    return script


def _translate(script: Script, model: Model, *, alone: bool) -> None:
    """Lines after which `written` has a translation of each of `sentences`; `alone` as of `_is_by_transformers`."""
    if alone:
        load(script, model)
        load_tokenizer(script, model)
        room, module = "", cast("Any", model.module)
        if module.get_decoder().config.num_hidden_layers > model.config.num_hidden_layers:
            script.remark("Without a cache: generate would make room for as many layers as the encoder has.")
            room = ", 'use_cache': False"
        script.line("written = []")
        script.line(
            "for source, _ in sentences:\n"
            '    ids = tokenizer(source, return_tensors="pt").input_ids\n'
            f"    greedily = {{'do_sample': False, 'num_beams': 1, 'min_length': 0{room}}}\n"
            f"    made = model.generate(ids, max_new_tokens={MOST_WRITTEN}, **greedily)\n"
            "    written.append(\n"
            "        tokenizer.decode(made[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)\n"
            "    )"
        )
        return
    open_here(script, model, why_not_loaded(model) or "its class is this program's own")
    script.line(f"written = [list(ax.decode(model, source, {MOST_WRITTEN}))[-1].text for source, _ in sentences]")


def _is_by_transformers(model: Model) -> bool:
    """Whether transformers alone opens the model."""
    return not why_not_loaded(model) and hasattr(transformers, type(model.module).__name__)


def _compare(script: Script, model: Model, chosen: QualityExample, i: int, place: int) -> None:
    name = model.info.name
    script.line(f"text, references = written[{place}], sentences[{place}][1]")
    script.line(f"print({name!r}, 'writes:', repr(text), '  shown:', {chosen.written[i]!r})")
    script.show(f"{name}, one of its references", "plain(text) in map(plain, references)", float(chosen.exact[i]))


def _score(script: Script, model: Model, shown: QualityBin, i: int, *, alone: bool, has_bleu: bool) -> None:
    score: QualityScore = shown.scores[i]
    name = model.info.name
    script.show(f"{name}, right, of {shown.sentences:,}", "right(written)", float(score.exact))
    if has_bleu and score.bleu is not None:
        script.show(f"{name}, BLEU", "bleu(written)", score.bleu)
    if alone:
        script.line(
            "\n\ndef log_p_of(model, source, reference):\n"
            '    ids = tokenizer(source, return_tensors="pt").input_ids\n'
            '    wanted = tokenizer(text_target=reference, return_tensors="pt").input_ids  # with its end\n'
            f"    given = torch.cat([torch.tensor([[{model.start_id}]]), wanted[:, :-1]], dim=1)\n"
            "    with torch.no_grad():\n"
            "        logits = model(input_ids=ids, decoder_input_ids=given).logits[0].double()\n"
            "    return float(logits.log_softmax(dim=-1).gather(1, wanted.T).sum()), wanted.shape[1]\n\n"
        )
    else:
        script.uses(FACE)
        script.line(
            "\n\ndef log_p_of(model, source, reference):\n"
            "    trace = ax.run(model, source, target=reference)  # its tokens begin with the start\n"
            f"    wanted = [token.id for token in trace.tokens[1:]] + [{end_ids(model)[0]}]  # with its end\n"
            "    logits = torch.tensor(trace.logits).double()\n"
            "    return float(logits.log_softmax(dim=-1).gather(1, torch.tensor([wanted]).T).sum()), len(wanted)\n\n"
        )
    script.show(f"{name}, log p a token, nats", "log_p(model)", score.log_probability)
