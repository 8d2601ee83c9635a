"""Hypothesis strategies: any intent a person or an engine may send, sensible or not."""

from __future__ import annotations

from functools import reduce
from typing import get_args

from hypothesis import strategies as st

from attention_explorer.session.branches import Branches
from attention_explorer.session.effects_choices import Answer, EffectsChoices
from attention_explorer.session.intents import (
    AddTexts,
    Arrived,
    AskCorpus,
    AskEffects,
    AskSamples,
    AskStep,
    Busy,
    ChooseCorpus,
    ChooseProbe,
    ClearInterventions,
    CompareWith,
    DeleteBranch,
    GoToNode,
    Intent,
    KeepShownText,
    Measure,
    NameBranch,
    OpenCheckpoint,
    PaintCells,
    PutIntervention,
    ReadCorpus,
    RemoveIntervention,
    RemoveText,
    RestoreDocument,
    SayInTurn,
    SelectCell,
    SelectHead,
    SelectHeadOfB,
    SelectKey,
    SelectQuery,
    SetChat,
    SetDecoding,
    SetPadding,
    SetPair,
    SetSecond,
    SetStrategy,
    SetText,
    SetTurns,
    SetView,
    Show,
    ShowPlace,
    ShowText,
    SwapStates,
    SwitchIntervention,
)
from attention_explorer.session.state import BatchText, Compared, Document, Notice, Selection
from attention_explorer.session.writing import Decoding, Origin, Writing
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.chat import ROLES, Pair, Turn
from attention_models.protocol.corpus import CorpusQuestion
from attention_models.protocol.decoding import DecodeSettings, DecodeStepRequest, Strategy
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Result
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers


def _origin(writing: Writing) -> Origin:
    return writing.origin


CHECKPOINTS = st.sampled_from(["story-gpt", "story-bert", "b"])
TEXTS = st.sampled_from(["", "Tom and Anna went", "a b", "a b c d e f g", "x [MASK] y"])
INPUTS = st.builds(RunInputs, TEXTS)
RUNS = st.integers(1, 3)
POSITIONS = st.integers(-2, 9)
SITES = st.builds(SiteRef, st.sampled_from(["decoder", "encoder"]), st.integers(0, 8))
SELECTIONS = st.builds(Selection, st.none() | SITES, st.integers(0, 8), POSITIONS, POSITIONS)
NODES = st.integers(0, 5)
TOKENS = st.integers(1, 4)
WRITINGS = st.builds(
    Writing,
    CHECKPOINTS,
    INPUTS,
    st.lists(TOKENS, min_size=1, max_size=3).map(
        lambda tokens: reduce(lambda tree, token: tree.grow(token, str(token), -0.5), tokens, Branches())
    ),
)
TURNS = st.lists(st.builds(Turn, st.sampled_from(ROLES), TEXTS), min_size=1, max_size=3).map(tuple)
DECODINGS = st.builds(
    Decoding, st.builds(DecodeSettings, seed=st.integers(0, 2)), st.integers(1, 30), st.integers(1, 3), st.booleans()
)
ANSWERS = st.none() | st.builds(Answer, st.sampled_from(["␣Tom", "Anna"]), st.none() | TOKENS)
EFFECTS = st.builds(EffectsChoices, target=ANSWERS, against=ANSWERS, loss=st.booleans(), other=TEXTS)
OTHERS = st.lists(st.builds(BatchText, TEXTS, st.none() | TEXTS), max_size=2).map(tuple)
DOCUMENTS = st.builds(
    Document,
    CHECKPOINTS,
    TEXTS,
    SELECTIONS,
    second=st.none() | TEXTS,
    before=OTHERS,
    after=OTHERS,
    chat=st.booleans(),
    turns=TURNS,
    decoding=DECODINGS,
    writings=st.lists(WRITINGS, max_size=2, unique_by=_origin).map(tuple),
)
COMPARED = st.builds(
    Compared, DOCUMENTS, st.lists(TOKENS, max_size=2).map(tuple), st.sampled_from(["", "b"]), st.booleans()
)
STEP_REQUESTS = st.builds(
    lambda text, ids, forced: DecodeStepRequest(
        inputs=RunInputs(text), settings=DecodeSettings(), steps=9, number=len(ids) + 1, ids=tuple(ids), forced=forced
    ),
    TEXTS,
    st.lists(TOKENS, max_size=2),
    st.none() | TOKENS,
)
INPUT_STEPS = st.builds(answers.stepped, TEXTS, INPUTS, ended=st.booleans())
SAMPLES_REQUESTS = st.builds(answers.samples_request, st.just(2), st.lists(TOKENS, max_size=2).map(tuple), TEXTS)
KNOBS = st.one_of(
    st.builds(Scale, st.sampled_from([0.0, 0.5, 1.0]), site=st.none() | SITES, head=st.none() | st.integers(0, 8)),
    st.builds(Mask, st.sampled_from(["trained", "none"]), site=st.none() | SITES),
    st.builds(Ablation, st.sampled_from(["mlp", "attention", "norm1", "layer"]), SITES, on=st.booleans()),
    st.builds(
        Ablation, st.sampled_from(["head", "neuron"]), SITES, st.integers(0, 8), st.sampled_from(["zero", "mean"])
    ),
    st.builds(Ablation, st.just("head"), SITES, st.integers(0, 8), st.just("position"), st.integers(0, 3)),
)
REQUESTS = st.one_of(
    st.builds(LoadRequest, reference=CHECKPOINTS),
    st.builds(ForwardRequest, inputs=INPUTS),
    INPUT_STEPS.map(lambda view: view.request),
    STEP_REQUESTS,
    st.just(answers.QUALITY),
)


def steps() -> st.SearchStrategy[Intent]:
    """What a person, a lesson or a session file asks for."""
    return st.one_of(
        st.builds(OpenCheckpoint, CHECKPOINTS),
        st.builds(SetText, TEXTS),
        st.builds(SetChat, st.booleans()),
        st.builds(SetSecond, st.none() | TEXTS),
        st.builds(SetPair, st.builds(Pair, TEXTS, TEXTS)),
        st.builds(AddTexts, st.lists(TEXTS, max_size=3).map(tuple)),
        st.builds(ShowText, st.integers(-1, 3)),
        st.builds(RemoveText, st.integers(-1, 3)),
        st.just(KeepShownText()),
        st.builds(SetPadding, st.sampled_from(["right", "left"])),
        st.builds(SetTurns, TURNS),
        st.builds(SayInTurn, st.integers(-1, 3), TEXTS),
        st.builds(SelectHead, SITES, st.integers(-1, 8)),
        st.builds(SelectQuery, POSITIONS),
        st.builds(SelectKey, POSITIONS),
        st.builds(SelectCell, POSITIONS, POSITIONS),
        st.builds(
            SetView,
            st.sampled_from(["top", "normalisation", "mean_column", "nothing"]),
            st.sampled_from([3, "row", True, None]),
        ),
        st.builds(RestoreDocument, DOCUMENTS),
        st.builds(PutIntervention, KNOBS),
        st.builds(
            PaintCells, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3).map(tuple), st.booleans()
        ),
        st.builds(SwitchIntervention, st.integers(-1, 2), st.booleans()),
        st.builds(RemoveIntervention, st.integers(-1, 2)),
        st.just(ClearInterventions()),
        st.builds(SetDecoding, DECODINGS),
        st.builds(AskEffects, EFFECTS),
        st.builds(SetStrategy, st.sampled_from(get_args(Strategy))),
        st.builds(AskStep, STEP_REQUESTS | INPUT_STEPS.map(lambda view: view.request), NODES, st.booleans()),
        st.builds(
            AskSamples,
            SAMPLES_REQUESTS,
            st.lists(NODES, min_size=2, max_size=2).map(tuple),
            st.integers(-1, 1),
            st.booleans(),
        ),
        st.builds(GoToNode, NODES),
        st.builds(NameBranch, NODES, TEXTS),
        st.builds(DeleteBranch, NODES),
        st.builds(CompareWith, st.none() | COMPARED),
        st.just(SwapStates()),
        st.builds(SelectHeadOfB, st.none() | SITES, st.integers(-1, 8)),
        st.builds(ChooseCorpus, st.sampled_from(["/a.txt", "/b.csv"])),
        st.builds(AskCorpus, st.builds(CorpusQuestion, st.sampled_from(["", "next", "word:a"]))),
        st.builds(ReadCorpus, st.booleans()),
        st.builds(ChooseProbe, st.sampled_from(["", "/a.txt"])),
        st.builds(ShowPlace, TEXTS, st.none() | TEXTS, SITES, st.integers(0, 8), st.integers(0, 9), st.integers(0, 9)),
        st.builds(Measure, st.none() | st.just(answers.QUALITY)),
        st.builds(Show, st.none() | st.builds(Notice, st.just("info"), TEXTS)),
        st.builds(
            Busy, st.frozensets(st.sampled_from([LoadRequest.lane, ForwardRequest.lane, DecodeStepRequest.lane]))
        ),
    )


def results() -> st.SearchStrategy[Result]:
    """What an engine answers."""
    return st.one_of(
        st.builds(answers.loaded, CHECKPOINTS, TEXTS, chat=st.booleans()),
        st.builds(
            answers.ran,
            RUNS,
            TEXTS,
            layers=st.integers(0, 8),
            stack=st.sampled_from(["decoder", "encoder"]),
            framed=st.booleans(),
        ),
        st.builds(answers.head_view, RUNS, SITES, st.integers(0, 8)),
        st.builds(answers.atlas_view, RUNS),
        st.builds(answers.prediction_view, RUNS),
        st.builds(answers.positions_view, RUNS, SITES),
        st.builds(answers.shuffle_view, RUNS, st.integers(0, 2)),
        st.builds(answers.quality_view, st.sampled_from([3, 12])),
        st.builds(answers.trust_report, RUNS),
        INPUT_STEPS,
        st.builds(answers.step_view, STEP_REQUESTS, TOKENS),
        st.builds(answers.samples_view, SAMPLES_REQUESTS, TOKENS, TOKENS),
        st.builds(answers.progress, REQUESTS),
        st.builds(answers.failure, REQUESTS, cut_to=st.none() | st.integers(0, 3), stale=st.booleans()),
    )


def intents() -> st.SearchStrategy[Intent]:
    """Anything that may be dispatched."""
    return st.one_of(steps(), st.builds(Arrived, results()))
