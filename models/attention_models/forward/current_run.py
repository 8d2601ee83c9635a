"""The last run of the open model, and what is kept of it for the requests about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attention_models.forward.batches import Targets
from attention_models.forward.cache import Cache
from attention_models.forward.model import Model
from attention_models.forward.run import run_each
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import ShouldStop
from attention_models.protocol.running import RunInputs

# How many weights one answer computes at most, so that a request in another lane is not kept waiting.
WORK_PER_ANSWER = {"cpu": 1 << 25}
WORK_PER_ANSWER_ON_DEVICE = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class Untouched:
    """Each text run without interventions."""

    traces: tuple[Trace, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReadAlong:
    """A prompt with what the model wrote after it, as it was read.

    Attributes:
        text: what is read: the prompt of an encoder-decoder model; else the prompt with the continuation in it, or the
            ids of both where no text is read as them.
        whole: the prompt as it would be written with the continuation in it.
        continued: positions of the continuation's tokens.
    """

    text: Prompt | list[int]
    whole: Prompt | None
    continued: tuple[int, ...]


class CurrentRun:
    """A trace, what was run to get it, and what is kept of it. Of a batch the traces of all its texts are kept.

    Attributes:
        ticket: of the forward request: what later requests call this run.
        traces: of each text that ran; one where it was no batch.
        written: what an encoder-decoder model's decoder was given; of a batch for each text.
        read: of inputs with a continuation, None of others.
        kept: what was worked out of this run, of the text that is shown.
        kept_of_text: what was worked out of the same text as the model is. Later runs of that text share it.
    """

    def __init__(
        self,
        model: Model,
        traces: tuple[Trace, ...],
        inputs: RunInputs,
        written: Targets,
        ticket: int,
        before: CurrentRun | None = None,
        read: ReadAlong | None = None,
    ) -> None:
        """`before` is the run that this one follows; `read` is what was read where `inputs` have a continuation."""
        self.model = model
        self.read = read
        self.traces = traces
        self.inputs = inputs
        self.written = written
        self.ticket = ticket
        self.kept = Cache()
        self.kept_of_text, self._kept_of_texts = Cache(), Cache()
        if before is not None and before.model is model and before.written == written:
            if self.texts == before.texts:
                self._kept_of_texts = before._kept_of_texts
            if self.text == before.text:
                self.kept_of_text = before.kept_of_text

    @property
    def text(self) -> Prompt | list[int]:
        """What the model was given: a text, a conversation, or a picture's name; ids that no text is read as."""
        if self.read is not None:
            return self.read.text
        return self.inputs.picture if self.model.info.family == "vision" else self.inputs.prompt

    @property
    def texts(self) -> Prompt | list[int]:
        """The same, whichever text of a batch is shown."""
        return self.text.showing(0) if isinstance(self.text, Batch) else self.text

    @property
    def trace(self) -> Trace:
        """Of the text that is shown."""
        return self.traces[self.text.shown if isinstance(self.text, Batch) else 0]

    def ran_too(self, model: Model, inputs: RunInputs) -> bool:
        """Whether this run was of the same texts of a batch, with the same changes: maybe another one is shown."""
        return (
            self.model is model
            and isinstance(inputs.prompt, Batch)
            and isinstance(self.text, Batch)
            and _whichever_is_shown(inputs) == _whichever_is_shown(self.inputs)
        )

    def untouched(self, should_stop: ShouldStop) -> Trace:
        """The same text run without interventions."""
        if not self.trace.interventions:
            return self.trace
        kept = self._kept_of_texts.get_or_compute(
            Untouched, lambda: Untouched(run_each(self.model, self.text, self.written, should_stop=should_stop))
        )
        return kept.traces[self.text.shown if isinstance(self.text, Batch) else 0]

    def keep_untouched(self) -> None:
        """Keep this run, if it is one without interventions, for those that follow."""
        if not self.trace.interventions:
            self._kept_of_texts.put(Untouched(self.traces))

    @property
    def work_per_answer(self) -> int:
        """How many weights may be computed before other requests are answered."""
        device = self.trace.inputs[0].query.device.type if self.trace.inputs else "cpu"
        return WORK_PER_ANSWER.get(device, WORK_PER_ANSWER_ON_DEVICE)


def _whichever_is_shown(inputs: RunInputs) -> RunInputs:
    batch = inputs.prompt
    if not isinstance(batch, Batch):
        return inputs
    # a target that is not among those of all texts is one for all of them
    return replace(inputs, prompt=batch.showing(0), target=None if batch.targets else inputs.target)
