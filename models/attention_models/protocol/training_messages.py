"""What the window and the process that trains tell each other: a line of JSON each, bounded. No torch."""

from __future__ import annotations

import re
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from attention_models.protocol.gradient_breakdown import GradientBreakdown

TRAIN_HERE = "--train-in-this-process"
"""Starts the program as the process that trains, where it was frozen into one file with its interpreter."""

MOST_BYTES = 4 << 20
"""Of one line; longer ones are refused."""

MOST_TEXT = 1_000_000
"""Characters of a pasted text."""

MOST_PROMPT = 2_000
"""Characters of a text that a tuned model goes on from."""

Tuned = Literal["all", "head", "lora"]
"""What of a checkpoint learns."""


class Message(Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """One line."""


class Asked(Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """What to train from nothing, as it was asked for, and for how long: `seconds` or `steps`."""

    task: str  # with its difficulty: "reverse:10"
    switches: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    text: str = ""  # for the task "text"
    seconds: float | None = 60.0
    steps: int | None = None

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.task.partition(":")[0]


class AskedTuning(Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A checkpoint that is to go on learning, from `text` or a `file`, and for how long: `seconds` or `steps`."""

    checkpoint: str
    text: str = ""
    file: str = ""  # a path; "" for the text
    tuned: Tuned = "all"
    rank: int = 0  # of a LoRA adapter
    rate: float | None = None  # None for the usual one
    seed: int = 0
    prompt: str = ""  # what it goes on from, or tells the class of, before and after; "" for nothing
    second: str = ""  # of a classifier: read together with the prompt, as a pair
    seconds: float | None = 60.0
    steps: int | None = None

    @property
    def name(self) -> str:
        """What the model is called: a folder can have that name."""
        last = re.split(r"[/\\:]", self.checkpoint.rstrip("/\\"))[-1].partition("@")[0]
        return f"{re.sub(r'[^A-Za-z0-9._-]', '-', last)[:60].strip('.') or 'model'}-tuned"


# --------------------------------------------------------------------------- to the process


class Begin(Message, frozen=True):
    """First of all. In `folder` the model is written before its first step, and its snapshots after."""

    asked: Asked | AskedTuning
    folder: str
    taken_up: bool = False  # goes on from the last snapshot that lies there


class Go(Message, frozen=True):
    """Go on after a pause; after the end, as long again."""


class Pause(Message, frozen=True):
    pass


class OneBatch(Message, frozen=True):
    """One step, and then a pause."""


class Stop(Message, frozen=True):
    """End this run. The model stays, to be saved or to go on."""


class Measure(Message, frozen=True):
    """Say what the model makes of the held-out rows now."""


class Save(Message, frozen=True):
    """Write model and snapshots into another folder."""

    folder: str


class Dissect(Message, frozen=True):
    """Take the next step apart, without taking it. The entry of the output matrix is chosen where it is left out."""

    token: int | None = None
    dimension: int | None = None


class Write(Message, frozen=True):
    """Go on from a prompt, or tell its class, as the checkpoint was before it learned and as it is now."""

    prompt: str
    second: str = ""


ToProcess = Begin | Go | Pause | OneBatch | Stop | Measure | Save | Dissect | Write


# --------------------------------------------------------------------------- from the process


class TrainingPoint(Struct, frozen=True, array_like=True):
    """One step, as `attention_models.training.training_loop.Point`."""

    step: int
    loss: float
    accuracy: float
    rate: float
    tokens_per_second: float
    gradients: tuple[tuple[str, float], ...] = ()
    states: tuple[tuple[float, float, float], ...] = ()


class HeldOutPoint(Struct, frozen=True, array_like=True):
    """What the model makes of held-out rows, as `attention_models.training.training_loop.HeldOut`."""

    step: int
    loss: float
    tokens_right: float
    sequences_right: float
    rows: int
    of_learned: float | None = None


class Began(Message, frozen=True):
    """The model is made and lies in `folder`, to be opened."""

    folder: str
    title: str  # of the task, as a sentence goes on: "write the letters backwards"
    example: str
    parameters: int
    step: int = 0  # of the snapshot that was taken up
    points: tuple[TrainingPoint, ...] = ()  # of the steps before it, as far as they were kept
    dropout: float = 0.0  # that raises the loss of a step, and of no measurement
    smoothing: float = 0.0  # likewise, of the labels
    classifies: bool = False  # a row is a text and its class; else it is of tokens that are to be said


class Learned(Message, frozen=True):
    """Steps that were taken since this was told last, and where the run stands."""

    points: tuple[TrainingPoint, ...]
    seconds: float  # of training in this run: pauses are not counted
    fraction: float  # of the run that is done, 0 to 1
    phase: Literal["running", "paused"]


class Measured(Message, frozen=True):
    held_out: HeldOutPoint


class SnapshotWritten(Message, frozen=True):
    step: int


class Saved(Message, frozen=True):
    folder: str


class Said(Message, frozen=True):
    """Something could not be done, and the training goes on as it was: a sentence for the person."""

    sentence: str


class Dissected(Message, frozen=True):
    """The next step in numbers, from `attention_models.training.gradient_breakdown`; the step was not taken."""

    dissection: GradientBreakdown


class NotDissected(Message, frozen=True):
    """Why the next step cannot be told in numbers."""

    sentence: str


class Wrote(Message, frozen=True):
    """What the model writes after a prompt, without it: before it learned, and after `step` steps."""

    prompt: str
    before: str
    after: str
    step: int


class ClassShare(Struct, frozen=True, array_like=True):
    """The probability of one class, before a model learned and after."""

    label: str
    before: float
    after: float


class Classified(Message, frozen=True):
    """What a classifier says of a text, or of two: before it learned, and after `step` steps."""

    prompt: str
    second: str
    classes: tuple[ClassShare, ...]  # the likeliest now, in order
    others: int  # classes that are not among them
    step: int


class Ended(Message, frozen=True):
    """The run is over. `notice` is a sentence for the person, "" where there is nothing to say."""

    how: Literal["done", "stopped", "diverged"]
    step: int
    seconds: float
    notice: str = ""


class Failed(Message, frozen=True):
    """Nothing can be trained. `cause` is for the log; "" where the sentence says all."""

    sentence: str
    cause: str = ""


class Fell(Message, frozen=True):
    """Said by who reads the pipe: the process has ended, and did not say why. `code` is its exit code."""

    code: int


FromProcess = (
    Began
    | Learned
    | Measured
    | SnapshotWritten
    | Saved
    | Said
    | Ended
    | Failed
    | Dissected
    | NotDissected
    | Wrote
    | Classified
)

MessageT = TypeVar("MessageT")

_TO: msgspec.json.Decoder[ToProcess] = msgspec.json.Decoder(ToProcess)
_FROM: msgspec.json.Decoder[FromProcess] = msgspec.json.Decoder(FromProcess)


def line_of(message: Message) -> bytes:
    """The message with the end of its line. A number that is none becomes null, and is refused where it is read."""
    return msgspec.json.encode(message) + b"\n"


def to_process(line: bytes) -> ToProcess:
    """Raises ValueError for anything else than a message to the process."""
    return decoded(_TO, line)


def from_process(line: bytes) -> FromProcess:
    """Raises ValueError for anything else than a message from the process."""
    return decoded(_FROM, line)


def decoded(decoder: msgspec.json.Decoder[MessageT], line: bytes) -> MessageT:
    """A line as `decoder` has it. Raises ValueError for one that is too long, or that it does not know."""
    if len(line) > MOST_BYTES:
        raise ValueError(f"a message of {len(line):,} bytes")
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as cause:
        raise ValueError(f"no message: {cause}") from cause
