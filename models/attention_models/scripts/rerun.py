"""What a model was given in a run, as lines and as the arguments of its call; of a batch all of its texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_models.effects.metric import ResolvedMetric, of_logits
from attention_models.forward.batches import Targets, encode
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.position_tables import reads_padding
from attention_models.forward.trace import Trace
from attention_models.forward.vision import VisionModel
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.effects import MetricView
from attention_models.protocol.errors import InputError
from attention_models.protocol.information import from_nats
from attention_models.protocol.values import SiteRef
from attention_models.scripts.head import given_to, output_of, why_not_by_model
from attention_models.scripts.heads import word_of
from attention_models.scripts.loading import load, why_not_loaded
from attention_models.scripts.own_functions import open_here, written_out
from attention_models.scripts.pictures import prepare
from attention_models.scripts.script_text import Script, quoted
from attention_models.views.comparison import next_ids

# The run on screen once more, by the model that transformers opens: what it is given, and how its answer is read.


_INPUT_NAMES = {
    "input_ids": ("ids", "the tokens"),
    "token_type_ids": ("segments", "which of two texts each is of"),
    "decoder_input_ids": ("written", "what the decoder has written"),
}
"""What inputs are called in a script, and what they are."""

_TOLERANCE = {torch.float32: 1e-4}
_COARSE = 2e-2
"""Of the largest logit: what rounding makes of the same computation."""

_BATCH = (
    "These figures are those of one text among several that ran together, padded to one length. Run it alone to have "
    "them as PyTorch."
)


def check_alone(run: CurrentRun) -> None:
    """Raises InputError where the text ran among others."""
    if isinstance(run.text, Batch):
        raise InputError(_BATCH)


def why_not_again(run: CurrentRun) -> str:
    """Why a run by transformers alone would not be the one on screen; "" where it is."""
    if run.trace.interventions:
        return "interventions are on"
    return why_not_with(run.model)


def why_not_with(model: Model) -> str:
    """Why transformers alone cannot run this model on a text; "" where it can."""
    if model.info.family == "vision":
        return "the picture is cut and scaled here"
    return why_not_loaded(model)


def inputs_of(run: CurrentRun) -> dict[str, Tensor]:
    """What the model is given, each (1, tokens)."""
    return encode(run.model, run.text, run.written).inputs


def give(script: Script, inputs: Mapping[str, Tensor], suffix: str = "") -> str:
    """Lines that make what the model is called with, a dictionary; what that is called."""
    parts = []
    for key, value in inputs.items():
        name, what = _INPUT_NAMES.get(key, (key, ""))
        count = value.shape[1]
        if key not in _INPUT_NAMES and bool((value == 1).all()):
            parts.append(f'"{key}": torch.ones(1, {count}, dtype=torch.long)')
            continue
        script.tensor(f"{name}{suffix}", value, f"(1, {count}) {what}")
        parts.append(f'"{key}": {name}{suffix}')
    script.line(f"given{suffix} = {{{', '.join(parts)}}}")
    return f"given{suffix}"


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """How an aim is read from what the model gives: Python with `out` in it, and `ids` of a loss."""

    code: str
    of_all: str  # the logits of all answers at the position; "" of a loss


@torch.no_grad()
def answer_of(
    model: Model, trace: Trace, inputs: Mapping[str, Tensor], aim: MetricView, ids: str = "ids"
) -> Answer | None:
    """Of a run with an aim's value; None where what the module itself gives is not read so. `ids` names the tokens."""
    settled = settled_of(aim)
    out = model.module(**inputs, **model.forward_options)
    found = _rows_of(model, out, settled)
    if found is None:
        return None
    code, rows = found
    if settled.measure == "loss":
        wanted = next_ids(trace)
        if rows.dim() != 3 or list(wanted) != list(range(rows.shape[1] - 1)):
            return None
        of_next = f"{code}[0, :-1].float(), ids[0, 1:]"
        return Answer(f"torch.nn.functional.cross_entropy({of_next})", "")
    place = f"[0, {settled.position}]" if rows.dim() == 3 else "[0]"
    row = rows[0, settled.position] if rows.dim() == 3 else rows[0]
    here = f"{code}{place}"
    read = f"{code}{place[:-1]}, {settled.target}]"
    if settled.against is not None:
        read += f" - {code}{place[:-1]}, {settled.against}]"
    value = float(of_logits(row[None], settled)[0])
    allowed = _TOLERANCE.get(row.dtype, _COARSE) * max(1.0, float(row.abs().max()))
    return Answer(read, here) if abs(value - aim.value) <= allowed else None


def _rows_of(model: Model, out: Any, aim: ResolvedMetric) -> tuple[str, Tensor] | None:
    """The logits as the module gives them, and what to write for them."""
    head = model.info.class_head
    if head is not None and head.of == "span":
        return "torch.stack([out.start_logits, out.end_logits], dim=-1)", torch.stack(
            [out.start_logits, out.end_logits], dim=-1
        )
    for name in ("logits", "prediction_logits"):
        logits = getattr(out, name, None)
        if isinstance(logits, Tensor):
            if logits.dim() == 3 or (head is not None and head.of == "text"):
                return f"out.{name}", logits
            return f"out.{name}[..., None]", logits[..., None]  # one number a token
    return None


def settled_of(aim: MetricView) -> ResolvedMetric:
    return ResolvedMetric(aim.measure, aim.position, aim.target, aim.against)


def aim_words(run: CurrentRun, aim: MetricView) -> str:
    """ "the logit of “Tom” at “to” (13)"."""
    if aim.measure == "loss":
        return "the mean loss over the text's own next tokens, in nats"
    where = f"at {word_of(run.trace.tokens, aim.position)}"
    if aim.measure == "difference":
        return f"the logit of {quoted(aim.target_label)} less that of {quoted(aim.against_label)} {where}"
    return f"the logit of {quoted(aim.target_label)} {where}"


def begin(
    script: Script,
    run: CurrentRun,
    inputs: Mapping[str, Tensor],
    aim: MetricView,
    answer: Answer,
    helpers: Callable[[Script], None] | None = None,
    other: tuple[Mapping[str, Tensor], Answer] | None = None,
) -> None:
    """The model, what it is given, and `answer(out)`, which reads the aim from what it gives.

    Args:
        helpers: writes functions that the computation needs.
        other: of another text what is given, and how the aim is read: `given_other`, `answer_other(out)`.
    """
    load(script, run.model)
    if helpers is not None:
        helpers(script)
    script.section("the text" if other is None else "the texts")
    give(script, inputs)
    if other is not None:
        give(script, other[0], "_other")
    script.section("the computation")
    script.line(f"def answer(out):\n    return {answer.code}", aim_words(run, aim))
    script.line("")
    if other is not None:
        script.line(f"def answer_other(out):\n    return {other[1].code}", "the same in the other text")
        script.line("")


def aimed_at(aim: MetricView) -> dict[str, int | str]:
    """The same aim, as functions of `ax` are told it."""
    if aim.measure == "loss":
        return {"measure": "loss"}
    ids = {"target": aim.target, "against": aim.against}
    return {name: id_ for name, id_ in ids.items() if id_ is not None}


def show_value(script: Script, aim: MetricView, name: str, code: str, shown: float) -> None:
    """Print an aim's value or change; of a loss in both of the window's units."""
    if aim.measure != "loss":
        script.show(name, code, shown)
        return
    script.uses("import math")
    script.show(f"{name}, nats", code, shown)
    whole = f"({code})" if " " in code else code
    script.show(f"{name}, bits", f"{whole} / math.log(2)", from_nats(shown, "bits"))


def show_values(script: Script, aim: MetricView, name: str, code: str, shown: Sequence[float]) -> None:
    """The same of several."""
    if aim.measure != "loss":
        script.show_each(name, code, shown)
        return
    script.uses("import math")
    script.show_each(f"{name}, nats", code, shown)
    bits = [from_nats(value, "bits") for value in shown]
    script.show_each(f"{name}, bits", f"[value / math.log(2) for value in {code}]", bits)


# The lines that have a run again: by transformers, or by this program's own `run` where transformers cannot.


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


_NAMES = {
    "input_ids": ("ids", "the tokens"),
    "decoder_input_ids": ("written", "what the decoder has said"),
    "token_type_ids": ("segments", "which of two texts each is of"),
    "attention_mask": ("real", "0 of padding"),
    "decoder_attention_mask": ("said", "0 of padding"),
    "position_ids": ("positions", "each text counted from its own first token"),
}


def given(script: Script, run: CurrentRun) -> tuple[str, int]:
    """Lines with what the model was given, in a section of their own or that of the computation.

    Returns:
        The arguments of its call, and which row of the batch is the text on screen.

    Raises:
        InputError: its own call would not read each text of the batch as if alone.
    """
    model = run.model
    if isinstance(model, VisionModel):
        prepare(script, model, run.trace)
        return "pixel_values=pixels", 0
    encoded = encode(model, run.text, run.written)
    if reads_padding(model, encoded.inputs):
        raise InputError(
            f"transformers' own {type(model.module).__name__} reads padding as tokens; here each text is read as if "
            "alone. Run this text alone to have it as a script."
        )
    script.section("the numbers on screen")
    arguments = []
    chooses = model.info.class_head is not None and model.info.class_head.of == "choice"
    of_choices = "[None]" if chooses else ""  # the texts of a batch are the choices of one question
    for name, tensor in encoded.inputs.items():
        if name == "attention_mask" and bool(tensor.all()):
            arguments.append(f"{name}=torch.ones_like(ids){of_choices}")
            continue
        short, what = _NAMES[name]
        script.tensor(short, tensor, f"({', '.join(map(str, tensor.shape))}) {_told(tensor, what)}")
        arguments.append(f"{name}={short}{of_choices}")
    script.section("the computation")
    return ", ".join(arguments), encoded.row


def _told(tensor: Tensor, what: str) -> str:
    return what if len(tensor) == 1 else f"{what}, a text a row"
