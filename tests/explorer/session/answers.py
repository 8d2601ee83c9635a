"""Small answers of an engine, and the states they lead to, for tests that need no engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attention_explorer.session.branches import GREEDY, Branches
from attention_explorer.session.intents import Arrived, AskStep, Intent
from attention_explorer.session.reduce import reduce
from attention_explorer.session.state import Document, State
from attention_models.protocol.alignment import AlignmentRequest, AlignmentView
from attention_models.protocol.atlas import AtlasRequest, AtlasView
from attention_models.protocol.comparison import CompareRequest, CompareView
from attention_models.protocol.decoding import (
    DecodeCandidate,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
    Ending,
    into_input,
)
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.positions import (
    Moved,
    PositionScheme,
    PositionsRequest,
    PositionsView,
    ShuffleRequest,
    ShuffleView,
)
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.prompt import Prompt, plain_text
from attention_models.protocol.quality import QualityPart, QualityRequest, QualityScore, QualityView
from attention_models.protocol.request import Failure, Progress, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import (
    DEFAULT_PLACEMENT,
    Candidate,
    CheckpointInfo,
    Placement,
    Prediction,
    Site,
    SiteRef,
    StackInfo,
    Token,
)

WENT = RunInputs("Tom and Anna went")
TO = Candidate(id=7, label="␣to", piece="Ġto", probability=0.684, logit=9.5, rank=1)
END = Candidate(id=0, label="⟨end⟩", piece="<|endoftext|>", probability=0.684, logit=9.5, rank=1)


def loaded(
    reference: str = "story-gpt",
    example: str = "Tom and Anna went",
    placement: Placement = DEFAULT_PLACEMENT,
    chat: bool = False,
    pairs: bool = False,
) -> Loaded:
    info = CheckpointInfo(
        reference=reference,
        name=reference,
        folder="",
        family="causal",
        model_type="gpt2",
        architecture="GPT2LMHeadModel",
        stacks=(StackInfo("decoder", layers=8, heads=8, key_heads=8),),
        width=256,
        context=512,
        vocabulary=8192,
        parameters=1,
        file_bytes=4,
        example=example,
        chat=chat,
        pairs=pairs,
    )
    return Loaded(
        request=LoadRequest(reference=reference, placement=placement),
        info=info,
        device="CPU",
        dtype=placement.dtype,
        eval_mode=True,
        seconds=0.1,
        placement=replace(placement, device="cpu"),
    )


def ran(
    run: int = 1,
    text: Prompt = "Tom and Anna went",
    *,
    layers: int = 8,
    heads: int = 8,
    stack: str = "decoder",
    framed: bool = False,
) -> Ran:
    """A run with a token a word; `framed` puts a special token before and after, as masked models do."""
    tokens, start = [], 0
    words = plain_text(text)
    for word in words.split():
        start = words.index(word, start)
        tokens.append(Token(id=1, piece=word, text=word, start=start, end=start + len(word), label=word))
        start += len(word)
    if framed:
        tokens.insert(0, Token(id=2, piece="[CLS]", text="", start=0, end=0, special=True))
        tokens.append(Token(id=3, piece="[SEP]", text="", start=len(words), end=len(words), special=True))
    count = len(tokens)
    return Ran(
        request=ForwardRequest(inputs=RunInputs(text), ticket=run),
        tokens=tuple(tokens),
        sites=tuple(Site(stack, n, heads, heads, 32, queries=count, keys=count) for n in range(layers)),
        masks=tuple(position for position, token in enumerate(tokens) if token.piece == "[MASK]"),
        seconds=0.1,
        trace_bytes=1,
    )


def changed(ran: Ran, **inputs: object) -> Ran:
    """A run of other inputs."""
    return replace(ran, request=replace(ran.request, inputs=replace(ran.inputs, **inputs)))  # type: ignore[arg-type]


def head_view(run: int = 1, site: SiteRef = SiteRef("decoder", 5), head: int = 5) -> HeadView:  # noqa: B008
    weights = np.eye(4, dtype=np.float32)
    return HeadView(request=HeadRequest(run=run, site=site, head=head), weights=weights, masked=None)


def atlas_view(run: int = 1) -> AtlasView:
    return AtlasView(
        request=AtlasRequest(run=run, size=4),
        images=np.zeros((8, 8, 4, 4), np.float32),
        mean=np.zeros((8, 4, 4), np.float32),
        masked=np.zeros((8, 1, 4, 4), bool),
        row_error=0.0,
        cell=1,
        seconds=0.1,
    )


def prediction_view(run: int = 1) -> PredictionView:
    prediction = Prediction(position=3, candidates=(TO,), actual=None, entropy=1.5)
    return PredictionView(request=PredictionRequest(run=run, positions=(3,)), predictions=(prediction,))


def comparison(request: CompareRequest, **changes: object) -> CompareView:
    """Of six tokens, none of which changed."""
    one, rows = np.zeros((6, 6), np.float32), np.zeros(6, np.float32)
    view = CompareView(
        request=request,
        head_dim=32,
        scale=0.177,
        factor=1.0,
        before=one,
        after=one,
        masked_before=None,
        masked_after=None,
        difference=one,
        largest_difference=0.0,
        entropy_before=rows,
        entropy_after=rows,
        top_key_before=rows.astype(int),
        top_key_after=rows.astype(int),
        top_before=rows,
        top_after=rows,
        token_changes=(),
        prediction_before=None,
        prediction_after=None,
        loss_before=3.0,
        loss_after=3.0,
        peeks=False,
        dead_rows=(),
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def positions_view(run: int = 1, site: SiteRef = SiteRef("decoder", 5)) -> PositionsView:  # noqa: B008
    vector = np.ones(4, np.float32)
    return PositionsView(
        request=PositionsRequest(run=run, site=site, head=0, query=0, key=0),
        scheme=PositionScheme(kind="none", name="none found", title="No positions", words="It has none."),
        embedding=vector,
        position=vector,
        total=2 * vector,
        sum_note="",
        query_word="Tom",
        key_word="Tom",
        rotation=None,
        rotation_note="",
    )


def shuffle_view(run: int = 1, seed: int = 0) -> ShuffleView:
    moved = Moved(np.ones(4, np.float32))
    return ShuffleView(
        request=ShuffleRequest(run=run, seed=seed),
        words=("Tom", "and", "Anna", "went"),
        order=(3, 1, 2, 0),
        fixed=(False,) * 4,
        measured="logits",
        causal=True,
        on=moved,
        off=moved,
        off_open=moved,
        note="",
        scheme=PositionScheme(kind="none", name="none found", title="No positions", words="It has none."),
    )


QUALITY = QualityRequest(references=("a", "b"), pairs="pairs.tsv")


def quality_view(done: int = 3, total: int = 12, **changes: object) -> QualityView:
    """A measurement under way, or at its end."""
    made = QualityView(
        request=replace(QUALITY, ticket=7),
        models=("a", "b"),
        trained_to=(10, None),
        unit="words",
        bins=(),
        parts=(QualityPart("all", 6, (QualityScore(30.0, 2, -1.0),) * 2),) if done == total else (),
        planned=((1, 2, 6),),
        sentences=6,
        left_out=0,
        sampled=False,
        done=done,
        total=total,
        signature="",
        seconds=1.0,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def trust_report(run: int = 1) -> TrustReport:
    return TrustReport(
        request=TrustRequest(run=run), logit_difference=0.0, weight_difference=0.0, tolerance=1e-5, seconds=0.1
    )


def stepped(whole: Prompt = "Tom and Anna went to", inputs: RunInputs = WENT, *, ended: bool = False) -> DecodeStepView:
    """What the Step button asks for: the token after `inputs`, in them."""
    token = END if ended else TO
    chosen = DecodeCandidate(token.id, token.label, token.logit, token.probability, kept=token.probability)
    request = into_input(inputs)
    return replace(
        step_view(request, chosen.id, ending="model" if ended else "steps"),
        whole=inputs.prompt if ended else whole,
        candidates=(chosen,),
        chosen=chosen,
    )


def stepping(
    whole: Prompt = "Tom and Anna went to", inputs: RunInputs = WENT, *, ended: bool = False
) -> tuple[AskStep, DecodeStepView]:
    """The Step button is pressed, and the answer arrives."""
    view = stepped(whole, inputs, ended=ended)
    return AskStep(view.request), view


def step_request(
    branches: Branches = Branches(),  # noqa: B008  # frozen
    parent: int | None = None,
    text: str = "Tom and Anna went",
    forced: int | None = None,
    settings: DecodeSettings = GREEDY,
) -> DecodeStepRequest:
    """For the step after a node (the current one if None) of the tree of `text`."""
    ids = branches.ids(parent)
    return DecodeStepRequest(
        inputs=RunInputs(text), settings=settings, steps=20, number=len(ids) + 1, ids=ids, forced=forced
    )


def step_view(request: DecodeStepRequest, token: int = 7, *, ending: Ending = "") -> DecodeStepView:
    """The model chose `token`, or what was forced."""
    token = token if request.forced is None else request.forced
    chosen = DecodeCandidate(id=token, label=f"␣{token}", logit=1.0, probability=0.5, kept=0.5)
    return DecodeStepView(
        request=request,
        text="",
        whole=request.inputs.prompt,
        ids=(*request.ids, token),
        candidates=(chosen,),
        stages=(),
        chosen=chosen,
        drawn=None,
        log_probability=-0.75,
        ending=ending,
        cache=(),
        cache_bytes=0,
    )


def samples_request(
    parents: int = 2, ids: tuple[int, ...] = (), text: str = "Tom and Anna went"
) -> DecodeSamplesRequest:
    """So many samples that have all written `ids`."""
    return DecodeSamplesRequest(
        inputs=RunInputs(text),
        settings=DecodeSettings(strategy="sample"),
        steps=20,
        number=len(ids) + 1,
        samples=tuple(range(parents)),
        ids=(ids,) * parents,
    )


def samples_view(request: DecodeSamplesRequest, *tokens: int) -> DecodeSamplesView:
    """Each sample drew one of `tokens`."""
    steps = [step_view(request.alone(place), token) for place, token in enumerate(tokens)]
    return DecodeSamplesView(request=request, steps=tuple(steps))


TRANSLATING = State(Document(checkpoint="en-es"))
"""Before the answers `translator` and `translation`."""


def translator() -> Loaded:
    """An encoder-decoder model of 2 + 2 layers with 4 heads."""
    found = loaded("en-es", example="The cat")
    stacks = tuple(StackInfo(stack, layers=2, heads=4, key_heads=4) for stack in ("encoder", "decoder", "cross"))
    return replace(found, info=replace(found.info, family="seq2seq", stacks=stacks))


def translation(run: int = 1, text: str = "The cat", target: str | None = None, written: str = "El gato") -> Ran:
    """A run of `translator`: a token a word, ⟨end⟩ after the source and ⟨start⟩ before the target."""
    source = (*(_word(word) for word in text.split()), Token(3, "</s>", "", 0, 0, special=True, label="⟨end⟩"))
    tokens = (Token(0, "<pad>", "", 0, 0, special=True, label="⟨start⟩"), *(_word(word) for word in written.split()))
    sides = {"encoder": (source, source), "decoder": (tokens, tokens), "cross": (tokens, source)}
    order = [("encoder", 0), ("encoder", 1), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)]
    return Ran(
        request=ForwardRequest(inputs=RunInputs(text, target=target), ticket=run),
        tokens=tokens,
        source=source,
        sites=tuple(
            Site(stack, layer, 4, 4, 32, queries=len(sides[stack][0]), keys=len(sides[stack][1]))
            for stack, layer in order
        ),
        masks=(),
        written=written,
        seconds=0.1,
        trace_bytes=10,
    )


def _word(word: str) -> Token:
    return Token(id=1, piece=word, text=word, start=0, end=len(word), label=f"␣{word}")


def alignment_view(
    weights: np.ndarray, site: SiteRef | None = None, head: int | None = None, run: int = 1
) -> AlignmentView:
    return AlignmentView(
        request=AlignmentRequest(run=run, site=site, head=head),
        weights=weights,
        likelihoods=np.array([*np.linspace(0.9, 0.5, len(weights) - 1), np.nan], np.float32),
        description="mean over all 8 cross-attention heads",
    )


def failure(request: Request, sentence: str = "It did not work.", **details: object) -> Failure:
    return Failure(request=request, sentence=sentence, **details)  # type: ignore[arg-type]


def progress(request: Request, label: str = "Reading weights", fraction: float | None = 0.5) -> Progress:
    return Progress(request=request, label=label, fraction=fraction)


def after(state: State, *steps: Intent | Result) -> State:
    """The state after intents, and after results that arrive."""
    for step in steps:
        state = reduce(state, step if isinstance(step, Intent) else Arrived(step))
    return state
