"""The last run of the open model, and what is kept of it for the requests about it."""

from __future__ import annotations

from models.forward.kept import Kept
from models.forward.model import Model
from models.forward.run import run
from models.forward.trace import Trace
from models.protocol.prompt import Prompt
from models.protocol.run_inputs import RunInputs
from models.protocol.work import ShouldStop

# How many weights one answer computes at most, so that a request in another lane is not kept waiting.
WORK_PER_ANSWER = {"cpu": 1 << 25}
WORK_PER_ANSWER_ON_DEVICE = 1 << 31


class CurrentRun:
    """A trace, what was run to get it, and what is kept of it.

    Attributes:
        ticket: of the forward request: what later requests call this run.
        written: what an encoder-decoder model's decoder was given.
        kept: what was worked out of this run.
        kept_of_text: what was worked out of the same text as the model is. Later runs of that text share it.
    """

    def __init__(
        self,
        model: Model,
        trace: Trace,
        inputs: RunInputs,
        written: str | list[int] | None,
        ticket: int,
        before: CurrentRun | None = None,
    ) -> None:
        """`before` is the run that this one follows."""
        self.model = model
        self.trace = trace
        self.inputs = inputs
        self.written = written
        self.ticket = ticket
        self.kept = Kept()
        is_same = before is not None and (before.model, before.text, before.written) == (model, self.text, written)
        self.kept_of_text: Kept = before.kept_of_text if before is not None and is_same else Kept()

    @property
    def text(self) -> Prompt:
        """What the model was given: a text, a conversation, or a picture's name."""
        return self.inputs.picture if self.model.info.family == "vision" else self.inputs.prompt

    def untouched(self, should_stop: ShouldStop) -> Trace:
        """The same text run without interventions."""
        if not self.trace.interventions:
            return self.trace
        return self.kept_of_text.once(
            Trace, lambda: run(self.model, self.text, target=self.written, should_stop=should_stop)
        )

    @property
    def work_per_answer(self) -> int:
        """How many weights may be computed before other requests are answered."""
        device = self.trace.inputs[0].query.device.type if self.trace.inputs else "cpu"
        return WORK_PER_ANSWER.get(device, WORK_PER_ANSWER_ON_DEVICE)
