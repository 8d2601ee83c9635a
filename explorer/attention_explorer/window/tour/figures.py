"""The words and numbers in a step's sentence, from the run on screen. Pure."""

from __future__ import annotations

from collections.abc import Callable

from attention_explorer.panels.first_token import attention_sink
from attention_explorer.panels.predicted import wanted_prediction
from attention_explorer.panels.selected_head import head_shown, row_of, site_words, words_written
from attention_explorer.session.state import State
from attention_explorer.session.tours import figures_in
from attention_explorer.widgets.number_text import percent_text
from attention_models.protocol.head import RowView
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.request import Request
from attention_models.protocol.values import Candidate, Prediction

COMING = "…"
"""Stands for a figure that is being computed."""


def said(sentence: str, state: State) -> str:
    """`sentence` with its figures."""
    return sentence.format_map({name: _FIGURES[name](state) or COMING for name in figures_in(sentence)})


def wanted(sentence: str, state: State) -> Request | None:
    """What the engine has to answer for its figures, unless it is here; the weights of a head are always asked for."""
    if not any(name.startswith(("next", "key_")) for name in figures_in(sentence)):
        return None
    request = wanted_prediction(state)
    return None if request is None or state.results.has_answer_to(request) else request


def _prediction(state: State) -> Prediction | None:
    """What is expected at the selected token."""
    view, ran = state.results.of(PredictionView), state.ran
    if view is None or ran is None or view.request.run != ran.run or view.request != wanted_prediction(state):
        return None
    return view.predictions[0] if view.predictions else None


def _next(state: State) -> str:
    prediction = _prediction(state)
    return "" if prediction is None else _word(prediction.candidates[0])


def _next_share(state: State) -> str:
    prediction = _prediction(state)
    return "" if prediction is None else percent_text(prediction.candidates[0].probability)


def _key_candidate(state: State) -> Candidate | None:
    """The selected key's word, as what comes next."""
    prediction = _prediction(state)
    listed = () if prediction is None else prediction.candidates
    return next((candidate for candidate in listed if _word(candidate) == _key(state)), None)


def _key_share(state: State) -> str:
    candidate = _key_candidate(state)
    return "" if candidate is None else percent_text(candidate.probability)


def _key_before(state: State) -> str:
    candidate = _key_candidate(state)
    return "" if candidate is None or candidate.before is None else percent_text(candidate.before)


def _word(candidate: Candidate) -> str:
    return candidate.label.lstrip("␣") or candidate.label


def _query(state: State) -> str:
    if state.ran is None or state.site is None:
        return ""
    return site_words(state.ran, state.site)[0][state.selection.query]


def _key(state: State) -> str:
    if state.ran is None or state.site is None:
        return ""
    return site_words(state.ran, state.site)[1][state.selection.key]


def _wrote(state: State) -> str:
    ran, site = state.ran, state.site
    return "" if ran is None or site is None or site.stack != "cross" else words_written(ran)[state.selection.query]


def _weight(state: State) -> str:
    view, site, chosen = head_shown(state), state.site, state.selection
    if view is None or site is None or (view.request.site, view.request.head) != (site.ref, chosen.head):
        return ""
    if isinstance(view, RowView) and view.request.query != chosen.query:
        return ""
    return percent_text(float(row_of(view, chosen.query)[0][chosen.key]))


def _rests(state: State) -> str:
    place = attention_sink(state)
    return "" if place is None else place.sentence


def _heads(state: State) -> str:
    return "" if state.ran is None else f"{sum(site.heads for site in state.ran.sites):,}"


def _layers(state: State) -> str:
    return "" if state.ran is None else f"{len(state.ran.sites):,}"


_FIGURES: dict[str, Callable[[State], str]] = {
    "heads": _heads,
    "layers": _layers,
    "query": _query,
    "key": _key,
    "wrote": _wrote,
    "weight": _weight,
    "rests": _rests,
    "next": _next,
    "next_share": _next_share,
    "key_share": _key_share,
    "key_before": _key_before,
}
