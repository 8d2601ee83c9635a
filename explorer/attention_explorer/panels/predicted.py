"""What the model says of a run, for the panels that show it: what to ask for. Pure."""

from __future__ import annotations

from attention_explorer.panels.selected_head import predicting_position
from attention_explorer.session.state import State
from attention_models.protocol.information import Unit, from_bits
from attention_models.protocol.prediction import ClassesRequest, PredictionRequest
from attention_models.protocol.running import Ran
from attention_models.protocol.sentence import SentencePooling, SentenceRequest
from attention_models.protocol.values import Candidate, ClassHead, Prediction


def wanted_prediction(
    state: State, pooling: SentencePooling | None = None
) -> ClassesRequest | SentenceRequest | PredictionRequest | None:
    """The likeliest tokens, a classifier's classes, or the text's vector; None where the model says none of these."""
    ran = state.ran
    if ran is None:
        return None
    if class_head(state) is not None:
        position = min(state.selection.query, len(ran.tokens) - 1)
        return ClassesRequest(run=ran.run, position=max(0, position), top=state.document.view.top)
    if is_body(state):
        return SentenceRequest(run=ran.run, how=pooling)
    if not has_words(state):
        return None
    return PredictionRequest(run=ran.run, positions=predicted_positions(state, ran), top=state.document.view.top)


def class_head(state: State) -> ClassHead | None:
    loaded = state.results.loaded
    return loaded.info.class_head if loaded is not None else None


def is_body(state: State) -> bool:
    """Whether it reads texts and has no output head: what it gives are vectors."""
    loaded = state.results.loaded
    return loaded is not None and loaded.info.family == "encoder" and loaded.info.class_head is None


def is_masked(state: State) -> bool:
    loaded = state.results.loaded
    return loaded is not None and loaded.info.family == "masked"


def names_pictures(state: State) -> bool:
    """Whether it names what a picture shows."""
    loaded = state.results.loaded
    return loaded is not None and loaded.info.family == "vision"


def has_words(state: State) -> bool:
    loaded = state.results.loaded
    without = loaded is not None and names_pictures(state) and not loaded.info.vocabulary
    return loaded is None or (loaded.info.family != "encoder" and not without)


def predicted_positions(state: State, ran: Ran) -> tuple[int, ...]:
    """Every mask, or where the next token is read; of a picture one, for it is the same at every position."""
    if ran.seen is not None:
        return (0,)
    return ran.masks if ran.masks else (predicting_position(state, ran),)


def listed(prediction: Prediction) -> tuple[Candidate, ...]:
    """The candidates that have a row: the likeliest, and the one that stands in the text."""
    actual = prediction.actual
    if actual is None or any(actual.id == candidate.id for candidate in prediction.candidates):
        return prediction.candidates
    return (*prediction.candidates, actual)


def uncertainty(prediction: Prediction, unit: Unit) -> str:
    """The entropy of all its probabilities: "1.90 bits"."""
    return f"{from_bits(prediction.entropy, unit):.2f} {unit}"
