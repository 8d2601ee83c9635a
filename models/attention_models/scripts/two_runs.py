"""Two runs side by side as a script: both heads, their difference, how much the head changed, and what both say."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from attention_models.compare.answering import begun
from attention_models.compare.axes import Axes, compared_queries
from attention_models.compare.comparing import TwoRuns
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.two_runs import AlignedAxis, RunSide, TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import Tile
from attention_models.scripts.heads import Head
from attention_models.scripts.rerun import Rerun, said_of
from attention_models.scripts.script_text import Script, quoted

_SAID = 3  # words, or classes, whose shares are printed

_MERGE = """
def in_places(weights, queries, keys, rows, columns):  # (queries, keys) to (rows, columns)
    summed = torch.zeros(len(weights), columns).index_add_(1, keys, weights)
    means = torch.zeros(rows, columns).index_add_(0, queries, summed)
    return means / torch.bincount(queries, minlength=rows).clamp(min=1)[:, None]
""".strip()


def write(request: TwoRunsRequest, context: Context) -> Script:
    """Of what `request` shows; B runs again where it is not kept any more."""
    both = begun(request, context.run(request.run), context)
    return two_runs_script(both, both.view(request, context.should_stop))


def two_runs_script(both: TwoRuns, view: TwoRunsView) -> Script:
    """The lines end with `difference`, A less B, (places of queries, places of keys), and what both say.

    Raises:
        InputError: nothing of the two runs can be compared, or a script cannot have one of them again.
    """
    if view.maps is None and view.a.output.kind == view.b.output.kind == "none":
        raise InputError(" ".join(("Nothing of these two runs can be compared by numbers.", *view.why_not)))
    script = Script(_title(both, view), f"A: {said_of(both.a.trace)}, B: {said_of(both.b.trace)}")
    _Compared(script, both, view).write()
    return script


def _title(both: TwoRuns, view: TwoRunsView) -> str:
    a, b = view.a, view.b
    if view.maps is None or a.site is None or b.site is None or a.head is None or b.head is None:
        return f"{a.name} beside {b.name}: what both say"
    ours = Head.of(both.a.model, both.a.trace, a.site, a.head).name
    theirs = Head.of(both.b.model, both.b.trace, b.site, b.head).name
    return f"{ours}, less {theirs}"


class _Compared:
    def __init__(self, script: Script, both: TwoRuns, view: TwoRunsView) -> None:
        self.script, self.both, self.view = script, both, view

    def write(self) -> None:
        script, view = self.script, self.view
        self._run("A", Rerun.of(self.both.a), view.a, is_open=False)
        if view.same_run:
            self._heads("B", Rerun.of(self.both.b), view.b)
        else:
            self._run("B", Rerun.of(self.both.b), view.b, is_open=self._is_open)
        if view.maps is not None and view.queries is not None and view.keys is not None:
            places = _Places(view.queries, view.keys)
            if not places.are_tokens:
                script.section("the numbers on screen")
                places.write(script)
            script.section("the computation")
            places.merge(script)
            self._difference((view.queries, view.keys))
        else:
            script.section("the computation")
        self._said()

    @property
    def _is_open(self) -> bool:
        """Whether the model that A left open serves B too."""
        a, b = Rerun.of(self.both.a), Rerun.of(self.both.b)
        return self.view.same_checkpoint and a.is_by_transformers == b.is_by_transformers

    def _run(self, name: str, again: Rerun, side: RunSide, *, is_open: bool) -> None:
        self.script.section(f"{name}: {side.name}")
        for words in side.interventions:
            self.script.remark(f"changed: {words}")
        if not is_open:
            again.open(self.script)
        again.run(self.script)
        self._heads(name, again, side)
        if _has_shares(side, again.model):
            letter = name.lower()
            self.script.line(f"logits_{letter} = {again.logits(str(side.output.position))}", "what it says")
            if _has_loss(side):
                self.script.line(f"every_{letter} = {again.logits(':-1')}", "what it says before each next token")
                ids = [token.id for token in side.tokens[1:]]
                self.script.line(f"next_{letter} = torch.tensor({ids})")

    def _heads(self, name: str, again: Rerun, side: RunSide) -> None:
        if self.view.maps is not None and side.site is not None and side.head is not None:
            shape = "queries down, keys across"
            self.script.line(f"weights_{name.lower()} = {again.weights(side.site, side.head)}", shape)

    def _difference(self, axes: Axes) -> None:
        script, maps = self.script, self.view.maps
        assert maps is not None
        if maps.cell == 1:
            row, column = maps.largest_at or (maps.a.shape[0] - 1, 0)
            rows, columns = _part_of(maps.tile, axes)
            at = row - rows.start, column - columns.start
            where = f"from {self._words(axes[0], row, 0)} to {self._words(axes[1], column, 1)}"
            for name, of in (("a", maps.a), ("b", maps.b), ("difference", maps.difference)):
                if not math.isnan(float(of[at])):
                    code = name if name == "difference" else f"weights_{name}"
                    title = "A − B" if name == "difference" else name.upper()
                    script.show(f"{title}, {where}", f"{code}[{row}, {column}]", float(of[at]))
        rows, columns = _part_of(maps.tile, axes)
        part = "" if maps.tile is None else f"[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}]"
        script.show("largest of |A − B|", f"difference{part}.nan_to_num().abs().max()", maps.largest)
        self._change(axes)

    def _words(self, axis: AlignedAxis, place: int, side: int) -> str:
        """The token of A at a place, or of B where A has none."""
        found = axis.places[place]
        of_a = found.a[0] < found.a[1]
        run, shown = (self.both.a, self.view.a) if of_a else (self.both.b, self.view.b)
        assert shown.site is not None
        head = Head.of(run.model, run.trace, shown.site, shown.head or 0)
        return (head.query_word, head.key_word)[side]((found.a if of_a else found.b)[0])

    def _change(self, axes: Axes) -> None:
        """How much the head changed, where that is known of the two that are shown."""
        script, view = self.script, self.view
        change = None
        if view.a.site is not None and view.a.head is not None:
            change = view.counterpart(view.a.site, view.a.head)
        if change is None or (change.other_site, change.other_head) != (view.b.site, view.b.head):
            return
        if math.isnan(change.change):
            return
        a, b = self.both.a.trace, self.both.b.trace
        sites = a.sites[a.index(change.site)], b.sites[b.index(change.other_site)]
        compared: Tensor = compared_queries(a, b, *sites, axes)  # (places,)
        rows = ""
        if not bool(compared.all()):
            script.tensor("compared", compared, f"({len(compared)},) rows that both runs have")
            rows = "[compared]"
        script.remark("The total variation distance of two rows; what a row lacks to 1 counts too.")
        script.line("apart = (weights_a - weights_b).abs().sum(dim=-1)", "of each row")
        script.line("apart = 0.5 * (apart + (weights_a.sum(dim=-1) - weights_b.sum(dim=-1)).abs())")
        script.show("how much the head changed", f"apart{rows}.double().mean()", change.change)

    def _said(self) -> None:
        script, view = self.script, self.view
        sides = [
            (letter, side, run.model)
            for letter, side, run in (("a", view.a, self.both.a), ("b", view.b, self.both.b))
            if _has_shares(side, run.model) and not (letter == "b" and view.same_run)  # which says what A says
        ]
        for letter, side, model in sides:
            place = side.output.position
            script.line(f"p_{letter} = {_shares(model, letter)}", f"what {letter.upper()} says at {place}")
        there = {letter for letter, _, _ in sides}
        for said in view.said[:_SAID]:
            if "a" in there and said.id_a is not None:
                self._share("a", said.id_a, said.label, said.probability_a, said.logit_a)
            if "b" in there and said.id_b is not None:
                self._share("b", said.id_b, said.label, said.probability_b, said.logit_b)
        for letter, side, _ in sides:
            output = side.output
            for one in () if view.said else output.candidates[:_SAID]:
                self._share(letter, one.id, one.label, one.probability, one.logit)
            if not math.isnan(output.entropy):
                script.uses("import math")
                code = f"torch.special.entr(p_{letter}).sum() / math.log(2)"
                script.show(f"entropy in {letter.upper()}, bits", code, output.entropy)
            if _has_loss(side):
                code = f"torch.nn.functional.cross_entropy(every_{letter}, next_{letter})"
                script.show(f"loss in {letter.upper()}, nats a token", code, output.loss or 0.0)

    def _share(self, letter: str, id_: int, label: str, probability: float, logit: float) -> None:
        is_number = math.isnan(probability)
        shown, code = (logit, "logits") if is_number else (probability, "p")
        self.script.show(f"{quoted(label)} in {letter.upper()}", f"{code}_{letter}[{id_}]", shown)


def _has_shares(side: RunSide, model: Model) -> bool:
    """Whether it says words or classes: the ends of an answer are places, and stand in no one row of logits."""
    head = model.info.class_head
    return side.output.kind != "none" and (head is None or head.of != "span")


def _has_loss(side: RunSide) -> bool:
    return side.output.loss is not None and not any(token.padding for token in side.tokens)


def _shares(model: Model, letter: str) -> str:
    head = model.info.class_head
    if head is not None and head.scale == "sigmoid":
        return f"logits_{letter}.double().sigmoid()"
    if head is not None and head.scale == "number":
        return f"logits_{letter}.double()"
    return f"logits_{letter}.double().softmax(dim=-1)"


def _part_of(tile: Tile | None, axes: Axes) -> tuple[slice, slice]:
    """The places that are in view: all, but of a long map."""
    rows, columns = len(axes[0]), len(axes[1])
    return (slice(0, rows), slice(0, columns)) if tile is None else (tile.rows(rows), tile.columns(columns))


class _Places:
    """Where tokens of the two runs stand for each other."""

    def __init__(self, queries: AlignedAxis, keys: AlignedAxis) -> None:
        self._axes: dict[str, AlignedAxis] = {"queries": queries, "keys": keys}
        self.are_tokens = all(place.is_single for axis in (queries, keys) for place in axis.places)
        """Whether each token of A stands for the one of B at its place, and no weight is merged with another."""

    def write(self, script: Script) -> None:
        """For each token of either run the place that it is in."""
        script.remark(f"Aligned {self._axes['keys'].how}")
        for which, axis in self._axes.items():
            if which == "keys" and axis == self._axes["queries"]:
                script.line("keys_a, keys_b = queries_a, queries_b", "they attend to each other")
                continue
            for side in ("a", "b"):
                of_tokens = [i for i, place in enumerate(axis.places) for _ in range(*getattr(place, side))]
                remark = f"the place of each token of {side.upper()}, of {len(axis)}"
                script.tensor(f"{which}_{side}", np.array(of_tokens, dtype=np.int64), remark)

    def merge(self, script: Script) -> None:
        """From the weights of either run to `difference`."""
        rows, columns = len(self._axes["queries"]), len(self._axes["keys"])
        if self.are_tokens:
            script.line("difference = weights_a - weights_b", f"({rows}, {columns})")
            return
        script.remark("Weights to the tokens of a place are summed, weights from them averaged.")
        script.line(f"{_MERGE}\n\n")
        for side in ("a", "b"):
            given = f"weights_{side}, queries_{side}, keys_{side}, {rows}, {columns}"
            script.line(f"weights_{side} = in_places({given})", f"({rows}, {columns})")
        there = "torch.bincount({0}_a, minlength={1}) * torch.bincount({0}_b, minlength={1}) > 0"
        script.remark("Places where both runs have tokens:")
        script.line(f"both_rows = {there.format('queries', rows)}")
        script.line(f"both_columns = {there.format('keys', columns)}")
        script.line("shared = both_rows[:, None] & both_columns")
        script.line('difference = (weights_a - weights_b).masked_fill(~shared, float("nan"))', f"({rows}, {columns})")
