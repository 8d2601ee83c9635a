"""The lines that have a run again: by transformers, or by this program's own `run` where transformers cannot."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.forward.batches import Targets
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.values import SiteRef
from attention_models.scripts.head import given_to, output_of, why_not_by_model
from attention_models.scripts.loading import load
from attention_models.scripts.own_functions import open_here, written_out
from attention_models.scripts.script_text import Script, quoted


@dataclass(frozen=True, slots=True, eq=False)
class Rerun:
    """A run whose weights and logits a script computes anew.

    What `weights` and `logits` name are expressions: they hold after the lines of `open` and `run`.
    """

    model: Model
    trace: Trace
    written: Targets = None  # what decoders were given, of a batch of translations

    @classmethod
    def of(cls, run: CurrentRun) -> Rerun:
        return cls(run.model, run.trace, run.written)

    @property
    def _why(self) -> str:
        """Why transformers alone would not give the same run, or not its logits as one row; "" where it does."""
        head = self.model.info.class_head
        of_tokens = "" if head is None or head.of == "text" else "what it says is not of the text as a whole"
        return why_not_by_model(self.model, self.trace) or of_tokens

    @property
    def is_by_transformers(self) -> bool:
        """Whether transformers alone gives the same run: there are no interventions, and it opens the model."""
        return not self._why

    def open(self, script: Script) -> None:
        """Lines after which `model` is open. InputError where no script can open it."""
        if self.is_by_transformers:
            load(script, self.model)
        else:
            open_here(script, self.model, self._why)

    def run(self, script: Script) -> None:
        """Lines after which `out`, of transformers, or `trace` is the run."""
        if self.is_by_transformers:
            call = given_to(script, self.model, self.trace)
            script.line(f"with torch.no_grad():\n    out = model({call}, output_attentions=True)")
            return
        given = [self._given(script)]
        if given[0].startswith("["):
            script.line(f"ids = {given[0]}", "the tokens")
            given = ["ids"]
        if self.trace.source:
            given.append(f"target={self._target()}")
        if self.trace.interventions:
            given.append(f"interventions={written_out(script, self.trace.interventions)}")
        script.line(f"trace = ax.run(model, {', '.join(given)})")

    def _given(self, script: Script) -> str:
        """What `run` is given: ids, unless these alone do not say it all."""
        origin, read = self.trace.origin, self.trace.source or self.trace.tokens
        if origin is None or origin.picture == "array":
            raise InputError("The picture was handed over as numbers, and no file: a script cannot open it again.")
        if origin.picture is not None:
            return repr(origin.picture)
        if origin.batch is not None:
            return written_out(script, origin.batch)
        if origin.second is not None and origin.text is not None:
            return written_out(script, Pair(origin.text, origin.second))
        return repr([token.id for token in read])

    def _target(self) -> str:
        if self.trace.origin is not None and isinstance(self.trace.origin.batch, Batch):
            return repr(self.written)
        return repr([token.id for token in self.trace.tokens[1:]])  # the start is put there

    def weights(self, site: SiteRef, head: int) -> str:
        """(queries, keys) float32."""
        if not self.is_by_transformers:
            return f"torch.tensor(trace.weights({(site.stack, site.layer)!r}, {head}))"
        return f"out.{output_of(self.trace, site)}[0, {head}].float()"

    def logits(self, positions: str) -> str:
        """(vocabulary,) at one place, or (places, vocabulary) at a slice: float32."""
        if not self.is_by_transformers:
            every = f"trace.logits_at(range(len(trace.tokens)))[{positions}]"
            return f"{every}.float()" if ":" in positions else f"trace.logits_at([{positions}])[0].float()"
        if self.model.info.class_head is not None:
            return "out.logits[0].float()"  # of the text as a whole
        name = "logits" if self.model.info.pair_head is None else "prediction_logits"
        return f"out.{name}[0, {positions}].float()"


def said_of(trace: Trace) -> str:
    """The beginning of what was read, for a title: “Tom and Anna”."""
    origin = trace.origin
    if origin is not None and origin.picture is not None:
        return quoted(origin.picture)
    read = trace.source or trace.tokens
    text = origin.text if origin is not None and origin.text is not None else "".join(token.text for token in read)
    return quoted(text)
