"""Everything a person or the engine can ask of the session: small frozen values, one a thing to do.

`merge` names a run of intents that undo takes back as one step (typing, walking with the arrow keys); intents with
an empty `merge` each make a step of their own. Intents that change no `Document` make no step at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_explorer.session.branches import ROOT
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.examples import Example
from attention_explorer.session.placed import Placed
from attention_explorer.session.state import Compared, Document, Notice
from attention_explorer.session.training import LeftTraining
from attention_explorer.session.writing import Decoding
from attention_models.protocol.batch import PaddingSide
from attention_models.protocol.chat import Pair, Turn
from attention_models.protocol.corpus import CorpusQuestion
from attention_models.protocol.decoding import DecodeSamplesRequest, DecodeStepRequest, Strategy
from attention_models.protocol.experiment_messages import FromExperiment, RunModel
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.quality import QualityRequest
from attention_models.protocol.request import Lane, Result
from attention_models.protocol.roles import HeadQuestion
from attention_models.protocol.training_messages import Asked, AskedTuning, Fell, FromProcess, ToProcess
from attention_models.protocol.values import Placement, SiteRef
from attention_models.training.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Intent:
    merge: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class OpenCheckpoint(Intent):
    """A shipped name or a folder. The text becomes the checkpoint's example unless the person has typed one."""

    reference: str


@dataclass(frozen=True, slots=True)
class Place(Intent):
    """Open the same checkpoint (or `reference`) on another device or in another number format.

    What is on screen stays meanwhile.
    """

    placement: Placement
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class GoToStep(Intent):
    """Show the open checkpoint as it was after another step of its training; None for the end. Undo does not count it.

    What was to follow the training stays where it is from here on.
    """

    step: int | None


@dataclass(frozen=True, slots=True)
class FollowTraining(Intent):
    """Show the newest snapshot of the open checkpoint's training, and each that comes, or do so no longer."""

    on: bool


@dataclass(frozen=True, slots=True)
class SnapshotsFound(Intent):
    """The training `reference` has snapshots of these steps now, ascending."""

    reference: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetText(Intent):
    """Plain text for the model to read, and no conversation."""

    merge: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class SetSecond(Intent):
    """A second text, which the model reads together with the first; None closes its field."""

    merge: ClassVar[str] = "second"
    second: str | None


@dataclass(frozen=True, slots=True)
class SetPair(Intent):
    """Two texts for the model to read together."""

    pair: Pair


@dataclass(frozen=True, slots=True)
class AddTexts(Intent):
    """More texts, to be run together with those that there are; the first of them is shown. ValueError: too many."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShowText(Intent):
    """Another of the texts that are run together. ValueError where there is none."""

    merge: ClassVar[str] = "shown text"
    index: int


@dataclass(frozen=True, slots=True)
class RemoveText(Intent):
    """One of the texts that are run together goes. ValueError where there is none, or it is the only one."""

    index: int


@dataclass(frozen=True, slots=True)
class KeepShownText(Intent):
    """Only the text that is shown stays of those that are run together."""


@dataclass(frozen=True, slots=True)
class SetPadding(Intent):
    """Where texts that are run together are filled up."""

    side: PaddingSide


@dataclass(frozen=True, slots=True)
class SetChat(Intent):
    """Let the model read a conversation, or plain text. What was typed goes along."""

    on: bool


@dataclass(frozen=True, slots=True)
class SetTurns(Intent):
    """Another conversation. ValueError where it has none or too many turns."""

    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class SayInTurn(Intent):
    """Other words in the turn at `place` of the conversation. ValueError where there is none."""

    merge: ClassVar[str] = "turn"
    place: int
    text: str


@dataclass(frozen=True, slots=True)
class SetTarget(Intent):
    """What an encoder-decoder model's decoder is made to say; None lets it write itself."""

    merge: ClassVar[str] = "target"
    target: str | None


@dataclass(frozen=True, slots=True)
class UseWritten(Intent):
    """What the model wrote becomes the input; the target, of an encoder-decoder model.

    `ids` are all the tokens that it then should read: the person is told where its tokenizer makes others of it. Empty
    where that does not matter.
    """

    whole: Prompt
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SetPicture(Intent):
    """What a vision model reads: the path of a file, or "sample:NAME"."""

    picture: str


@dataclass(frozen=True, slots=True)
class ShowExample(Intent):
    """One of the open checkpoint's examples, in the place of the text, of the selection and of what was changed."""

    example: Example


@dataclass(frozen=True, slots=True)
class SelectHead(Intent):
    """A head that ran; any other is refused with ValueError."""

    merge: ClassVar[str] = "select"
    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True)
class SelectQuery(Intent):
    """The token that looks. Clamped to the tokens there are."""

    merge: ClassVar[str] = "select"
    query: int


@dataclass(frozen=True, slots=True)
class SelectKey(Intent):
    """The token that is attended to."""

    merge: ClassVar[str] = "select"
    key: int


@dataclass(frozen=True, slots=True)
class SelectCell(Intent):
    merge: ClassVar[str] = "select"
    query: int
    key: int


@dataclass(frozen=True, slots=True)
class AskHeads(Intent):
    """Ask every head of the run how much it does something; None: nothing is asked any longer."""

    question: HeadQuestion | None


@dataclass(frozen=True, slots=True)
class ColourByRole(Intent):
    """Colour and rank the heads by a role that they have over texts, in the place of a question."""

    role: str


@dataclass(frozen=True, slots=True)
class SetBadges(Intent):
    """Name on the heads the roles that they plainly have, or no longer."""

    on: bool


@dataclass(frozen=True, slots=True)
class SetAboveEven(Intent):
    """Show only the heads that score more than one that attends evenly, or all."""

    on: bool


@dataclass(frozen=True, slots=True)
class AskEffects(Intent):
    """Other questions in Effects: of other answers, another text, other words."""

    effects: EffectsChoices


@dataclass(frozen=True, slots=True)
class SetView(Intent):
    """Change one of `ViewOptions`' fields; a name or value it does not have is refused with ValueError."""

    option: str
    value: object


@dataclass(frozen=True, slots=True)
class PutIntervention(Intent):
    """Turn a knob: replaces the intervention of the same kind and scope; one that says "as trained" takes it away."""

    merge: ClassVar[str] = "intervention"
    value: Intervention


@dataclass(frozen=True, slots=True)
class PaintCells(Intent):
    """Block or allow (query, key) cells in the scope that is being edited: one stroke, one step.

    They join what was painted in that scope before.
    """

    cells: tuple[tuple[int, int], ...]
    allow: bool


@dataclass(frozen=True, slots=True)
class BlockCell(Intent):
    """Mask the selected cell at the selected head alone, or leave it as the model has it. ValueError without a head."""

    blocked: bool


@dataclass(frozen=True, slots=True)
class SwitchIntervention(Intent):
    """Switch the intervention at `index` of the list on or off. ValueError where there is none."""

    index: int
    on: bool


@dataclass(frozen=True, slots=True)
class RemoveIntervention(Intent):
    """Take the intervention at `index` off the list. ValueError where there is none."""

    index: int


@dataclass(frozen=True, slots=True)
class ClearInterventions(Intent):
    """Back to the model as it is."""


@dataclass(frozen=True, slots=True)
class SetDecoding(Intent):
    """Other numbers for what the model writes from now on."""

    merge: ClassVar[str] = "decoding"
    decoding: Decoding


@dataclass(frozen=True, slots=True)
class SetStrategy(Intent):
    """Another strategy for what the model writes from now on."""

    strategy: Strategy


@dataclass(frozen=True, slots=True)
class AskStep(Intent):
    """Let the model write a token after node `parent` of the tree, or into the input, if `request` says so.

    A beam search has a tree of its own.

    Tokens of one passage are taken back at once: a step begins a passage, unless it goes on with the one before.
    ValueError where there is no such node, the request is not of its path, or the tree is full.
    """

    request: DecodeStepRequest
    parent: int = ROOT
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class AskSamples(Intent):
    """Let the model draw a token for each of several samples, after as many nodes of the tree.

    Passages and refusals as in `AskStep`. `shown` is the place of the sample whose token is selected then; -1 for none
    of these.
    """

    request: DecodeSamplesRequest
    parents: tuple[int, ...]
    shown: int = 0
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class GoToNode(Intent):
    """Select another node of the tree, or the prompt. ValueError where there is none."""

    merge: ClassVar[str] = "node"
    node: int


@dataclass(frozen=True, slots=True)
class ShowBeam(Intent):
    """The beam that the Decode panel shows has written these tokens; none at the prompt."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NameBranch(Intent):
    """Call the branch that ends at a node by a name; "" takes it away. ValueError where there is no such node."""

    node: int
    name: str


@dataclass(frozen=True, slots=True)
class DeleteBranch(Intent):
    """Take away the branch of a node, up to where it parts from the others. ValueError where there is no such node."""

    node: int


@dataclass(frozen=True, slots=True)
class RestoreDocument(Intent):
    """Everything a person chose at once: a session file, an undo."""

    document: Document


@dataclass(frozen=True, slots=True)
class OpenDocument(Intent):
    """A document of a session file, on screen once its checkpoint is open. If it cannot be opened nothing changes.

    `place` names a cell of it by words, which is found when its tokens are known.
    """

    document: Document
    placement: Placement
    place: Placed | None = None


@dataclass(frozen=True, slots=True)
class CompareWith(Intent):
    """Compare what is open, A, with another state, B; None lets B go. ValueError where B is compared in turn."""

    compared: Compared | None


@dataclass(frozen=True, slots=True)
class SwapStates(Intent):
    """What is open becomes B, and B is opened. ValueError where there is no B."""


@dataclass(frozen=True, slots=True)
class SelectHeadOfB(Intent):
    """Show a head of B beside the selected one; None: the one that matches it. ValueError where there is no B."""

    merge: ClassVar[str] = "select in B"
    site: SiteRef | None
    head: int = 0


@dataclass(frozen=True, slots=True)
class Measure(Intent):
    """Begin to measure quality against sentence length, in the place of any measurement under way; None stops it."""

    request: QualityRequest | None


@dataclass(frozen=True, slots=True)
class ChooseCorpus(Intent):
    """Read this file of texts through the model, from its beginning."""

    path: str


@dataclass(frozen=True, slots=True)
class AskCorpus(Intent):
    """Look for something else in the file of texts, which is read anew for it."""

    question: CorpusQuestion


@dataclass(frozen=True, slots=True)
class ReadCorpus(Intent):
    """Go on reading the file of texts, or begin anew where it was read to its end; or stop there."""

    on: bool


@dataclass(frozen=True, slots=True)
class ShowPlace(Intent):
    """Put a text of a file into the input, and select a cell of a head there.

    `second` goes with it: of a pair the other text, of a translation what the decoder says.
    """

    text: str
    second: str | None
    site: SiteRef
    head: int
    query: int
    key: int


@dataclass(frozen=True, slots=True)
class ChooseProbe(Intent):
    """Find the roles of heads on the texts of this file; "" for those that come along."""

    path: str


@dataclass(frozen=True, slots=True)
class Train(Intent):
    """Let a model of the textbook transformer learn, in the place of the training that was begun before."""

    asked: Asked | AskedTuning


@dataclass(frozen=True, slots=True)
class TrainingsLeft(Intent):
    """These were not saved when their windows ended, or when another training of this one began; the newest first."""

    found: tuple[LeftTraining, ...]


@dataclass(frozen=True, slots=True)
class TakeUpTraining(Intent):
    """Go on with one of them, in the place of the training that was begun before. It waits at its last step."""

    left: LeftTraining


@dataclass(frozen=True, slots=True)
class DiscardTraining(Intent):
    """Delete one of them: the person does not want it."""

    left: LeftTraining


@dataclass(frozen=True, slots=True, eq=False)
class TellTraining(Intent):
    """Let the process that trains do something. One that has ended is started again, from its last snapshot."""

    message: ToProcess


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTold(Intent):
    """What became of the training of this `number`."""

    number: int
    message: FromProcess | Fell


@dataclass(frozen=True, slots=True, eq=False)
class RunExperiment(Intent):
    """Let the runs of a prepared experiment learn side by side, in the place of those before. A training is paused."""

    file: str  # where it stands
    prepared: Prepared
    seed: int


@dataclass(frozen=True, slots=True)
class StopExperiment(Intent):
    """End the runs where they stand."""


@dataclass(frozen=True, slots=True)
class OpenRun(Intent):
    """Open the model of a run that is over, with the example of its task as text."""

    model: RunModel


@dataclass(frozen=True, slots=True, eq=False)
class ExperimentTold(Intent):
    """What became of the experiment of this `number`."""

    number: int
    message: FromExperiment | Fell


@dataclass(frozen=True, slots=True, eq=False)
class Arrived(Intent):
    """The engine answered."""

    result: Result


@dataclass(frozen=True, slots=True)
class Busy(Intent):
    """Which lanes have requests without an answer."""

    lanes: frozenset[Lane]


@dataclass(frozen=True, slots=True)
class Show(Intent):
    """Put a sentence before the person, or take it away (None)."""

    notice: Notice | None
