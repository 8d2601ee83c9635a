"""What a head does over the texts of a file as a script: the mean map, means by distance, places, rows of a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import torch

from attention_models.corpus.corpus import edits_of
from attention_models.files.text_stream import TextLine, TextStream
from attention_models.forward.context import Context
from attention_models.forward.model import Encoded, Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.chat import Pair
from attention_models.protocol.corpus import (
    FARTHEST,
    POSITIONS,
    WORD,
    ShownCell,
    ShownDistances,
    ShownInCorpus,
    ShownPlace,
    ShownRow,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Mask
from attention_models.protocol.request import Cancelled
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.protocol.values import Site, site_tokens
from attention_models.roles.patterns import CELLS
from attention_models.roles.reading import written_of
from attention_models.roles.token_features import SiteTokenFeatures
from attention_models.scripts.head import output_of, why_not_by_model
from attention_models.scripts.heads import Head
from attention_models.scripts.loading import load
from attention_models.scripts.own_functions import FACE, open_here, written_out
from attention_models.scripts.rerun import Rerun
from attention_models.scripts.script_text import MOST_NUMBERS, Script, printable, quoted

# The lines that run every text of a file and add up what one head does in them.


_MOST_WRITTEN = 64
"""Translations that are written once more for a script, of a file that has none."""

_OF_PLACES = {
    "previous": "key == query - 1",
    "self": "key == query",
    "first": "(key == 0).expand_as(weights)",
    "copy": "(tokens == tokens[:, None]) & (key < query)",
    "induction": "(torch.cat([torch.tensor([-2]), tokens[:-1]]) == tokens[:, None]) & (key < query)",
}
"""Cells that follow from the places and ids of one text: `attention_models.roles.patterns`."""


def why_not_all_texts(request: ShownInCorpus) -> str:
    """Why a script cannot have the figures over all texts again, as a sentence; "" where it can."""
    if not request.ended:
        return "The file was not read to its end. Let it be read, and ask again for the lines over all texts."
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    prompt: str | Pair
    target: str | None
    encoded: Encoded


class OfAllTexts:
    """Writes what is the same for each figure: the texts as ids, and the loop; each figure adds its own lines.

    In the loop are `weights`, (queries, keys) float64 of one head, and `visible`, what it may attend to. Of more texts
    than a script lists, and of translations that the model wrote, the script reads the file with `read_corpus`.
    """

    def __init__(self, script: Script, model: Model, request: ShownInCorpus, context: Context) -> None:
        """Raises InputError: the file has other texts now, or cannot be read any more."""
        self.script, self.model, self.request, self.context = script, model, request, context
        self._edits = edits_of(model, request.of.interventions)
        self.is_by_transformers = False
        self._names: list[str] = []
        lines = self._lines() if request.tokens <= MOST_NUMBERS else None
        self.lists_texts = lines is not None
        if lines is None:
            return
        self._texts = list(self._read(lines))
        tokens = sum(len(text.encoded.tokens) + len(text.encoded.source) for text in self._texts)
        if (len(self._texts), tokens) != (request.texts, request.tokens):
            name = TextStream(request.of.path).name
            raise InputError(f"{name} has other texts now than when it was read. Read it again.")
        longest = max(self._texts, key=lambda text: len(text.encoded.tokens) + len(text.encoded.source))
        self._trace: Trace = run(model, longest.prompt, target=longest.target, interventions=self._edits)
        self._site: Site = self._trace.sites[self._trace.index(request.site)]
        self._mask = self._masked_as()
        self._has_segments = any(text.encoded.inputs.get("token_type_ids") is not None for text in self._texts)
        self.is_by_transformers = not why_not_by_model(model, self._trace) and bool(self._mask)

    def _lines(self) -> list[TextLine] | None:
        """Those of the file; None where they are too many, or too many translations would have to be written again."""
        found = list(islice(TextStream(self.request.of.path), MOST_NUMBERS + 1))
        missing = sum(line.second is None for line in found) if self.model.seq2seq else 0
        return None if len(found) > MOST_NUMBERS or missing > _MOST_WRITTEN else found

    def _read(self, lines: list[TextLine]) -> Iterator[_Text]:
        """The texts that were run: those that the model does not take are left out."""
        targets: list[str | None] = [line.second for line in lines]
        missing = [i for i, target in enumerate(targets) if target is None] if self.model.seq2seq else []
        written = written_of(self.model, [lines[i].text for i in missing], self.context.should_stop)
        for i, text in zip(missing, chain.from_iterable(written), strict=True):
            targets[i] = text
        for line, target in zip(lines, targets, strict=True):
            if self.context.should_stop():
                raise Cancelled
            prompt: str | Pair = line.text if self.model.seq2seq else line.prompt
            said = target if self.model.seq2seq else None
            try:
                yield _Text(prompt, said, self.model.encode(prompt, said))
            except InputError:
                continue

    def _masked_as(self) -> str:
        """How a text is masked by the model itself: "none", "causal", or "" where that is not so simple."""
        if self.model.info.weights_only:
            return ""
        masked = self._trace.masked(self._site.ref, self.request.head)
        if masked is None:
            return "none"
        causal = ~torch.ones(self._site.queries, self._site.keys, dtype=torch.bool).tril()
        return "causal" if bool((torch.from_numpy(masked) == causal).all()) else ""

    # ------------------------------------------------------------------ figures

    def mean_map(self, figure: ShownCell) -> None:
        script, where = self.script, f"mean weight from place {figure.query} to place {figure.key}"
        if not self.lists_texts:
            self._by_reading(where, f"view.mean[place, HEAD, {figure.query}, {figure.key}]", figure.mean)
            return
        self._begin()
        script.line(f"sums, counts = torch.zeros(2, {POSITIONS}, {POSITIONS}, dtype=torch.float64)", "by place")
        self._loop(
            f"n, m = min({POSITIONS}, weights.shape[0]), min({POSITIONS}, weights.shape[1])",
            "sums[:n, :m] += (weights * visible)[:n, :m]",
            "counts[:n, :m] += visible[:n, :m]",
        )
        script.line("mean = sums / counts", f"({POSITIONS}, {POSITIONS}) NaN where no text has a weight")
        script.show(where, f"mean[{figure.query}, {figure.key}]", figure.mean)

    def by_distance(self, figure: ShownDistances) -> None:
        script, far = self.script, FARTHEST
        if not self.lists_texts:
            for distance, mean in figure.means:
                code = f"view.by_distance[place, HEAD, {distance} + {far}]"
                self._by_reading(f"mean weight {distance} before", code, mean)
            return
        self._begin()
        script.line(f"sums, counts = torch.zeros(2, {2 * far + 1}, dtype=torch.float64)", f"from -{far} to {far} apart")
        self._loop(
            "query, key = torch.where(visible & (visible.sum(dim=1, keepdim=True) > 1))  # rows with a choice",
            f"near = (query - key).abs() <= {far}",
            "query, key = query[near], key[near]",
            f"sums.index_add_(0, query - key + {far}, weights[query, key])",
            f"counts.index_add_(0, query - key + {far}, torch.ones_like(weights[query, key]))",
        )
        script.line("mean = sums / counts", f"({2 * far + 1},) NaN where no text has a weight")
        for distance, mean in figure.means:
            script.show(f"mean weight {distance} before", f"mean[{distance} + {far}]", mean)

    def score(self, shown: float, *, is_open: bool = False) -> None:
        """How much the head does what was asked, as a mean over rows."""
        script, asked = self.script, self.request.of.question.attends_to
        what = "how much the head does it, over all texts"
        if not self.lists_texts:
            self._by_reading(what, "view.scores[place, HEAD]", shown, is_open=is_open)
            return
        self._begin(is_open=is_open, marks=True)
        script.line("total, rows = 0.0, 0")
        of_places = _OF_PLACES.get(asked)
        if of_places is not None:
            lines = ["query, key = torch.arange(weights.shape[0])[:, None], torch.arange(weights.shape[1])"]
            if "tokens" in of_places:
                lines.append(f"tokens = {self._tokens()}")
            lines.append(f"cells = {of_places}")
        elif asked == "next":
            lines = [
                "following = torch.tensor(words[1:] + [-1])[:, None]  # the word after each",
                "cells = (following == torch.tensor(key_words)) & (following >= 0)",
            ]
        else:
            lines = [
                "cells = torch.zeros_like(visible)",
                "cells[:, marks] = True",
            ]
        self._loop(
            *lines,
            "cells = cells & visible & (visible.sum(dim=1, keepdim=True) > 1)  # rows with a choice",
            "total, rows = total + float((weights * cells).sum()), rows + int(cells.any(dim=1).sum())",
            of_any_head=False,
        )
        script.show(what, "total / rows", shown)

    # ------------------------------------------------------------------ the loop

    def _tokens(self) -> str:
        """The ids that attend to each other, (tokens,)."""
        of_target = self.model.seq2seq and self.request.site.stack == "decoder"
        if self.is_by_transformers:
            return "torch.tensor(written)" if of_target else "ids[0]"
        which = "source" if self.model.seq2seq and not of_target else "tokens"
        return f"torch.tensor([token.id for token in trace.{which}])"

    def _by_reading(self, name: str, code: str, shown: float, *, is_open: bool = False) -> None:
        """The whole file read by this program's own function, once; `code` has HEAD for the head's number."""
        script, request = self.script, self.request
        if not self._names:
            self._names = ["view"]
            script.section("the computation")
            if not is_open:
                open_here(script, self.model, "the texts are too many to be listed")
            script.uses(FACE)
            given = [repr(request.of.path)]
            given += [f"attends_to={request.of.question.attends_to!r}"] if request.of.question.attends_to else []
            given += [f"interventions={written_out(script, self._edits)}"] if self._edits else []
            script.line(f"view = ax.read_corpus(model, {', '.join(given)})")
            place = (request.site.stack, request.site.layer)
            script.line(f"place = [(site.stack, site.layer) for site in view.sites].index({place!r})")
        script.show(name, code.replace("HEAD", str(request.head)), shown)

    def _begin(self, *, is_open: bool = False, marks: bool = False) -> None:
        """The model, and the texts."""
        script = self.script
        script.section("the texts")
        self._names = ["ids"]
        if self.model.seq2seq:
            self._names.append("written")
        if self._has_segments and self.is_by_transformers:
            self._names.append("segments")
        if marks:
            self._names += self._mark_names()
        script.line("texts = [", ", ".join(self._names))
        for text in self._texts:
            listed = [self._listed(text, name) for name in self._names]
            script.line(f"    {listed[0]}," if len(listed) == 1 else f"    ({', '.join(listed)}),")
        script.line("]")
        script.section("the computation")
        if not is_open and self.is_by_transformers:
            load(script, self.model)
        elif not is_open:
            why = why_not_by_model(self.model, self._trace) or "which keys are visible is asked of each text"
            open_here(script, self.model, why)

    def _mark_names(self) -> list[str]:
        asked = self.request.of.question.attends_to
        if asked in _OF_PLACES:
            return []
        return ["words", "key_words"] if asked == "next" else ["marks"]

    def _listed(self, text: _Text, name: str) -> str:
        encoded = text.encoded
        if name == "ids":
            if self._has_segments and not self.is_by_transformers:
                return written_out(self.script, text.prompt)
            return str([token.id for token in encoded.source or encoded.tokens])
        if name == "written":
            written = [token.id for token in encoded.tokens]
            return str(written if self.is_by_transformers else written[1:])  # the start is put there
        if name == "segments":
            given = encoded.inputs.get("token_type_ids")
            return str([0] * len(encoded.tokens) if given is None else given[0].tolist())
        q, k = SiteTokenFeatures(self.model).of([encoded], self._site, torch.device("cpu"))
        if name in ("words", "key_words"):
            return str((q if name == "words" else k).words[0].tolist())
        asked = self.request.of.question.attends_to
        if asked.startswith(WORD):
            keys = site_tokens(encoded, self._site)[1]
            return str([i for i, token in enumerate(keys) if token.word == asked.removeprefix(WORD)])
        found = {"special": k.marks, "rare": k.rare}[asked][0]
        return str(found.nonzero()[:, 0].tolist())

    def _loop(self, *lines: str, of_any_head: bool = True) -> None:
        """`lines` for every text; `visible` is what this head sees, or what any head of its layer does."""
        site, head = self._site.ref, self.request.head
        names = ", ".join(self._names)
        if self.is_by_transformers:
            call = "input_ids=ids, attention_mask=torch.ones_like(ids)"
            call += ", decoder_input_ids=torch.tensor([written])" if self.model.seq2seq else ""
            call += ", token_type_ids=torch.tensor([segments])" if "segments" in self._names else ""
            seen = "torch.ones_like(weights, dtype=torch.bool)"
            before = [
                "ids = torch.tensor([ids])",
                f"with torch.no_grad():\n    out = model({call}, output_attentions=True)",
                f"weights = out.{output_of(self._trace, site)}[0, {head}].double()  # (queries, keys)",
                f"visible = {seen}{'.tril()' if self._mask == 'causal' else ''}",
            ]
        else:
            before = self._by_this_program(of_any_head)
        body = "\n".join([*before, *lines])
        self.script.line(f"for {names} in texts:\n    " + body.replace("\n", "\n    "))

    def _by_this_program(self, of_any_head: bool) -> list[str]:
        site, head, script = self._site.ref, self.request.head, self.script
        script.uses(FACE)
        place = (site.stack, site.layer)
        given = "ids, target=written" if self.model.seq2seq else "ids"
        if self._edits:
            given += f", interventions={written_out(script, self._edits)}"
        some_heads = of_any_head and any(isinstance(item, Mask) and item.head is not None for item in self._edits)
        lines = [
            f"trace = ax.run(model, {given})",
            f"weights = torch.tensor(trace.weights({place!r}, {head})).double()  # (queries, keys)",
        ]
        if some_heads:
            lines += [
                f"masked = [trace.masked({place!r}, head) for head in range({self._site.heads})]",
                "visible = torch.zeros_like(weights, dtype=torch.bool)  # to any head",
                "for hidden in masked:\n    visible |= True if hidden is None else ~torch.tensor(hidden)",
            ]
        else:
            lines += [
                f"masked = trace.masked({place!r}, {head})",
                "visible = torch.ones_like(weights, dtype=torch.bool)",
                "if masked is not None:\n    visible = ~torch.tensor(masked)",
            ]
        return lines


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
