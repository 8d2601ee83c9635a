"""What a head does over the texts of a file as a script: the mean map, means by distance, places, rows of a token."""

from __future__ import annotations

from attention_models.corpus.corpus import edits_of
from attention_models.files.text_stream import TextStream
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.chat import Pair
from attention_models.protocol.corpus import WORD
from attention_models.protocol.corpus_shown import ShownCell, ShownDistances, ShownInCorpus, ShownPlace, ShownRow
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.protocol.values import site_tokens
from attention_models.roles.patterns import CELLS
from attention_models.roles.token_features import SiteTokenFeatures
from attention_models.scripts.corpus_texts import OfAllTexts, why_not_all_texts
from attention_models.scripts.heads import Head
from attention_models.scripts.rerun import Rerun
from attention_models.scripts.script_text import Script, printable, quoted


def write(request: ShownInCorpus, context: Context) -> Script:
    """Of a place or a row its text is run; of means all texts are read again, for their ids to be listed.

    Raises:
        InputError: the file was not read to its end or is another now, or a script cannot run the model.
        Cancelled: `context.should_stop()` was true.
    """
    figure, model = request.figure, context.model
    name = printable(TextStream(request.of.path).name)
    if isinstance(figure, ShownRow):
        script = Script(f"{_named(model, request)}: what a token of line {figure.line:,} of {name} attends to")
        of = _OneText(script, model, request, figure.text, figure.second)
        for key, weight in figure.weights:
            of.show(figure.query, key, weight)
        return script
    if isinstance(figure, ShownPlace) and figure.hit is not None:
        script = Script(
            f"{_named(model, request)} in line {figure.hit.line:,} of {name}: attends to {asked_of(request)}"
        )
        of = _OneText(script, model, request, figure.hit.text, figure.hit.second)
        of.show(figure.hit.query, figure.hit.key, figure.hit.weight)
        counted = of.counted(figure.hit.query)
        script.line(f"counted = {counted}", f"places of {asked_of(request)}")
        script.show("on all of these", f"weights[{figure.hit.query}, counted].sum()", figure.hit.score)
        why = why_not_all_texts(request)
        if why:
            script.remark(why)
            return script
        every = OfAllTexts(script, model, request, context)
        every.score(figure.score, is_open=of.again.is_by_transformers == every.is_by_transformers)
        return script
    why = why_not_all_texts(request)
    if why:
        raise InputError(why)
    script = Script(f"{_named(model, request)}, over the {request.texts:,} texts of {name}")
    every = OfAllTexts(script, model, request, context)
    if isinstance(figure, ShownCell):
        every.mean_map(figure)
    elif isinstance(figure, ShownDistances):
        every.by_distance(figure)
    else:
        every.score(figure.score)
    return script


def asked_of(request: ShownInCorpus) -> str:
    """What heads were asked, after "attends to": "the token before", "“ball”"."""
    asked = request.of.question.attends_to
    return quoted(asked.removeprefix(WORD)) if asked.startswith(WORD) else ROLE_NAMES[asked].title


def _named(model: Model, request: ShownInCorpus) -> str:
    site = request.site
    return f"{model.info.name}, {site.stack} layer {site.layer}, head {request.head}"


class _OneText:
    """The lines that run one text end with `weights`, those of the head, (queries, keys)."""

    def __init__(self, script: Script, model: Model, request: ShownInCorpus, text: str, second: str | None) -> None:
        self.script, self.model, self.request = script, model, request
        prompt = text if second is None or model.seq2seq else Pair(text, second)
        target = second if model.seq2seq else None
        trace: Trace = run(model, prompt, target=target, interventions=edits_of(model, request.of.interventions))
        self.head = Head.of(model, trace, request.site, request.head)
        self.again = Rerun(model, trace)
        script.remark(f"{self.head.name}, in {quoted(text)}")
        self.again.open(script)
        script.section("the computation")
        self.again.run(script)
        script.line(f"weights = {self.again.weights(request.site, request.head)}", "queries down, keys across")

    def show(self, query: int, key: int, weight: float) -> None:
        self.script.remark(f"{self.head.query_word(query)} attends to {self.head.key_word(key)}")
        self.script.show(f"weight of ({query}, {key})", f"weights[{query}, {key}]", weight)

    def counted(self, query: int) -> list[int]:
        """The keys that are asked about."""
        trace, site, asked = self.head.trace, self.head.site, self.request.of.question.attends_to
        if asked.startswith(WORD):
            word = asked.removeprefix(WORD)
            return [i for i, token in enumerate(site_tokens(trace, site)[1]) if token.word == word]
        q, k = SiteTokenFeatures(self.model).of([trace], site, self.head.x.query.device)
        cells = CELLS[asked](q, k, slice(query, query + 1), slice(0, k.count))
        found: list[int] = cells[0, 0].nonzero()[:, 0].tolist()
        return found
