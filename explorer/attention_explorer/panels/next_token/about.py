"""What the (i) of the model's answer says. Pure."""

from __future__ import annotations

import math

from attention_explorer.panels.about import About
from attention_explorer.panels.predicted import class_head, has_words, is_body, is_masked, listed, uncertainty
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_models.protocol.classes import ClassesView
from attention_models.protocol.information import from_bits
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.running import Ran
from attention_models.protocol.sentence import SentenceView
from attention_models.protocol.values import CheckpointInfo, Prediction

_WHAT = {
    "causal": (
        "What the model finds likely as the next token after the selected one: softmax makes probabilities of "
        "its logits."
    ),
    "seq2seq": (
        "What the decoder finds likely as the next token after the selected one: softmax makes probabilities "
        "of its logits."
    ),
    "masked": (
        "What the model would put in the place of each mask (without one, of the selected word): softmax makes "
        "probabilities of its logits."
    ),
    "vision": "Which of its classes the model sees in the picture: softmax makes probabilities of its logits.",
}
_CLASSES = "What a classifier says: a logit for each class, and what share that is."
_SHARES = {
    "softmax": "The shares of all classes sum to 1.",
    "sigmoid": "Each class has a share of its own, so several may hold at once.",
    "number": "It is a plain number, and no share of anything.",
}
_VECTOR = "This model says no words: it gives one vector for the text, made of those of its tokens."
_TRY = {
    "causal": "Try: click a bar to write that token after the text, and see what comes next then.",
    "seq2seq": "Try: select an earlier token of the target, and see what the model found likely there.",
    "masked": "Try: mask another word (select it, Ctrl+M), or click a bar to put that token in the place of the mask.",
    "vision": "Try: choose another picture above, and see which class comes first, and how sure it is.",
}


def about(state: State) -> About:
    loaded, ran = state.results.loaded, state.ran
    family = loaded.info.family if loaded is not None else "causal"
    if class_head(state) is not None:
        return _of_classes(state, ran)
    if is_body(state) or not has_words(state):
        return _of_vector(state, ran)
    view = state.results.of(PredictionView)
    what, to_try = _WHAT.get(family, _WHAT["causal"]), _TRY.get(family, _TRY["causal"])
    if view is None or ran is None or view.request.run != ran.run or loaded is None or not view.predictions:
        return About(
            (what, "The longer a bar, the likelier; its logit and its rank among all stand beside it."), to_try
        )
    first = view.predictions[0]
    return About.of(
        (
            what,
            _likeliest(first, ran, loaded.info, is_masked(state)),
            _uncertain(state, first, loaded.info),
            _edited(first),
        ),
        to_try,
    )


def _likeliest(prediction: Prediction, ran: Ran, info: CheckpointInfo, masked: bool) -> str:
    best, shown = prediction.candidates[0], listed(prediction)
    where, kind = "In this picture", "classes"
    if ran.seen is None:
        word = ran.tokens[prediction.position].word
        where, kind = f"{'At' if masked else 'After'} “{word}”, position {prediction.position},", "tokens"
    logit = value_text(best.logit)
    said = (
        f"{where} “{best.label.lstrip('␣') or best.label}” is the likeliest of {info.vocabulary:,} {kind}: "
        f"{percent_text(best.probability)}, from a logit of {logit}."
    )
    together = percent_text(min(1.0, sum(candidate.probability for candidate in shown)))
    return f"{said} The {len(shown)} that are listed have {together} together."


def _uncertain(state: State, prediction: Prediction, info: CheckpointInfo) -> str:
    unit = state.document.view.unit
    of = f" of {from_bits(math.log2(info.vocabulary), unit):.2f} possible" if info.vocabulary > 1 else ""
    return (
        f"The entropy of all these probabilities is {uncertainty(prediction, unit)}{of}: as open as an even "
        f"choice among {value_text(2**prediction.entropy)}."
    )


def _edited(prediction: Prediction) -> str:
    best = prediction.candidates[0]
    if best.before is None:
        return ""
    return (
        f"Something is changed in this run: without that, “{best.label.lstrip('␣') or best.label}” would have "
        f"{percent_text(best.before)}, which is outlined."
    )


def _of_classes(state: State, ran: Ran | None) -> About:
    head, view = class_head(state), state.results.of(ClassesView)
    to_try = "Try: change a word of the text, and see whether the model says another class."
    if head is None or view is None or ran is None or view.request.run != ran.run or not view.classes:
        return About((_CLASSES, "The bars appear when the model has run."), to_try)
    best = view.classes[0]
    share = "" if math.isnan(best.probability) else f", a share of {percent_text(best.probability)}"
    place = "" if head.of == "text" else f" at “{ran.tokens[view.request.position].word}”"
    said = f"“{best.label}” has the largest logit of {len(view.classes)}{place}: {value_text(best.logit)}{share}."
    return About((_CLASSES, said, _SHARES[head.scale]), to_try)


def _of_vector(state: State, ran: Ran | None) -> About:
    view = state.results.of(SentenceView)
    to_try = "Try: choose another way to make one vector of the tokens', at the top right."
    if view is None or ran is None or view.request.run != ran.run or not len(view.vector):
        return About((_VECTOR, "Its numbers appear as bars when the model has run."), to_try)
    return About(
        (
            _VECTOR,
            f"How it was made: {view.words}.",
            (
                f"It has {len(view.vector):,} numbers and a norm (length) of {value_text(view.norm)}; two texts "
                "are alike where their vectors point the same way."
            ),
        ),
        to_try,
    )
